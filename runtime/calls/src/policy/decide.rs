//! Decides by one or more policy files what happens to a tool call: whether it is allowed, denied or needs a person's
//! approval, and which call limits it counts toward.

use super::approvals::AskRule;
use super::condition::Arguments;
use super::effects::ToolEffect;
use super::file::PolicyError;
use super::flows::FlowRules;
use super::limits::{CountedSession, LimitUse};
use super::rules::{Defaults, FilePlan, RuleFile, Said};
use super::subject::{Subject, declared};
use crate::run::client::asker::CallAsker;
use crate::run::outcome::{PolicyRuling, Verdict};
use crate::tools::{CallTarget, UpstreamTool};
use ptc_base::files;
use ptc_base::sync::RwLocked;
use ring::digest::{Context, SHA256};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

/// Targets whose rules are remembered. The rules of further ones are looked up for each call.
const MOST_PLANS: usize = 10_000;

/// The files of a policy.
#[derive(Debug)]
pub struct Policy {
    pub(super) files: Vec<RuleFile>,
    standard: Defaults,
    /// A digest of the texts.
    pub(super) version: u64,
    /// It may ask about some call.
    pub(super) may_ask: bool,
    /// A file has rules about flows.
    pub(super) has_flows: bool,
    /// The rules of each target that was called, by server and label.
    plans: RwLock<HashMap<Arc<str>, TargetPlans>>,
}

/// The rules of the targets of one server.
type TargetPlans = HashMap<TargetKey, Arc<Vec<FilePlan>>>;

/// A target: its label, and whether it is a tool.
type TargetKey = (bool, Arc<str>);

