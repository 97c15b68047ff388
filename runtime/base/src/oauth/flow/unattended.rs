//! Logs in without a person: as the client itself (client credentials), or through an identity provider that vouches
//! for the person (MCP enterprise-managed authorization).

use crate::oauth::account::LoginId;
use crate::oauth::changes::LoginChange;
use crate::oauth::login::Inner;
use crate::oauth::scopes::Scopes;
use crate::oauth::server::client::Client;
use crate::oauth::server::discovery::{self, Discovered};
use crate::oauth::server::http::NamedHttp;
use crate::oauth::server::token::{TokenEndpoint, Tokens};
use crate::oauth::settings::{Grant, IdentityProvider};
use crate::oauth::store::stored::StoredLogin;
use crate::oauth::{OAuthFault, Result};
use crate::secrets::Credential;
use crate::tasks::{self, TaskOwner};
use crate::{files, net::AddressClass};

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";

impl Inner {
    /// Obtains tokens without a person.
    pub(in crate::oauth) async fn unattended(&self, change: &LoginChange) -> Result<StoredLogin> {
        let (http, discovered) = self.ask_and_discover().await?;
        let server = &discovered.server;
        let client = Client::configured(self.settings.client.as_ref(), server)?;
        let client = client.ok_or_else(|| OAuthFault::unusable("this grant needs a configured client"))?;
        let requested = self.scopes(&discovered, None).await?;
        let (tokens, id) = match self.settings.grant {
            Grant::IdJag => self.id_jag(change, &http, &discovered, &client, &requested).await?,
            Grant::Code | Grant::Device | Grant::ClientCredentials => {
                let scope = requested.to_string();
                let mut fields =
                    vec![("grant_type", "client_credentials"), ("resource", discovered.resource.as_str())];
                fields.extend((!scope.is_empty()).then_some(("scope", scope.as_str())));
                let endpoint = TokenEndpoint::of_server(&http, server, &client, &self.secrets)?;
                (endpoint.tokens(change, &fields).await?, LoginId::client())
            }
        };
        Ok(self.new_login(&discovered, client, requested, tokens, id))
    }

    /// Exchanges the person's ID token for a grant that is good at the authorization server of the resource, and that
    /// for a token.
    async fn id_jag(
        &self,
        change: &LoginChange,
        http: &NamedHttp,
        discovered: &Discovered,
        client: &Client,
        requested: &Scopes,
    ) -> Result<(Tokens, LoginId)> {
        let provider = self.settings.identity_provider.as_ref();
        let provider =
            provider.ok_or_else(|| OAuthFault::unusable("this grant needs an identity provider"))?;
        let id_token = self.id_token(provider).await?;
        let assertion = self.vouched(provider, discovered, requested, &id_token).await?;
        let fields = [
            ("grant_type", JWT_BEARER),
            ("assertion", assertion.expose()),
            ("resource", discovered.resource.as_str()),
        ];
        let endpoint = TokenEndpoint::of_server(http, &discovered.server, client, &self.secrets)?;
        Ok((endpoint.tokens(change, &fields).await?, LoginId::of_id_token(id_token.expose())))
    }

    /// The person's ID token, which something else keeps fresh.
    async fn id_token(&self, provider: &IdentityProvider) -> Result<Credential> {
        let path = provider.id_token_file.clone();
        let read = tasks::blocking(TaskOwner::Process, move |_| {
            files::read_text(&path).map_err(|error| format!("{}: {error}", path.display()))
        });
        let text = read.await.ok_or_else(|| OAuthFault::unavailable("the ID token could not be read"))?;
        let text = text.map_err(OAuthFault::LoginRequired)?;
        Ok(Credential::token(text.trim(), &self.secrets))
    }

    /// The grant of the identity provider (RFC 8693, draft-ietf-oauth-identity-assertion-authz-grant).
    async fn vouched(
        &self,
        provider: &IdentityProvider,
        discovered: &Discovered,
        requested: &Scopes,
        id_token: &Credential,
    ) -> Result<Credential> {
        // The provider is configured, so its address may be anywhere.
        let http = NamedHttp::new(&self.http, &self.server, AddressClass::Loopback);
        let server = discovery::issuer(&http, &provider.issuer).await?;
        let client = Client::configured(Some(&provider.client), &server)?;
        let client = client.ok_or_else(|| OAuthFault::unusable("the identity provider needs a client"))?;
        let scope = requested.to_string();
        let mut fields = vec![
            ("grant_type", EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("audience", discovered.server.issuer.as_str()),
            ("resource", discovered.resource.as_str()),
            ("subject_token", id_token.expose()),
            ("subject_token_type", ID_TOKEN),
        ];
        fields.extend((!scope.is_empty()).then_some(("scope", scope.as_str())));
        let endpoint = TokenEndpoint::of_server(&http, &server, &client, &self.secrets)?;
        let exchanged = endpoint.exchange(&fields).await;
        let (assertion, kind) = exchanged.map_err(|fault| match OAuthFault::from(fault) {
            // The provider's own session has ended, or the person may not use the server.
            OAuthFault::Unusable(words) => OAuthFault::LoginRequired(format!("{}: {words}", provider.issuer)),
            other => other,
        })?;
        match kind.as_deref() {
            Some(ID_JAG) => Ok(assertion),
            _ => Err(OAuthFault::unusable(format!("{} answers with another kind of token", provider.issuer))),
        }
    }
}
