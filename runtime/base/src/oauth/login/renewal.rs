//! Renews the OAuth tokens of a server once for all requests that need them, and stores new tokens before they are
//! used.
//!
//! Who renews holds the turn of the process and the lock of the login, and reads the store again first: another process
//! may have been faster, and a server that detects the second use of a refresh token revokes the login. No failure
//! deletes anything.

use super::made::with_tokens;
use super::{Inner, ServerLogin};
use crate::oauth::changes::LoginChange;
use crate::oauth::scopes::Scopes;
use crate::oauth::server::token::{TokenEndpoint, TokenFault, Tokens};
use crate::oauth::store::stored::{StoredLogin, now};
use crate::oauth::store::{LoginKey, LoginLock, TokenStore};
use crate::oauth::{OAuthFault, Result};
use crate::secrets::Credential;
use crate::sync::RwLocked;
use crate::tasks::{self, TaskOwner};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::MutexGuard;
use tokio::time::{Instant, timeout_at};

/// Most bytes of scopes that calls have missed and the next login asks for.
const MISSING_BYTES: usize = 4_096;

/// The pause after a renewal that failed while the token was still good.
const RENEWAL_PAUSE: Duration = Duration::from_secs(5);

/// How long calls wait for an early renewal. Then they use the token that is still good.
const EARLY_PATIENCE: Duration = Duration::from_secs(2);

/// The age in seconds up to which tokens that could not be stored at first are used without another renewal.
const UNSAVED_GOOD: u64 = 60;

/// What renewals have found out.
#[derive(Default)]
pub(super) struct Renewal {
    /// A refresh token that the server has refused.
    refused: Option<Credential>,
    /// New tokens that could not be stored yet. They are not used before.
    unsaved: Option<UnsavedLogin>,
    /// No early renewal before this.
    not_before: Option<Instant>,
}

/// New tokens that could not be stored.
struct UnsavedLogin {
    login: StoredLogin,
    /// The access token that was stored when they were obtained.
    replaced: Option<Credential>,
}

impl UnsavedLogin {
    /// False once there has been another login, another renewal or a logout: those count.
    fn may_replace(&self, stored: Option<&StoredLogin>) -> bool {
        let stored = stored.map(|stored| stored.access.expose());
        stored == self.replaced.as_ref().map(Credential::expose)
    }
}

/// Why a login is renewed.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Cause {
    /// Its end is near.
    Early,
    /// The server refused it.
    Refused,
}

/// The right to change a login, in this process and among processes.
pub(in crate::oauth) struct LoginPermit<'a> {
    renewal: MutexGuard<'a, Renewal>,
    store: &'a TokenStore,
    lock: LoginLock,
}

impl LoginPermit<'_> {
    /// Removes the login from the store.
    pub(super) async fn remove(self, key: &LoginKey) -> Result<()> {
        self.store.remove(key, &self.lock).await
    }
}

impl ServerLogin {
    /// Renews the login in a task of its own, so that a caller that gives up loses no token.
    pub(super) async fn renewed(
        &self,
        used: Option<Arc<StoredLogin>>,
        cause: Cause,
    ) -> Result<Arc<StoredLogin>> {
        let inner = self.0.clone();
        let task = tasks::spawn(TaskOwner::Process, async move { inner.renew(used, cause).await });
        task.await.unwrap_or_else(|_| Err(OAuthFault::unavailable("the renewal of the login has failed")))
    }

    /// Renews a login that is still good. All calls wait for one renewal, and for a short time only.
    pub(super) async fn renewed_early(&self, used: Arc<StoredLogin>) -> Arc<StoredLogin> {
        let early = &self.0.early;
        let now = Instant::now();
        let is_first = early.send_if_modified(|since| since.replace(since.unwrap_or(now)).is_none());
        let since = early.borrow().unwrap_or(now);
        if is_first {
            let (login, used) = (self.clone(), used.clone());
            tasks::spawn(TaskOwner::Process, async move {
                if let Err(fault) = login.renewed(Some(used), Cause::Early).await {
                    tracing::debug!("the login was not renewed early: {fault}");
                }
                login.0.early.send_replace(None);
            });
        }
        let mut ended = early.subscribe();
        // The sender lives as long as the login.
        let _ = timeout_at(since + EARLY_PATIENCE, ended.wait_for(Option::is_none)).await;
        self.0.current.read_locked().login.clone().unwrap_or(used)
    }
}

