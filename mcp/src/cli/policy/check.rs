//! The command `ptc policy check`, which shows what a policy (rules for which tool calls are allowed) decides about
//! every tool, or about every call of a program.

use crate::cli::OutputFormat;
use crate::cli::boot::{Booted, Need, UpstreamFlags, boot_with};
use crate::cli::flags::prelude::PreludeFlags;
use crate::cli::flags::source::Source;
use ptc_calls::asker::{CallAsker, CallOrigin, ClientIdentity};
use ptc_calls::outcome::{PolicyRuling, Verdict};
use ptc_calls::policy::{PlannedCall, Policy, PolicyFinding, ProgramPlan, Subject, look_alike};
use ptc_calls::tools::{Annotations, CallTarget, TaskSupport, UpstreamTool};
use ptc_server::console::{self, Abort, Exit, Style};
use ptc_server::redact::visible_line;
use serde_json::{Value, json};
use std::sync::Arc;

/// Arguments of `ptc policy check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc policy check --policy policy.toml
  ptc policy check report.ptc --policy team.toml --policy own.toml
  ptc policy check --as token:ci --output json

Every server is started to see its tools. A rule that can match nothing is an error.
Exit codes: 0 the policy is right, 1 the program makes a call that is denied, 2 an error in a file.")]
pub(super) struct CheckArgs {
    /// Program text, a file, or `-` for standard input
    #[arg(value_name = "PROGRAM | FILE | -")]
    program: Option<String>,
    /// Who calls: token:NAME, scope:NAME, program, session, agent, script or direct; may be given several times
    #[arg(long = "as", value_name = "WHO")]
    asker: Vec<String>,
    /// How to write the answer
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    upstreams: UpstreamFlags,
    #[command(flatten)]
    preludes: PreludeFlags,
}

/// What the policy says of a tool or a call.
struct Row {
    /// `file:line:column`, of a call of a program.
    place: Option<String>,
    /// `server/tool`.
    name: String,
    effect: &'static str,
    /// The strictest first; several if the arguments decide.
    rulings: Vec<PolicyRuling>,
}

/// Runs the command.
pub(super) async fn run(args: CheckArgs) -> Result<Exit, Abort> {
    let (origin, identity) = asker(&args.asker)?;
    let asker = CallAsker { origin, identity: Some(&identity) };
    let source = args.program.as_deref().map(Source::read).transpose()?;
    let prelude = args.preludes.prelude()?;
    let Some(policy) = args.upstreams.policy.load()? else {
        return Err(Abort::usage("there is no policy: name its file with --policy or PTC_POLICY"));
    };
    let booted = boot_with(&args.upstreams, prelude.clone(), Need::State, 1).await?;
    let findings = booted.runtime.policy_findings();
    let explained = Explained { booted: &booted, policy: &policy, asker };
    let mut is_open = false;
    let rows = match &source {
        None => explained.tools(),
        Some(source) => {
            let namespaces: Vec<_> = prelude.iter().flat_map(|prelude| prelude.namespaces()).collect();
            let plan = ProgramPlan::for_program(&source.text, &namespaces);
            let failed = |error| Abort::usage(format!("{}:{error}; `ptc check` says more", source.name));
            let plan = plan.map_err(failed)?;
            is_open = plan.is_open;
            let calls = plan.calls.iter().map(|call| explained.call(&source.name, call)).collect();
            explained.with_flows(&source.name, &plan, calls)
        }
    };
    let mut warnings = explained.warnings();
    warnings.extend(booted.runtime.ambiguous_rules());
    let not_loaded: Vec<Arc<str>> = booted
        .runtime
        .servers()
        .into_iter()
        .filter(|server| !server.tools_loaded)
        .map(|server| server.name)
        .collect();
    booted.runtime.shutdown().await;
    let report = Report { policy: &policy, rows, findings, warnings, is_open, not_loaded };
    match args.output {
        OutputFormat::Text => console::write(&report.text(source.is_some()))?,
        OutputFormat::Json => console::write_json(&report.json())?,
    }
    Ok(report.exit(source.is_some()))
}

/// The asker that `--as` describes.
fn asker(words: &[String]) -> Result<(CallOrigin, ClientIdentity), Abort> {
    let (mut origin, mut identity) = (CallOrigin::default(), ClientIdentity::default());
    let mut scopes = Vec::new();
    for word in words {
        match word.split_once(':') {
            Some(("token", name)) => identity.token = Some(name.into()),
            Some(("scope", name)) => scopes.push(name.to_owned()),
            _ => {
                let known = CallOrigin::ALL.into_iter().find(|origin| origin.name() == word);
                let wrong = || {
                    Abort::usage(format!(
                        "--as {word}: expected token:NAME, scope:NAME, program, session, agent, script or direct"
                    ))
                };
                origin = known.ok_or_else(wrong)?;
            }
        }
    }
    identity.scopes = scopes.into();
    Ok((origin, identity))
}

/// What is needed to explain a verdict.
struct Explained<'a> {
    booted: &'a Booted,
    policy: &'a Policy,
    asker: CallAsker<'a>,
}

