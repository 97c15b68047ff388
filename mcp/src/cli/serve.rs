//! `ptc serve`: an MCP server, over standard input and output or over HTTP.

use super::boot::{Booted, UpstreamFlags, launch};
use super::flags::agentic::{AgenticFlags, TaskServers};
use super::flags::catalog::CatalogFlags;
use super::flags::debug::{DebugFlags, Recording};
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
use super::{on_all_cores, on_runtime};
use crate::answer::caps::Profile;
use crate::console;
use crate::console::exit::{Abort, Exit};
use crate::edge::{self, Form, shapes};
use crate::server::http::HttpListener;
use crate::server::{Gate, Handler, Load, Surface, stdio};
use crate::tools::catalog::CatalogStyle;
use crate::tools::execute_program::{self, ExecuteProgram, ScriptSessions};
use crate::tools::lisp_debug::{self, LispDebug};
use crate::tools::lisp_eval;
use crate::tools::lisp_task;
use crate::tools::proxy::{self, ProxyDispatch};
use crate::tools::registry::MoreTools;
use crate::tools::session::{self, SessionTable};
use crate::tools::{Facts, Registry};
use clap::ValueEnum;
use ptc_runtime::limits::Limits;
use ptc_runtime::tools::Catalog;
use std::io::IsTerminal;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::watch;

/// Requests that wait to begin before no more are read, and bytes of them.
const QUEUED: usize = 8_192;
const QUEUED_BYTES: usize = 16 << 20;

const LISP_INSTRUCTIONS: &str = "Send one PTC-Lisp program to lisp_eval instead of many tool calls: it runs in a \
    sandbox with hard limits, calls the configured MCP servers with tool/call, and returns only its answer.";

const PYTHON_INSTRUCTIONS: &str = "Send one Python script to execute_program instead of many tool calls: it runs in a \
    sandbox with hard limits, awaits the tools of the configured MCP servers as functions, and returns only what it \
    prints.";

/// For somebody who types `ptc serve` to see what happens.
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

Configuration files may be edited at any time: servers that are new or changed start,
those that are gone end after their calls in flight, the others stay. A file that is
wrong changes nothing, and the log says so.")]
pub struct ServeArgs {
    /// How much of a run an answer shows [default: slim]
    #[arg(long, value_name = "PROFILE", value_enum)]
    response_profile: Option<Profile>,
    /// Which tools are offered, with commas: lisp_eval, execute_program, proxy-dispatch, lisp_debug, and those of
    /// sessions by their names; --sessions and --debug-tool add theirs [default: lisp_eval]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = tool_names())]
    tools: Vec<String>,
    /// When configuration files are read again; on SIGHUP only over HTTP, which is told so by it [default: watch]
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

/// Names that `--tools` knows.
fn tool_names() -> Vec<&'static str> {
    [lisp_eval::NAME, execute_program::NAME, proxy::NAME, lisp_debug::NAME]
        .into_iter()
        .chain(session::NAMES)
        .collect()
}

