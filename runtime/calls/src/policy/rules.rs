//! Applies one policy file to a tool call: finds the rules and limits that name the tool, and gives the verdict of the
//! strictest rule, or the default. The default depends on the effect of the tool.

use super::approvals::Remember;
use super::condition::{Arguments, Condition, Met};
use super::effects::ToolEffect;
use super::flows::FlowRules;
use super::limits::Limit;
use super::pattern::{Exactness, RulePattern};
use crate::run::client::asker::{AskerPattern, CallAsker};
use crate::run::outcome::Verdict;
use crate::tools::CallTarget;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One file.
#[derive(Debug)]
pub(super) struct RuleFile {
    /// Its name in messages: the path as it was given.
    pub(super) name: Arc<str>,
    /// Its rules, in order: deny, ask, allow.
    pub(super) rules: Vec<Rule>,
    /// Secrets of one server may be sent to another. `None`: it does not say.
    pub(super) passes_secrets: Option<bool>,
    /// Its limits over many calls.
    pub(super) limits: Vec<Limit>,
    /// What it says of tools that no rule applies to. `None`: nothing.
    pub(super) defaults: Option<Defaults>,
    /// Effects of tools, whatever their annotations say.
    pub(super) effects: Vec<(RulePattern, ToolEffect, Position)>,
    /// Servers with annotations that count.
    pub(super) trusted: BTreeMap<Arc<str>, Position>,
    /// Its rules about data flows.
    pub(super) flows: Option<FlowRules>,
}

/// Line and column, from 1.
pub(super) type Position = (usize, usize);

/// A rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) verdict: Verdict,
    pub(super) tools: Vec<(RulePattern, Position)>,
    pub(super) conditions: Vec<(Condition, Position)>,
    /// Who it is for; empty: for all.
    pub(super) who: Vec<AskerPattern>,
    /// For how long an answer counts, of a rule that asks.
    pub(super) remember: Remember,
    /// Its name in messages and records, with its place: `policy.toml:3: deny github/delete_*`.
    pub(super) title: Arc<str>,
}

/// The verdicts for calls that no rule applies to.
#[derive(Clone, Debug)]
pub(super) struct Defaults {
    /// By effect: read, write, destructive; with their names in records.
    by_effect: [(Verdict, Arc<str>); 3],
}

impl Defaults {
    /// The defaults of a file. What it leaves out is as strict as in [`Defaults::standard`] or as the lesser effect.
    pub(super) fn new(
        file: &str,
        read: Option<Verdict>,
        write: Option<Verdict>,
        destructive: Option<Verdict>,
    ) -> Defaults {
        let read = read.unwrap_or(Verdict::Allow);
        let write = write.unwrap_or(Verdict::Ask).max(read);
        let destructive = destructive.unwrap_or(Verdict::Ask.max(write));
        let title = |effect: ToolEffect, verdict: Verdict| {
            (verdict, format!("{file}: default {} = {}", effect.name(), verdict.name()).into())
        };
        Defaults {
            by_effect: [
                title(ToolEffect::Read, read),
                title(ToolEffect::Write, write),
                title(ToolEffect::Destructive, destructive),
            ],
        }
    }

    /// For calls that no file says anything about.
    pub(super) fn standard() -> Defaults {
        Defaults::new("policy", None, None, None)
    }

    fn of(&self, effect: ToolEffect) -> &(Verdict, Arc<str>) {
        let [read, write, destructive] = &self.by_effect;
        match effect {
            ToolEffect::Read => read,
            ToolEffect::Write => write,
            ToolEffect::Destructive => destructive,
        }
    }

    /// True if one of them asks.
    pub(super) fn may_ask(&self) -> bool {
        self.by_effect.iter().any(|(verdict, _)| *verdict == Verdict::Ask)
    }

    /// The verdict for this effect, with its name.
    pub(super) fn ruling(&self, effect: ToolEffect) -> Said<'_> {
        let (verdict, title) = self.of(effect);
        Said { verdict: *verdict, title, remember: Remember::Call, rule: None }
    }
}

/// What a file says of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said<'f> {
    pub(super) verdict: Verdict,
    pub(super) title: &'f Arc<str>,
    pub(super) remember: Remember,
    /// Index of the rule; `None`: the defaults.
    pub(super) rule: Option<usize>,
}

/// The part of a file that concerns one tool, looked up once.
#[derive(Debug)]
pub(super) struct FilePlan {
    /// Indices of rules that name the tool.
    rules: Vec<usize>,
    /// Indices of limits that count calls of the tool.
    limits: Vec<usize>,
    effect: Option<ToolEffect>,
    is_trusted: bool,
}

impl FilePlan {
    /// The annotations of its server count.
    pub(super) fn is_trusted(&self) -> bool {
        self.is_trusted
    }
}

impl Rule {
    /// How exactly it names tools.
    pub(super) fn exactness(&self) -> Exactness {
        match self.verdict {
            Verdict::Allow => Exactness::Exact,
            Verdict::Ask | Verdict::Deny => Exactness::Loose,
        }
    }

