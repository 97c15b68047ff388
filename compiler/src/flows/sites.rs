//! Data-flow analysis of calls that leave the program, such as tool calls: notes which data may reach their arguments,
//! and makes their results new data sources.

use super::node::{Key, NEVER, Node, Text, Val};
use super::plan::{FlowCallKind, FlowSource};
use super::set::{Callables, SourceSet};
use super::walk::{ANYTHING, LITERAL, Walk};
use crate::ir::{Ref, Refs};
use crate::names::split_qualified;
use ptc_vm::Span;
use ptc_vm::builtins::{HostFunction, ServerForm};

/// A place in the text where calls leave.
pub(super) struct Site<'a> {
    pub(super) span: Span,
    pub(super) kind: FlowCallKind,
    pub(super) server: Target,
    pub(super) tool: Target,
    pub(super) arguments: Val<'a>,
    pub(super) control: SourceSet,
    /// It is in a loop or a function: calls after it in the text may be made before it.
    is_repeated: bool,
    /// What it was given, and what decided about it: in this round so far, and ever.
    given_now: SourceSet,
    given: SourceSet,
    /// Its answer as a source, and whether there is one.
    data: SourceSet,
    status: SourceSet,
}

impl Site<'_> {
    /// Forgets what the current round found.
    pub(super) fn begin_round(&mut self) {
        self.given_now = SourceSet::EMPTY;
    }

    /// True when both may call the same server. Tools of the host are servers of their own.
    fn may_share(&self, other: &Site<'_>) -> bool {
        let same = |a: &Target, b: &Target| match (a, b) {
            (Target::Only(a), Target::Only(b)) => a == b,
            (Target::Never, _) | (_, Target::Never) => false,
            _ => true,
        };
        let is_granted = |site: &Site<'_>| site.kind == FlowCallKind::Granted;
        match is_granted(self) && is_granted(other) {
            true => same(&self.tool, &other.tool),
            false => same(&self.server, &other.server),
        }
    }
}

/// What is known of the server or tool of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Never,
    Only(Box<str>),
    Any,
}

impl Target {
    fn join(&mut self, other: Target) {
        match (&*self, other) {
            (_, Target::Never) => {}
            (Target::Never, other) => *self = other,
            (a, b) if *a == b => {}
            _ => *self = Target::Any,
        }
    }

    pub(super) fn name(&self) -> Option<Box<str>> {
        match self {
            Target::Only(name) => Some(name.clone()),
            Target::Never | Target::Any => None,
        }
    }
}

/// A call, as one evaluation of its place finds it.
struct Found<'a> {
    kind: FlowCallKind,
    server: Target,
    tool: Target,
    arguments: Val<'a>,
    /// What decides where it goes.
    choice: SourceSet,
}

/// The parts of a result, and whether they only say how the call went.
const PARTS: [(&str, bool); 11] = [
    ("ok", true),
    ("reason", true),
    ("value_kind", true),
    ("value", false),
    ("message", false),
    ("content", false),
    ("structured_content", false),
    ("spill", false),
    ("preview", false),
    ("bytes", false),
    ("lines", false),
];

/// The keys of calls and results.
#[derive(Clone, Copy)]
pub(super) struct CallKeys {
    /// `server`, `tool`, `args`, `on-large`.
    call: [Key; 4],
    /// Those of `PARTS`, sorted.
    parts: [(Key, bool); PARTS.len()],
}

