//! The client of a run, whom servers may ask that the run calls: for what a person fills in (elicitation), and for the
//! folders that it works in (roots).

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the client offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// It shows forms to a person.
    pub elicitation: bool,
    /// It names the folders that it works in.
    pub roots: bool,
}

/// Why there is no answer of a client: a JSON-RPC error without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// 0 when there is none that fits.
    pub code: i64,
    /// Never empty.
    pub message: String,
}

/// The answer of a client: JSON text of its result, or its error, or why there is none.
pub type ClientAnswer = Pin<Box<dyn Future<Output = Result<String, ClientError>> + Send>>;

/// Takes requests of servers to the client.
pub trait ServedClient: Send + Sync {
    /// Sends a request with these parameters, JSON text. Dropping the future takes it back.
    fn ask(self: Arc<Self>, method: &'static str, params: String) -> ClientAnswer;
}

/// Which client. Calls with the same tag are of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientTag(u64);

impl ClientTag {
    /// One more client.
    pub fn unique() -> ClientTag {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        ClientTag(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The client of a run, in a process that serves many.
#[derive(Clone)]
pub struct CallingClient {
    /// Which.
    pub tag: ClientTag,
    /// Whose it is: what is told to a server on behalf of one client may reach other clients of the same owner.
    pub owner: u64,
    /// What it offers.
    pub offered: Offered,
    /// Where it is asked while the run lasts, if it can be.
    pub asked: Option<Arc<dyn ServedClient>>,
}

impl fmt::Debug for CallingClient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallingClient { tag, owner: _, offered, asked: _ } = self;
        out.debug_struct("CallingClient").field("tag", tag).field("offered", offered).finish_non_exhaustive()
    }
}
