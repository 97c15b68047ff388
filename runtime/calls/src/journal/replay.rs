//! Replays a recorded run step by step: compares what the program does with the records, and gives it the recorded
//! answers.

use super::answer::Answer;
use super::record::{AskedRecord, CallBegun, EndRecord, Language, Record, ServerRecord};
use super::recording::Recording;
use serde_json::Value as Json;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// How calls find their recorded answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Matching {
    /// By their order: each call is the recorded one, with the same arguments and fuel.
    #[default]
    Strict,
    /// By server, tool and arguments: for a program that was edited. A call that was not recorded fails.
    Arguments,
    /// As [`Matching::Arguments`]; calls that only read are made.
    LiveReads,
}

/// What a call of the program means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is to be made.
    Live,
    /// It is to be made, and was entered in an earlier process.
    Again,
    /// Its answer is in the recording.
    Replayed,
    /// The recording has no such call.
    NotRecorded,
    /// The run has diverged from the recording.
    Diverged,
}

/// What a program that waits gets next.
#[derive(Debug)]
pub enum Due {
    /// The answer of a call.
    Answer(u64, Answer),
    /// A call that has waited goes on.
    Proceed(u64),
    /// Nothing: other answers have their time later.
    Later,
    /// Nothing: the recorded run ended here while it waited.
    Never,
    /// The journal of an interrupted run is over: it goes on.
    GoOn(Departed),
    /// The run has diverged.
    Diverged,
}

/// What a program has to do as it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// All: calls, their arguments, and the fuel at each step.
    All,
    /// The calls and their order: a session is restored, or a run goes on.
    Calls,
}

/// A recording that is replayed.
#[derive(Debug)]
pub struct Script {
    recording: Arc<Recording>,
    matching: Matching,
    /// The record that is next.
    at: usize,
    /// Answers that no call has taken, by [`CallBegun::key`].
    answers: HashMap<String, VecDeque<Positioned>>,
    /// Answers that the program has not received, in order of its calls.
    waiting: VecDeque<(u64, Positioned)>,
    /// The answers of a script that come in the order of their recording.
    order: Option<AnswerOrder>,
    /// Where and how the run differs.
    divergence: Option<String>,
    /// Calls that were answered.
    answered: u64,
    /// Calls that were not recorded.
    unknown: Vec<String>,
    pub(super) compared: Compared,
    /// How much more fuel the recorded run had used when the program last began to get answers.
    pub(super) more_fuel: i128,
}

/// An answer and its position among the records.
#[derive(Debug)]
struct Positioned {
    at: usize,
    answer: Answer,
}

/// The order in which a script gets its answers. Its calls come in any order, since it works while others wait.
#[derive(Debug, Default)]
struct AnswerOrder {
    /// Positions of the answers that it has not received.
    due: BTreeSet<usize>,
    /// Calls that got no answer, by [`CallBegun::key`].
    unanswered: HashMap<String, u64>,
    /// The script waits for a call that got no answer.
    is_stuck: bool,
}

/// Calls of an interrupted run.
#[derive(Clone, Debug, Default)]
pub struct Departed {
    /// Their arguments are in the journal, these, and no answer.
    pub entered: HashMap<u64, Arc<str>>,
    /// They may have changed something: they are not made again.
    pub sent: HashSet<u64>,
    /// They could be made again when they left.
    pub repeatable: HashSet<u64>,
    /// Their servers have made tasks of them.
    pub tasks: HashMap<u64, String>,
}

impl CallBegun {
    /// Equal for calls that are the same apart from their place.
    fn key(&self) -> String {
        let args = serde_json::from_str(self.args.get()).map(|mut args: Json| {
            args.sort_all_objects();
            args.to_string()
        });
        format!("{}\n{}", self.label(), args.unwrap_or_else(|_| self.args.get().to_owned()))
    }
}

impl Script {
    /// The beginning of a recording. Calls of scripts are found by their arguments: tasks of theirs make calls in any
    /// order.
    pub fn new(recording: Arc<Recording>, matching: Matching) -> Script {
        let is_script = recording.header().language == Language::Python;
        let order = (is_script && matching == Matching::Strict).then(AnswerOrder::default);
        let matching = if order.is_some() { Matching::Arguments } else { matching };
        let mut script = Script {
            recording: recording.clone(),
            matching,
            at: 0,
            answers: HashMap::new(),
            waiting: VecDeque::new(),
            order,
            divergence: None,
            answered: 0,
            unknown: Vec::new(),
            compared: Compared::All,
            more_fuel: 0,
        };
        if matching != Matching::Strict {
            script.index(recording.records());
        }
        script
    }

