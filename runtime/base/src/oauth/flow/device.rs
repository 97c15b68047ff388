//! Logs in to an upstream server by OAuth device authorization (RFC 8628): the person types a short code into a web
//! page, which may be open on another device.

use super::code::LoginSummary;
use crate::oauth::changes::LoginChange;
use crate::oauth::login::ServerLogin;
use crate::oauth::scopes::Scopes;
use crate::oauth::server::client::Client;
use crate::oauth::server::discovery::Discovered;
use crate::oauth::server::http::NamedHttp;
use crate::oauth::server::token::{TokenEndpoint, TokenFault};
use crate::oauth::{OAuthFault, Result};
use crate::secrets::Credential;
use serde::Deserialize;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The pause between two questions, unless the server says another.
const INTERVAL: u64 = 5;

/// Longest pause between two questions, in seconds.
const MOST_INTERVAL: u64 = 60;

/// Longest life of a code.
const LONGEST: Duration = Duration::from_secs(3_600);

/// How much longer the pause becomes when the server asks for it.
const SLOWER: Duration = Duration::from_secs(5);

/// The answer of the endpoint (RFC 8628, section 3.2).
#[derive(Deserialize)]
struct Answer {
    device_code: String,
    user_code: String,
    #[serde(alias = "verification_url")]
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: u64,
    interval: Option<u64>,
}

/// A login that waits for its person. Holds a secret, so it implements neither `Debug` nor `Serialize`.
pub struct PendingDevice {
    code: Credential,
    user_code: String,
    address: String,
    complete: Option<String>,
    ends: Instant,
    interval: Duration,
    discovered: Discovered,
    client: Client,
    requested: Scopes,
    http: NamedHttp,
}

impl PendingDevice {
    /// What the person types.
    pub fn user_code(&self) -> &str {
        &self.user_code
    }

    /// Where the person types it.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The same with the code in it, if the server has such an address.
    pub fn complete_address(&self) -> Option<&str> {
        self.complete.as_deref()
    }
}

impl ServerLogin {
    /// Asks for a code that a person types on another device.
    ///
    /// # Errors
    /// The server has no login, or none of this kind.
    pub async fn begin_device(&self, scopes: Option<&Scopes>) -> Result<PendingDevice> {
        let inner = self.inner();
        let (http, discovered) = inner.ask_and_discover().await?;
        let server = &discovered.server;
        let endpoint = server.device_authorization_endpoint.as_deref().ok_or_else(|| {
            OAuthFault::unusable(format!("{} has no login on another device", server.issuer))
        })?;
        let requested = inner.scopes(&discovered, scopes).await?;
        let client = inner.client(&http, &discovered, None, &requested).await?;
        let scope = requested.to_string();
        let mut fields = vec![("resource", discovered.resource.as_str())];
        fields.extend((!scope.is_empty()).then_some(("scope", scope.as_str())));
        let (issuer, secrets) = (&*server.issuer, &inner.secrets);
        let endpoint = TokenEndpoint { http: &http, address: endpoint, issuer, client: &client, secrets };
        let answer: Answer = endpoint
            .post(&fields)
            .await?
            .json()
            .ok_or_else(|| OAuthFault::unusable("the device endpoint gives no code"))?;
        Ok(PendingDevice {
            code: Credential::token(answer.device_code, &inner.secrets),
            user_code: answer.user_code,
            address: answer.verification_uri,
            complete: answer.verification_uri_complete,
            ends: Instant::now() + Duration::from_secs(answer.expires_in).min(LONGEST),
            interval: Duration::from_secs(answer.interval.unwrap_or(INTERVAL).clamp(1, MOST_INTERVAL)),
            discovered,
            client,
            requested,
            http,
        })
    }

    /// Waits until the person has typed the code, and stores the login.
    ///
    /// # Errors
    /// The person refuses, or is too late.
    pub async fn finish_device(&self, pending: PendingDevice) -> Result<LoginSummary> {
        let inner = self.inner();
        let PendingDevice { code, ends, mut interval, discovered, client, requested, http, .. } = pending;
        let fields = [
            ("grant_type", GRANT),
            ("device_code", code.expose()),
            ("resource", discovered.resource.as_str()),
        ];
        let endpoint = TokenEndpoint::of_server(&http, &discovered.server, &client, &inner.secrets)?;
        let (tokens, _change) = loop {
            interval = interval.min(Duration::from_secs(MOST_INTERVAL));
            sleep(interval).await;
            if Instant::now() >= ends {
                return Err(OAuthFault::unusable("the code has ended before it was typed"));
            }
            // Each question may be the one that is answered with tokens.
            let change = LoginChange::begin()?;
            match endpoint.tokens(&change, &fields).await {
                Ok(tokens) => break (tokens, change),
                Err(TokenFault::Refused { code, .. }) if code == "authorization_pending" => {}
                Err(TokenFault::Refused { code, .. }) if code == "slow_down" => interval += SLOWER,
                // RFC 8628, section 3.5: after a timeout, more slowly.
                Err(TokenFault::Fault(OAuthFault::Unavailable(_))) => interval = (interval * 2).max(SLOWER),
                Err(fault) => return Err(fault.into()),
            }
        };
        let turn = inner.turn().await?;
        inner.store_tokens(turn, &discovered, client, requested, tokens).await
    }
}
