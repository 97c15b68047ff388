//! Measures `ptc serve --http` under load: requests a second, waiting time of a quiet client during a flood,
//! and memory of idle connections and sessions.
//!
//! The rate is compared with a bare axum echo of the same bodies. [`tokens`]: what a signed token costs.

pub mod tokens;

use super::clock;
use crate::measure::programs::Program;
use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A request as a client of 2026-07-28 sends it, and its answer.
const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lisp_eval","arguments":{"program":"(+ 1 2)"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const ANSWER: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"3"}],"isError":false,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"ptc","title":"PTC-Lisp","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}}}"#
);

/// A long-running program, for a flood of them.
const LONG: &str = "(reduce + (map (fn [n] (* n n)) (range 20000)))";

/// Length of a round, and the pause between two requests of the quiet client.
const ROUND: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(2);

/// Tokens of two clients; the file of tokens holds their hashes.
const TOKENS: [&str; 2] = ["quiet-quiet-quiet-quiet-quiet-quiet", "flood-flood-flood-flood-flood-flood"];

/// Arguments of `ptc-bench http`.
#[derive(Debug, clap::Args)]
pub struct HttpBenchArgs {
    /// Connections that ask at once
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Rounds of a second each; the median counts
    #[arg(long, default_value_t = 7)]
    pub rounds: usize,
    /// Requests of the quiet client, alone and during the flood
    #[arg(long, default_value_t = 2_000)]
    pub quiet: usize,
    /// Idle connections
    #[arg(long, default_value_t = 10_000)]
    pub idle: usize,
    /// Sessions
    #[arg(long, default_value_t = 1_000)]
    pub sessions: usize,
}

/// Runs all measurements and passes each line of the report to `say`.
///
/// # Errors
/// A server that does not start, or answers something else; errors of `say`.
pub fn report<E: From<io::Error>>(
    args: &HttpBenchArgs,
    say: impl Fn(&str) -> Result<(), E>,
) -> Result<(), E> {
    let rates = rates(args.connections, args.rounds)?;
    say(&format!(
        "| {} keep-alive connections | requests a second | CPU a request |\n|---|---|---|\n\
         | bare axum echo | {:.0} | {:.1} µs |\n| ptc serve --http, lisp_eval (+ 1 2) | {:.0}, {:.2} of it | {:.1} µs |",
        args.connections,
        rates.echo.per_second,
        rates.echo.cpu_micros,
        rates.ptc.per_second,
        rates.ratio,
        rates.ptc.cpu_micros
    ))?;
    say("\n| a quiet client | p50 | p99 | p99 of that alone |\n|---|---|---|---|")?;
    let waits = fairness(args.connections, args.quiet)?;
    let alone = waits.first().map_or(0.0, |wait| wait.p99);
    for QuietWait { load, p50, p99 } in waits {
        say(&format!("| {load} | {p50:.0} µs | {p99:.0} µs | {:.2} |", p99 / alone))?;
    }
    let idle = idle(args.idle, args.sessions)?;
    say(&format!(
        "\n{} idle connections: {:.1} KB each; {} sessions: {:.1} KB each; answered beside them: {}",
        args.idle,
        idle.connection_bytes / 1024.0,
        args.sessions,
        idle.session_bytes / 1024.0,
        idle.answered
    ))
}

/// The baseline server: reads the body of each request and answers with the fixed `ANSWER`.
///
/// # Errors
/// No port to listen at.
pub async fn echo(say: impl FnOnce(&str) -> io::Result<()>) -> io::Result<()> {
    let answer = async |body: Bytes| {
        std::hint::black_box(body);
        ([(CONTENT_TYPE, "application/json")], ANSWER)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    say(&format!("listening at http://{}/mcp", listener.local_addr()?))?;
    axum::serve(listener, Router::new().route("/mcp", post(answer))).await
}

/// Throughput of one side.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Requests a second.
    pub per_second: f64,
    /// CPU time of the server per request.
    pub cpu_micros: f64,
}

/// Throughput of both sides, measured in alternating rounds.
#[derive(Debug)]
pub struct Rates {
    /// The bare echo.
    pub echo: Rate,
    /// `ptc serve`.
    pub ptc: Rate,
    /// Median of the ratio of `ptc` to the echo in the same round.
    pub ratio: f64,
}

