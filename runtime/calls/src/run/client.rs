//! Defines the interface through which a run reaches its MCP client, to pass on the requests of upstream servers (such
//! as questions to the user) and to report the progress of tools. Servers may elicit input from the client's user, and
//! ask for the folders that it works in (roots).

pub mod asker;

pub use asker::ClientIdentity;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the client supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// It can show forms to its user (elicitation).
    pub elicitation: bool,
    /// It can list the folders that it works in.
    pub roots: bool,
    /// It can lead its user to an address (elicitation in the mode `url`).
    pub urls: bool,
}

/// Why a client gave no answer: a JSON-RPC error without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// JSON-RPC error code; 0 when none fits.
    pub code: i64,
    /// Never empty.
    pub message: String,
}

/// Future of a client's answer: the JSON text of its result, or an error.
pub type ClientAnswer = Pin<Box<dyn Future<Output = Result<String, ClientError>> + Send>>;

/// Sends requests of upstreams to the client.
pub trait ServedClient: Send + Sync {
    /// Sends a request with parameters as JSON text. Dropping the future cancels the request.
    fn ask(self: Arc<Self>, method: &'static str, params: String) -> ClientAnswer;
}

/// A step that a tool has reported while its call is under way (`notifications/progress`).
#[derive(Clone, Debug, PartialEq)]
pub struct ToolStep {
    /// The configured name of its server.
    pub server: Arc<str>,
    /// The tool, the prompt or the address of the resource.
    pub subject: Arc<str>,
    /// What the server reports, as one short line without secrets: `3 of 10: Reading`.
    pub text: String,
    /// How far the tool is.
    pub progress: Option<f64>,
    /// What `progress` is at the end, if that is known.
    pub total: Option<f64>,
    /// The server's own words in `text`.
    pub message: Option<String>,
}

impl fmt::Display for ToolStep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ToolStep { server, subject, text, .. } = self;
        write!(out, "{server}/{subject}: {text}")
    }
}

/// Receives the steps of tools while their calls are under way. Servers are asked for progress only if the
/// run has a listener.
pub trait ProgressListener: fmt::Debug + Send + Sync {
    /// Whether steps are wanted at this moment. Asked before each call.
    fn listens(&self) -> bool {
        true
    }

    /// A tool has reported a step. It is called on an I/O thread before the answer of the call is delivered,
    /// so it must not block. A server may report without end: the listener bounds what it stores.
    fn stepped(&self, step: ToolStep);
}

/// Identifies a client: calls with the same tag belong to the same client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientTag(u64);

impl ClientTag {
    /// A new tag.
    pub fn unique() -> ClientTag {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        ClientTag(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The client of a run, in a process that serves many clients.
#[derive(Clone)]
pub struct CallingClient {
    /// Its identity.
    pub tag: ClientTag,
    /// Its owner. What one client answers to an upstream may reach other clients of the same owner.
    pub owner: u64,
    /// Its name for rules.
    pub identity: ClientIdentity,
    /// What it supports.
    pub offered: Offered,
    /// Where requests to it are sent while the run lasts; `None` if it cannot be asked.
    pub asked: Option<Arc<dyn ServedClient>>,
}

impl fmt::Debug for CallingClient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallingClient { tag, owner: _, identity: _, offered, asked: _ } = self;
        out.debug_struct("CallingClient").field("tag", tag).field("offered", offered).finish_non_exhaustive()
    }
}
