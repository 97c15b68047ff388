//! Connects one run with its journal: records what happens, replays what was recorded, or resumes where the journal of
//! an interrupted run ends.

use super::answer::Answer;
use super::durable::{DurableLog, DurableRuns, SharedTexts, Stored};
use super::record::{
    AskedRecord, CallBegun, EndRecord, ErrorRecord, Header, OutcomeRecord, Record, ServerRecord,
};
use super::recorder::{JournalWriter, Recorder};
pub use super::replay::Verdict;
use super::replay::{Compared, Departed, Due, Script};
use super::restored::{Called, Restored};
use ptc_base::store::StoreError;
use ptc_base::sync::Locked;
use serde_json::Value as Json;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// What becomes of calls in doubt when a run goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InDoubt {
    /// The program gets `:outcome_unknown`.
    #[default]
    Report,
    /// A person decides whether the call is made again.
    Ask,
}

/// The journal of one run. All of its parts share it.
pub struct RunJournal {
    state: Mutex<State>,
    /// A script has received a recorded answer, or waits for one that never came.
    delivered: Notify,
}

struct State {
    /// The recording.
    file: Option<JournalWriter>,
    /// The log of a run that outlives its process.
    log: Option<DurableLog>,
    /// The records of a program of a session, for whom stores the session.
    collected: Option<Collected>,
    /// What is replayed.
    script: Option<Box<Script>>,
    /// The run goes on when its script is over.
    resumes: bool,
    in_doubt: InDoubt,
    /// Calls without an answer when the script was over, until the run goes on.
    resumed: Option<Departed>,
    /// Calls whose arguments the journal has already, these, and no answer.
    entered: HashMap<u64, Arc<str>>,
    /// Calls that may change something and that have left.
    sent: HashSet<u64>,
    /// How many of them have an answer, and how many of the answers are on the disk.
    answered: u64,
    stored: u64,
    /// The tool list that each server had last.
    tools: HashMap<String, Option<String>>,
    /// The number of the next call, if the host numbers them.
    next: Option<u64>,
    /// How the run ended.
    outcome: Option<OutcomeRecord>,
}

/// The records of a run as lines, up to [`MOST_COLLECTED`] bytes.
#[derive(Default)]
struct Collected {
    lines: Vec<u8>,
    is_cut: bool,
}

/// Most bytes of the journal of one program of a session.
const MOST_COLLECTED: usize = 16 << 20;

impl Collected {
    fn add(&mut self, record: &Record) {
        // Records are plain data.
        let line = serde_json::to_vec(record).unwrap_or_default();
        if self.is_cut || self.lines.len() + line.len() >= MOST_COLLECTED {
            *self = Collected { lines: Vec::new(), is_cut: true };
            return;
        }
        self.lines.extend(line);
        self.lines.push(b'\n');
    }
}

impl fmt::Debug for RunJournal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("RunJournal")
    }
}

impl RunJournal {
    /// A journal that is written: to a file, or to a store once the run needs that. `None`: to neither.
    pub fn written(
        recorder: Option<&Recorder>,
        durable: Option<&DurableRuns>,
        header: Header,
        texts: Option<SharedTexts>,
    ) -> Option<RunJournal> {
        let tools = tools_of(&header);
        let log = durable.map(|runs| {
            let mut log = runs.begin(texts);
            log.write(&Record::Run(Box::new(header.clone())));
            log
        });
        let file = recorder.and_then(|recorder| recorder.begin(header));
        if file.is_none() && log.is_none() {
            return None;
        }
        Some(RunJournal::new(State { file, log, tools, ..State::empty() }))
    }

    /// A journal in memory, of a program of a session. The run writes its header.
    pub fn collecting() -> RunJournal {
        RunJournal::new(State { collected: Some(Collected::default()), ..State::empty() })
    }

    /// True for a journal that [`RunJournal::collecting`] has made.
    pub fn is_collecting(&self) -> bool {
        self.state.locked().collected.is_some()
    }

    /// Writes the header of a journal that is collected.
    pub fn begin(&self, header: Header) {
        let mut state = self.state.locked();
        state.tools = tools_of(&header);
        state.write(|| Record::Run(Box::new(header)));
    }

    /// The records so far, one a line; `None` if they are more than 16 MiB.
    pub fn take_collected(&self) -> Option<Vec<u8>> {
        let Collected { lines, is_cut } = self.state.locked().collected.take()?;
        (!is_cut).then_some(lines)
    }

