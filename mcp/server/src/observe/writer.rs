//! Writes records of tool calls to their sinks (files, an OpenTelemetry collector) on a thread of its own, so that slow
//! writes do not delay the calls.
//!
//! The queue of records is bounded: one is dropped and counted when the queue is full or a sink cannot write it.

use super::entry::RecordedCall;
use crate::answer::SessionEntry;
use ptc_base::sync::Locked;
use serde_json::Value;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most waiting records, and most bytes of their texts.
const MOST_WAITING: usize = 1_000;
const MOST_BYTES: usize = 64 << 20;

/// A record that waits to be written.
#[derive(Debug)]
pub struct WrittenCall {
    /// The record.
    pub call: RecordedCall,
    /// Texts of the call.
    pub texts: CallTexts,
    /// The session's entry for it, if it ran in a session.
    pub turn: Option<Box<SessionEntry>>,
}

/// Texts of a call.
#[derive(Debug, Default)]
pub struct CallTexts {
    /// The answer, as a model reads it.
    pub answer: String,
    /// Printed lines.
    pub prints: Vec<String>,
    /// Lines of standard error.
    pub stderr: Vec<String>,
    /// Programs of the server's own model, one for each round.
    pub programs: Vec<Option<String>>,
    /// Prompts of that model, where they are recorded.
    pub prompts: Vec<Value>,
}

impl WrittenCall {
    fn bytes(&self) -> usize {
        const OTHERS: usize = 512;
        let CallTexts { answer, prints, stderr, programs, prompts } = &self.texts;
        let arguments = self.call.arguments.as_ref().map_or(0, |arguments| arguments.bytes);
        let turn = self.turn.as_ref().map_or(0, |turn| turn.program.len());
        let texts = prints.iter().chain(stderr).chain(programs.iter().flatten());
        let prompts = prompts.iter().map(|prompt| prompt.to_string().len());
        OTHERS + answer.len() + texts.map(String::len).chain(prompts).sum::<usize>() + arguments + turn
    }
}

/// A destination for records.
pub trait RecordSink: Send {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// Writes a record, or ignores it.
    fn write(&mut self, call: &WrittenCall) -> io::Result<WriteOutcome>;

    /// Writes what it still holds, within `patience`; it is not used again.
    fn close(&mut self, _patience: Duration) {}
}

/// Result of writing a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// It is written.
    Written,
    /// The sink ignores such records.
    Unwanted,
}

/// Counters of a sink.
#[derive(Clone, Debug, Default)]
pub struct SinkCounts {
    /// Its name.
    pub name: &'static str,
    /// Records that were written.
    pub written: u64,
    /// Records that were dropped.
    pub dropped: u64,
    /// Error of the last dropped record.
    pub last_error: Option<String>,
}

/// Passes records to a thread that writes them.
#[derive(Debug)]
pub struct RecordWriter {
    shared: Arc<WriterQueue>,
}

#[derive(Debug, Default)]
struct WriterQueue {
    state: Mutex<WriterState>,
    arrived: Condvar,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct WriterState {
    waiting: VecDeque<WrittenCall>,
    bytes: usize,
    /// The thread waits for records.
    is_idle: bool,
    is_closed: bool,
    /// Until when its sinks may write what they still hold, once it is closed.
    deadline: Option<Instant>,
    has_ended: bool,
    sinks: Vec<SinkCounts>,
}

impl RecordWriter {
    /// Starts the thread, which writes to these sinks.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(sinks: Vec<Box<dyn RecordSink>>) -> io::Result<RecordWriter> {
        let shared = Arc::<WriterQueue>::default();
        shared.state.locked().sinks =
            sinks.iter().map(|sink| SinkCounts { name: sink.name(), ..SinkCounts::default() }).collect();
        let theirs = shared.clone();
        std::thread::Builder::new().name("ptc-records".into()).spawn(move || work(&theirs, sinks))?;
        Ok(RecordWriter { shared })
    }

    /// Queues a record if there is room. It never waits for a file.
    pub fn push(&self, call: WrittenCall) {
        let bytes = call.bytes();
        let mut state = self.shared.state.locked();
        if state.waiting.len() >= MOST_WAITING || state.bytes.saturating_add(bytes) > MOST_BYTES {
            for sink in &mut state.sinks {
                sink.dropped += 1;
                sink.last_error = Some("too many records wait to be written".to_owned());
            }
            return;
        }
        state.bytes += bytes;
        state.waiting.push_back(call);
        // Waking the thread costs more than everything else here, so it is done only when it sleeps.
        if std::mem::replace(&mut state.is_idle, false) {
            self.shared.arrived.notify_one();
        }
    }

    /// Counters of the sinks.
    pub fn counts(&self) -> Vec<SinkCounts> {
        self.shared.state.locked().sinks.clone()
    }