impl Explained<'_> {
    /// All tools of all servers.
    fn tools(&self) -> Vec<Row> {
        let servers = self.booted.runtime.servers();
        let tools = servers.iter().flat_map(|server| server.tools.iter().map(|tool| (&server.name, tool)));
        tools.map(|(server, tool)| self.row(server, &CallTarget::Tool(tool.name.clone()), tool)).collect()
    }

    /// Tools with names that people read as other names.
    fn warnings(&self) -> Vec<String> {
        let servers = self.booted.runtime.servers();
        let tools = servers.iter().flat_map(|server| server.tools.iter().map(|tool| (&server.name, tool)));
        let warning = |(server, tool): (&Arc<str>, &Arc<UpstreamTool>)| {
            let read = look_alike(&tool.name)?;
            Some(format!(
                "{server}/{} has letters that look like others: it is read as {read}; a rule that allows {read} does \
                 not allow it",
                tool.name
            ))
        };
        tools.filter_map(warning).collect()
    }

    fn row(&self, server: &str, target: &CallTarget, tool: &UpstreamTool) -> Row {
        let rulings = self.policy.possible_rulings(server, target, tool, self.asker);
        let effect = self.policy.effect(server, target, tool).name();
        Row { place: None, name: format!("{server}/{}", target.label()), effect, rulings }
    }

    /// A call of a program.
    fn call(&self, file: &str, call: &PlannedCall) -> Row {
        let name = call.tool.as_deref().unwrap_or("*");
        let target = CallTarget::Tool(name.into());
        let catalog = self.booted.runtime.catalog();
        let known = catalog.server(&call.server).and_then(|server| server.tools.as_ref()?.get(name).cloned());
        let tool = known.unwrap_or_else(|| Arc::new(unknown(name)));
        let mut row = self.row(&call.server, &target, &tool);
        if let (Some(arguments), Some(_)) = (&call.arguments, &call.tool) {
            let subject = Subject::new(&call.server, &target, &tool, arguments, self.asker);
            row.rulings = vec![self.policy.ruling(&subject)];
        }
        row.place = Some(format!("{file}:{}:{}", call.line, call.column));
        row
    }

    /// The calls of a program, with what is said of the flows into them.
    fn with_flows(&self, file: &str, plan: &ProgramPlan, mut rows: Vec<Row>) -> Vec<Row> {
        let catalog = self.booted.runtime.catalog();
        let find = |server: &str, tool: &str| catalog.server(server)?.tools.as_ref()?.get(tool).cloned();
        for flow in self.policy.flows(plan, &find) {
            let place = format!("{file}:{}:{}", flow.line, flow.column);
            let known = rows.iter_mut().find(|row| row.place.as_ref() == Some(&place));
            match known {
                Some(row) => {
                    row.rulings.push(flow.ruling);
                    row.rulings.sort_by_key(|ruling| std::cmp::Reverse(ruling.verdict));
                }
                None => rows.push(Row {
                    place: Some(place),
                    name: flow.call,
                    effect: "unknown",
                    rulings: vec![flow.ruling],
                }),
            }
        }
        rows
    }
}

/// A tool that no list has.
fn unknown(name: &str) -> UpstreamTool {
    UpstreamTool {
        name: name.into(),
        title: None,
        description: None,
        input_schema: Value::Null,
        output_schema: None,
        annotations: Annotations::default(),
        meta: None,
        tasks: TaskSupport::Forbidden,
    }
}

/// The answer of the command.
struct Report<'a> {
    policy: &'a Policy,
    rows: Vec<Row>,
    findings: Vec<PolicyFinding>,
    warnings: Vec<String>,
    is_open: bool,
    not_loaded: Vec<Arc<str>>,
}

impl Report<'_> {
    fn exit(&self, is_program: bool) -> Exit {
        let mut rulings = self.rows.iter().filter_map(|row| row.rulings.first());
        match self.findings.is_empty() {
            false => Exit::Usage,
            true if is_program && rulings.any(|ruling| ruling.verdict == Verdict::Deny) => {
                Exit::ProgramFailed
            }
            true => Exit::Ok,
        }
    }

    fn text(&self, is_program: bool) -> String {
        let style = Style::stdout();
        let files: Vec<&str> = self.policy.files().collect();
        let mut text = format!("{}: {} rules\n", files.join(", "), self.policy.rules());
        for finding in &self.findings {
            text += &format!("{} {}\n", style.red("error:"), visible_line(&finding.error.to_string()));
        }
        for warning in &self.warnings {
            text += &format!("{} {}\n", style.yellow("warning:"), visible_line(warning));
        }
        for server in &self.not_loaded {
            text += &format!("{server}: its tools are not known, so rules about them are not checked\n");
        }
        for row in &self.rows {
            let place = row.place.as_ref().map(|place| format!("{place}  ")).unwrap_or_default();
            let name = visible_line(&row.name);
            for (at, ruling) in row.rulings.iter().enumerate() {
                let name = if at == 0 { name.as_ref() } else { "  or, by its arguments" };
                text += &format!(
                    "{place}{:<5}  {name:<32} {:<11}  {}\n",
                    ruling.verdict.name(),
                    row.effect,
                    ruling.rule
                );
            }
        }
        if is_program && self.rows.is_empty() {
            text += "the program makes no calls that its text shows\n";
        }
        if self.is_open {
            text += "the program also makes calls that are only known when it runs\n";
        }
        text
    }

    fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let rulings: Vec<Value> = row.rulings.iter().map(PolicyRuling::to_json).collect();
            let mut entry = json!({ "call": row.name, "effect": row.effect, "rulings": rulings });
            if let Some(place) = &row.place {
                entry["place"] = place.as_str().into();
            }
            entry
        });
        let findings = self.findings.iter().map(|finding| finding.error.to_string());
        json!({
            "files": self.policy.files().collect::<Vec<_>>(), "rules": self.policy.rules(),
            "calls": rows.collect::<Vec<_>>(), "errors": findings.collect::<Vec<_>>(),
            "warnings": self.warnings,
            "not_loaded": self.not_loaded, "more_calls": self.is_open,
        })
    }
}