    /// True when it names this target.
    pub(super) fn names(&self, server: &str, target: &CallTarget) -> bool {
        let label = target.label();
        // A rule that allows a request does not allow a tool with its name.
        let exactness = self.exactness();
        (exactness == Exactness::Loose || !is_disguised(target))
            && self.tools.iter().any(|(pattern, _)| pattern.matches(server, label, exactness))
    }

    fn said(&self, index: usize) -> Said<'_> {
        Said { verdict: self.verdict, title: &self.title, remember: self.remember, rule: Some(index) }
    }

    /// True when it applies to a call of a target that it names.
    fn applies(&self, arguments: &Arguments<'_>, asker: &CallAsker<'_>) -> bool {
        if !self.who.is_empty() && !self.who.iter().any(|who| who.matches(asker)) {
            return false;
        }
        let mut met = self.conditions.iter().map(|(condition, _)| condition.met(arguments));
        match self.verdict {
            Verdict::Allow => met.all(|met| met == Met::Yes),
            Verdict::Ask | Verdict::Deny => met.all(|met| met != Met::No),
        }
    }
}

/// True for a tool with the name of a request: a server may call a tool `resources/read`.
fn is_disguised(target: &CallTarget) -> bool {
    matches!(target, CallTarget::Tool(_)) && CallTarget::METHODS.contains(&target.label())
}

impl RuleFile {
    /// True if it says nothing.
    pub(super) fn is_empty(&self) -> bool {
        let RuleFile { name: _, rules, passes_secrets, limits, defaults, effects, trusted, flows } = self;
        rules.is_empty()
            && passes_secrets.is_none()
            && limits.is_empty()
            && defaults.is_none()
            && effects.is_empty()
            && trusted.is_empty()
            && flows.is_none()
    }

    /// True if the annotations of this server count.
    pub(super) fn trusts(&self, server: &str) -> bool {
        self.trusted.contains_key(server)
    }

    /// What concerns this target.
    pub(super) fn plan(&self, server: &str, target: &CallTarget) -> FilePlan {
        let names = |(index, rule): (usize, &Rule)| rule.names(server, target).then_some(index);
        let label = target.label();
        // Of several overrides the strictest counts.
        let effects = self.effects.iter().filter(|(pattern, effect, _)| {
            // What makes a request a read makes no tool of its name one.
            let is_meant = *effect != ToolEffect::Read || !is_disguised(target);
            is_meant && pattern.matches(server, label, Exactness::Exact)
        });
        FilePlan {
            rules: self.rules.iter().enumerate().filter_map(names).collect(),
            limits: self.limits_of(server, target),
            effect: effects.map(|(_, effect, _)| *effect).max(),
            is_trusted: self.trusted.contains_key(server),
        }
    }

    fn limits_of(&self, server: &str, target: &CallTarget) -> Vec<usize> {
        let names = |(index, limit): (usize, &Limit)| limit.names(server, target).then_some(index);
        self.limits.iter().enumerate().filter_map(names).collect()
    }

    /// The limits that count calls of a target.
    pub(super) fn limits<'f>(&'f self, plan: &'f FilePlan) -> impl Iterator<Item = &'f Limit> {
        plan.limits.iter().filter_map(|index| self.limits.get(*index))
    }

    /// What it says of a call; `None`: nothing.
    pub(super) fn say(
        &self,
        plan: &FilePlan,
        arguments: &Arguments<'_>,
        asker: &CallAsker<'_>,
        effect: impl FnOnce(bool) -> ToolEffect,
    ) -> Option<Said<'_>> {
        let named = plan.rules.iter().filter_map(|index| Some((*index, self.rules.get(*index)?)));
        let mut applying = named.filter(|(_, rule)| rule.applies(arguments, asker));
        if let Some((index, first)) = applying.next() {
            // Rules are sorted by verdict. Of several that ask, the one with the narrowest answer decides.
            let alike = applying.take_while(|(_, rule)| rule.verdict == first.verdict);
            let said = alike.map(|(index, rule)| rule.said(index));
            return std::iter::once(first.said(index)).chain(said).min_by_key(|said| said.remember);
        }
        let defaults = self.defaults.as_ref()?;
        Some(defaults.ruling(self.effect(plan, effect)))
    }

    /// What it may say of a call with any arguments, in the order in which rules are tried.
    pub(super) fn may_say(
        &self,
        plan: &FilePlan,
        asker: &CallAsker<'_>,
        effect: impl FnOnce(bool) -> ToolEffect,
    ) -> Vec<Said<'_>> {
        let mut said = Vec::new();
        for (index, rule) in plan.rules.iter().filter_map(|index| Some((*index, self.rules.get(*index)?))) {
            if rule.who.is_empty() || rule.who.iter().any(|who| who.matches(asker)) {
                said.push(rule.said(index));
                if rule.conditions.is_empty() {
                    return said;
                }
            }
        }
        let defaults = self.defaults.as_ref();
        said.extend(defaults.map(|defaults| defaults.ruling(self.effect(plan, effect))));
        said
    }

    /// The effect of a tool, as this file sees it. `declared` gets whether annotations count.
    pub(super) fn effect(&self, plan: &FilePlan, declared: impl FnOnce(bool) -> ToolEffect) -> ToolEffect {
        plan.effect.unwrap_or_else(|| declared(plan.is_trusted))
    }
}
