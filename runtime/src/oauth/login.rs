//! The login at one server: gives the token of each request, and renews it once for all that need it.
//!
//! The store is the truth. Whoever renews holds the lock of the login, reads the store again first, and writes the new
//! tokens to the disk before they are used: a server that detects the second use of a refresh token revokes the login.
//! No failure deletes anything.

use crate::net::{AddressClass, Challenge, HttpClient, Response, Url};
use crate::oauth::OAuthFault;
use crate::oauth::scopes::Scopes;
use crate::oauth::server::client::{Client, ClientOrigin};
use crate::oauth::server::discovery::{self, Discovered};
use crate::oauth::server::http::NamedHttp;
use crate::oauth::server::token::{self, TokenFault, Tokens};
use crate::oauth::settings::{Grant, LoginOptions, OAuthSettings};
use crate::oauth::store::stored::{LoginFacts, StoredLogin, now};
use crate::oauth::store::{LoginKey, LoginLock, TokenStore};
use crate::secrets::{Credential, SecretRegistry};
use crate::sync::{Locked, RwLocked};
use crate::tasks::{self, TaskOwner};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;
use tokio::time::Instant;

/// Most bytes of scopes that calls have missed and the next login asks for.
const MISSING_BYTES: usize = 4_096;

/// The pause after an early renewal that failed: the token is still good meanwhile.
const RENEWAL_PAUSE: Duration = Duration::from_secs(5);

/// The login at one server. Clones share it.
#[derive(Clone)]
pub struct ServerLogin(Arc<Inner>);

pub(super) struct Inner {
    /// The server.
    pub(super) server: Url,
    pub(super) settings: OAuthSettings,
    pub(super) http: HttpClient,
    pub(super) options: LoginOptions,
    pub(super) key: LoginKey,
    pub(super) secrets: SecretRegistry,
    current: RwLock<Current>,
    /// Held by the task that renews the login in this process.
    renewal: tokio::sync::Mutex<Renewal>,
    seen: Mutex<Seen>,
    /// Held while a person is asked to log in.
    pub(super) asking: tokio::sync::Mutex<()>,
}

/// The login as this process knows it.
#[derive(Clone, Default)]
struct Current {
    /// The store was read.
    is_loaded: bool,
    login: Option<Arc<StoredLogin>>,
}

/// What renewals have found out.
#[derive(Default)]
struct Renewal {
    /// A refresh token that the server has refused.
    refused: Option<Credential>,
    /// New tokens that could not be stored yet. They are not used before.
    unsaved: Option<StoredLogin>,
    /// No early renewal before this.
    not_before: Option<Instant>,
}

/// What the server said last.
#[derive(Clone, Default)]
pub(super) struct Seen {
    /// Where the metadata of the resource is.
    pub(super) metadata: Option<String>,
    /// The scopes of its challenge.
    pub(super) scopes: Option<Scopes>,
    /// The class of its address.
    pub(super) class: Option<AddressClass>,
    /// The server has a login, as far as that is known.
    has_login: Option<bool>,
    /// Why there is no token that the server takes.
    verdict: Option<OAuthFault>,
    /// The login to which the verdict belongs.
    refused: Option<Arc<StoredLogin>>,
}

/// The token of a request.
#[derive(Clone)]
pub struct AccessToken(Arc<StoredLogin>);

impl AccessToken {
    /// The value of the Authorization header.
    pub fn header(&self) -> Credential {
        Credential::composed(format!("Bearer {}", self.0.access.expose()))
    }
}

impl ServerLogin {
    /// The login at `server`, which `http` reaches. `owner` is whose login it is, where that is not the operator.
    pub fn new(
        server: Url,
        settings: OAuthSettings,
        http: HttpClient,
        options: LoginOptions,
        owner: Option<&str>,
        secrets: SecretRegistry,
    ) -> ServerLogin {
        let client = settings.client.as_ref().map(|client| client.id.as_str());
        let key = LoginKey::new(&server, client, settings.issuer.as_deref(), owner);
        ServerLogin(Arc::new(Inner {
            server,
            settings,
            http,
            options,
            key,
            secrets,
            current: RwLock::default(),
            renewal: tokio::sync::Mutex::default(),
            seen: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }))
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.0
    }

    /// The token for the next request, renewed if its end is near. Without one, the server says what it wants.
    pub async fn token(&self) -> Option<AccessToken> {
        let login = self.0.loaded().await?;
        if !login.is_due(now()) {
            return Some(AccessToken(login));
        }
        // A token near its end is still good: the server decides.
        let newer = self.renewed(Some(login.clone()), Cause::Early).await.unwrap_or(login);
        Some(AccessToken(newer))
    }

