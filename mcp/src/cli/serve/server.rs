//! Builds and runs the server of `ptc serve`: starts its runtime, upstream servers and tools, answers clients, reloads
//! edited configuration files and resumes stored runs.

use super::ServeArgs;
use super::entrance::Entrance;
use super::facts::Described;
use super::last_input::LastInput;
use super::settings::Settings;
use crate::cli::boot::{Launched, launch};
use crate::cli::flags::agentic::TaskServers;
use crate::cli::policy::warnings;
use crate::cli::reload::ConfigFiles;
use crate::cli::runs::control;
use crate::cli::stop::{GRACE, input_gone};
use crate::cli::toolset::{ScriptParts, Toolset};
use ptc_base::files;
use ptc_calls::limits::Limits;
use ptc_calls::policy::ApprovalList;
use ptc_calls::tools::Catalog;
use ptc_engine::{Prelude, Runtime};
use ptc_server::console::{Abort, Exit};
use ptc_server::redact::{self, Form, shapes};
use ptc_server::server::http::{Access, Handlers, HttpListener};
use ptc_server::server::{DetachedRuns, Gate, Handler, OwnerRights, TakeEnded, stdio};
use ptc_server::tools::lisp_eval::Evaluator;
use ptc_server::tools::session::StoreAccess;
use ptc_server::tools::{Facts, execute_program, lisp_debug, lisp_run, lisp_task, proxy, session};
use ptc_server::ui::Page;
use ptc_upstream::Offered;
use serde::de::Error as _;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::watch;

/// Niceness of workers relative to the thread that reads HTTP requests, on machines where a core has to do
/// both.
///
/// The reading thread gets a core at once only while it is not ahead of the program in its CPU share. After
/// some work it is ahead, until the program has caught up: at five steps for a third of the work. More steps
/// shorten this, but every other process of the machine is then ahead of the workers: at fifteen steps, six
/// clients that ask for much made the slowest hundredth of a normal client's answers four times slower.
const HTTP_WORKER_NICENESS: u8 = 5;

/// A server in the making: its runtime is launched.
pub(super) struct ServerBuilder<'a> {
    args: &'a ServeArgs,
    settings: Settings,
    files: ConfigFiles,
    policy: ConfigFiles,
    pins: ConfigFiles,
    launched: Launched,
    prelude: Option<Arc<Prelude>>,
    stores: StoreAccess,
    limits: Limits,
    gate: Arc<Gate>,
    /// Subscribed before the first list of tools is made, so that no change is lost in between.
    changes: watch::Receiver<Arc<Catalog>>,
}

