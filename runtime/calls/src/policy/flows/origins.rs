//! Finds which labels of a policy, such as `private`, an argument of a tool call carries, from the call results and
//! inputs that the argument depends on.

use super::labels::{LabelSet, Labels, UNKNOWN_SOURCE};
use crate::tools::glob;
use ptc_compiler::flows::{FlowCallKind, FlowPlan, FlowSource};
use ptc_vm::{PartSources, SourceText, Sources};
use std::sync::Arc;

/// Where data comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The data of an answer.
    Data(Arc<str>, Arc<str>),
    /// Whether a call succeeded, why not, and the kind of its value.
    Status(Arc<str>, Arc<str>),
    /// A key of the context.
    Context(Arc<str>),
    /// Any answer so far.
    Answered,
    /// Anything.
    Anything,
}

/// Separates the parts of a name. No name of a server has it.
const SEPARATOR: char = '\0';

/// The keys of a result that say how the call went.
pub const STATUS_PARTS: &[&str] = &["ok", "reason", "value_kind"];

impl Origin {
    /// The names of the data and of the status of an answer, for the VM.
    pub fn names(server: &str, target: &str) -> [String; 2] {
        ["data", "status"].map(|kind| format!("{kind}{SEPARATOR}{server}{SEPARATOR}{target}"))
    }

    fn of(text: SourceText) -> Origin {
        let SourceText::Named(name) = text else {
            return if text == SourceText::Answered { Origin::Answered } else { Origin::Anything };
        };
        let mut parts = name.splitn(3, SEPARATOR);
        match (parts.next(), parts.next(), parts.next()) {
            (Some("data"), Some(server), Some(target)) => Origin::Data(server.into(), target.into()),
            (Some("status"), Some(server), Some(target)) => Origin::Status(server.into(), target.into()),
            _ => name.strip_prefix("data/").map_or(Origin::Anything, |key| Origin::Context(key.into())),
        }
    }

    /// Its labels. `answered`: of everything that was answered.
    fn labels(&self, labels: &Labels, answered: LabelSet) -> LabelSet {
        match self {
            Origin::Data(server, target) | Origin::Status(server, target) => labels.of_answer(server, target),
            Origin::Context(key) if labels.user.iter().any(|pattern| glob(pattern, key)) => {
                LabelSet::default()
            }
            Origin::Answered => answered,
            Origin::Context(_) | Origin::Anything => LabelSet::ALL,
        }
    }

    /// True when a source of a plan may stand for it.
    fn may_be(&self, plan: &FlowPlan, source: Option<&FlowSource>) -> bool {
        let (server, target) = match self {
            Origin::Answered | Origin::Anything => return true,
            Origin::Context(key) => {
                return match source {
                    Some(FlowSource::Context(Some(named))) => same_name(named, key),
                    // A function of the session may read it.
                    Some(FlowSource::Result(index) | FlowSource::Status(index)) => {
                        plan.calls.get(*index).is_none_or(|call| call.kind == FlowCallKind::Function)
                    }
                    Some(FlowSource::Catalog) => false,
                    _ => true,
                };
            }
            Origin::Data(server, target) | Origin::Status(server, target) => (server, target),
        };
        let is = |name: &Option<Box<str>>, is: &str| name.as_deref().is_none_or(|name| name == is);
        match source {
            Some(FlowSource::Result(index) | FlowSource::Status(index)) => {
                plan.calls.get(*index).is_none_or(|call| is(&call.server, server) && is(&call.tool, target))
            }
            Some(FlowSource::Catalog) => (&**server, &**target) == UNKNOWN_SOURCE,
            Some(FlowSource::Context(_)) => false,
            _ => true,
        }
    }
}

/// Programs may read a key by another spelling.
fn same_name(a: &str, b: &str) -> bool {
    a.replace('-', "_") == b.replace('-', "_")
}

/// The origins of the arguments of a call.
#[derive(Debug)]
pub struct CallOrigins {
    names: Vec<(Sources, Origin)>,
    control: Sources,
    arguments: PartSources,
}

/// The origins of a part of a call.
pub(super) struct Found<'o> {
    all: Vec<&'o Origin>,
}

impl CallOrigins {
    /// `names`: what the sources are. `control`: what decided about the call.
    pub fn new(names: Vec<(Sources, SourceText)>, control: Sources, arguments: PartSources) -> CallOrigins {
        let names = names.into_iter().map(|(source, text)| (source, Origin::of(text))).collect();
        CallOrigins { names, control, arguments }
    }

    /// What decided about the call.
    pub(super) fn control(&self) -> Found<'_> {
        self.found(self.control)
    }

    /// The origins of an argument, or of what decided that it is there.
    pub(super) fn argument(&self, path: &[Box<str>]) -> Found<'_> {
        self.found(self.arguments.along(path))
    }

    /// The origins of what decided that an argument is missing in a call, but not whether the call is made.
    pub(super) fn missing(&self, path: &[Box<str>]) -> Found<'_> {
        self.found(self.arguments.presence(path).without(self.control))
    }

    fn found(&self, sources: Sources) -> Found<'_> {
        let all = self.names.iter().filter(|(source, _)| sources.meets(*source));
        Found { all: all.map(|(_, origin)| origin).collect() }
    }
}

/// How a label got to a part of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carried {
    No,
    /// Only whether calls succeeded.
    Status,
    Data,
}

impl Found<'_> {
    /// Whether it carries a label, by what a source of a plan may stand for. `None`: whatever the plan says.
    pub(super) fn carries(
        &self,
        labels: &Labels,
        answered: LabelSet,
        label: LabelSet,
        planned: Option<(&FlowPlan, Option<&FlowSource>)>,
    ) -> Carried {
        let mut carried = Carried::No;
        for origin in &self.all {
            let is_planned = planned.is_none_or(|(plan, source)| origin.may_be(plan, source));
            if is_planned && origin.labels(labels, answered).has(label) {
                match origin {
                    Origin::Status(..) => carried = Carried::Status,
                    _ => return Carried::Data,
                }
            }
        }
        carried
    }

    /// The first origin that carries a label, as it is shown.
    pub(super) fn name(&self, labels: &Labels, answered: LabelSet, label: LabelSet) -> Option<String> {
        let origin = self.all.iter().find(|origin| origin.labels(labels, answered).has(label))?;
        Some(match origin {
            Origin::Data(server, target) => format!("{server}/{target}"),
            Origin::Status(server, target) => format!("status of {server}/{target}"),
            Origin::Context(key) => format!("data/{key}"),
            Origin::Answered | Origin::Anything => return None,
        })
    }
}