    /// Handles a 401: the token for another try, if there is one that the server has not refused.
    pub async fn refused(&self, used: Option<&AccessToken>, response: &Response) -> Option<AccessToken> {
        let is_named = self.0.note(response);
        if !is_named && used.is_none() && !self.0.has_login().await {
            return None;
        }
        let newer = self.renewed(used.map(|token| token.0.clone()), Cause::Refused).await;
        let mut seen = self.0.seen.locked();
        seen.verdict = newer.as_ref().err().cloned();
        seen.refused = used.map(|token| token.0.clone());
        drop(seen);
        newer.ok().map(AccessToken)
    }

    /// Handles a 401 to the token of [`ServerLogin::refused`].
    pub fn refused_again(&self, response: &Response) {
        self.0.note(response);
        let text = "the server refuses the token that was just renewed".to_owned();
        let current = self.0.current.read_locked().login.clone();
        let mut seen = self.0.seen.locked();
        seen.verdict = Some(OAuthFault::LoginRequired(text));
        seen.refused = current;
    }

    /// Why the server took no token; `None` where it has no login.
    pub fn verdict(&self) -> Option<OAuthFault> {
        self.0.seen.locked().verdict.clone()
    }

    /// Handles a 403: the login that the request misses, if the server names scopes. They are remembered for the next
    /// login. A server that still asks for scopes to which a person has agreed is not asked again.
    pub async fn forbidden(&self, response: &Response) -> Option<OAuthFault> {
        let scopes = missing_scopes(response)?;
        let remembered = self.0.remember_missing(&scopes).await;
        Some(match remembered {
            Ok(true) => OAuthFault::LoginRequired(format!("it needs the scopes {scopes}")),
            Ok(false) => OAuthFault::ScopeDenied(format!(
                "the server asks for the scopes {scopes}, which the login has asked for already"
            )),
            Err(fault) => fault,
        })
    }

    /// True when there is another login than the one that was refused: a person has logged in meanwhile.
    pub async fn has_changed(&self) -> bool {
        let Some(store) = &self.0.options.store else { return false };
        let known = self.0.seen().refused;
        match (store.read(&self.0.key, &self.0.secrets).await, known) {
            (Ok(Some(stored)), Some(known)) => !stored.has_access_of(&known),
            (Ok(Some(_)), None) => true,
            (Ok(None) | Err(_), _) => false,
        }
    }

    /// What is stored about this login.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn facts(&self) -> Result<Option<LoginFacts>, OAuthFault> {
        Ok(self.0.stored().await?.map(|login| login.facts()))
    }

    /// How tokens are obtained.
    pub fn grant(&self) -> Grant {
        self.0.settings.grant
    }

    /// Obtains tokens without a person, for a grant that needs none.
    ///
    /// # Errors
    /// The server, or the identity provider, refuses.
    pub async fn obtain(&self) -> Result<LoginFacts, OAuthFault> {
        let login = self.0.unattended().await?;
        let facts = login.facts();
        self.0.store_new(login).await?;
        Ok(facts)
    }

    /// Forgets the login, and first tells its server to revoke the tokens, if that is wanted. False without a login.
    ///
    /// # Errors
    /// The server does not revoke; then the login stays.
    pub async fn forget(&self, revokes: bool) -> Result<bool, OAuthFault> {
        let inner = &self.0;
        let Some(store) = &inner.options.store else { return Ok(false) };
        if inner.stored().await?.is_none() {
            return Ok(false);
        }
        let _turn = inner.renewal.lock().await;
        let lock = store.lock(&inner.key).await?;
        let Some(stored) = inner.stored().await? else { return Ok(false) };
        if revokes {
            inner.revoke(&inner.adopted(stored)).await?;
        }
        store.remove(&inner.key, &lock).await?;
        Ok(true)
    }

    /// Waits until no renewal is under way: new tokens that are not on the disk yet would be lost with this process.
    pub async fn settled(&self) {
        drop(self.0.renewal.lock().await);
    }

    /// Renews the login in a task of its own, so that a caller that gives up loses no token.
    async fn renewed(
        &self,
        used: Option<Arc<StoredLogin>>,
        cause: Cause,
    ) -> Result<Arc<StoredLogin>, OAuthFault> {
        let inner = self.0.clone();
        let task = tasks::spawn(TaskOwner::Process, async move { inner.renew(used, cause).await });
        task.await.unwrap_or_else(|_| Err(OAuthFault::unavailable("the renewal of the login has failed")))
    }
}