/// Measures requests a second over this many connections that ask without a pause.
///
/// # Errors
/// A server that does not start, or answers something else.
pub fn rates(connections: usize, rounds: usize) -> io::Result<Rates> {
    let echo = LoadServer::start(Program::Own, &["http-echo"], None)?;
    let ptc = LoadServer::start(Program::Product, &["serve", "--http", "127.0.0.1:0"], None)?;
    let mut figures: [Vec<Rate>; 2] = Default::default();
    for round in 0..=rounds.max(1) {
        for (server, figures) in [&echo, &ptc].into_iter().zip(&mut figures) {
            let cpu = clock::cpu_of(server.child.id())?;
            let begun = Instant::now();
            let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
            let flooded = std::thread::scope(|scope| {
                let flood = scope
                    .spawn(|| flood(server, connections, &request(&server.address, "", BODY), &stop, &count));
                std::thread::sleep(ROUND);
                stop.store(true, Ordering::Relaxed);
                flood.join()
            });
            flooded.map_err(|_| io::Error::other("a client has failed"))??;
            let (wall, requests) = (begun.elapsed(), count.load(Ordering::Relaxed).max(1) as f64);
            let cpu = clock::cpu_of(server.child.id())?.saturating_sub(cpu);
            // The first round warms both up.
            if round > 0 {
                figures.push(Rate {
                    per_second: requests / wall.as_secs_f64(),
                    cpu_micros: cpu.as_secs_f64() * 1e6 / requests,
                });
            }
        }
    }
    let [echo, ptc] = figures;
    let ratio = median(echo.iter().zip(&ptc).map(|(echo, ptc)| ptc.per_second / echo.per_second));
    let rate = |all: &[Rate]| Rate {
        per_second: median(all.iter().map(|rate| rate.per_second)),
        cpu_micros: median(all.iter().map(|rate| rate.cpu_micros)),
    };
    Ok(Rates { echo: rate(&echo), ptc: rate(&ptc), ratio })
}

/// Waiting times of the quiet client.
#[derive(Debug)]
pub struct QuietWait {
    /// The other load on the server.
    pub load: &'static str,
    /// The median, in microseconds.
    pub p50: f64,
    /// The 99th percentile, in microseconds.
    pub p99: f64,
}

