//! Presents the tools of servers to Python scripts as functions `mcp__<server>__<tool>`: writes their signatures and
//! documentation, searches them, and reports names that two tools would share.

use ptc_base::sync::Locked;
use ptc_calls::tools::text::one_line;
use ptc_calls::tools::visible::literal;
use ptc_calls::tools::{Catalog, PythonSignature, UpstreamTool, python_name, qualified_name};
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// The tool that a function calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Configured name of the upstream.
    pub server: Arc<str>,
    /// Tool name as the upstream lists it.
    pub tool: Arc<str>,
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.server, self.tool)
    }
}

/// A function, as it is sent to the process of a script.
#[derive(Clone, Debug, Serialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its parameters in the order of the schema, required ones first.
    pub params: Vec<String>,
    /// How many of them are required.
    pub required: usize,
    #[serde(skip)]
    tool: Arc<UpstreamTool>,
    #[serde(skip)]
    target: Target,
}

impl Function {
    /// The signature in Python's notation: `mcp__s__t(a: str, b: int = 5)`; without types if it is long.
    pub fn signature(&self) -> String {
        let signature = self.signed(&PythonSignature::new(&self.tool));
        if signature.len() <= LONGEST_SIGNATURE {
            return signature;
        }
        let optional = |(at, name): (usize, &String)| match at < self.required {
            true => parameter(name).into_owned(),
            false => format!("{}=…", parameter(name)),
        };
        let params: Vec<String> = self.params.iter().enumerate().map(optional).collect();
        format!("{}({})", self.name, params.join(", "))
    }

    fn signed(&self, signature: &PythonSignature) -> String {
        let parameter = |name: &String| {
            let of = signature.parameters.get(name).map_or("Any", String::as_str);
            format!("{}: {of}", parameter(name))
        };
        let parameters: Vec<String> = self.params.iter().map(parameter).collect();
        format!("{}({})", self.name, parameters.join(", "))
    }

    /// The signature with the result, the types that it names, and the documentation.
    pub fn help(&self) -> String {
        let signature = PythonSignature::new(&self.tool);
        let returns = signature.returns.as_ref().map(|returns| format!(" -> {returns}")).unwrap_or_default();
        let mut text = format!("await {}{returns}", self.signed(&signature));
        for (name, definition) in &signature.types {
            text.push_str(&format!("\n{name} = {definition}"));
        }
        let about = cut(signature.about.trim(), DESCRIPTION);
        if !about.is_empty() {
            text.push_str(&format!("\n\n{about}"));
        }
        for (index, (place, about)) in signature.explanations.iter().take(MOST_EXPLAINED).enumerate() {
            if index == 0 {
                text.push('\n');
            }
            // A place begins with the name of a parameter or of a type.
            let (name, rest) = place.split_at(place.find('[').unwrap_or(place.len()));
            text.push_str(&format!("\n{}{rest}: {}", parameter(name), one_line(about, DESCRIPTION)));
        }
        text.trim_end().replace('\n', "\n    ")
    }

    /// The name that the tool has for a parameter, which is a keyword of Python.
    pub fn meant<'a>(&self, name: &'a str) -> &'a str {
        let is_ours =
            |plain: &&str| python_name(plain) == name && self.params.iter().any(|param| param == plain);
        let is_theirs = self.params.iter().any(|param| param == name);
        name.strip_suffix('_').filter(is_ours).filter(|_| !is_theirs).unwrap_or(name)
    }

    /// Whether the tool declares an argument that a script calls so, or says that it takes others, too.
    pub fn takes(&self, name: &str) -> bool {
        let meant = self.meant(name);
        let schema = &self.tool.input_schema;
        let others = matches!(schema["additionalProperties"], Value::Bool(true) | Value::Object(_));
        self.params.iter().any(|param| param == meant) || others || schema["patternProperties"].is_object()
    }
}

/// Two tools with the same function name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// The function name.
    pub name: String,
    /// The tools.
    pub tools: [Target; 2],
}

