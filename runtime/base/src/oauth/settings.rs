//! Declares the settings of OAuth logins: those of one server (grant, client, scopes), and those of the whole process,
//! such as where logins are stored.

use super::scopes::Scopes;
use super::server::assertion::SigningKey;
use super::store::TokenStore;
use crate::named_enum;
use crate::secrets::Credential;
use std::path::PathBuf;
use std::sync::Arc;

named_enum! {
    /// How tokens are obtained, with the names of the configuration.
    #[derive(Default)]
    pub enum Grant, ALL {
        /// A person logs in with a browser (authorization code with PKCE).
        #[default]
        Code = "code",
        /// A person logs in on another device (RFC 8628).
        Device = "device",
        /// The client itself has access (RFC 6749, section 4.4).
        ClientCredentials = "client_credentials",
        /// An identity provider of the company vouches for the person (MCP enterprise-managed authorization).
        IdJag = "id_jag",
    }
}

impl Grant {
    /// True where tokens are obtained without asking a person.
    pub const fn is_unattended(self) -> bool {
        matches!(self, Grant::ClientCredentials | Grant::IdJag)
    }
}

/// A client that was registered at an authorization server by hand. May hold secrets, so it implements neither `Debug`
/// nor `Serialize`.
#[derive(Clone)]
pub struct ConfiguredClient {
    /// Its id.
    pub id: String,
    /// Its secret, if it has one.
    pub secret: Option<Credential>,
    /// The key that signs its assertions, if it has one (RFC 7523).
    pub key: Option<SigningKey>,
}

/// The identity provider of a company, for [`Grant::IdJag`].
#[derive(Clone)]
pub struct IdentityProvider {
    /// Its issuer.
    pub issuer: String,
    /// The client of `ptc` there.
    pub client: ConfiguredClient,
    /// The file with the person's ID token, which another program keeps current. It is read for each exchange.
    pub id_token_file: PathBuf,
}

/// Whose login it is, in a process that serves callers with different tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoginIdentity {
    /// The configuration does not say; a person's login is not used then.
    #[default]
    Unsaid,
    /// The operator's, for all callers.
    Shared,
    /// Each caller has its own.
    User,
}

impl LoginIdentity {
    /// Those that a configuration can name.
    pub const NAMES: [(LoginIdentity, &'static str); 2] =
        [(LoginIdentity::Shared, "shared"), (LoginIdentity::User, "user")];
}

/// The login at one server. May hold secrets, so it implements neither `Debug` nor `Serialize`.
#[derive(Clone, Default)]
pub struct OAuthSettings {
    /// The configuration says that the server has a login; otherwise only the server can.
    pub is_explicit: bool,
    /// How tokens are obtained.
    pub grant: Grant,
    /// Whose login it is.
    pub identity: LoginIdentity,
    /// Scopes to ask for, instead of those that the server names.
    pub scopes: Option<Scopes>,
    /// The issuer to use, of those that the resource names.
    pub issuer: Option<String>,
    /// The client; otherwise one is registered.
    pub client: Option<ConfiguredClient>,
    /// The port of the redirect address, where the client is registered with one.
    pub redirect_port: Option<u16>,
    /// Who vouches for the person.
    pub identity_provider: Option<IdentityProvider>,
}

/// What holds for all logins of a process.
#[derive(Clone, Debug, Default)]
pub struct LoginOptions {
    /// Where logins are stored; `None`: there are none.
    pub store: Option<TokenStore>,
    /// The `https` address of a document that describes the client (Client ID Metadata Document). It is the id of the
    /// client at servers that read such documents.
    pub client_metadata_url: Option<String>,
    /// The process serves callers with different tokens. A person's login is then used only where the configuration says
    /// that it is shared: it would act for all of them.
    pub serves_many: bool,
    /// All callers of the process show one token: each may log in for the operator.
    pub callers_log_in: bool,
    /// The caller whose logins these are, by the name of its token; `None`: the operator.
    pub owner: Option<Arc<str>>,
}
