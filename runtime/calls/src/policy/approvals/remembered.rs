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
#[derive(Debug)]
enum Covered {
    /// Of this tool with these arguments.
    Call(Binding),
    /// Of this tool; the arguments are left out.
    Tool(Binding),
    /// All that its rule asks about, of the tools and servers as they were at their first call.
    Rule(Vec<Binding>),
}

/// Most tools that are known of one approval; further ones are asked about.
const MOST_TOOLS: usize = 1_000;

impl Covered {
    /// True if the approval counts for this call.
    fn covers(&mut self, call: &Binding) -> bool {
        match self {
            Covered::Call(known) => known == call,
            Covered::Tool(known) => *known == call.without_arguments(),
            Covered::Rule(known) => {
                let call = call.without_arguments();
                if known.contains(&call) {
                    return true;
                }
                let is_new =
                    known.len() < MOST_TOOLS && !known.iter().any(|known| known.is_replaced_by(&call));
                if is_new {
                    known.push(call);
                }
                is_new
            }
        }
    }
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
            Remember::Run => (of_run(), Covered::Rule(vec![binding.without_arguments()])),
            Remember::Session => {
                let holder = run.session().cloned().map_or_else(of_run, Holder::Session);
                (holder, Covered::Rule(vec![binding.without_arguments()]))
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
        let mut all = self.0.locked();
        let counts = |known: &mut Remembered| {
            known.asks == asks
                && known.policy == binding.policy()
                && known.holder.is_of(run)
                && known.covered.covers(binding)
        };
        all.iter_mut().find_map(|known| counts(known).then(|| known.by.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::{CallTarget, UpstreamTool};

    fn call(server: &str, configured: u64, tool: &str, text: &str) -> Binding {
        let listed = serde_json::json!({ "name": tool, "description": text });
        let listed: UpstreamTool = serde_json::from_value(listed).unwrap();
        Binding::new((server, Some(configured)), &CallTarget::Tool(tool.into()), &listed, "{}", 1)
    }

    #[test]
    fn an_answer_to_a_rule_counts_for_its_tools_and_servers_as_they_were() {
        let mut covered = Covered::Rule(vec![call("s", 1, "send", "sends").without_arguments()]);
        assert!(covered.covers(&call("s", 1, "send", "sends")));
        assert!(covered.covers(&call("s", 1, "list", "lists")), "another tool of the rule");
        assert!(covered.covers(&call("t", 1, "send", "sends")), "another server of the rule");
        assert!(!covered.covers(&call("s", 1, "send", "sends everything")), "another text");
        assert!(!covered.covers(&call("s", 1, "list", "lists all")), "another text of a later tool");
        assert!(!covered.covers(&call("s", 2, "send", "sends")), "another configuration");
        assert!(!covered.covers(&call("s", 2, "new", "is new")), "a new tool of another configuration");
        assert!(covered.covers(&call("s", 1, "send", "sends")));
    }
}
