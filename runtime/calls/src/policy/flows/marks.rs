//! Remembers for each session which tools have answered its programs, and which of these answers the model has seen, so
//! that data-flow rules also cover data from earlier programs.

use super::decide::Tainted;
use super::labels::UNKNOWN_SOURCE;
use crate::run::account::RunAccount;
use crate::run::account::flows::AnsweredBy;
use ptc_base::sync::Locked;
use ptc_compiler::flows::{FlowPlan, FlowSource, SourceSet};
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

/// The answers that are shown.
struct Shown {
    answered: AnsweredBy,
    /// Those of earlier programs of the session too.
    session: bool,
}

/// The answers that the plan of a program sends to its result or its prints.
fn shown_by(plan: &FlowPlan, answered: AnsweredBy) -> Shown {
    let mut shown = Shown { answered: AnsweredBy::new(), session: false };
    let named = plan.definitions.iter().fold(SourceSet::EMPTY, |all, (_, sources)| all.union(*sources));
    for source in plan.result.union(plan.prints).union(named).iter() {
        match plan.sources.get(source) {
            Some(FlowSource::Result(index)) => {
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
    answered: AnsweredBy,
    shown: AnsweredBy,
}

impl FlowMarks {
    /// What may have come to a run so far.
    pub(in crate::policy) fn of_run(&self, run: &RunAccount) -> Tainted {
        let flows = run.flows();
        let (plan, answered) = (flows.plan().cloned(), flows.answered());
        let (session, shown) =
            self.with(run, |marks| (marks.answered.clone(), marks.shown.clone())).unwrap_or_default();
        Tainted { plan, answered, session, shown }
    }

    /// Notes that a call of a run is made, whose answer it will get.
    pub(in crate::policy) fn note(&self, run: &RunAccount, server: &str, target: &str) {
        if run.flows().note(server, target) {
            self.with(run, |marks| marks.answered.insert((server.into(), target.into())));
        }
    }

    /// Notes what the model has seen of a run.
    pub(in crate::policy) fn show(&self, run: &RunAccount, shown: ShownAnswer) {
        let plan = run.flows().plan().filter(|plan| !plan.is_unknown);
        let answered = run.flows().answered();
        let answers = match (shown, plan) {
            (ShownAnswer::Limited, _) => return,
            (ShownAnswer::Planned, Some(plan)) => shown_by(plan, answered),
            (ShownAnswer::Planned | ShownAnswer::Anything, _) => Shown { answered, session: true },
        };
        self.with(run, |marks| {
            marks.shown.extend(answers.answered);
            if answers.session {
                marks.shown.extend(marks.answered.iter().cloned());
            }
        });
    }

    fn with<T>(&self, run: &RunAccount, look: impl FnOnce(&mut SessionMarks) -> T) -> Option<T> {
        let session = run.session()?;
        let mut all = self.0.locked();
        let at = all.iter().position(|marks| std::ptr::addr_eq(marks.session.as_ptr(), session.as_ptr()));
        let at = at.unwrap_or_else(|| {
            all.retain(|marks| marks.session.strong_count() > 0);
            all.push(SessionMarks {
                session: session.clone(),
                answered: AnsweredBy::new(),
                shown: AnsweredBy::new(),
            });
            all.len() - 1
        });
        Some(look(&mut all[at]))
    }
}
