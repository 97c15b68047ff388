//! Deserializes the metadata documents of OAuth resources and authorization servers (RFC 9728, RFC 8414, OpenID
//! Connect Discovery). Members that are not needed are not read.

use crate::oauth::{OAuthFault, Result};
use serde::{Deserialize, Deserializer};

/// Metadata of a protected resource (RFC 9728, section 2).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ProtectedResource {
    /// The resource that the document is about.
    pub resource: String,
    /// Issuers of its authorization servers.
    #[serde(deserialize_with = "or_default")]
    pub authorization_servers: Vec<String>,
    /// Scopes that it knows.
    #[serde(deserialize_with = "or_default")]
    pub scopes_supported: Vec<String>,
}

/// Metadata of an authorization server (RFC 8414, section 2).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct AuthorizationServer {
    /// Its identifier, exactly as it stands in the document.
    pub issuer: String,
    /// Where people log in.
    pub authorization_endpoint: Option<String>,
    /// Where tokens come from.
    pub token_endpoint: Option<String>,
    /// Where clients register (RFC 7591).
    pub registration_endpoint: Option<String>,
    /// Where tokens are revoked (RFC 7009).
    pub revocation_endpoint: Option<String>,
    /// Where the login on another device begins (RFC 8628).
    pub device_authorization_endpoint: Option<String>,
    /// Its keys.
    pub jwks_uri: Option<String>,
    /// Methods of PKCE (RFC 7636). Absent means that there is no PKCE.
    #[serde(deserialize_with = "or_default")]
    pub code_challenge_methods_supported: Vec<String>,
    /// Scopes that it knows.
    #[serde(deserialize_with = "or_default")]
    pub scopes_supported: Vec<String>,
    /// How clients may authenticate at the token endpoint.
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// It reads the metadata of a client from an address that is the id of the client.
    #[serde(deserialize_with = "or_default")]
    pub client_id_metadata_document_supported: bool,
    /// It adds its issuer to the answer of an authorization request (RFC 9207).
    #[serde(deserialize_with = "or_default")]
    pub authorization_response_iss_parameter_supported: bool,
}

impl AuthorizationServer {
    /// Where tokens come from.
    pub(in crate::oauth) fn token_endpoint(&self) -> Result<&str> {
        let endpoint = self.token_endpoint.as_deref();
        endpoint.ok_or_else(|| OAuthFault::unusable(format!("{} has no token endpoint", self.issuer)))
    }
}

/// Reads `null` like a member that is absent.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}