/// Why a login is renewed.
#[derive(Clone, Copy, PartialEq)]
enum Cause {
    /// Its end is near.
    Early,
    /// The server refused it.
    Refused,
}

impl Inner {
    /// The login, read from the store the first time.
    async fn loaded(&self) -> Option<Arc<StoredLogin>> {
        if self.is_withheld() {
            return None;
        }
        let Current { is_loaded, login } = self.current.read_locked().clone();
        let Some(store) = self.options.store.as_ref().filter(|_| !is_loaded) else { return login };
        match store.read(&self.key, &self.secrets).await {
            Ok(stored) => {
                let mut current = self.current.write_locked();
                // A renewal may have been faster.
                if !current.is_loaded {
                    *current = Current { is_loaded: true, login: stored.map(|stored| self.adopted(stored)) };
                }
                current.login.clone()
            }
            Err(fault) => {
                tracing::warn!("{fault}");
                None
            }
        }
    }

    /// A stored login, with the secret of its client if that is configured.
    fn adopted(&self, mut login: StoredLogin) -> Arc<StoredLogin> {
        if login.client.origin == ClientOrigin::Configured
            && let Some(client) = &self.settings.client
        {
            login.client.secret = client.secret.clone();
            login.client.key = client.key.clone();
        }
        Arc::new(login)
    }

    /// Uses this login from now on.
    pub(super) fn use_login(&self, login: StoredLogin) -> Arc<StoredLogin> {
        let login = self.adopted(login);
        *self.current.write_locked() = Current { is_loaded: true, login: Some(login.clone()) };
        self.seen.locked().verdict = None;
        login
    }

    /// True where a person's login would act for callers with different tokens, and the configuration does not allow it.
    fn is_withheld(&self) -> bool {
        self.options.serves_many && !self.settings.is_shared && !self.settings.grant.is_unattended()
    }

    /// The login that is stored now.
    pub(super) async fn stored(&self) -> Result<Option<StoredLogin>, OAuthFault> {
        if self.is_withheld() {
            return Err(OAuthFault::unusable(
                "one login would act for all tokens of this ptc serve; if it should, write \"identity\": \"shared\" in the \
                 oauth scheme of its entry (auth)",
            ));
        }
        match &self.options.store {
            Some(store) => store.read(&self.key, &self.secrets).await,
            None => Ok(None),
        }
    }

    /// Remembers what a 401 says. True if it names the metadata of the resource, or the configuration speaks of a login.
    pub(super) fn note(&self, response: &Response) -> bool {
        let challenges = Challenge::parse(response.headers("www-authenticate"));
        let bearer = challenges.iter().find(|challenge| challenge.is("bearer"));
        let metadata = bearer.and_then(|challenge| challenge.parameter("resource_metadata"));
        let mut seen = self.seen.locked();
        seen.class = Some(response.class);
        seen.scopes =
            bearer.and_then(|challenge| challenge.parameter("scope")).map(|scopes| Scopes::parse(&scopes));
        seen.metadata.clone_from(&metadata);
        seen.verdict = None;
        metadata.is_some() || self.settings.is_explicit
    }

    pub(super) fn seen(&self) -> Seen {
        self.seen.locked().clone()
    }

    /// Requests to addresses that the server names.
    pub(super) fn named_http(&self, class: AddressClass) -> NamedHttp {
        NamedHttp::new(&self.http, &self.server, class)
    }

    /// Whether a server whose challenge names no metadata has some all the same. Asked once.
    async fn has_login(&self) -> bool {
        let Seen { has_login, class, .. } = self.seen();
        if let Some(known) = has_login {
            return known;
        }
        let http = self.named_http(class.unwrap_or(AddressClass::Public));
        let found = match discovery::resource(&http, &self.server, None).await {
            Ok(Some(_)) => true,
            // A server of the revision 2025-03-26 is its own authorization server.
            Ok(None) => discovery::own_metadata(&http, &self.server).await.is_ok_and(|own| own.is_some()),
            Err(OAuthFault::Unavailable(_)) => return false,
            // There is a login, though one that cannot be used.
            Err(OAuthFault::LoginRequired(_) | OAuthFault::ScopeDenied(_) | OAuthFault::Unusable(_)) => true,
        };
        self.seen.locked().has_login = Some(found);
        found
    }

