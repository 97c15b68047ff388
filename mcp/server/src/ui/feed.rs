//! Makes the events that update an open browser page of the web interface (`--ui`): each contains what has changed
//! since the previous one, such as new calls of runs.
//!
//! An event is made when its reader is ready for it, from the state at that moment. A slow reader gets fewer events,
//! and nothing waits for it.

use super::html::Html;
use super::run::{LineEnds, MOST_CALLS};
use super::runs::{MOST_LIVE, doing, excerpt, program};
use super::{Page, View, Viewer};
use crate::drawing::units::micros;
use crate::observe::CallRecorder;
use crate::observe::live::LiveCall;
use crate::redact::visible_line;
use crate::tools::session::SessionTable;
use ptc_base::digest::{hex, sha256};
use ptc_calls::outcome::{CallRecord, CallStatus};
use ptc_calls::watcher::{OpenCallRecord, RunState};
use ptc_vm::Span;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// Pause between two events.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// Most calls in one event; others follow in the next ones.
const CALLS_OF_EVENT: usize = 2_000;

/// Events without news about what is slow to look at: one of so many looks there.
const SLOW: u64 = 5;

/// What a reader has been sent.
pub(crate) struct Feed {
    view: View,
    viewer: Viewer,
    runs: HashMap<u64, Seen>,
    looks: u64,
    mark: String,
    waiting: usize,
    last: Option<Value>,
}

/// What a reader knows of a run.
#[derive(Default)]
struct Seen {
    /// Calls that have ended.
    ended: usize,
    /// Calls under way.
    open: HashSet<u64>,
    /// Where the lines of its program end.
    lines: Option<LineEnds>,
}

/// State of a call in an event.
#[derive(Clone, Copy)]
enum State {
    Open = 0,
    Ok = 1,
    Failed = 2,
    /// It has ended, and its record was not kept.
    Unknown = 3,
}

impl Feed {
    /// Nothing is sent yet.
    pub(crate) fn new(view: View, viewer: Viewer) -> Feed {
        Feed { view, viewer, runs: HashMap::new(), looks: 0, mark: String::new(), waiting: 0, last: None }
    }

    /// The next event as JSON; `None`: there is no news.
    pub(crate) async fn next(
        &mut self,
        page: &Page,
        sessions: Option<&Arc<SessionTable>>,
    ) -> Option<Vec<u8>> {
        if self.looks.is_multiple_of(SLOW) || matches!(self.view, View::Runs | View::Run(_)) {
            self.mark = page.mark(self.view, &self.viewer, sessions).await;
        }
        if self.looks.is_multiple_of(SLOW) {
            self.waiting = page.questions(&self.viewer).await.len();
        }
        self.looks += 1;
        let (runs, more) = match (&page.recorder, self.view) {
            (Some(recorder), View::Runs | View::Run(_)) => self.runs(recorder),
            _ => (Vec::new(), 0),
        };
        let is_growing = !runs.is_empty();
        let event = json!({ "mark": self.mark, "waiting": self.waiting, "more": more, "runs": runs });
        if !is_growing && self.last.as_ref() == Some(&event) {
            return None;
        }
        let text = event.to_string().into_bytes();
        self.last = Some(event);
        Some(text)
    }

    fn runs(&mut self, recorder: &CallRecorder) -> (Vec<Value>, usize) {
        let Some(live) = &recorder.live else { return Default::default() };
        let owner = self.viewer.owner.0;
        let (calls, all) = match self.view {
            View::Run(number) => (live.find(owner, number).into_iter().collect(), 1),
            _ => live.newest(owner, MOST_LIVE),
        };
        self.runs.retain(|number, _| calls.iter().any(|call: &Arc<LiveCall>| call.number == *number));
        let mut room = CALLS_OF_EVENT;
        let shown = calls.iter().map(|call| {
            let is_new = !self.runs.contains_key(&call.number);
            let seen = self.runs.entry(call.number).or_default();
            run(call, seen, is_new, recorder, &mut room)
        });
        (shown.collect(), all.saturating_sub(calls.len()))
    }
}

