//! The OAuth identity of `ptc` at one authorization server: how it gets a client id (configured, described by a
//! document, or registered), and how it authenticates.

use crate::named_enum;
use crate::oauth::server::assertion::SigningKey;
use crate::oauth::server::http::NamedHttp;
use crate::oauth::server::metadata::AuthorizationServer;
use crate::oauth::settings::ConfiguredClient;
use crate::oauth::{OAuthFault, Result};
use crate::secrets::{Credential, SecretRegistry};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

named_enum! {
    /// How a client authenticates at the token endpoint.
    pub(in crate::oauth) enum ClientMethod, ALL {
        /// Not at all: a public client.
        None = "none",
        /// Id and secret in the Authorization header.
        Basic = "client_secret_basic",
        /// Id and secret in the form.
        Post = "client_secret_post",
        /// An assertion that the client signs.
        PrivateKeyJwt = "private_key_jwt",
    }
}

impl ClientMethod {
    /// The method for a client with a secret that the server supports. Without a list it is Basic (RFC 8414).
    fn with_secret(server: &AuthorizationServer) -> Result<ClientMethod> {
        let Some(supported) = &server.token_endpoint_auth_methods_supported else {
            return Ok(ClientMethod::Basic);
        };
        let known = [ClientMethod::Basic, ClientMethod::Post];
        // The server's order is its preference.
        let named = |name: &String| known.into_iter().find(|method| method.name() == name);
        supported.iter().find_map(named).ok_or_else(|| {
            OAuthFault::unusable(format!(
                "{} takes no client secret: {}",
                server.issuer,
                supported.join(", ")
            ))
        })
    }
}

named_enum! {
    /// Where a client comes from.
    pub(in crate::oauth) enum ClientOrigin, ALL {
        /// The configuration.
        Configured = "configured",
        /// A document at the address that is its id.
        Document = "document",
        /// Registered by `ptc` (RFC 7591).
        Registered = "registered",
    }
}

/// A client at one issuer. It is never used at another one.
#[derive(Clone)]
pub(in crate::oauth) struct Client {
    pub(in crate::oauth) id: String,
    pub(in crate::oauth) secret: Option<Credential>,
    /// Signs its assertions; only a configured client has one.
    pub(in crate::oauth) key: Option<SigningKey>,
    pub(in crate::oauth) method: ClientMethod,
    pub(in crate::oauth) origin: ClientOrigin,
    /// The redirect address that it was registered with.
    pub(in crate::oauth) redirect_uri: Option<String>,
}

impl Client {
    /// What authenticates the client in a request to this issuer: fields of the form, and a header.
    pub(in crate::oauth) fn authenticate(
        &self,
        issuer: &str,
        secrets: &SecretRegistry,
    ) -> Result<Authentication> {
        let (mut fields, mut header) = (vec![("client_id", Credential::composed(self.id.as_str()))], None);
        match (self.method, &self.secret, &self.key) {
            (ClientMethod::Basic, Some(secret), _) => {
                // RFC 6749, section 2.3.1: both are encoded as in a form first.
                let encoded =
                    |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
                let pair = STANDARD.encode(format!("{}:{}", encoded(&self.id), encoded(secret.expose())));
                drop(Credential::token(pair.as_str(), secrets));
                // The SDKs of MCP look for the id in the form, too.
                header = Some(Credential::composed(format!("Basic {pair}")));
            }
            (ClientMethod::Post, Some(secret), _) => fields.push(("client_secret", secret.clone())),
            (ClientMethod::PrivateKeyJwt, _, Some(key)) => {
                let assertion = key.assertion(&self.id, issuer, secrets)?;
                let kind = ("client_assertion_type", Credential::composed(ASSERTION));
                fields.extend([kind, ("client_assertion", assertion)]);
            }
            (
                ClientMethod::None | ClientMethod::Basic | ClientMethod::Post | ClientMethod::PrivateKeyJwt,
                ..,
            ) => {}
        }
        Ok(Authentication { fields, header })
    }

    /// A client of the configuration.
    pub(in crate::oauth) fn configured(
        client: Option<&ConfiguredClient>,
        server: &AuthorizationServer,
    ) -> Result<Option<Client>> {
        let Some(client) = client else { return Ok(None) };
        let method = match (&client.key, &client.secret) {
            (Some(_), _) => ClientMethod::PrivateKeyJwt,
            (None, Some(_)) => ClientMethod::with_secret(server)?,
            (None, None) => ClientMethod::None,
        };
        let (secret, key) = (client.secret.clone(), client.key.clone());
        Ok(Some(Client { secret, key, method, ..Client::public(&client.id, ClientOrigin::Configured) }))
    }

