//! Executes scripts with the machine's `python3`: one warm process in a jail, which forks a child for each script.
//!
//! The jail has four layers, and no script runs unless all of them hold: namespaces (user, process, network,
//! mount and others), Landlock, seccomp and process limits. The process builds the jail itself (`jail.py`),
//! because it knows which files Python must read. The filter of system calls is made by this
//! process (`engine/filter.rs`).
//!
//! # Layout
//! - [`CPython`]: starts the warm process, again when it is lost
//! - `zygote`: the warm process: forking, killing, exit statuses; `control`: its orders; `memory`: what scripts hold
//! - `jail.py`, `zygote.py`, `program.py`, `channel.py`, `event_loop.py`, `results.py`, `main.py`: the program of the
//!   warm process, in this order as one text

mod control;
mod memory;
mod zygote;

use super::conversation::{self, ScriptEnd};
use super::{Engine, Namespace, Script, ScriptOutput};
use crate::host::Host;
use crate::output;
use async_trait::async_trait;
use memory::SharedTotal;
use ptc_calls::outcome::Failure;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use zygote::{Process, Ready, Zygote};

/// Settings of the isolation and the limits of scripts.
#[derive(Clone, Debug)]
pub struct Options {
    /// The interpreter.
    pub python: PathBuf,
    /// Whether scripts are jailed. Without a jail a script can do anything that this process can.
    pub jail: bool,
    /// Bytes of memory that a script may use beyond those of the interpreter.
    pub memory_bytes: u64,
    /// Bytes of memory that all script processes may use together.
    pub total_bytes: u64,
    /// Seconds of processor time.
    pub cpu_seconds: u64,
}

/// The engine.
pub struct CPython {
    options: Options,
    description: String,
    total: Arc<SharedTotal>,
    /// `None` until it is needed.
    zygote: Mutex<Option<Arc<Zygote>>>,
}

impl CPython {
    /// Starts the warm process, which shows whether the jail holds on this machine.
    ///
    /// # Errors
    /// One line: no such Python, a version that is too old, or the layer of the jail that cannot be enforced.
    pub async fn start(options: Options) -> Result<CPython, String> {
        let total = Arc::new(SharedTotal::new(options.total_bytes));
        let zygote = Zygote::start(&options, total.clone()).await?;
        let Ready { version, layers } = &zygote.ready;
        let isolation = if layers.is_empty() { "without a jail".to_owned() } else { layers.join(", ") };
        let description = format!("CPython {version}, {isolation}");
        Ok(CPython { options, description, total, zygote: Mutex::new(Some(Arc::new(zygote))) })
    }

    async fn zygote(&self) -> Result<Arc<Zygote>, Failure> {
        let mut zygote = self.zygote.lock().await;
        if let Some(warm) = zygote.as_ref().filter(|warm| !warm.is_lost()) {
            return Ok(warm.clone());
        }
        let new =
            Zygote::start(&self.options, self.total.clone()).await.map_err(|why| output::no_engine(&why))?;
        Ok(zygote.insert(Arc::new(new)).clone())
    }

    async fn fork(&self, host: &Host) -> Result<(Process, UnixStream), Failure> {
        let zygote = self.zygote().await?;
        zygote.fork(&host.functions).map_err(|error| output::no_engine(&error.to_string()))
    }
}

#[async_trait]
impl Engine for CPython {
    fn describe(&self) -> String {
        self.description.clone()
    }

    /// The copy has a warm process of its own, because a script inherits the memory of the process that it is
    /// forked from.
    fn for_other_owners(self: Arc<Self>) -> Arc<dyn Engine> {
        let (options, description) = (self.options.clone(), self.description.clone());
        Arc::new(CPython { options, description, total: self.total.clone(), zygote: Mutex::default() })
    }

    async fn run(&self, script: Script, host: Arc<Host>) -> Result<ScriptOutput, Failure> {
        let (process, mut channel) = self.fork(&host).await?;
        let end =
            conversation::serve_script(&mut channel, conversation::task(&script, false), &host).await.end;
        // The other end reads the end of the channel.
        drop(channel);
        ended(process, end).await
    }

    async fn namespace(&self, host: &Host) -> Result<Box<dyn Namespace>, Failure> {
        let (process, channel) = self.fork(host).await?;
        Ok(Box::new(RetainedProcess { process: Some(process), channel }))
    }
}

/// A child that waits for its next script. It is stopped in between.
struct RetainedProcess {
    /// `None` when the process cannot be used any more.
    process: Option<Process>,
    channel: UnixStream,
}

#[async_trait]
impl Namespace for RetainedProcess {
    async fn run(&mut self, script: &Script, host: &Arc<Host>) -> Result<ScriptOutput, Failure> {
        let Some(process) = self.process.take() else {
            return Err(output::raised("RuntimeError: the process of the session has ended"));
        };
        process.set_paused(false);
        let served =
            conversation::serve_script(&mut self.channel, conversation::task(script, true), host).await;
        match served.end {
            ScriptEnd::Printed(printed) if served.in_step => {
                process.set_paused(true);
                self.process = Some(process);
                Ok(printed)
            }
            ScriptEnd::Raised(traceback) if served.in_step => {
                process.set_paused(true);
                self.process = Some(process);
                Err(output::raised(traceback))
            }
            end => {
                // The process should wait for its next script, so a script that ended it has broken the protocol.
                let is_known = matches!(end, ScriptEnd::Closed | ScriptEnd::Unread);
                ended(process, if is_known { end } else { ScriptEnd::InvalidLine }).await
            }
        }
    }

    fn is_alive(&self) -> bool {
        self.process.is_some()
    }
}

/// The result of a script after its last line, with the exit status of its process.
async fn ended(process: Process, end: ScriptEnd) -> Result<ScriptOutput, Failure> {
    let status = match &end {
        ScriptEnd::Printed(_) | ScriptEnd::Raised(_) => process.ended().await,
        // A process that has closed the channel, but lives on, is killed.
        ScriptEnd::Closed | ScriptEnd::Unread | ScriptEnd::InvalidLine => process.kill().await,
    };
    match (status, end) {
        (Some(0), ScriptEnd::Printed(printed)) => Ok(printed),
        (Some(1), ScriptEnd::Raised(traceback)) => Err(output::raised(traceback)),
        (Some(_), ScriptEnd::Unread) => Err(output::raised(output::UNREAD)),
        (Some(_), ScriptEnd::InvalidLine) => {
            Err(output::raised("RuntimeError: the script wrote into the channel of its tool calls"))
        }
        (Some(signal), _) if signal < 0 => Err(output::ended_by(-signal)),
        (Some(_), _) => Err(output::raised("RuntimeError: the script ended its process")),
        (None, _) => {
            Err(output::no_engine("the process of all scripts was lost; the next script has a new one"))
        }
    }
}
