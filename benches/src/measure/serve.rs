//! Measures requests a second of `ptc serve`, against a bare loop that only reads and answers JSON-RPC with
//! the same framing.
//!
//! Both are child processes with the same driver. It writes all requests as fast as the pipe takes them while
//! it reads the answers, in alternating rounds.

use crate::measure::programs::Program;
use ptc_server::redact::RedactingWriter;
use ptc_server::server::lines;
use ptc_server::server::output::Output;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// Longest line that the bare loop reads, as in `ptc serve`.
const MAX_FRAME_BYTES: usize = 8 << 20;

/// Bytes of answers that go to the writer at once, as in `ptc serve`.
const ENOUGH_OUTPUT: usize = 32 << 10;

/// The members of a request that a minimal server reads.
#[derive(Deserialize)]
struct EchoRequest<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// The bare loop: reads each line as a request and gives every `tools/call` the same answer. Reader and
/// writer threads are those of `ptc serve`.
///
/// # Errors
/// Threads cannot be started.
pub fn echo(
    input: impl Read + Send + 'static,
    output: RedactingWriter<impl Write + Send + 'static>,
) -> io::Result<()> {
    let (mut input, _) = lines::spawn_reader(input, MAX_FRAME_BYTES)?;
    let output = Output::spawn(output)?;
    let mut out = Vec::with_capacity(2 * ENOUGH_OUTPUT);
    while let Some(batch) = input.blocking_recv() {
        let Some(batch) = batch.into_bytes() else { continue };
        for line in lines::split(&batch) {
            let Ok(EchoRequest { id, method, params }) = serde_json::from_slice(line) else { continue };
            if method != "tools/call" || params.is_none() {
                continue;
            }
            out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            out.extend_from_slice(id.get().as_bytes());
            out.extend_from_slice(br#","result":{"content":[{"type":"text","text":"3"}],"isError":false}}"#);
            out.push(b'\n');
            if out.len() >= ENOUGH_OUTPUT {
                output.send(&mut out);
            }
        }
        if !out.is_empty() {
            output.send(&mut out);
        }
    }
    output.finish_blocking()
}

/// A server and the request that it is measured with.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// What it is called.
    pub name: &'static str,
    /// The program to start.
    program: Program,
    /// Its arguments.
    arguments: &'static [&'static str],
    /// Method and parameters of the request.
    request: &'static str,
    /// The end of every answer.
    answer: &'static str,
    /// Index of the baseline side, which gets the same request.
    bare: usize,
}

const EVAL: &str = r#""method":"tools/call","params":{"name":"lisp_eval","arguments":{"program":"(+ 1 2)"}}"#;
const THREE: &str = r#""result":{"content":[{"type":"text","text":"3"}],"isError":false}}"#;

/// The request of a stateless client, which sends this metadata every time.
const META: &str = r#""method":"tools/call","params":{"name":"lisp_eval","arguments":{"program":"(+ 1 2)"},"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0"},"io.modelcontextprotocol/clientCapabilities":{}}}"#;

/// The same with data for the program.
const CONTEXT: &str = r#""method":"tools/call","params":{"name":"lisp_eval","arguments":{"program":"(+ data/a 2)","context":{"a":1,"name":"bench"}},"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0"},"io.modelcontextprotocol/clientCapabilities":{}}}"#;
/// The same with nested data.
const NESTED: &str = r#""method":"tools/call","params":{"name":"lisp_eval","arguments":{"program":"(+ (get-in data/user [:id]) (count data/tags))","context":{"user":{"id":1,"name":"bench"},"tags":["a","b"]}},"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0"},"io.modelcontextprotocol/clientCapabilities":{}}}"#;
const COMPLETE: &str = concat!(
    r#""result":{"resultType":"complete","content":[{"type":"text","text":"3"}],"isError":false,"_meta":"#,
    r#"{"io.modelcontextprotocol/serverInfo":{"name":"ptc","title":"PTC-Lisp","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}}}"#
);

/// The sides that are measured.
pub const SIDES: [Side; 9] = [
    Side { name: "bare loop", program: Program::Own, arguments: ECHO, request: EVAL, answer: THREE, bare: 0 },
    Side {
        name: "ptc serve, lisp_eval (+ 1 2)",
        program: Program::Product,
        arguments: &["serve"],
        request: EVAL,
        answer: THREE,
        bare: 0,
    },
    Side {
        name: "ptc serve, ping",
        program: Program::Product,
        arguments: &["serve"],
        request: r#""method":"ping""#,
        answer: r#""result":{}}"#,
        bare: 0,
    },
    Side {
        name: "bare loop, requests with _meta",
        program: Program::Own,
        arguments: ECHO,
        request: META,
        answer: THREE,
        bare: 3,
    },
    Side {
        name: "ptc serve, lisp_eval with _meta",
        program: Program::Product,
        arguments: &["serve"],
        request: META,
        answer: COMPLETE,
        bare: 3,
    },
    Side {
        name: "bare loop, with context and _meta",
        program: Program::Own,
        arguments: ECHO,
        request: CONTEXT,
        answer: THREE,
        bare: 5,
    },
    Side {
        name: "ptc serve, lisp_eval with context and _meta",
        program: Program::Product,
        arguments: &["serve"],
        request: CONTEXT,
        answer: COMPLETE,
        bare: 5,
    },
    Side {
        name: "bare loop, with nested context and _meta",
        program: Program::Own,
        arguments: ECHO,
        request: NESTED,
        answer: THREE,
        bare: 7,
    },
    Side {
        name: "ptc serve, lisp_eval with nested context and _meta",
        program: Program::Product,
        arguments: &["serve"],
        request: NESTED,
        answer: COMPLETE,
        bare: 7,
    },
];

