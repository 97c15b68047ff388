//! Method dispatch. It does no I/O and knows no transport: a message goes in, an [`Action`] comes out,
//! and a transport that was told to run a program hands the outcome back to [`Handler::finish`].

use super::frame::{Id, Message};
use super::params::Params;
use super::reply::{Reply, RpcError};
use super::version::{Era, Version};
use crate::tool::arguments::{self, EvalCall};
use crate::tool::caps::Profile;
use crate::tool::profile::{self, ToolResult};
use crate::tool::record::{Record, run_options};
use crate::tool::schema::Schema;
use crate::tool::{EdgeReason, LISP_EVAL};
use ptc_runtime::limits::Limits;
use ptc_runtime::options::RunOptions;
use ptc_runtime::outcome::Outcome;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// How long a client may cache a list of the stateless era: the surface is fixed for the process
/// lifetime, but a restart may change it.
const LIST_TTL_MS: u64 = 60_000;

/// Every method we know in either era; parameters of others are not looked at.
const METHODS: [&str; 7] =
    ["tools/call", "tools/list", "server/discover", "initialize", "ping", "logging/setLevel", "shutdown"];

const SERVER_NAME: &str = "ptc_lisp";

/// What the server offers, fixed at start.
#[derive(Clone, Debug)]
pub struct Surface {
    /// Entries of `tools/list`.
    pub tools: Vec<Value>,
    /// Text for `initialize` and `server/discover`.
    pub instructions: String,
    /// Response profile.
    pub profile: Profile,
    /// Limits of each program.
    pub limits: Limits,
}

/// What a transport has to do next.
#[derive(Debug)]
pub enum Action {
    /// Nothing.
    None,
    /// Send this.
    Reply(Reply),
    /// Run a program and send what [`Handler::finish`] makes of it.
    Run(Box<Call>),
    /// Stop working on this request, without an answer.
    Cancel(Id),
    /// Stop reading, finish what is in flight, end.
    Exit,
}

/// An accepted call of `lisp_eval`.
#[derive(Debug)]
pub struct Call {
    /// How to answer.
    pub ticket: Ticket,
    /// Source text.
    pub program: String,
    /// For the runtime.
    pub options: RunOptions,
}

/// What is needed to answer a call.
#[derive(Clone, Debug)]
pub struct Ticket {
    /// Id of the request.
    pub id: Id,
    era: Era,
    schema: Option<Schema>,
}

/// State of one connection.
#[derive(Debug, Default)]
pub struct Session {
    draining: bool,
}