impl fmt::Display for Clash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = &self.tools;
        write!(
            out,
            "{first} and {second} would both be the function {} of scripts; rename a server, or block one of the tools \
             with \"tools\": {{\"block\": [\"{second}\"]}}",
            self.name
        )
    }
}

/// All functions of one version of the catalog.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    /// Version of the catalog.
    version: u64,
    by_name: BTreeMap<String, Function>,
    /// Names of tools that policy refuses, and names that two tools share.
    unavailable: Vec<String>,
    clashes: Vec<Clash>,
}

/// The parameters of a tool in the order of its schema, required ones first, and how many of these there are.
pub fn parameters(tool: &UpstreamTool) -> (Vec<String>, usize) {
    let mut params: Vec<String> = tool.required().map(str::to_owned).collect();
    let required = params.len();
    let declared = tool.input_schema["properties"].as_object();
    let others = declared.into_iter().flat_map(|all| all.keys());
    let others: Vec<String> = others.filter(|name| !params.contains(name)).cloned().collect();
    params.extend(others);
    (params, required)
}

/// A parameter's name as it is shown: a keyword of Python with an underscore, and as a literal if it is no
/// identifier, so that it contains no line break.
pub fn parameter(name: &str) -> Cow<'_, str> {
    let is_identifier = name.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && name.chars().all(|character| character.is_alphanumeric() || character == '_');
    if is_identifier { Cow::Owned(python_name(name)) } else { Cow::Owned(literal(name)) }
}

/// Bytes of a signature in a message that has types.
const LONGEST_SIGNATURE: usize = 600;

/// Most characters of a shown description.
const DESCRIPTION: usize = 1_000;

/// Most parameters that are explained.
const MOST_EXPLAINED: usize = 40;

/// The text in which a search looks: name, description, names and descriptions of the parameters.
fn searched(function: &Function) -> String {
    let UpstreamTool { description, input_schema, .. } = &*function.tool;
    let mut text = format!("{} {}", function.name, description.as_deref().unwrap_or_default());
    for name in &function.params {
        let about = input_schema["properties"][name]["description"].as_str().unwrap_or_default();
        text.push_str(&format!(" {name} {about}"));
    }
    text
}