    /// A journal that is replayed.
    pub fn replayed(script: Script) -> RunJournal {
        RunJournal::new(State { script: Some(Box::new(script)), ..State::empty() })
    }

    /// The journal of an interrupted run, which is replayed and goes on where it ends.
    pub fn resumed(script: Script, log: DurableLog, in_doubt: InDoubt) -> RunJournal {
        let script = Some(Box::new(script));
        RunJournal::new(State { script, log: Some(log), resumes: true, in_doubt, ..State::empty() })
    }

    fn new(state: State) -> RunJournal {
        RunJournal { state: Mutex::new(state), delivered: Notify::new() }
    }

    /// True if answers come from a recording.
    pub fn is_replay(&self) -> bool {
        self.state.locked().script.is_some()
    }

    /// What becomes of calls in doubt.
    pub fn in_doubt(&self) -> InDoubt {
        self.state.locked().in_doubt
    }

    /// True for an interrupted run that goes on.
    pub fn resumes(&self) -> bool {
        self.state.locked().resumes
    }

    /// Calls that an interrupted run has made, and that are not made again.
    pub fn made(&self) -> Vec<CallBegun> {
        let state = self.state.locked();
        state.script.as_ref().filter(|_| state.resumes).map(|script| script.made()).unwrap_or_default()
    }

    /// Name of the run in its store.
    pub fn name(&self) -> Option<Arc<str>> {
        self.state.locked().log.as_ref().map(|log| log.name().clone())
    }

    /// Where and how the run differs from its recording.
    pub fn divergence(&self) -> Option<String> {
        self.state.locked().script.as_ref()?.divergence().map(str::to_owned)
    }

    /// A server has this tool list now.
    pub fn tools(&self, server: ServerRecord) {
        let mut state = self.state.locked();
        if state.tools.get(&server.server) != Some(&server.tools) {
            state.tools.insert(server.server.clone(), server.tools.clone());
            state.write(|| Record::Tools(server));
        }
    }

    /// Tool lists that servers have from here on. A run that goes on, or restores a session, has those of the present.
    pub fn tools_due(&self) -> Vec<ServerRecord> {
        let mut state = self.state.locked();
        let Some(script) = state.script() else { return Vec::new() };
        let due = script.tools_due();
        if script.compared == Compared::Calls { Vec::new() } else { due }
    }

    /// A shared text of the recording by its digest.
    pub fn shared(&self, digest: &str) -> Option<String> {
        self.state.locked().script.as_ref()?.recording().shared(digest).ok()
    }

    /// True if the program is one of a session that is restored.
    pub fn restores(&self) -> bool {
        let state = self.state.locked();
        !state.resumes && state.script.as_ref().is_some_and(|script| script.compared == Compared::Calls)
    }

    /// True while the calls of a session that is restored, or of a run that goes on, have their answers in the log.
    pub fn is_answered_from_log(&self) -> bool {
        let mut state = self.state.locked();
        state.script().is_some_and(|script| script.compared == Compared::Calls)
    }

    /// What the log of a session that is restored, or of a run that goes on, has of a call of this server and tool. Without
    /// it, the program does something else than it did, or the log is over. `uncounted`: the reason of calls that are refused
    /// because the budget is used up.
    pub fn restored(&self, seq: u64, called: Called<'_>, uncounted: &str) -> Option<(Restored, u64)> {
        self.state.locked().script()?.restored(seq, called, uncounted)
    }

    /// The program makes a call that its log does not have.
    pub fn unexpected(&self, seq: u64) {
        if let Some(script) = self.state.locked().script() {
            script.unexpected(seq);
        }
    }

    /// A call waits.
    pub fn wait(&self, seq: u64, fuel: u64) {
        let mut state = self.state.locked();
        if state.script().is_none() && !state.entered.contains_key(&seq) {
            state.write(|| Record::Wait { seq, fuel });
        }
    }

    /// Whether the recorded call waited here.
    pub fn waits(&self, seq: u64, fuel: u64) -> bool {
        self.state.locked().script().is_some_and(|script| script.waits(seq, fuel))
    }

