//! Finds the verdict (allow, ask a person, deny) of a policy file's data-flow rules for data that the file labels, such
//! as `private`, and that would flow into an argument of a tool call. Data that determines whether the call is made
//! counts as flowing into all of the arguments.

use super::labels::{LabelSet, Labels, names};
use super::standard;
use crate::policy::condition::Pointer;
use crate::policy::effects::ToolEffect;
use crate::policy::look_alikes::key_letters;
use crate::policy::pattern::{Exactness, RulePattern};
use crate::policy::rules::Position;
use crate::run::outcome::Verdict;
use crate::tools::UpstreamTool;
use std::sync::Arc;

/// The part of a policy file that is about flows.
#[derive(Debug)]
pub(in crate::policy) struct FlowRules {
    pub(in crate::policy) labels: Labels,
    /// In order: deny, ask, allow.
    pub(in crate::policy) rules: Vec<FlowRule>,
    /// The name of the usual rules, if they hold.
    pub(super) standard: Option<Arc<str>>,
}

impl FlowRules {
    /// True if one of them asks. The usual rules do.
    pub(in crate::policy) fn may_ask(&self) -> bool {
        self.standard.is_some() || self.rules.iter().any(|rule| rule.verdict == Verdict::Ask)
    }
}

/// `[[flow]]`.
#[derive(Debug)]
pub(in crate::policy) struct FlowRule {
    pub(super) from: LabelSet,
    pub(in crate::policy) to: Vec<(RulePattern, Position)>,
    /// Arguments that it is about; empty: all.
    pub(in crate::policy) args: Vec<(Pointer, Position)>,
    pub(super) verdict: Verdict,
    /// A program that may have the flow is refused before it runs.
    pub(super) before: bool,
    /// Whether a call succeeded counts as its data.
    pub(super) status: bool,
    pub(super) title: Arc<str>,
}

/// The end of a flow: a part of the arguments of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sink<'s> {
    /// Server and target; `None`: the text of the program does not say.
    pub(super) target: Option<(&'s str, &'s str)>,
    pub(super) tool: &'s UpstreamTool,
    pub(super) effect: ToolEffect,
    /// The annotations of its server count.
    pub(super) is_trusted: bool,
    pub(super) place: Place<'s>,
}

/// What of a call is reached.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'s> {
    /// Whether it is made, and so each of its arguments.
    Control {
        /// The arguments that the call may have; `None`: any.
        arguments: Option<&'s [Vec<Box<str>>]>,
    },
    /// The argument that these keys lead to. An empty text is any key.
    Argument(&'s [Box<str>]),
}

/// What the rules of a file say of a flow.
#[derive(Clone, Debug)]
pub(super) struct FlowSaid {
    pub(super) verdict: Verdict,
    pub(super) title: Arc<str>,
    /// Index of the rule; those after the last are the usual ones.
    pub(super) rule: usize,
    pub(super) before: bool,
}

impl FlowRule {
    /// What it says, as the rule of this index in its file.
    pub(super) fn said(&self, index: usize) -> FlowSaid {
        FlowSaid { verdict: self.verdict, title: self.title.clone(), rule: index, before: self.before }
    }

    fn applies(&self, label: LabelSet, sink: &Sink<'_>) -> bool {
        let exactness = match self.verdict {
            Verdict::Allow => Exactness::Exact,
            Verdict::Ask | Verdict::Deny => Exactness::Loose,
        };
        let is_named = match sink.target {
            Some((server, target)) => names(&self.to, server, target, exactness),
            None => self.verdict != Verdict::Allow,
        };
        self.from.has(label) && is_named && self.reaches(sink.place)
    }

    fn reaches(&self, place: Place<'_>) -> bool {
        let is_allow = self.verdict == Verdict::Allow;
        match place {
            _ if self.args.is_empty() => true,
            Place::Control { arguments: None } => !is_allow,
            Place::Control { arguments: Some(arguments) } => {
                !is_allow && arguments.iter().any(|path| self.reaches(Place::Argument(path)))
            }
            Place::Argument(path) => self.args.iter().any(|(pointer, _)| match is_allow {
                true => is_below(&pointer.segments, path),
                false => overlaps(&pointer.segments, path),
            }),
        }
    }
}

/// True when two spellings of a key may be one argument: a schema may have another spelling than the program.
pub(super) fn same_key(a: &str, b: &str) -> bool {
    let plain = |text| key_letters(text).filter(|letter| !matches!(letter, '-' | '_'));
    a == b || plain(a).eq(plain(b))
}

/// True when what a rule names is part of an argument, or the other way round.
fn overlaps(named: &[String], path: &[Box<str>]) -> bool {
    named.iter().zip(path).all(|(named, key)| named == "*" || key.is_empty() || same_key(named, key))
}

/// True when an argument is part of what a rule names.
fn is_below(named: &[String], path: &[Box<str>]) -> bool {
    named.len() <= path.len()
        && named.iter().zip(path).all(|(named, key)| named == "*" || **key == *named.replace('-', "_"))
}

impl FlowRules {
    /// The arguments that rules for a tool name, but not those that allow, and that a call with these arguments does not
    /// have; each with the index of its rule.
    pub(super) fn missing_arguments(
        &self,
        server: &str,
        target: &str,
        paths: &[Vec<Box<str>>],
    ) -> Vec<(usize, &FlowRule, Vec<Box<str>>)> {
        let key = |segment: &String| if segment == "*" { "".into() } else { segment.as_str().into() };
        let rules = self.rules.iter().enumerate().filter(|(_, rule)| {
            rule.verdict != Verdict::Allow && names(&rule.to, server, target, Exactness::Loose)
        });
        let named =
            rules.flat_map(|(index, rule)| rule.args.iter().map(move |(pointer, _)| (index, rule, pointer)));
        let missing = named.filter(|(_, _, named)| !paths.iter().any(|path| overlaps(&named.segments, path)));
        missing.map(|(index, rule, named)| (index, rule, named.segments.iter().map(key).collect())).collect()
    }

    /// What the file says of a flow from a label; `None`: nothing. `is_status`: only whether a call succeeded flows.
    pub(super) fn say(&self, label: LabelSet, is_status: bool, sink: &Sink<'_>) -> Option<FlowSaid> {
        let mut rules = self.rules.iter().enumerate();
        let found = rules.find(|(_, rule)| (rule.status || !is_status) && rule.applies(label, sink));
        if let Some((index, rule)) = found {
            return Some(rule.said(index));
        }
        let title = self.standard.as_ref().filter(|_| !is_status)?;
        let said = |index: usize| FlowSaid {
            verdict: Verdict::Ask,
            title: title.clone(),
            rule: self.rules.len() + index,
            before: false,
        };
        if label == LabelSet::UNTRUSTED && sink.effect != ToolEffect::Read && standard::is_destination(sink) {
            return Some(said(0));
        }
        (label == LabelSet::PRIVATE && self.is_open(sink)).then(|| said(1))
    }

    /// True when a tool may pass on what it is given.
    fn is_open(&self, sink: &Sink<'_>) -> bool {
        let Sink { target, tool, is_trusted, .. } = *sink;
        let Some((server, target)) = target else { return true };
        if names(&self.labels.closed, server, target, Exactness::Exact) {
            return false;
        }
        names(&self.labels.open, server, target, Exactness::Loose)
            // The default of the MCP specification (2025-11-25, `ToolAnnotations`).
            || !(is_trusted && tool.annotations.open_world_hint == Some(false))
    }
}