fn cut(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

impl Functions {
    /// Makes the functions of a catalog. Two tools with the same name are both left out.
    pub fn from_catalog(catalog: &Catalog) -> Functions {
        let mut functions = Functions { version: catalog.version(), ..Functions::default() };
        for server in catalog.servers() {
            let Some(tools) = &server.tools else { continue };
            for tool in tools.iter() {
                functions.add(&server.name, tool);
            }
            functions.unavailable.extend(tools.refused().map(|tool| qualified_name(&server.name, tool)));
        }
        for clash in &functions.clashes {
            functions.by_name.remove(&clash.name);
            functions.unavailable.push(clash.name.clone());
        }
        let Functions { by_name, unavailable, .. } = &mut functions;
        unavailable.retain(|name| !by_name.contains_key(name));
        unavailable.sort_unstable();
        unavailable.dedup();
        functions
    }

    fn add(&mut self, server: &Arc<str>, tool: &Arc<UpstreamTool>) {
        let name = qualified_name(server, &tool.name);
        let target = Target { server: server.clone(), tool: tool.name.clone() };
        if let Some(first) = self.by_name.get(&name) {
            self.clashes.push(Clash { name, tools: [first.target.clone(), target] });
            return;
        }
        let (params, required) = parameters(tool);
        self.by_name.insert(name.clone(), Function { name, params, required, tool: tool.clone(), target });
    }

    /// The version of the catalog.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The tool that a function calls.
    pub fn target(&self, name: &str) -> Option<&Target> {
        self.get(name).map(|function| &function.target)
    }

    /// Finds a function by name.
    pub fn get(&self, name: &str) -> Option<&Function> {
        self.by_name.get(name)
    }

    /// Names of the functions that contain each of these words in name or description, ignoring case.
    pub fn search(&self, words: &str) -> Vec<&str> {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let has_all = |function: &&Function| {
            let text = searched(function).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        self.iter()
            .filter(|function| words.is_empty() || has_all(function))
            .map(|function| &*function.name)
            .collect()
    }

    /// All functions in name order.
    pub fn iter(&self) -> impl Iterator<Item = &Function> {
        self.by_name.values()
    }

    /// The functions and the names of the others, as the process of a script reads them.
    pub(crate) fn table(&self) -> Value {
        json!({ "functions": self.iter().collect::<Vec<_>>(), "unavailable": self.unavailable })
    }

    /// Names that a script may know but cannot use, sorted.
    pub fn unavailable(&self) -> &[String] {
        &self.unavailable
    }

    /// Tools that cannot be called, because two have the same name.
    pub fn clashes(&self) -> &[Clash] {
        &self.clashes
    }
}

/// Caches the functions of the current catalog, once for each version.
#[derive(Debug, Default)]
pub struct FunctionTable {
    last: Mutex<Arc<Functions>>,
}

impl FunctionTable {
    /// The functions of this catalog.
    pub fn for_catalog(&self, catalog: &Catalog) -> Arc<Functions> {
        let mut last = self.last.locked();
        // Version 0 has no tool list, and the initial functions are empty too.
        if last.version != catalog.version() {
            *last = Arc::new(Functions::from_catalog(catalog));
            for clash in &last.clashes {
                tracing::warn!("{clash}");
            }
        }
        last.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptc_calls::policy::{NameRule, ToolPattern, ToolPolicy};
    use ptc_calls::tools::{SharedCatalog, SnapshotMode, ToolList};
    use serde_json::json;

    fn list(server: &str, names: &[&str], policy: &ToolPolicy) -> ToolList {
        let tools = names.iter().map(|name| {
            let schema = json!({ "required": ["b"], "properties": {
                "a": { "type": ["integer", "null"], "description": "How\nmany" }, "b": { "type": "string" } } });
            serde_json::from_value(json!({ "name": name, "description": "Does it", "inputSchema": schema })).unwrap()
        });
        policy.admit(server, tools.collect::<Vec<UpstreamTool>>())
    }

    #[test]
    fn one_function_a_tool_and_none_for_two() {
        let catalog = SharedCatalog::new([("a-b".into(), None), ("a_b".into(), None)]);
        let blocked = NameRule::Block(vec![ToolPattern::new("gone")]);
        let policy = ToolPolicy::default().with_rule(blocked);
        catalog.publish("a-b", list("a-b", &["x", "y.z", "gone"], &policy), SnapshotMode::Live);
        catalog.publish("a_b", list("a_b", &["x"], &policy), SnapshotMode::Live);
        let table = FunctionTable::default();
        let functions = table.for_catalog(&catalog.snapshot());
        let names: Vec<&str> = functions.iter().map(|function| function.name.as_str()).collect();
        assert_eq!(names, ["mcp__a_b__y_z"]);
        assert_eq!(functions.unavailable(), ["mcp__a_b__gone", "mcp__a_b__x"]);
        assert!(
            functions.clashes()[0]
                .to_string()
                .starts_with("a-b/x and a_b/x would both be the function mcp__a_b__x")
        );
        let only = functions.iter().next().unwrap();
        assert_eq!((&only.params[..], only.required), (&["b".to_owned(), "a".to_owned()][..], 1));
        let help =
            "await mcp__a_b__y_z(b: str, a: int | None = None)\n    \n    Does it\n    \n    a: How many";
        assert_eq!(only.help(), help);
        assert!(Arc::ptr_eq(&functions, &table.for_catalog(&catalog.snapshot())));
        catalog.outdate("a_b");
        assert!(!Arc::ptr_eq(&functions, &table.for_catalog(&catalog.snapshot())));
    }
}