    /// Writes the waiting records, within `patience`; the rest is lost.
    pub fn close(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let mut state = self.shared.state.locked();
        state.is_closed = true;
        state.deadline = Some(deadline);
        self.shared.arrived.notify_one();
        while !state.has_ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                tracing::warn!(
                    records = state.waiting.len(),
                    "records of calls are lost: they could not be written in time"
                );
                return;
            }
            state = self.shared.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for RecordWriter {
    fn drop(&mut self) {
        self.shared.state.locked().is_closed = true;
        self.shared.arrived.notify_one();
    }
}

fn work(shared: &WriterQueue, mut sinks: Vec<Box<dyn RecordSink>>) {
    loop {
        let call = {
            let mut state = shared.state.locked();
            loop {
                if let Some(call) = state.waiting.pop_front() {
                    break Some(call);
                }
                if state.is_closed {
                    break None;
                }
                state.is_idle = true;
                state = shared.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        };
        let Some(call) = call else { return end(shared, sinks) };
        let results: Vec<io::Result<WriteOutcome>> = sinks.iter_mut().map(|sink| sink.write(&call)).collect();
        let mut state = shared.state.locked();
        state.bytes = state.bytes.saturating_sub(call.bytes());
        for (sink, result) in state.sinks.iter_mut().zip(results) {
            sink.enter(result);
        }
    }
}

/// Lets the sinks write what they still hold.
fn end(shared: &WriterQueue, sinks: Vec<Box<dyn RecordSink>>) {
    let deadline = shared.state.locked().deadline;
    for mut sink in sinks {
        sink.close(
            deadline.map_or(Duration::ZERO, |deadline| deadline.saturating_duration_since(Instant::now())),
        );
    }
    shared.state.locked().has_ended = true;
    shared.ended.notify_all();
}

impl SinkCounts {
    fn enter(&mut self, result: io::Result<WriteOutcome>) {
        match result {
            Ok(WriteOutcome::Unwanted) => {}
            Ok(WriteOutcome::Written) => {
                self.written += 1;
                if self.last_error.take().is_some() {
                    tracing::info!(sink = self.name, dropped = self.dropped, "records are written again");
                }
            }
            Err(error) => {
                self.dropped += 1;
                if self.last_error.is_none() {
                    tracing::warn!(sink = self.name, %error, "a record could not be written; calls go on without");
                }
                self.last_error = Some(error.to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::CallEntry;
    use super::*;
    use std::sync::mpsc;

    fn call() -> WrittenCall {
        let entry = CallEntry::in_tests("1");
        let call = RecordedCall { entry: Arc::new(entry), arguments: None, answer: None };
        WrittenCall { call, texts: CallTexts::default(), turn: None }
    }

    /// A disk that blocks until the test gives it a result.
    struct SlowDisk(mpsc::Receiver<io::Result<WriteOutcome>>);

    impl RecordSink for SlowDisk {
        fn name(&self) -> &'static str {
            "slow"
        }

        fn write(&mut self, _: &WrittenCall) -> io::Result<WriteOutcome> {
            self.0.recv().expect("a result")
        }
    }

    #[test]
    fn a_disk_that_hangs_makes_nobody_wait_and_what_is_lost_is_counted() {
        let (send_result, results) = mpsc::channel();
        let writer = RecordWriter::start(vec![Box::new(SlowDisk(results))]).expect("a thread");
        for _ in 0..2 * MOST_WAITING {
            writer.push(call());
        }
        let counts = &writer.counts()[0];
        assert_eq!(counts.written, 0);
        // One of them may be with the disk already.
        assert!((MOST_WAITING - 1..=MOST_WAITING).contains(&(counts.dropped as usize)), "{counts:?}");
        assert!(counts.last_error.is_some());
        let taken = 2 * MOST_WAITING - counts.dropped as usize;
        for number in 0..taken {
            let result = if number % 2 == 0 {
                Ok(WriteOutcome::Written)
            } else {
                Err(io::ErrorKind::StorageFull.into())
            };
            send_result.send(result).expect("the disk listens");
        }
        writer.close(Duration::from_secs(60));
        let after = &writer.counts()[0];
        assert_eq!(after.written as usize, taken.div_ceil(2));
        assert_eq!(after.written + after.dropped, 2 * MOST_WAITING as u64);
    }

    #[test]
    fn the_end_does_not_wait_for_a_disk_that_hangs() {
        let (send_result, results) = mpsc::channel();
        let writer = RecordWriter::start(vec![Box::new(SlowDisk(results))]).expect("a thread");
        writer.push(call());
        writer.close(Duration::from_millis(1));
        assert_eq!(writer.counts()[0].written, 0);
        send_result.send(Ok(WriteOutcome::Unwanted)).expect("the disk listens");
    }
}