impl<'a> Walk<'a, '_> {
    /// A call of the host. `arguments` are the expressions as they are written.
    pub(super) fn host_call(
        &mut self,
        expr: Ref<'a>,
        function: HostFunction,
        arguments: Refs<'a>,
    ) -> Val<'a> {
        let values = self.values(arguments);
        match function {
            HostFunction::ToolCall => {
                let found = self.tool_call(&values);
                self.tagged_site(expr.span, found)
            }
            HostFunction::ToolCallValue => {
                let found = self.tool_call(&values);
                let (data, _) = self.site(expr.span, found);
                self.new_node(Node::opaque(data, Callables::DATA))
            }
            HostFunction::Tool => {
                let tool = values.first().map_or(Target::Any, |name| self.target(name));
                let arguments = self.merged_or_only(values.get(1..).unwrap_or_default());
                let server = Target::Only("tool".into());
                let choice = SourceSet::EMPTY;
                let found = Found { kind: FlowCallKind::Granted, server, tool, arguments, choice };
                let (data, _) = self.site(expr.span, found);
                self.new_node(Node::opaque(data, Callables::DATA))
            }
            HostFunction::Ask(form) => {
                let found = self.server_call(form, &values);
                self.tagged_site(expr.span, found)
            }
            HostFunction::Servers | HostFunction::Discover(_) => {
                let catalog = self.source(FlowSource::Catalog);
                let all = self.merged(&values, catalog);
                // `source` and `doc` may show names that the session defined.
                self.new_node(Node::opaque(all.deep, Callables::DATA))
            }
            HostFunction::Now => {
                let clock = self.source(FlowSource::Clock);
                self.scalar(clock)
            }
            // The calls that are left say how many were made. The name of a stored result may be made up.
            HostFunction::Budget | HostFunction::Look(_) => {
                let all = self.merged(&values, ANYTHING);
                self.new_node(Node::opaque(all.deep, Callables::DATA))
            }
        }
    }

    fn merged_or_only(&mut self, values: &[Val<'a>]) -> Val<'a> {
        match values {
            [only] => only,
            [] => self.nil(),
            more => self.merged(more, SourceSet::EMPTY),
        }
    }

    fn target(&self, value: Val<'a>) -> Target {
        match value.text {
            Text::Never => Target::Never,
            Text::Row(row) => self.constant_text(row).map_or(Target::Any, |text| Target::Only(text.into())),
            Text::Other => Target::Any,
        }
    }

    /// The call that `tool/call` and `tool/call!` make: a map, the same as keywords and values, or a symbol and the
    /// arguments.
    fn tool_call(&mut self, values: &[Val<'a>]) -> Found<'a> {
        let kind = FlowCallKind::Tool;
        let symbol = match values.first().map(|first| first.text) {
            Some(Text::Row(row)) if values.len() <= 2 => self.constant_text(row).map(split_qualified),
            _ => None,
        };
        if let Some((Some(server), tool)) = symbol {
            let arguments = self.merged_or_only(&values[1..]);
            let (server, tool) = (Target::Only(server.into()), Target::Only(tool.into()));
            return Found { kind, server, tool, arguments, choice: SourceSet::EMPTY };
        }
        let map = match values {
            [map] => *map,
            pairs if pairs.len().is_multiple_of(2) => {
                pairs.chunks_exact(2).fold(self.empty_map(), |map, pair| {
                    let key = match pair[0].text {
                        Text::Row(row) => self.key_of(row),
                        _ => None,
                    };
                    match key {
                        Some(key) => self.with_field(map, key, pair[1]),
                        None => self.with_unknown_entry(map, pair[0], pair[1]),
                    }
                })
            }
            more => self.merged(more, SourceSet::EMPTY),
        };
        let keys = self.names().call;
        let [server, tool, arguments, on_large] = keys.map(|key| self.get(map, Some(key)));
        // What is to happen with a large result decides about the result.
        let choice = server.deep.union(tool.deep).union(on_large.deep).union(map.shape());
        Found { kind, server: self.target(server), tool: self.target(tool), arguments, choice }
    }

    fn empty_map(&self) -> Val<'a> {
        self.new_node(Node::with_parts(LITERAL, &[], None))
    }

    /// A request for resources or prompts.
    fn server_call(&mut self, form: ServerForm, values: &[Val<'a>]) -> Found<'a> {
        let map = self.merged_or_only(values);
        let [key, ..] = self.names().call;
        let server = self.get(map, Some(key));
        let (kind, tool) = match form {
            ServerForm::ReadResource => (FlowCallKind::Resource, "resources/read"),
            ServerForm::GetPrompt => (FlowCallKind::Prompt, "prompts/get"),
            ServerForm::ListResources => (FlowCallKind::List, "resources/list"),
            ServerForm::ListTemplates => (FlowCallKind::List, "resources/templates/list"),
            ServerForm::ListPrompts => (FlowCallKind::List, "prompts/list"),
        };
        let choice = server.deep.union(map.shape());
        let tool = Target::Only(tool.into());
        Found { kind, server: self.target(server), tool, arguments: map, choice }
    }

    /// A call of a tool that a value names.
    pub(super) fn computed_site(
        &mut self,
        span: Span,
        kind: FlowCallKind,
        name: Option<String>,
        all: Val<'a>,
    ) -> Val<'a> {
        let tool = name.map_or(Target::Any, |name| Target::Only(name.into()));
        let found = Found { kind, server: Target::Any, tool, arguments: all, choice: all.deep };
        let (data, status) = self.site(span, found);
        self.new_node(Node::opaque(data.union(status), Callables::DATA))
    }

    /// A call with a tagged result.
    fn tagged_site(&mut self, span: Span, found: Found<'a>) -> Val<'a> {
        let (data, status) = self.site(span, found);
        let value: Val<'a> = self.new_node(Node::opaque(data, Callables::DATA));
        let status: Val<'a> = self.scalar(status);
        let Some(mut fields) = self.nodes.fields(&[], PARTS.len()) else { return &NEVER };
        for (key, is_status) in self.names().parts {
            fields.push((key, if is_status { status } else { value }));
        }
        let node = Node::with_parts(status.own, fields.into_bump_slice(), None);
        self.new_node(Node { keys: value.deep, ..node })
    }

    /// The keys of calls and results.
    fn names(&mut self) -> CallKeys {
        if let Some(known) = self.call_keys {
            return known;
        }
        // There are few keys before the first call, so each has one.
        let key = |walk: &mut Self, name: &str| walk.key(name).unwrap_or_default();
        let mut parts = PARTS.map(|(name, is_status)| (key(self, name), is_status));
        parts.sort_unstable();
        let keys =
            CallKeys { call: ["server", "tool", "args", "on-large"].map(|name| key(self, name)), parts };
        self.call_keys = Some(keys);
        keys
    }

    /// Notes a call; the sources of its data and of its status.
    fn site(&mut self, span: Span, found: Found<'a>) -> (SourceSet, SourceSet) {
        let Found { kind, server, tool, arguments, choice } = found;
        let control = self.reached_by().union(choice).minus(LITERAL);
        let known = self.sites.iter().position(|site| site.span == span && site.kind == kind);
        let number = known.unwrap_or_else(|| self.add_site(span, kind));
        let joined = self.join(self.sites[number].arguments, arguments);
        let site = &mut self.sites[number];
        site.arguments = joined;
        site.control = site.control.union(control);
        site.server.join(server);
        site.tool.join(tool);
        let given = joined.deep.union(site.control).minus(LITERAL);
        let (data, status) = (site.data, site.status);
        site.given_now = site.given_now.union(given);
        if !given.is_within(site.given) {
            site.given = site.given.union(given);
            let is_alone = self.sites.len() == 1;
            if !is_alone && self.sites.iter().any(|site| site.is_repeated) {
                self.look_again();
            }
        }
        let before = self.given_before(number).union(given);
        (data.union(status).union(before), status.union(before))
    }

    /// What calls before this one may have left behind: what they gave to its server can be read back, and how many
    /// there were decides whether calls are left.
    fn given_before(&self, number: usize) -> SourceSet {
        let this = &self.sites[number];
        self.sites.iter().fold(SourceSet::EMPTY, |all, site| {
            let is_ordered = !site.is_repeated && !this.is_repeated;
            let (given, control) = match is_ordered {
                true if site.given_now.is_empty() => return all,
                true => (site.given_now, site.control),
                false => (site.given, site.control),
            };
            let given = if site.may_share(this) { given } else { SourceSet::EMPTY };
            all.union(given).union(control)
        })
    }

    fn add_site(&mut self, span: Span, kind: FlowCallKind) -> usize {
        let number = self.sites.len();
        let data = self.new_source(FlowSource::Result(number));
        let status = self.new_source(FlowSource::Status(number));
        let (server, tool, none) = (Target::Never, Target::Never, SourceSet::EMPTY);
        self.sites.push(Site {
            span,
            kind,
            server,
            tool,
            arguments: &NEVER,
            control: none,
            is_repeated: self.current.is_some() || self.turns > 0,
            given_now: none,
            given: none,
            data,
            status,
        });
        number
    }
}
