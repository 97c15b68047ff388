//! Manages the OAuth login at one server: supplies the access token for each request, reacts when the server refuses it
//! (401, 403), obtains new tokens without asking a person, and removes the login.
//!
//! - `renewal`: renews the login, once for all that need it. `made`: the stored form of new tokens.
//!
//! The store is the truth: it is looked at again at most once a second, so that a login or a logout by another process
//! counts here too. A request without a login does not wait for that: a server that wants one answers 401.

mod made;
mod renewal;

pub(super) use renewal::LoginPermit;

use crate::net::{AddressClass, Challenge, ClientOptions, HttpClient, Response, Url};
use crate::oauth::account::LoginId;
use crate::oauth::changes::LoginChange;
use crate::oauth::scopes::Scopes;
use crate::oauth::server::client::ClientOrigin;
use crate::oauth::server::discovery;
use crate::oauth::server::http::NamedHttp;
use crate::oauth::server::token::{TokenEndpoint, TokenFault};
use crate::oauth::settings::{Grant, LoginIdentity, LoginOptions, OAuthSettings};
use crate::oauth::store::stored::{LoginFacts, StoredLogin, now};
use crate::oauth::store::{LoginKey, LoginMark, TokenStore};
use crate::oauth::{OAuthFault, Result};
use crate::panics::{contained, panic_text};
use crate::secrets::{Credential, SecretRegistry};
use crate::sync::{Locked, RwLocked};
use crate::tasks::{self, TaskOwner};
use renewal::{Cause, Renewal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long what was read from the store counts.
const FRESH: Duration = Duration::from_secs(1);

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
    /// A look at the store is under way, for which no request waits.
    is_looking: AtomicBool,
    /// Held by the task that renews the login in this process.
    renewal: tokio::sync::Mutex<Renewal>,
    /// Since when an early renewal is under way.
    early: watch::Sender<Option<Instant>>,
    seen: Mutex<Seen>,
    /// The issuer that a person has named for this process.
    pub(super) confirmed: Mutex<Option<String>>,
    /// Held while a person is asked to log in.
    pub(super) asking: tokio::sync::Mutex<()>,
}

/// The login as this process knows it.
#[derive(Clone, Default)]
struct Current {
    /// When the store was looked at; `None`: never.
    looked: Option<Instant>,
    /// What the stored login was recognised by when it was read.
    mark: Option<LoginMark>,
    login: Option<Arc<StoredLogin>>,
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

/// What [`ServerLogin::forget`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// There was no login.
    Nothing,
    /// It is removed.
    Login,
    /// Its server has revoked the tokens, and it is removed.
    Revoked,
    /// It could not be read, and is removed. Nothing was revoked.
    Unreadable,
}

/// The token of a request.
#[derive(Clone)]
pub struct AccessToken(Arc<StoredLogin>);

impl AccessToken {
    /// The value of the Authorization header.
    pub fn header(&self) -> Credential {
        Credential::composed(format!("Bearer {}", self.0.access.expose()))
    }

    /// The account that it is for.
    pub fn login(&self) -> &LoginId {
        &self.0.id
    }
}

