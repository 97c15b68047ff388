//! The machine's `python3`: one warm process in a jail, from which a child is forked for each script.
//!
//! The jail has four layers, each of which must hold or no script is run: namespaces (user, process, network, mount and
//! others), Landlock, seccomp and limits of the process. It is made by the process itself (`jail.py`), because what
//! Python needs to read is known there; the filter of system calls is made here (`engine/filter.rs`).
//!
//! # Layout
//! - [`CPython`]: starts the warm process, again when it is lost
//! - `zygote`: the warm process: forking, killing, how scripts ended; `control`: what it is told
//! - `jail.py`, `zygote.py`, `program.py`, `main.py`: what runs there, one after the other as one text

mod control;
mod zygote;

use super::conversation::{self, Said};
use super::{Engine, Namespace, Printed, Script};
use crate::host::Host;
use crate::output;
use async_trait::async_trait;
use ptc_runtime::outcome::Failure;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use zygote::{Process, Ready, Zygote};

/// How scripts are held.
#[derive(Clone, Debug)]
pub struct Options {
    /// The interpreter.
    pub python: PathBuf,
    /// Whether scripts are jailed. Without, a script can do whatever this process can.
    pub jail: bool,
    /// Bytes that a script may have beyond what the interpreter itself needs.
    pub memory_bytes: u64,
    /// Seconds of processor time.
    pub cpu_seconds: u64,
}

/// The engine.
pub struct CPython {
    options: Options,
    description: String,
    /// `None` until it is needed.
    zygote: Mutex<Option<Arc<Zygote>>>,
}

impl CPython {
    /// Starts it, which shows whether the jail holds here.
    ///
    /// # Errors
    /// There is no such Python, it is too old, or a layer of the jail cannot be enforced: which, in one line.
    pub async fn start(options: Options) -> Result<CPython, String> {
        let zygote = Zygote::start(&options).await?;
        let Ready { version, layers } = zygote.ready();
        let held = if layers.is_empty() { "without a jail".to_owned() } else { layers.join(", ") };
        let description = format!("CPython {version}, {held}");
        Ok(CPython { options, description, zygote: Mutex::new(Some(Arc::new(zygote))) })
    }

    async fn zygote(&self) -> Result<Arc<Zygote>, Failure> {
        let mut zygote = self.zygote.lock().await;
        if let Some(warm) = zygote.as_ref().filter(|warm| !warm.is_lost()) {
            return Ok(warm.clone());
        }
        let new = Zygote::start(&self.options).await.map_err(|why| output::no_engine(&why))?;
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

    /// A warm process of its own, since each script has the memory of the one that it is forked from.
    fn apart(self: Arc<Self>) -> Arc<dyn Engine> {
        let (options, description) = (self.options.clone(), self.description.clone());
        Arc::new(CPython { options, description, zygote: Mutex::default() })
    }

    async fn run(&self, script: Script, host: Arc<Host>) -> Result<Printed, Failure> {
        let (process, mut channel) = self.fork(&host).await?;
        let said = conversation::hold(&mut channel, conversation::task(&script, false), &host).await.said;
        // Whoever reads on finds its end.
        drop(channel);
        ended(process, said).await
    }

    async fn namespace(&self, host: &Host) -> Result<Box<dyn Namespace>, Failure> {
        let (process, channel) = self.fork(host).await?;
        Ok(Box::new(KeptProcess { process: Some(process), channel }))
    }
}

/// A child that waits for its next script. Between two it has no processor.
struct KeptProcess {
    /// `None` when it is of no more use.
    process: Option<Process>,
    channel: UnixStream,
}

#[async_trait]
impl Namespace for KeptProcess {
    async fn run(&mut self, script: &Script, host: &Arc<Host>) -> Result<Printed, Failure> {
        let Some(process) = &self.process else {
            return Err(output::raised("RuntimeError: the process of the session has ended"));
        };
        process.resume();
        let talk = conversation::hold(&mut self.channel, conversation::task(script, true), host).await;
        match talk.said {
            Said::Printed(printed) if talk.is_even => {
                process.pause();
                Ok(printed)
            }
            Said::Raised(traceback) if talk.is_even => {
                process.pause();
                Err(output::raised(traceback))
            }
            said => match self.process.take() {
                Some(process) => {
                    // It was to wait for its next script: a last word that is none is a break of the channel.
                    let said = if matches!(said, Said::Gone) { said } else { Said::Nonsense };
                    ended(process, said).await
                }
                None => Err(output::raised("RuntimeError: the process of the session has ended")),
            },
        }
    }

    fn is_alive(&self) -> bool {
        self.process.is_some()
    }
}

/// How a script ended that has said its last word.
async fn ended(process: Process, said: Said) -> Result<Printed, Failure> {
    let status = match &said {
        Said::Printed(_) | Said::Raised(_) => process.ended().await,
        // Whoever closes the channel and lives on is ended.
        Said::Gone | Said::Nonsense => process.kill().await,
    };
    match (status, said) {
        (Some(0), Said::Printed(printed)) => Ok(printed),
        (Some(1), Said::Raised(traceback)) => Err(output::raised(traceback)),
        (Some(_), Said::Nonsense) => {
            Err(output::raised("RuntimeError: the script wrote into the channel of its tool calls"))
        }
        (Some(signal), _) if signal < 0 => Err(output::ended_by(-signal)),
        (Some(_), _) => Err(output::raised("RuntimeError: the script ended its process")),
        (None, _) => {
            Err(output::no_engine("the process of all scripts was lost; the next script has a new one"))
        }
    }
}