    /// The log of a program of a session that is restored, or of a run that goes on.
    pub fn restoring(recording: Arc<Recording>) -> Script {
        Script { compared: Compared::Calls, ..Script::new(recording, Matching::Strict) }
    }

    /// Fills the answers by the keys of their calls.
    fn index(&mut self, records: &[Record]) {
        let mut ends: HashMap<u64, Positioned> = HashMap::new();
        for (at, record) in records.iter().enumerate() {
            if let Record::End(EndRecord { seq, answer: Some(answer), .. }) = record {
                ends.insert(*seq, Positioned { at, answer: answer.clone() });
            }
        }
        for record in records {
            let Record::Call(call) = record else { continue };
            if self.matching == Matching::LiveReads && call.effect == "read" {
                continue;
            }
            match (ends.remove(&call.seq), &mut self.order) {
                (Some(answer), order) => {
                    order.iter_mut().for_each(|order| {
                        order.due.insert(answer.at);
                    });
                    self.answers.entry(call.key()).or_default().push_back(answer);
                }
                (None, Some(order)) => *order.unanswered.entry(call.key()).or_default() += 1,
                (None, None) => {}
            }
        }
    }

    /// What is replayed.
    pub fn recording(&self) -> &Arc<Recording> {
        &self.recording
    }

    /// Where and how the run differs from the recording.
    pub fn divergence(&self) -> Option<&str> {
        self.divergence.as_deref()
    }

    /// Calls that were answered.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// Calls that were not recorded.
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// Recorded calls that the program has not made.
    pub fn unused(&self) -> Vec<String> {
        match self.matching {
            Matching::Strict => {
                let rest = self.recording.records().iter().skip(self.at);
                let calls = rest.filter_map(|record| match record {
                    Record::Call(call) => Some(call.label()),
                    _ => None,
                });
                calls.collect()
            }
            Matching::Arguments | Matching::LiveReads => {
                let mut unused: Vec<String> = Vec::new();
                for (key, answers) in &self.answers {
                    let call = key.replacen('\n', " ", 1);
                    unused.extend(std::iter::repeat_n(call, answers.len()));
                }
                unused.sort();
                unused
            }
        }
    }

    pub(super) fn next(&self) -> Option<&Record> {
        let rest = self.recording.records().get(self.at..)?;
        rest.iter().find(|record| !is_departure(record))
    }

    /// Passes the next record.
    pub(super) fn pass(&mut self) {
        let rest = self.recording.records().get(self.at..).unwrap_or_default();
        let departures = rest.iter().take_while(|record| is_departure(record)).count();
        self.at += departures + 1;
    }

    /// True when every record has been passed.
    pub(super) fn is_over(&self) -> bool {
        self.next().is_none()
    }

    /// Calls without an answer.
    pub(super) fn departed(&self) -> Departed {
        let mut departed = Departed::default();
        for record in self.recording.records() {
            match record {
                Record::Call(call) => {
                    departed.entered.insert(call.seq, call.args.get().into());
                }
                Record::End(EndRecord { seq, answer: Some(_), .. }) => {
                    departed.entered.remove(seq);
                }
                Record::Sent(seq) => {
                    departed.sent.insert(*seq);
                }
                Record::Left(seq) => {
                    departed.repeatable.insert(*seq);
                }
                Record::Task { seq, task } => {
                    departed.tasks.insert(*seq, task.clone());
                }
                _ => {}
            }
        }
        departed
    }

    /// Calls that have left and are not made again.
    pub(super) fn made(&self) -> Vec<CallBegun> {
        let departed = self.departed();
        let is_made = |call: &&CallBegun| match departed.entered.contains_key(&call.seq) {
            true => departed.sent.contains(&call.seq),
            false => departed.sent.contains(&call.seq) || departed.repeatable.contains(&call.seq),
        };
        let calls = self.recording.records().iter().filter_map(|record| match record {
            Record::Call(call) => Some(call),
            _ => None,
        });
        calls.filter(is_made).cloned().collect()
    }

    /// The recorded answer of this call has no call that it belongs to.
    pub(super) fn undelivered(&mut self, seq: u64) {
        self.diverge(|_| format!("the answer of call {seq}, which the program does not wait for"));
    }

