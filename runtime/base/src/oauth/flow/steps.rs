//! Performs the first steps of every OAuth login at an upstream server: finds its authorization server, then chooses
//! the scopes to request and the OAuth client to use.

use crate::net::{AddressClass, Headers, Method};
use crate::oauth::login::Inner;
use crate::oauth::scopes::Scopes;
use crate::oauth::server::client::{self, Client, ClientOrigin};
use crate::oauth::server::discovery::{self, Discovered};
use crate::oauth::server::http::NamedHttp;
use crate::oauth::settings::Grant;
use crate::oauth::{OAuthFault, Result};
use crate::sync::Locked;
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;

/// How long the server may take to say what it asks for.
const PATIENCE: Duration = Duration::from_secs(20);

impl Inner {
    /// Asks the server what it wants, and finds its authorization server.
    pub(in crate::oauth) async fn ask_and_discover(&self) -> Result<(NamedHttp, Discovered)> {
        self.ask().await?;
        let http = self.named_http(self.seen().class.unwrap_or(AddressClass::Public));
        let discovered = self.discover(&http).await?;
        Ok((http, discovered))
    }

    /// Asks the server without a token, so that it says what it wants.
    async fn ask(&self) -> Result<()> {
        let mut headers = Headers::default();
        for (name, value) in
            [("content-type", "application/json"), ("accept", "application/json, text/event-stream")]
        {
            // Constants.
            let _ = headers.plain(name, value);
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} }).to_string();
        let sent = self.http.send(Method::POST, &self.server, &headers, Some(body.into()));
        let sent = timeout(PATIENCE, sent).await;
        let sent = sent.map_err(|_| OAuthFault::unavailable("the server does not answer"))?;
        let response = sent.map_err(|error| OAuthFault::unavailable(error.to_string()))?;
        self.note(&response);
        Ok(())
    }

    async fn discover(&self, http: &NamedHttp) -> Result<Discovered> {
        let seen = self.seen();
        let found = discovery::resource(http, &self.server, seen.metadata.as_deref()).await?;
        let confirmed = self.confirmed.locked().clone();
        let wanted = self.settings.issuer.as_deref().or(confirmed.as_deref());
        let discovered = discovery::authorization_server(http, &self.server, found, wanted).await?;
        self.check_client(&discovered.server.issuer, wanted.is_some()).await?;
        http.check_endpoints(&discovered.server).await?;
        Ok(discovered)
    }

    /// A configured client belongs to one issuer. The server names issuers, so it must not decide where a secret goes.
    async fn check_client(&self, issuer: &str, is_wanted: bool) -> Result<()> {
        let Some(client) = &self.settings.client else { return Ok(()) };
        match self.stored().await? {
            Some(stored) if stored.issuer == issuer => Ok(()),
            Some(stored) => Err(OAuthFault::unusable(format!(
                "the server has another authorization server now, {issuer}; the configured client belongs to {}",
                stored.issuer
            ))),
            None if is_wanted || client.secret.is_none() && client.key.is_none() => Ok(()),
            None => Err(OAuthFault::unusable(format!(
                "the server names the authorization server {issuer}, and nothing says that the configured client is \
                 registered there: if it is, write \"issuer\": \"{issuer}\" next to it, or log in with --issuer {issuer}"
            ))),
        }
    }

    /// The scopes to ask for: those that a person names, that are configured, that the challenge names, or all of the
    /// resource. What was granted before and what a call has missed is asked for again.
    pub(in crate::oauth) async fn scopes(
        &self,
        discovered: &Discovered,
        named: Option<&Scopes>,
    ) -> Result<Scopes> {
        let supported: Scopes = discovered.scopes_supported.iter().cloned().collect();
        let seen = self.seen();
        let mut scopes = match (named, &self.settings.scopes, &seen.scopes) {
            (Some(scopes), ..) | (None, Some(scopes), _) | (None, None, Some(scopes)) => scopes.clone(),
            (None, None, None) => supported,
        };
        if let Some(stored) = self.stored().await?.filter(|stored| stored.issuer == discovered.server.issuer)
        {
            scopes = match stored.missing.is_empty() {
                true => scopes,
                false => stored.requested.union(&scopes).union(&stored.missing),
            };
        }
        let offline = Scopes::parse("offline_access");
        // A machine needs no refresh token, and its client may not be allowed to ask for one.
        let is_person = matches!(self.settings.grant, Grant::Code | Grant::Device);
        let has_offline =
            is_person && discovered.server.scopes_supported.iter().any(|scope| scope == "offline_access");
        Ok(if has_offline && !scopes.is_empty() { scopes.union(&offline) } else { scopes })
    }

    /// The client at this authorization server: the configured one, the one of a document, the one of the last login, or
    /// a new one.
    pub(in crate::oauth) async fn client(
        &self,
        http: &NamedHttp,
        discovered: &Discovered,
        redirect_uri: Option<&str>,
        scopes: &Scopes,
    ) -> Result<Client> {
        let server = &discovered.server;
        if let Some(client) = Client::configured(self.settings.client.as_ref(), server)? {
            return Ok(client);
        }
        if let Some(address) = &self.options.client_metadata_url
            && server.client_id_metadata_document_supported
        {
            return Ok(Client::document(address));
        }
        let stored = self.stored().await?.filter(|stored| stored.issuer == server.issuer);
        let known = stored.map(|stored| stored.client).filter(|client| {
            client.origin == ClientOrigin::Registered && client.redirect_uri.as_deref() == redirect_uri
        });
        match known {
            Some(client) => Ok(client),
            None => client::register(http, server, redirect_uri, &scopes.to_string(), &self.secrets).await,
        }
    }
}
