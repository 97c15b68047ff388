//! Records each run in a journal (inputs, calls and their answers in order, outcome), from which the run is replayed
//! or resumed.
//!
//! A program is a function of its text, its context and the answers of the host. A journal has all three, so it is
//! enough to run the program again without a server, and to notice any difference.
//!
//! Answers reach a program with a journal only while all of its branches wait. The order of the records then decides
//! everything that happens, whatever the timing was.
//!
//! # Layout
//! - `record`: the records, one JSON value a line; `answer`: recorded answers of calls
//! - `recorder`: writes the journals of a process to files; `recording`: reads one
//! - `run_journal`: the journal of one run: records it, or replays it; `replay`: the position in a recording;
//!   `compare`: how two outcomes differ; `restored`: what a program of a stored session was answered
//! - `durable`: journals of runs that outlive their process; `kept`: keeps a run stored, also after its end

mod answer;
mod compare;
mod durable;
mod kept;
mod record;
mod recorder;
mod recording;
mod replay;
mod restored;
mod run_journal;

pub use answer::{Answer, Content, raw_json};
pub use compare::{Difference, OutcomePart, differences};
pub use durable::TakenRun;
pub use durable::{DurableRuns, RunHolder, Stored, StoredRun};
pub use kept::{DurableRun, Keepable, RunKeeper};
pub use record::{
    AskedRecord, CallBegun, EndRecord, ErrorRecord, Header, Language, OutcomeRecord, PreludeRecord, Record,
    ServerRecord,
};
pub use recorder::{RecordError, Recorder};
pub use recording::{Recording, RecordingError};
pub use replay::{Departed, Due, Matching, Script};
pub use restored::{Called, Restored};
pub use run_journal::{InDoubt, RunJournal, Verdict};
