//! Checks the rules of a policy against the servers and tools that exist, and reports rules that match nothing or allow
//! a bare tool name that several servers have. When an edited policy replaces a policy, it also lists the tools that
//! the edited one treats less strictly, for a warning.

use super::condition::{ALL_TEXTS, Pointer};
use super::decide::Policy;
use super::file::PolicyError;
use super::look_alikes::is_same_key;
use super::pattern::{Exactness, RulePattern};
use super::rules::{Position, RuleFile};
use crate::run::client::asker::CallAsker;
use crate::run::outcome::{PolicyRuling, Verdict};
use crate::tools::{CallTarget, Catalog, HOST, ToolList, nearest};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// A server, as far as it is known.
#[derive(Clone, Debug)]
pub struct KnownServer {
    /// Configured name.
    pub name: Arc<str>,
    /// Its tools; `None`: they are not loaded.
    pub tools: Option<Arc<ToolList>>,
}

/// A rule that can match nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFinding {
    /// What is wrong, and where.
    pub error: PolicyError,
    /// It concerns a server that no configuration has. Otherwise it concerns the tools of loaded lists.
    pub is_of_servers: bool,
}

/// Levels of a schema that a pointer is followed through.
const DEEPEST: usize = 32;

impl Policy {
    /// The rules that can match nothing of these servers. A rule for tools of a server whose list is not loaded is left
    /// out.
    #[doc(hidden)]
    pub fn findings(&self, servers: &[KnownServer]) -> Vec<PolicyFinding> {
        let host = KnownServer { name: HOST.into(), tools: None };
        let servers: Vec<KnownServer> = servers.iter().cloned().chain([host]).collect();
        let of_file = |file: &RuleFile| Checker { file, servers: &servers }.findings();
        self.files.iter().flat_map(of_file).collect()
    }
}

impl Policy {
    /// Rules that allow a tool by its name alone, which several of these servers have.
    #[doc(hidden)]
    pub fn ambiguous(&self, servers: &[KnownServer]) -> Vec<String> {
        let mut lines = Vec::new();
        for file in &self.files {
            let rules = file.rules.iter().filter(|rule| rule.verdict == Verdict::Allow);
            let patterns = rules.flat_map(|rule| &rule.tools);
            for (pattern, (line, column)) in patterns.filter(|(pattern, _)| pattern.is_bare_name()) {
                let has = |server: &&KnownServer| {
                    let mut tools = server.tools.iter().flat_map(|tools| tools.iter());
                    tools.any(|tool| pattern.matches(&server.name, &tool.name, Exactness::Exact))
                };
                let names: Vec<&str> = servers.iter().filter(has).map(|server| &*server.name).collect();
                if names.len() > 1 {
                    let (tool, names) = (pattern.text(), names.join(", "));
                    let place = format!("{}:{line}:{column}", file.name);
                    lines.push(format!(
                        "policy {place}: {tool} is allowed of several servers: {names}; write SERVER/{tool}"
                    ));
                }
            }
        }
        lines
    }
}

impl Policy {
    /// Checks that every rule names a server that is configured, or the tools of the host.
    ///
    /// # Errors
    /// The first rule that does not.
    pub fn check_servers(&self, names: impl IntoIterator<Item = Arc<str>>) -> Result<(), PolicyError> {
        let servers: Vec<KnownServer> =
            names.into_iter().map(|name| KnownServer { name, tools: None }).collect();
        match self.findings(&servers).into_iter().next() {
            Some(finding) => Err(finding.error),
            None => Ok(()),
        }
    }
}

impl Policy {
    /// Tools that another policy treats less strictly, each as a line. Rules for some callers only are left out.
    #[doc(hidden)]
    pub fn weakened_by(&self, other: &Policy, catalog: &Catalog) -> Vec<String> {
        let mut weaker = Vec::new();
        for server in catalog.servers() {
            for tool in server.tools.iter().flat_map(|tools| tools.iter()) {
                let target = CallTarget::Tool(tool.name.clone());
                let verdicts = |policy: &Policy| {
                    let said = policy.possible_rulings(&server.name, &target, tool, CallAsker::default());
                    let verdict = |ruling: Option<&PolicyRuling>| ruling.map(|ruling| ruling.verdict);
                    (verdict(said.first()), verdict(said.last()))
                };
                let ((strictest, least), (new_strictest, new_least)) = (verdicts(self), verdicts(other));
                if new_strictest < strictest || new_least < least {
                    let name = |verdict: Option<Verdict>| verdict.map_or("nothing", Verdict::name);
                    weaker.push(format!(
                        "{}/{}: {} to {}",
                        server.name,
                        tool.name,
                        name(if new_least < least { least } else { strictest }),
                        name(if new_least < least { new_least } else { new_strictest })
                    ));
                }
            }
        }
        weaker
    }
}

struct Checker<'p> {
    file: &'p RuleFile,
    servers: &'p [KnownServer],
}

