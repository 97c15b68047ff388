//! Speaks MCP over a connection: makes the handshake, lists tools, and sends calls in the form of the agreed protocol
//! version, including tasks and questions of the server.

use super::client::{Question, RpcClient};
use super::created::ServerTask;
use super::dialect::Dialect;
use super::features;
use super::handshake::{Greeting, Hello};
use super::mirror::MirroredArguments;
use super::task::{TaskForm, TaskTalk, Unfinished};
use crate::progress::{CallProgress, FollowedCall};
use crate::request::Envelope;
use crate::transport::{ConnectContext, Connection, ConnectionEnd, MayList, Opened, Opening};
use crate::{CallResult, ServerRequest, UpstreamFault};
use ptc_base::secrets::SecretRegistry;
use ptc_base::sync::Locked;
use ptc_calls::tools::{CallTarget, ListKind, Listed, OWN_FACTS, TaskSupport, UpstreamTool};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// A subscription stays open as long as the connection.
const NO_DEADLINE: Duration = Duration::from_secs(365 * 24 * 3600);

/// Size limit of a response that is needed only as a sign of life.
const SMALL_ANSWER: usize = 1 << 20;

/// A connection to one server, spoken to in the era that it was greeted in.
pub(crate) struct McpSession {
    client: RpcClient,
    secrets: SecretRegistry,
    /// Empty until the server is opened.
    hello: OnceLock<Hello>,
    mirrored: Mutex<Arc<MirroredArguments>>,
    /// Tools that may be called as tasks.
    tasks: Mutex<Arc<HashMap<Arc<str>, TaskSupport>>>,
}

/// Most rounds in which a server asks before it does what a call is for.
const ROUNDS: usize = 10;

impl McpSession {
    /// A session over this connection, before the handshake.
    pub(crate) fn new(connection: Arc<dyn Connection>, context: &ConnectContext) -> McpSession {
        let client = RpcClient { connection, events: context.events.clone() };
        let (secrets, hello, mirrored) = (context.secrets.clone(), OnceLock::new(), Mutex::default());
        McpSession { client, secrets, hello, mirrored, tasks: Mutex::default() }
    }

    fn hello(&self) -> Result<&Hello, UpstreamFault> {
        self.hello.get().ok_or_else(|| UpstreamFault::Unavailable("the server is not greeted yet".to_owned()))
    }

    fn greeting(&self, patience: Duration) -> Greeting<'_> {
        Greeting { client: &self.client, secrets: &self.secrets, patience }
    }

    /// Adds what the server says about itself, removes what only `ptc` may say about a tool, and looks for arguments that are repeated in headers, if this transport
    /// and this era do that.
    fn completed(&self, mut listed: Listed, hello: &Hello) -> Listed {
        listed.instructions = hello.instructions.clone();
        for meta in listed.tools.iter_mut().filter_map(|tool| tool.meta.as_mut()?.as_object_mut()) {
            meta.remove(OWN_FACTS);
        }
        if hello.tasks == TaskForm::Requested {
            let of_tool = |tool: &UpstreamTool| (tool.name.clone(), tool.tasks);
            let tools = listed.tools.iter().filter(|tool| tool.tasks != TaskSupport::Forbidden);
            *self.tasks.locked() = Arc::new(tools.map(of_tool).collect());
        }
        if matches!(hello.dialect, Dialect::Stateless { .. }) && self.client.connection.has_headers() {
            let mirrored = Arc::new(MirroredArguments::read(&mut listed));
            *self.mirrored.locked() = mirrored;
        }
        listed
    }

    /// The whole tool list, with the other lists that may be requested.
    async fn list(
        &self,
        hello: &Hello,
        patience: Duration,
        may_list: MayList,
    ) -> Result<Listed, UpstreamFault> {
        let greeting = self.greeting(patience);
        let kinds: Vec<ListKind> = hello.lists.iter().copied().filter(|kind| may_list.has(*kind)).collect();
        let (listed, offers) =
            tokio::join!(greeting.list_tools(&hello.dialect), greeting.list_offers(&hello.dialect, &kinds));
        Ok(self.completed(Listed { offers, ..listed? }, hello))
    }

    /// A call of a server that has tasks.
    async fn call_tool(&self, mut request: ServerRequest) -> Result<CallResult, UpstreamFault> {
        let Hello { dialect, tasks: form, .. } = self.hello()?;
        let talk = TaskTalk {
            client: &self.client,
            dialect,
            form: *form,
            sink: request.sink.clone(),
            deadline: request.deadline,
            timeout: request.timeout,
            trace: request.trace.clone(),
            asked: request.client.clone(),
            notes: request.tasks.take(),
        };
        if let Some(known) = talk.notes.as_ref().and_then(|notes| notes.known()) {
            return talk.follow(ServerTask::known(&known)).await;
        }
        if *form == TaskForm::Requested && self.asks_for_task(&request, talk.notes.is_some()) {
            request.envelope.tail.insert_str(0, ",\"task\":{}");
        }
        let tail = request.envelope.tail.clone();
        for _ in 0..ROUNDS {
            let again = ServerRequest { envelope: request.envelope.clone(), ..request.resend() };
            let result = self.client.connection.call(request).await?;
            match talk.unfinished(&result).await? {
                None => return Ok(result),
                Some(Unfinished::Task(task)) => {
                    if let Some(notes) = &talk.notes {
                        notes.created(&task.id);
                    }
                    return talk.follow(task).await;
                }
                Some(Unfinished::Asked(members)) => {
                    request = again;
                    request.envelope.tail = members + &tail;
                }
            }
        }
        Err(UpstreamFault::Protocol("the server asks for input again and again".to_owned()))
    }

    /// Whether a call is made as a task. One that may be is one if its run outlives the process, so that it can be found
    /// again.
    fn asks_for_task(&self, request: &ServerRequest, outlives: bool) -> bool {
        let support = self.tasks.locked().get(request.target.subject().unwrap_or_default()).copied();
        match support.unwrap_or_default() {
            TaskSupport::Required => true,
            TaskSupport::Optional => outlives,
            TaskSupport::Forbidden => false,
        }
    }

    async fn ask(
        &self,
        method: &'static str,
        members: &str,
        patience: Duration,
    ) -> Result<(), UpstreamFault> {
        let dialect = &self.hello()?.dialect;
        let question = Question {
            target: CallTarget::Protocol(method),
            params: dialect.params(members),
            era: dialect.era(),
            max_bytes: SMALL_ANSWER,
            trace: None,
        };
        self.client.ask(question, patience).await.map(drop)
    }
}