impl ServerLogin {
    /// The login at `server`, which `http` reaches, made with the options `reach`.
    pub fn new(
        server: Url,
        settings: OAuthSettings,
        http: HttpClient,
        options: LoginOptions,
        reach: &ClientOptions,
        secrets: SecretRegistry,
    ) -> ServerLogin {
        let client = settings.client.as_ref().map(|client| client.id.as_str());
        let key = LoginKey::new(&server, client, &settings, reach, options.owner.as_deref());
        ServerLogin(Arc::new(Inner {
            server,
            settings,
            http,
            options,
            key,
            secrets,
            current: RwLock::default(),
            is_looking: AtomicBool::new(false),
            renewal: tokio::sync::Mutex::default(),
            early: watch::Sender::new(None),
            seen: Mutex::default(),
            confirmed: Mutex::default(),
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
        if login.is_good(now()) {
            return Some(AccessToken(self.renewed_early(login).await));
        }
        // The clock of this machine may be wrong: the server decides.
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
    pub fn refused_again(&self, used: Option<&AccessToken>, response: &Response) {
        self.0.note(response);
        let text = "the server refuses the token that was just renewed".to_owned();
        let mut seen = self.0.seen.locked();
        seen.verdict = Some(OAuthFault::LoginRequired(text));
        seen.refused = used.map(|token| token.0.clone());
    }

    /// Why the server took no token; `None` where it has no login.
    pub fn verdict(&self) -> Option<OAuthFault> {
        self.0.seen.locked().verdict.clone()
    }

    /// Handles a 403: the login that the request misses, if the server names scopes. They are remembered for the next
    /// login. A server that still asks for scopes to which a person has agreed is not asked again.
    pub async fn forbidden(&self, response: &Response) -> Option<(OAuthFault, Scopes)> {
        let scopes = missing_scopes(response)?;
        let remembered = self.0.remember_missing(&scopes).await;
        let fault = match remembered {
            Ok(true) => OAuthFault::LoginRequired(format!("it needs the scopes {scopes}")),
            Ok(false) => OAuthFault::ScopeDenied(format!(
                "the server asks for the scopes {scopes}, which the login has asked for already"
            )),
            Err(fault) => fault,
        };
        Some((fault, scopes))
    }

    /// True where a caller of this process may log in: it is the caller's login, or all callers are one owner.
    pub fn may_be_made_by_callers(&self) -> bool {
        self.0.options.callers_log_in || self.owner().is_some()
    }

    /// The caller whose login it is; `None`: the operator.
    pub fn owner(&self) -> Option<&str> {
        self.0.options.owner.as_deref()
    }

    /// True if a person has agreed to these scopes.
    pub(super) async fn has_asked_for(&self, scopes: &Scopes) -> bool {
        let stored = self.0.stored().await.ok().flatten();
        stored.is_some_and(|stored| stored.requested.covers(scopes))
    }

    /// True when there is another login than the one that was refused: a person has logged in meanwhile.
    pub async fn has_changed(&self) -> bool {
        let Some(store) = &self.0.options.store else { return false };
        let known = self.0.seen().refused;
        match (self.0.read(store).await, known) {
            (Ok(Some(stored)), Some(known)) => !stored.has_access_of(&known),
            (Ok(Some(_)), None) => true,
            (Ok(None) | Err(_), _) => false,
        }
    }

    /// What is stored about this login.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn facts(&self) -> Result<Option<LoginFacts>> {
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
    pub async fn obtain(&self) -> Result<LoginFacts> {
        let turn = self.0.turn().await?;
        let change = LoginChange::begin()?;
        let login = self.0.unattended(&change).await?;
        let facts = login.facts();
        self.0.store_new(turn, login).await?;
        Ok(facts)
    }

    /// Forgets the login, and first tells its server to revoke the tokens, if that is wanted.
    ///
    /// # Errors
    /// The server does not revoke; then the login stays.
    pub async fn forget(&self, revokes: bool) -> Result<Forgotten> {
        let inner = &self.0;
        let Some(store) = &inner.options.store else { return Ok(Forgotten::Nothing) };
        inner.must_not_be_withheld()?;
        if !store.has(&inner.key).await? {
            return Ok(Forgotten::Nothing);
        }
        let turn = inner.turn().await?;
        let forgotten = match inner.stored().await {
            Ok(Some(stored)) if revokes => {
                inner.revoke(&inner.adopted(stored)).await?;
                Forgotten::Revoked
            }
            Ok(Some(_)) => Forgotten::Login,
            Ok(None) | Err(_) => Forgotten::Unreadable,
        };
        turn.remove(&inner.key).await?;
        Ok(forgotten)
    }
}

impl Inner {
    /// The login, read from the store the first time.
    async fn loaded(self: &Arc<Inner>) -> Option<Arc<StoredLogin>> {
        if self.is_withheld() {
            return None;
        }
        let known = self.current.read_locked().clone();
        if self.options.store.is_none() || known.looked.is_some_and(|looked| looked.elapsed() < FRESH) {
            return known.login;
        }
        if known.looked.is_none() || known.login.is_some() {
            return self.look(known).await;
        }
        if !self.is_looking.swap(true, Ordering::AcqRel) {
            let inner = self.clone();
            tasks::spawn(TaskOwner::Process, async move {
                let looked = contained(Box::pin(inner.look(known))).await;
                // After a defect, too: otherwise this look would be the last one.
                inner.is_looking.store(false, Ordering::Release);
                if let Err(panic) = looked {
                    tracing::error!(panic = panic_text(&*panic), "a look for a login hit a defect");
                }
            });
        }
        None
    }

    /// The login, read from the store if that has changed since `known`.
    async fn look(&self, known: Current) -> Option<Arc<StoredLogin>> {
        let Some(store) = &self.options.store else { return known.login };
        // Before the login is read: a change in between is seen the next time.
        let mark = store.mark(&self.key).await;
        if known.looked.is_some() && mark == known.mark {
            self.current.write_locked().looked = Some(Instant::now());
            return known.login;
        }
        match self.read(store).await {
            Ok(stored) => {
                let mut current = self.current.write_locked();
                // A renewal may have been faster.
                if current.looked == known.looked {
                    current.login = stored.map(|stored| self.adopted(stored));
                    current.looked = Some(Instant::now());
                    current.mark = mark;
                }
                current.login.clone()
            }
            Err(fault) => {
                tracing::warn!("{fault}");
                known.login
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
        let mut current = self.current.write_locked();
        current.login = Some(login.clone());
        (current.looked, current.mark) = (Some(Instant::now()), None);
        drop(current);
        self.seen.locked().verdict = None;
        login
    }

    /// True where a person's login would act for callers with different tokens, and the configuration does not allow it.
    fn is_withheld(&self) -> bool {
        let is_decided = match self.settings.identity {
            LoginIdentity::Unsaid => false,
            LoginIdentity::Shared => true,
            LoginIdentity::User => self.options.owner.is_some(),
        };
        self.options.serves_many && !is_decided && !self.settings.grant.is_unattended()
    }

    fn must_not_be_withheld(&self) -> Result<()> {
        let why = match self.settings.identity {
            _ if !self.is_withheld() => return Ok(()),
            LoginIdentity::User => {
                "each token of this ptc serve has a login of its own, and this caller has no token"
            }
            LoginIdentity::Unsaid | LoginIdentity::Shared => {
                "one login would act for all tokens of this ptc serve; if it should, write \"identity\": \"shared\" in the \
                 oauth scheme of its entry (auth), or \"user\" for a login of each"
            }
        };
        Err(OAuthFault::unusable(why))
    }

    /// The login that is stored under this key. A file that was put there from elsewhere may be the login of another server,
    /// or of another caller: its tokens are for them alone.
    async fn read(&self, store: &TokenStore) -> Result<Option<StoredLogin>> {
        let stored = store.read(&self.key, &self.secrets).await?;
        let (server, owner) = (self.server.as_str(), self.options.owner.as_deref());
        if stored.as_ref().is_some_and(|login| !login.is_of(server, owner)) {
            tracing::warn!("what is stored as the login at {} is another one: it is not used", self.server);
            return Ok(None);
        }
        Ok(stored)
    }

    /// The login that is stored now.
    pub(super) async fn stored(&self) -> Result<Option<StoredLogin>> {
        self.must_not_be_withheld()?;
        match &self.options.store {
            Some(store) => self.read(store).await,
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

    /// Tells the server that the tokens are not needed any more (RFC 7009).
    async fn revoke(&self, login: &StoredLogin) -> Result<()> {
        let endpoint = login.revocation_endpoint.as_deref();
        let endpoint = endpoint.ok_or_else(|| {
            OAuthFault::unusable(format!(
                "{} revokes no tokens; without --revoke they are forgotten here",
                login.issuer
            ))
        })?;
        let http = self.named_http(login.named_by);
        let endpoint =
            TokenEndpoint { address: endpoint, ..TokenEndpoint::of_login(&http, login, &self.secrets) };
        let tokens = [("refresh_token", login.refresh.as_ref()), ("access_token", Some(&login.access))];
        for (kind, token) in tokens.into_iter().filter_map(|(kind, token)| Some((kind, token?))) {
            let fields = [("token", token.expose()), ("token_type_hint", kind)];
            match endpoint.post(&fields).await {
                Ok(_) => {}
                // Servers revoke an access token with its refresh token, or cannot revoke one at all.
                Err(TokenFault::Refused { code, .. }) if code == "unsupported_token_type" => {}
                Err(fault) => return Err(fault.into()),
            }
        }
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