/// Measures how long a quiet client waits for a tiny program: alone, and during a flood over this many
/// connections.
///
/// On several cores the server has half of them and its clients the other half, and the flood runs at idle
/// priority. So the figures show the fairness of the server, not how the system shares its cores.
///
/// # Errors
/// A server that does not start, or answers something else.
pub fn fairness(connections: usize, requests: usize) -> io::Result<Vec<QuietWait>> {
    let folder = std::env::temp_dir().join(format!("ptc-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("tokens.toml");
    let tables: Vec<String> = TOKENS
        .iter()
        .map(|token| {
            let hash: String = ptc_server::server::http::access::hash(token)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            format!("[{}]\nsha256 = \"{hash}\"\n", &token[..5])
        })
        .collect();
    std::fs::write(&file, tables.concat())?;
    let path = file.to_str().ok_or_else(|| io::Error::other("no UTF-8 path"))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let server = LoadServer::start(
        Program::Product,
        &["serve", "--http", "127.0.0.1:0", "--http-tokens", path],
        Some(0..cores / 2),
    );
    let _ = std::fs::remove_dir_all(&folder);
    let server = server?;
    let [quiet, loud] = TOKENS.map(|token| format!("authorization: Bearer {token}\r\n"));
    let long = BODY.replace("(+ 1 2)", LONG);
    let floods = [
        ("alone", None),
        ("beside a flood of tiny programs", Some(BODY.to_owned())),
        ("beside a flood of long programs", Some(long)),
    ];
    let mut waits = Vec::new();
    for (load, body) in floods {
        let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
        let measured = std::thread::scope(|scope| {
            let flood = body.map(|body| {
                let request = request(&server.address, &loud, &body);
                let (server, stop, count) = (&server, &stop, &count);
                scope.spawn(move || {
                    pin(cores / 2..cores);
                    only_when_idle();
                    flood(server, connections, &request, stop, count)
                })
            });
            let asking = scope.spawn(|| {
                pin(cores / 2..cores);
                ask_quietly(&server, &request(&server.address, &quiet, BODY), requests)
            });
            let measured = asking.join();
            stop.store(true, Ordering::Relaxed);
            let flooded = flood.map_or(Ok(Ok(())), std::thread::ScopedJoinHandle::join);
            // Without a working flood the waiting time means nothing.
            flooded.map_err(|_| io::Error::other("the flood has failed")).flatten()?;
            measured.map_err(|_| io::Error::other("the quiet client has failed")).flatten()
        });
        let mut times = measured?;
        times.sort_by(f64::total_cmp);
        let at = |part: f64| times.get((times.len().saturating_sub(1) as f64 * part) as usize).copied();
        let (p50, p99) = (at(0.5).unwrap_or(f64::NAN), at(0.99).unwrap_or(f64::NAN));
        waits.push(QuietWait { load, p50, p99 });
    }
    Ok(waits)
}

/// Memory of idle connections and sessions.
#[derive(Debug)]
pub struct IdleFigures {
    /// Resident bytes of a connection that has answered one request and is idle.
    pub connection_bytes: f64,
    /// Resident bytes of a session of the handshake era.
    pub session_bytes: f64,
    /// Whether a client that connected later was answered.
    pub answered: bool,
}

/// Opens this many connections and sessions, and measures the server's memory.
///
/// # Errors
/// A server that does not start, or does not accept them.
pub fn idle(connections: usize, sessions: usize) -> io::Result<IdleFigures> {
    let most = (sessions + 1).to_string();
    let flags = [
        "serve",
        "--http",
        "127.0.0.1:0",
        "--http-max-sessions",
        &most,
        "--http-max-sessions-per-owner",
        &most,
    ];
    let server = LoadServer::start(Program::Product, &flags, None)?;
    raise_descriptors();
    let one = request(&server.address, "", BODY);
    // Allocates what all connections share, before the first measurement.
    let mut first = Vec::new();
    for _ in 0..64 {
        first.push(server.ask(&one)?);
    }
    let before = server.settled()?;
    let mut open = Vec::with_capacity(connections);
    for _ in 0..connections {
        open.push(server.ask(&one)?);
    }
    let with_connections = server.settled()?;
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json\r\ncontent-length: {}\r\n\r\n{initialize}",
        server.address,
        initialize.len()
    );
    let mut stream = TcpStream::connect(&server.address)?;
    let mut buffer = Vec::new();
    for _ in 0..sessions {
        stream.write_all(head.as_bytes())?;
        read_answer(&mut stream, &mut buffer)?;
    }
    let with_sessions = server.settled()?;
    let answered = server.ask(&one).is_ok();
    let each = |more: u64, less: u64, count: usize| more.saturating_sub(less) as f64 / count.max(1) as f64;
    Ok(IdleFigures {
        connection_bytes: each(with_connections, before, connections),
        session_bytes: each(with_sessions, with_connections, sessions),
        answered,
    })
}

/// An HTTP request as bytes.
fn request(address: &str, more: &str, body: &str) -> Vec<u8> {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: lisp_eval\r\n{more}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Asks over this many connections, each as soon as its answer has arrived, until `stop` is set.
fn flood(
    server: &LoadServer,
    connections: usize,
    request: &[u8],
    stop: &AtomicBool,
    count: &AtomicU64,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let one = async || -> io::Result<()> {
            let mut stream = tokio::net::TcpStream::connect(&server.address).await?;
            stream.set_nodelay(true)?;
            let mut buffer = vec![0; 16 << 10];
            while !stop.load(Ordering::Relaxed) {
                stream.write_all(request).await?;
                let mut filled = 0;
                while whole(&buffer[..filled])?.is_none_or(|length| filled < length) {
                    match stream.read(&mut buffer[filled..]).await? {
                        0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                        read => filled += read,
                    }
                }
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        let all: io::Result<Vec<()>> =
            futures_util::future::join_all((0..connections).map(|_| one())).await.into_iter().collect();
        all.map(drop)
    })
}

/// Asks with a pause before each request. Returns the time of each answer, in microseconds.
fn ask_quietly(server: &LoadServer, request: &[u8], requests: usize) -> io::Result<Vec<f64>> {
    let mut stream = TcpStream::connect(&server.address)?;
    stream.set_nodelay(true)?;
    let (mut times, mut buffer) = (Vec::with_capacity(requests), Vec::new());
    // The first tenth warms up.
    for number in 0..requests + requests / 10 {
        std::thread::sleep(PAUSE);
        let begun = Instant::now();
        stream.write_all(request)?;
        read_answer(&mut stream, &mut buffer)?;
        if !buffer.ends_with(ANSWER.as_bytes()) {
            return Err(io::Error::other(String::from_utf8_lossy(&buffer).into_owned()));
        }
        if number >= requests / 10 {
            times.push(begun.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok(times)
}

/// The length of the whole answer, once its head has arrived.
fn whole(text: &[u8]) -> io::Result<Option<usize>> {
    let Some(end) = memchr::memmem::find(text, b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&text[..end]).map_err(io::Error::other)?;
    if !head.starts_with("HTTP/1.1 200") {
        return Err(io::Error::other(head.to_owned()));
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let length = length.ok_or_else(|| io::Error::other("an answer without a length"))?;
    Ok(Some(end + 4 + length))
}

fn read_answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.clear();
    let mut piece = [0; 4 << 10];
    while whole(buffer)?.is_none_or(|length| buffer.len() < length) {
        match stream.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => buffer.extend_from_slice(&piece[..read]),
        }
    }
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A server under load; it ends when dropped.
struct LoadServer {
    child: Child,
    address: String,
}

impl LoadServer {
    /// Starts it with these arguments, on these cores.
    fn start(
        program: Program,
        arguments: &[&str],
        cores: Option<std::ops::Range<usize>>,
    ) -> io::Result<LoadServer> {
        let mut command = program.command()?;
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A child inherits the cores of the thread that starts it.
        let spawned = std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    cores.into_iter().for_each(pin);
                    command.spawn()
                })
                .join()
        });
        let mut child = spawned.map_err(|_| io::Error::other("no thread"))??;
        let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(io::Error::other("no pipes"));
        };
        let (sender, receiver) = std::sync::mpsc::channel();
        for stream in [Box::new(output) as Box<dyn Read + Send>, Box::new(errors)] {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    // The receiver is gone once the address is known.
                    let _ = sender.send(line);
                }
            });
        }
        let mut server = LoadServer { child, address: String::new() };
        while let Ok(line) = receiver.recv_timeout(Duration::from_secs(60)) {
            let url = line.strip_prefix("listening at http://").and_then(|rest| rest.split('/').next());
            if let Some(address) = url {
                server.address = address.to_owned();
                return Ok(server);
            }
        }
        Err(io::Error::other("the server does not listen"))
    }

    /// Asks once over a new connection and returns it open.
    fn ask(&self, request: &[u8]) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.write_all(request)?;
        read_answer(&mut stream, &mut Vec::new())?;
        Ok(stream)
    }

    /// Resident bytes of the server, once they have stopped changing.
    fn settled(&self) -> io::Result<u64> {
        let resident = || -> io::Result<u64> {
            let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
            let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            kilobytes.map(|kilobytes| kilobytes << 10).ok_or_else(|| io::Error::other("no VmRSS"))
        };
        std::thread::sleep(Duration::from_secs(3));
        resident()
    }
}

impl Drop for LoadServer {
    fn drop(&mut self) {
        // Only this benchmark uses the server, so it ends with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Raises the limit of descriptors to the most that the system allows: a client with 10,000 connections needs
/// them.
fn raise_descriptors() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both functions are given a valid `rlimit`, and change nothing but the limit of this process.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// Restricts this thread to these cores. Does nothing when `cores` is empty, or on systems other than Linux.
fn pin(cores: std::ops::Range<usize>) {
    #[cfg(target_os = "linux")]
    if !cores.is_empty() {
        // SAFETY: a zeroed set is valid, and the call only changes the affinity of this thread.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            cores.for_each(|core| libc::CPU_SET(core, &mut set));
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = cores;
}

/// Gives this thread idle priority: it runs only on cores that are otherwise idle.
fn only_when_idle() {
    #[cfg(target_os = "linux")]
    {
        let priority = libc::sched_param { sched_priority: 0 };
        // SAFETY: the parameter lives across the call, which changes nothing but this thread.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const priority) };
    }
}
