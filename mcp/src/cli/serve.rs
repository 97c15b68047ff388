//! The command `ptc serve`: an MCP server over standard input and output, or over HTTP.

use super::boot::{Booted, UpstreamFlags, launch};
use super::flags::agentic::{AgenticFlags, TaskServers};
use super::flags::catalog::CatalogFlags;
use super::flags::debug::DebugFlags;
use super::flags::http::{HttpFlags, HttpPlan};
use super::flags::limits::LimitFlags;
use super::flags::prelude::{PreludeFlags, StoreFlags};
use super::flags::proxy::ProxyFlags;
use super::flags::python::PythonFlags;
use super::flags::server::ServerLimits;
use super::flags::session::SessionFlags;
use super::flags::variables;
use super::reload::{ConfigFiles, ConfigReload};
use super::stop::{GRACE, Stop, input_gone};
use super::toolset::{ScriptParts, Toolset};
use super::{on_all_cores, on_runtime};
use crate::answer::caps::Profile;
use crate::console;
use crate::console::exit::{Abort, Exit};
use crate::edge::{self, Form, shapes};
use crate::server::http::{Handlers, HttpListener};
use crate::server::{Gate, Load, Parking, stdio};
use crate::tools::catalog::CatalogStyle;
use crate::tools::{Facts, execute_program, lisp_debug, lisp_eval, proxy, session};
use ptc_runtime::Prelude;
use ptc_runtime::limits::Limits;
use ptc_runtime::tools::Catalog;
use ptc_runtime::upstream::Offered;
use serde::de::Error as _;
use std::io::IsTerminal;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Most requests that wait to begin before reading pauses, and most bytes of them.
const QUEUED: usize = 8_192;
const QUEUED_BYTES: usize = 16 << 20;

/// Niceness of workers relative to the thread that reads HTTP requests, on machines where a core has to do
/// both.
///
/// The reading thread gets a core at once only while it is not ahead of the program in its CPU share. After
/// some work it is ahead, until the program has caught up. At fifteen steps this takes a thirtieth of the
/// work. At five steps it took a third, and one request in a hundred waited for the system's next tick (1.5
/// to 2.5 ms).
const GIVING_WAY: u8 = 15;

/// Shown to a person who runs `ptc serve` at a terminal.
const AT_A_TERMINAL: &str = "ptc is an MCP server now: it waits for a client's messages on standard input, JSON, one a \
    line (Ctrl-D ends it)";

/// Arguments of `ptc serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc serve                                            sandbox only, no tools
  ptc serve --upstreams-config upstreams.json
  claude mcp add ptc -- ptc serve --upstreams-config ~/.mcp.json
  ptc serve --http 127.0.0.1:7332                      for many clients, over HTTP

Over standard input and output:
stdout carries MCP messages, one a line; logs go to stderr. At the end of input,
requests in flight are answered within 2 s, then the server exits with 0.
SIGINT, SIGTERM and SIGHUP do the same; a second one ends it at once. Over HTTP SIGHUP
reads configuration, tokens and certificate again, and no run notices.

Configuration files as hosts write them (`mcpServers`) may be edited at any time: servers
that are new or changed start, those that are gone end after their calls in flight, the
others stay. A file that is wrong changes nothing, and the log says so. Files whose servers
have to start (`upstreams`) are followed if --config-reload says so.")]
pub struct ServeArgs {
    /// How much of a run an answer shows [default: slim]
    #[arg(long, value_name = "PROFILE", value_enum)]
    response_profile: Option<Profile>,
    /// Which tools are offered, with commas: lisp_eval, execute_program, proxy-dispatch, lisp_debug, and those of
    /// sessions by their names; --sessions and --debug-tool add theirs [default: lisp_eval]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = tool_names())]
    tools: Vec<String>,
    /// When configuration files are read again; SIGHUP works only with --http [default: watch, but off for `upstreams`
    /// with servers that have to start]
    #[arg(long, value_name = "WHEN", value_enum)]
    config_reload: Option<ConfigReload>,
    #[command(flatten)]
    http: HttpFlags,
    #[command(flatten)]
    catalog: CatalogFlags,
    #[command(flatten)]
    preludes: PreludeFlags,
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    upstreams: UpstreamFlags,
    #[command(flatten)]
    python: PythonFlags,
    #[command(flatten)]
    sessions: SessionFlags,
    #[command(flatten)]
    proxy: ProxyFlags,
    #[command(flatten)]
    agentic: AgenticFlags,
    #[command(flatten)]
    debug: DebugFlags,
    #[command(flatten)]
    server: LimitFlags<ServerLimits>,
    #[command(flatten)]
    limits: LimitFlags,
}

