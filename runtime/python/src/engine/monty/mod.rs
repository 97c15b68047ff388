//! An interpreter of our own binary: Monty, a subset of Python, in worker processes that are ended from outside.
//!
//! It has no files, sockets or processes to give to a script, so it needs no layer of the kernel; what it does not
//! bound itself (time inside of one operation, memory) is bounded by its process. A worker runs one script at a time
//! and is used again after one that ended in order, with a new namespace.
//!
//! # Layout
//! - [`Monty`]: the engine; `pool`: its processes
//! - [`serve`]: the program of a worker; `script`: one script there; `values`: JSON and its values; `rounding`:
//!   `round`; `failure`: tracebacks, and what the engine lacks

mod failure;
mod pool;
mod rounding;
mod script;
mod values;
mod worker;

pub use worker::serve;

use super::conversation::{self, Said};
use super::{Engine, Printed, Script};
use crate::host::Host;
use crate::output;
use async_trait::async_trait;
use pool::Pool;
use ptc_runtime::outcome::Failure;
use std::ffi::OsString;
use std::sync::Arc;

/// The engine.
pub struct Monty {
    pool: Pool,
}

/// What scripts miss, for whoever writes them.
const LACKS: &str = "The interpreter is a subset of Python (Monty): no inheritance or custom exceptions, no generators \
    (`yield`), no decorators such as property; of the standard library json, re, math, datetime, collections, itertools, \
    functools, dataclasses, typing and asyncio.gather.";

impl Monty {
    /// Starts a worker, which shows whether it can be. `program` is a command that calls [`serve`] with its last
    /// argument, the bytes of memory that a script may have.
    ///
    /// # Errors
    /// It cannot be started, in one line.
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

    async fn run(&self, script: Script, host: Arc<Host>) -> Result<Printed, Failure> {
        let mut worker = self.pool.take().map_err(|error| output::no_engine(&error.to_string()))?;
        let first = worker.news(&host.functions) + &conversation::task(&script);
        let talk = conversation::hold(&mut worker.channel, first, &host).await;
        match talk.said {
            Said::Printed(printed) => {
                if talk.is_even {
                    self.pool.put(worker);
                }
                Ok(printed)
            }
            Said::Raised(traceback) => {
                if talk.is_even {
                    self.pool.put(worker);
                }
                Err(output::raised(traceback))
            }
            Said::Nonsense => Err(output::raised("RuntimeError: the process of the script made no sense")),
            Said::Gone => Err(match worker.end().await {
                // Memory that cannot be had is an abort.
                Some(6) => output::ended_by(9),
                Some(signal) => output::ended_by(signal),
                None => output::raised("RuntimeError: the process of the script ended"),
            }),
        }
    }
}