impl Inner {
    /// Waits for the right to change the login.
    pub(in crate::oauth) async fn turn(&self) -> Result<LoginPermit<'_>> {
        let store = self.options.store.as_ref();
        let store = store.ok_or_else(|| OAuthFault::unusable("there is no folder to store the login in"))?;
        let renewal = self.renewal.lock().await;
        let lock = store.lock(&self.key).await?;
        Ok(LoginPermit { renewal, store, lock })
    }

    /// A login that is not the one that was `used`, which is due or was refused.
    async fn renew(&self, used: Option<Arc<StoredLogin>>, cause: Cause) -> Result<Arc<StoredLogin>> {
        let is_news = |login: &StoredLogin| {
            used.as_ref().is_none_or(|used| !login.has_access_of(used)) && !login.is_due(now())
        };
        let mut renewal = self.renewal.lock().await;
        if let Some(current) = self.current.read_locked().login.clone().filter(|current| is_news(current)) {
            return Ok(current);
        }
        if cause == Cause::Early && renewal.not_before.is_some_and(|until| Instant::now() < until) {
            return Err(OAuthFault::unavailable("the last renewal has just failed"));
        }
        let missing = || OAuthFault::LoginRequired("there is no login yet".to_owned());
        let store = self.options.store.as_ref().ok_or_else(missing)?;
        if !self.settings.grant.is_unattended() && self.stored().await?.is_none() {
            return Err(missing());
        }
        let renewed = match store.lock(&self.key).await {
            Ok(lock) => self.renew_under_lock(&mut renewal, store, &lock, is_news).await,
            Err(fault) => Err(fault),
        };
        renewal.not_before = renewed.is_err().then(|| Instant::now() + RENEWAL_PAUSE);
        renewed
    }

    async fn renew_under_lock(
        &self,
        renewal: &mut Renewal,
        store: &TokenStore,
        lock: &LoginLock,
        is_news: impl Fn(&StoredLogin) -> bool,
    ) -> Result<Arc<StoredLogin>> {
        // Another process may have renewed it while this one waited, or a person has logged in or out.
        let mut stored = self.stored().await?;
        if let Some(unsaved) = renewal.unsaved.take().filter(|unsaved| unsaved.may_replace(stored.as_ref())) {
            let UnsavedLogin { login, replaced } = unsaved;
            let saved = self.save(renewal, store, login, replaced, lock).await?;
            if is_news(&saved) && now().saturating_sub(saved.obtained_at) <= UNSAVED_GOOD {
                return Ok(saved);
            }
            stored = Some((*saved).clone());
        }
        if let Some(stored) = stored.clone().filter(&is_news) {
            return Ok(self.use_login(stored));
        }
        if self.settings.grant.is_unattended() {
            let change = LoginChange::begin()?;
            let login = self.unattended(&change).await?;
            let replaced = stored.map(|stored| stored.access);
            return self.save(renewal, store, login, replaced, lock).await;
        }
        match stored {
            Some(stored) => self.refresh(renewal, store, stored, lock).await,
            None => Err(OAuthFault::LoginRequired("there is no login any more".to_owned())),
        }
    }

    /// Exchanges the refresh token for new tokens.
    async fn refresh(
        &self,
        renewal: &mut Renewal,
        store: &TokenStore,
        stored: StoredLogin,
        lock: &LoginLock,
    ) -> Result<Arc<StoredLogin>> {
        let mut stored = self.adopted(stored);
        loop {
            let Some(refresh) = &stored.refresh else {
                return Err(OAuthFault::LoginRequired("the login has ended".to_owned()));
            };
            if renewal.refused.as_ref().is_some_and(|refused| refused.expose() == refresh.expose()) {
                return Err(OAuthFault::LoginRequired("the login has ended or was revoked".to_owned()));
            }
            let change = LoginChange::begin()?;
            let why = match self.refreshed(&change, &stored, refresh).await {
                Ok(tokens) => {
                    let (login, replaced) = (with_tokens(&stored, tokens), Some(stored.access.clone()));
                    return self.save(renewal, store, login, replaced, lock).await;
                }
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

    async fn refreshed(
        &self,
        change: &LoginChange,
        stored: &StoredLogin,
        refresh: &Credential,
    ) -> Result<Tokens, TokenFault> {
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.expose()),
            ("resource", stored.resource.as_str()),
        ];
        let http = self.named_http(stored.named_by);
        TokenEndpoint::of_login(&http, stored, &self.secrets).tokens(change, &fields).await
    }

    /// Stores new tokens in the place of those that were `replaced`, and uses them from then on.
    async fn save(
        &self,
        renewal: &mut Renewal,
        store: &TokenStore,
        login: StoredLogin,
        replaced: Option<Credential>,
        lock: &LoginLock,
    ) -> Result<Arc<StoredLogin>> {
        match store.write(&self.key, &login, lock).await {
            Ok(()) => Ok(self.use_login(login)),
            Err(fault) => {
                // What is too large never fits.
                let may_fit = matches!(fault, OAuthFault::Unavailable(_));
                renewal.unsaved = may_fit.then_some(UnsavedLogin { login, replaced });
                Err(fault)
            }
        }
    }

    /// Stores the tokens of a login by a person.
    pub(in crate::oauth) async fn store_new(
        &self,
        mut turn: LoginPermit<'_>,
        login: StoredLogin,
    ) -> Result<()> {
        turn.store.write(&self.key, &login, &turn.lock).await?;
        *turn.renewal = Renewal::default();
        self.use_login(login);
        Ok(())
    }

    /// Remembers scopes that a call has missed. False if the last login has asked for all of them.
    pub(super) async fn remember_missing(&self, scopes: &Scopes) -> Result<bool> {
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
}
