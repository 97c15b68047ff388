//! The command `ptc prelude test`, which runs each assertion about a prelude as a program.

use super::replay::recorded_servers;
use crate::cli::boot::{Booted, Need};
use crate::cli::flags::program::ProgramFlags;
use crate::cli::flags::source::Source;
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::{Failure, Report};
use ptc_compiler::diagnostic::line_column;
use ptc_compiler::prelude::{Assertion, Expectation, PreludeTest, tests_in};
use ptc_server::console::{self, Abort, Exit, Style};
use std::path::PathBuf;

/// Arguments of `ptc prelude test`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A test file holds (deftest name …) with (is expression), (is (= expected actual)) and (is (thrown? expression)) in it;
what else stands at its top level every test has. Each assertion runs as a program of its own, after what stands before
it in its test.

--replay FILE answers calls from a file instead of servers:
  {\"crm\": {\"get_user\": [{\"args\": {\"id\": \"1\"}, \"result\": {\"name\": \"Ada\"}}, {\"error\": \"no such user\"}]}}
The first entry whose args are those of the call counts; one without args answers any call.

Exit codes: 0 all hold, 1 some do not, 2 usage or configuration error, 3 an upstream server did not start."
)]
pub(super) struct TestPreludeArgs {
    /// Test files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    /// Answers of servers
    #[arg(long, value_name = "FILE", conflicts_with_all = ["upstreams_config", "stdio"])]
    replay: Option<PathBuf>,
    #[command(flatten)]
    programs: ProgramFlags,
}

/// Runs the tests.
pub(super) async fn run(args: TestPreludeArgs) -> Result<Exit, Abort> {
    let sources = args.files.iter().map(|file| Source::read_file(file)).collect::<Result<Vec<_>, _>>()?;
    let mut files = Vec::with_capacity(sources.len());
    for source in sources {
        let tests = tests_in(&source.text).map_err(|rejection| {
            let palette = Style::stderr().palette();
            let text = |error| Report::from_diagnostic(error, &source.text).text(&source.name, palette);
            Abort::usage(rejection.errors.iter().map(text).collect::<Vec<_>>().join("\n\n"))
        })?;
        files.push((source, tests));
    }
    let (booted, limits) = match &args.replay {
        Some(file) => args.programs.boot_servers(recorded_servers(file)?).await?,
        None => args.programs.boot(Need::OnDemand, 1).await?,
    };
    let mut run = TestRun {
        booted: &booted,
        options: RunOptions { limits, ..RunOptions::default() },
        held: 0,
        failed: 0,
    };
    for (source, tests) in &files {
        for test in tests {
            run.test(source, test).await?;
        }
    }
    let TestRun { held, failed, .. } = run;
    booted.runtime.shutdown().await;
    console::write_line(&format!("{held} held, {failed} failed"))?;
    Ok(if failed == 0 { Exit::Ok } else { Exit::ProgramFailed })
}

struct TestRun<'b> {
    booted: &'b Booted,
    options: RunOptions,
    held: usize,
    failed: usize,
}

impl TestRun<'_> {
    async fn test(&mut self, source: &Source, test: &PreludeTest) -> Result<(), Abort> {
        let style = Style::stdout();
        let mut wrong = Vec::new();
        for assertion in &test.assertions {
            match self.wrong(source, assertion).await {
                None => self.held += 1,
                Some(text) => {
                    let (line, column) = line_column(&source.text, assertion.span.start);
                    wrong.push(format!("  {}:{line}:{column}: {text}", source.name));
                    self.failed += 1;
                }
            }
        }
        let word = if wrong.is_empty() { style.green("ok") } else { style.red("failed") };
        console::write_line(&format!("{}: {word}", test.name))?;
        wrong.iter().try_for_each(|text| console::write_line(text))
    }

    async fn value(&self, program: &str) -> Result<String, Failure> {
        let outcome = self.booted.runtime.run(program, self.options.clone()).await;
        outcome.result.map(|answer| answer.text)
    }

    /// Why an assertion fails; `None` when it holds.
    async fn wrong(&self, source: &Source, assertion: &Assertion) -> Option<String> {
        let shown =
            |failure: &Failure| failure.text(&source.name, Style::stdout().palette()).replace('\n', "\n  ");
        match (self.value(&assertion.program).await, assertion.expects) {
            (Ok(value), Expectation::Truth) if !matches!(value.as_str(), "nil" | "false") => None,
            (Err(_), Expectation::Failure) => None,
            (Ok(value), Expectation::Failure) => Some(format!("it did not fail, its value is {value}")),
            (Err(failure), Expectation::Truth) => Some(shown(&failure)),
            (Ok(value), Expectation::Truth) if assertion.sides.is_empty() => {
                Some(format!("the value is {value}"))
            }
            (Ok(_), Expectation::Truth) => {
                let mut text = "not equal".to_owned();
                for (side, program) in &assertion.sides {
                    let value = self.value(program).await.unwrap_or_else(|failure| failure.message);
                    text.push_str(&format!("\n    {value}  <- {side}"));
                }
                Some(text)
            }
        }
    }
}