    /// A login that is not the one that was `used`, which is due or was refused.
    async fn renew(
        &self,
        used: Option<Arc<StoredLogin>>,
        cause: Cause,
    ) -> Result<Arc<StoredLogin>, OAuthFault> {
        let mut renewal = self.renewal.lock().await;
        let is_news = |login: &StoredLogin| {
            used.as_ref().is_none_or(|used| !login.has_access_of(used)) && !login.is_due(now())
        };
        if let Some(current) = self.current.read_locked().login.clone().filter(|current| is_news(current)) {
            return Ok(current);
        }
        if cause == Cause::Early && renewal.not_before.is_some_and(|until| Instant::now() < until) {
            return Err(OAuthFault::unavailable("the last renewal has just failed"));
        }
        let is_unattended = self.settings.grant.is_unattended();
        let missing = || OAuthFault::LoginRequired("there is no login yet".to_owned());
        let store = self.options.store.as_ref().ok_or_else(missing)?;
        if !is_unattended && self.stored().await?.is_none() {
            return Err(missing());
        }
        let lock = store.lock(&self.key).await?;
        if let Some(unsaved) = renewal.unsaved.take() {
            return self.save(&mut renewal, store, unsaved, &lock).await;
        }
        // Another process may have renewed it while this one waited.
        let stored = self.stored().await?;
        if let Some(stored) = stored.clone().filter(|stored| is_news(stored)) {
            return Ok(self.use_login(stored));
        }
        let renewed = match stored {
            _ if is_unattended => match self.unattended().await {
                Ok(login) => self.save(&mut renewal, store, login, &lock).await,
                Err(fault) => Err(fault),
            },
            Some(stored) => self.refresh(&mut renewal, store, stored, &lock).await,
            None => Err(OAuthFault::LoginRequired("there is no login any more".to_owned())),
        };
        renewal.not_before = renewed.is_err().then(|| Instant::now() + RENEWAL_PAUSE);
        renewed
    }

    /// Exchanges the refresh token for new tokens.
    async fn refresh(
        &self,
        renewal: &mut Renewal,
        store: &TokenStore,
        stored: StoredLogin,
        lock: &LoginLock,
    ) -> Result<Arc<StoredLogin>, OAuthFault> {
        let mut stored = self.adopted(stored);
        loop {
            let Some(refresh) = &stored.refresh else {
                return Err(OAuthFault::LoginRequired("the login has ended".to_owned()));
            };
            if renewal.refused.as_ref().is_some_and(|refused| refused.expose() == refresh.expose()) {
                return Err(OAuthFault::LoginRequired("the login has ended or was revoked".to_owned()));
            }
            let why = match self.refreshed(&stored, refresh).await {
                Ok(tokens) => return self.save(renewal, store, with_tokens(&stored, tokens), lock).await,
                Err(TokenFault::InvalidGrant(why)) => why,
                // The client is not known any more: a login registers another one.
                Err(TokenFault::Refused { code, words }) if code == "invalid_client" => {
                    return Err(OAuthFault::LoginRequired(words));
                }
                Err(fault) => return Err(fault.into()),
            };
            // A writer without the lock may have won: a login by hand, a copy of the folder.
            let again = self.stored().await?;
            match again.filter(|again| again.refresh_text() != stored.refresh_text()) {
                Some(again) if !again.is_due(now()) => return Ok(self.use_login(again)),
                Some(again) => stored = self.adopted(again),
                None => {
                    renewal.refused = Some(refresh.clone());
                    return Err(OAuthFault::LoginRequired(why));
                }
            }
        }
    }

