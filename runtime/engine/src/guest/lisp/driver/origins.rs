//! Finds which servers' data the arguments of a program's tool calls depend on, for policy rules about data flows. For
//! that, the answer of each call is labeled with its source.
//!
//! A run has labels on values only if a rule is about a flow of its program, or if calls of it stand in no plan.

use super::{Execution, HostCall};
use crate::guest::lisp::compile::tools_of;
use crate::guest::lisp::host_call;
use ptc_calls::policy::{CallOrigins, Origin, STATUS_PARTS};
use ptc_calls::tools::HOST;
use ptc_compiler::flows::{FlowPlan, FlowSource, SourceSet};
use ptc_vm::builtins::HostFunction;
use ptc_vm::{AnswerSources, Context, DefinedFrom, PartSources, Sources, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A call of a server: what is called, and where its arguments stand.
struct Called {
    server: String,
    target: String,
    function: HostFunction,
    layout: Layout,
}

/// Where the arguments of a tool stand among those of the host call.
enum Layout {
    /// Under `:args` of the map.
    Map,
    /// At this place; the values at the others choose the tool.
    At(usize),
    /// All of them.
    All,
    /// All from this place on.
    From(usize),
}

fn layout(cx: &Context, function: HostFunction, arguments: &[Value]) -> Layout {
    match (function, arguments) {
        (HostFunction::Tool, [_, _]) => Layout::At(1),
        (HostFunction::Tool, _) => Layout::From(1),
        (HostFunction::ToolCall | HostFunction::ToolCallValue, [Value::Map(_)]) => Layout::Map,
        (HostFunction::ToolCall | HostFunction::ToolCallValue, [Value::Symbol(_), _]) => Layout::At(1),
        (HostFunction::ToolCall | HostFunction::ToolCallValue, pairs) => {
            let mut keys = pairs.iter().step_by(2);
            let found = keys.position(|key| cx.name(key) == Some("args"));
            found.map_or(Layout::All, |pair| Layout::At(pair * 2 + 1))
        }
        _ => Layout::All,
    }
}

impl Layout {
    /// The arguments, and what chooses the tool.
    fn split(&self, all: &[PartSources]) -> (PartSources, Sources) {
        let deep = |parts: &mut dyn Iterator<Item = &PartSources>| {
            parts.fold(Sources::NONE, |all, part| all.union(part.deep))
        };
        match (self, all) {
            (Layout::Map, [map]) => match map.known("args") {
                Some(arguments) => {
                    let choice = ["server", "tool", "on_large"].into_iter().filter_map(|key| map.known(key));
                    let choice = deep(&mut choice.into_iter()).union(map.own);
                    (arguments.clone().marked(map.own), choice)
                }
                None => (PartSources::flat(map.deep), map.deep),
            },
            (Layout::At(at), all) if all.len() > *at => {
                let others = all.iter().enumerate().filter(|(index, _)| index != at).map(|(_, part)| part);
                (all[*at].clone(), deep(&mut others.into_iter()))
            }
            (Layout::From(at), all) if all.len() > *at => {
                (PartSources::flat(deep(&mut all[*at..].iter())), deep(&mut all[..*at].iter()))
            }
            _ => (PartSources::flat(deep(&mut all.iter())), deep(&mut all.iter())),
        }
    }
}

impl Execution {
    /// Tracks values in the run that begins, if it needs that.
    pub(super) fn track(&mut self) {
        let catalog = self.lisp.broker.catalog().snapshot();
        let policy = self.lisp.broker.policy();
        if let Some(marks_context) = policy.tracks(&self.account, &tools_of(&catalog)) {
            self.isolate.track(marks_context);
        }
    }

    fn call_layout(&mut self, call: HostCall) -> Option<Called> {
        let broker = &self.lisp.broker;
        let look = |cx: &mut Context, function, arguments: &[Value]| {
            let (server, target) = match function {
                HostFunction::Tool => {
                    (HOST.to_owned(), arguments.first().and_then(|name| cx.name(name))?.to_owned())
                }
                _ => host_call::called_target(cx, broker, function, arguments)?,
            };
            Some(Called { server, target, function, layout: layout(cx, function, arguments) })
        };
        self.isolate.call(call, look).flatten()
    }

    /// Says what the answer of a call will carry.
    pub(super) fn say_origin(&mut self, call: HostCall) {
        if !self.isolate.is_tracked() {
            return;
        }
        let Some(function) = self.isolate.call(call, |_, function, _| function) else { return };
        match function {
            HostFunction::Now => self.isolate.answer_from(call, AnswerSources::Arguments),
            HostFunction::Budget | HostFunction::Look(_) => {
                self.isolate.answer_from(call, AnswerSources::Answered);
            }
            HostFunction::Servers | HostFunction::Discover(_) => {
                self.isolate.answer_from(call, AnswerSources::Anything);
            }
            HostFunction::ToolCall
            | HostFunction::ToolCallValue
            | HostFunction::Tool
            | HostFunction::Ask(_) => {
                // A call that is no call faults.
                let Some(Called { server, target, function, layout }) = self.call_layout(call) else {
                    return;
                };
                let [data, status] = Origin::names(&server, &target);
                let is_tagged = matches!(function, HostFunction::ToolCall | HostFunction::Ask(_));
                let parts = is_tagged.then_some(STATUS_PARTS);
                // Before its answer is said: what the server is given counts from now on.
                let sources = self.isolate.call_sources(call, &server);
                let choice = sources.map(|sources| layout.split(&sources.arguments).1);
                self.isolate.call_chosen_by(choice.unwrap_or(Sources::NONE));
                let from = AnswerSources::Server { server: &server, data: &data, status: &status, parts };
                self.isolate.answer_from(call, from);
            }
        }
    }

    /// Where the arguments of a call come from, if the run tracks that.
    pub(super) fn origins(&mut self, call: HostCall) -> Option<Arc<CallOrigins>> {
        if !self.isolate.is_tracked() {
            return None;
        }
        let Called { server, layout, .. } = self.call_layout(call)?;
        let sources = self.isolate.call_sources(call, &server)?;
        let (arguments, choice) = layout.split(&sources.arguments);
        let control = sources.control.union(choice);
        let names = self.isolate.source_texts(control.union(arguments.deep));
        Some(Arc::new(CallOrigins::new(names, control, arguments)))
    }

    /// Says where the names come from that a run without labels on values has defined.
    pub(super) fn say_definitions(&mut self) {
        if self.isolate.is_tracked() || !self.lisp.broker.policy().plans_flows() {
            return;
        }
        let flows = self.account.flows();
        let plan = flows.plan().filter(|plan| !plan.is_unknown).cloned();
        let answered = flows.answered();
        let all: Vec<String> =
            answered.iter().flat_map(|(server, target)| Origin::names(server, target)).collect();
        let of_name = |name: &str| {
            let Some(plan) = plan.as_ref() else { return DefinedFrom::Anything };
            match plan.definitions.iter().find(|(defined, _)| **defined == *name) {
                None => DefinedFrom::Nothing,
                Some((_, sources)) => {
                    defined_from(plan, *sources, &answered).unwrap_or(DefinedFrom::Anything)
                }
            }
        };
        self.isolate.definitions_from(&all, of_name);
    }
}

/// What the sources of a definition are; `None`: the plan does not tell.
fn defined_from(
    plan: &FlowPlan,
    sources: SourceSet,
    answered: &BTreeSet<(Arc<str>, Arc<str>)>,
) -> Option<DefinedFrom> {
    let (mut named, mut globals) = (Vec::new(), Vec::new());
    for source in sources.iter() {
        match plan.sources.get(source)? {
            FlowSource::Literal | FlowSource::Clock | FlowSource::Prelude(_) => {}
            FlowSource::Context(Some(key)) => named.push(format!("data/{key}")),
            FlowSource::Session(name) => globals.push(name.clone()),
            FlowSource::Result(index) | FlowSource::Status(index) => {
                let call = plan.calls.get(*index)?;
                let is = |name: &Option<Box<str>>, is: &str| name.as_deref().is_none_or(|name| name == is);
                let of_call = answered
                    .iter()
                    .filter(|(server, target)| is(&call.server, server) && is(&call.tool, target));
                named.extend(of_call.flat_map(|(server, target)| Origin::names(server, target)));
            }
            FlowSource::Anything | FlowSource::Catalog | FlowSource::Context(None) => return None,
        }
    }
    Some(DefinedFrom::Sources { named, globals })
}