/// What a pattern can match.
enum Reach {
    /// No server.
    NoServer,
    /// No tool of the loaded lists.
    NoTool,
    /// Something, or what is not loaded.
    Some,
}

impl Checker<'_> {
    fn findings(&self) -> Vec<PolicyFinding> {
        let mut findings = Vec::new();
        for rule in &self.file.rules {
            for (pattern, position) in &rule.tools {
                findings.extend(self.pattern(pattern, *position, |target, server| {
                    pattern.matches(server, target, rule.exactness())
                }));
            }
            let pointers =
                rule.conditions.iter().map(|(condition, position)| (condition.pointer(), *position));
            findings.extend(self.pointers(&rule.tools, rule.exactness(), pointers.collect()));
        }
        for limit in &self.file.limits {
            for (pattern, position) in &limit.tools {
                findings.extend(self.pattern(pattern, *position, |target, server| {
                    pattern.matches(server, target, Exactness::Loose)
                }));
            }
            let position = limit.tools.first().map_or((1, 1), |(_, position)| *position);
            let pointers = limit.pointer().map(|pointer| (pointer, position));
            findings.extend(self.pointers(&limit.tools, Exactness::Loose, pointers.into_iter().collect()));
        }
        findings.extend(self.flows());
        for (pattern, _, position) in &self.file.effects {
            findings.extend(self.pattern(pattern, *position, |target, server| {
                pattern.matches(server, target, Exactness::Exact)
            }));
        }
        for (name, position) in &self.file.trusted {
            if !self.servers.iter().any(|server| server.name == *name) {
                findings.push(self.finding(*position, true, self.no_server(name)));
            }
        }
        findings
    }

    /// Labels and rules of flows that can match nothing.
    fn flows(&self) -> Vec<PolicyFinding> {
        let Some(flows) = &self.file.flows else { return Vec::new() };
        let mut findings = Vec::new();
        let labels = flows.labels.all.iter().flat_map(|label| &label.sources);
        let tools = labels.chain(&flows.labels.open).chain(&flows.labels.closed);
        for (pattern, position) in tools.chain(flows.rules.iter().flat_map(|rule| &rule.to)) {
            findings.extend(self.pattern(pattern, *position, |target, server| {
                pattern.matches(server, target, Exactness::Loose)
            }));
        }
        for rule in &flows.rules {
            let pointers = rule.args.iter().map(|(pointer, position)| (pointer, *position));
            findings.extend(self.pointers(&rule.to, Exactness::Loose, pointers.collect()));
        }
        findings
    }

    fn finding(&self, position: Position, is_of_servers: bool, message: String) -> PolicyFinding {
        let error = PolicyError { file: self.file.name.to_string(), position: Some(position), message };
        PolicyFinding { error, is_of_servers }
    }

    fn no_server_of(&self, pattern: &RulePattern) -> String {
        let is_begun = |server: &&KnownServer| {
            let rest = pattern.text().strip_prefix(&*server.name);
            server.name.contains('/') && rest.is_some_and(|rest| rest.starts_with('/'))
        };
        let name = pattern.server_part();
        match self.servers.iter().find(is_begun) {
            Some(server) => {
                let escaped = server.name.replace('~', "~0").replace('/', "~1");
                format!("there is no server {name}; write {escaped} for {}", server.name)
            }
            None => self.no_server(name),
        }
    }

    fn no_server(&self, name: &str) -> String {
        let names: Vec<&str> = self.servers.iter().map(|server| &*server.name).collect();
        match nearest(name, &names) {
            Some(near) => format!("there is no server {name}; did you mean {near}?"),
            None if names.is_empty() => format!("there is no server {name}: none is configured"),
            None => format!("there is no server {name}; there are {}", names.join(", ")),
        }
    }

    fn pattern(
        &self,
        pattern: &RulePattern,
        position: Position,
        matches: impl Fn(&str, &str) -> bool,
    ) -> Option<PolicyFinding> {
        match self.reach(pattern, matches) {
            Reach::Some => None,
            Reach::NoServer => Some(self.finding(position, true, self.no_server_of(pattern))),
            Reach::NoTool => Some(self.finding(position, false, self.no_tool(pattern))),
        }
    }

    fn reach(&self, pattern: &RulePattern, matches: impl Fn(&str, &str) -> bool) -> Reach {
        let mut named = self.servers.iter().filter(|server| pattern.names_server(&server.name)).peekable();
        if named.peek().is_none() {
            return Reach::NoServer;
        }
        let has = |server: &KnownServer| match &server.tools {
            // More of its tools may be called.
            Some(tools) if tools.cut().is_none() => {
                let names = tools.iter().map(|tool| &*tool.name).chain(tools.refused());
                names.chain(CallTarget::METHODS).any(|name| matches(name, &server.name))
            }
            // A name without a server is meant for servers, if there are any.
            None if &*server.name == HOST && pattern.is_of_any_server() => self.servers.len() == 1,
            _ => true,
        };
        if named.any(has) { Reach::Some } else { Reach::NoTool }
    }

    fn no_tool(&self, pattern: &RulePattern) -> String {
        let named = self.servers.iter().filter(|server| pattern.names_server(&server.name));
        let lists: Vec<_> = named.filter_map(|server| server.tools.as_ref()).collect();
        let names: Vec<&str> = lists
            .iter()
            .flat_map(|tools| tools.iter().map(|tool| &*tool.name).chain(tools.refused()))
            .collect();
        let servers: Vec<&str> = self.servers.iter().map(|server| &*server.name).collect();
        let text = pattern.text();
        match nearest(pattern.tool_part(), &names) {
            _ if servers.contains(&text) => {
                format!("{text} is a server: write {text}/* for all of its tools")
            }
            Some(near) => format!("no tool is called {text}; did you mean {near}?"),
            None => format!("no tool is called {text}"),
        }
    }

    /// Pointers that no schema of these tools has.
    fn pointers(
        &self,
        tools: &[(RulePattern, Position)],
        exactness: Exactness,
        pointers: Vec<(&Pointer, Position)>,
    ) -> Vec<PolicyFinding> {
        let named = |server: &str, label: &str| {
            tools.iter().any(|(pattern, _)| pattern.matches(server, label, exactness))
        };
        let mut schemas = Vec::new();
        for server in self.servers {
            let Some(list) = &server.tools else {
                // Its tools are not known.
                if tools.iter().any(|(pattern, _)| pattern.names_server(&server.name)) {
                    return Vec::new();
                }
                continue;
            };
            let meant = list.iter().filter(|tool| named(&server.name, &tool.name));
            schemas.extend(meant.map(|tool| tool.input_schema.clone()));
            for (method, schema) in [
                ("resources/read", json!({ "properties": { "uri": {} } })),
                ("prompts/get", json!({ "properties": { "name": {}, "arguments": { "type": "object" } } })),
            ] {
                if named(&server.name, method) {
                    schemas.push(schema);
                }
            }
        }
        let unknown = pointers.into_iter().filter(|(pointer, _)| {
            !schemas.is_empty() && !schemas.iter().any(|schema| has_pointer(schema, pointer))
        });
        unknown
            .map(|(pointer, position)| {
                let names: Vec<String> = schemas.iter().flat_map(arguments).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let near = pointer.segments.first().and_then(|first| nearest(first, &names));
                let near = near.map(|near| format!("; did you mean /{near}?")).unwrap_or_default();
                let message = format!("no tool of this rule has an argument at {}{near}", pointer.text());
                self.finding(position, false, message)
            })
            .collect()
    }
}

