//! The command `ptc serve`: an MCP server over standard input and output, or over HTTP.
//!
//! - here: its arguments, and the steps in which the server is built.
//! - `settings`: what the flags say. `entrance`: where messages come in. `server`: the server that is built.
//!   `facts`: what the list of tools says. `last_input`: an input whose end is that of the process.

mod entrance;
mod facts;
mod last_input;
mod server;
mod settings;

use super::boot::UpstreamFlags;
use super::flags::agentic::AgenticFlags;
use super::flags::catalog::CatalogFlags;
use super::flags::debug::DebugFlags;
use super::flags::http::HttpFlags;
use super::flags::limits::LimitFlags;
use super::flags::prelude::{PreludeFlags, StoreFlags};
use super::flags::proxy::ProxyFlags;
use super::flags::python::PythonFlags;
use super::flags::server::ServerLimits;
use super::flags::session::SessionFlags;
use super::flags::variables;
use super::reload::ConfigReload;
use super::replay::record::RecordFlags;
use super::runs::state::StateFlags;
use super::{on_all_cores, on_runtime};
use entrance::Entrance;
use ptc_server::answer::caps::Profile;
use ptc_server::console::{Abort, Exit};
use ptc_server::tools::exposed::ExposedNames;
use ptc_server::tools::{execute_program, lisp_debug, lisp_eval, proxy, session};
use server::ServerBuilder;
use settings::Settings;

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
reads configuration, tokens and certificate again.

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
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = tool_names(),
        hide_possible_values = true)]
    tools: Vec<String>,
    /// Exports of preludes that are tools of their own, with commas: those with :tool in their metadata, as `crm/get-user`,
    /// or `crm/*` for all of a namespace. Their names are like `crm_get-user`
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    expose: Vec<String>,
    /// When configuration files are read again; SIGHUP works only with --http [default: watch, but off for `upstreams`
    /// with servers that have to start]
    #[arg(long, value_name = "WHEN", value_enum)]
    config_reload: Option<ConfigReload>,
    #[command(flatten)]
    record: RecordFlags,
    #[command(flatten)]
    state: StateFlags,
    /// Whether a server goes on with stored tasks and runs with a run_id when it starts (auto); `ptc runs resume` goes on with any run [default: auto]
    #[arg(long, value_name = "WHEN", value_enum, hide_possible_values = true)]
    resume: Option<ResumeFlag>,
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
    /// The command is `ptc ui`: its answer is the link to the page.
    #[arg(skip)]
    pub(super) is_page: bool,
}

/// `--resume`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum ResumeFlag {
    /// When the server starts.
    #[default]
    Auto,
    /// Only by `ptc runs resume`.
    Never,
}

/// The names that `--tools` accepts.
fn tool_names() -> Vec<&'static str> {
    [lisp_eval::NAME, execute_program::NAME, proxy::NAME, lisp_debug::NAME]
        .into_iter()
        .chain(session::NAMES)
        .collect()
}

impl ServeArgs {
    /// Exports that are tools of their own.
    fn exposed(&self) -> Result<ExposedNames, Abort> {
        if !self.expose.is_empty() {
            return Ok(ExposedNames::new(self.expose.clone()));
        }
        let read = variables::read("expose", variables::text)?.unwrap_or_default();
        let names = read.split(',').map(str::trim).filter(|name| !name.is_empty());
        Ok(ExposedNames::new(names.map(str::to_owned).collect()))
    }

    /// Whether stored runs go on when the server starts.
    fn resumes(&self) -> Result<bool, Abort> {
        let when = variables::given_or_read(self.resume, "resume", variables::word)?;
        Ok(when.unwrap_or_default() == ResumeFlag::Auto)
    }

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

/// Builds the server in steps, each of which needs those before it, and serves until it is stopped. The entrance comes
/// first: an address that cannot be used ends the command before any server is started.
async fn run(mut args: ServeArgs) -> Result<Exit, Abort> {
    let (settings, http) = Settings::read(&args)?;
    let entrance = Entrance::open(http).await?;
    args.upstreams.recorder = args.record.recorder()?;
    args.upstreams.state = args.state.runs().await?;
    let logins = &mut args.upstreams.logins;
    logins.serves_many = entrance.serves_many();
    logins.callers_log_in = entrance.asks_for_tokens() && !logins.serves_many;
    let builder = ServerBuilder::launch(&args, settings, &entrance)?;
    let tools = builder.tools(&entrance).await?;
    builder.serve(tools, entrance).await
}
