//! Calls in flight: `pmap` over a tool that takes 200 ms, against a bare client that does nothing but
//! write the same requests and read the answers.

use super::delay_server;
use ptc_runtime::Runtime;
use ptc_runtime::limits::Limits;
use ptc_runtime::options::RunOptions;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// One program run: wall clock, and the program's answer.
#[derive(Debug)]
pub struct Round {
    /// Wall clock.
    pub duration: Duration,
    /// `pr-str` of the answer, or the failure.
    pub answer: Result<String, String>,
}

/// The program: how many calls came back well.
pub fn program(form: &str, calls: usize) -> String {
    format!(
        "(count (filter :ok ({form} (fn [n] (tool/call {{:server \"{}\" :tool \"{}\" :args {{:n n}}}})) (range {calls}))))",
        delay_server::NAME,
        delay_server::TOOL
    )
}

/// Runs the program once.
pub async fn run(runtime: &Runtime, form: &str, calls: usize) -> Round {
    let limits = Limits { timeout_ms: 600_000, max_upstream_calls: calls as u64, ..Limits::with_upstreams() };
    let options = RunOptions { limits, source_name: "bench".into(), ..RunOptions::default() };
    let start = Instant::now();
    let outcome = runtime.run(program(form, calls), options).await;
    let duration = start.elapsed();
    let answer = outcome.result.map(|answer| answer.text).map_err(|failure| failure.compact());
    Round { duration, answer }
}

/// A client that knows nothing: it writes requests and counts lines.
pub struct BareClient {
    child: Child,
    input: BufWriter<std::process::ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
    next_id: u64,
}

impl BareClient {
    /// Starts the delay server and greets it.
    ///
    /// # Errors
    /// A process that does not start or answer.
    pub fn start(arguments: &[String]) -> io::Result<BareClient> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("no pipes"));
        };
        let (input, output) = (BufWriter::new(input), BufReader::new(output));
        let mut client = BareClient { child, input, output, next_id: 1 };
        writeln!(
            client.input,
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"bare","version":"0"}}}}}}"#
        )?;
        writeln!(client.input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#)?;
        client.read_lines(1)?;
        Ok(client)
    }

    fn read_lines(&mut self, count: usize) -> io::Result<()> {
        self.input.flush()?;
        let mut line = Vec::new();
        for _ in 0..count {
            line.clear();
            if self.output.read_until(b'\n', &mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    /// Makes calls that are all in flight at the same time; the wall clock until the last answer.
    ///
    /// # Errors
    /// A broken pipe.
    pub fn calls(&mut self, count: usize) -> io::Result<Duration> {
        let start = Instant::now();
        for n in 0..count {
            let id = self.next_id;
            self.next_id += 1;
            writeln!(
                self.input,
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{}","arguments":{{"n":{n}}}}}}}"#,
                delay_server::TOOL
            )?;
        }
        self.read_lines(count)?;
        Ok(start.elapsed())
    }
}

impl Drop for BareClient {
    fn drop(&mut self) {
        // The server ends with its input; whatever it says about that does not matter any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