#[async_trait::async_trait]
impl Connection for McpSession {
    async fn open(&self, opening: Opening) -> Result<Opened, UpstreamFault> {
        let greeting = self.greeting(opening.patience);
        let hello = greeting.greet(opening.ended_silently).await?;
        let hello = self.hello.get_or_init(|| hello);
        Ok(Opened {
            listed: self.list(hello, opening.patience, opening.may_list).await?,
            server_info: hello.server_info.clone(),
            version: hello.dialect.version().to_owned(),
            tools_may_change: true,
        })
    }

    async fn call(&self, mut request: ServerRequest) -> Result<CallResult, UpstreamFault> {
        let dialect = &self.hello()?.dialect;
        let mut mirrored = Vec::new();
        match &request.target {
            CallTarget::Tool(tool) => {
                let arguments = self.mirrored.locked().clone();
                mirrored = arguments.of_call(tool, request.arguments.as_str());
            }
            CallTarget::Prompt(_) => {
                request.arguments = features::texts(request.arguments.as_str())?.into();
            }
            CallTarget::List(kind) => return features::list(&self.client, dialect, *kind, request).await,
            CallTarget::Resource(_) | CallTarget::Protocol(_) | CallTarget::Task(..) => {
                request.arguments = String::new().into();
            }
        }
        let is_tool = matches!(request.target, CallTarget::Tool(_));
        let is_prompt = matches!(request.target, CallTarget::Prompt(_));
        let followed = request.progress.take().map(|listener| {
            let subject = request.target.subject().unwrap_or_default().into();
            self.client.events.follow(CallProgress { listener, subject, secrets: self.secrets.clone() })
        });
        let token = followed.as_ref().map(FollowedCall::token);
        let (head, tail) = dialect.call(&request.target, request.trace.as_ref(), token);
        request.envelope = Envelope { head, tail, era: dialect.era(), mirrored };
        if is_tool && self.hello()?.tasks != TaskForm::None {
            return self.call_tool(request).await;
        }
        let result = self.client.connection.call(request).await?;
        if is_prompt { features::prompt(result.answer()) } else { Ok(result) }
    }

    async fn list_tools(&self, patience: Duration, may_list: MayList) -> Result<Listed, UpstreamFault> {
        self.list(self.hello()?, patience, may_list).await
    }

    /// The stateless era has to subscribe to changes; in the other one they are reported unasked.
    async fn listen(&self) -> Result<(), UpstreamFault> {
        let changes = &self.hello()?.changes;
        if changes.is_empty() {
            return std::future::pending().await;
        }
        let kinds: Vec<String> = changes.iter().map(|kind| format!("\"{kind}\":true")).collect();
        let members = format!("\"notifications\":{{{}}}", kinds.join(","));
        self.ask("subscriptions/listen", &members, NO_DEADLINE).await
    }

    /// True when the server answers a ping, or any other request of ours, within `patience`. What it sends unasked
    /// proves nothing: one of its threads may talk on while the one that works hangs.
    async fn is_alive(&self, patience: Duration) -> bool {
        let signs = self.client.events.signs_of_life();
        let Ok(hello) = self.hello() else { return false };
        match self.ask(hello.dialect.liveness_method(), "", patience).await {
            // An error is an answer, too.
            Ok(()) | Err(UpstreamFault::Rpc(_)) => true,
            Err(_) => self.client.events.signs_of_life() > signs,
        }
    }

    async fn gone(&self) -> ConnectionEnd {
        self.client.connection.gone().await
    }

    fn diagnostics(&self) -> Option<String> {
        self.client.connection.diagnostics()
    }

    fn close(&self, why: &str) {
        self.client.connection.close(why);
    }

    async fn discard(&self) {
        self.client.connection.discard().await;
    }

    async fn shut_down(&self) {
        self.client.connection.shut_down().await;
    }
}
