//! Assigns the labels of a policy file, such as `private` and `untrusted`, to data by where it comes from: tool,
//! context or session.

use crate::policy::pattern::{Exactness, RulePattern};
use crate::policy::rules::Position;
use crate::run::account::flows::AnsweredBy;
use crate::tools::glob;
use ptc_compiler::flows::{FlowPlan, FlowSource};
use std::sync::Arc;

/// Stands for answers of any server among those that have answered. No server has an empty name.
pub(in crate::policy) const UNKNOWN_SOURCE: (&str, &str) = ("", "what is known of tools");

/// A set of labels of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::policy) struct LabelSet(u64);

impl LabelSet {
    /// The most labels of a file.
    pub(super) const MOST: usize = 64;
    /// All labels.
    pub(super) const ALL: LabelSet = LabelSet(u64::MAX);
    /// The label of data that people did not mean for others.
    pub(super) const PRIVATE: LabelSet = LabelSet(1);
    /// The label of data that an attacker may have written.
    pub(super) const UNTRUSTED: LabelSet = LabelSet(2);

    pub(super) fn only(number: usize) -> LabelSet {
        LabelSet(1 << number)
    }

    pub(super) fn union(self, other: LabelSet) -> LabelSet {
        LabelSet(self.0 | other.0)
    }

    pub(super) fn has(self, other: LabelSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Its labels that are among the first ones, one by one.
    pub(super) fn each(self, count: usize) -> impl Iterator<Item = LabelSet> {
        (0..count.min(LabelSet::MOST)).map(LabelSet::only).filter(move |label| self.has(*label))
    }
}

/// A label.
#[derive(Debug)]
pub(in crate::policy) struct Label {
    pub(super) name: Arc<str>,
    pub(in crate::policy) sources: Vec<(RulePattern, Position)>,
}

/// `[labels]`.
#[derive(Debug)]
pub(in crate::policy) struct Labels {
    /// By number; `private` and `untrusted` come first.
    pub(in crate::policy) all: Vec<Label>,
    /// Tools that reach beyond their server, whatever is annotated.
    pub(in crate::policy) open: Vec<(RulePattern, Position)>,
    /// Tools that do not; they override `open` and annotations.
    pub(in crate::policy) closed: Vec<(RulePattern, Position)>,
    /// Keys of the context that are the user's own text.
    pub(super) user: Vec<String>,
}

impl Default for Labels {
    fn default() -> Labels {
        Labels { all: Vec::new(), open: Vec::new(), closed: Vec::new(), user: vec!["*".to_owned()] }
    }
}

/// True when one of the patterns names a target.
pub(super) fn names(
    patterns: &[(RulePattern, Position)],
    server: &str,
    target: &str,
    exactness: Exactness,
) -> bool {
    patterns.iter().any(|(pattern, _)| pattern.matches(server, target, exactness))
}

impl Labels {
    /// The labels of what a target answers.
    pub(super) fn of_answer(&self, server: &str, target: &str) -> LabelSet {
        if (server, target) == UNKNOWN_SOURCE {
            return LabelSet::ALL;
        }
        let labels = self.all.iter().enumerate();
        let labels = labels.filter(|(_, label)| names(&label.sources, server, target, Exactness::Loose));
        labels.fold(LabelSet::default(), |all, (number, _)| all.union(LabelSet::only(number)))
    }

    /// The labels of several answers.
    pub(super) fn of_answers(&self, answers: &AnsweredBy) -> LabelSet {
        answers
            .iter()
            .fold(LabelSet::default(), |all, (server, target)| all.union(self.of_answer(server, target)))
    }

    /// The name of a label.
    pub(super) fn name(&self, label: LabelSet) -> &str {
        let named = self.all.iter().enumerate().find(|(number, _)| label.has(LabelSet::only(*number)));
        named.map_or("unknown", |(_, label)| &label.name)
    }

    /// True when every key of the context is the user's own text.
    pub(super) fn trusts_context(&self) -> bool {
        self.user.iter().any(|pattern| pattern == "*")
    }

    /// The labels of a source of a plan. `session`: of all answers that the session has got; `shown`: of all that the
    /// model has seen, which may steer what it writes.
    pub(super) fn of_source(
        &self,
        plan: &FlowPlan,
        source: usize,
        session: LabelSet,
        shown: LabelSet,
    ) -> LabelSet {
        match plan.sources.get(source) {
            Some(FlowSource::Clock | FlowSource::Prelude(_)) => LabelSet::default(),
            Some(FlowSource::Literal) => shown,
            Some(FlowSource::Context(Some(key))) if self.user.iter().any(|pattern| glob(pattern, key)) => {
                shown
            }
            // Earlier programs may have stored what the context had.
            Some(FlowSource::Session(_)) if self.trusts_context() => session.union(shown),
            Some(FlowSource::Result(index) | FlowSource::Status(index)) => match plan.calls.get(*index) {
                Some(call) => match (&call.server, &call.tool) {
                    (Some(server), Some(tool)) => self.of_answer(server, tool),
                    _ => LabelSet::ALL,
                },
                None => LabelSet::ALL,
            },
            Some(
                FlowSource::Anything | FlowSource::Catalog | FlowSource::Context(_) | FlowSource::Session(_),
            )
            | None => LabelSet::ALL,
        }
    }
}