impl<'a> ServerBuilder<'a> {
    /// Reads configuration and preludes, and begins to start the upstream servers.
    pub(super) fn launch(
        args: &'a ServeArgs,
        settings: Settings,
        entrance: &Entrance,
    ) -> Result<ServerBuilder<'a>, Abort> {
        let files = ConfigFiles::followed(&args.upstreams, settings.config_reload)?;
        let policy = ConfigFiles::of_policy(&args.upstreams, settings.config_reload)?;
        let pins = ConfigFiles::of_pins(&args.upstreams, settings.config_reload)?;
        let prelude = args.preludes.prelude()?;
        let stores = args.store.access(prelude.is_some())?;
        let niceness = if entrance.is_http() { HTTP_WORKER_NICENESS } else { 0 };
        let launched = launch(&args.upstreams, prelude.clone(), niceness)?;
        let limits = args.limits.limits(launched.booted.has_upstreams)?;
        let runtime = &launched.booted.runtime;
        runtime.set_load(settings.capacity());
        let (gate, changes) = (settings.gate(), runtime.catalog_changes());
        Ok(ServerBuilder {
            args,
            settings,
            files,
            policy,
            pins,
            launched,
            prelude,
            stores,
            limits,
            gate,
            changes,
        })
    }

    /// Makes what the enabled tools need.
    pub(super) async fn tools(&self, entrance: &Entrance) -> Result<Toolset, Abort> {
        let ServerBuilder { args, limits, .. } = *self;
        let booted = &self.launched.booted;
        let (runtime, has_upstreams) = (&booted.runtime, booted.has_upstreams);
        let wanted = args.wanted()?;
        let wants = |name: &str| wanted.iter().any(|wanted| wanted == name);
        let scripts = if wants(execute_program::NAME) { Some(self.scripts().await?) } else { None };
        let spills = runtime.broker().spills();
        args.proxy.bound(spills)?;
        let proxy = match wants(proxy::NAME) {
            true => Some(args.proxy.parts(spills, args.upstreams.files.roots()?, entrance.is_http())?),
            false => None,
        };
        let sessions = if session::NAMES.into_iter().any(wants) {
            let (quotas, kept) = args.sessions.bounds()?;
            Some((quotas, kept, self.stores.clone()))
        } else {
            None
        };
        let read_only = self.settings.read_only;
        let servers = TaskServers { flags: &args.upstreams, has_upstreams, read_only };
        let tasks = args.agentic.tasks(runtime, limits, servers)?;
        let with_debug = wants(lisp_debug::NAME);
        if let Some(counts) = &entrance.counts {
            counts.watch(runtime.broker().policy().clone());
        }
        let recording = args.debug.recording(
            with_debug,
            entrance.counts.clone(),
            entrance.has_page(),
            runtime.secrets(),
        )?;
        let recorder = recording.as_ref().map(|recording| recording.recorder.clone());
        if recorder.as_ref().is_some_and(|recorder| recorder.logs_turns) {
            runtime.broker().hash_arguments();
        }
        let knows_clients = !entrance.is_http() || entrance.asks_for_tokens();
        let limited = self.settings.detached(limits.timeout_ms, knows_clients);
        let detached = DetachedRuns::new(limited, runtime.broker().durable().cloned());
        let exposed = args.exposed()?;
        let evaluator: Arc<dyn Evaluator> = runtime.clone();
        let taken: Vec<&str> =
            wanted.iter().map(String::as_str).chain([lisp_run::NAME, lisp_task::NAME]).collect();
        exposed
            .check(self.prelude.as_deref(), &evaluator, &taken)
            .map_err(|why| Abort::usage(format!("--expose: {why}")))?;
        Ok(Toolset {
            exposed,
            detached,
            wanted,
            limits,
            scripts,
            proxy,
            sessions,
            tasks,
            recorder,
            debug_bytes: recording.filter(|_| with_debug).map(|recording| recording.response_bytes),
            changes: has_upstreams,
        })
    }

    async fn scripts(&self) -> Result<ScriptParts, Abort> {
        let (args, booted) = (self.args, &self.launched.booted);
        let limits = args.python.limits(&args.limits, booted.has_upstreams, booted.execution)?;
        let engine = args.python.engine(&limits, self.settings.limits.total_bytes).await?;
        let sessions = if args.sessions.wants_tools()? { Some(args.sessions.bounds()?.0) } else { None };
        Ok(ScriptParts { engine, limits, sessions })
    }

    /// Serves until the client has gone or the server is stopped, then shuts everything down.
    pub(super) async fn serve(self, toolset: Toolset, entrance: Entrance) -> Result<Exit, Abort> {
        let booted = &self.launched.booted;
        let described = Described {
            booted,
            catalog_style: self.settings.catalog_style,
            profile: self.settings.profile,
            limits: self.limits,
            read_only: self.settings.read_only,
            prelude: self.prelude,
            is_private: entrance.asks_for_tokens(),
        };
        let facts = described.facts();
        let (publish, new_facts) = watch::channel(Arc::new(facts.clone()));
        let recorder = toolset.recorder.clone();
        let runs_scripts = toolset.scripts.is_some();
        let handler =
            toolset.handler(&booted.runtime, facts).map_err(|error| Abort::usage(error.to_string()))?;
        let is_http = entrance.is_http();
        if is_http {
            // With many clients, the clients with a running call are those that upstreams may ask.
            booted.runtime.client().serve_callers(Offered { elicitation: true, roots: true, urls: false });
        }
        entrance.announce(self.args.is_page)?;
        let Entrance { http, stop, .. } = entrance;
        let nodes = booted.runtime.broker().durable().filter(|runs| runs.is_shared());
        let questions = match nodes {
            Some(nodes) => Some(ApprovalList::in_database(nodes.clone())),
            None => files::state_folder().map(|state| ApprovalList::below(&state)),
        };
        let page = Page::new(&booted.runtime, recorder.clone(), questions);
        let (handler, longest) = (Arc::new(handler), self.settings.longest());
        // Clients may ask for them at once.
        let detached = toolset.detached.clone();
        let access = http.as_ref().map(|(_, access)| access);
        let rights = |owner| access.map_or(OwnerRights::All, |access| access.rights(owner));
        // Without HTTP no request asks other nodes.
        let ended = if nodes.is_some() && is_http { TakeEnded::OnDemand } else { TakeEnded::AtStart };
        let unfinished = detached.load(self.args.resumes()?, ended, rights).await;
        let resuming = handler.clone();
        let runs = booted.runtime.broker().durable().cloned();
        let asked = async {
            stop.asked().await;
            if let Some(runs) = &runs {
                runs.close();
            }
        };
        let mut serving = pin!(async {
            match http {
                Some((mut listener, access)) => {
                    listener.page = Some(Arc::new(page));
                    listener.runs = runs.clone();
                    let http = (listener, access);
                    serve_http(http, handler, toolset, &booted.runtime, &self.gate, new_facts, asked).await;
                    Ok(())
                }
                None => {
                    let input = LastInput { input: io::stdin(), runs: runs.clone() };
                    let output = redact::stdout(Form::Json(&shapes::MCP));
                    stdio::serve(handler, &self.gate, longest, input, output, new_facts, asked).await
                }
            }
        });
        // Requests that need no server are answered while mandatory servers start. They end when the start is
        // given up.
        let mut starting = pin!(self.launched.started());
        let started = tokio::select! {
            biased;
            started = &mut starting => started.map(|()| true),
            () = input_gone(), if !is_http => Ok(false),
            served = &mut serving => match served {
                Ok(()) => tokio::select! {
                    // A start that fails at once can still report why.
                    started = tokio::time::timeout(GRACE, starting) => started.unwrap_or(Ok(())),
                    () = stop.asked() => Ok(()),
                }.map(|()| false),
                Err(error) => Err(error.into()),
            },
        };
        let commands = control::serve(self.args.state.location()?, booted.runtime.clone());
        let served = match started {
            Ok(true) => {
                // The receiver is gone once the connection has ended.
                let _ = publish.send(Arc::new(described.facts()));
                described.warn_of_prelude(&mut String::new());
                detached.go_on(unfinished, &resuming);
                tokio::select! {
                    served = serving => served.map_err(Abort::from),
                    abort = booted.clash(), if runs_scripts => Err(abort),
                    () = warnings::follow(&booted.runtime, self.changes.clone()) => Ok(()),
                    () = described.follow(self.changes, publish) => Ok(()),
                    () = commands => Ok(()),
                    () = self.files.follow(&self.args.upstreams, &booted.runtime, stop.reloads.clone()) => Ok(()),
                    () = self.pins.follow_pins(&booted.runtime, stop.reloads.clone()) => Ok(()),
                    () = self.policy.follow_policy(&self.args.upstreams, &booted.runtime, stop.reloads.clone()) => Ok(()),
                }
            }
            Ok(false) => Ok(()),
            Err(abort) => Err(abort),
        };
        booted.runtime.shutdown().await;
        if let Some(recorder) = recorder {
            recorder.close(GRACE);
        }
        served.map(|()| Exit::Ok)
    }
}

async fn serve_http(
    (listener, access): (HttpListener, Access),
    handler: Arc<Handler>,
    toolset: Toolset,
    runtime: &Arc<Runtime>,
    gate: &Arc<Gate>,
    new_facts: watch::Receiver<Arc<Facts>>,
    stop: impl Future<Output = ()>,
) {
    let runtime = Arc::downgrade(runtime);
    let make = move |servers, facts| match runtime.upgrade() {
        Some(runtime) => toolset.part(&runtime, servers, facts),
        None => Err(serde_json::Error::custom("the server ends")),
    };
    let first = new_facts.borrow().clone();
    let handlers = Handlers::new(handler, first, Box::new(make));
    listener.serve(handlers, gate, access, new_facts, stop).await;
}