/// The names that `--tools` accepts.
fn tool_names() -> Vec<&'static str> {
    [lisp_eval::NAME, execute_program::NAME, proxy::NAME, lisp_debug::NAME]
        .into_iter()
        .chain(session::NAMES)
        .collect()
}

impl ServeArgs {
    /// The names of the enabled tools.
    fn wanted(&self) -> Result<Vec<String>, Abort> {
        let mut wanted = match self.tools.is_empty() {
            true => vec![lisp_eval::NAME.to_owned()],
            false => self.tools.clone(),
        };
        if self.sessions.wants_tools()? {
            wanted.extend(session::NAMES.map(str::to_owned));
        }
        if self.debug.wants_tool()? {
            wanted.push(lisp_debug::NAME.to_owned());
        }
        Ok(wanted)
    }
}

/// Runs the command.
pub fn command(args: ServeArgs) -> Result<Exit, Abort> {
    match args.http.is_asked_for()? {
        true => on_all_cores(run(args)),
        false => on_runtime(run(args)),
    }
}

async fn run(args: ServeArgs) -> Result<Exit, Abort> {
    let profile = variables::given_or_read(args.response_profile, "response-profile", variables::word)?;
    let server = args.server.limits(false)?;
    let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let running = whole(server.running);
    let longest = whole(server.frame_bytes.max(1));
    let read_only = args.upstreams.read_only()?;
    let catalog_style = args.catalog.style()?;
    let plan = args.http.plan(server.frame_bytes.max(1))?;
    let counts = plan.as_ref().and_then(|plan| Some(plan.settings.metrics.as_ref()?.calls.clone()));
    let is_http = plan.is_some();
    let config_reload = variables::given_or_read(args.config_reload, "config-reload", variables::word)?;
    let over_http = match plan {
        Some(HttpPlan { settings, access, tls }) => {
            let address = settings.address;
            let listener = HttpListener::bind(settings)
                .await
                .map_err(|error| Abort::usage(format!("cannot listen at {address}: {error}")))?;
            Some((listener.over_tls(tls), access))
        }
        None => None,
    };
    let stop = Stop::listen(is_http);
    let over_http = over_http.map(|(listener, access)| (listener.reloading(stop.reloads()), access));
    let files = ConfigFiles::followed(&args.upstreams, config_reload)?;
    let prelude = args.preludes.prelude()?;
    let stores = args.store.access(prelude.is_some())?;
    let attached = prelude.clone();
    let launched = launch(&args.upstreams, prelude, if is_http { GIVING_WAY } else { 0 })?;
    let booted = &launched.booted;
    let limits = args.limits.limits(booted.has_upstreams)?;
    booted.runtime.set_load(ptc_runtime::Capacity { running, total_bytes: server.total_bytes });
    let gate = Gate::new(Load {
        jobs: running.saturating_add(whole(server.suspended)),
        memory_bytes: server.total_bytes,
        queued: QUEUED,
        queued_bytes: QUEUED_BYTES,
        parking: Parking { most: whole(server.parked), patience: Duration::from_millis(server.parked_ms) },
    });
    // Subscribes before the first list is made, so that no change is lost in between.
    let changes = booted.runtime.catalog_changes();
    let described = Described {
        booted,
        catalog_style,
        profile: profile.unwrap_or_default(),
        limits,
        read_only,
        prelude: attached,
        is_private: over_http.as_ref().is_some_and(|(_, access)| access.asks_for_tokens()),
    };
    let facts = described.facts();
    let (publish, new_facts) = watch::channel(Arc::new(facts.clone()));
    let wanted = args.wanted()?;
    let wants = |name: &str| wanted.iter().any(|wanted| wanted == name);
    let scripts = if wants(execute_program::NAME) {
        let limits = args.python.limits(&args.limits, booted.has_upstreams, booted.execution)?;
        let engine = args.python.engine(&limits).await?;
        let sessions = if args.sessions.wants_tools()? { Some(args.sessions.bounds()?.0) } else { None };
        Some(ScriptParts { engine, limits, sessions })
    } else {
        None
    };
    let spills = booted.runtime.broker().spills();
    args.proxy.bound(spills)?;
    let proxy = match wants(proxy::NAME) {
        true => Some(args.proxy.parts(spills, args.upstreams.files.roots()?, is_http)?),
        false => None,
    };
    let sessions = if session::NAMES.into_iter().any(wants) {
        let (quotas, kept) = args.sessions.bounds()?;
        Some((quotas, kept, stores))
    } else {
        None
    };
    let servers = TaskServers { flags: &args.upstreams, has_upstreams: booted.has_upstreams, read_only };
    let tasks = args.agentic.tasks(&booted.runtime, limits, servers)?;
    let with_debug = wants(lisp_debug::NAME);
    let recording = args.debug.recording(with_debug, counts, booted.runtime.secrets())?;
    let recorder = recording.as_ref().map(|recording| recording.recorder.clone());
    if recorder.as_ref().is_some_and(|recorder| recorder.logs_turns()) {
        booted.runtime.broker().hash_arguments();
    }
    let runs_scripts = scripts.is_some();
    let toolset = Toolset {
        wanted,
        limits,
        scripts,
        proxy,
        sessions,
        tasks,
        recorder: recorder.clone(),
        debug_bytes: recording.filter(|_| with_debug).map(|recording| recording.response_bytes),
        changes: booted.has_upstreams,
    };
    let handler = toolset.handler(&booted.runtime, facts).map_err(|error| Abort::usage(error.to_string()))?;
    let handler = Arc::new(handler);
    if is_http {
        // With many clients, the clients with a running call are those that upstreams may ask.
        booted.runtime.client().serve_callers(Offered { elicitation: true, roots: true });
    }
    if let Some((listener, _)) = &over_http {
        console::complain(&format!("listening at {}", listener.url()));
    } else if std::io::stdin().is_terminal() {
        console::complain(AT_A_TERMINAL);
    }
    let mut serving = pin!(async {
        match over_http {
            Some((listener, access)) => {
                let runtime = Arc::downgrade(&booted.runtime);
                let make = move |servers, facts| match runtime.upgrade() {
                    Some(runtime) => toolset.part(&runtime, servers, facts),
                    None => Err(serde_json::Error::custom("the server ends")),
                };
                let first = new_facts.borrow().clone();
                let handlers = Handlers::new(handler, first, Box::new(make));
                listener.serve(handlers, &gate, access, new_facts, stop.asked()).await;
                Ok(())
            }
            None => {
                let output = edge::stdout(Form::Json(&shapes::MCP));
                let input = std::io::stdin();
                stdio::serve(handler, &gate, longest, input, output, new_facts, stop.asked()).await
            }
        }
    });
    // Requests that need no server are answered while mandatory servers start. They end when the start is
    // given up.
    let mut starting = pin!(launched.started());
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
    let served = match started {
        Ok(true) => {
            // The receiver is gone once the connection has ended.
            let _ = publish.send(Arc::new(described.facts()));
            described.warn_of_prelude(&mut String::new());
            tokio::select! {
                served = serving => served.map_err(Abort::from),
                abort = booted.clash(), if runs_scripts => Err(abort),
                () = described.follow(changes, publish) => Ok(()),
                () = files.follow(&args.upstreams, &booted.runtime, stop.reloads()) => Ok(()),
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

/// The sources of the facts behind the tool list.
struct Described<'b> {
    booted: &'b Booted,
    catalog_style: CatalogStyle,
    profile: Profile,
    limits: Limits,
    read_only: bool,
    prelude: Option<Arc<Prelude>>,
    is_private: bool,
}

impl Described<'_> {
    fn facts(&self) -> Facts {
        let catalog = self.booted.runtime.catalog();
        let seen =
            |prelude: &Arc<Prelude>| prelude.seen_with(&catalog).map_or_else(|| prelude.clone(), Arc::new);
        Facts {
            catalog: self.booted.catalog(),
            catalog_style: self.catalog_style,
            max_calls: self.limits.max_upstream_calls,
            timeout_ms: self.limits.timeout_ms,
            profile: self.profile,
            read_only: self.read_only,
            prelude: self.prelude.as_ref().map(seen),
            is_private: self.is_private,
            ..Facts::default()
        }
    }

    /// Logs the unmet requirements of the prelude, once for each message.
    fn warn_of_prelude(&self, told: &mut String) {
        let missing = self.booted.runtime.check_prelude().err().map(|failure| failure.message);
        let missing = missing.unwrap_or_default();
        if !missing.is_empty() && missing != *told {
            tracing::warn!("no program can run: {missing}");
        }
        *told = missing;
    }

    /// Publishes the facts again whenever the tools of an upstream server change. Never ends.
    async fn follow(&self, mut changes: watch::Receiver<Arc<Catalog>>, publish: watch::Sender<Arc<Facts>>) {
        let mut surface = changes.borrow().surface();
        let mut told = self.booted.runtime.check_prelude().err().map(|it| it.message).unwrap_or_default();
        while changes.changed().await.is_ok() {
            let now = changes.borrow_and_update().surface();
            if now != surface {
                surface = now;
                self.warn_of_prelude(&mut told);
                // The receiver is gone once the connection has ended.
                let _ = publish.send(Arc::new(self.facts()));
            }
        }
        std::future::pending().await
    }
}
