//! Measures fairness: how long a new tiny program waits in a server full of long ones, and how many requests
//! of a flood are refused.

use crate::measure::programs::Program;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// Kinds of long programs. None of them ends within the benchmark.
pub const KINDS: [(&str, &str); 6] = [
    ("endless loops", "(loop [n 0] (recur (inc n)))"),
    (
        "sorts of 400,000 integers",
        "(let [v (vec (map (fn [n] (mod (* n 7919) 1000003)) (range 400000)))] (loop [] (sort v) (recur)))",
    ),
    (
        "equality of shared structure",
        "(let [dag (fn [] (reduce (fn [a _] [a a]) nil (range 64)))] (= (dag) (dag)))",
    ),
    ("products of 60,000 integers", "(loop [] (reduce * (range 1 60000)) (recur))"),
    (
        "pr-str of shared structure",
        "(let [d (reduce (fn [a _] [a a]) nil (range 20))] (loop [] (pr-str d) (recur)))",
    ),
    ("JSON of 500,000 integers", "(let [v (vec (range 500000))] (loop [] (json/generate-string v) (recur)))"),
];

/// Waiting times of the programs that were sent in one way, sorted.
#[derive(Debug)]
pub struct Waits(Vec<Duration>);

impl Waits {
    /// The waiting time that this fraction of the programs did not exceed.
    pub fn at(&self, part: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        self.0.get((last as f64 * part).round() as usize).copied().unwrap_or_default()
    }
}

/// Waiting times of new programs while long ones run.
#[derive(Debug)]
pub struct WaitsUnderLoad {
    /// Each new program was sent when the one before was answered.
    pub in_turn: Waits,
    /// All new programs were sent at once.
    pub at_once: Waits,
}

/// Result of writing requests as fast as the server reads them.
#[derive(Clone, Copy, Debug)]
pub struct Flood {
    /// Requests that were answered with `busy`.
    pub busy: usize,
    /// Time from the first request to the last answer.
    pub wall: Duration,
}

/// Sends new programs to a server in which `others` programs of this kind run.
///
/// # Errors
/// A server that does not start, or that answers something else.
pub fn under_load(program: &str, others: usize, programs: usize) -> io::Result<WaitsUnderLoad> {
    // Limits that hold the large values of the long programs: the waiting time is measured, not the refusal.
    let mut server = FairnessServer::start(&[
        "serve",
        "--timeout",
        "600s",
        "--fuel",
        "1000000000000",
        "--memory",
        "128M",
    ])?;
    for other in 0..others {
        server.send(&request(&format!("other-{other}"), program))?;
    }
    let in_turn = (0..programs).map(|id| server.round_trip(id)).collect::<io::Result<Vec<_>>>()?;
    let at_once = server.all_at_once(programs..2 * programs, |_| {})?.0;
    let sorted = |mut waits: Vec<Duration>| {
        waits.sort_unstable();
        Waits(waits)
    };
    Ok(WaitsUnderLoad { in_turn: sorted(in_turn), at_once: sorted(at_once) })
}

/// Pipelines distinct new programs to a server with default flags.
///
/// # Errors
/// A server that does not start, or that answers something else.
pub fn flood(programs: usize) -> io::Result<Flood> {
    let mut server = FairnessServer::start(&["serve"])?;
    let mut busy = 0;
    let is_busy = |line: &[u8]| memchr::memmem::find(line, br#""text":"busy:"#).is_some();
    let (_, wall) = server.all_at_once(0..programs, |line| busy += usize::from(is_busy(line)))?;
    Ok(Flood { busy, wall })
}

/// A program that the server has not seen before, and its expected answer.
fn tiny(id: usize) -> (String, String) {
    (format!("(+ {id} 1)"), (id + 1).to_string())
}

fn request(id: &str, program: &str) -> String {
    let params = serde_json::json!({ "name": "lisp_eval", "arguments": { "program": program } });
    serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

/// The number of the program that an answer belongs to.
fn number(line: &[u8]) -> io::Result<usize> {
    let text = std::str::from_utf8(line).unwrap_or_default();
    let id = text.strip_prefix(r#"{"jsonrpc":"2.0","id":""#).and_then(|rest| rest.split_once('"'));
    id.and_then(|(id, _)| id.parse().ok())
        .ok_or_else(|| io::Error::other(format!("unexpected answer: {text}")))
}

struct FairnessServer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl FairnessServer {
    fn start(arguments: &[&str]) -> io::Result<FairnessServer> {
        let mut child = Program::Product
            .command()?
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(FairnessServer {
                child,
                input: Some(input),
                output: BufReader::with_capacity(256 << 10, output),
            }),
            _ => Err(io::Error::other("no pipes")),
        }
    }

    fn send(&mut self, line: &str) -> io::Result<()> {
        let Some(input) = &mut self.input else { return Err(io::ErrorKind::BrokenPipe.into()) };
        input.write_all(format!("{line}\n").as_bytes())
    }

    /// Reads the next answer and returns the number of its program. The answer must be right or say `busy`.
    fn receive(&mut self, line: &mut Vec<u8>) -> io::Result<usize> {
        line.clear();
        if self.output.read_until(b'\n', line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let number = number(line)?;
        let expected = format!(r#""text":"{}""#, tiny(number).1);
        let is_answer = [expected.as_bytes(), br#""text":"busy:"#]
            .iter()
            .any(|expected| memchr::memmem::find(line, expected).is_some());
        if is_answer {
            return Ok(number);
        }
        Err(io::Error::other(format!("unexpected answer: {}", String::from_utf8_lossy(line))))
    }

    fn round_trip(&mut self, id: usize) -> io::Result<Duration> {
        let line = request(&id.to_string(), &tiny(id).0);
        let begun = Instant::now();
        self.send(&line)?;
        let answered = self.receive(&mut Vec::new())?;
        if answered == id {
            Ok(begun.elapsed())
        } else {
            Err(io::Error::other("the answer of another program"))
        }
    }

    /// Writes all requests while the answers are read. Returns the time of each answer and of the last one.
    fn all_at_once(
        &mut self,
        ids: std::ops::Range<usize>,
        mut look: impl FnMut(&[u8]),
    ) -> io::Result<(Vec<Duration>, Duration)> {
        let Some(mut input) = self.input.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let requests: String =
            ids.clone().flat_map(|id| [request(&id.to_string(), &tiny(id).0), "\n".into()]).collect();
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || input.write_all(requests.as_bytes()).map(|()| input));
            let mut waits = Vec::with_capacity(ids.len());
            let mut line = Vec::new();
            for _ in ids {
                self.receive(&mut line)?;
                waits.push(begun.elapsed());
                look(&line);
            }
            let written = writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer is gone")));
            self.input = Some(written?);
            Ok((waits, begun.elapsed()))
        })
    }
}

impl Drop for FairnessServer {
    fn drop(&mut self) {
        // Programs that still run on the server do not matter.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
