//! A login that a server waits for, as faults and the supervisor carry it.

use super::{ClientFeatures, ServedClient};
use crate::oauth::ServerLogin;
use std::fmt;
use std::sync::Arc;

/// A server answers only after a login.
#[derive(Clone)]
pub struct LoginNeed {
    server: Arc<str>,
    why: String,
    /// No request is answered without it; otherwise one request needs more scopes.
    is_whole: bool,
    /// The client of this process, which may be asked to log in.
    client: ClientFeatures,
    login: ServerLogin,
}

impl LoginNeed {
    pub(super) fn new(
        server: Arc<str>,
        why: String,
        is_whole: bool,
        client: ClientFeatures,
        login: ServerLogin,
    ) -> LoginNeed {
        LoginNeed { server, why, is_whole, client, login }
    }

    /// True where the client of a call may be asked to log in. In a process that serves many clients one of them would log
    /// in for all.
    pub fn may_ask(&self) -> bool {
        !self.client.are_callers()
    }

    /// The client of this process, if it can lead its user to an address.
    pub fn client(&self) -> Option<Arc<dyn ServedClient>> {
        self.client.url_client()
    }

    /// The configured name of the server.
    pub fn server(&self) -> &Arc<str> {
        &self.server
    }

    /// The login.
    pub fn login(&self) -> &ServerLogin {
        &self.login
    }

    /// True when no request is answered without the login.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }
}

impl fmt::Display for LoginNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} needs a login: ptc login {} ({})", self.server, self.server, self.why)
    }
}

impl fmt::Debug for LoginNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoginNeed({self})")
    }
}

impl PartialEq for LoginNeed {
    fn eq(&self, other: &LoginNeed) -> bool {
        (&self.server, &self.why, self.is_whole) == (&other.server, &other.why, other.is_whole)
    }
}

impl Eq for LoginNeed {}
