//! The lanes of `ptc batch`: threads that read lines, run tiny programs at once and hand the others to the
//! runtime. What a lane is given and what it gives back are chunks of lines, because handing over a tiny
//! program alone costs more than running it.

use super::MAX_LINE_BYTES;
use crate::answer::EdgeReason;
use crate::protocol::borrowed::Text;
use crate::tools::lisp_eval::arguments::{json_type, read_context};
use ptc_runtime::options::RunOptions;
use ptc_runtime::outcome::Outcome;
use ptc_runtime::watcher::RunWatcher;
use ptc_runtime::{Runtime, Warm};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Lines that go to a lane together. An empty one stands for a line that was too long.
pub(super) struct Chunk {
    /// Its place in the input.
    pub(super) number: usize,
    pub(super) lines: Vec<Vec<u8>>,
}

/// The number of a chunk and all its answers.
pub(super) type Answered = (usize, Vec<u8>);

/// The threads.
pub(super) struct Lanes {
    work: Sender<Chunk>,
    threads: Vec<JoinHandle<()>>,
}

impl Lanes {
    /// Starts the threads; the receiver gets each chunk's number and answers when all of them are there.
    pub(super) fn start(
        count: usize,
        runtime: &Arc<Runtime>,
        options: &RunOptions,
    ) -> std::io::Result<(Lanes, UnboundedReceiver<Answered>)> {
        let (work, chunks) = channel();
        let chunks = Arc::new(Mutex::new(chunks));
        let (answered, answers) = unbounded_channel();
        let mut threads = Vec::with_capacity(count);
        for index in 0..count {
            let lane =
                Lane { runtime: runtime.clone(), options: options.clone(), answered: answered.clone() };
            let chunks = chunks.clone();
            let thread = std::thread::Builder::new().name(format!("ptc-lane-{index}"));
            threads.push(thread.spawn(move || lane.run(&chunks))?);
        }
        Ok((Lanes { work, threads }, answers))
    }

    /// Gives a chunk to the lane that is free first.
    pub(super) fn hand_out(&self, chunk: Chunk) {
        // The lanes end when this sender is dropped, not before.
        let _ = self.work.send(chunk);
    }

    /// Waits for the threads to end, which they do when they have answered everything.
    pub(super) fn join(self) {
        drop(self.work);
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

struct Lane {
    runtime: Arc<Runtime>,
    options: RunOptions,
    answered: UnboundedSender<Answered>,
}

impl Lane {
    fn run(self, chunks: &Mutex<Receiver<Chunk>>) {
        let mut warm = Warm::default();
        loop {
            // Whoever waits for a chunk holds the lock, and the others wait for it.
            let next = chunks.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(chunk) = next else { return };
            self.answer(&chunk, &mut warm);
        }
    }

    fn answer(&self, chunk: &Chunk, warm: &mut Warm) {
        let mut out = Vec::with_capacity(chunk.lines.len() * 64);
        let mut answers: Option<Arc<Answers>> = None;
        for line in &chunk.lines {
            let (id, request) = read(line, self.options.limits.max_context_bytes);
            let (program, context) = match request {
                Ok(request) => request,
                Err(message) => {
                    refuse(&mut out, id, &message);
                    continue;
                }
            };
            let with_context;
            let options = match context {
                None => &self.options,
                Some(_) => {
                    with_context = RunOptions { context, ..self.options.clone() };
                    &with_context
                }
            };
            match self.runtime.run_now(warm, &program, options) {
                Some(outcome) => write_outcome(&mut out, id, &outcome),
                None => {
                    let answers = answers.get_or_insert_with(|| self.answers(chunk.number));
                    let place = answers.leave_place(&mut out);
                    let watcher = Watcher { id: id.to_owned(), place, answers: answers.clone(), told: false };
                    self.runtime.submit(program.into_owned(), options.clone(), Box::new(watcher));
                }
            }
        }
        match answers {
            None => self.send(chunk.number, out),
            Some(answers) => answers.close(out),
        }
    }

    fn answers(&self, number: usize) -> Arc<Answers> {
        let parts = Parts { texts: Vec::new(), missing: 1 };
        Arc::new(Answers { number, parts: Mutex::new(parts), answered: self.answered.clone() })
    }

    fn send(&self, number: usize, answers: Vec<u8>) {
        // Nobody listens any more when the output is closed.
        let _ = self.answered.send((number, answers));
    }
}

/// The answers of a chunk with programs that run elsewhere; sent when the last of them is there.
struct Answers {
    number: usize,
    parts: Mutex<Parts>,
    answered: UnboundedSender<Answered>,
}

struct Parts {
    /// In the order of the lines.
    texts: Vec<Vec<u8>>,
    /// Programs that run, and one for the lane while it reads.
    missing: usize,
}

impl Answers {
    /// Puts what has been written so far before a place for the answer of a program; where that is.
    fn leave_place(&self, written: &mut Vec<u8>) -> usize {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.texts.extend([std::mem::take(written), Vec::new()]);
        parts.missing += 1;
        parts.texts.len() - 1
    }

    fn fill(&self, place: usize, text: Vec<u8>) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(empty) = parts.texts.get_mut(place) {
            *empty = text;
        }
        self.settle(&mut parts);
    }

    /// Ends with what was written after the last place.
    fn close(&self, written: Vec<u8>) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.texts.push(written);
        self.settle(&mut parts);
    }