const ECHO: &[&str] = &["echo-server"];

/// Figures of one side: medians of its rounds.
#[derive(Clone, Copy, Debug)]
pub struct SideFigures {
    /// Requests a second by the wall clock.
    pub per_second: f64,
    /// Requests a second as a fraction of the bare loop's in the same round. Other load on the machine
    /// disturbs this ratio less.
    pub of_bare: f64,
    /// CPU time of the server process for one request.
    pub cpu: Duration,
}

/// Measures every side: `rounds` rounds in turn, after one to warm up.
///
/// # Errors
/// A server that does not start, or that answers something else.
pub fn measure(requests: usize, rounds: usize) -> io::Result<[SideFigures; SIDES.len()]> {
    let mut servers = Vec::new();
    for side in SIDES {
        servers.push(SideServer::start(side, requests)?);
    }
    for server in &mut servers {
        server.warm_up()?;
    }
    let mut all: [Vec<(Duration, Duration)>; SIDES.len()] = Default::default();
    for _ in 0..rounds.max(1) {
        for (server, taken) in servers.iter_mut().zip(&mut all) {
            taken.push(server.round()?);
        }
    }
    let wall = |(wall, _): &(Duration, Duration)| wall.as_secs_f64();
    let bares = SIDES.map(|side| all[side.bare].iter().map(wall).collect::<Vec<f64>>());
    Ok(std::array::from_fn(|side| {
        let (taken, bare) = (&all[side], &bares[side]);
        SideFigures {
            per_second: requests as f64 / median(taken.iter().map(wall)),
            of_bare: median(taken.iter().zip(bare).map(|(taken, bare)| bare / wall(taken))),
            cpu: Duration::from_secs_f64(median(taken.iter().map(|(_, cpu)| cpu.as_secs_f64())))
                .div_f64(requests.max(1) as f64),
        }
    }))
}

/// The first `count` lines of a text, including their line ends.
fn lines_of(text: &[u8], count: usize) -> &[u8] {
    let end = memchr::memchr_iter(b'\n', text).take(count).last();
    text.get(..end.map_or(0, |end| end + 1)).unwrap_or_default()
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A server under load.
struct SideServer {
    side: Side,
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    requests: Vec<u8>,
    count: usize,
    /// Bytes of all answers of one round.
    answer_bytes: usize,
}

impl SideServer {
    fn start(side: Side, count: usize) -> io::Result<SideServer> {
        let mut child = side
            .program
            .command()?
            .args(side.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("no pipes"));
        };
        let mut requests = Vec::new();
        for id in 0..count {
            writeln!(requests, r#"{{"jsonrpc":"2.0","id":{id},{}}}"#, side.request)?;
        }
        Ok(SideServer { side, child, input: Some(input), output, requests, count, answer_bytes: 0 })
    }

    /// Runs one round and checks its answers: each has its own id and the expected text.
    ///
    /// One request goes first, alone. A program that is not yet known to be tiny needs a slot in the queue,
    /// which has fewer slots than there are requests.
    fn warm_up(&mut self) -> io::Result<()> {
        self.exchange(self.count.min(1), |_| {})?;
        let mut answers = Vec::new();
        self.exchange(self.count, |part| answers.extend_from_slice(part))?;
        self.answer_bytes = answers.len();
        let mut answered = vec![false; self.count];
        for line in lines::split(&answers) {
            let wrong = || io::Error::other(format!("unexpected answer: {}", String::from_utf8_lossy(line)));
            let text = std::str::from_utf8(line).map_err(|_| wrong())?;
            let id = text.strip_prefix(r#"{"jsonrpc":"2.0","id":"#).and_then(|rest| rest.split_once(','));
            let (id, rest) = id.ok_or_else(wrong)?;
            let place = id.parse::<usize>().ok().and_then(|id| answered.get_mut(id)).ok_or_else(wrong)?;
            if rest != self.side.answer || std::mem::replace(place, true) {
                return Err(wrong());
            }
        }
        Ok(())
    }

    /// Wall clock and CPU time of the server for one round.
    fn round(&mut self) -> io::Result<(Duration, Duration)> {
        let mut bytes = 0;
        let cpu = self.cpu()?;
        let begun = Instant::now();
        self.exchange(self.count, |part| bytes += part.len())?;
        let wall = begun.elapsed();
        if bytes != self.answer_bytes {
            return Err(io::Error::other(format!("{}: other answers than before", self.side.name)));
        }
        Ok((wall, self.cpu()?.saturating_sub(cpu)))
    }

    /// Writes the first `count` requests and reads as many lines.
    fn exchange(&mut self, count: usize, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let Some(mut input) = self.input.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let requests = match count {
            all if all == self.count => &self.requests[..],
            some => lines_of(&self.requests, some),
        };
        let output = &mut self.output;
        let mut missing = count;
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || input.write_all(requests).map(|()| input));
            let mut buffer = vec![0; 256 << 10];
            while missing > 0 {
                let read = output.read(&mut buffer)?;
                if read == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let part = &buffer[..read];
                take(part);
                missing = missing.saturating_sub(part.iter().filter(|&&byte| byte == b'\n').count());
            }
            let written = writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer is gone")));
            self.input = Some(written?);
            Ok(())
        })
    }

    fn cpu(&self) -> io::Result<Duration> {
        super::clock::cpu_of(self.child.id())
    }
}

impl Drop for SideServer {
    fn drop(&mut self) {
        // The server ends with its input; errors at its end do not matter.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
