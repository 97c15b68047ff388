//! Measures Python scripts: a trivial one end to end, and many calls in flight against a bare client; also of
//! other products.

use crate::measure::overhead::{Comparison, Cost};
use crate::measure::pmap::Sides;
use crate::measure::programs::Program;
use crate::measure::{clock, delay_server};
use ptc_calls::limits::Limits;
use ptc_calls::tools::qualified_name;
use ptc_engine::Runtime;
use ptc_python::engine::cpython::{CPython, Options};
use ptc_python::engine::{Engine, Script};
use ptc_python::functions::FunctionTable;
use ptc_python::guest::ScriptRun;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A script that does almost nothing, so that its time is the cost of running any script.
const TRIVIAL: &str = "print(1 + 1)";

/// A Python program that measures other products in the same run.
const PEERS: &str = include_str!("peers.py");

/// Runs trivial scripts one after the other in `ptc serve` with this engine. Returns the time of each from
/// request to answer, sorted.
///
/// # Errors
/// A server that does not start or answer.
pub fn end_to_end(engine: &str, runs: usize) -> io::Result<Vec<Duration>> {
    let mut server = ScriptServer::start(engine)?;
    // The first scripts warm up the server.
    for _ in 0..5 {
        server.call(TRIVIAL)?;
    }
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let begun = Instant::now();
        let answer = server.call(TRIVIAL)?;
        times.push(begun.elapsed());
        if !answer.contains("executed successfully") {
            return Err(io::Error::other(answer));
        }
    }
    times.sort();
    Ok(times)
}

/// A running `ptc serve --tools execute_program`, with its pipes.
struct ScriptServer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl ScriptServer {
    fn start(engine: &str) -> io::Result<ScriptServer> {
        let mut child = Program::Product
            .command()?
            .args(["serve", "--tools", "execute_program", "--python-engine", engine])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("no pipes"));
        };
        let mut server = ScriptServer { child, input, output: BufReader::new(output) };
        server.send(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#,
        )?;
        server.receive()?;
        server.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        Ok(server)
    }

    fn send(&mut self, line: &str) -> io::Result<()> {
        self.input.write_all(format!("{line}\n").as_bytes())
    }

    fn receive(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line),
        }
    }

    fn call(&mut self, code: &str) -> io::Result<String> {
        let params = serde_json::json!({ "name": "execute_program", "arguments": { "code": code } });
        self.send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#))?;
        self.receive()
    }
}

impl Drop for ScriptServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts an engine, named as in `--python-engine`.
///
/// # Errors
/// The engine cannot start on this machine.
pub async fn engine(name: &str) -> io::Result<Arc<dyn Engine>> {
    const MEMORY: u64 = 256 << 20;
    #[cfg(feature = "monty")]
    if name == "monty" {
        let worker = vec![Program::Product.path()?.into_os_string(), "python-worker".into()];
        let monty = ptc_python::engine::monty::Monty::start(worker, MEMORY).map_err(io::Error::other)?;
        return Ok(Arc::new(monty));
    }
    if name != "cpython" {
        return Err(io::Error::other(format!("there is no engine {name}")));
    }
    let options = Options {
        python: "python3".into(),
        jail: true,
        memory_bytes: MEMORY,
        total_bytes: u64::MAX,
        cpu_seconds: 600,
    };
    Ok(Arc::new(CPython::start(options).await.map_err(io::Error::other)?))
}

/// Measures `asyncio.gather` over the delay server, and its bare client; returns the best round of each.
///
/// # Errors
/// A server that ends, calls that fail.
pub async fn gather(
    engine: Arc<dyn Engine>,
    sides: &mut Sides,
    runtime: &Runtime,
    calls: usize,
    rounds: usize,
) -> io::Result<Comparison> {
    let functions = Arc::<FunctionTable>::default();
    let code = format!(
        "import asyncio\nrows = await asyncio.gather(*[{}(n=n) for n in range({calls})])\nprint(len(rows))",
        qualified_name(delay_server::NAME, delay_server::TOOL)
    );
    let mut best = Comparison { bare: Cost::MOST, ptc: Cost::MOST };
    for _ in 0..rounds {
        let (begun, cpu) = (Instant::now(), clock::cpu());
        sides.bare_calls(calls).await?;
        best.bare = best.bare.min(Cost { wall: begun.elapsed(), cpu: clock::cpu() - cpu });
        let run = ScriptRun {
            engine: engine.clone(),
            broker: runtime.broker().clone(),
            functions: functions.clone(),
            script: Script { code: code.as_str().into(), output_bytes: 1 << 16 },
            source_name: "bench".into(),
            replayed: None,
            permit: None,
        };
        let limits =
            Limits { timeout_ms: 600_000, max_upstream_calls: calls as u64, ..Limits::with_upstreams() };
        let (begun, cpu) = (Instant::now(), clock::cpu());
        let outcome = runtime.run_async(limits, run.into_run()).await;
        let took = Cost { wall: begun.elapsed(), cpu: clock::cpu() - cpu };
        match outcome.result {
            Ok(printed) if printed.text.trim_end() == calls.to_string() => best.ptc = best.ptc.min(took),
            Ok(printed) => return Err(io::Error::other(printed.text)),
            Err(failure) => return Err(io::Error::other(failure.message)),
        }
    }
    Ok(best)
}

/// Runs the measurements of other products with this interpreter. Returns what it prints: a row a line.
///
/// # Errors
/// The interpreter does not run.
pub fn peers(python: &str, runs: usize, calls: usize, delay_ms: u64) -> io::Result<String> {
    let numbers = [runs.to_string(), calls.to_string(), delay_ms.to_string()];
    let output = Command::new(python).args(["-c", PEERS]).args(numbers).stderr(Stdio::null()).output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(io::Error::other(format!("{python}: {}", output.status))),
    }
}
