//! One program as its worker sees it: a task for coroutines, from the text in the queue to the freed isolate.
//! Everything that may take long happens in here: compiling, decoding the context and the answers of upstreams,
//! running, rendering the result, freeing.

use crate::engine::Engine;
use crate::exec::coroutine::Task;
use crate::exec::queue::{Inbox, Job, Reply};
use crate::guest::lisp::driver::{Execution, Progress};
use crate::run::account::RunAccount;
use ptc_vm::CallId;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A program, at some point of its life.
pub(crate) struct Work {
    context: Arc<RunAccount>,
    stage: Stage,
    /// Answers of upstreams that it has not looked at.
    pub(crate) replies: Vec<(CallId, Reply)>,
    /// Its watcher was told that it waits.
    waits: bool,
}

enum Stage {
    /// Not begun.
    New { job: Box<Job>, engine: Arc<Engine>, inbox: Arc<Inbox> },
    /// Boxed: an isolate is large, and the work moves from hand to hand.
    Begun(Box<Execution>),
    /// Nothing is left of it.
    Over,
}

impl Work {
    /// A program that begins with its first turn.
    pub(crate) fn new(
        job: Box<Job>,
        context: Arc<RunAccount>,
        engine: &Arc<Engine>,
        inbox: &Arc<Inbox>,
    ) -> Work {
        let stage = Stage::New { job, engine: engine.clone(), inbox: inbox.clone() };
        Work { context, stage, replies: Vec::new(), waits: false }
    }

    /// Logical bytes alive.
    pub(crate) fn live_bytes(&self) -> u64 {
        match &self.stage {
            Stage::Begun(execution) => execution.live_bytes(),
            Stage::New { .. } | Stage::Over => 0,
        }
    }

    fn begin(&mut self) {
        if let Stage::New { mut job, engine, inbox } = std::mem::replace(&mut self.stage, Stage::Over) {
            job.recipient.begun();
            if let Some(execution) = Execution::begin(*job, self.context.clone(), &engine, &inbox) {
                self.stage = Stage::Begun(Box::new(execution));
            }
        }
    }
}

impl Task for Work {
    type Done = Progress;

    fn run(&mut self) -> Progress {
        if matches!(self.stage, Stage::New { .. }) {
            self.begin();
        }
        let Stage::Begun(execution) = &mut self.stage else { return Progress::Finished };
        if std::mem::take(&mut self.waits) {
            execution.resumed();
        }
        for (call, reply) in std::mem::take(&mut self.replies) {
            execution.answer(call, reply);
        }
        let progress = execution.advance();
        match progress {
            Progress::Ready => {}
            Progress::Waiting => {
                self.waits = true;
                execution.suspended();
            }
            Progress::Finished => {
                if let Stage::Begun(execution) = std::mem::replace(&mut self.stage, Stage::Over) {
                    execution.close();
                }
            }
        }
        progress
    }

    fn abandon(&mut self, message: &str) -> Progress {
        // A job that was not begun went down with its recipient, who told its caller.
        if let Stage::Begun(mut execution) = std::mem::replace(&mut self.stage, Stage::Over) {
            let freed = catch_unwind(AssertUnwindSafe(|| {
                execution.abandon(message);
                execution.close();
            }));
            if freed.is_err() {
                tracing::error!("a defect while freeing a program");
            }
        }
        Progress::Finished
    }
}
