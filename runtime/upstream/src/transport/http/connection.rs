//! Maintains the connection to a remote MCP server: connects over Streamable HTTP or, where the server does not know
//! it, the older SSE transport, and renews subscriptions that have ended.

use super::spec::HttpProtocol;
use super::sse::SseChannel;
use super::streamable::{PostFailure, Streamable};
use crate::transport::life::Life;
use crate::transport::{Connection, ConnectionEnd};
use crate::{CallResult, ServerRequest, UpstreamFault};
use ptc_base::oauth;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long a server may take to forget a session.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// The first pause before a subscription is asked for again; each failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

pub(super) struct HttpConnection {
    protocol: HttpProtocol,
    streamable: Arc<Streamable>,
    /// Set once the server is known to speak this.
    sse: OnceLock<Arc<SseChannel>>,
    life: Arc<Life>,
}

impl HttpConnection {
    pub(super) fn new(
        protocol: HttpProtocol,
        streamable: Arc<Streamable>,
        sse: Option<Arc<SseChannel>>,
        life: Arc<Life>,
    ) -> HttpConnection {
        HttpConnection { protocol, streamable, sse: sse.map_or_else(OnceLock::new, OnceLock::from), life }
    }

    /// The first request of a handshake. A server that does not know this transport is greeted over the other one.
    async fn initialize(&self, request: ServerRequest) -> Result<CallResult, UpstreamFault> {
        let refusal = match self.streamable.call(request.again()).await {
            Err(PostFailure::Refused(refusal)) if refusal.is_foreign() => refusal,
            answer => return answer.map_err(|failure| failure.fault("initialize")),
        };
        let Streamable { wire, events, .. } = &*self.streamable;
        match SseChannel::open(wire.clone(), events.clone(), self.life.clone()).await {
            Ok(sse) => self.sse.get_or_init(|| sse).call(request).await,
            Err(why) => {
                if let UpstreamFault::LoginRequired(need) = why {
                    return Err(UpstreamFault::LoginRequired(need));
                }
                let text = format!("{}; as a stream of events: {why}", refusal.words());
                Err(UpstreamFault::Protocol(text))
            }
        }
    }

    /// Asks again for a subscription whose stream has ended: something on the way to the server may end whatever is
    /// quiet. Its beginning counts as a change.
    async fn listen_again(&self, request: &ServerRequest) -> Result<CallResult, UpstreamFault> {
        let mut pause = FIRST_PAUSE;
        loop {
            sleep(pause).await;
            pause = match self.streamable.call(request.again()).await {
                Ok(answer) => return Ok(answer),
                Err(PostFailure::Broken(_)) => FIRST_PAUSE,
                Err(PostFailure::Fault(UpstreamFault::Unavailable(_) | UpstreamFault::Transient { .. })) => {
                    (pause * 2).min(LONGEST_PAUSE)
                }
                Err(failure) => return Err(failure.fault(request.method())),
            };
        }
    }
}

#[async_trait::async_trait]
impl Connection for HttpConnection {
    async fn call(&self, request: ServerRequest) -> Result<CallResult, UpstreamFault> {
        let answer = async {
            if let Some(sse) = self.sse.get() {
                return sse.call(request).await;
            }
            match request.method() {
                "initialize" if self.protocol == HttpProtocol::Either => self.initialize(request).await,
                method @ "subscriptions/listen" => match self.streamable.call(request.again()).await {
                    Err(PostFailure::Broken(_)) => self.listen_again(&request).await,
                    answer => answer.map_err(|failure| failure.fault(method)),
                },
                method => self.streamable.call(request).await.map_err(|failure| failure.fault(method)),
            }
        };
        self.life.unless_closed(answer).await?
    }

    fn notify(&self, method: &'static str, revision: &str) {
        match self.sse.get() {
            Some(sse) => sse.notify(method),
            None => self.streamable.notify(method, revision),
        }
    }

    fn has_headers(&self) -> bool {
        self.sse.get().is_none()
    }

    async fn gone(&self) -> ConnectionEnd {
        self.life.ended().await
    }

    fn close(&self, why: &str) {
        self.life.close(why);
    }

    async fn shut_down(&self) {
        self.close("upstream is shutting down");
        let _ = timeout(STOP_GRACE, self.streamable.delete_session()).await;
        // New tokens that are not on the disk yet would be lost with this process.
        oauth::settled(STOP_GRACE).await;
    }
}

impl Drop for HttpConnection {
    fn drop(&mut self) {
        self.life.close("upstream has gone");
    }
}
