//! Sends HTTP requests to authorization servers with limits of size and time, and only to `https` addresses unless
//! plain `http` is local or configured.

use crate::net::{
    AddressClass, Headers, HttpClient, Method, NetError, Payload, Response, StatusCode, Url, is_loopback,
};
use crate::oauth::server::metadata::AuthorizationServer;
use crate::oauth::{OAuthFault, Result};
use crate::secrets::Credential;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::timeout;

/// Size limit of a document.
const DOCUMENT_BYTES: usize = 256 << 10;

/// Time limit of a request with its answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sends requests to addresses that a server has named.
#[derive(Clone)]
pub(in crate::oauth) struct NamedHttp {
    client: HttpClient,
    /// The server itself is configured with `http://`: whoever reads its requests has the token anyway.
    may_be_plain: bool,
}

/// An answer with its whole body.
pub(crate) struct Document {
    pub(crate) status: StatusCode,
    /// What can reach the host that answered.
    pub(crate) class: AddressClass,
    pub(crate) body: Vec<u8>,
}

impl Document {
    /// The body as JSON.
    pub(in crate::oauth) fn json<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.body).ok()
    }
}

impl NamedHttp {
    /// For addresses named by `server`, which is reached by `client` and has an address of this class.
    pub(in crate::oauth) fn new(client: &HttpClient, server: &Url, class: AddressClass) -> NamedHttp {
        let may_be_plain = server.scheme() == "http" && !is_loopback(server);
        NamedHttp { client: client.led_by(class), may_be_plain }
    }

    /// An address that requests may go to: `https`, or on this machine.
    pub(in crate::oauth) fn address(&self, text: &str, what: &str) -> Result<Url> {
        let url =
            Url::parse(text).map_err(|why| OAuthFault::unusable(format!("{what} is no address: {why}")))?;
        let is_safe = match url.scheme() {
            "https" => true,
            "http" => is_loopback(&url) || self.may_be_plain,
            _ => false,
        };
        match is_safe && url.username().is_empty() && url.password().is_none() {
            true => Ok(url),
            false => Err(OAuthFault::unusable(format!("{what} is not at an https address"))),
        }
    }

    /// Checks the endpoints of an authorization server before a person is asked to log in there: later they get codes and
    /// tokens. The authorization endpoint is the browser's to reach.
    pub(in crate::oauth) async fn check_endpoints(&self, server: &AuthorizationServer) -> Result<()> {
        for (endpoint, what) in [
            (&server.token_endpoint, "the token endpoint"),
            (&server.registration_endpoint, "the registration endpoint"),
            (&server.revocation_endpoint, "the revocation endpoint"),
            (&server.device_authorization_endpoint, "the device endpoint"),
        ] {
            let Some(endpoint) = endpoint else { continue };
            let address = self.address(endpoint, what)?;
            let checked = self.client.check(&address).await;
            checked.map_err(|error| OAuthFault::unusable(format!("{what} cannot be used: {error}")))?;
        }
        Ok(())
    }

    /// A document, or `None` where there is none (any 4xx).
    pub(in crate::oauth) async fn document(&self, url: &Url) -> Result<Option<Document>> {
        let document = self.send(Method::GET, url, &json_accepted(), None).await?;
        match document.status {
            status if status.is_success() => Ok(Some(document)),
            status if status.is_client_error() => Ok(None),
            status => Err(OAuthFault::unavailable(format!("http {status} ({})", place(url)))),
        }
    }

    /// Posts a form. `authorization` authenticates the client.
    pub(in crate::oauth) async fn post_form(
        &self,
        url: &Url,
        fields: &[(&str, &str)],
        authorization: Option<&Credential>,
    ) -> Result<Document> {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let mut headers = json_accepted();
        // Constants of this module, and base64.
        let _ = headers.plain("content-type", "application/x-www-form-urlencoded");
        if let Some(authorization) = authorization {
            let _ = headers.secret("authorization", authorization);
        }
        self.send(Method::POST, url, &headers, Some(body.into())).await
    }

    /// Posts JSON.
    pub(in crate::oauth) async fn post_json(&self, url: &Url, body: &serde_json::Value) -> Result<Document> {
        let mut headers = json_accepted();
        let _ = headers.plain("content-type", "application/json");
        self.send(Method::POST, url, &headers, Some(body.to_string().into())).await
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: &Headers,
        body: Option<Payload>,
    ) -> Result<Document> {
        exchange(self.client.send(method, url, headers, body), url, PATIENCE).await
    }
}

/// The answer to a request to this address, with its whole body.
pub(crate) async fn exchange(
    sent: impl Future<Output = Result<Response, NetError>>,
    url: &Url,
    patience: Duration,
) -> Result<Document> {
    let exchange = async {
        let mut response = sent.await?;
        let body = response.body.read(DOCUMENT_BYTES).await?;
        Ok::<_, NetError>(Document { status: response.status, class: response.class, body })
    };
    let late =
        |_| OAuthFault::unavailable(format!("no answer within {} s ({})", patience.as_secs(), place(url)));
    let answer = timeout(patience, exchange).await.map_err(late)?;
    answer.map_err(|error| OAuthFault::unavailable(error.to_string()))
}

/// Headers of a request for JSON.
pub(crate) fn json_accepted() -> Headers {
    let mut headers = Headers::default();
    // A constant is a valid header.
    let _ = headers.plain("accept", "application/json");
    headers
}

/// `host:port` of an address, for messages.
pub(crate) fn place(url: &Url) -> String {
    url.origin().ascii_serialization()
}
