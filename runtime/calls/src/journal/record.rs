//! Defines the records of a run's journal (inputs, calls, answers, outcome), each one JSON value on one line.

use super::answer::Answer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// One record. `run` is the first of a journal, `outcome` the last.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// What the run was given.
    Run(Box<Header>),
    /// The tools of a server from here on.
    Tools(ServerRecord),
    /// A call waits: for the start of its server, or for room on the way there.
    Wait {
        /// Number of the call.
        seq: u64,
        /// Fuel used so far.
        fuel: u64,
    },
    /// A call with its arguments.
    Call(CallBegun),
    /// A call that may change something leaves. It is on the disk before that.
    Sent(u64),
    /// A call leaves that may be made again.
    Left(u64),
    /// The server has made a task of a call.
    Task {
        /// Number of the call.
        seq: u64,
        /// Its id at the server.
        task: String,
    },
    /// The answer of a call, as the program received it.
    End(EndRecord),
    /// A question that the host answered at once: about names, tools and servers.
    Asked(AskedRecord),
    /// The time that the program read first, in milliseconds since 1970.
    Now(i64),
    /// The end of the run.
    Outcome(OutcomeRecord),
}

/// What a run was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Header {
    /// Version of the format.
    pub format: u32,
    /// Version of the program that recorded it.
    pub ptc: String,
    /// The language of the program.
    pub language: Language,
    /// The text of the program.
    pub program: String,
    /// Its name in diagnostics.
    pub source_name: String,
    /// The context, a JSON object.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub context: Option<Box<RawValue>>,
    /// Reading an absent context key is an error.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub strict_data: bool,
    /// The clock that the program sees, if it is not the real one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub now_ms: Option<i64>,
    /// The limits by flag.
    pub limits: BTreeMap<String, u64>,
    /// How the answer was rendered: it costs fuel.
    pub rendering: BTreeMap<String, u64>,
    /// When the run began, in milliseconds since 1970.
    pub begun_ms: u64,
    /// The token that the run executed for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub owner: Option<String>,
    /// The scopes of that token.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub scopes: Vec<String>,
    /// A policy decided about its calls.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub under_policy: bool,
    /// The servers that the program could call.
    pub servers: Vec<ServerRecord>,
    /// The texts that defined namespaces for it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub preludes: Vec<PreludeRecord>,
}

/// The language of a recorded program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// PTC-Lisp.
    Lisp,
    /// A script in Python. It has no fuel, and numbers of its calls are those of the host.
    Python,
}

impl Header {
    /// The present version of the format.
    pub const FORMAT: u32 = 1;
}

/// A server, and its tool list if that was known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRecord {
    /// Configured name.
    pub server: String,
    /// Configured description.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub description: Option<String>,
    /// Digest of its tool list, which is a file of this name in `shared`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tools: Option<String>,
}

/// A text that defines namespaces.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PreludeRecord {
    /// Its name in locations.
    pub name: String,
    /// Digest of the text, which is a file of this name in `shared`.
    pub text: String,
    /// Its origin.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub origin: Option<String>,
}

/// A call with its arguments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallBegun {
    /// Number of the call, in order of issue.
    pub seq: u64,
    /// The server; `tool` for a function of the application.
    pub server: String,
    /// The tool, or the method of another request.
    pub tool: String,
    /// The address of a resource, or the name of a prompt.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub subject: Option<String>,
    /// What the call may change: `read`, `write` or `unknown`.
    pub effect: String,
    /// The arguments, a JSON object.
    pub args: Box<RawValue>,
    /// Fuel used so far; 0 for a script.
    pub fuel: u64,
}

impl CallBegun {
    /// Server, tool and subject in one text.
    pub fn label(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{}/{} {subject}", self.server, self.tool),
            None => format!("{}/{}", self.server, self.tool),
        }
    }
}

/// The answer of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndRecord {
    /// Number of the call.
    pub seq: u64,
    /// Fuel used when the answer was delivered.
    pub fuel: u64,
    /// The answer; `None`: the call may go on now, after a wait.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub answer: Option<Answer>,
    /// The call was refused when it was made; other answers come while the whole program waits.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub at_once: bool,
}

/// A question that the host answered at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AskedRecord {
    /// Number of the call.
    pub seq: u64,
    /// The form, as `doc`.
    pub form: String,
    /// Fuel used so far.
    pub fuel: u64,
    /// The answer as plain data.
    pub answer: serde_json::Value,
}

/// How a run ended. Real texts: nothing is redacted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeRecord {
    /// Text of the value.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub value: Option<String>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<ErrorRecord>,
    /// Printed lines.
    pub prints: Vec<String>,
    /// Fuel used, if the language counts it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fuel: Option<u64>,
    /// Number of calls.
    pub calls: u64,
}

/// The failure of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorRecord {
    /// Its reason.
    pub reason: String,
    /// Its message.
    pub message: String,
}
