//! The command `ptc batch`, which runs a program for each line of JSON input, and writes the answers as JSON lines in
//! input order.
//!
//! Programs run on the same evaluator as in `ptc serve`: tiny ones at once, the others on all cores.
//!
//! # Layout
//! - this file: the command; `line`: an input line; `answers`: answers in the order of their lines
//! - `shard`: a part of the input; `farm`: lines in a database that many processes work on

mod answers;
mod farm;
mod line;
mod shard;

use self::answers::Answers;
use self::farm::FarmFlags;
use self::shard::Shard;
use crate::cli::boot::{Booted, Need};
use crate::cli::cores;
use crate::cli::flags::program::ProgramFlags;
use crate::cli::flags::server::ServerLimits;
use crate::cli::replay::record::RecordFlags;
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::Outcome;
use ptc_calls::watcher::RunWatcher;
use ptc_engine::Capacity;
use ptc_server::answer::outcome::OutcomeJson;
use ptc_server::console::{Abort, Exit};
use ptc_server::redact::{self, Form, shapes};
use ptc_server::server::lines::{self, Input};
use ptc_server::server::mailbox::Mailbox;
use ptc_server::server::output::Output;
use ptc_server::tools::lisp_eval::Evaluator;
use serde_json::value::RawValue;
use std::io;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Answers per core that may wait for an earlier one: enough to keep workers busy behind a slow program.
const WINDOW_PER_CORE: usize = 128;
/// Longest input line.
pub(super) const MAX_LINE_BYTES: usize = 64 << 20;
/// Fuel of programs that run on the calling thread, because handing them to a worker would cost more.
const CALLER_FUEL: u64 = 100;
/// Bytes of answers that are handed to the writer while input remains.
const ENOUGH_OUTPUT: usize = 32 << 10;

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
  ptc batch --shard 1/4 < programs.jsonl           on the first of four machines
  ptc batch --farm postgres://ptc@db/ptc --job eval < programs.jsonl
  ptc batch --farm postgres://ptc@db/ptc --job eval --work       on any number of machines
  ptc batch --farm postgres://ptc@db/ptc --job eval --collect > results.jsonl

Exit code: 0 when the whole input was answered, whatever the programs did."
)]
pub struct BatchArgs {
    /// The clock as programs see it, in milliseconds since 1970 [default: the real one]
    #[arg(long, value_name = "MILLIS", allow_negative_numbers = true)]
    now: Option<i64>,
    /// Work on one of N equal parts of the input, which depends on the ids: 1/N is the first
    #[arg(long, value_name = "I/N", conflicts_with = "farm")]
    shard: Option<Shard>,
    #[command(flatten)]
    farm: FarmFlags,
    #[command(flatten)]
    record: RecordFlags,
    #[command(flatten)]
    programs: ProgramFlags,
}

impl BatchArgs {
    /// True if answers go to standard output, and not to a database.
    pub fn writes_answers(&self) -> bool {
        !self.farm.is_given() || self.farm.collect
    }
}

/// Runs the command.
pub async fn run(args: BatchArgs) -> Result<Exit, Abort> {
    if args.farm.is_given() {
        return farm::run(args).await;
    }
    let shard = args.shard;
    let (booted, options) = evaluated(args).await?;
    let (input, end) = lines::spawn_reader(std::io::stdin(), MAX_LINE_BYTES)?;
    let output = Output::spawn(redact::stdout(Form::Json(&shapes::REPORT)))?;
    let batch = BatchRun {
        evaluator: &*booted.runtime,
        options,
        shard,
        answers: Answers::default(),
        ended: Arc::default(),
        window: WINDOW_PER_CORE * cores(),
        output: &output,
    };
    batch.run(input).await;
    let written = output.finish().await;
    booted.runtime.shutdown().await;
    written?;
    end.result().map_err(unreadable)?;
    Ok(Exit::Ok)
}

/// The end of the command when its input cannot be read.
fn unreadable(error: io::Error) -> Abort {
    Abort { exit: Exit::Io, message: format!("cannot read standard input: {error}") }
}

/// Starts what runs programs. Returns it with the options of each program.
async fn evaluated(mut args: BatchArgs) -> Result<(Booted, RunOptions), Abort> {
    args.programs.record(args.record.recorder()?);
    let (booted, limits) = args.programs.boot(Need::OnDemand, 0).await?;
    let total_bytes = ServerLimits::default().total_bytes;
    booted.runtime.set_load(Capacity { total_bytes, ..Capacity::default() });
    // Answers do not show durations.
    let options = RunOptions {
        limits,
        now_ms: args.now,
        timed: false,
        caller_fuel: CALLER_FUEL,
        ..RunOptions::default()
    };
    Ok((booted, options))
}

/// Slots and answers of submitted programs that have ended.
type Ended = Mailbox<(usize, Vec<u8>)>;

/// State of a running batch.
struct BatchRun<'b> {
    evaluator: &'b dyn Evaluator,
    options: RunOptions,
    shard: Option<Shard>,
    answers: Answers,
    ended: Arc<Ended>,
    /// Most answers that may wait for an earlier one.
    window: usize,
    output: &'b Output,
}

