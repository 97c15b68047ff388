//! The command `ptc test`, which replays recorded runs and reports what differs.

use super::junit::{self, TestCase};
use super::replayer::Replayer;
use super::{MatchFlag, bare, known_secrets, matching, report};
use crate::cli::boot::UpstreamFlags;
use crate::cli::cores;
use crate::cli::flags::prelude::PreludeFlags;
use crate::cli::flags::python::PythonFlags;
use ptc_calls::journal::Recording;
use ptc_engine::ReplayOptions;
use ptc_server::console::{self, Abort, Exit, Style};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Arguments of `ptc test`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc test runs                                all recordings of a folder
  ptc test runs -p crm.clj                     with another version of a prelude
  ptc test runs --junit report.xml

A recording holds if the program gives the same result and prints the same lines after the same calls, with the same fuel.
With -p, calls find their answers by server, tool and arguments, and fuel is not compared. No server is started.

Exit codes: 0 all hold, 1 some differ, 2 some cannot be run, or there are none.")]
pub struct TestArgs {
    /// Folders of recordings, or single ones
    #[arg(value_name = "DIR | FILE", required = true)]
    paths: Vec<PathBuf>,
    /// Write the results to this file, as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// How calls find their answers: by their order, with the same arguments and fuel, or by server, tool and arguments
    /// [default: order; args with -p]
    #[arg(long = "match", value_name = "HOW", value_enum, hide_possible_values = true)]
    matching: Option<MatchFlag>,
    #[command(flatten)]
    preludes: PreludeFlags,
    #[command(flatten)]
    python: PythonFlags,
}

/// Result of one recording.
enum Verdict {
    Held,
    Differs(Vec<String>),
    CannotRun(String),
}

/// Runs the command.
pub async fn run(args: TestArgs) -> Result<Exit, Abort> {
    let files = recordings(&args.paths)?;
    let _secrets = known_secrets(&UpstreamFlags::default()).await;
    let prelude = args.preludes.prelude()?;
    let matching = matching(args.matching, prelude.is_some());
    let options = ReplayOptions { matching, program: None, prelude };
    let replayer = Replayer::new(bare(cores()).await?, &args.python);
    let mut cases = Vec::with_capacity(files.len());
    let (mut differing, mut unable) = (0, 0);
    for file in &files {
        let begun = Instant::now();
        let verdict = test(&replayer, file, &options).await;
        let case =
            TestCase { name: file.display().to_string(), took: begun.elapsed(), failure: None, error: None };
        let case = match verdict {
            Verdict::Held => case,
            Verdict::Differs(lines) => {
                differing += 1;
                TestCase { failure: Some(lines.join("\n")), ..case }
            }
            Verdict::CannotRun(why) => {
                unable += 1;
                TestCase { error: Some(why), ..case }
            }
        };
        show(&case)?;
        cases.push(case);
    }
    replayer.shutdown().await;
    if let Some(file) = &args.junit {
        junit::write(file, &cases)?;
    }
    let held = cases.len() - differing - unable;
    console::write_line(&format!("{held} held, {differing} differ, {unable} cannot run"))?;
    Ok(match (differing, unable) {
        (_, 1..) => Exit::Usage,
        (1.., 0) => Exit::ProgramFailed,
        (0, 0) => Exit::Ok,
    })
}

async fn test(replayer: &Replayer<'_>, file: &Path, options: &ReplayOptions) -> Verdict {
    let recording = match Recording::read(file) {
        Ok(recording) => Arc::new(recording),
        Err(error) => return Verdict::CannotRun(error.to_string()),
    };
    match replayer.replay(&recording, options).await {
        Ok(replayed) if replayed.is_same() => Verdict::Held,
        Ok(replayed) => Verdict::Differs(report::differences(&replayed)),
        Err(abort) => Verdict::CannotRun(abort.message),
    }
}

fn show(case: &TestCase) -> Result<(), Abort> {
    let style = Style::stdout();
    let (word, text) = match (&case.failure, &case.error) {
        (None, None) => (style.green("ok"), None),
        (Some(text), _) => (style.red("differs"), Some(text)),
        (None, Some(text)) => (style.red("cannot run"), Some(text)),
    };
    console::write_line(&format!("{}: {word}", case.name))?;
    text.map_or(Ok(()), |text| console::write_line(&format!("  {}", text.replace('\n', "\n  "))))
}

/// The recordings of these folders, in order of their names, and the files among them.
fn recordings(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Abort> {
    let cannot =
        |path: &Path, error: std::io::Error| Abort::usage(format!("cannot read {}: {error}", path.display()));
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut found = Vec::new();
        for entry in std::fs::read_dir(path).map_err(|error| cannot(path, error))? {
            let file = entry.map_err(|error| cannot(path, error))?.path();
            let is_hidden = file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if !is_hidden && file.extension().is_some_and(|extension| extension == "ptcrun") {
                found.push(file);
            }
        }
        found.sort();
        files.append(&mut found);
    }
    match files.is_empty() {
        true => Err(Abort::usage("there are no recordings (files that end in .ptcrun)")),
        false => Ok(files),
    }
}