    fn settle(&self, parts: &mut Parts) {
        parts.missing -= 1;
        if parts.missing == 0 {
            // Nobody listens any more when the output is closed.
            let _ = self.answered.send((self.number, parts.texts.concat()));
        }
    }
}

/// Writes the answer of one program on the thread that it ended on.
struct Watcher {
    id: Box<RawValue>,
    place: usize,
    answers: Arc<Answers>,
    told: bool,
}

impl RunWatcher for Watcher {
    fn ended(mut self: Box<Self>, outcome: Outcome) {
        let mut line = Vec::new();
        write_outcome(&mut line, &self.id, &outcome);
        self.told = true;
        self.answers.fill(self.place, line);
    }
}

impl Drop for Watcher {
    // A defect while the answer was written must not hold the answers of others back for ever.
    fn drop(&mut self) {
        if !self.told {
            let mut line = Vec::new();
            refuse(&mut line, &self.id, "the program was lost");
            self.answers.fill(self.place, line);
        }
    }
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

type Request<'a> = (Cow<'a, str>, Option<String>);

/// The id of a line, and its program and context or what is wrong with it.
fn read(line: &[u8], max_context_bytes: u64) -> (&RawValue, Result<Request<'_>, String>) {
    if line.is_empty() {
        return (RawValue::NULL, Err(format!("the line is longer than {MAX_LINE_BYTES} bytes")));
    }
    let is_object = line.trim_ascii_start().starts_with(b"{");
    let line: Line<'_> = match serde_json::from_slice(line) {
        Ok(line) if is_object => line,
        Ok(_) => return (RawValue::NULL, Err("the line is not a JSON object".into())),
        Err(error) => return (RawValue::NULL, Err(format!("the line is not a JSON object: {error}"))),
    };
    let program = match line.program.map(RawValue::get) {
        None => Err("`program` is required".into()),
        Some(text) if !text.starts_with('"') => {
            Err(format!("`program` must be a string, got {}", json_type(text)))
        }
        Some(text) => serde_json::from_str::<Text<'_>>(text)
            .map(|text| text.0)
            .map_err(|error| format!("`program` is invalid: {error}")),
    };
    let context = line.context.map(|raw| read_context(raw.into(), max_context_bytes)).transpose();
    (line.id.unwrap_or(RawValue::NULL), program.and_then(|program| Ok((program, context?))))
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

impl<'a> Answer<'a> {
    fn value(id: &'a RawValue, text: &'a str, prints: &'a [String]) -> Answer<'a> {
        Answer { id, ok: true, value: Some(text), error: None, message: None, prints }
    }
}

fn refuse(out: &mut Vec<u8>, id: &RawValue, message: &str) {
    let error = Some(EdgeReason::ArgsError.name());
    write(out, &Answer { id, ok: false, value: None, error, message: Some(message), prints: &[] });
}

fn write_outcome(out: &mut Vec<u8>, id: &RawValue, outcome: &Outcome) {
    let prints = &outcome.prints;
    match &outcome.result {
        Ok(answer) => write(out, &Answer::value(id, &answer.text, prints)),
        Err(failure) => write(
            out,
            &Answer {
                id,
                ok: false,
                value: failure.value.as_deref(),
                error: Some(failure.reason.raw()),
                message: Some(&failure.message),
                prints,
            },
        ),
    }
}

fn write(out: &mut Vec<u8>, answer: &Answer<'_>) {
    // Writing strings to memory cannot fail.
    let _ = serde_json::to_writer(&mut *out, answer);
    out.push(b'\n');
}
