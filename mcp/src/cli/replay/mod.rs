//! Runs recorded programs again with the recorded answers of tools and reports what differs: one recording
//! (`ptc replay`), or all recordings of a folder as regression tests (`ptc test`).
//!
//! # Layout
//! - this file: `ptc replay`; [`mod@test`]: `ptc test`; `report`: what differs, for people; `junit`: the same for other
//!   programs
//! - `replayer`: programs and scripts; [`record`]: the flag `--record`

mod junit;
pub mod record;
mod replayer;
mod report;
pub mod test;

use crate::cli::OutputFormat;
use crate::cli::boot::{Need, UpstreamFlags, boot_with, start_runtime};
use crate::cli::flags::prelude::PreludeFlags;
use crate::cli::flags::python::PythonFlags;
use crate::cli::flags::source::Source;
use crate::cli::print::{print_script, print_text};
use ptc_calls::journal::{Language, Matching, Recording};
use ptc_engine::{ReplayOptions, Replayed, Runtime, RuntimeConfig};
use ptc_server::answer::outcome::WholeOutcomeJson;
use ptc_server::console::{self, Abort, Exit};
use ptc_server::redact;
use ptc_upstream::config::ServerEntry;
use replayer::Replayer;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Arguments of `ptc replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc eval report.ptc --record runs            record a run
  ptc replay runs/20260101T120000000-1a2b3c4d.ptcrun
  ptc replay RUN --program report.ptc          an edited program, with the recorded answers
  ptc replay RUN --program report.ptc --live-reads --upstreams-config upstreams.json

No server is started and nothing is called, but with --live-reads. A run that calls something else than the recorded one
ends with replay_diverged, and says where.

Exit codes: 0 the run is the same, 1 something differs, 2 it cannot be replayed.")]
pub struct ReplayArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Run this program instead of the recorded one: a text, a file, or - for standard input
    #[arg(long, value_name = "PROGRAM | FILE | -")]
    program: Option<String>,
    /// How calls find their answers: by their order, with the same arguments and fuel, or by server, tool and arguments
    /// [default: order; args with another program or prelude]
    #[arg(long = "match", value_name = "HOW", value_enum, hide_possible_values = true)]
    matching: Option<MatchFlag>,
    /// Make the calls of tools that only read, at the configured servers; only the others get recorded answers
    #[arg(long)]
    live_reads: bool,
    /// How to write the answer
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    preludes: PreludeFlags,
    #[command(flatten)]
    upstreams: UpstreamFlags,
    #[command(flatten)]
    python: PythonFlags,
}

/// `--match`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum MatchFlag {
    Order,
    Args,
}

/// How calls find their answers. `is_edited`: the program or a prelude is not the recorded one.
fn matching(flag: Option<MatchFlag>, is_edited: bool) -> Matching {
    match flag {
        Some(MatchFlag::Order) => Matching::Strict,
        Some(MatchFlag::Args) => Matching::Arguments,
        None if is_edited => Matching::Arguments,
        None => Matching::Strict,
    }
}

fn read(file: &Path) -> Result<Arc<Recording>, Abort> {
    Recording::read(file).map(Arc::new).map_err(|error| Abort::usage(error.to_string()))
}

/// A runtime without servers.
async fn bare(workers: usize) -> Result<Arc<Runtime>, Abort> {
    let secrets = redact::secrets().clone();
    Ok(Arc::new(start_runtime(RuntimeConfig { workers, secrets, ..RuntimeConfig::default() }).await?))
}

/// Makes the secrets of this user known, which the recorded answers may show: those of the configuration as long as the
/// result lives, and those of logins.
async fn known_secrets(flags: &UpstreamFlags) -> Vec<ServerEntry> {
    let store = flags.logins.options().ok().and_then(|options| options.store);
    if let Some(store) = store
        && let Err(error) = store.all(redact::secrets()).await
    {
        tracing::warn!("secrets of logins are not redacted: {error}");
    }
    match flags.entries(&flags.files()) {
        Ok((entries, _)) => entries,
        Err(abort) => {
            tracing::warn!("secrets of the configuration are not redacted: {}", abort.message);
            Vec::new()
        }
    }
}

/// Runs the command.
pub async fn run(args: ReplayArgs) -> Result<Exit, Abort> {
    let recording = read(&args.file)?;
    let _secrets = known_secrets(&args.upstreams).await;
    let program = args.program.as_deref().map(Source::read).transpose()?;
    let prelude = args.preludes.prelude()?;
    let is_edited = program.is_some() || prelude.is_some();
    let matching = match args.live_reads {
        true => Matching::LiveReads,
        false => matching(args.matching, is_edited),
    };
    let runtime = match matching {
        Matching::LiveReads => boot_with(&args.upstreams, prelude.clone(), Need::OnDemand, 1).await?.runtime,
        Matching::Strict | Matching::Arguments => bare(1).await?,
    };
    let name = program.as_ref().map_or_else(|| recording.header().source_name.clone(), |it| it.name.clone());
    let options = ReplayOptions { matching, program: program.map(|program| program.text.into()), prelude };
    let replayer = Replayer::new(runtime, &args.python);
    let replayed = replayer.replay(&recording, &options).await;
    replayer.shutdown().await;
    let replayed = replayed?;
    match args.output {
        OutputFormat::Text => {
            // The end of a run that has diverged is its divergence.
            if replayed.divergence.is_none() {
                match recording.header().language {
                    Language::Lisp => print_text(&name, &replayed.outcome).map(drop)?,
                    Language::Python => print_script(&replayed.outcome, &name).map(drop)?,
                }
            }
            console::complain(&report::replayed(&replayed, is_edited));
        }
        OutputFormat::Json => console::write_json(&whole(&replayed)?)?,
    }
    let is_good = if is_edited { replayed.is_answered() } else { replayed.is_same() };
    Ok(if is_good { Exit::Ok } else { Exit::ProgramFailed })
}

fn whole(replayed: &Replayed) -> Result<serde_json::Value, Abort> {
    let outcome = serde_json::to_value(WholeOutcomeJson::from_outcome(&replayed.outcome));
    let mut whole = outcome.map_err(|error| Abort::from(std::io::Error::from(error)))?;
    let difference = |it: &ptc_calls::journal::Difference| json!({ "what": it.what.name(), "recorded": it.recorded, "now": it.now });
    whole["replay"] = json!({
        "same": replayed.is_same(),
        "answered": replayed.answered,
        "diverged": replayed.divergence,
        "differences": replayed.differences.iter().map(difference).collect::<Vec<_>>(),
        "not_recorded": replayed.unknown,
        "not_called": replayed.unused,
    });
    Ok(whole)
}