    async fn refreshed(&self, stored: &StoredLogin, refresh: &Credential) -> Result<Tokens, TokenFault> {
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.expose()),
            ("resource", stored.resource.as_str()),
        ];
        let http = self.named_http(stored.named_by);
        let (endpoint, issuer) = (&stored.token_endpoint, &stored.issuer);
        token::request(&http, endpoint, issuer, &stored.client, &fields, &self.secrets).await
    }

    /// Tells the server that the tokens are not needed any more (RFC 7009).
    async fn revoke(&self, login: &StoredLogin) -> Result<(), OAuthFault> {
        let endpoint = login.revocation_endpoint.as_deref();
        let endpoint = endpoint.ok_or_else(|| {
            OAuthFault::unusable(format!(
                "{} revokes no tokens; without --revoke they are forgotten here",
                login.issuer
            ))
        })?;
        let http = self.named_http(login.named_by);
        let tokens = [("refresh_token", login.refresh.as_ref()), ("access_token", Some(&login.access))];
        for (kind, token) in tokens.into_iter().filter_map(|(kind, token)| Some((kind, token?))) {
            let fields = [("token", token.expose()), ("token_type_hint", kind)];
            match token::post(&http, endpoint, &login.issuer, &login.client, &fields, &self.secrets).await {
                Ok(_) => {}
                // Servers revoke an access token with its refresh token, or cannot revoke one at all.
                Err(TokenFault::Refused { code, .. }) if code == "unsupported_token_type" => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(())
    }

    /// Stores new tokens, and uses them from then on.
    async fn save(
        &self,
        renewal: &mut Renewal,
        store: &TokenStore,
        login: StoredLogin,
        lock: &LoginLock,
    ) -> Result<Arc<StoredLogin>, OAuthFault> {
        match store.write(&self.key, &login, lock).await {
            Ok(()) => Ok(self.use_login(login)),
            Err(fault) => {
                renewal.unsaved = Some(login);
                Err(fault)
            }
        }
    }

    /// Remembers scopes that a call has missed. False if the last login has asked for all of them.
    async fn remember_missing(&self, scopes: &Scopes) -> Result<bool, OAuthFault> {
        let Some(store) = &self.options.store else { return Ok(true) };
        if self.settings.grant.is_unattended() {
            return Ok(false);
        }
        let lock = store.lock(&self.key).await?;
        let Some(mut stored) = self.stored().await? else { return Ok(true) };
        if stored.requested.covers(scopes) {
            return Ok(false);
        }
        let is_short = stored.missing.to_string().len() + scopes.to_string().len() <= MISSING_BYTES;
        if !stored.missing.covers(scopes) && is_short {
            stored.missing = stored.missing.union(scopes);
            store.write(&self.key, &stored, &lock).await?;
        }
        Ok(true)
    }

    /// Stores the tokens of a login by a person.
    pub(super) async fn store_new(&self, login: StoredLogin) -> Result<(), OAuthFault> {
        let Some(store) = &self.options.store else {
            return Err(OAuthFault::unusable("there is no folder to store the login in"));
        };
        let mut renewal = self.renewal.lock().await;
        let lock = store.lock(&self.key).await?;
        store.write(&self.key, &login, &lock).await?;
        *renewal = Renewal::default();
        self.use_login(login);
        Ok(())
    }
}

/// The scopes that a refused request misses (RFC 6750, section 3.1).
fn missing_scopes(response: &Response) -> Option<Scopes> {
    let challenges = Challenge::parse(response.headers("www-authenticate"));
    let refusal = challenges.iter().find(|challenge| {
        challenge.is("bearer") && challenge.parameter("error").as_deref() == Some("insufficient_scope")
    });
    let scopes = Scopes::parse(&refusal?.parameter("scope")?);
    (!scopes.is_empty()).then_some(scopes)
}

/// The login with new tokens. Without a new refresh token, the old one stays (RFC 6749, section 6).
fn with_tokens(old: &StoredLogin, tokens: Tokens) -> StoredLogin {
    let obtained_at = now();
    StoredLogin {
        access: tokens.access,
        refresh: tokens.refresh.or_else(|| old.refresh.clone()),
        granted: tokens.scopes.or_else(|| old.granted.clone()),
        obtained_at,
        expires_at: tokens.expires_in.map(|seconds| obtained_at.saturating_add(seconds)),
        refreshed_at: Some(obtained_at),
        ..old.clone()
    }
}

/// How a login came about.
pub(super) struct NewLogin<'a> {
    pub(super) discovered: &'a Discovered,
    pub(super) client: Client,
    pub(super) requested: Scopes,
}

impl Inner {
    /// The login with these tokens.
    pub(super) fn new_login(&self, new: NewLogin<'_>, tokens: Tokens) -> StoredLogin {
        let NewLogin { discovered, client, requested } = new;
        let obtained_at = now();
        StoredLogin {
            server: self.server.to_string(),
            resource: discovered.resource.clone(),
            issuer: discovered.server.issuer.clone(),
            token_endpoint: discovered.server.token_endpoint.clone().unwrap_or_default(),
            revocation_endpoint: discovered.server.revocation_endpoint.clone(),
            named_by: self.seen().class.unwrap_or(AddressClass::Public),
            client,
            requested,
            granted: tokens.scopes,
            missing: Scopes::default(),
            access: tokens.access,
            refresh: tokens.refresh,
            obtained_at,
            expires_at: tokens.expires_in.map(|seconds| obtained_at.saturating_add(seconds)),
            refreshed_at: None,
        }
    }
}