    /// A call of the program.
    pub fn call(&self, call: CallBegun) -> Verdict {
        let mut state = self.state.locked();
        let is_numbered = state.next.is_some();
        let is_entered = state.entered.contains_key(&call.seq);
        match state.script() {
            Some(script) => {
                let verdict = script.call(&call);
                if is_numbered {
                    // Answers of other calls may be due now.
                    self.delivered.notify_waiters();
                }
                verdict
            }
            None if is_entered => Verdict::Again,
            None => {
                state.write(|| Record::Call(call));
                Verdict::Live
            }
        }
    }

    /// The arguments of a call that the journal had already when its run went on, and that has no answer yet.
    pub fn entered(&self, seq: u64) -> Option<Arc<str>> {
        self.state.locked().entered.get(&seq).cloned()
    }

    /// The host numbers the calls of the run from now on: it is a script, which has no numbers.
    pub fn number_calls(&self) {
        self.state.locked().next.get_or_insert(0);
    }

    /// The number of the next call of a script; `None` for a program with its own numbers.
    pub fn next_number(&self) -> Option<u64> {
        let mut state = self.state.locked();
        let next = state.next.as_mut()?;
        *next += 1;
        Some(*next)
    }

    /// The recorded answer of a call of a script, when it is due.
    pub async fn recorded_answer(&self, seq: u64) -> Answer {
        loop {
            let delivered = self.delivered.notified();
            let answer = self.state.locked().script().and_then(|script| script.take_answer(seq));
            if let Some(answer) = answer {
                self.delivered.notify_waiters();
                return answer;
            }
            delivered.await;
        }
    }

    /// Waits until a replayed script waits for what it waited for when it was interrupted. Returns the failure that it
    /// ended with.
    pub async fn stuck(&self) -> ErrorRecord {
        loop {
            let delivered = self.delivered.notified();
            if self.state.locked().script().is_some_and(|script| script.is_stuck())
                && let Some(error) = self.interrupted()
            {
                return error;
            }
            delivered.await;
        }
    }

    /// Waits until a call may leave: what the run has done so far is on the disk, and that the call leaves, if it may
    /// change something.
    ///
    /// # Errors
    /// The run cannot be stored.
    pub async fn leaves(&self, seq: u64, is_read: bool, may_repeat: bool) -> Result<(), StoreError> {
        let (stored, answered) = {
            let mut state = self.state.locked();
            let (answered, is_settled) = (state.answered, state.stored == state.answered);
            let Some(log) = state.log.as_mut() else { return Ok(()) };
            // Whether a call may be made again is decided now: a server can say something else later.
            log.write(&if may_repeat { Record::Left(seq) } else { Record::Sent(seq) });
            if is_read && is_settled {
                return Ok(());
            }
            let stored = log.store();
            if !is_read {
                state.sent.insert(seq);
            }
            (stored, answered)
        };
        stored.done().await?;
        let mut state = self.state.locked();
        state.stored = state.stored.max(answered);
        Ok(())
    }

    /// The server of a call has made a task of it: a later process asks for that.
    pub fn task(&self, seq: u64, task: &str) {
        if let Some(log) = &mut self.state.locked().log {
            log.write(&Record::Task { seq, task: task.to_owned() });
        }
    }

    /// True if the run can go on in a later process.
    pub fn outlives(&self) -> bool {
        self.state.locked().log.is_some()
    }

    /// True when the process ends, so that the run goes on in a later one.
    pub fn is_closing(&self) -> bool {
        self.state.locked().log.as_ref().is_some_and(DurableLog::is_closing)
    }

    /// The run waits for a person: stores it, if it outlives its process.
    pub fn park(&self) -> Option<Stored> {
        Some(self.state.locked().log.as_mut()?.store())
    }

    /// Stores the run and everything that it does from now on, and leaves it stored when it ends. `None`: it is over, or
    /// does not outlive its process.
    pub(super) fn keep(&self) -> Option<(Arc<str>, Stored)> {
        let mut state = self.state.locked();
        if state.outcome.is_some() {
            return None;
        }
        let log = state.log.as_mut()?;
        Some((log.name().clone(), log.keep()))
    }