    /// Notes that the run differs here. The first difference counts.
    pub(super) fn diverge(&mut self, how: impl FnOnce(&str) -> String) {
        if self.divergence.is_none() {
            let expected = self.next().map_or_else(|| "the end".to_owned(), expected);
            let position = self.at + 2;
            self.divergence = Some(format!("line {position}: {}", how(&expected)));
        }
    }

    /// Tool lists that servers have from here on.
    pub(super) fn tools_due(&mut self) -> Vec<ServerRecord> {
        let mut due = Vec::new();
        while let Some(Record::Tools(server)) = self.next() {
            due.push(server.clone());
            self.pass();
        }
        due
    }

    /// Whether the recorded call waited here.
    pub(super) fn waits(&mut self, seq: u64, fuel: u64) -> bool {
        match self.next() {
            Some(Record::Wait { seq: waits, fuel: then })
                if self.matching == Matching::Strict && *waits == seq =>
            {
                let then = *then;
                if then != fuel {
                    self.diverge(|_| {
                        format!("call {seq} comes after {fuel} units of fuel instead of {then}")
                    });
                }
                self.pass();
                true
            }
            _ => false,
        }
    }

    /// A call of the program.
    pub(super) fn call(&mut self, call: &CallBegun) -> Verdict {
        if self.matching != Matching::Strict {
            return self.find(call);
        }
        let difference = match self.next() {
            Some(Record::Call(then)) => different(then, call),
            // It was refused before its arguments were known.
            Some(Record::End(end)) if end.seq == call.seq && end.answer.is_some() => {
                return Verdict::Replayed;
            }
            _ => Some(format!("the program calls {} {}", call.label(), short(call.args.get()))),
        };
        match difference {
            None => {
                self.pass();
                self.answered += 1;
                Verdict::Replayed
            }
            Some(difference) => {
                self.diverge(|expected| format!("{difference}; the recording has {expected}"));
                Verdict::Diverged
            }
        }
    }

    fn find(&mut self, call: &CallBegun) -> Verdict {
        if self.matching == Matching::LiveReads && call.effect == "read" {
            return Verdict::Live;
        }
        let key = call.key();
        if let Some(answer) = self.answers.get_mut(&key).and_then(VecDeque::pop_front) {
            self.answered += 1;
            self.waiting.push_back((call.seq, answer));
            return Verdict::Replayed;
        }
        match self.order.as_mut().and_then(|order| order.unanswered.get_mut(&key)) {
            Some(left @ 1..) => {
                *left -= 1;
                self.order.iter_mut().for_each(|order| order.is_stuck = true);
                Verdict::Replayed
            }
            _ => {
                // What the script does from here on is not what was recorded.
                self.order = None;
                self.unknown.push(format!("{} {}", call.label(), short(call.args.get())));
                Verdict::NotRecorded
            }
        }
    }

    /// The answer of this call of a script, if it is due.
    pub(super) fn take_answer(&mut self, seq: u64) -> Option<Answer> {
        let found = self.waiting.iter().position(|(waiting, _)| *waiting == seq)?;
        let at = self.waiting[found].1.at;
        if let Some(order) = &mut self.order {
            if order.due.first().is_some_and(|first| *first < at) {
                return None;
            }
            order.due.remove(&at);
        }
        self.waiting.remove(found).map(|(_, positioned)| positioned.answer)
    }

    /// True if a script has received everything that it received then, and waits for what it waited for when it was
    /// interrupted.
    pub(super) fn is_stuck(&self) -> bool {
        self.order.as_ref().is_some_and(|order| order.is_stuck && order.due.is_empty())
    }

    /// The answer of this call, if it came at once.
    pub(super) fn due_at_once(&mut self, seq: u64, fuel: u64) -> Option<Answer> {
        match self.next() {
            Some(Record::End(end))
                if self.matching == Matching::Strict
                    && end.at_once
                    && end.seq == seq
                    && (self.compared != Compared::All || end.fuel == fuel) =>
            {
                let answer = end.answer.clone();
                if answer.is_some() {
                    self.pass();
                }
                answer
            }
            _ => None,
        }
    }

    /// Passes the end of this call, which has been answered without it.
    pub(super) fn skip_end(&mut self, seq: u64) {
        if let Some(Record::End(end)) = self.next()
            && self.matching == Matching::Strict
            && end.seq == seq
        {
            self.pass();
        }
    }

