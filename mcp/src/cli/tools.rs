//! `ptc tools`: configured servers, their state and their tools.

use super::OutputFormat;
use super::boot::{Need, UpstreamFlags, boot};
use crate::answer::caps::cut;
use crate::answer::profile::millis;
use crate::console;
use crate::console::exit::{Abort, Exit};
use crate::console::style::Style;
use ptc_runtime::ServerStatus;
use ptc_runtime::tools::text::arguments;
use ptc_runtime::upstream::UpstreamState;
use serde_json::{Value, json};

/// Arguments of `ptc tools`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc tools
  ptc tools --upstreams-config .mcp.json --output json

Every server is started, also when one fails. Exit codes: 0 all are ready, 2 configuration error,
3 at least one did not start.")]
pub struct ToolsArgs {
    /// How to write the list
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    upstreams: UpstreamFlags,
}

/// Runs the command.
pub async fn run(args: ToolsArgs) -> Result<Exit, Abort> {
    let booted = boot(&args.upstreams, Need::State, 1).await?;
    let servers = booted.runtime.servers();
    booted.runtime.shutdown().await;
    match args.output {
        OutputFormat::Text => console::write(&text_report(booted.has_upstreams, &servers))?,
        OutputFormat::Json => console::write_json(&json_report(&servers))?,
    }
    Ok(if servers.iter().all(is_ready) { Exit::Ok } else { Exit::Upstream })
}

fn is_ready(server: &ServerStatus) -> bool {
    server.state == UpstreamState::Ready
}

fn text_report(has_upstreams: bool, servers: &[ServerStatus]) -> String {
    let style = Style::stdout();
    let mut report = String::new();
    if !has_upstreams {
        report.push_str("no upstream servers are configured (`ptc --help` says where they are looked up)\n");
    }
    for server in servers {
        let state = server.state.name();
        let state = if is_ready(server) { style.green(state) } else { style.red(state) };
        let start = server.start_duration.map(|time| format!(", {} ms", millis(time))).unwrap_or_default();
        let name = style.bold(&server.name);
        report.push_str(&format!("{name} {state}, {} tools{start}\n", server.tools.len()));
        if let Some(error) = &server.error {
            report.push_str(&format!("  {}\n", style.red(error)));
        }
        for tool in &server.tools {
            let name = style.cyan(&tool.name);
            let signature = arguments(&tool.input_schema);
            let description =
                tool.description.as_deref().and_then(|text| text.lines().next()).unwrap_or_default();
            let description = style.dim(cut(description, 100).0);
            report.push_str(&format!("  {name} {signature} {description}\n"));
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
            })
        })
        .collect();
    json!({ "servers": servers })
}
