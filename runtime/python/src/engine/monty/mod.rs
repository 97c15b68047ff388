//! Implements the script engine Monty: an interpreter for a subset of Python that runs in worker processes of this
//! binary.
//!
//! It gives scripts no files, sockets or processes, so it needs no isolation by the kernel. Where the kernel
//! has Landlock and seccomp, they confine a worker too, in case the interpreter has a defect. The process
//! bounds what the interpreter does not: the time of one operation, and memory. A worker runs one script at a
//! time. After an orderly end it runs another one in a new namespace.
//!
//! # Layout
//! - [`Monty`]: the engine; `pool`: its processes
//! - [`serve`]: the program of a worker; `script`: one script there; `values`: JSON and its values;
//!   `rounding`: `round`; `failure`: tracebacks and missing features

mod failure;
mod pool;
mod rounding;
mod script;
mod values;
mod worker;

pub use worker::serve;

use super::conversation::{self, ScriptEnd};
use super::{Engine, Namespace, Script, ScriptOutput};
use crate::host::Host;
use crate::output;
use async_trait::async_trait;
use pool::{Pool, Worker};
use ptc_calls::outcome::Failure;
use std::ffi::OsString;
use std::sync::Arc;

/// The engine.
pub struct Monty {
    pool: Pool,
}

/// Missing features, for authors of scripts.
const LACKS: &str = "The interpreter is a subset of Python (Monty): no inheritance or custom exceptions, no generators \
    (`yield`), no decorators such as property; of the standard library json, re, math, datetime, collections, itertools, \
    functools, dataclasses, typing and asyncio.gather.";

impl Monty {
    /// Starts a worker, which shows whether workers can run. `program` is a command that calls [`serve`] with
    /// its last argument, the bytes of memory that a script may have.
    ///
    /// # Errors
    /// One line: why a worker cannot start.
    pub fn start(program: Vec<OsString>, memory_bytes: u64) -> Result<Monty, String> {
        let pool = Pool::new(program, memory_bytes);
        let worker =
            pool.take().map_err(|error| format!("the worker of scripts cannot be started: {error}"))?;
        pool.put(worker);
        Ok(Monty { pool })
    }
}

#[async_trait]
impl Engine for Monty {
    fn describe(&self) -> String {
        format!("Monty {}, in processes of its own with limits", monty_types::MONTY_VERSION)
    }

    fn lacks(&self) -> Option<&'static str> {
        Some(LACKS)
    }

    /// The same engine: a script only sees its own namespace.
    fn for_other_owners(self: Arc<Self>) -> Arc<dyn Engine> {
        self
    }

    async fn run(&self, script: Script, host: Arc<Host>) -> Result<ScriptOutput, Failure> {
        let mut worker = Some(self.pool.take().map_err(|error| output::no_engine(&error.to_string()))?);
        let result = execute(&mut worker, &script, false, &host).await;
        if let Some(worker) = worker {
            self.pool.put(worker);
        }
        result
    }

    async fn namespace(&self, _: &Host) -> Result<Box<dyn Namespace>, Failure> {
        let worker = self.pool.take().map_err(|error| output::no_engine(&error.to_string()))?;
        Ok(Box::new(RetainedWorker(Some(worker))))
    }
}

/// A worker with a retained namespace, which never goes back to the pool.
struct RetainedWorker(Option<Worker>);

#[async_trait]
impl Namespace for RetainedWorker {
    async fn run(&mut self, script: &Script, host: &Arc<Host>) -> Result<ScriptOutput, Failure> {
        execute(&mut self.0, script, true, host).await
    }

    fn is_alive(&self) -> bool {
        self.0.is_some()
    }
}

/// Executes a script. Takes the worker out when it cannot be used again.
async fn execute(
    place: &mut Option<Worker>,
    script: &Script,
    keep: bool,
    host: &Arc<Host>,
) -> Result<ScriptOutput, Failure> {
    let Some(mut worker) = place.take() else {
        return Err(output::raised("RuntimeError: the process of the session has ended"));
    };
    let first = worker.news(&host.functions) + &conversation::task(script, keep);
    let served = conversation::serve_script(&mut worker.channel, first, host).await;
    let result = match served.end {
        ScriptEnd::Printed(printed) => Ok(printed),
        ScriptEnd::Raised(traceback) => Err(output::raised(traceback)),
        ScriptEnd::Unread => Err(output::raised(output::UNREAD)),
        ScriptEnd::InvalidLine => {
            Err(output::raised("RuntimeError: the process of the script made no sense"))
        }
        ScriptEnd::Closed => {
            return Err(match worker.end().await {
                // Running out of memory aborts the process. Writing the abort's message may hit the file size
                // limit first (SIGXFSZ).
                Some(6 | 25) => output::ended_by(9),
                Some(signal) => output::ended_by(signal),
                None => output::raised("RuntimeError: the process of the script ended"),
            });
        }
    };
    if served.in_step {
        *place = Some(worker);
    }
    result
}
