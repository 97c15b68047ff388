//! Starts the asynchronous work of a program, such as its tool calls, on the I/O runtime, and bundles many pieces of
//! work into one task to save overhead.
//!
//! A program with a thousand calls hands out a thousand pieces of work within microseconds. A task for each would cost
//! more than most of them, so up to [`MOST`] share a task, and results that are ready together are delivered together.

use super::{CallId, Reply};
use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::FuturesUnordered;
use ptc_base::panics::{Contained, contained};
use std::cell::RefCell;
use std::sync::Arc;
use tokio::runtime::Handle;

/// Most pieces in one batch: few enough that the threads of the I/O runtime share the work of one program.
const MOST: usize = 32;

/// One piece. It ends without a reply when it is stopped, or when it panics.
type Piece = Abortable<Contained<dyn Future<Output = Reply> + Send>>;

/// Queues replies for the worker of the run.
pub(crate) type Deliver = Arc<dyn Fn(Vec<(CallId, Reply)>) + Send + Sync>;

/// Work under way. Dropping it stops the work.
pub struct TaskHandle(AbortHandle);

impl Drop for TaskHandle {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts work of a run on the I/O runtime, in batches.
pub struct Port {
    io: Handle,
    deliver: Deliver,
    /// Work that was handed out in this quantum and has not started yet.
    waiting: RefCell<Vec<(CallId, Piece)>>,
}

impl Port {
    pub(crate) fn new(io: Handle, deliver: Deliver) -> Port {
        Port { io, deliver, waiting: RefCell::default() }
    }

    /// Starts `work` on the I/O runtime; its reply reaches [`super::Guest::answer`]. It starts at the end of
    /// this quantum at the latest. Work of one run may share a task, so work that blocks its thread delays
    /// other work of the same run.
    #[must_use = "dropping it stops the work"]
    pub fn hand_out(&self, call: CallId, work: BoxFuture<'static, Reply>) -> TaskHandle {
        let (handle, registration) = AbortHandle::new_pair();
        self.waiting.borrow_mut().push((call, Abortable::new(contained(work), registration)));
        if self.waiting.borrow().len() == MOST {
            self.start();
        }
        TaskHandle(handle)
    }

    /// Starts the work that waits. Called at the end of each quantum, wherever the run was suspended.
    pub(crate) fn start(&self) {
        let waiting = self.waiting.take();
        if waiting.is_empty() {
            return;
        }
        let deliver = self.deliver.clone();
        let reply = async |(call, work): (CallId, Piece)| Some((call, work.await.ok()?.ok()?));
        let mut results = waiting.into_iter().map(reply).collect::<FuturesUnordered<_>>().ready_chunks(MOST);
        self.io.spawn(async move {
            while let Some(ready) = results.next().await {
                let ready: Vec<_> = ready.into_iter().flatten().collect();
                if !ready.is_empty() {
                    deliver(ready);
                }
            }
        });
    }
}
