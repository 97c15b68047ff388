//! Measures a result that is spilled to a file: memory of `ptc serve` under a limit of 32 MB, and the time to
//! search the file and add up its rows.
//!
//! `grep` of the server is compared with the command `grep`. The rows are added up by a client of
//! `proxy-dispatch`, and by a program.

mod rows;

pub use rows::serve;

use crate::measure::programs::Program;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Lines that the sum reads at once.
const SLICE: u64 = 20_000;

/// Rounds of each timed step; the best counts.
const ROUNDS: usize = 3;

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub struct SpillFigures {
    /// Bytes of the spilled result.
    pub bytes: u64,
    /// Resident bytes of the server before the call.
    pub idle: u64,
    /// Largest resident size of the server until the end.
    pub peak: u64,
    /// Time from the call to its answer.
    pub call: Duration,
    /// Time of `stat`.
    pub stat: Duration,
    /// Time of `grep` in the server.
    pub grep: Duration,
    /// Time of the command `grep -n -i` on the same file.
    pub peer: Duration,
    /// Time of a sum over all rows, slice by slice.
    pub sum: Duration,
    /// The same sum in one program.
    pub program: ProgramFigures,
}

/// Figures of a program that makes the call and adds up all rows, slice by slice.
#[derive(Clone, Copy, Debug)]
pub struct ProgramFigures {
    /// Resident bytes of its server before it started.
    pub idle: u64,
    /// Largest resident size of its server until its end.
    pub peak: u64,
    /// Time of the whole program, including the call.
    pub took: Duration,
    /// Fuel that it spent.
    pub fuel: u64,
}

