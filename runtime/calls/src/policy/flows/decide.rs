//! Decides by a policy's data-flow rules whether a tool call may receive its arguments, after finding where these come
//! from: by static analysis, source tracking, or the answers that the run has received.

use super::labels::{LabelSet, Labels};
use super::origins::{CallOrigins, Carried, Found};
use super::rules::{FlowRules, FlowSaid, Place, Sink, same_key};
use crate::policy::decide::Policy;
use crate::policy::effects::ToolEffect;
use crate::policy::rules::RuleFile;
use crate::policy::subject::Subject;
use crate::run::account::flows::AnsweredBy;
use crate::run::outcome::Verdict;
use crate::tools::{Annotations, CallTarget, UpstreamTool};
use ptc_compiler::flows::{FlowArgument, FlowCall, FlowCallKind, FlowPlan, FlowSource, SourceSet};
use serde_json::Value as Json;
use std::sync::Arc;

/// What may have come to a run so far, and the plan of its program.
#[derive(Debug, Default)]
pub(in crate::policy) struct Tainted {
    pub(super) plan: Option<Arc<FlowPlan>>,
    /// Answers of its calls.
    pub(super) answered: AnsweredBy,
    /// Answers of calls of its session.
    pub(super) session: AnsweredBy,
    /// Answers that the model has seen, which wrote the program.
    pub(super) shown: AnsweredBy,
}

impl Tainted {
    /// A run of a planned program that has got nothing yet.
    pub(in crate::policy) fn of_plan(plan: Arc<FlowPlan>) -> Tainted {
        Tainted { plan: Some(plan), ..Tainted::default() }
    }
}

/// A flow that a rule is about.
#[derive(Clone, Debug)]
pub(in crate::policy) struct FlowFinding {
    pub(in crate::policy) verdict: Verdict,
    /// The rule, source and sink, and what to do about it.
    pub(in crate::policy) text: String,
    /// Index of the file.
    pub(in crate::policy) file: usize,
    /// Index of the rule in its file, behind those of calls.
    pub(in crate::policy) rule: usize,
    pub(in crate::policy) before: bool,
}

/// The labels of a run, as one file gives them.
#[derive(Clone, Copy)]
struct Seen {
    session: LabelSet,
    shown: LabelSet,
    /// All that may be in a value of the run.
    all: LabelSet,
}

/// A tool that is called, as one file sees it.
#[derive(Clone, Copy)]
struct Callee<'s> {
    target: Option<(&'s str, &'s str)>,
    tool: &'s UpstreamTool,
    effect: ToolEffect,
    is_trusted: bool,
}

impl<'s> Callee<'s> {
    fn sink(self, place: Place<'s>) -> Sink<'s> {
        let Callee { target, tool, effect, is_trusted } = self;
        Sink { target, tool, effect, is_trusted, place }
    }
}

/// Levels of arguments that are looked at part by part.
const DEEPEST: usize = 32;

/// Most different parts that are looked at one by one.
const MOST_PARTS: usize = 4_096;

impl Policy {
    /// True when every key of the context is the user's own text, as all files see it.
    pub(crate) fn trusts_context(&self) -> bool {
        self.files.iter().filter_map(|file| file.flows.as_ref()).all(|flows| flows.labels.trusts_context())
    }

    /// True when a rule of a file counts whether a call succeeded as its data.
    pub(in crate::policy) fn counts_status(&self) -> bool {
        let rules = self.files.iter().filter_map(|file| file.flows.as_ref()).flat_map(|flows| &flows.rules);
        rules.into_iter().any(|rule| rule.status)
    }

    /// The strictest that is said of the flows into a call.
    pub(in crate::policy) fn flow_finding(&self, call: &Subject<'_>, run: &Tainted) -> Option<FlowFinding> {
        let target = call.target.label();
        let found = self.of_files(call.server, call.target, call.tool, |rules, callee| {
            let seen = seen(&rules.labels, run);
            let marked = || marked_flow(rules, callee, call, seen, run);
            let Some(plan) = run.plan.as_deref().filter(|plan| !plan.is_unknown) else { return marked() };
            // What a function of a prelude or a session calls by itself stands in no plan, and neither does what the
            // plan does not know to be a call of this tool.
            let is_here = |planned: &&FlowCall| {
                Some(planned.span) == call.place && may_be(planned, call.server, target)
            };
            let mut planned = plan.calls.iter().filter(is_here).peekable();
            if planned.peek().is_none() {
                return marked();
            }
            let planned: Vec<&FlowCall> = planned.collect();
            let made = parts_of(call).unwrap_or_default();
            let found = |origins: Option<&CallOrigins>| {
                let (now, parts) = (Some(Now { seen, origins }), Parts::Made(&made));
                let all = planned
                    .iter()
                    .filter_map(|call| planned_flow(rules, callee, plan, (call, parts), seen, now));
                all.reduce(stricter)
            };
            let by_plan = found(None)?;
            let Some(origins) = call.origins else { return Some(by_plan) };
            // A person has been asked about the flow in the words of the plan.
            let by_values = found(Some(origins))?;
            Some(if by_values.0.verdict == by_plan.0.verdict { by_plan } else { by_values })
        });
        found.filter(|finding| finding.verdict != Verdict::Allow)
    }