impl ServeArgs {
    /// Names of the tools that are offered.
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
    let profile = match args.response_profile {
        Some(profile) => Some(profile),
        None => variables::read("response-profile", |text| Profile::from_str(text, true))?,
    };
    let server = args.server.limits(false)?;
    let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let running = whole(server.running);
    let longest = whole(server.frame_bytes.max(1));
    let read_only = args.upstreams.read_only()?;
    let catalog_style = args.catalog.style()?;
    let plan = args.http.plan(server.frame_bytes.max(1))?;
    let counts = plan.as_ref().and_then(|plan| Some(plan.settings.metrics.as_ref()?.calls.clone()));
    let is_http = plan.is_some();
    let config_reload = match args.config_reload {
        Some(when) => when,
        None => {
            variables::read("config-reload", |text| ConfigReload::from_str(text, true))?.unwrap_or_default()
        }
    };
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
    let inventory = prelude.as_ref().and_then(|prelude| prelude.inventory()).map(Arc::from);
    let launched = launch(&args.upstreams, prelude)?;
    let booted = &launched.booted;
    let limits = args.limits.limits(booted.has_upstreams)?;
    booted.runtime.set_load(ptc_runtime::Capacity { running, total_bytes: server.total_bytes });
    let gate = Gate::new(Load {
        jobs: running.saturating_add(whole(server.suspended)),
        memory_bytes: server.total_bytes,
        queued: QUEUED,
        queued_bytes: QUEUED_BYTES,
    });
    // Followed from here on, so that no change falls between the first list and the first look.
    let changes = booted.runtime.catalog_changes();
    let described = Described {
        booted,
        catalog_style,
        profile: profile.unwrap_or_default(),
        limits,
        read_only,
        inventory,
    };
    let facts = described.facts();
    let (publish, new_facts) = watch::channel(Arc::new(facts.clone()));
    let wanted = args.wanted()?;
    let wants = |name: &str| wanted.iter().any(|wanted| wanted == name);
    let mut more = MoreTools::default();
    let scripts = wants(execute_program::NAME);
    if scripts {
        let limits = args.python.limits(limits, booted.execution)?;
        let engine = args.python.engine(&limits).await?;
        let tool = ExecuteProgram::new(booted.runtime.clone(), engine, limits);
        more.scripts = Some(match args.sessions.wants_tools()? {
            true => tool.with_sessions(ScriptSessions::new(args.sessions.bounds()?.0)),
            false => tool,
        });
    }
    let spills = booted.runtime.broker().spills();
    args.proxy.bound(spills)?;
    if wants(proxy::NAME) {
        let place = args.proxy.place(spills, args.upstreams.files.roots()?)?;
        more.proxy = Some(ProxyDispatch::new(booted.runtime.clone(), limits, place));
    }
    if session::NAMES.into_iter().any(wants) {
        let (quotas, kept) = args.sessions.bounds()?;
        more.sessions = Some(SessionTable::new(booted.runtime.clone(), quotas, kept, limits, stores));
    }
    let servers = TaskServers { has_upstreams: booted.has_upstreams, read_only };
    more.tasks = args.agentic.tasks(&booted.runtime, limits, servers)?;
    let with_debug = wants(lisp_debug::NAME);
    let recorder = args.debug.recording(with_debug, counts, booted.runtime.secrets())?.map(|recording| {
        let Recording { recorder, response_bytes } = recording;
        more.debug = with_debug.then(|| LispDebug::new(recorder.clone(), response_bytes));
        recorder
    });
    if recorder.as_ref().is_some_and(|recorder| recorder.logs_turns()) {
        booted.runtime.broker().hash_arguments();
    }
    let registry = Registry::of_server(booted.runtime.clone(), limits, more)
        .only(|name| wants(name) || name == lisp_task::NAME);
    let instructions: Vec<&str> =
        [(lisp_eval::NAME, LISP_INSTRUCTIONS), (execute_program::NAME, PYTHON_INSTRUCTIONS)]
            .into_iter()
            .filter_map(|(name, text)| registry.find(name).map(|_| text))
            .collect();
    let surface = Surface {
        registry,
        facts,
        changes: booted.has_upstreams,
        instructions: instructions.join("\n"),
        ready: booted.runtime.is_started(),
        recorder: recorder.clone(),
    };
    let handler = Handler::new(surface).map_err(|error| Abort::usage(error.to_string()))?;
    let handler = Arc::new(handler.passing_to_client(booted.runtime.client().clone()));
    if is_http {
        // None of many clients is the one that servers may ask.
        booted.runtime.client().nobody();
    }
    if let Some((listener, _)) = &over_http {
        console::complain(&format!("listening at {}", listener.url()));
    } else if std::io::stdin().is_terminal() {
        console::complain(AT_A_TERMINAL);
    }
    let mut serving = pin!(async {
        match over_http {
            Some((listener, access)) => {
                listener.serve(handler, &gate, access, new_facts, stop.asked()).await;
                Ok(())
            }
            None => {
                let output = edge::stdout(Form::Json(&shapes::MCP));
                let input = std::io::stdin();
                stdio::serve(handler, &gate, longest, input, output, new_facts, stop.asked()).await
            }
        }
    });
    // What needs no server is answered while those that have to start do; a start that is given up ends them.
    let mut starting = pin!(launched.started());
    let started = tokio::select! {
        biased;
        started = &mut starting => started.map(|()| true),
        () = input_gone(), if !is_http => Ok(false),
        served = &mut serving => match served {
            Ok(()) => tokio::select! {
                // One that fails at once still says why.
                started = tokio::time::timeout(GRACE, starting) => started.unwrap_or(Ok(())),
                () = stop.asked() => Ok(()),
            }.map(|()| false),
            Err(error) => Err(error.into()),
        },
    };
    let served = match started {
        Ok(true) => {
            // Nobody listens once the connection has ended.
            let _ = publish.send(Arc::new(described.facts()));
            tokio::select! {
                served = serving => served.map_err(Abort::from),
                abort = booted.clash(), if scripts => Err(abort),
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

/// What the facts behind the tool list are made of.
struct Described<'b> {
    booted: &'b Booted,
    catalog_style: CatalogStyle,
    profile: Profile,
    limits: Limits,
    read_only: bool,
    inventory: Option<Arc<str>>,
}

impl Described<'_> {
    fn facts(&self) -> Facts {
        Facts {
            catalog: self.booted.catalog(),
            catalog_style: self.catalog_style,
            max_calls: self.limits.max_upstream_calls,
            timeout_ms: self.limits.timeout_ms,
            profile: self.profile,
            read_only: self.read_only,
            inventory: self.inventory.clone(),
            ..Facts::default()
        }
    }

    /// Publishes them again whenever an upstream server has other tools than before. Never ends.
    async fn follow(&self, mut changes: watch::Receiver<Arc<Catalog>>, publish: watch::Sender<Arc<Facts>>) {
        let mut surface = changes.borrow().surface();
        while changes.changed().await.is_ok() {
            let now = changes.borrow_and_update().surface();
            if now != surface {
                surface = now;
                // Nobody listens once the connection has ended.
                let _ = publish.send(Arc::new(self.facts()));
            }
        }
        std::future::pending().await
    }
}