/// Adds up the values of all rows; FROM and TO are lines of the list in the file.
const PROGRAM: &str = r#"
    (let [r (tool/call {:server "rows" :tool "rows" :args {:bytes BYTES} :on-large :spill})
          end (dec (:lines (spill/stat r)))
          text (fn [from] (str/join (:lines (spill/slice r from (min (+ from (dec SLICE)) end)))))
          rows (fn [from] (json/parse-string (str "[" (str/replace (text from) #",$" "") "]")))
          sum (fn [from] (reduce + (map :value (rows from))))]
      [(dec end) (reduce + (map sum (range 2 (inc end) SLICE)))])"#;

/// A running `ptc serve`.
struct Served {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    sent: u64,
}

impl Served {
    fn start(flags: &[&str]) -> Result<Served, String> {
        let path = |program: Program| program.path().map_err(|error| error.to_string());
        let upstream = format!("rows={} rows-server", path(Program::Own)?.display());
        let limits = ["--memory", "32M", "--max-total-memory", "32M", "--upstream-call-timeout", "600s"];
        let mut child = Command::new(path(Program::Product)?)
            .args(["serve", "--stdio", &upstream])
            .args(limits)
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("no pipes".to_owned());
        };
        let mut served = Served { child, input, output: BufReader::new(output), sent: 0 };
        let client = json!({ "name": "bench", "version": "1" });
        served.ask(
            "initialize",
            &json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client }),
        )?;
        Ok(served)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        self.sent += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.sent, "method": method, "params": params });
        writeln!(self.input, "{request}").map_err(|error| error.to_string())?;
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).map_err(|error| error.to_string())?;
            let message: Value = serde_json::from_str(&line).map_err(|error| format!("{error}: {line:?}"))?;
            if message["id"] == self.sent {
                return Ok(message["result"].clone());
            }
        }
    }

    fn dispatch(&mut self, arguments: Value) -> Result<Value, String> {
        let result = self.ask("tools/call", &json!({ "name": "proxy-dispatch", "arguments": arguments }))?;
        if result["isError"] == true { Err(result.to_string()) } else { Ok(result) }
    }

    /// A line of `/proc/PID/status`, in bytes.
    fn memory(&self, name: &str) -> Result<u64, String> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))
            .map_err(|error| error.to_string())?;
        let line = text.lines().find(|line| line.starts_with(name)).ok_or_else(|| format!("no {name}"))?;
        let kilobytes = line.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok());
        kilobytes.map(|kilobytes| kilobytes * 1024).ok_or_else(|| format!("unexpected {line:?}"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Measures a result of about this many bytes.
///
/// # Errors
/// No server; answers that are wrong.
pub fn measure(bytes: u64) -> Result<SpillFigures, String> {
    let program = measure_program(bytes)?;
    let mut served = Served::start(&["--tools", "proxy-dispatch"])?;
    served.dispatch(json!({ "action": "call", "tool": "rows", "arguments": { "bytes": 1 } }))?;
    let idle = served.memory("VmRSS:")?;
    let begun = Instant::now();
    let result =
        served.dispatch(json!({ "action": "call", "tool": "rows", "arguments": { "bytes": bytes } }))?;
    let call = begun.elapsed();
    let file = result["resultFile"].as_str().ok_or_else(|| result.to_string())?.to_owned();
    let text = |result: &Value| result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    let look = json!({ "action": "readresult", "resultFile": file });
    let with = |more: Value| {
        let mut arguments = look.clone();
        if let (Some(arguments), Value::Object(more)) = (arguments.as_object_mut(), more) {
            arguments.extend(more);
        }
        arguments
    };
    let stat_begun = Instant::now();
    let stat = served.dispatch(look.clone())?;
    let stat_took = stat_begun.elapsed();
    let stat: Value = serde_json::from_str(&text(&stat)).map_err(|error| error.to_string())?;
    let (bytes, lines) = (stat["byteSize"].as_u64().unwrap_or(0), stat["lineCount"].as_u64().unwrap_or(0));
    let pattern = format!("ROW {}[0-9]\\b", lines / 20);
    let (mut grep, mut peer) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let found = served.dispatch(with(json!({ "op": "grep", "pattern": pattern })))?;
        grep = grep.min(begun.elapsed());
        let begun = Instant::now();
        let output = Command::new("grep")
            .args(["-n", "-i", "-E", &pattern, &file])
            .output()
            .map_err(|error| error.to_string())?;
        peer = peer.min(begun.elapsed());
        if text(&found).as_bytes() != output.stdout {
            return Err(format!("grep finds something else than {}", text(&found)));
        }
    }
    let begun = Instant::now();
    let (mut sum, mut want, mut from) = (0, 0, 2);
    while from < lines {
        let slice =
            served.dispatch(with(json!({ "op": "slice", "fromLine": from, "toLine": from + SLICE - 1 })))?;
        for line in text(&slice).lines().filter(|line| line.starts_with(" {")) {
            let row: Value =
                serde_json::from_str(line.trim().trim_end_matches(',')).map_err(|error| error.to_string())?;
            sum += row["value"].as_u64().unwrap_or(0);
            want += row["id"].as_u64().unwrap_or(0) % 1_000;
        }
        from += SLICE;
    }
    if sum != want || sum == 0 {
        return Err("a row is missing".to_owned());
    }
    let (sum, peak) = (begun.elapsed(), served.memory("VmHWM:")?);
    Ok(SpillFigures { bytes, idle, peak, call, stat: stat_took, grep, peer, sum, program })
}

fn measure_program(bytes: u64) -> Result<ProgramFigures, String> {
    let mut served =
        Served::start(&["--timeout", "600s", "--fuel", "100000000000", "--response-profile", "debug"])?;
    let mut run = |bytes: u64| {
        let program = PROGRAM.replace("BYTES", &bytes.to_string()).replace("SLICE", &SLICE.to_string());
        let asked = json!({ "name": "lisp_eval", "arguments": { "program": program } });
        let begun = Instant::now();
        let answer = served.ask("tools/call", &asked)?["structuredContent"].clone();
        let took = begun.elapsed();
        let text = answer["result"].as_str().unwrap_or_default();
        let numbers: Vec<u64> =
            text.trim_matches(['[', ']']).split(' ').filter_map(|number| number.parse().ok()).collect();
        let &[rows, sum] = &numbers[..] else { return Err(format!("the program gave {answer}")) };
        if sum == 0 || sum != (0..rows).map(|id| id % 1_000).sum::<u64>() {
            return Err(format!("a row is missing: {text}"));
        }
        let (idle, peak) = (served.memory("VmRSS:")?, served.memory("VmHWM:")?);
        let fuel = answer["usage"]["fuel"].as_u64().unwrap_or(0);
        Ok(ProgramFigures { idle, peak, took, fuel })
    };
    let ProgramFigures { idle, .. } = run(4 << 20)?;
    Ok(ProgramFigures { idle, ..run(bytes)? })
}
