//! Writes what a client needs to get a valid token: the OAuth metadata of this resource (RFC 9728), and
//! `WWW-Authenticate` challenges (RFC 6750).

use super::TokenRefusal;
use super::settings::OAuthSettings;
use ptc_base::jwt::TokenFault;
use ptc_base::oauth::Scopes;
use serde_json::{Value, json};

/// The path of the metadata, which the path of the resource follows.
pub(in crate::server::http) const METADATA: &str = "/.well-known/oauth-protected-resource";

/// The texts for clients without a valid token.
pub(in crate::server::http) struct Challenges {
    resource: String,
    issuers: Vec<String>,
    scopes: Scopes,
    metadata: String,
    path: String,
}

impl Challenges {
    pub(super) fn new(settings: &OAuthSettings) -> Challenges {
        let url = &settings.resource_url;
        let path = url.path().trim_end_matches('/').to_owned();
        Challenges {
            resource: settings.resource.clone(),
            issuers: settings.issuers().map(str::to_owned).collect(),
            scopes: settings.scopes(),
            metadata: format!("{}{METADATA}{path}", url.origin().ascii_serialization()),
            path,
        }
    }

    /// The document for a request to this path below [`METADATA`]: for the resource, for the path `own` of this server,
    /// and at the root.
    pub(in crate::server::http) fn document(&self, below: &str, own: &str) -> Option<Value> {
        let below = below.trim_end_matches('/');
        (below.is_empty() || below == self.path || below == own).then(|| {
            json!({
                "resource": self.resource,
                "authorization_servers": self.issuers,
                "scopes_supported": self.scopes.iter().collect::<Vec<_>>(),
                "bearer_methods_supported": ["header"],
                "resource_name": "ptc",
            })
        })
    }

    /// The challenge of a request without a token.
    pub(in crate::server::http) fn no_token(&self) -> String {
        self.written(None, &self.scopes)
    }

    /// The challenge of a token that is of no issuer.
    pub(in crate::server::http) fn wrong_token(&self) -> String {
        self.written(Some(("invalid_token", "the token is not known")), &self.scopes)
    }

    /// The challenge of a refused token.
    pub(in crate::server::http) fn refused(&self, refusal: &TokenRefusal) -> String {
        match refusal {
            TokenRefusal::Invalid(fault) => self.invalid(*fault),
            TokenRefusal::Unavailable => self.no_token(),
            TokenRefusal::Insufficient(missing) => {
                self.written(Some(("insufficient_scope", "the token allows nothing here")), missing)
            }
        }
    }

    fn invalid(&self, fault: TokenFault) -> String {
        self.written(Some(("invalid_token", fault.words())), &self.scopes)
    }

    /// No value has a quote or a backslash: scopes and words are checked, addresses have them encoded.
    fn written(&self, error: Option<(&str, &str)>, scopes: &Scopes) -> String {
        let error = error.map(|(error, why)| format!("error=\"{error}\", error_description=\"{why}\", "));
        let scope = if scopes.is_empty() { String::new() } else { format!(", scope=\"{scopes}\"") };
        format!("Bearer {}resource_metadata=\"{}\"{scope}", error.unwrap_or_default(), self.metadata)
    }
}
