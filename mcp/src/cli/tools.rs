//! The command `ptc tools`: starts the configured servers, and shows their states and tools or the documentation of one
//! tool.

use super::OutputFormat;
use super::boot::{Booted, Need, UpstreamFlags, boot};
use ptc_calls::options::RunOptions;
use ptc_calls::tools::nearest;
use ptc_calls::tools::text::{count, list_entry, one_line};
use ptc_engine::ServerStatus;
use ptc_server::answer::outcome::millis;
use ptc_server::console;
use ptc_server::console::exit::{Abort, Exit};
use ptc_server::console::style::Style;
use ptc_server::redact::visible_line;
use ptc_upstream::UpstreamState;
use serde_json::{Value, json};

/// Arguments of `ptc tools`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc tools
  ptc tools fs/read_text_file
  ptc tools --upstreams-config .mcp.json --output json

Every server that is asked for is started, also when one fails. Exit codes: 0 all are ready, 2 configuration error,
3 at least one did not start.")]
pub struct ToolsArgs {
    /// Only this server, or everything there is to know about one tool
    #[arg(value_name = "SERVER[/TOOL]")]
    which: Option<String>,
    /// How to write the list
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    upstreams: UpstreamFlags,
}

/// Runs the command.
pub async fn run(args: ToolsArgs) -> Result<Exit, Abort> {
    let which = args.which.as_deref().map(|which| which.split_once('/').unwrap_or((which, "")));
    let booted =
        boot(&args.upstreams, which.map_or(Need::State, |(server, _)| Need::StateOf(server)), 1).await?;
    let mut servers = booted.runtime.servers();
    if let Some((server, tool)) = which {
        servers.retain(|status| &*status.name == server);
        if servers.is_empty() {
            booted.runtime.shutdown().await;
            let known = booted.runtime.servers();
            let known: Vec<&str> = known.iter().map(|status| &*status.name).collect();
            return Err(Abort::usage(format!("no server {server} is configured{}", meant(server, &known))));
        }
        if !tool.is_empty() && is_ready(&servers[0]) {
            return document(&booted, &mut servers, tool, args.output).await;
        }
    }
    booted.runtime.shutdown().await;
    match args.output {
        OutputFormat::Text => console::write(&text_report(booted.has_upstreams, &servers))?,
        OutputFormat::Json => console::write_json(&json_report(&servers))?,
    }
    Ok(if servers.iter().all(is_ready) { Exit::Ok } else { Exit::Upstream })
}

/// The nearest of the known names, or else all of them.
fn meant(wanted: &str, known: &[&str]) -> String {
    match nearest(wanted, known) {
        Some(near) => format!("; did you mean {near}?"),
        None if known.is_empty() => "; there are none".to_owned(),
        None => format!("; there are {}", one_line(&known.join(", "), LISTED)),
    }
}

/// Characters of a list of names.
const LISTED: usize = 600;

/// Writes the documentation of one tool, as `doc` gives it to programs.
async fn document(
    booted: &Booted,
    servers: &mut [ServerStatus],
    tool: &str,
    output: OutputFormat,
) -> Result<Exit, Abort> {
    let name = Value::from(format!("{}/{tool}", servers[0].name));
    let outcome = booted
        .runtime
        .run(format!("(doc {name})"), RunOptions { want_json: true, ..RunOptions::default() })
        .await;
    booted.runtime.shutdown().await;
    let known: Vec<&str> = servers[0].tools.iter().map(|known| &*known.name).collect();
    if !known.contains(&tool) {
        let server = &servers[0].name;
        return Err(Abort::usage(format!("{server} has no tool {tool}{}", meant(tool, &known))));
    }
    servers[0].tools.retain(|known| *known.name == *tool);
    match (output, outcome.result) {
        (OutputFormat::Json, _) => console::write_json(&json_report(servers))?,
        (OutputFormat::Text, Ok(answer)) => {
            let text =
                answer.json.and_then(Result::ok).and_then(|json| serde_json::from_str::<String>(&json).ok());
            console::write_line(text.as_deref().unwrap_or(&answer.text))?;
        }
        (OutputFormat::Text, Err(failure)) => {
            return Err(Abort { exit: Exit::ProgramFailed, message: failure.message });
        }
    }
    Ok(Exit::Ok)
}

fn is_ready(server: &ServerStatus) -> bool {
    server.state == UpstreamState::Ready
}

/// Characters of a description that a narrow terminal shows all the same.
const SHORTEST: usize = 30;

fn text_width(text: &str) -> usize {
    text.chars().count()
}

fn text_report(has_upstreams: bool, servers: &[ServerStatus]) -> String {
    let style = Style::stdout();
    let mut report = String::new();
    if !has_upstreams {
        report.push_str(
            "no servers are configured; `ptc add` adds one, `ptc config import` those of other hosts\n",
        );
    }
    for server in servers {
        let state = server.state.name();
        let state = if is_ready(server) { style.green(state) } else { style.red(state) };
        let start = server.start_duration.map(|time| format!(", {} ms", millis(time))).unwrap_or_default();
        let name = style.bold(&server.name);
        report.push_str(&format!("{name} {state}, {}{start}\n", count(server.tools.len())));
        if let Some(error) = &server.error {
            report.push_str(&format!("  {}\n", style.red(&visible_line(error))));
        }
        for tool in &server.tools {
            let name = style.cyan(&visible_line(&tool.name));
            let (signature, description) = list_entry(tool);
            let signature = visible_line(&signature);
            let taken = 4 + text_width(&tool.name) + text_width(&signature);
            let room = console::terminal_width().map(|width| width.saturating_sub(taken).max(SHORTEST));
            let description = room
                .map_or_else(|| visible_line(&description).into_owned(), |room| one_line(&description, room));
            let description = style.dim(&description);
            report.push_str(&format!("  {name} {signature} {description}\n"));
        }
        for note in &server.notes {
            report.push_str(&format!("  note: {}\n", visible_line(note)));
        }
    }
    report
}

fn json_report(servers: &[ServerStatus]) -> Value {
    let servers: Vec<Value> = servers
        .iter()
        .map(|server| {
            let tools: Vec<Value> = server
                .tools
                .iter()
                .map(|tool| {
                    json!({
                        "name": tool.name, "description": tool.description,
                        "input_schema": tool.input_schema, "effect": tool.effect().name(),
                    })
                })
                .collect();
            json!({
                "name": server.name, "description": server.description, "state": server.state.name(),
                "error": server.error, "start_ms": server.start_duration.map(millis),
                "server_info": server.server_info, "protocol": server.protocol, "tools": tools,
                "notes": server.notes,
            })
        })
        .collect();
    json!({ "servers": servers })
}