impl BatchRun<'_> {
    /// Answers the input, as long as answers can be written.
    async fn run(mut self, mut input: mpsc::Receiver<Input>) {
        // Lines that had no room yet, and the offset where they begin.
        let mut unread: Option<(Vec<u8>, usize)> = None;
        let mut open = true;
        loop {
            for (slot, text) in self.ended.take() {
                self.answers.fill(slot, text);
            }
            if let Some((lines, at)) = unread.take() {
                unread = self.take_while_room(&lines[at..]).map(|next| (lines, at + next));
            }
            if self.has_room() && unread.is_none() && self.has_input(&mut input, &mut unread, &mut open) {
                continue;
            }
            self.flush();
            if self.output.is_closed() {
                return;
            }
            if !open && unread.is_none() && self.answers.behind() == 0 {
                return;
            }
            tokio::select! {
                batch = input.recv(), if open && unread.is_none() && self.has_room() => {
                    self.take(batch, &mut unread, &mut open);
                }
                () = self.ended.arrival() => {}
                () = self.output.progress() => {}
            }
        }
    }

    /// Reads input that is available without waiting. Returns false when there is none.
    fn has_input(
        &mut self,
        input: &mut mpsc::Receiver<Input>,
        unread: &mut Option<(Vec<u8>, usize)>,
        open: &mut bool,
    ) -> bool {
        let Ok(batch) = input.try_recv() else { return false };
        self.take(Some(batch), unread, open);
        true
    }

    fn take(&mut self, batch: Option<Input>, unread: &mut Option<(Vec<u8>, usize)>, open: &mut bool) {
        match batch.map(Input::into_bytes) {
            None => *open = false,
            Some(None) if !self.shard.is_none_or(Shard::is_first) => {}
            Some(None) => {
                let message = format!("the line is longer than {MAX_LINE_BYTES} bytes");
                self.refuse(RawValue::NULL, &message);
            }
            Some(Some(lines)) => *unread = self.take_while_room(&lines).map(|next| (lines, next)),
        }
    }

    fn has_room(&self) -> bool {
        self.answers.behind() < self.window && self.output.has_room()
    }

    /// Answers lines as long as there is room. Returns the offset of the first line left over.
    fn take_while_room(&mut self, lines: &[u8]) -> Option<usize> {
        let mut next = 0;
        for (line, end) in lines::split_ends(lines) {
            if !self.has_room() {
                return Some(next);
            }
            if let Some(line) = line::content(line) {
                self.answer(line);
            }
            if self.answers.ready() >= ENOUGH_OUTPUT {
                self.flush();
            }
            next = end;
        }
        None
    }

    fn answer(&mut self, line: &[u8]) {
        let (id, request) = line::read(line, self.options.limits.max_context_bytes);
        if self.shard.is_some_and(|shard| !shard.has(id, line)) {
            return;
        }
        let (program, context) = match request {
            Ok(request) => request,
            Err(message) => return self.refuse(id, &message),
        };
        let BatchRun { evaluator, options, answers, .. } = self;
        let ran = evaluator.try_run(&program, context, options, &mut |outcome| {
            answers.write(|out| write(&OutcomeJson::from_outcome(Some(id), outcome), out));
        });
        if !ran {
            let (slot, ended) = (answers.reserve_slot(), &self.ended);
            let watcher = LineWatcher::new(id, slot, ended);
            let options = RunOptions { context: context.map(str::to_owned), ..options.clone() };
            // A batch never cancels its programs.
            drop(evaluator.submit(program.into_owned(), options, Box::new(watcher)));
        }
    }

    fn refuse(&mut self, id: &RawValue, message: &str) {
        self.answers.write(|out| write(&OutcomeJson::refused(id, message), out));
    }

    fn flush(&mut self) {
        if self.answers.ready() > 0 {
            self.output.send(&mut self.answers.take());
        }
    }
}

/// Writes the answer of one program on the thread where it ends.
struct LineWatcher {
    id: Box<RawValue>,
    slot: usize,
    ended: Arc<Ended>,
    answered: bool,
}

impl LineWatcher {
    fn new(id: &RawValue, slot: usize, ended: &Arc<Ended>) -> LineWatcher {
        LineWatcher { id: id.to_owned(), slot, ended: ended.clone(), answered: false }
    }

    fn answer_with(&mut self, answer: impl FnOnce(&RawValue, &mut Vec<u8>)) {
        let mut line = Vec::new();
        answer(&self.id, &mut line);
        self.answered = true;
        self.ended.push((self.slot, line));
    }
}

impl RunWatcher for LineWatcher {
    fn ended(mut self: Box<Self>, outcome: Outcome) {
        self.answer_with(|id, line| write(&OutcomeJson::from_outcome(Some(id), &outcome), line));
    }
}

impl Drop for LineWatcher {
    // A panic while the answer is written must not block the later answers for ever.
    fn drop(&mut self) {
        if !self.answered {
            self.answer_with(|id, line| write(&OutcomeJson::refused(id, "the program was lost"), line));
        }
    }
}

fn write(answer: &OutcomeJson<'_>, out: &mut Vec<u8>) {
    // Writing strings to memory cannot fail.
    let _ = serde_json::to_writer(&mut *out, answer);
    out.push(b'\n');
}