    /// The flow for which a program is refused before it runs. `find` looks a tool up.
    pub(in crate::policy) fn refused_flow(
        &self,
        run: &Tainted,
        find: &dyn Fn(&str, &str) -> Option<Arc<UpstreamTool>>,
    ) -> Option<FlowFinding> {
        let refuses = |file: &RuleFile| {
            file.flows.as_ref().is_some_and(|flows| flows.rules.iter().any(|rule| rule.before))
        };
        if !self.files.iter().any(refuses) {
            return None;
        }
        self.planned_findings(run, find)
            .into_iter()
            .map(|(_, finding)| finding)
            .find(|finding| finding.before)
    }

    /// True when a run needs labels on values: a rule is about a flow of its program, or calls stand in no plan. `find`
    /// looks a tool up.
    pub(in crate::policy) fn needs_values(
        &self,
        run: &Tainted,
        find: &dyn Fn(&str, &str) -> Option<Arc<UpstreamTool>>,
    ) -> bool {
        let is_unplanned = |plan: &FlowPlan| {
            plan.is_unknown || plan.calls.iter().any(|call| call.kind == FlowCallKind::Function)
        };
        run.plan.as_deref().is_none_or(is_unplanned)
            || !self.findings_of(run, find, Parts::Possible).is_empty()
    }

    /// What is said of each call of a plan, with its index.
    pub(in crate::policy) fn planned_findings(
        &self,
        run: &Tainted,
        find: &dyn Fn(&str, &str) -> Option<Arc<UpstreamTool>>,
    ) -> Vec<(usize, FlowFinding)> {
        self.findings_of(run, find, Parts::Planned)
    }

    fn findings_of(
        &self,
        run: &Tainted,
        find: &dyn Fn(&str, &str) -> Option<Arc<UpstreamTool>>,
        parts: Parts<'_>,
    ) -> Vec<(usize, FlowFinding)> {
        let Some(plan) = run.plan.as_deref() else { return Vec::new() };
        let mut findings = Vec::new();
        for (index, call) in plan.calls.iter().enumerate() {
            let named = call.server.as_deref().zip(call.tool.as_deref());
            let (server, name) = named.unwrap_or_default();
            let target = target(call.kind, name);
            let tool = find(server, name).unwrap_or_else(|| Arc::new(unknown(&target)));
            let found = self.of_files(server, &target, &tool, |rules, callee| {
                let callee = Callee { target: callee.target.filter(|_| named.is_some()), ..callee };
                planned_flow(rules, callee, plan, (call, parts), seen(&rules.labels, run), None)
            });
            findings.extend(
                found.filter(|finding| finding.verdict != Verdict::Allow).map(|finding| (index, finding)),
            );
        }
        findings
    }

