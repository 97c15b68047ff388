//! Remembers approvals of tool calls that also count for later calls of the same run or session, and finds the one
//! that covers a call.

use super::question::{AskRule, Binding, Remember};
use crate::run::account::RunAccount;
use ptc_base::sync::Locked;
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
    /// All that its rule asks about.
    Rule,
}

struct Remembered {
    holder: Holder,
    /// The rule that asked. An answer to it counts for no other rule.
    asks: AskRule,
    /// Version of the policy.
    policy: u64,
    covered: Covered,
    by: Arc<str>,
}

/// Approvals of all runs.
#[derive(Default)]
pub(in crate::policy) struct RememberedAnswers(Mutex<Vec<Remembered>>);

impl RememberedAnswers {
    pub(super) fn add(&self, run: &Arc<RunAccount>, binding: &Binding, asks: AskRule, by: &Arc<str>) {
        let of_run = || Holder::Run(Arc::downgrade(run));
        let (holder, covered) = match asks.remember {
            Remember::Call => return,
            Remember::Args => (of_run(), Covered::Call(binding.clone())),
            Remember::Tool => (of_run(), Covered::Tool(binding.without_arguments())),
            Remember::Run => (of_run(), Covered::Rule),
            Remember::Session => {
                let holder = run.session().cloned().map_or_else(of_run, Holder::Session);
                (holder, Covered::Rule)
            }
        };
        let mut all = self.0.locked();
        all.retain(|known| known.holder.is_alive());
        if all.len() < MOST {
            all.push(Remembered { holder, asks, policy: binding.policy(), covered, by: by.clone() });
        }
    }

    /// Who approved a call like this one.
    pub(in crate::policy) fn find(
        &self,
        run: &Arc<RunAccount>,
        binding: &Binding,
        asks: AskRule,
    ) -> Option<Arc<str>> {
        let all = self.0.locked();
        let covers = |covered: &Covered| match covered {
            Covered::Call(call) => call == binding,
            Covered::Tool(tool) => *tool == binding.without_arguments(),
            Covered::Rule => true,
        };
        let mut found = all.iter().filter(|known| {
            known.asks == asks
                && known.policy == binding.policy()
                && known.holder.is_of(run)
                && covers(&known.covered)
        });
        found.next().map(|known| known.by.clone())
    }
}