    /// The client that a document at this address describes.
    pub(in crate::oauth) fn document(address: &str) -> Client {
        Client::public(address, ClientOrigin::Document)
    }

    /// A client that authenticates by nothing.
    fn public(id: &str, origin: ClientOrigin) -> Client {
        let (secret, key, method) = (None, None, ClientMethod::None);
        Client { id: id.to_owned(), secret, key, method, origin, redirect_uri: None }
    }
}

/// What authenticates a client. Holds secrets, so it implements neither `Debug` nor `Serialize`.
pub(in crate::oauth) struct Authentication {
    pub(in crate::oauth) fields: Vec<(&'static str, Credential)>,
    pub(in crate::oauth) header: Option<Credential>,
}

/// The type of an assertion (RFC 7523, section 2.2).
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The answer of a registration endpoint (RFC 7591, section 3.2.1).
#[derive(Deserialize)]
struct Registration {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

/// Registers a client for this redirect address, or for logins on another device (RFC 7591).
pub(in crate::oauth) async fn register(
    http: &NamedHttp,
    server: &AuthorizationServer,
    redirect_uri: Option<&str>,
    scope: &str,
    secrets: &SecretRegistry,
) -> Result<Client> {
    let Some(endpoint) = &server.registration_endpoint else {
        return Err(OAuthFault::unusable(format!(
            "{} registers no clients: register ptc there by hand, and write its id into the entry: \
            \"auth\": [{{\"scheme\": \"oauth\", \"client\": {{\"id\": \"…\"}}}}]",
            server.issuer
        )));
    };
    let address = http.address(endpoint, "the registration endpoint")?;
    // A program on a person's machine keeps no secret of its own; a server without public clients gives it one.
    let supported = server.token_endpoint_auth_methods_supported.as_deref().unwrap_or_default();
    let is_public = supported.is_empty() || supported.iter().any(|name| name == ClientMethod::None.name());
    let method = if is_public { ClientMethod::None } else { ClientMethod::with_secret(server)? };
    let mut wanted = json!({
        "client_name": "ptc",
        "application_type": "native",
        "token_endpoint_auth_method": method.name(),
    });
    match redirect_uri {
        Some(address) => {
            wanted["redirect_uris"] = json!([address]);
            wanted["grant_types"] = json!(["authorization_code", "refresh_token"]);
            wanted["response_types"] = json!(["code"]);
        }
        None => {
            wanted["grant_types"] = json!(["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"]);
            wanted["response_types"] = json!([]);
            wanted["redirect_uris"] = json!([]);
        }
    }
    if !scope.is_empty() {
        wanted["scope"] = scope.into();
    }
    let document = http.post_json(&address, &wanted).await?;
    if !document.status.is_success() {
        let said = described(&document.json::<Value>().unwrap_or_default());
        let text = format!("{} does not register ptc: http {}{said}", server.issuer, document.status);
        return Err(match document.status.is_server_error() {
            true => OAuthFault::unavailable(text),
            false => OAuthFault::unusable(text),
        });
    }
    let Some(given) = document.json::<Registration>() else {
        return Err(OAuthFault::unusable(format!(
            "{} answers a registration without a client_id",
            server.issuer
        )));
    };
    let secret = given.client_secret.filter(|secret| !secret.is_empty());
    let named = given.token_endpoint_auth_method.as_deref().and_then(ClientMethod::parse);
    let method = match (&secret, named) {
        (None, _) => ClientMethod::None,
        (Some(_), Some(named)) => named,
        // A server that gives a public client a secret may not want to see it.
        (Some(_), None) if is_public => ClientMethod::with_secret(server).unwrap_or(ClientMethod::None),
        (Some(_), None) => method,
    };
    Ok(Client {
        id: given.client_id,
        secret: secret.map(|secret| Credential::token(secret, secrets)),
        key: None,
        method,
        origin: ClientOrigin::Registered,
        redirect_uri: redirect_uri.map(str::to_owned),
    })
}

/// `: error (error_description)` of an error answer (RFC 6749, section 5.2), or nothing.
pub(in crate::oauth) fn described(answer: &Value) -> String {
    let text = |key: &str| answer[key].as_str().map(|text| crate::net::excerpt(text, SHOWN));
    match (text("error"), text("error_description")) {
        (Some(error), Some(description)) => format!(": {error} ({description})"),
        (Some(error), None) => format!(": {error}"),
        (None, _) => String::new(),
    }
}

/// Characters of an error that are shown.
const SHOWN: usize = 200;