    /// A program receives the answer of a call.
    pub fn end(&self, end: impl FnOnce() -> EndRecord) {
        let mut state = self.state.locked();
        if let Some(script) = state.script() {
            return script.skip_end(end().seq);
        }
        if state.is_written() {
            let end = end();
            // A call that the journal has as made does not wait, and its refusal is for its program to see.
            if state.entered.contains_key(&end.seq) && (end.answer.is_none() || end.at_once) {
                return;
            }
            state.entered.remove(&end.seq);
            state.answered += u64::from(state.sent.remove(&end.seq));
            state.write(|| Record::End(end));
        }
    }

    /// The recorded answer of a call that was refused at once.
    pub fn due_at_once(&self, seq: u64, fuel: u64) -> Option<Answer> {
        self.state.locked().script()?.due_at_once(seq, fuel)
    }

    /// The recorded answer of this call has no call that it belongs to.
    pub fn undelivered(&self, seq: u64) {
        if let Some(script) = self.state.locked().script() {
            script.undelivered(seq);
        }
    }

    /// The recorded failure, if the run was interrupted from outside.
    pub fn interrupted(&self) -> Option<ErrorRecord> {
        let error = self.state.locked().script.as_ref()?.recording().outcome()?.error.clone()?;
        ["timeout", "cancelled"].contains(&&*error.reason).then_some(error)
    }

    /// What the program, which waits, gets.
    pub fn due(&self, fuel: u64, is_first: bool) -> Due {
        let restores = self.restores();
        let mut state = self.state.locked();
        match state.script() {
            Some(script) => match script.due(fuel, is_first) {
                Due::Answer(seq, Answer::Stored { bytes }) if restores => {
                    script.is_without_file(seq, bytes);
                    Due::Diverged
                }
                due => due,
            },
            None => state.resumed.take().map_or(Due::Later, Due::GoOn),
        }
    }

    /// A question that the host answers at once. Returns the recorded answer, if there is one.
    pub fn asked(&self, asked: AskedRecord) -> Option<Json> {
        let mut state = self.state.locked();
        match state.script() {
            Some(script) => script.asked(&asked),
            None => {
                state.write(|| Record::Asked(asked));
                None
            }
        }
    }

    /// The time that the program reads, given the real one.
    pub fn now(&self, ms: i64) -> i64 {
        let mut state = self.state.locked();
        match state.script() {
            Some(script) => script.now().unwrap_or(ms),
            None => {
                state.write(|| Record::Now(ms));
                ms
            }
        }
    }

    /// The run has ended.
    pub fn outcome(&self, outcome: OutcomeRecord) {
        let mut state = self.state.locked();
        // A run that could not go on as it was is stored as it was.
        if state.script().is_none() {
            state.write(|| Record::Outcome(outcome.clone()));
        }
        state.outcome = Some(outcome);
    }

    /// Takes the replayed recording and its present outcome.
    pub fn replay_ended(&self) -> Option<(Script, OutcomeRecord)> {
        let mut state = self.state.locked();
        Some((*state.script.take()?, state.outcome.take()?))
    }
}

impl State {
    fn empty() -> State {
        State {
            file: None,
            log: None,
            collected: None,
            script: None,
            resumes: false,
            in_doubt: InDoubt::Report,
            resumed: None,
            entered: HashMap::new(),
            sent: HashSet::new(),
            answered: 0,
            stored: 0,
            tools: HashMap::new(),
            next: None,
            outcome: None,
        }
    }

    /// What is replayed; `None` from the moment on at which an interrupted run goes on.
    fn script(&mut self) -> Option<&mut Script> {
        if self.resumes
            && let Some(script) = self.script.take_if(|script| script.is_over())
        {
            let departed = script.departed();
            self.sent.clone_from(&departed.sent);
            self.entered.clone_from(&departed.entered);
            self.resumed = Some(departed);
        }
        self.script.as_deref_mut()
    }

    /// True if records go somewhere.
    fn is_written(&self) -> bool {
        self.file.is_some() || self.log.is_some() || self.collected.is_some()
    }

    fn write(&mut self, record: impl FnOnce() -> Record) {
        if !self.is_written() {
            return;
        }
        let record = record();
        if let Some(file) = &mut self.file {
            file.write(&record);
        }
        if let Some(log) = &mut self.log {
            log.write(&record);
        }
        if let Some(collected) = &mut self.collected {
            collected.add(&record);
        }
    }
}

/// The tool list that each server had when the run began.
fn tools_of(header: &Header) -> HashMap<String, Option<String>> {
    header.servers.iter().map(|server| (server.server.clone(), server.tools.clone())).collect()
}