impl Policy {
    /// Reads files.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub fn load(paths: &[PathBuf]) -> Result<Policy, PolicyError> {
        let read = |path: &PathBuf| {
            let name = path.display().to_string();
            let text = files::read_text(path).map_err(|error| PolicyError {
                file: name.clone(),
                position: None,
                message: format!("cannot be read: {error}"),
            })?;
            Ok((name, text))
        };
        let texts = paths.iter().map(read).collect::<Result<Vec<_>, PolicyError>>()?;
        Policy::parse(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())))
    }

    /// Reads the texts of files, with their names.
    ///
    /// # Errors
    /// The first one that cannot be used.
    pub fn parse<'t>(files: impl IntoIterator<Item = (&'t str, &'t str)>) -> Result<Policy, PolicyError> {
        let mut texts = Context::new(&SHA256);
        let files = files.into_iter().map(|(name, text)| {
            // The length keeps files apart.
            texts.update(format!("{}\n{text}", text.len()).as_bytes());
            let short = Path::new(name).file_name().and_then(|name| name.to_str()).unwrap_or(name);
            RuleFile::parse(short, text).map_err(|error| PolicyError { file: name.to_owned(), ..error })
        });
        let (files, standard) = (files.collect::<Result<Vec<_>, _>>()?, Defaults::standard());
        let mut version = [0; 8];
        version.copy_from_slice(&texts.finish().as_ref()[..8]);
        let version = u64::from_be_bytes(version);
        let may_ask = may_ask(&files, &standard);
        let has_flows = files.iter().any(|file| file.flows.is_some());
        Ok(Policy { files, standard, version, may_ask, has_flows, plans: RwLock::default() })
    }

    /// The first file that says nothing any more: it may have been cut, and would allow more than it did.
    #[doc(hidden)]
    pub fn emptied_since(&self, before: &Policy) -> Option<PolicyError> {
        // The files of a process stay in their order.
        let mut files = self.files.iter().zip(&before.files);
        let (file, _) = files.find(|(now, old)| now.is_empty() && !old.is_empty())?;
        let message = "it is empty now; the policy before stays".to_owned();
        Some(PolicyError { file: file.name.to_string(), position: None, message })
    }

    /// The verdict about a call, and the rule that decided.
    #[doc(hidden)]
    pub fn ruling(&self, call: &Subject<'_>) -> PolicyRuling {
        let plans = self.plans(call.server, call.target);
        self.decide(call, &plans, &call.read(&call.named_arguments())).0
    }

    /// [`Policy::ruling`], and what an answer of a person counts for. The plans are those of the target, the arguments
    /// those of [`Subject::named_arguments`].
    pub(super) fn decide(
        &self,
        call: &Subject<'_>,
        plans: &[FilePlan],
        arguments: &Arguments<'_>,
    ) -> (PolicyRuling, AskRule) {
        let (file, said) = self.said(plans, call, arguments);
        let asks = AskRule { remember: said.remember, file, rule: said.rule };
        (PolicyRuling::new(said.verdict, said.title.clone()), asks)
    }

    /// What a call uses of limits. `session` is its session, or its run.
    ///
    /// # Errors
    /// The limit that the call cannot be counted in, and why.
    pub(super) fn limit_uses(
        &self,
        asker: &CallAsker<'_>,
        plans: &[FilePlan],
        arguments: &Arguments<'_>,
        session: impl FnOnce() -> CountedSession,
    ) -> Result<Vec<LimitUse>, String> {
        let mut limits = self.files.iter().zip(plans).flat_map(|(file, plan)| file.limits(plan)).peekable();
        if limits.peek().is_none() {
            return Ok(Vec::new());
        }
        let session = session();
        let uses = limits.map(|limit| LimitUse::new(limit, arguments, asker, &session));
        Ok(LimitUse::merged(uses.collect::<Result<_, _>>()?))
    }

    /// The verdicts that calls of a target may get, depending on their arguments, the strictest first. One: the
    /// arguments do not matter.
    #[doc(hidden)]
    pub fn possible_rulings(
        &self,
        server: &str,
        target: &CallTarget,
        tool: &UpstreamTool,
        asker: CallAsker<'_>,
    ) -> Vec<PolicyRuling> {
        let plans = self.plans(server, target);
        let files = self.files.iter().zip(plans.iter());
        let said = files.map(|(file, plan)| file.may_say(plan, &asker, declared(server, target, tool)));
        let said: Vec<Vec<Said<'_>>> = said.filter(|said| !said.is_empty()).collect();
        // Each file says at least the last of its own.
        let least = said.iter().filter_map(|said| said.last()).map(|said| said.verdict).max();
        let mut said: Vec<Said<'_>> = match least {
            None => vec![self.standard.ruling(self.effect(server, target, tool))],
            Some(least) => said.into_iter().flatten().filter(|said| said.verdict >= least).collect(),
        };
        said.sort_by_key(|said| Reverse(said.verdict));
        said.into_iter().map(|said| PolicyRuling::new(said.verdict, said.title.clone())).collect()
    }

    /// A server may be sent the secrets of another one: some file says so, and none forbids it.
    pub(super) fn passes_secrets(&self) -> bool {
        let mut said = self.files.iter().filter_map(|file| file.passes_secrets).peekable();
        said.peek().is_some() && said.all(|passes| passes)
    }

    /// The names of its files.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| &*file.name)
    }

    /// How many rules it has.
    pub fn rules(&self) -> usize {
        self.files.iter().map(|file| file.rules.len()).sum()
    }

    /// The effect of a tool, as the strictest file sees it.
    #[doc(hidden)]
    pub fn effect(&self, server: &str, target: &CallTarget, tool: &UpstreamTool) -> ToolEffect {
        let plans = self.plans(server, target);
        let effects = self.files.iter().zip(plans.iter());
        let effects = effects.map(|(file, plan)| file.effect(plan, declared(server, target, tool)));
        effects.max().unwrap_or(ToolEffect::Destructive)
    }

    /// True if the annotations of this server count: every file says so.
    pub fn trusts(&self, server: &str) -> bool {
        !self.files.is_empty() && self.files.iter().all(|file| file.trusts(server))
    }

    /// What decides, with the index of its file.
    fn said<'p>(
        &'p self,
        plans: &[FilePlan],
        call: &Subject<'_>,
        arguments: &Arguments<'_>,
    ) -> (usize, Said<'p>) {
        let Subject { server, target, tool, arguments: _, place: _, origins: _, asker } = *call;
        let files = self.files.iter().zip(plans).enumerate();
        let said = files.filter_map(|(index, (file, plan))| {
            Some((index, file.say(plan, arguments, &asker, declared(server, target, tool))?))
        });
        // The strictest; of these the one with the narrowest answer; of these the first.
        said.min_by_key(|(_, said)| (Reverse(said.verdict), said.remember))
            .unwrap_or_else(|| (0, self.standard.ruling(self.effect(server, target, tool))))
    }

    /// The rules that name a target, file by file.
    pub(super) fn plans(&self, server: &str, target: &CallTarget) -> Arc<Vec<FilePlan>> {
        let key = (matches!(target, CallTarget::Tool(_)), target.shared_label());
        if let Some(plans) = self.plans.read_locked().get(server).and_then(|targets| targets.get(&key)) {
            return plans.clone();
        }
        let plans = Arc::new(self.files.iter().map(|file| file.plan(server, target)).collect::<Vec<_>>());
        let mut known = self.plans.write_locked();
        if known.values().map(HashMap::len).sum::<usize>() < MOST_PLANS {
            known.entry(server.into()).or_default().insert(key, plans.clone());
        }
        plans
    }
}

/// True if these files may ask about some call.
fn may_ask(files: &[RuleFile], standard: &Defaults) -> bool {
    let mut rules = files.iter().flat_map(|file| &file.rules);
    let mut defaults = files.iter().filter_map(|file| file.defaults.as_ref()).peekable();
    // A file with defaults always says something.
    let is_silent = defaults.peek().is_none();
    let mut flows = files.iter().filter_map(|file| file.flows.as_ref());
    rules.any(|rule| rule.verdict == Verdict::Ask)
        || flows.any(FlowRules::may_ask)
        || defaults.any(Defaults::may_ask)
        || (is_silent && standard.may_ask())
}

#[cfg(test)]
mod tests;
