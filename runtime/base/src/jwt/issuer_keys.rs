//! Fetches and caches the public keys of one issuer, and fetches them again, at a limited rate, when they are old or
//! lack the key of a token.

use super::{KeySet, UnverifiedToken};
use crate::files;
use crate::net::{HttpClient, Method, Url, is_loopback};
use crate::oauth::{
    AuthorizationServer, Document, OAuthFault, exchange, json_accepted, metadata_addresses, place,
};
use crate::sync::RwLocked;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Time limit of a request with its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Shortest time between two fetches. Tokens that name unknown keys cause no more.
const PAUSE: Duration = Duration::from_secs(30);

/// How long the last keys are used while the issuer does not answer.
const RETAINED: Duration = Duration::from_secs(24 * 3600);

/// Where the keys of an issuer are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// At the `jwks_uri` of the issuer's metadata.
    Discovery,
    /// At this address.
    Address(Url),
    /// In this file.
    File(PathBuf),
}

/// The keys of one issuer.
pub struct IssuerKeys {
    issuer: String,
    source: KeySource,
    client: HttpClient,
    cached: RwLock<Option<CachedKeys>>,
    /// When keys were last asked for. Held while a request is under way, so there is one at a time.
    last: Mutex<Option<Instant>>,
}

#[derive(Clone)]
struct CachedKeys {
    keys: Arc<KeySet>,
    at: Instant,
}

impl IssuerKeys {
    /// Keys are fetched again after this time, so that one that the issuer withdraws is not used for long.
    pub const FRESH: Duration = Duration::from_secs(600);

    /// The keys of this issuer. Nothing is fetched yet.
    pub fn new(issuer: &str, source: KeySource, client: HttpClient) -> IssuerKeys {
        // A redirect to another origin would let that origin choose the keys.
        let client = client.within_origin();
        let (cached, last) = (RwLock::default(), Mutex::default());
        IssuerKeys { issuer: issuer.to_owned(), source, client, cached, last }
    }

    /// The keys for a token: those in the cache, unless they are old or lack the key that the token names.
    ///
    /// # Errors
    /// There are no keys, they are too old, or they lack the key and may not be fetched again yet.
    pub async fn for_token(&self, token: &UnverifiedToken<'_>) -> Result<Arc<KeySet>, OAuthFault> {
        let has_key = |cached: &CachedKeys| cached.keys.may_verify(token);
        let is_enough = |cached: &CachedKeys| cached.at.elapsed() < IssuerKeys::FRESH && has_key(cached);
        if let Some(cached) = self.cached().filter(is_enough) {
            return Ok(cached.keys);
        }
        let mut last = match self.last.try_lock() {
            Ok(last) => last,
            Err(_) => {
                // A request is under way. Old keys do until it has ended, unless the token needs another one.
                if let Some(keys) = usable(self.cached().filter(has_key)) {
                    return Ok(keys);
                }
                self.last.lock().await
            }
        };
        // Another request may have fetched them meanwhile.
        let cached = self.cached().filter(has_key);
        let is_paused = last.is_some_and(|last| last.elapsed() < PAUSE);
        if is_paused || cached.as_ref().is_some_and(is_enough) {
            return usable(cached).ok_or_else(|| self.fault("has no key for the token yet"));
        }
        let fetched = self.fetch().await;
        // After the request, so that a slow issuer is asked no more often.
        *last = Some(Instant::now());
        match fetched {
            Ok(keys) => {
                let keys = Arc::new(keys);
                let cached = CachedKeys { keys: keys.clone(), at: Instant::now() };
                *self.cached.write_locked() = Some(cached);
                Ok(keys)
            }
            Err(fault) => {
                tracing::warn!(issuer = self.issuer, %fault, "keys of an issuer are not available");
                usable(cached).ok_or(fault)
            }
        }
    }

    fn cached(&self) -> Option<CachedKeys> {
        self.cached.read_locked().clone()
    }

    fn fault(&self, text: &str) -> OAuthFault {
        unavailable(format!("{} {text}", self.issuer))
    }

    async fn fetch(&self) -> Result<KeySet, OAuthFault> {
        let text = match &self.source {
            KeySource::File(path) => {
                files::read(path).map_err(|error| unavailable(format!("{}: {error}", path.display())))?
            }
            KeySource::Address(url) => get(&self.client, url).await?.body,
            KeySource::Discovery => self.discovered().await?,
        };
        let keys = KeySet::parse(&text).map_err(|_| self.fault("gives keys that are no JWK set"))?;
        match keys.is_empty() {
            true => Err(self.fault("has no key that verifies signatures")),
            false => Ok(keys),
        }
    }

