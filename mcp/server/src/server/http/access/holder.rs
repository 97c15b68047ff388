//! Represents the clients that share one access token: their identity, what the token allows and for how long, and its
//! revocation, which ends their work.

use super::rate::CallRate;
use super::tokens::TokenGrant;
use crate::server::gate::{Gate, Tenant, TenantLimits};
use crate::server::http::fairness::RecentRequests;
use crate::server::http::nodes::Nodes;
use crate::server::http::settings::HttpLimits;
use crate::tools::CallOwner;
use ptc_calls::asker::ClientIdentity;
use ptc_calls::tools::ServerNames;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// What the holders of several tokens share: their place at the gate, and how much they have used.
#[derive(Debug)]
pub(super) struct SharedTenant {
    limits: TenantLimits,
    tenant: OnceLock<Arc<Tenant>>,
    recent: RecentRequests,
    /// Calls a minute.
    rate: Option<CallRate>,
}

impl SharedTenant {
    /// A tenant with the limits of a grant, or the general ones.
    pub(super) fn new(grant: Option<&TokenGrant>, limits: &HttpLimits) -> SharedTenant {
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let own = grant.and_then(|grant| grant.max_concurrent);
        let jobs = own.map_or(limits.jobs_per_owner, |own| u64::from(own.get()));
        SharedTenant {
            limits: TenantLimits { jobs: whole(jobs), queued: whole(limits.queued_per_owner) },
            tenant: OnceLock::new(),
            recent: RecentRequests::default(),
            rate: grant.and_then(|grant| grant.evals_per_minute).map(CallRate::new),
        }
    }
}

/// The clients that hold one token, or all clients of a server without tokens.
#[derive(Debug)]
pub(in crate::server::http) struct TokenHolder {
    /// Owner of their runs and sessions.
    pub(in crate::server::http) owner: CallOwner,
    /// Name of the token.
    pub(in crate::server::http) name: String,
    pub(super) grant: Option<TokenGrant>,
    shared: Arc<SharedTenant>,
    /// Scopes of a token of an issuer; `None` for a token of this server.
    scopes: Option<Arc<[String]>>,
    /// Set when work begun with the token has to end. Holders of the same token share it across edits of the
    /// file.
    pub(super) revoked: Arc<watch::Sender<bool>>,
}

impl TokenHolder {
    pub(super) fn new(grant: Option<TokenGrant>, limits: &HttpLimits) -> TokenHolder {
        TokenHolder {
            owner: grant.as_ref().map_or_else(CallOwner::default, |grant| CallOwner::of_token(&grant.hash)),
            name: grant.as_ref().map_or_else(String::new, |grant| grant.name.clone()),
            shared: Arc::new(SharedTenant::new(grant.as_ref(), limits)),
            scopes: None,
            revoked: Arc::new(watch::Sender::new(false)),
            grant,
        }
    }

    /// The holder of a token that an issuer has signed. Tokens of the same owner share a tenant.
    pub(super) fn of_issuer(
        grant: TokenGrant,
        owner: CallOwner,
        scopes: Vec<String>,
        shared: Arc<SharedTenant>,
    ) -> TokenHolder {
        TokenHolder {
            owner,
            name: grant.name.clone(),
            shared,
            scopes: Some(scopes.into()),
            revoked: Arc::new(watch::Sender::new(false)),
            grant: Some(grant),
        }
    }

    /// True for a token that an issuer has signed.
    pub(in crate::server::http) fn is_of_issuer(&self) -> bool {
        self.scopes.is_some()
    }

    /// Waits for the end of a token that an issuer has signed. Other tokens have an end that the server watches.
    pub(in crate::server::http) async fn issued_token_ends(&self) {
        match self.time_left().filter(|_| self.is_of_issuer()) {
            Some(left) => tokio::select! {
                () = tokio::time::sleep(left) => {}
                () = self.revoked() => {}
            },
            None => std::future::pending().await,
        }
    }

    /// Requests of the same clients so far.
    pub(in crate::server::http) fn recent(&self) -> &RecentRequests {
        &self.shared.recent
    }

    /// True if the token may begin so many calls a minute and no more.
    pub(in crate::server::http) fn has_rate(&self) -> bool {
        self.shared.rate.is_some()
    }

    /// Takes one of the calls that the token may begin a minute, at all nodes together.
    ///
    /// # Errors
    /// The limit is reached: it, and the time until the next call.
    pub(in crate::server::http) async fn take_call(
        &self,
        nodes: Option<&Nodes>,
    ) -> Result<(), (u32, Duration)> {
        match &self.shared.rate {
            Some(rate) => rate.take(nodes, self.owner).await,
            None => Ok(()),
        }
    }

    /// Their name for rules of the policy.
    pub(in crate::server::http) fn identity(&self) -> ClientIdentity {
        let token = self.grant.as_ref().map(|grant| grant.name.as_str().into());
        ClientIdentity { token, scopes: self.scopes.clone().unwrap_or_default() }
    }

    /// The servers that the token allows; `None`: all.
    pub(in crate::server::http) fn servers(&self) -> Option<&ServerNames> {
        self.grant.as_ref()?.servers.as_ref()
    }

    pub(in crate::server::http) fn is_valid(&self) -> bool {
        self.time_left().is_none_or(|left| !left.is_zero())
    }

    /// How long the token is still valid; `None`: for ever.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let expires = u64::try_from(self.grant.as_ref()?.expires?.as_second()).unwrap_or_default();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Some(Duration::from_secs(expires).saturating_sub(now))
    }

    /// True when `other` may see everything that was begun with this token.
    pub(super) fn is_covered_by(&self, other: &TokenHolder) -> bool {
        let holds_all = match (self.servers(), other.servers()) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(old), Some(new)) => old.is_subset(new),
        };
        self.owner == other.owner && holds_all
    }

    /// Ends everything that was begun with the token.
    pub(in crate::server::http) fn revoke(&self) {
        self.revoked.send_replace(true);
    }

    /// True after [`TokenHolder::revoke`].
    pub(in crate::server::http) fn is_revoked(&self) -> bool {
        *self.revoked.borrow()
    }

    /// Waits for [`TokenHolder::revoke`].
    pub(in crate::server::http) async fn revoked(&self) {
        // We hold the sender, so this cannot fail.
        let _ = self.revoked.subscribe().wait_for(|revoked| *revoked).await;
    }

    /// Their tenant at the gate.
    pub(in crate::server::http) fn tenant(&self, gate: &Arc<Gate>) -> Arc<Tenant> {
        self.shared.tenant.get_or_init(|| gate.tenant(self.shared.limits)).clone()
    }
}
