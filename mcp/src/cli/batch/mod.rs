//! `ptc batch`: JSON Lines in, JSON Lines out, in input order, on all cores.

mod lane;

use self::lane::{Answered, Chunk, Lanes};
use crate::cli::boot::{Need, UpstreamFlags, boot};
use crate::cli::cores;
use crate::cli::flags::limits::LimitFlags;
use crate::cli::flags::server::ServerLimits;
use crate::console::exit::{Abort, Exit};
use crate::edge::{self, Filtered, Form, shapes};
use crate::server::lines::{self, Input};
use ptc_runtime::Capacity;
use ptc_runtime::options::RunOptions;
use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;
use tokio::sync::mpsc;

/// Programs in work for each core: enough to keep workers busy behind a slow one.
const WINDOW_PER_CORE: usize = 128;
/// Programs that go to a lane together.
const CHUNK: usize = 32;
/// Longest input line.
pub(super) const MAX_LINE_BYTES: usize = 64 << 20;
/// Answers are written when this much has piled up, or when nothing else is to be done.
const WRITE_BYTES: usize = 256 << 10;
/// Longest time that a finished answer waits for company.
const WRITE_DELAY: Duration = Duration::from_millis(50);

/// Arguments of `ptc batch`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Reads lines {\"id\": any, \"program\": text, \"context\": object?} and writes, in the same order,
  {\"id\", \"ok\": true,  \"value\": pr-str text, \"prints\": [line]}
  {\"id\", \"ok\": false, \"error\": reason, \"message\": text, \"prints\": [line]}
where a program that called (fail v) has \"error\": \"fail\" and \"value\" too. A malformed line gives a
line with \"error\": \"args_error\".

Examples:
  echo '{\"id\":1,\"program\":\"(+ 1 2)\"}' | ptc batch
  ptc batch --loop-limit 1000 --timeout 2s < programs.jsonl > results.jsonl

Exit code: 0 when the whole input was answered, whatever the programs did."
)]
pub struct BatchArgs {
    /// The clock as programs see it, in milliseconds since 1970 [default: the real one]
    #[arg(long, value_name = "MILLIS", allow_negative_numbers = true)]
    now: Option<i64>,
    #[command(flatten)]
    upstreams: UpstreamFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

/// Runs the command.
pub async fn run(args: BatchArgs) -> Result<Exit, Abort> {
    let booted = boot(&args.upstreams, Need::OnDemand, 0).await?;
    let limits = args.limits.limits(booted.has_upstreams)?;
    let total_bytes = ServerLimits::default().total_bytes;
    booted.runtime.set_load(Capacity { total_bytes, ..Capacity::default() });
    let input = lines::spawn_reader(std::io::stdin(), MAX_LINE_BYTES)?;
    // An answer does not say how long it took.
    let options = RunOptions { limits, now_ms: args.now, timed: false, ..RunOptions::default() };
    let runtime = booted.runtime;
    let (lanes, answered) = Lanes::start(cores(), &runtime, &options)?;
    let done = batch(&lanes, answered, input, edge::stdout(Form::Json(&shapes::REPORT))).await;
    lanes.join();
    runtime.shutdown().await;
    done?;
    Ok(Exit::Ok)
}

/// Hands chunks out and writes their answers in order.
async fn batch(
    lanes: &Lanes,
    mut answered: mpsc::UnboundedReceiver<Answered>,
    mut input: mpsc::Receiver<Input>,
    mut output: Filtered<impl Write>,
) -> std::io::Result<()> {
    let window = WINDOW_PER_CORE * cores() / CHUNK;
    // Chunks that have been handed out, the first of them `first`.
    let mut running: VecDeque<Option<Vec<u8>>> = VecDeque::new();
    let mut first = 0;
    let mut waiting: VecDeque<Vec<Vec<u8>>> = VecDeque::new();
    let mut out: Vec<u8> = Vec::with_capacity(WRITE_BYTES * 2);
    let mut open = true;
    loop {
        while running.len() < window
            && let Some(lines) = waiting.pop_front()
        {
            lanes.hand_out(Chunk { number: first + running.len(), lines });
            running.push_back(None);
        }
        while let Ok((number, answers)) = answered.try_recv() {
            running[number - first] = Some(answers);
        }
        while let Some(answers) = running.front_mut().and_then(Option::take) {
            running.pop_front();
            first += 1;
            out.extend_from_slice(&answers);
        }
        let idle = running.is_empty() && waiting.is_empty() && input.is_empty();
        if out.len() >= WRITE_BYTES || (idle && !out.is_empty()) {
            output.write_all(&out)?;
            output.flush()?;
            out.clear();
        }
        if !waiting.is_empty() && running.len() < window {
            continue;
        }
        if idle && !open {
            return Ok(());
        }
        tokio::select! {
            batch = input.recv(), if open && waiting.is_empty() => match batch {
                None => open = false,
                Some(Input::Oversize) => waiting.push_back(vec![Vec::new()]),
                Some(Input::Lines(lines)) => {
                    let lines = lines::split(&lines).filter(|line| !line.trim_ascii().is_empty());
                    let lines: Vec<Vec<u8>> = lines.map(<[u8]>::to_vec).collect();
                    waiting.extend(lines.chunks(CHUNK).map(<[Vec<u8>]>::to_vec));
                }
            },
            Some((number, answers)) = answered.recv(), if !running.is_empty() => {
                running[number - first] = Some(answers);
            }
            () = tokio::time::sleep(WRITE_DELAY), if !out.is_empty() => {
                output.write_all(&out)?;
                output.flush()?;
                out.clear();
            }
        }
    }
}