/// Names of the arguments in a schema.
fn arguments(schema: &Json) -> Vec<String> {
    let properties = schema.get("properties").and_then(Json::as_object);
    properties.into_iter().flat_map(|properties| properties.keys().cloned()).collect()
}

/// True if arguments of this schema may have a value at the pointer.
fn has_pointer(schema: &Json, pointer: &Pointer) -> bool {
    may_have(schema, schema, &pointer.segments, DEEPEST)
}

fn may_have(root: &Json, schema: &Json, segments: &[String], depth: usize) -> bool {
    let Some((first, rest)) = segments.split_first().filter(|(first, _)| **first != ALL_TEXTS) else {
        return true;
    };
    let Some(members) = schema.as_object() else { return *schema != Json::Bool(false) };
    if depth == 0 {
        return true;
    }
    let below = |schema: &Json, segments: &[String]| may_have(root, schema, segments, depth - 1);
    if let Some(Json::String(reference)) = members.get("$ref") {
        // A reference to another document may lead anywhere.
        let target = reference.strip_prefix('#').map(|pointer| root.pointer(pointer));
        if target.is_none_or(|target| target.is_some_and(|target| below(target, segments))) {
            return true;
        }
    }
    let alternatives = ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| members.get(*key)?.as_array());
    if alternatives.flatten().any(|schema| schema.is_object() && below(schema, segments)) {
        return true;
    }
    let index = first.parse::<usize>().is_ok() || first == "*";
    if let Some(items) = members.get("items").filter(|_| index) {
        return below(items, rest);
    }
    if let Some(properties) = members.get("properties").and_then(Json::as_object) {
        let mut named = properties.iter().filter(|(name, _)| first == "*" || is_same_key(name, first));
        if named.any(|(_, schema)| below(schema, rest)) {
            return true;
        }
    }
    let is_described = ["properties", "items", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"];
    let is_described = is_described.iter().any(|key| members.contains_key(*key));
    match members.get("additionalProperties") {
        Some(Json::Bool(more)) => *more,
        Some(more) => below(more, rest),
        None if is_described => members.contains_key("patternProperties"),
        None => match members.get("type").and_then(Json::as_str) {
            Some(kind) => kind == "object" || kind == "array",
            None => true,
        },
    }
}
