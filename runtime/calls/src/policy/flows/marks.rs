//! Remembers for each session which tools have answered its programs, and which of these answers the model has seen, so
//! that data-flow rules also cover data from earlier programs.

use super::decide::Tainted;
use super::labels::UNKNOWN_SOURCE;
use crate::run::account::RunAccount;
use crate::run::account::flows::AnsweredBy;
use ptc_base::sync::Locked;
use ptc_compiler::flows::{FlowPlan, FlowSource, SourceSet};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::sync::{Arc, Mutex, Weak};

/// What the answer of a run shows to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownAnswer {
    /// Booleans, numbers and texts of a fixed list.
    Limited,
    /// What its plan says.
    Planned,
    /// Anything that the run has got: the text of a fault may quote it.
    Anything,
}

/// The answers that the programs of a session have got.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionAnswers {
    /// By server and target.
    answered: AnsweredBy,
    /// Those that the model has seen.
    shown: AnsweredBy,
}

impl SessionAnswers {
    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.answered.is_empty() && self.shown.is_empty()
    }
}

/// The answers that are shown.
struct Shown {
    answered: AnsweredBy,
    /// Those of earlier programs of the session too.
    session: bool,
}

/// The answers that the plan of a program sends to its result or its prints. `counts_status`: whether a call succeeded
/// counts as its data.
fn shown_by(plan: &FlowPlan, answered: AnsweredBy, counts_status: bool) -> Shown {
    let mut shown = Shown { answered: AnsweredBy::new(), session: false };
    let named = plan.definitions.iter().fold(SourceSet::EMPTY, |all, (_, sources)| all.union(*sources));
    for source in plan.result.union(plan.prints).union(named).iter() {
        match plan.sources.get(source) {
            Some(FlowSource::Status(_)) if !counts_status => {}
            Some(FlowSource::Result(index) | FlowSource::Status(index)) => {
                let call = plan.calls.get(*index);
                let named = |name: Option<&str>, is: &str| name.is_none_or(|name| name == is);
                let is_of = |(server, target): &&(Arc<str>, Arc<str>)| {
                    named(call.and_then(|call| call.server.as_deref()), server)
                        && named(call.and_then(|call| call.tool.as_deref()), target)
                };
                shown.answered.extend(answered.iter().filter(is_of).cloned());
            }
            Some(FlowSource::Session(_)) => shown.session = true,
            Some(FlowSource::Catalog) => {
                let (server, target) = UNKNOWN_SOURCE;
                shown.answered.insert((server.into(), target.into()));
            }
            Some(FlowSource::Anything) | None => return Shown { answered, session: true },
            Some(_) => {}
        }
    }
    shown
}

/// The marks of all sessions that are alive.
#[derive(Default)]
pub(in crate::policy) struct FlowMarks(Mutex<Vec<SessionMarks>>);

struct SessionMarks {
    session: Weak<dyn Any + Send + Sync>,
    answers: SessionAnswers,
}

impl FlowMarks {
    /// What may have come to a run so far.
    pub(in crate::policy) fn of_run(&self, run: &RunAccount) -> Tainted {
        let flows = run.flows();
        let (plan, answered) = (flows.plan().cloned(), flows.answered());
        let SessionAnswers { answered: session, shown } =
            run.session().map(|session| self.of_session(session)).unwrap_or_default();
        Tainted { plan, answered, session, shown }
    }

    /// Notes that a call of a run is made, whose answer it will get.
    pub(in crate::policy) fn note(&self, run: &RunAccount, server: &str, target: &str) {
        if run.flows().note(server, target) {
            self.with_run(run, |answers| {
                answers.answered.insert((server.into(), target.into()));
            });
        }
    }

    /// Notes what the model has seen of a run. `counts_status`: whether a call succeeded counts as its data.
    pub(in crate::policy) fn show(&self, run: &RunAccount, shown: ShownAnswer, counts_status: bool) {
        let plan = run.flows().plan().filter(|plan| !plan.is_unknown);
        let answered = run.flows().answered();
        let answers = match (shown, plan) {
            (ShownAnswer::Limited, _) => return,
            (ShownAnswer::Planned, Some(plan)) => shown_by(plan, answered, counts_status),
            (ShownAnswer::Planned | ShownAnswer::Anything, _) => Shown { answered, session: true },
        };
        self.with_run(run, |of_session| {
            of_session.shown.extend(answers.answered);
            if answers.session {
                of_session.shown.extend(of_session.answered.iter().cloned());
            }
        });
    }

    /// Notes that the model has seen all that a session has been answered.
    pub(in crate::policy) fn show_all(&self, session: &Weak<dyn Any + Send + Sync>) {
        self.with(session, |answers| answers.shown.extend(answers.answered.iter().cloned()));
    }

    /// The answers of a session.
    pub(in crate::policy) fn of_session(&self, session: &Weak<dyn Any + Send + Sync>) -> SessionAnswers {
        self.with(session, |answers| answers.clone())
    }

    /// Notes answers of a session that came to it in another process.
    pub(in crate::policy) fn add(&self, session: &Weak<dyn Any + Send + Sync>, others: SessionAnswers) {
        self.with(session, |answers| {
            answers.answered.extend(others.answered);
            answers.shown.extend(others.shown);
        });
    }

    fn with_run(&self, run: &RunAccount, look: impl FnOnce(&mut SessionAnswers)) {
        if let Some(session) = run.session() {
            self.with(session, look);
        }
    }

    fn with<T>(
        &self,
        session: &Weak<dyn Any + Send + Sync>,
        look: impl FnOnce(&mut SessionAnswers) -> T,
    ) -> T {
        let mut all = self.0.locked();
        let at = all.iter().position(|marks| std::ptr::addr_eq(marks.session.as_ptr(), session.as_ptr()));
        let at = at.unwrap_or_else(|| {
            all.retain(|marks| marks.session.strong_count() > 0);
            all.push(SessionMarks { session: session.clone(), answers: SessionAnswers::default() });
            all.len() - 1
        });
        look(&mut all[at].answers)
    }
}