/// The server side of MCP.
#[derive(Debug)]
pub struct Handler {
    surface: Surface,
    server_info: Value,
    result_meta: Box<RawValue>,
    tools_list: [Box<RawValue>; 2],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    content: [Text<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a Value>,
    is_error: bool,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

impl Handler {
    /// A handler for this surface.
    pub fn new(surface: Surface) -> serde_json::Result<Handler> {
        let server_info = json!({
            "name": SERVER_NAME, "title": "PTC-Lisp", "version": env!("CARGO_PKG_VERSION"),
        });
        let meta = json!({ "io.modelcontextprotocol/serverInfo": server_info });
        let plain = json!({ "tools": surface.tools });
        let stateless = json!({
            "resultType": "complete", "tools": surface.tools,
            "ttlMs": LIST_TTL_MS, "cacheScope": "public", "_meta": meta,
        });
        Ok(Handler {
            tools_list: [to_raw_value(&plain)?, to_raw_value(&stateless)?],
            result_meta: to_raw_value(&meta)?,
            server_info,
            surface,
        })
    }

    /// Reads a message. Everything but a program's run is answered at once.
    pub fn handle(&self, message: Message<'_>, session: &mut Session) -> Action {
        match message {
            Message::Request { id, method, params } => match self.request(&id, &method, params, session) {
                Ok(action) => action,
                Err(error) => Action::Reply(Reply::error(Some(&id), &error)),
            },
            Message::Notification { method, params } => notification(&method, params),
            Message::Response => Action::None,
        }
    }

    /// The answer to a call whose program has ended.
    pub fn finish(&self, ticket: &Ticket, outcome: Outcome) -> Reply {
        self.answer(ticket, &Record::of(outcome, ticket.schema.as_ref()))
    }

    /// The answer to a call that was not started, because `in_flight` others are.
    pub fn busy(&self, ticket: &Ticket, in_flight: usize) -> Reply {
        let message = format!("server busy: {in_flight} concurrent calls in flight; retry the same call");
        self.answer(ticket, &Record::refused(EdgeReason::Busy, message))
    }

    fn request(
        &self,
        id: &Id,
        method: &str,
        raw: Option<&RawValue>,
        session: &mut Session,
    ) -> Result<Action, RpcError> {
        if !METHODS.contains(&method) {
            return Err(RpcError::method_not_found());
        }
        let params = Params::read(raw)?;
        let era = Era::of(&params)?;
        let result = match (method, era) {
            ("tools/call", era) => return Ok(self.call(id, &params, era, session)),
            ("tools/list", era) => {
                let list = &self.tools_list[usize::from(era == Era::Stateless)];
                return Ok(Action::Reply(Reply::result(id, list)));
            }
            ("server/discover", Era::Stateless) => self.discover(),
            // The version is required there, and it is what tells the eras apart.
            ("server/discover", Era::Handshake) => {
                let key = super::version::META_VERSION;
                return Err(RpcError::invalid_params(&format!("_meta must have \"{key}\"")));
            }
            ("initialize", Era::Handshake) => self.initialize(&params),
            ("ping", Era::Handshake) => json!({}),
            ("logging/setLevel", Era::Handshake) => set_level(&params)?,
            ("shutdown", Era::Handshake) => {
                session.draining = true;
                Value::Null
            }
            _ => return Err(RpcError::method_not_found()),
        };
        Ok(Action::Reply(Reply::result(id, &result)))
    }

    fn initialize(&self, params: &Params<'_>) -> Value {
        let requested: Option<String> =
            params.protocol_version.and_then(|raw| serde_json::from_str(raw.get()).ok());
        json!({
            "protocolVersion": Version::negotiate(requested.as_deref()).name(),
            "serverInfo": self.server_info,
            "capabilities": { "tools": { "listChanged": false }, "logging": {} },
            "instructions": self.surface.instructions,
        })
    }

    fn discover(&self) -> Value {
        let versions: Vec<&str> = Version::STATELESS.iter().map(|version| version.name()).collect();
        json!({
            "resultType": "complete",
            "supportedVersions": versions,
            "capabilities": { "tools": {} },
            "instructions": self.surface.instructions,
            "ttlMs": LIST_TTL_MS, "cacheScope": "public",
            "_meta": self.result_meta,
        })
    }

    fn call(&self, id: &Id, params: &Params<'_>, era: Era, session: &Session) -> Action {
        let mut ticket = Ticket { id: id.clone(), era, schema: None };
        let refused =
            |reason, message: String| Action::Reply(self.answer(&ticket, &Record::refused(reason, message)));
        let name = params.name.as_deref().unwrap_or_default();
        if name != LISP_EVAL {
            return refused(EdgeReason::UnknownTool, format!("unknown tool: {name}"));
        }
        if session.draining {
            let message = "server is draining after shutdown; new tool calls are rejected";
            return refused(EdgeReason::ShuttingDown, message.into());
        }
        let EvalCall { program, context, schema } =
            match arguments::read(params.arguments, &self.surface.limits) {
                Ok(call) => call,
                Err(message) => return refused(EdgeReason::ArgsError, message),
            };
        let mut options =
            RunOptions { context, strict_data: true, limits: self.surface.limits, ..RunOptions::default() };
        run_options(self.surface.profile, schema.as_ref(), &mut options);
        ticket.schema = schema;
        Action::Run(Box::new(Call { ticket, program, options }))
    }

    fn answer(&self, ticket: &Ticket, record: &Record) -> Reply {
        let ToolResult { is_error, text, structured } = profile::apply(self.surface.profile, record);
        let stateless = ticket.era == Era::Stateless;
        Reply::result(
            &ticket.id,
            &CallResult {
                result_type: stateless.then_some("complete"),
                content: [Text { r#type: "text", text: &text }],
                structured_content: structured.as_ref(),
                is_error,
                meta: stateless.then_some(&*self.result_meta),
            },
        )
    }
}

fn notification(method: &str, raw: Option<&RawValue>) -> Action {
    match method {
        "notifications/cancelled" => {
            let id = Params::read(raw).ok().and_then(|params| params.request_id).and_then(Id::from_raw);
            id.map_or(Action::None, Action::Cancel)
        }
        "exit" => Action::Exit,
        _ => Action::None,
    }
}

/// We send no log messages to clients, so any known level is fine.
fn set_level(params: &Params<'_>) -> Result<Value, RpcError> {
    const LEVELS: [&str; 8] =
        ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    match params.level.as_deref() {
        Some(level) if LEVELS.contains(&level) => Ok(json!({})),
        _ => Err(RpcError::invalid_params("unknown log level")),
    }
}
