//! The command `ptc doctor`, which checks the configuration and every server and names a remedy for each
//! finding.

pub(super) mod remedy;

use crate::cli::OutputFormat;
use crate::cli::boot::{Booted, LoadError, Need, UpstreamFlags, boot_with};
use crate::cli::flags::prelude::PreludeFlags;
use crate::cli::flags::python::{PythonFlags, REMEDY};
use ptc_base::net::Url;
use ptc_base::process;
use ptc_engine::ServerStatus;
use ptc_server::answer::outcome::millis;
use ptc_server::console::{self, Abort, Exit, Style};
use ptc_server::redact;
use ptc_upstream::config::{self, ServerEntry};
use ptc_upstream::{UpstreamState, is_openapi_document};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Arguments of `ptc doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc doctor
  ptc doctor --upstreams-config .mcp.json --output json

Every server is looked up, started, greeted and asked for its tools, also when others fail; then all
are stopped. Exit codes: 0 no errors (there may be warnings), 2 the configuration is wrong, 3 a server
does not work.")]
pub struct DoctorArgs {
    /// How to write the report
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    upstreams: UpstreamFlags,
    #[command(flatten)]
    python: PythonFlags,
    #[command(flatten)]
    preludes: PreludeFlags,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Ok,
    Warning,
    Error,
}

impl Level {
    const fn name(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// The result of one check.
struct Finding {
    level: Level,
    check: &'static str,
    detail: String,
    remedy: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, detail: impl Into<String>) -> Finding {
        Finding { level: Level::Ok, check, detail: detail.into(), remedy: None }
    }

    fn new(level: Level, check: &'static str, detail: impl Into<String>, remedy: String) -> Finding {
        Finding { level, check, detail: detail.into(), remedy: Some(remedy) }
    }
}

/// Findings about one server, or about the configuration.
struct Section {
    name: String,
    findings: Vec<Finding>,
    facts: Value,
}

impl Section {
    fn level(&self) -> Level {
        self.findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok)
    }
}

impl Section {
    /// Replaces the remedy of a server whose address gives an OpenAPI document.
    fn misread_document(&mut self, name: &str, address: &Url) {
        if let Some(finding) = self.findings.last_mut() {
            finding.remedy = Some(format!(
                "that is an OpenAPI document, not an MCP server: ptc add {name} --force --openapi {address}"
            ));
        }
    }
}

/// The address of a server of MCP, if it gives an OpenAPI document.
async fn document_behind(entry: Option<&ServerEntry>) -> Option<Url> {
    let descriptor = entry?.transport.descriptor();
    let address = descriptor["url"].as_str().filter(|_| descriptor["type"] == "remote")?;
    let url = Url::parse(address).ok()?;
    is_openapi_document(&url).await.then_some(url)
}

/// Runs the command.
pub async fn run(mut args: DoctorArgs) -> Result<Exit, Abort> {
    args.upstreams.shows_warnings = true;
    let files = args.upstreams.files();
    let (mut configuration, entries) = look_at_files(&args.upstreams, &files)?;
    let is_readable = configuration.level() < Level::Error;
    configuration.findings.push(look_at_scripts(&args.python).await);
    configuration.findings.extend(look_at_user(&entries));
    let mut servers = Vec::new();
    let mut exit = if is_readable { Exit::Ok } else { Exit::Usage };
    let mut sections = vec![configuration];
    if is_readable && !entries.is_empty() {
        let prelude = args.preludes.prelude()?;
        let has_prelude = prelude.is_some();
        if args.output == OutputFormat::Text && !redact::stderr_is_terminal() {
            // A terminal has a progress line.
            let names: Vec<&str> = entries.iter().map(|entry| &*entry.name).collect();
            console::complain(&format!("starting {} …", names.join(", ")));
        }
        match boot_with(&args.upstreams, prelude, Need::Check, 1).await {
            Ok(booted) => {
                if has_prelude {
                    let finding = look_at_prelude(&booted);
                    exit = if finding.level == Level::Error { Exit::Usage } else { exit };
                    sections[0].findings.push(finding);
                }
                sections[0].findings.extend(look_at_policy(&booted));
                for status in booted.runtime.servers() {
                    let entry = entries.iter().find(|entry| entry.name == status.name);
                    let mut server = look_at_server(&status, entry);
                    let has_failed = server.level() == Level::Error;
                    if let Some(address) = document_behind(entry.filter(|_| has_failed)).await {
                        server.misread_document(&status.name, &address);
                    }
                    servers.push(server);
                }
                booted.runtime.shutdown().await;
            }
            // An invalid configuration prevents the start of all servers.
            Err(abort) => {
                let remedy = "remove it: ptc cannot be its own upstream".into();
                sections[0].findings.push(Finding::new(Level::Error, "servers", abort.message, remedy));
                exit = abort.exit;
            }
        }
    }
    if servers.iter().any(|server| server.level() == Level::Error) {
        exit = Exit::Upstream;
    }
    sections.append(&mut servers);
    match args.output {
        OutputFormat::Text => console::write(&text_report(&sections))?,
        OutputFormat::Json => console::write_json(&json_report(&sections, exit))?,
    }
    Ok(exit)
}

/// Checks that Python scripts can be run.
async fn look_at_scripts(python: &PythonFlags) -> Finding {
    match python.describe().await {
        Ok(engine) => Finding::ok("scripts", engine),
        Err(why) => {
            let remedy = format!("only execute_program needs it; {REMEDY}");
            Finding::new(Level::Warning, "scripts", format!("Python scripts cannot be run: {why}"), remedy)
        }
    }
}

/// Rules of the policy that can match nothing.
fn look_at_policy(booted: &Booted) -> Vec<Finding> {
    let remedy =
        || "`ptc policy check` shows what each rule decides; correct the name, or remove the rule".to_owned();
    let findings = booted.runtime.policy_findings().into_iter().map(|finding| finding.error.to_string());
    findings
        .chain(booted.runtime.ambiguous_rules())
        .map(|text| Finding::new(Level::Warning, "policy", text, remedy()))
        .collect()
}

/// Checks that servers meet the requirements of the attached preludes.
fn look_at_prelude(booted: &Booted) -> Finding {
    match booted.runtime.check_prelude() {
        Ok(()) => Finding::ok("prelude", "all that its exports need is there"),
        Err(failure) => {
            let remedy = failure.hints().first().cloned().unwrap_or_default();
            Finding::new(Level::Error, "prelude", failure.message, remedy)
        }
    }
}

fn look_at_files(flags: &UpstreamFlags, files: &[PathBuf]) -> Result<(Section, Vec<ServerEntry>), Abort> {
    let mut findings = Vec::new();
    let mut entries = Vec::new();
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    match flags.load(files) {
        Err(LoadError::Flag(abort)) => return Err(abort),
        Err(LoadError::File(error)) => {
            let remedy = remedy::of_config(&error.message);
            findings.push(Finding::new(Level::Error, "file", error.to_string(), remedy));
        }
        Ok(_) if files.is_empty() => {
            let remedy = "run `ptc config import`, or name a file with --upstreams-config".into();
            findings.push(Finding::new(Level::Warning, "file", "no servers are configured", remedy));
        }
        Ok(configs) => {
            for (file, config) in names.iter().zip(configs) {
                let count = config.servers.len();
                let plural = if count == 1 { "" } else { "s" };
                findings.push(Finding::ok("file", format!("{file}: {count} server{plural}")));
                findings.extend(config.warnings.iter().map(|warning| {
                    let remedy = remedy::of_warning(&warning.message);
                    Finding::new(Level::Warning, "file", warning.to_string(), remedy)
                }));
                entries.extend(config.servers);
            }
        }
    }
    Ok((Section { name: "configuration".into(), findings, facts: json!({ "files": names }) }, entries))
}

/// Checks what started programs could read of this process.
fn look_at_user(entries: &[ServerEntry]) -> Option<Finding> {
    let starts_programs = entries.iter().any(|entry| entry.transport.locate().kind == "command");
    (starts_programs && process::is_readable_by_children()).then(|| {
        let detail = "ptc runs as the superuser: every server that it starts can read its environment and memory, with the \
                      secrets of other servers in it";
        let remedy = "run it as a user of its own, or the servers in containers";
        Finding::new(Level::Warning, "user", detail, remedy.into())
    })
}

fn look_at_server(status: &ServerStatus, entry: Option<&ServerEntry>) -> Section {
    let mut findings = Vec::new();
    let location = entry.map(|entry| entry.transport.locate());
    let place = location.as_ref().and_then(|location| location.place.clone());
    if let Some(place) = &place {
        findings.push(Finding::ok("found", place));
    }
    let patience = entry.map_or(config::DEFAULT_HANDSHAKE_TIMEOUT, |entry| entry.handshake_timeout);
    if status.state == UpstreamState::Ready {
        let took = status.start_duration.unwrap_or_default();
        let greeting: Vec<&str> = [status.server_info.as_deref(), status.protocol.as_deref()]
            .into_iter()
            .flatten()
            .filter(|text| !text.is_empty())
            .collect();
        let detail = format!("{} ms, {}", millis(took), greeting.join(", protocol "));
        findings.push(if took > patience / 2 {
            let remedy =
                entry.map(|entry| entry.transport.remedy_of_slow_start(patience)).unwrap_or_default();
            Finding::new(Level::Warning, "started", detail, remedy)
        } else {
            Finding::ok("started", detail)
        });
        findings.push(match status.tools.len() {
            0 => {
                let remedy = "check its arguments and credentials, and tools.allow and tools.block".into();
                Finding::new(Level::Warning, "tools", "it offers none", remedy)
            }
            count => Finding::ok("tools", count.to_string()),
        });
        findings.extend(status.notes.iter().map(|note| {
            // What a pattern leaves out is no fault of the server.
            if note.starts_with("include_operations") {
                return Finding::ok("tools", note);
            }
            let remedy = match note.starts_with("tools.") {
                true => "correct the name, or leave it out",
                false => "the server lists its tools wrongly: update it, or report it to its authors",
            };
            Finding::new(Level::Warning, "tools", note, remedy.into())
        }));
    } else {
        let error = status.error.as_deref().unwrap_or(status.state.name()).to_owned();
        let check = if place.is_none() { "found" } else { "started" };
        let remedy = match entry.map(|entry| &entry.transport) {
            Some(transport) if transport.why_unusable().is_some() => remedy::of_config(&error),
            Some(transport) => transport.remedy(&error),
            None => String::new(),
        };
        findings.push(Finding::new(Level::Error, check, error, remedy));
    }
    let mut facts = json!({
        "state": status.state.name(), "start_ms": status.start_duration.map(millis),
        "server_info": status.server_info, "protocol": status.protocol,
        "tools": status.tools_loaded.then_some(status.tools.len()),
    });
    facts[location.map_or("command", |location| location.kind)] = place.into();
    Section { name: status.name.to_string(), findings, facts }
}

fn text_report(sections: &[Section]) -> String {
    let style = Style::stdout();
    let paint = |level: Level, text: &str| match level {
        Level::Ok => style.green(text),
        Level::Warning => style.yellow(text),
        Level::Error => style.red(text),
    };
    let mut report = String::new();
    for section in sections {
        let level = section.level();
        report.push_str(&format!("{} {}\n", style.bold(&section.name), paint(level, level.name())));
        for finding in &section.findings {
            let mark = match finding.level {
                Level::Ok => String::new(),
                level => format!("{}: ", paint(level, level.name())),
            };
            report.push_str(&format!("  {:<8} {mark}{}\n", finding.check, finding.detail));
            if let Some(remedy) = &finding.remedy {
                report.push_str(&format!("           -> {remedy}\n"));
            }
        }
    }
    let servers = sections.get(1..).unwrap_or_default();
    if !servers.is_empty() {
        let working = servers.iter().filter(|server| server.level() < Level::Error).count();
        report.push_str(&format!("{working} of {} servers work\n", servers.len()));
    }
    report
}

fn json_report(sections: &[Section], exit: Exit) -> Value {
    let section = |section: &Section| {
        let findings: Vec<Value> = section
            .findings
            .iter()
            .map(|finding| {
                json!({
                    "check": finding.check, "level": finding.level.name(),
                    "detail": finding.detail, "remedy": finding.remedy,
                })
            })
            .collect();
        let mut json = json!({ "name": section.name, "level": section.level().name() });
        if let (Value::Object(json), Value::Object(facts)) = (&mut json, &section.facts) {
            json.extend(facts.clone());
        }
        json["findings"] = findings.into();
        json
    };
    let Some((configuration, servers)) = sections.split_first() else { return Value::Null };
    json!({
        "ok": exit == Exit::Ok,
        "configuration": section(configuration),
        "servers": servers.iter().map(section).collect::<Vec<_>>(),
    })
}
