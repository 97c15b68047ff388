//! Logs a person in through a browser, by the OAuth authorization code flow with PKCE (RFC 6749, RFC 7636, RFC 9207).

use crate::net::Url;
use crate::oauth::account::LoginId;
use crate::oauth::changes::LoginChange;
use crate::oauth::login::{Inner, LoginPermit, ServerLogin};
use crate::oauth::scopes::Scopes;
use crate::oauth::server::client::{self, Client};
use crate::oauth::server::discovery::Discovered;
use crate::oauth::server::http::NamedHttp;
use crate::oauth::server::token::{TokenEndpoint, Tokens};
use crate::oauth::{OAuthFault, Result, random};
use crate::secrets::Credential;
use crate::sync::Locked;
use serde_json::json;

/// Who sees the address of an authorization request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressReader {
    /// A browser alone, which is led there: the state in the address is a secret from now on.
    Browser,
    /// A person, who is shown it: the state is a secret from the answer on.
    Person,
}

/// A login that waits for its person. Holds secrets, so it implements neither `Debug` nor `Serialize`.
pub struct PendingLogin {
    address: Url,
    state: Credential,
    verifier: Credential,
    redirect_uri: String,
    discovered: Discovered,
    client: Client,
    requested: Scopes,
    http: NamedHttp,
}

impl PendingLogin {
    /// Where the person logs in.
    pub fn address(&self) -> &Url {
        &self.address
    }

    /// The issuer that asks for the login.
    pub fn issuer(&self) -> &str {
        &self.discovered.server.issuer
    }

    /// True for the answer to this very request: compared in full, whatever the first letters are.
    pub fn is_answered_by(&self, query: &str) -> bool {
        parameter(query, "state").is_some_and(|state| same(&state, self.state.expose()))
    }
}

/// What a login gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginSummary {
    /// Who issued the tokens.
    pub issuer: String,
    /// The scopes that were granted, or asked for where the server does not say.
    pub scopes: String,
    /// Seconds to the end of the access token, if the server says so.
    pub expires_in: Option<u64>,
    /// It can be renewed without a person.
    pub is_renewable: bool,
}

impl ServerLogin {
    /// Takes this issuer, of those that the server names, where the configuration says none. A configured client is used
    /// there.
    pub fn confirm_issuer(&self, issuer: &str) {
        *self.inner().confirmed.locked() = Some(issuer.to_owned());
    }

    /// Finds the authorization server and makes the address at which a person logs in. The answer will be sent to
    /// `redirect_uri`.
    ///
    /// # Errors
    /// The server has no login, or one that cannot be used.
    pub async fn begin(
        &self,
        redirect_uri: &str,
        scopes: Option<&Scopes>,
        reader: AddressReader,
    ) -> Result<PendingLogin> {
        let inner = self.inner();
        let (http, discovered) = inner.ask_and_discover().await?;
        let server = &discovered.server;
        if !server.code_challenge_methods_supported.iter().any(|method| method == "S256") {
            return Err(OAuthFault::unusable(format!(
                "{} does not say that it supports PKCE with S256, without which codes can be stolen",
                server.issuer
            )));
        }
        let requested = inner.scopes(&discovered, scopes).await?;
        let client = inner.client(&http, &discovered, Some(redirect_uri), &requested).await?;
        let endpoint = server.authorization_endpoint.as_deref();
        let endpoint = endpoint.ok_or_else(|| OAuthFault::unusable("there is no authorization endpoint"))?;
        let mut address = http.address(endpoint, "the authorization endpoint")?;
        let verifier = random::secret(&inner.secrets)?;
        let state = match reader {
            AddressReader::Browser => random::secret(&inner.secrets)?,
            AddressReader::Person => random::unregistered()?,
        };
        address
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("code_challenge", &random::challenge(&verifier))
            .append_pair("code_challenge_method", "S256")
            .append_pair("state", state.expose())
            .append_pair("resource", &discovered.resource);
        if !requested.is_empty() {
            address.query_pairs_mut().append_pair("scope", &requested.to_string());
        }
        if requested.contains("offline_access") {
            // OpenID Connect Core, section 11: without consent the scope is ignored.
            address.query_pairs_mut().append_pair("prompt", "consent");
        }
        let redirect_uri = redirect_uri.to_owned();
        Ok(PendingLogin { address, state, verifier, redirect_uri, discovered, client, requested, http })
    }

