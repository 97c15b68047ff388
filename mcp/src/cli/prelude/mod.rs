//! The command `ptc prelude`, which checks, documents and tests preludes (Lisp libraries for programs), and manages a
//! store of their versions.

mod replay;
mod store;
mod test;

use super::OutputFormat;
use super::boot::{Need, UpstreamFlags, boot_with};
use super::flags::prelude::{self as flags, compose};
use clap::Subcommand;
use ptc_calls::outcome::Report;
use ptc_compiler::Severity;
use ptc_engine::{Prelude, PreludeError, PreludeSource};
use ptc_server::answer::report::reports_json;
use ptc_server::console::{self, Abort, Exit, Style};
use ptc_vm::Reason;
pub use replay::{ReplayServerArgs, serve as replay};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

/// Arguments of `ptc prelude`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc prelude check crm.clj --upstreams-config upstreams.json
  ptc prelude inventory crm.clj
  ptc prelude doc crm.clj > crm.md
  ptc prelude test crm_test.clj --prelude crm.clj --replay crm_calls.json")]
pub struct PreludeArgs {
    #[command(subcommand)]
    command: PreludeCommand,
}

#[derive(Debug, Subcommand)]
enum PreludeCommand {
    /// Compile preludes, and check what they need against the configured servers
    Check(Box<CheckPreludeArgs>),
    /// Print what prompts say of preludes
    Inventory(Box<SeenFilesArgs>),
    /// Write the documentation of preludes as Markdown
    Doc(Box<SeenFilesArgs>),
    /// Run tests: (deftest name (is (= expected actual)) …)
    Test(Box<test::TestPreludeArgs>),
    #[command(flatten)]
    Store(store::StoreCommand),
}

#[derive(Debug, clap::Args)]
struct FilesArgs {
    /// Files, in order
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "JSON: {\"ok\", \"diagnostics\": as `ptc check` writes them, \"prelude\": hashes, components and exports}.

Exit codes: 0 no errors, 1 errors or something is missing, 2 unreadable file or configuration. Warnings do not change the
exit code."
)]
struct CheckPreludeArgs {
    #[command(flatten)]
    files: FilesArgs,
    /// How to write the findings
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    upstreams: UpstreamFlags,
}

impl FilesArgs {
    fn sources(&self) -> Result<Vec<PreludeSource>, Abort> {
        self.files.iter().map(|file| flags::source(file)).collect()
    }

    fn prelude(&self) -> Result<Arc<Prelude>, Abort> {
        compose(self.sources()?)
    }
}

/// Preludes as programs see them, with the configured servers if there are any.
#[derive(Debug, clap::Args)]
struct SeenFilesArgs {
    #[command(flatten)]
    files: FilesArgs,
    #[command(flatten)]
    upstreams: UpstreamFlags,
}

impl SeenFilesArgs {
    async fn seen(&self) -> Result<Arc<Prelude>, Abort> {
        let prelude = self.files.prelude()?;
        if !self.upstreams.names_servers() {
            return Ok(prelude);
        }
        let booted = boot_with(&self.upstreams, Some(prelude.clone()), Need::State, 1).await?;
        let seen = prelude.seen_with(&booted.runtime.catalog());
        booted.runtime.shutdown().await;
        Ok(seen.map_or(prelude, Arc::new))
    }
}

/// Runs the command.
pub async fn run(args: PreludeArgs) -> Result<Exit, Abort> {
    match args.command {
        PreludeCommand::Check(args) => check(*args).await,
        PreludeCommand::Inventory(files) => {
            match files.seen().await?.inventory() {
                Some(inventory) => console::write_line(&inventory)?,
                None => console::complain("note: no export is meant for prompts"),
            }
            Ok(Exit::Ok)
        }
        PreludeCommand::Doc(files) => {
            console::write_data([files.seen().await?.markdown().as_str()])?;
            Ok(Exit::Ok)
        }
        PreludeCommand::Test(args) => test::run(*args).await,
        PreludeCommand::Store(command) => store::run(command),
    }
}

async fn check(args: CheckPreludeArgs) -> Result<Exit, Abort> {
    let sources = args.files.sources()?;
    let (ok, reports, prelude) = match Prelude::compose(sources) {
        Err(PreludeError { source, failure, .. }) => {
            (false, failure.reports.into_iter().map(|report| (source.clone(), report)).collect(), None)
        }
        Ok(prelude) => {
            let prelude = Arc::new(prelude);
            let mut reports: Vec<(String, Report)> = prelude
                .warnings()
                .map(|(source, warning)| {
                    (source.name.clone(), Report::from_diagnostic(warning, &source.text))
                })
                .collect();
            let booted = boot_with(&args.upstreams, Some(prelude.clone()), Need::State, 1).await?;
            let missing = booted.runtime.check_prelude().err();
            let catalog = booted.runtime.catalog();
            for (export, id) in prelude.contradictions(&catalog) {
                let text = format!(
                    "export `{export}` is said to read, but `{id}` is annotated as changing something"
                );
                let hint = format!(
                    "Say {{:effect :write}} in the metadata of {export}; prompts and doc say so already."
                );
                let report = Report::new(Reason::InvalidMetadata, text).hint(hint);
                reports.push((String::new(), Report { severity: Severity::Warning, ..report }));
            }
            booted.runtime.shutdown().await;
            let ok = missing.is_none();
            reports.extend(
                missing.into_iter().flat_map(|failure| failure.reports).map(|it| (String::new(), it)),
            );
            (ok, reports, Some(prelude))
        }
    };
    match args.output {
        OutputFormat::Text => {
            let palette = Style::stdout().palette();
            let mut text: String =
                reports.iter().map(|(name, report)| format!("{}\n\n", report.text(name, palette))).collect();
            if let Some(prelude) = prelude.filter(|_| ok) {
                text.push_str(&summary(&prelude));
            }
            console::write(&text)?;
        }
        OutputFormat::Json => {
            let reports: Vec<Report> = reports.into_iter().map(|(_, report)| report).collect();
            let trace = prelude.as_ref().map(|prelude| prelude.trace());
            console::write_json(
                &json!({ "ok": ok, "diagnostics": reports_json(&reports), "prelude": trace }),
            )?;
        }
    }
    Ok(if ok { Exit::Ok } else { Exit::ProgramFailed })
}

/// One line for each namespace.
fn summary(prelude: &Prelude) -> String {
    let style = Style::stdout();
    let of = |namespace: &ptc_compiler::Namespace| {
        let count = namespace.exports().len();
        let word = if count == 1 { "export" } else { "exports" };
        format!("{}: {} ({count} {word})\n", namespace.name(), style.green("ok"))
    };
    prelude.namespaces().map(of).collect()
}
