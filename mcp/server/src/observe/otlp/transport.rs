//! Sends the requests of the OpenTelemetry exporters to the collector, with the HTTP client of the runtime and a time
//! limit.

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use ptc_base::net::{self, Headers, Method, Payload, Url};
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Size limit of a collector's answer.
const ANSWER_BYTES: usize = 64 << 10;

/// The HTTP client of one exporter. Exporters have threads of their own, on which this one runs its connections: a slow
/// collector delays nothing else.
pub(super) struct CollectorClient {
    http: net::HttpClient,
    connections: Mutex<Runtime>,
    patience: Duration,
}

impl CollectorClient {
    /// A client whose requests end within `patience`.
    ///
    /// # Errors
    /// The settings of the network cannot be used.
    pub(super) fn new(patience: Duration) -> Result<CollectorClient, String> {
        let http = net::HttpClient::new(&net::ClientOptions::default()).map_err(|error| error.to_string())?;
        let connections =
            Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        Ok(CollectorClient { http, connections: Mutex::new(connections), patience })
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let mut headers = Headers::default();
        for (name, value) in &parts.headers {
            headers.set(name.clone(), value.to_str()?)?;
        }
        let url = Url::parse(&parts.uri.to_string())?;
        let mut answer = self.http.send(Method::POST, &url, &headers, Some(Payload::new([body]))).await?;
        let body = answer.body.read(ANSWER_BYTES).await?;
        let mut response = Response::builder().status(answer.status);
        // What a busy collector says about when to try again.
        if let Some(pause) = answer.header("retry-after") {
            response = response.header("retry-after", pause);
        }
        Ok(response.body(body.into())?)
    }
}

impl fmt::Debug for CollectorClient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CollectorClient").finish_non_exhaustive()
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let connections = self.connections.lock().map_err(|_| "an earlier request panicked")?;
        connections.block_on(async {
            match tokio::time::timeout(self.patience, self.send(request)).await {
                Ok(sent) => sent,
                Err(_) => Err(format!("no answer within {} ms", self.patience.as_millis()).into()),
            }
        })
    }
}