    /// The document at the `jwks_uri` of the metadata.
    async fn discovered(&self) -> Result<Vec<u8>, OAuthFault> {
        let issuer = Url::parse(&self.issuer).map_err(|_| self.fault("is no address"))?;
        let mut fault = self.fault("has no metadata");
        for address in metadata_addresses(&issuer) {
            let document = match get(&self.client, &address).await {
                Ok(document) => document,
                Err(why) => {
                    fault = why;
                    continue;
                }
            };
            let Ok(metadata) = serde_json::from_slice::<AuthorizationServer>(&document.body) else {
                continue;
            };
            // RFC 8414, section 3.3: identical, or not to be used.
            if metadata.issuer != self.issuer {
                return Err(self.fault("has metadata of another issuer"));
            }
            let Some(keys) = metadata.jwks_uri else { continue };
            let keys = Url::parse(&keys).ok().filter(|url| is_safe(url, &issuer));
            let keys = keys.ok_or_else(|| self.fault("names keys that are at no https address"))?;
            // The issuer names this address: it may not lead into networks that the issuer is not in.
            return Ok(get(&self.client.led_by(document.class), &keys).await?.body);
        }
        Err(fault)
    }
}

/// The last keys, while they may be used.
fn usable(cached: Option<CachedKeys>) -> Option<Arc<KeySet>> {
    cached.filter(|cached| cached.at.elapsed() < RETAINED).map(|cached| cached.keys)
}

/// Whether keys may be read there: over https, or on this machine if the issuer is there as well.
fn is_safe(url: &Url, issuer: &Url) -> bool {
    let is_plain = url.scheme() == "http" && is_loopback(url) && is_loopback(issuer);
    (url.scheme() == "https" || is_plain) && url.username().is_empty() && url.password().is_none()
}

/// A fault that may pass.
fn unavailable(text: impl Into<String>) -> OAuthFault {
    OAuthFault::Unavailable(text.into())
}

async fn get(client: &HttpClient, url: &Url) -> Result<Document, OAuthFault> {
    let headers = json_accepted();
    let document = exchange(client.send(Method::GET, url, &headers, None), url, PATIENCE).await?;
    match document.status.is_success() {
        true => Ok(document),
        false => Err(unavailable(format!("http {} ({})", document.status, place(url)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{FileAccess, LinkRule};
    use crate::net::ClientOptions;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::json;
    use tempfile::TempDir;

    /// An issuer whose keys are in a file. No key of the tests signs anything.
    struct FileIssuer {
        keys: IssuerKeys,
        folder: TempDir,
    }

    impl FileIssuer {
        fn new() -> FileIssuer {
            let folder = tempfile::tempdir().unwrap();
            let source = KeySource::File(folder.path().join("keys.json"));
            let client = HttpClient::new(&ClientOptions::default()).unwrap();
            FileIssuer { keys: IssuerKeys::new("https://i", source, client), folder }
        }

        fn write(&self, ids: &[&str]) {
            let key = |id: &&str| json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": "AAAA" });
            let keys: Vec<_> = ids.iter().map(key).collect();
            self.replace(&json!({ "keys": keys }).to_string());
        }

        fn replace(&self, text: &str) {
            let file = self.folder.path().join("keys.json");
            files::replace(&file, text.as_bytes(), LinkRule::Replace, FileAccess::Private).unwrap();
        }

        fn spoil(&self) {
            self.replace("none");
        }

        /// Whether the key of this name is there.
        async fn has(&self, id: &str) -> Result<bool, OAuthFault> {
            let part = |text: String| URL_SAFE_NO_PAD.encode(text);
            let header = part(json!({ "alg": "EdDSA", "kid": id }).to_string());
            let text = format!("{header}.{}.AAAA", part("{}".to_owned()));
            let token = UnverifiedToken::parse(&text).unwrap();
            Ok(self.keys.for_token(&token).await?.may_verify(&token))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn keys_are_fetched_again_in_bounds() {
        let issuer = FileIssuer::new();
        issuer.write(&["a"]);
        assert!(issuer.has("a").await.unwrap());
        // A new key is found after a pause.
        issuer.write(&["a", "b"]);
        assert!(issuer.has("b").await.is_err());
        tokio::time::advance(PAUSE).await;
        assert!(issuer.has("b").await.unwrap());
        // Afterwards, a key that is not there is unknown.
        tokio::time::advance(PAUSE).await;
        assert!(!issuer.has("c").await.unwrap());
        // A key that was withdrawn is not used for long.
        issuer.write(&["b"]);
        assert!(issuer.has("a").await.unwrap());
        tokio::time::advance(IssuerKeys::FRESH).await;
        assert!(!issuer.has("a").await.unwrap() && issuer.has("b").await.unwrap());
        // The last keys are used for a day.
        issuer.spoil();
        for _ in 0..23 {
            tokio::time::advance(Duration::from_secs(3600)).await;
            assert!(issuer.has("b").await.unwrap());
        }
        tokio::time::advance(Duration::from_secs(2 * 3600)).await;
        assert!(issuer.has("b").await.is_err());
        issuer.write(&["c"]);
        tokio::time::advance(PAUSE).await;
        assert!(issuer.has("c").await.unwrap());
    }
}
