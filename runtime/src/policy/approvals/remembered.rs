//! Approvals that count for further calls of a run or a session.

use super::question::{Binding, Remember};
use crate::run::account::RunAccount;
use crate::sync::Locked;
use std::any::Any;
use std::sync::{Arc, Mutex, Weak};

/// Most approvals that are remembered at once; further ones count once.
const MOST: usize = 10_000;

/// What an approval lasts as long as.
enum Holder {
    Run(Weak<RunAccount>),
    Session(Weak<dyn Any + Send + Sync>),
}

impl Holder {
    fn is_alive(&self) -> bool {
        match self {
            Holder::Run(run) => run.strong_count() > 0,
            Holder::Session(session) => session.strong_count() > 0,
        }
    }

    fn is_of(&self, run: &Arc<RunAccount>) -> bool {
        match self {
            Holder::Run(holder) => std::ptr::eq(holder.as_ptr(), Arc::as_ptr(run)),
            Holder::Session(holder) => {
                run.session().is_some_and(|session| std::ptr::addr_eq(holder.as_ptr(), session.as_ptr()))
            }
        }
    }
}

/// The calls that an approval counts for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Covered {
    /// Of this tool with these arguments.
    Call(Binding),
    /// Of this tool; the arguments are left out.
    Tool(Binding),
    /// All that this rule of this version of the policy asks about.
    Rule(Arc<str>, u64),
}

struct Remembered {
    holder: Holder,
    covered: Covered,
    by: Arc<str>,
}

/// Approvals of all runs.
#[derive(Default)]
pub(in crate::policy) struct RememberedAnswers(Mutex<Vec<Remembered>>);

impl RememberedAnswers {
    pub(super) fn add(
        &self,
        run: &Arc<RunAccount>,
        binding: &Binding,
        rule: &Arc<str>,
        remember: Remember,
        by: &Arc<str>,
    ) {
        let of_run = || Holder::Run(Arc::downgrade(run));
        let (holder, covered) = match remember {
            Remember::Call => return,
            Remember::Args => (of_run(), Covered::Call(binding.clone())),
            Remember::Tool => (of_run(), Covered::Tool(binding.without_arguments())),
            Remember::Run => (of_run(), Covered::Rule(rule.clone(), binding.policy())),
            Remember::Session => {
                let holder = run.session().cloned().map_or_else(of_run, Holder::Session);
                (holder, Covered::Rule(rule.clone(), binding.policy()))
            }
        };
        let mut all = self.0.locked();
        all.retain(|known| known.holder.is_alive());
        if all.len() < MOST {
            all.push(Remembered { holder, covered, by: by.clone() });
        }
    }

    /// Who approved a call like this one.
    pub(in crate::policy) fn find(
        &self,
        run: &Arc<RunAccount>,
        binding: &Binding,
        rule: &Arc<str>,
    ) -> Option<Arc<str>> {
        let all = self.0.locked();
        let covers = |covered: &Covered| match covered {
            Covered::Call(call) => call == binding,
            Covered::Tool(tool) => *tool == binding.without_arguments(),
            Covered::Rule(known, policy) => known == rule && *policy == binding.policy(),
        };
        let mut found = all.iter().filter(|known| known.holder.is_of(run) && covers(&known.covered));
        found.next().map(|known| known.by.clone())
    }
}
