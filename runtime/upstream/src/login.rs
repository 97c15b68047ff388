//! Describes the login that a server requires before it answers a request: the reason, missing OAuth scopes, and
//! whether the client behind the request may be asked to log in. Faults and the supervisor carry it.

use super::ClientFeatures;
use ptc_base::oauth::{Scopes, ServerLogin};
use std::fmt;
use std::sync::Arc;

/// A server answers only after a login.
#[derive(Clone)]
pub struct LoginNeed {
    server: Arc<str>,
    why: String,
    /// The scopes that one request misses; `None`: no request is answered without a login.
    scopes: Option<Scopes>,
    /// The client of this process, which may be asked to log in.
    client: ClientFeatures,
    login: ServerLogin,
}

impl LoginNeed {
    pub(super) fn new(
        server: Arc<str>,
        why: String,
        scopes: Option<Scopes>,
        client: ClientFeatures,
        login: ServerLogin,
    ) -> LoginNeed {
        LoginNeed { server, why, scopes, client, login }
    }

    /// True where the client of a call may be asked to log in: the login is its own, or that of the only owner.
    pub fn may_ask(&self) -> bool {
        !self.client.are_callers() || self.login.may_be_made_by_callers()
    }

    /// The clients of this process.
    pub fn features(&self) -> &ClientFeatures {
        &self.client
    }

    /// The configured name of the server.
    pub fn server(&self) -> &Arc<str> {
        &self.server
    }

    /// The login.
    pub fn login(&self) -> &ServerLogin {
        &self.login
    }

    /// The scopes that one request misses; `None`: no request is answered without a login.
    pub fn scopes(&self) -> Option<&Scopes> {
        self.scopes.as_ref()
    }
}

impl fmt::Display for LoginNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoginNeed { server, why, .. } = self;
        match self.login.owner() {
            None => write!(f, "{server} needs a login: ptc login {server} ({why})"),
            Some(owner) => write!(
                f,
                "{server} needs a login of {owner}, by a client that can open addresses, or: ptc login {server} \
                 --owner {owner} ({why})"
            ),
        }
    }
}

impl fmt::Debug for LoginNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoginNeed({self})")
    }
}

impl PartialEq for LoginNeed {
    fn eq(&self, other: &LoginNeed) -> bool {
        (&self.server, &self.why, &self.scopes) == (&other.server, &other.why, &other.scopes)
    }
}

impl Eq for LoginNeed {}