/// A run with what is new about it.
fn run(call: &LiveCall, seen: &mut Seen, is_new: bool, recorder: &CallRecorder, room: &mut usize) -> Value {
    let policy = recorder.policy;
    let age = micros(call.begun.1.elapsed());
    let mut shown = json!({ "n": call.number, "age": age });
    if is_new {
        seen.lines = program(call.arguments.as_ref(), policy).as_deref().map(LineEnds::of);
        shown["tool"] = (*visible_line(&call.tool)).into();
        shown["what"] = clean(&excerpt(call.arguments.as_ref(), policy)).into();
    }
    if let Some(state) = call.run.get().and_then(|run| run.look(seen.ended, MOST_CALLS.min(*room))) {
        shown["run"] = micros(state.elapsed).into();
        shown["doing"] = doing(state.open.len(), state.totals.count(), state.totals.failed.count).into();
        let calls = seen.news(&state, MOST_CALLS.min(*room));
        *room = room.saturating_sub(calls.len());
        shown["calls"] = calls.into();
    }
    shown
}

impl Seen {
    /// The calls that have begun or ended.
    fn news(&mut self, state: &RunState, most: usize) -> Vec<Value> {
        let mut news = Vec::new();
        for call in &state.ended {
            // A call that was refused at once has no number, and is counted only.
            if let Some(number) = call.number {
                self.open.remove(&number);
                news.push(self.ended_call(number, call));
            }
        }
        self.ended += state.ended.len();
        for call in &state.open {
            if self.open.insert(call.number) {
                news.push(self.open_call(call));
            }
        }
        // With all records seen, a call that is neither ended nor open has no record.
        if state.ended.len() < most && state.open.len() < most {
            let now: HashSet<u64> = state.open.iter().map(|call| call.number).collect();
            for number in self.open.extract_if(|number| !now.contains(number)) {
                news.push(json!([number, State::Unknown as u8]));
            }
        }
        news
    }

    fn open_call(&self, call: &OpenCallRecord) -> Value {
        let (line, name) = (self.line(call.place), name(&call.server, &call.tool));
        json!([call.number, State::Open as u8, name, micros(call.begun), 0, line])
    }

    fn line(&self, place: Option<Span>) -> Option<u64> {
        Some(self.lines.as_ref()?.line_of(place?))
    }

    fn ended_call(&self, number: u64, call: &CallRecord) -> Value {
        let line = self.line(call.place);
        let state = if call.status == CallStatus::Ok { State::Ok } else { State::Failed };
        let name = name(&call.server, &call.tool);
        json!([number, state as u8, name, micros(call.begun), micros(call.duration), line])
    }
}

fn name(server: &str, tool: &str) -> String {
    visible_line(&format!("{server}/{tool}")).into_owned()
}

fn clean(text: &str) -> String {
    visible_line(&crate::redact::secrets().scrub(text)).into_owned()
}

impl Page {
    /// Names the state of what a view shows, except of live runs: while it is the same, the view need not be asked for again.
    pub(super) async fn mark(
        &self,
        view: View,
        viewer: &Viewer,
        sessions: Option<&Arc<SessionTable>>,
    ) -> String {
        match (view, &self.recorder) {
            (View::Runs, Some(recorder)) => {
                recorder.ring.newest_number(viewer.owner.0).unwrap_or_default().to_string()
            }
            (View::Run(number), Some(recorder)) => {
                let live = recorder.live.as_ref().and_then(|live| live.find(viewer.owner.0, number));
                if live.is_some() { "live" } else { "over" }.to_owned()
            }
            (View::Runs | View::Run(_), None) => String::new(),
            (View::Approvals, _) => {
                let ids: Vec<String> =
                    self.questions(viewer).await.into_iter().map(|question| question.id).collect();
                hash(&ids.join(" "))
            }
            (View::Servers | View::Sessions, _) => {
                let content = self.content(view, viewer, sessions).await;
                hash(&content.map(Html::into_string).unwrap_or_default())
            }
        }
    }
}

fn hash(text: &str) -> String {
    hex(&sha256(text.as_bytes())[..8])
}