    /// The strictest answer of the files.
    fn of_files<'s>(
        &self,
        server: &'s str,
        target: &'s CallTarget,
        tool: &'s UpstreamTool,
        say: impl Fn(&FlowRules, Callee<'s>) -> Option<(FlowSaid, String)>,
    ) -> Option<FlowFinding> {
        let plans = self.plans(server, target);
        let files = self.files.iter().zip(plans.iter()).enumerate();
        let found = files.filter_map(|(index, (file, plan))| {
            let rules = file.flows.as_ref()?;
            let callee = Callee {
                target: Some((server, target.label())),
                tool,
                effect: self.effect(server, target, tool),
                is_trusted: plan.is_trusted(),
            };
            let (said, text) = say(rules, callee)?;
            let FlowSaid { verdict, title: _, rule, before } = said;
            Some(FlowFinding { verdict, text, file: index, rule: file.rules.len() + rule, before })
        });
        found.reduce(|first, next| {
            let before = first.before || next.before;
            FlowFinding { before, ..if next.verdict > first.verdict { next } else { first } }
        })
    }
}

/// A tool that no list has: nothing is known of it.
fn unknown(target: &CallTarget) -> UpstreamTool {
    UpstreamTool { annotations: Annotations::default(), ..target.as_tool() }
}

/// The stricter of two flows into one call. That either is refused before the run holds for both.
fn stricter<T>(first: (FlowSaid, T), next: (FlowSaid, T)) -> (FlowSaid, T) {
    let before = first.0.before || next.0.before;
    let (said, with) = if next.0.verdict > first.0.verdict { next } else { first };
    (FlowSaid { before, ..said }, with)
}

/// The target of a planned call.
fn target(kind: FlowCallKind, name: &str) -> CallTarget {
    match kind {
        FlowCallKind::Resource => CallTarget::Resource("".into()),
        FlowCallKind::Prompt => CallTarget::Prompt("".into()),
        FlowCallKind::Tool | FlowCallKind::Granted | FlowCallKind::Function | FlowCallKind::List => {
            CallTarget::Tool(name.into())
        }
    }
}

/// True when a call of a program may be a call of this target.
fn may_be(call: &FlowCall, server: &str, target: &str) -> bool {
    let named = |name: &Option<Box<str>>, is: &str| name.as_deref().is_none_or(|name| name == is);
    match call.kind {
        FlowCallKind::Function => false,
        _ => named(&call.server, server) && named(&call.tool, target),
    }
}

fn seen(labels: &Labels, run: &Tainted) -> Seen {
    let (session, shown) = (labels.of_answers(&run.session), labels.of_answers(&run.shown));
    Seen { session, shown, all: labels.of_answers(&run.answered).union(session).union(shown) }
}

/// The parts of arguments that a plan knows as a whole, such as lists and answers.
#[derive(Clone, Copy)]
enum Parts<'p> {
    /// None: only what the plan knows.
    Planned,
    /// Any that there may be.
    Possible,
    /// Those of the call that is made.
    Made(&'p [Vec<Box<str>>]),
}

impl Parts<'_> {
    /// The paths of the parts of an argument, and its own.
    fn of(self, path: &[Box<str>]) -> Vec<Vec<Box<str>>> {
        let mut paths = match self {
            Parts::Planned => Vec::new(),
            Parts::Possible => vec![[path, &["".into()]].concat()],
            Parts::Made(made) => made.iter().filter(|part| is_part(part, path)).cloned().collect(),
        };
        paths.push(path.to_vec());
        paths
    }
}

/// The paths of the arguments of a call; `None`: they are not known.
fn parts_of(call: &Subject<'_>) -> Option<Vec<Vec<Box<str>>>> {
    let arguments: Json = serde_json::from_str(&call.named_arguments()).ok()?;
    let mut paths = Vec::new();
    list_paths(&arguments, &mut Vec::new(), &mut paths);
    paths.sort_unstable();
    paths.dedup();
    if paths.len() > MOST_PARTS {
        // An empty key is any.
        paths = vec![vec!["".into()]];
    }
    Some(paths)
}

/// True for a path that leads into what another one leads to.
fn is_part(path: &[Box<str>], whole: &[Box<str>]) -> bool {
    path.len() > whole.len()
        && whole.iter().zip(path).all(|(whole, key)| whole.is_empty() || same_key(whole, key))
}

/// What is known of a call that is made now.
#[derive(Clone, Copy)]
struct Now<'o> {
    /// Only what has been answered can be in its arguments.
    seen: Seen,
    /// Where its arguments come from.
    origins: Option<&'o CallOrigins>,
}

/// A label, and the source of a plan that has it.
type LabeledSource = (LabelSet, usize);

