//! Parses the part of a TOML policy file that says which data a program may pass to which tools (data-flow rules). The
//! table `[labels]` classifies tools and inputs under names such as `untrusted`, each `[[flow]]` table is a rule about
//! one label, and the key `flows` turns predefined rules on or off.

use super::labels::{Label, LabelSet, Labels};
use super::rules::{FlowRule, FlowRules};
use crate::policy::condition::Pointer;
use crate::policy::file::{PolicyError, Reader};
use crate::policy::pattern::RulePattern;
use crate::policy::rules::Position;
use crate::run::outcome::Verdict;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// The part of a file that is about flows.
#[derive(Default)]
pub(in crate::policy) struct FlowsText {
    pub(in crate::policy) switch: Option<FlowSwitch>,
    pub(in crate::policy) labels: BTreeMap<String, Spanned<Vec<Spanned<String>>>>,
    pub(in crate::policy) rules: Vec<Spanned<FlowText>>,
}

/// Rules that need not be written.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::policy) enum FlowSwitch {
    /// The usual ones.
    Standard,
    /// None.
    Off,
}

/// `[[flow]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::policy) struct FlowText {
    from: Spanned<String>,
    to: Vec<Spanned<String>>,
    #[serde(default)]
    args: Vec<Spanned<String>>,
    #[serde(rename = "do")]
    verdict: Verdict,
    #[serde(default)]
    before: Option<Spanned<bool>>,
    #[serde(default)]
    status: bool,
    reason: Option<String>,
}

/// Labels that are there without being named.
const BUILT_IN: [&str; 2] = ["private", "untrusted"];

impl FlowsText {
    /// The rules, if the file has any.
    pub(in crate::policy) fn read(self, reader: &Reader<'_>) -> Result<Option<FlowRules>, PolicyError> {
        let FlowsText { switch, labels, rules } = self;
        if switch.is_none() && labels.is_empty() && rules.is_empty() {
            return Ok(None);
        }
        let labels = read_labels(reader, labels)?;
        let is_standard = switch == Some(FlowSwitch::Standard);
        let rules = rules.into_iter().map(|rule| read_rule(reader, rule, &labels));
        let mut rules = rules.collect::<Result<Vec<FlowRule>, PolicyError>>()?;
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.verdict));
        let standard = is_standard.then(|| format!("{}: flows = \"standard\"", reader.name).into());
        Ok(Some(FlowRules { labels, rules, standard }))
    }
}

fn read_labels(
    reader: &Reader<'_>,
    written: BTreeMap<String, Spanned<Vec<Spanned<String>>>>,
) -> Result<Labels, PolicyError> {
    let mut labels = Labels::default();
    let patterns = |names: &[Spanned<String>]| -> Vec<(RulePattern, Position)> {
        let pattern = |name: &Spanned<String>| {
            (RulePattern::new(name.get_ref().trim()), reader.position(name.span().start))
        };
        names.iter().map(pattern).collect()
    };
    for name in BUILT_IN {
        labels.all.push(Label { name: name.into(), sources: Vec::new() });
    }
    for (name, names) in written {
        let at = names.span().start;
        let names = names.into_inner();
        if names.iter().any(|name| name.get_ref().trim().is_empty()) {
            return Err(reader.error(at, "a name is empty"));
        }
        match &*name {
            "open" => labels.open = patterns(&names),
            "closed" => labels.closed = patterns(&names),
            "user" => {
                let keys = names.iter().map(|key| match key.get_ref().strip_prefix("data/") {
                    Some(key) => Ok(key.to_owned()),
                    None => {
                        let message = "user names keys of the context: user = [\"data/*\"]";
                        Err(reader.error(key.span().start, message))
                    }
                });
                labels.user = keys.collect::<Result<_, _>>()?;
            }
            _ => match labels.all.iter_mut().find(|label| *label.name == *name) {
                Some(label) => label.sources = patterns(&names),
                None => labels.all.push(Label { name: name.into(), sources: patterns(&names) }),
            },
        }
        if labels.all.len() > LabelSet::MOST {
            return Err(reader.error(at, format!("there are more than {} labels", LabelSet::MOST)));
        }
    }
    Ok(labels)
}

fn read_rule(reader: &Reader<'_>, rule: Spanned<FlowText>, labels: &Labels) -> Result<FlowRule, PolicyError> {
    let begin = rule.span().start;
    let FlowText { from, to, args, verdict, before, status, reason } = rule.into_inner();
    let Some(label) = labels.all.iter().position(|label| *label.name == **from.get_ref()) else {
        let names: Vec<&str> = labels.all.iter().map(|label| &*label.name).collect();
        let message = format!("there is no label {:?}; [labels] has {}", from.get_ref(), names.join(", "));
        return Err(reader.error(from.span().start, message));
    };
    if let Some(before) = before.as_ref().filter(|_| verdict != Verdict::Deny) {
        return Err(
            reader.error(before.span().start, "only a rule that denies refuses programs before they run")
        );
    }
    let names: Vec<&str> = to.iter().map(|tool| &**tool.get_ref()).collect();
    let mut title = format!(
        "{}:{}: {} {} to {}",
        reader.name,
        reader.position(begin).0,
        verdict.name(),
        from.get_ref(),
        names.join(", ")
    );
    if let Some(reason) = &reason {
        title.push_str(&format!(" ({reason})"));
    }
    let pointers = args.iter().map(|pointer| {
        let at = pointer.span().start;
        let parsed = Pointer::parse(pointer.get_ref()).map_err(|why| reader.error(at, why))?;
        Ok((parsed, reader.position(at)))
    });
    Ok(FlowRule {
        from: LabelSet::only(label),
        to: reader.tools(begin, &to)?,
        args: pointers.collect::<Result<_, PolicyError>>()?,
        verdict,
        before: before.is_some_and(Spanned::into_inner),
        status,
        title: title.into(),
    })
}