    /// What the program, which waits, gets. `is_first`: nothing was delivered since it waits. Where fuel is not compared,
    /// further answers came while it waited if nothing but the delivery of the others has used fuel.
    pub(super) fn due(&mut self, fuel: u64, is_first: bool) -> Due {
        if self.matching != Matching::Strict {
            return match self.waiting.pop_front() {
                Some((seq, positioned)) => Due::Answer(seq, positioned.answer),
                None => Due::Later,
            };
        }
        let more_fuel = |then: u64| i128::from(then) - i128::from(fuel);
        let is_due = |then: u64| match self.compared {
            Compared::All => then == fuel,
            Compared::Calls => is_first || self.more_fuel == more_fuel(then),
        };
        match self.next() {
            Some(Record::End(end)) if is_due(end.fuel) => {
                let EndRecord { seq, answer, fuel: then, .. } = end.clone();
                self.more_fuel = more_fuel(then);
                self.pass();
                answer.map_or(Due::Proceed(seq), |answer| Due::Answer(seq, answer))
            }
            Some(Record::End(end)) if is_first => {
                let (seq, then) = (end.seq, end.fuel);
                self.diverge(|_| {
                    format!("the answer of call {seq} comes after {fuel} units of fuel instead of {then}")
                });
                Due::Diverged
            }
            None if is_first => Due::Never,
            Some(_) if is_first => {
                let source = if self.compared == Compared::All { "recording" } else { "log" };
                self.diverge(|expected| format!("the program waits; the {source} has {expected}"));
                Due::Diverged
            }
            _ => Due::Later,
        }
    }

    /// The recorded answer of a question that the host answered at once; `None`: answer it as it is now.
    pub(super) fn asked(&mut self, asked: &AskedRecord) -> Option<Json> {
        if self.matching != Matching::Strict {
            return None;
        }
        match self.next() {
            Some(Record::Asked(then))
                if then.seq == asked.seq && then.form == asked.form && then.fuel == asked.fuel =>
            {
                let answer = then.answer.clone();
                self.pass();
                Some(answer)
            }
            _ => {
                let AskedRecord { form, fuel, .. } = asked;
                self.diverge(|expected| {
                    format!(
                        "the program asks ({form} …) after {fuel} units of fuel; the recording has {expected}"
                    )
                });
                None
            }
        }
    }

    /// The time that the program reads.
    pub(super) fn now(&mut self) -> Option<i64> {
        if self.matching != Matching::Strict {
            let mut times = self.recording.records().iter().filter_map(|record| match record {
                Record::Now(ms) => Some(*ms),
                _ => None,
            });
            return times.next().or_else(|| i64::try_from(self.recording.header().begun_ms).ok());
        }
        match self.next() {
            Some(Record::Now(ms)) => {
                let ms = *ms;
                self.pass();
                Some(ms)
            }
            _ => {
                self.diverge(|expected| format!("the program reads the time; the recording has {expected}"));
                None
            }
        }
    }
}

/// True for records that say that a call leaves: a replay passes them.
fn is_departure(record: &Record) -> bool {
    matches!(record, Record::Sent(_) | Record::Left(_) | Record::Task { .. })
}

/// How two calls differ.
fn different(then: &CallBegun, now: &CallBegun) -> Option<String> {
    let (label, args) = (now.label(), short(now.args.get()));
    if then.label() != label || then.seq != now.seq {
        return Some(format!("the program calls {label} {args} (call {})", now.seq));
    }
    if then.args.get() != now.args.get() {
        return Some(format!("the program calls {label} with other arguments, {args}"));
    }
    (then.fuel != now.fuel).then(|| {
        format!("the program calls {label} after {} units of fuel instead of {}", now.fuel, then.fuel)
    })
}

/// A record in words.
fn expected(record: &Record) -> String {
    match record {
        Record::Run(_) | Record::Outcome(_) => "the end".to_owned(),
        Record::Tools(server) => format!("a tool list of {}", server.server),
        Record::Wait { seq, .. } => format!("call {seq}, which waits"),
        Record::Sent(seq) | Record::Left(seq) => format!("call {seq}, which leaves"),
        Record::Task { seq, .. } => format!("a task of call {seq}"),
        Record::Call(call) => format!("{} {} (call {})", call.label(), short(call.args.get()), call.seq),
        Record::End(end) => format!("the answer of call {}", end.seq),
        Record::Asked(asked) => format!("({} …)", asked.form),
        Record::Now(_) => "the clock".to_owned(),
    }
}

/// The beginning of a text.
fn short(text: &str) -> String {
    const SHOWN: usize = 200;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
