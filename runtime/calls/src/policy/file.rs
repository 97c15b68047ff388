//! Parses a policy file (TOML) into its rules, limits and defaults, and reports errors with line and column.

use super::approvals::Remember;
use super::condition::Condition;
use super::effects::ToolEffect;
use super::flows::{FlowSwitch, FlowText, FlowsText};
use super::limits::{Limit, LimitText, Per};
use super::pattern::RulePattern;
use super::rules::{Defaults, Position, Rule, RuleFile};
use crate::run::client::asker::AskerPattern;
use crate::run::outcome::Verdict;
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;
use toml::Spanned;

/// What is wrong with a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// The file, as it was given.
    pub file: String,
    /// Line and column, from 1, if it concerns a place.
    pub position: Option<(usize, usize)>,
    /// One line.
    pub message: String,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some((line, column)) => write!(out, "{}:{line}:{column}: {}", self.file, self.message),
            None => write!(out, "{}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for PolicyError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    default: Option<DefaultText>,
    secrets: Option<SecretRule>,
    #[serde(default)]
    effects: BTreeMap<String, Spanned<ToolEffect>>,
    #[serde(default)]
    servers: BTreeMap<String, Spanned<ServerText>>,
    #[serde(default, rename = "rule")]
    rules: Vec<Spanned<RuleText>>,
    #[serde(default, rename = "limit")]
    limits: Vec<Spanned<LimitTable>>,
    flows: Option<FlowSwitch>,
    #[serde(default)]
    labels: BTreeMap<String, Spanned<Vec<Spanned<String>>>>,
    #[serde(default, rename = "flow")]
    flow_rules: Vec<Spanned<FlowText>>,
}

/// What happens to a call with a secret of another server in its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SecretRule {
    Deny,
    Allow,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DefaultText {
    read: Option<Verdict>,
    write: Option<Verdict>,
    destructive: Option<Verdict>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerText {
    trust: Trust,
}

/// What counts of a server.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Trust {
    /// Its annotations.
    Annotations,
    /// Nothing.
    None,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    #[serde(rename = "do")]
    verdict: Verdict,
    tools: Vec<Spanned<String>>,
    when: Option<BTreeMap<String, Spanned<Json>>>,
    who: Option<Vec<Spanned<String>>>,
    /// Why the rule is there; shown with it.
    reason: Option<String>,
    /// For how long an answer counts.
    remember: Option<Spanned<Remember>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitTable {
    tools: Vec<Spanned<String>>,
    #[serde(default)]
    per: Per,
    limit: Spanned<String>,
}

/// A file while it is read.
pub(super) struct Reader<'a> {
    pub(super) name: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    pub(super) fn position(&self, offset: usize) -> Position {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
    }

    pub(super) fn error(&self, offset: usize, message: impl Into<String>) -> PolicyError {
        let position = Some(self.position(offset));
        PolicyError { file: self.name.to_owned(), position, message: message.into() }
    }

    pub(super) fn tools(
        &self,
        begin: usize,
        tools: &[Spanned<String>],
    ) -> Result<Vec<(RulePattern, Position)>, PolicyError> {
        if tools.is_empty() {
            return Err(self.error(begin, "the rule names no tools: tools = [\"server/tool\"]"));
        }
        let tools = tools.iter().map(|tool| {
            let at = tool.span().start;
            match tool.get_ref().trim() {
                "" => Err(self.error(at, "a name of tools is empty")),
                text => Ok((RulePattern::new(text), self.position(at))),
            }
        });
        tools.collect()
    }

    fn limit(&self, spanned: Spanned<LimitTable>) -> Result<Limit, PolicyError> {
        let begin = spanned.span().start;
        let LimitTable { tools, per, limit } = spanned.into_inner();
        let read = LimitText::parse(limit.get_ref());
        let read = read.map_err(|why| self.error(limit.span().start, why))?;
        let line = self.position(begin).0;
        let title = format!("{}:{line}: limit {}", self.name, limit.get_ref());
        Ok(read.into_limit(self.tools(begin, &tools)?, per, title.into()))
    }

    fn rule(&self, spanned: Spanned<RuleText>) -> Result<Rule, PolicyError> {
        let begin = spanned.span().start;
        let RuleText { verdict, tools, when, who, reason, remember } = spanned.into_inner();
        if let Some(remember) = remember.as_ref().filter(|_| verdict != Verdict::Ask) {
            return Err(self.error(remember.span().start, "only a rule that asks remembers answers"));
        }
        let remember = remember.map(Spanned::into_inner).unwrap_or_default();
        let position = self.position(begin);
        let names: Vec<&str> = tools.iter().map(|tool| &**tool.get_ref()).collect();
        let mut title = format!("{}:{}: {} {}", self.name, position.0, verdict.name(), names.join(", "));
        if let Some(reason) = &reason {
            title.push_str(&format!(" ({reason})"));
        }
        // A list that was emptied does not mean all.
        if who.as_ref().is_some_and(Vec::is_empty) {
            return Err(self.error(begin, "who = [] names no caller: leave it out for a rule for all"));
        }
        if when.as_ref().is_some_and(BTreeMap::is_empty) {
            return Err(
                self.error(begin, "when = {} has no condition: leave it out for a rule for all calls")
            );
        }
        let conditions = when.iter().flatten().map(|(pointer, written)| {
            let at = written.span().start;
            let condition = Condition::parse(pointer, written.get_ref());
            Ok((condition.map_err(|why| self.error(at, why))?, self.position(at)))
        });
        let conditions = conditions.collect::<Result<_, PolicyError>>()?;
        let who = who
            .iter()
            .flatten()
            .map(|who| AskerPattern::parse(who.get_ref()).map_err(|why| self.error(who.span().start, why)));
        let who = who.collect::<Result<_, PolicyError>>()?;
        let tools = self.tools(begin, &tools)?;
        Ok(Rule { verdict, tools, conditions, who, remember, title: title.into() })
    }
}