/// What a file says of the flows that the plan of a program has into a call.
fn planned_flow(
    rules: &FlowRules,
    callee: Callee<'_>,
    plan: &FlowPlan,
    (call, parts): (&FlowCall, Parts<'_>),
    seen: Seen,
    now: Option<Now<'_>>,
) -> Option<(FlowSaid, String)> {
    let labels: Vec<LabelSet> = (0..plan.sources.len())
        .map(|source| rules.labels.of_source(plan, source, seen.session, seen.shown))
        .collect();
    let parts = call.arguments.iter().map(|argument| (parts.of(&argument.path), argument.sources));
    let parts: Vec<(Vec<Vec<Box<str>>>, SourceSet)> = parts.collect();
    let paths: Vec<Vec<Box<str>>> = parts.iter().flat_map(|(paths, _)| paths).cloned().collect();
    let control = Place::Control { arguments: Some(&paths) };
    let places =
        parts.iter().flat_map(|(paths, sources)| paths.iter().map(|path| (Place::Argument(path), *sources)));
    let mut strictest: Option<(FlowSaid, (Place<'_>, LabeledSource))> = None;
    for (place, sources) in places.chain([(control, call.control)]) {
        let found = worst_source(rules, callee.sink(place), plan, (sources, &labels), now);
        let Some((said, of)) = found else { continue };
        let next = (said, (place, of));
        strictest = Some(strictest.map_or(next.clone(), |first| stricter(first, next)));
    }
    let (said, (place, of)) = strictest?;
    let text = planned_text(rules, &said, plan, call, place, of);
    Some((said, text))
}

/// The source that a rule is strictest about.
fn worst_source(
    rules: &FlowRules,
    sink: Sink<'_>,
    plan: &FlowPlan,
    (sources, labels): (SourceSet, &[LabelSet]),
    now: Option<Now<'_>>,
) -> Option<(FlowSaid, LabeledSource)> {
    let found = now.and_then(|now| now.origins).map(|origins| origins_of(origins, sink.place));
    let mut worst: Option<(FlowSaid, LabeledSource)> = None;
    for source in sources.iter() {
        let kind = plan.sources.get(source);
        let is_status = matches!(kind, Some(FlowSource::Status(_)));
        let is_answer = is_answer(rules, plan, kind);
        let of_source = labels.get(source).copied().unwrap_or(LabelSet::ALL);
        for label in of_source.each(rules.labels.all.len()) {
            if is_answer && now.is_some_and(|now| !now.seen.all.has(label)) {
                continue;
            }
            let mut is_status = is_status;
            // What was shown may steer the text of the program, which no value tells.
            if let (Some(found), Some(now)) = (&found, now)
                && !now.seen.shown.has(label)
            {
                match found.carries(&rules.labels, now.seen.all, label, Some((plan, kind))) {
                    Carried::No => continue,
                    Carried::Status => is_status = true,
                    Carried::Data => {}
                }
            }
            let Some(said) = rules.say(label, is_status, &sink) else { continue };
            // Of several sources, an answer explains most.
            let next = (said, (label, source));
            worst = Some(worst.map_or(next.clone(), |first| stricter(first, next)));
        }
    }
    worst
}

/// True when a source has nothing but what servers have answered. Names and functions of a session may have keys of the
/// context too.
fn is_answer(rules: &FlowRules, plan: &FlowPlan, source: Option<&FlowSource>) -> bool {
    match source {
        Some(FlowSource::Context(_) | FlowSource::Catalog) => false,
        Some(FlowSource::Result(call) | FlowSource::Status(call)) => {
            rules.labels.trusts_context()
                || plan.calls.get(*call).is_some_and(|call| call.kind != FlowCallKind::Function)
        }
        _ => rules.labels.trusts_context(),
    }
}

/// The origins of a part of a call.
fn origins_of<'o>(origins: &'o CallOrigins, place: Place<'_>) -> Found<'o> {
    match place {
        Place::Argument(path) => origins.argument(path),
        Place::Control { .. } => origins.control(),
    }
}

/// The rule, where the data comes from and goes to, and the shortest change that avoids it.
fn planned_text(
    rules: &FlowRules,
    said: &FlowSaid,
    plan: &FlowPlan,
    call: &FlowCall,
    place: Place<'_>,
    (label, source): LabeledSource,
) -> String {
    let (from, label) = (plan.source_name(source), rules.labels.name(label));
    let (name, line) = (call.name(), call.line);
    match place {
        Place::Argument(path) => {
            let pointer = FlowArgument::shown_path(path);
            let is_name = |key: &&str| {
                !key.is_empty()
                    && key.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
            };
            let key = path.last().map(|key| &**key).filter(is_name).unwrap_or("value");
            format!(
                "{}: {from} ({label}) may reach {pointer} of {name} (line {line}). Write the value of {pointer} in the program, or pass it as data/{key}.",
                said.title
            )
        }
        Place::Control { .. } => format!(
            "{}: {from} ({label}) may decide whether {name} (line {line}) is called. Call it without a branch on that, or branch on :ok.",
            said.title
        ),
    }
}

/// What a file says of a call that stands in no plan: by where its arguments come from, else by what was answered before.
fn marked_flow(
    rules: &FlowRules,
    callee: Callee<'_>,
    call: &Subject<'_>,
    seen: Seen,
    run: &Tainted,
) -> Option<(FlowSaid, String)> {
    let labels = &rules.labels;
    let paths = parts_of(call);
    let control = Place::Control { arguments: paths.as_deref() };
    let parts = paths.iter().flatten().map(|path| Place::Argument(path));
    let mut strictest: Option<(FlowSaid, LabelSet, Option<String>)> = None;
    // Which keys of the context may be in an argument is not known.
    let all = if labels.trusts_context() { seen.all } else { LabelSet::ALL };
    for place in std::iter::once(control).chain(parts) {
        let found = call.origins.map(|origins| origins_of(origins, place));
        for label in LabelSet::ALL.each(labels.all.len()) {
            let carried = match &found {
                Some(_) if seen.shown.has(label) => Carried::Data,
                Some(found) => found.carries(labels, all, label, None),
                None if all.has(label) => Carried::Data,
                None => Carried::No,
            };
            if carried == Carried::No {
                continue;
            }
            let Some(said) = rules.say(label, carried == Carried::Status, &callee.sink(place)) else {
                continue;
            };
            if strictest.as_ref().is_none_or(|(strictest, ..)| said.verdict > strictest.verdict) {
                let from = found.as_ref().and_then(|found| found.name(labels, all, label));
                strictest = Some((said, label, from));
            }
        }
    }
    let strictest = strictest.map(|(said, label, from)| (said, (label, from)));
    let missing = missing_flow(rules, callee, call.origins, paths.as_deref(), (seen, all));
    let (said, (label, from)) = strictest.into_iter().chain(missing).reduce(stricter)?;
    let (server, target) = callee.target.unwrap_or_default();
    let (title, name) = (&said.title, labels.name(label));
    let text = match from {
        Some(from) => format!(
            "{title}: {from} ({name}) is in the arguments of this call of {server}/{target}, or decides about it. Make the call without that."
        ),
        None => format!(
            "{title}: {} ({name}) was read before this call of {server}/{target}, and its answer may be in the arguments. Make the call before that one, or in a program whose flows are planned (ptc check --flows).",
            read_before(labels, run, label)
        ),
    };
    Some((said, text))
}

/// What a file says of arguments that a call does not have: that one is missing depends on what decided about the map
/// that it would stand in. What decided that the call is made counts for the arguments that it has.
fn missing_flow(
    rules: &FlowRules,
    callee: Callee<'_>,
    origins: Option<&CallOrigins>,
    paths: Option<&[Vec<Box<str>>]>,
    (seen, all): (Seen, LabelSet),
) -> Option<(FlowSaid, (LabelSet, Option<String>))> {
    let (origins, paths, (server, target)) = (origins?, paths?, callee.target?);
    let labels = &rules.labels;
    let mut strictest = None;
    for (index, rule, path) in rules.missing_arguments(server, target, paths) {
        let found = origins.missing(&path);
        for label in LabelSet::ALL.each(labels.all.len()).filter(|label| rule.from.has(*label)) {
            if seen.shown.has(label) || found.carries(labels, all, label, None) != Carried::Data {
                continue;
            }
            let next = (rule.said(index), (label, found.name(labels, all, label)));
            strictest = Some(strictest.map_or(next.clone(), |first| stricter(first, next)));
        }
    }
    strictest
}

/// The first answer with a label, as it is shown.
fn read_before(labels: &Labels, run: &Tainted, label: LabelSet) -> String {
    let mut answers = run.answered.iter().chain(&run.session).chain(&run.shown);
    match answers.find(|(server, target)| labels.of_answer(server, target).has(label)) {
        None => "the context".to_owned(),
        Some((server, target)) if server.is_empty() => target.to_string(),
        Some((server, target)) => format!("{server}/{target}"),
    }
}

/// The paths of all parts of some arguments. Below the deepest level that is looked at, a part has an empty key: any.
fn list_paths(value: &Json, path: &mut Vec<Box<str>>, out: &mut Vec<Vec<Box<str>>>) {
    match value {
        Json::Object(members) if members.is_empty() && path.is_empty() => {}
        Json::Object(members) if !members.is_empty() && path.len() >= DEEPEST => {
            out.push([&path[..], &["".into()]].concat());
        }
        Json::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                path.push(name.as_str().into());
                list_paths(value, path, out);
                path.pop();
            }
        }
        Json::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for item in items {
                list_paths(item, path, out);
            }
        }
        _ => out.push(path.clone()),
    }
}
