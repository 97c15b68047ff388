//! Turns the finished data-flow analysis into a [`FlowPlan`]: lists the tool calls of a program with the data that may
//! reach each argument.

use super::node::Val;
use super::plan::{FlowArgument, FlowCall, FlowCallKind, FlowPlan, FlowSource};
use super::set::SourceSet;
use super::sites::Site;
use super::walk::{LITERAL, Walk};
use crate::diagnostic::line_column;

/// Levels of arguments that are listed part by part.
const LEVELS: usize = 4;

/// Arguments of a call that are listed one by one.
const MOST_ARGUMENTS: usize = 200;

impl<'a> Walk<'a, '_> {
    /// The plan, when nothing changes any more.
    pub(super) fn plan(self, source: &str) -> FlowPlan {
        if self.failed || self.nodes.is_spent() {
            return FlowPlan::unknown();
        }
        let mut order: Vec<usize> = (0..self.sites.len()).collect();
        order.sort_by_key(|number| (self.sites[*number].span.start, self.sites[*number].span.end));
        let mut places = vec![0; order.len()];
        for (place, number) in order.iter().enumerate() {
            places[*number] = place;
        }
        let calls = order.iter().map(|number| self.planned(&self.sites[*number], source)).collect();
        let sources = self.sources.iter().map(|source| match source {
            FlowSource::Result(number) => FlowSource::Result(places[*number]),
            FlowSource::Status(number) => FlowSource::Status(places[*number]),
            other => other.clone(),
        });
        let definitions = self
            .definitions
            .iter()
            .map(|row| (self.global_name(*row).into_boxed_str(), self.global_sources(*row)));
        FlowPlan {
            sources: sources.collect(),
            calls,
            prints: self.prints,
            result: self.result(),
            definitions: definitions.collect(),
            is_unknown: false,
        }
    }

    fn planned(&self, site: &Site<'a>, source: &str) -> FlowCall {
        let (line, column) = line_column(source, site.span.start);
        let mut arguments = Vec::new();
        let is_request =
            !matches!(site.kind, FlowCallKind::Tool | FlowCallKind::Granted | FlowCallKind::Function);
        self.list_arguments(site.arguments, SourceSet::EMPTY, &mut Vec::new(), &mut arguments);
        if arguments.len() > MOST_ARGUMENTS {
            let sources = site.arguments.deep;
            arguments = vec![FlowArgument { path: vec!["".into()], sources }];
        }
        arguments
            .retain(|argument| !(is_request && argument.path.first().is_some_and(|key| &**key == "server")));
        FlowCall {
            kind: site.kind,
            server: site.server.name(),
            tool: site.tool.name(),
            span: site.span,
            line,
            column,
            control: site.control,
            arguments,
        }
    }

    fn list_arguments(
        &self,
        value: Val<'a>,
        above: SourceSet,
        path: &mut Vec<Box<str>>,
        out: &mut Vec<FlowArgument>,
    ) {
        if out.len() > MOST_ARGUMENTS {
            return;
        }
        let own = above.union(value.shape());
        let has_names = value.fields.iter().any(|(key, _)| self.key_text(*key).is_some());
        if !has_names || path.len() >= LEVELS {
            // A list, a text, or what is not known. Of all arguments it is any.
            let is_whole = path.is_empty();
            let sources = above.union(value.deep);
            if is_whole && value.rest().is_none() && value.fields.is_empty() && sources.is_within(LITERAL) {
                return;
            }
            let mut path = path.clone();
            if is_whole {
                path.push("".into());
            }
            out.push(FlowArgument { path, sources });
            return;
        }
        let mut named: Vec<(&str, Val<'a>)> = Vec::new();
        let mut other: Option<SourceSet> = value.rest().map(|rest| rest.deep.union(own));
        for (key, part) in value.fields {
            match self.key_text(*key) {
                Some(name) => named.push((name, part)),
                None => other = Some(other.unwrap_or(own).union(part.deep)),
            }
        }
        named.sort_by_key(|(name, _): &(&str, Val<'a>)| *name);
        for (name, part) in named {
            path.push(name.into());
            self.list_arguments(part, own, path, out);
            path.pop();
        }
        if let Some(sources) = other {
            path.push("".into());
            out.push(FlowArgument { path: path.clone(), sources });
            path.pop();
        }
    }
}
