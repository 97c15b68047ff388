//! `ptc batch`: JSON Lines in, JSON Lines out, in input order, on all cores.

use super::boot::{Need, UpstreamFlags, boot};
use super::cores;
use super::exit::{Abort, Exit};
use super::limits::LimitFlags;
use crate::server::lines::{self, Input};
use crate::tool::arguments::{json_type, read_context};
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesOrdered, StreamExt};
use ptc_runtime::Runtime;
use ptc_runtime::limits::Limits;
use ptc_runtime::options::RunOptions;
use ptc_runtime::outcome::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;
use tokio::sync::mpsc;

/// Programs in work for each core: enough to keep workers busy behind a slow one.
const WINDOW_PER_CORE: usize = 128;
/// Longest input line.
const MAX_LINE_BYTES: usize = 64 << 20;
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
    let input = lines::spawn_reader(std::io::stdin(), MAX_LINE_BYTES)?;
    let options = RunOptions { limits, now_ms: args.now, ..RunOptions::default() };
    let done = batch(&booted.runtime, &options, input, std::io::stdout()).await;
    booted.runtime.shutdown().await;
    done?;
    Ok(Exit::Ok)
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    program: Option<&'a RawValue>,
    #[serde(borrow, default)]
    context: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Answer<'a> {
    id: &'a RawValue,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    prints: &'a [String],
}

async fn batch(
    engine: &Runtime,
    options: &RunOptions,
    mut input: mpsc::Receiver<Input>,
    mut output: impl Write,
) -> std::io::Result<()> {
    let window = WINDOW_PER_CORE * cores();
    let mut running: FuturesOrdered<BoxFuture<'_, Vec<u8>>> = FuturesOrdered::new();
    let mut waiting: VecDeque<Vec<u8>> = VecDeque::new();
    let mut out: Vec<u8> = Vec::with_capacity(WRITE_BYTES * 2);
    let mut open = true;
    loop {
        while running.len() < window
            && let Some(line) = waiting.pop_front()
        {
            running.push_back(start(engine, options, &line));
        }
        while let Some(Some(line)) = running.next().now_or_never() {
            out.extend_from_slice(&line);
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
                Some(Input::Oversize) => waiting.push_back(Vec::new()),
                Some(Input::Lines(lines)) => {
                    let lines = lines::split(&lines).filter(|line| !line.trim_ascii().is_empty());
                    waiting.extend(lines.map(<[u8]>::to_vec));
                }
            },
            Some(line) = running.next(), if !running.is_empty() => out.extend_from_slice(&line),
            () = tokio::time::sleep(WRITE_DELAY), if !out.is_empty() => {
                output.write_all(&out)?;
                output.flush()?;
                out.clear();
            }
        }
    }
}

fn start<'e>(engine: &'e Runtime, options: &RunOptions, line: &[u8]) -> BoxFuture<'e, Vec<u8>> {
    let (id, parsed) = read(line, &options.limits);
    match parsed {
        Err(message) => std::future::ready(refusal(&id, &message)).boxed(),
        Ok((program, context)) => {
            let options = RunOptions { context, ..options.clone() };
            engine.run(program, options).map(move |outcome| answer(&id, &outcome)).boxed()
        }
    }
}

type Parsed = (Box<RawValue>, Result<(String, Option<String>), String>);

fn read(line: &[u8], limits: &Limits) -> Parsed {
    let null = || RawValue::NULL.to_owned();
    if line.is_empty() {
        return (null(), Err(format!("the line is longer than {MAX_LINE_BYTES} bytes")));
    }
    let is_object = line.trim_ascii_start().starts_with(b"{");
    let line: Line<'_> = match serde_json::from_slice(line) {
        Ok(line) if is_object => line,
        Ok(_) => return (null(), Err("the line is not a JSON object".into())),
        Err(error) => return (null(), Err(format!("the line is not a JSON object: {error}"))),
    };
    let id = line.id.map_or_else(null, RawValue::to_owned);
    let program = match line.program.map(RawValue::get) {
        None => Err("`program` is required".into()),
        Some(text) if !text.starts_with('"') => {
            Err(format!("`program` must be a string, got {}", json_type(text)))
        }
        Some(text) => serde_json::from_str(text).map_err(|error| format!("`program` is invalid: {error}")),
    };
    let context = line.context.map(|raw| read_context(raw, limits.max_context_bytes)).transpose();
    (id, program.and_then(|program| Ok((program, context?))))
}

fn refusal(id: &RawValue, message: &str) -> Vec<u8> {
    let error = Some(crate::tool::EdgeReason::ArgsError.name());
    write(&Answer { id, ok: false, value: None, error, message: Some(message), prints: &[] })
}

fn answer(id: &RawValue, outcome: &Outcome) -> Vec<u8> {
    let prints = &outcome.prints;
    match &outcome.result {
        Ok(answer) => {
            write(&Answer { id, ok: true, value: Some(&answer.text), error: None, message: None, prints })
        }
        Err(failure) => write(&Answer {
            id,
            ok: false,
            value: failure.value.as_deref(),
            error: Some(failure.reason.raw()),
            message: Some(&failure.message),
            prints,
        }),
    }
}

fn write(answer: &Answer<'_>) -> Vec<u8> {
    // Writing strings to memory cannot fail.
    let mut line = serde_json::to_vec(answer).unwrap_or_default();
    line.push(b'\n');
    line
}
