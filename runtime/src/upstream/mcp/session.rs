//! An MCP server after the handshake: sends its calls, and the requests of its supervisor.

use super::client::RpcClient;
use super::dialect::Dialect;
use super::features;
use super::handshake::{Hello, Opening, Probe};
use super::mirror::MirroredArguments;
use crate::secrets::SecretRegistry;
use crate::tools::{CallTarget, Listed};
use crate::upstream::transport::{Peer, PeerEvents, RequestFault};
use crate::upstream::{CallRequest, CallResult, UpstreamFault};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A subscription stays open as long as the connection.
const NO_DEADLINE: Duration = Duration::from_secs(365 * 24 * 3600);

/// Size limit of a response that is needed only as a sign of life.
const SMALL_ANSWER: usize = 1 << 20;

/// One server, in its era.
pub(in crate::upstream) struct McpSession {
    client: RpcClient,
    secrets: SecretRegistry,
    hello: Hello,
    mirrored: Mutex<Arc<MirroredArguments>>,
}

impl McpSession {
    /// Completes the handshake and lists the tools. `patience` limits each request; the caller limits all of
    /// them together.
    pub(in crate::upstream) async fn open(
        peer: Arc<dyn Peer>,
        events: Arc<PeerEvents>,
        secrets: &SecretRegistry,
        probe: Probe,
        patience: Duration,
    ) -> Result<(McpSession, Listed), UpstreamFault> {
        let client = RpcClient::new(peer, events);
        let opening = Opening { client: &client, secrets, patience };
        let hello = opening.greet(probe).await?;
        let listed = opening.list_tools(&hello.dialect).await?;
        let session = McpSession { client, secrets: secrets.clone(), hello, mirrored: Mutex::default() };
        let listed = session.completed(listed);
        Ok((session, listed))
    }

    /// `name version` as the server reported them.
    pub(in crate::upstream) fn server_info(&self) -> &str {
        &self.hello.server_info
    }

    /// The negotiated revision.
    pub(in crate::upstream) fn version(&self) -> &str {
        self.hello.dialect.version()
    }

    /// It sends notifications of list changes, to which a client of its era must subscribe.
    pub(in crate::upstream) fn offers_changes(&self) -> bool {
        self.hello.offers_changes
    }

    /// Calls a tool or another target; the time of the call began at `begun`.
    pub(in crate::upstream) async fn call(
        &self,
        mut request: CallRequest,
        begun: Instant,
    ) -> Result<CallResult, UpstreamFault> {
        let (client, dialect) = (&self.client, &self.hello.dialect);
        match request.target.clone() {
            CallTarget::Tool(tool) => {
                let mirrored = self.mirrored.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let mirrored = mirrored.of_call(&tool, request.arguments.as_str());
                let answer = client.call(dialect, request, mirrored, begun).await?;
                Ok(CallResult::Mcp(answer.into()))
            }
            CallTarget::Resource(_) => {
                let request = CallRequest { arguments: String::new().into(), ..request };
                let answer = client.call(dialect, request, Vec::new(), begun).await?;
                Ok(CallResult::Mcp(answer.into()))
            }
            CallTarget::Prompt(_) => {
                request.arguments = features::texts(request.arguments.as_str())?.into();
                let answer = client.call(dialect, request, Vec::new(), begun).await?;
                features::prompt(&answer)
            }
            CallTarget::List(kind) => features::list(client, dialect, kind, request, begun).await,
        }
    }

    /// Loads the whole tool list again.
    pub(in crate::upstream) async fn list_tools(&self, patience: Duration) -> Result<Listed, UpstreamFault> {
        let opening = Opening { client: &self.client, secrets: &self.secrets, patience };
        opening.list_tools(&self.hello.dialect).await.map(|listed| self.completed(listed))
    }

    /// Completes a list with the server's instructions, and finds mirrored arguments if transport and era
    /// support them.
    fn completed(&self, mut listed: Listed) -> Listed {
        listed.instructions = self.hello.instructions.clone();
        if matches!(self.hello.dialect, Dialect::Stateless { .. }) && self.client.mirrors_arguments() {
            let mirrored = Arc::new(MirroredArguments::read(&mut listed));
            *self.mirrored.lock().unwrap_or_else(PoisonError::into_inner) = mirrored;
        }
        listed
    }

    /// Subscribes to changes at a server of the stateless era, as long as the server keeps the subscription
    /// open.
    pub(in crate::upstream) async fn listen(&self) -> Result<(), UpstreamFault> {
        let params = "\"notifications\":{\"toolsListChanged\":true}";
        self.ask("subscriptions/listen", params, NO_DEADLINE).await?;
        Ok(())
    }

    /// True when the server answers a ping, or any other request of ours, within `patience`. Its own
    /// notifications prove nothing: one of its threads may go on sending while the working one hangs.
    pub(in crate::upstream) async fn is_alive(&self, patience: Duration) -> bool {
        let events = self.client.events();
        let signs = events.signs_of_life();
        match self.ask(self.hello.dialect.liveness_method(), "", patience).await {
            // An error is an answer, too.
            Ok(()) | Err(RequestFault::Rpc(_)) => true,
            Err(RequestFault::Upstream(_)) => events.signs_of_life() > signs,
        }
    }

    async fn ask(&self, method: &'static str, members: &str, patience: Duration) -> Result<(), RequestFault> {
        let dialect = &self.hello.dialect;
        let params = dialect.params(members);
        self.client.ask(method, &params, dialect.era(), SMALL_ANSWER, patience).await.map(drop)
    }
}
