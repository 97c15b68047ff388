//! Defines the configuration of a remote MCP server ([`HttpSpec`]: address, headers, login), and connects to the server
//! over HTTP with it. It also describes the server, and suggests remedies for a failed start.

use super::connection::HttpConnection;
use super::sse::SseChannel;
use super::streamable::Streamable;
use super::wire::HttpWire;
use crate::UpstreamFault;
use crate::transport::life::Life;
use crate::transport::{ConnectContext, Connection, Transport};
use ptc_base::net::{self, ClientOptions, Headers, HttpClient, Url};
use ptc_base::oauth::{LoginIdentity, LoginOptions, OAuthSettings, ServerLogin};
use ptc_base::secrets::SecretRegistry;
use ptc_base::tasks::{self, TaskOwner};
use serde_json::{Value, json};
use std::sync::Arc;

/// Which of the transports over HTTP a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpProtocol {
    /// Streamable HTTP, of any revision.
    Streamable,
    /// The older HTTP with one stream of events (SSE).
    Sse,
    /// Streamable HTTP, or SSE if the server does not know it.
    Either,
}

/// A remote server. May hold resolved secrets, so it implements neither `Debug` nor `Serialize`.
#[derive(Clone)]
pub struct HttpSpec {
    /// Where it answers.
    pub url: Url,
    /// What it speaks.
    pub protocol: HttpProtocol,
    /// Sent with each request.
    pub headers: Headers,
    /// Certificates, proxy, patience.
    pub client: ClientOptions,
    /// The login; `None` where the headers say who asks.
    pub login: Option<OAuthSettings>,
}

impl HttpSpec {
    /// The address without the parts that may hold secrets.
    pub fn address(&self) -> String {
        format!("{}{}", self.url.origin().ascii_serialization(), self.url.path())
    }

    async fn http_client(&self) -> Result<HttpClient, String> {
        let options = self.client.clone();
        // Reads certificate files, so it runs on a blocking thread.
        let made = tasks::blocking(TaskOwner::Connection, move |_| HttpClient::new(&options)).await;
        made.ok_or("the client could not be made")?.map_err(|error| error.to_string())
    }

    fn login_with(
        &self,
        client: HttpClient,
        options: LoginOptions,
        secrets: &SecretRegistry,
    ) -> Option<ServerLogin> {
        let settings = self.login.clone()?;
        Some(ServerLogin::new(self.url.clone(), settings, client, options, &self.client, secrets.clone()))
    }
}

#[async_trait::async_trait]
impl Transport for HttpSpec {
    /// Makes a client. A stream of events is opened at once; otherwise nothing is sent before the first request.
    async fn connect(&self, context: &ConnectContext) -> Result<Arc<dyn Connection>, UpstreamFault> {
        let HttpSpec { url, protocol, headers, .. } = self.clone();
        let client = self.http_client().await.map_err(UpstreamFault::Unavailable)?;
        let login = self.login_with(client.clone(), context.logins.clone(), &context.secrets);
        let wire = HttpWire { client, url, headers, login, events: context.events.clone() };
        let life = Arc::new(Life::new());
        let events = context.events.clone();
        let sse = match protocol {
            HttpProtocol::Sse => Some(SseChannel::open(wire.clone(), events.clone(), life.clone()).await?),
            HttpProtocol::Streamable | HttpProtocol::Either => None,
        };
        let streamable = Streamable::new(wire, events, life.clone());
        Ok(Arc::new(HttpConnection::new(protocol, streamable, sse, life)))
    }

    async fn login(
        &self,
        options: LoginOptions,
        secrets: &SecretRegistry,
    ) -> Result<Option<ServerLogin>, String> {
        Ok(self.login_with(self.http_client().await?, options, secrets))
    }

    fn has_login_of_callers(&self) -> bool {
        self.login.as_ref().is_some_and(|login| login.identity == LoginIdentity::User)
    }

    fn describe(&self) -> String {
        self.address()
    }

    fn descriptor(&self) -> Value {
        json!({ "type": "remote", "url": self.address(), "headers": self.headers.names() })
    }

    fn identity(&self) -> Value {
        json!({ "descriptor": self.descriptor(), "url": self.url.as_str(), "headers": self.headers.identity() })
    }

    fn remedy(&self, error: &str) -> String {
        let address = self.address();
        if error.contains("http 401") {
            return "the server wants to know who asks: add a token (auth, or an Authorization header), or \
                renew the one that is there"
                .to_owned();
        }
        if error.contains("http 403") {
            return "the server knows who asks and refuses: check what the token may do".to_owned();
        }
        if error.contains("http 404") || error.contains("http 405") {
            return format!("check the path in url: no MCP server answers at {address}");
        }
        if let Some(remedy) = net::remedy(error) {
            return remedy.to_owned();
        }
        format!("check that an MCP server answers at {address}")
    }
}