    /// Exchanges the code of the answer, whose query is given, and stores the login.
    ///
    /// # Errors
    /// The answer is not the one to this request, or refuses; or the code is not exchanged.
    pub async fn finish(&self, pending: PendingLogin, query: &str) -> Result<LoginSummary> {
        let inner = self.inner();
        let code = read_answer(&pending, query, inner)?;
        let PendingLogin { verifier, redirect_uri, discovered, client, requested, http, .. } = pending;
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("redirect_uri", redirect_uri.as_str()),
            ("code_verifier", verifier.expose()),
            ("resource", discovered.resource.as_str()),
        ];
        let turn = inner.turn().await?;
        let change = LoginChange::begin()?;
        let endpoint = TokenEndpoint::of_server(&http, &discovered.server, &client, &inner.secrets)?;
        let tokens = endpoint.tokens(&change, &fields).await?;
        inner.store_tokens(turn, &discovered, client, requested, tokens).await
    }
}

impl Inner {
    /// Stores the tokens of a login by a person.
    pub(super) async fn store_tokens(
        &self,
        turn: LoginPermit<'_>,
        discovered: &Discovered,
        client: Client,
        requested: Scopes,
        tokens: Tokens,
    ) -> Result<LoginSummary> {
        let summary = LoginSummary {
            issuer: discovered.server.issuer.clone(),
            scopes: tokens.scopes.as_ref().unwrap_or(&requested).to_string(),
            expires_in: tokens.expires_in,
            is_renewable: tokens.refresh.is_some(),
        };
        let login = self.new_login(discovered, client, requested, tokens, LoginId::random()?);
        self.store_new(turn, login).await?;
        Ok(summary)
    }
}

/// The code of an answer. Nothing of an answer from elsewhere is shown, not even its error (RFC 9207, section 2.4).
fn read_answer(pending: &PendingLogin, query: &str, inner: &Inner) -> Result<Credential> {
    let get = |name: &str| parameter(query, name);
    let unusable = |why: &str| Err(OAuthFault::unusable(why));
    // Registered before anything may show it.
    let code = get("code").map(|code| Credential::token(code, &inner.secrets));
    // A person was shown it, so it was not redacted before.
    drop(Credential::token(pending.state.expose(), &inner.secrets));
    if !pending.is_answered_by(query) {
        return unusable("the answer belongs to another login: its state differs");
    }
    if is_repeated(query, "iss") {
        return unusable("the answer names its authorization server twice");
    }
    let server = &pending.discovered.server;
    match get("iss") {
        Some(issuer) if issuer != server.issuer => {
            return unusable("the answer is from another authorization server than was asked");
        }
        None if server.authorization_response_iss_parameter_supported => {
            return unusable("the answer does not say which authorization server it is from");
        }
        Some(_) | None => {}
    }
    if let Some(error) = get("error") {
        let said = json!({ "error": error, "error_description": get("error_description") });
        return unusable(&format!("the login was refused{}", client::described(&said)));
    }
    code.ok_or_else(|| OAuthFault::unusable("the answer holds no code"))
}

/// True if a parameter stands in a query more than once.
fn is_repeated(query: &str, name: &str) -> bool {
    url::form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name).count() > 1
}

/// A parameter of a query that stands there once.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut all = url::form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name);
    match (all.next(), all.next()) {
        (Some((_, value)), None) => Some(value.into_owned()),
        _ => None,
    }
}

/// Compares two texts in a time that says nothing about where they differ.
fn same(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_stand_twice_are_none() {
        assert_eq!(parameter("a=1&b=x%20y", "b").as_deref(), Some("x y"));
        assert_eq!(parameter("a=1&a=2", "a"), None);
        assert_eq!(parameter("", "a"), None);
        assert!(is_repeated("iss=a&x=1&iss=b", "iss") && !is_repeated("iss=a&x=iss", "iss"));
        assert!(same("abc", "abc") && !same("abc", "abd") && !same("abc", "ab") && !same("", "a"));
    }
}