impl RuleFile {
    /// Reads the text of a file. `name` is its name in messages.
    ///
    /// # Errors
    /// It is no TOML, or has something that a policy does not have.
    pub(super) fn parse(name: &str, text: &str) -> Result<RuleFile, PolicyError> {
        let reader = Reader { name, text };
        let file: FileText = toml::from_str(text).map_err(|error| PolicyError {
            file: name.to_owned(),
            position: error.span().map(|span| reader.position(span.start)),
            message: error.message().replace('\n', " "),
        })?;
        let rules: Result<Vec<Rule>, PolicyError> =
            file.rules.into_iter().map(|rule| reader.rule(rule)).collect();
        let mut rules = rules?;
        // Deny comes before ask before allow; within one verdict the order of the file names the rule that decided.
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.verdict));
        let limits = file.limits.into_iter().map(|limit| reader.limit(limit));
        let limits = limits.collect::<Result<Vec<Limit>, PolicyError>>()?;
        let effects = file.effects.iter().map(|(tools, effect)| {
            (RulePattern::new(tools), *effect.get_ref(), reader.position(effect.span().start))
        });
        let trusted = file.servers.iter().filter(|(_, server)| server.get_ref().trust == Trust::Annotations);
        let trusted =
            trusted.map(|(name, server)| (name.as_str().into(), reader.position(server.span().start)));
        let defaults = file
            .default
            .map(|DefaultText { read, write, destructive }| Defaults::new(name, read, write, destructive));
        let flows = FlowsText { switch: file.flows, labels: file.labels, rules: file.flow_rules };
        let flows = flows.read(&reader)?;
        Ok(RuleFile {
            name: name.into(),
            rules,
            passes_secrets: file.secrets.map(|rule| rule == SecretRule::Allow),
            limits,
            defaults,
            effects: effects.collect(),
            trusted: trusted.collect(),
            flows,
        })
    }
}
