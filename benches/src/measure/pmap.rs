//! Measures calls in flight: `pmap` over a slow tool, by stdio or HTTP, against a bare client.
//!
//! The bare client only writes the same requests and reads the answers. CPU time is that of this process,
//! without the servers.

use super::delay_http::{BareHttpClient, DelayService};
use super::overhead::{Comparison, Cost};
use super::{clock, delay_server};
use crate::measure::programs::Program;
use ptc_base::net::{ClientOptions, Headers};
use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_engine::Runtime;
use ptc_upstream::config::ServerEntry;
use ptc_upstream::{HttpProtocol, HttpSpec};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::process::{Child, Stdio};
use std::time::Instant;

/// How the server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Transport {
    /// A child process; the bare client writes lines and reads them
    Stdio,
    /// Streamable HTTP; the bare client is reqwest alone
    Http,
}

/// Both sides of the comparison: the delay server as an upstream, and a bare client of it.
pub struct Sides {
    /// The server's entry for the runtime.
    pub entry: ServerEntry,
    bare: Bare,
}

enum Bare {
    Stdio(BareClient),
    Http { client: BareHttpClient, _service: DelayService },
}

impl Sides {
    /// Starts the server and client of a transport.
    ///
    /// # Errors
    /// A server that does not start.
    pub fn start(transport: Transport, delay_ms: u64) -> io::Result<Sides> {
        let delay = delay_ms.to_string();
        let command = ["delay-server", &delay];
        Ok(match transport {
            Transport::Stdio => Sides {
                entry: ServerEntry::own_binary(delay_server::NAME, "answers late", &command)?,
                bare: Bare::Stdio(BareClient::start(&command.map(String::from))?),
            },
            Transport::Http => {
                let service = DelayService::start(&[&command[..], &["--http"]].concat())?;
                let spec = HttpSpec {
                    url: service.url().parse().map_err(io::Error::other)?,
                    protocol: HttpProtocol::Streamable,
                    headers: Headers::default(),
                    client: ClientOptions::default(),
                    login: None,
                };
                let client = BareHttpClient::new(service.url())?;
                Sides {
                    entry: ServerEntry::http(delay_server::NAME, spec),
                    bare: Bare::Http { client, _service: service },
                }
            }
        })
    }

    /// Measures both sides in alternating rounds; returns the best round of each.
    ///
    /// # Errors
    /// A server that ends, or calls that fail.
    pub async fn measure(
        &mut self,
        runtime: &Runtime,
        calls: usize,
        rounds: usize,
    ) -> io::Result<Comparison> {
        let mut best = Comparison { bare: Cost::MOST, ptc: Cost::MOST };
        for _ in 0..rounds {
            let (begun, cpu) = (Instant::now(), clock::cpu());
            self.bare_calls(calls).await?;
            best.bare = best.bare.min(Cost { wall: begun.elapsed(), cpu: clock::cpu() - cpu });
            best.ptc = best.ptc.min(run(runtime, "pmap", calls).await?);
        }
        Ok(best)
    }

    /// Makes the calls with the bare client.
    ///
    /// # Errors
    /// A server that ends.
    pub async fn bare_calls(&mut self, calls: usize) -> io::Result<()> {
        match &mut self.bare {
            Bare::Stdio(client) => client.calls(calls),
            Bare::Http { client, .. } => client.calls(calls).await,
        }
    }
}

/// The program; its value is the number of calls that succeeded.
pub fn program(form: &str, calls: usize) -> String {
    format!(
        "(count (filter :ok ({form} (fn [n] (tool/call {{:server \"{}\" :tool \"{}\" :args {{:n n}}}})) (range {calls}))))",
        delay_server::NAME,
        delay_server::TOOL
    )
}

/// Runs the program once.
///
/// # Errors
/// Calls that fail.
pub async fn run(runtime: &Runtime, form: &str, calls: usize) -> io::Result<Cost> {
    timed(runtime, program(form, calls), calls).await
}

/// Cost of one run of `program`, which must return the number of successful calls.
///
/// # Errors
/// Calls that fail.
pub async fn timed(runtime: &Runtime, program: String, calls: usize) -> io::Result<Cost> {
    let limits = Limits { timeout_ms: 600_000, max_upstream_calls: calls as u64, ..Limits::with_upstreams() };
    let options = RunOptions { limits, source_name: "bench".into(), ..RunOptions::default() };
    let (begun, cpu) = (Instant::now(), clock::cpu());
    let outcome = runtime.run(program, options).await;
    let took = Cost { wall: begun.elapsed(), cpu: clock::cpu() - cpu };
    match outcome.result {
        Ok(answer) if answer.text == calls.to_string() => Ok(took),
        Ok(answer) => Err(io::Error::other(format!("only {} calls came back well", answer.text))),
        Err(failure) => Err(io::Error::other(failure.compact())),
    }
}

/// The baseline client: it writes requests and counts lines.
pub struct BareClient {
    child: Child,
    input: BufWriter<std::process::ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
    next_id: u64,
}

impl BareClient {
    /// Starts the delay server and makes the handshake.
    ///
    /// # Errors
    /// A process that does not start or answer.
    pub fn start(arguments: &[String]) -> io::Result<BareClient> {
        let mut child =
            Program::Own.command()?.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
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

    /// Makes calls that are all in flight at the same time.
    ///
    /// # Errors
    /// A broken pipe.
    pub fn calls(&mut self, count: usize) -> io::Result<()> {
        for n in 0..count {
            let id = self.next_id;
            self.next_id += 1;
            writeln!(self.input, "{}", delay_server::call(id, n))?;
        }
        self.read_lines(count)
    }
}

impl Drop for BareClient {
    fn drop(&mut self) {
        // The server ends with its input; errors at its end do not matter.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
