//! What is configured about the login at one server.

use super::scopes::Scopes;
use crate::secrets::Credential;

/// How tokens are obtained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// A person logs in with a browser (authorization code with PKCE).
    #[default]
    Code,
}

impl Grant {
    /// All, with their names in the configuration.
    pub const NAMES: [(Grant, &'static str); 1] = [(Grant::Code, "code")];
}

/// A client that was registered at the authorization server by hand.
#[derive(Clone)]
pub struct ConfiguredClient {
    /// Its id.
    pub id: String,
    /// Its secret, if it has one.
    pub secret: Option<Credential>,
}

/// The login at one server. May hold secrets, so it implements neither `Debug` nor `Serialize`.
#[derive(Clone, Default)]
pub struct OAuthSettings {
    /// The configuration says that the server has a login; otherwise only the server can.
    pub is_explicit: bool,
    /// How tokens are obtained.
    pub grant: Grant,
    /// Scopes to ask for, instead of those that the server names.
    pub scopes: Option<Scopes>,
    /// The issuer to use, of those that the resource names.
    pub issuer: Option<String>,
    /// The client; otherwise one is registered.
    pub client: Option<ConfiguredClient>,
    /// The port of the redirect address, where the client is registered with one.
    pub redirect_port: Option<u16>,
}
