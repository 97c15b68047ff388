//! A server that was reached over HTTP, and which of the two transports it turns out to speak.

use super::legacy::LegacyPeer;
use super::life::Life;
use super::spec::HttpProtocol;
use super::streamable::{PostFailure, Streamable};
use crate::upstream::UpstreamFault;
use crate::upstream::jsonrpc::RawAnswer;
use crate::upstream::transport::{
    Line, Link, LinkEnd, Peer, PeerRequest, RequestEra, RequestFault, RequestParams,
};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long a server may take to forget a session.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// The first pause before a subscription is asked for again; each failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

pub(super) struct HttpLink {
    peer: Arc<HttpPeer>,
}

/// The server at the other end.
pub(super) struct HttpPeer {
    protocol: HttpProtocol,
    streamable: Arc<Streamable>,
    /// Once it is known to speak that.
    legacy: OnceLock<Arc<LegacyPeer>>,
    life: Arc<Life>,
}

impl HttpLink {
    pub(super) fn new(
        protocol: HttpProtocol,
        streamable: Arc<Streamable>,
        legacy: Option<Arc<LegacyPeer>>,
        life: Arc<Life>,
    ) -> HttpLink {
        let legacy = legacy.map_or_else(OnceLock::new, OnceLock::from);
        HttpLink { peer: Arc::new(HttpPeer { protocol, streamable, legacy, life }) }
    }
}

#[async_trait::async_trait]
impl Link for HttpLink {
    fn line(&self) -> Line {
        Line::Mcp(self.peer.clone())
    }

    async fn gone(&mut self) -> LinkEnd {
        self.peer.life.ended().await
    }

    fn close(&mut self, why: &str) {
        self.peer.life.close(why);
    }

    async fn discard(&mut self) {}

    async fn shut_down(&mut self) {
        self.close("upstream is shutting down");
        let _ = timeout(STOP_GRACE, self.peer.streamable.delete_session()).await;
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        self.peer.life.close("upstream has gone");
    }
}

#[async_trait::async_trait]
impl Peer for HttpPeer {
    async fn request(&self, request: PeerRequest<'_>) -> Result<RawAnswer, RequestFault> {
        self.life.unless_closed(self.route(request)).await?
    }

    fn notify(&self, method: &'static str, era: RequestEra<'_>) {
        match self.legacy.get() {
            Some(legacy) => legacy.notify(method),
            None => self.streamable.notify(method, era),
        }
    }

    fn mirrors_arguments(&self) -> bool {
        self.legacy.get().is_none()
    }
}

impl HttpPeer {
    async fn route(&self, request: PeerRequest<'_>) -> Result<RawAnswer, RequestFault> {
        if let Some(legacy) = self.legacy.get() {
            return legacy.request(request).await;
        }
        let PeerRequest { method, params, era, max_bytes, overflow, deadline, is_cancellable } = request;
        let RequestParams::Own(text) = params else {
            let request = PeerRequest { method, params, era, max_bytes, overflow, deadline, is_cancellable };
            return self.streamable.request(request).await.map_err(|failure| failure.fault(method));
        };
        let again = || {
            let params = RequestParams::Own(text);
            PeerRequest { method, params, era, max_bytes, overflow: None, deadline, is_cancellable }
        };
        match self.streamable.request(again()).await {
            Ok(answer) => Ok(answer),
            Err(PostFailure::Refused(refusal))
                if method == "initialize"
                    && self.protocol == HttpProtocol::Either
                    && refusal.is_foreign() =>
            {
                let Streamable { wire, events, .. } = &*self.streamable;
                match LegacyPeer::open(wire.clone(), events.clone(), self.life.clone()).await {
                    Ok(legacy) => self.legacy.get_or_init(|| legacy).request(again()).await,
                    Err(why) => {
                        let text = format!("{}; as a stream of events: {why}", refusal.words());
                        Err(RequestFault::Upstream(UpstreamFault::Protocol(text)))
                    }
                }
            }
            Err(PostFailure::Broken(_)) if method == "subscriptions/listen" => {
                self.listen_again(&again).await
            }
            Err(failure) => Err(failure.fault(method)),
        }
    }

    /// A subscription whose stream has ended is asked for again: between us and the server there may be something
    /// that ends whatever is quiet. Its beginning counts as a change.
    async fn listen_again<'r>(
        &self,
        again: &(dyn Fn() -> PeerRequest<'r> + Sync),
    ) -> Result<RawAnswer, RequestFault> {
        let mut pause = FIRST_PAUSE;
        loop {
            sleep(pause).await;
            pause = match self.streamable.request(again()).await {
                Ok(answer) => return Ok(answer),
                Err(PostFailure::Broken(_)) => FIRST_PAUSE,
                Err(PostFailure::Fault(RequestFault::Upstream(UpstreamFault::Unavailable(_)))) => {
                    (pause * 2).min(LONGEST_PAUSE)
                }
                Err(failure) => return Err(failure.fault("subscriptions/listen")),
            };
        }
    }
}
