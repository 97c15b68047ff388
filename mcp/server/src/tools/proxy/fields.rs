//! Defines the arguments of `proxy-dispatch`, a tool that finds and calls the tools of all servers, in one table from
//! which the JSON Schema and the argument checks are made.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The action of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProxyAction {
    List,
    Search,
    Call,
    ReadResult,
}

impl ProxyAction {
    pub(super) const ALL: [ProxyAction; 4] =
        [ProxyAction::List, ProxyAction::Search, ProxyAction::Call, ProxyAction::ReadResult];

    /// Its name on the wire.
    pub(super) const fn name(self) -> &'static str {
        match self {
            ProxyAction::List => "list",
            ProxyAction::Search => "search",
            ProxyAction::Call => "call",
            ProxyAction::ReadResult => "readresult",
        }
    }
}

/// The type of a field.
#[derive(Clone, Copy, PartialEq)]
enum Holds {
    Text,
    Flag,
    /// A whole number of at least this.
    Number(u64),
    Object,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// Operations on a spilled result; the first is the usual one.
const OPS: [&str; 6] = ["stat", "head", "tail", "slice", "grep", "read"];

struct Field {
    name: &'static str,
    holds: Holds,
    acts: &'static [ProxyAction],
    /// Operations of `readresult` that take the field; empty for all.
    ops: &'static [&'static str],
    is_required: bool,
    about: &'static str,
}

const fn field(name: &'static str, holds: Holds, acts: &'static [ProxyAction], about: &'static str) -> Field {
    Field { name, holds, acts, ops: &[], is_required: false, about }
}

const fn required(field: Field) -> Field {
    Field { is_required: true, ..field }
}

/// A field of `readresult` for these operations only.
const fn for_ops(
    ops: &'static [&'static str],
    name: &'static str,
    holds: Holds,
    about: &'static str,
) -> Field {
    Field { ops, ..field(name, holds, &[ProxyAction::ReadResult], about) }
}

#[rustfmt::skip]
const FIELDS: &[Field] = &[
    field("connection", Holds::Text, &[ProxyAction::List, ProxyAction::Search, ProxyAction::Call], "Alias (c1), id or name of one connection; call needs it only for a tool that several have"),
    field("includeTools", Holds::Flag, &[ProxyAction::List], "With tools (default true)"),
    field("includeInputSchema", Holds::Flag, &[ProxyAction::List, ProxyAction::Search], "With input schemas (default false)"),
    field("includeAnnotations", Holds::Flag, &[ProxyAction::List, ProxyAction::Search], "With annotations (default true)"),
    required(field("query", Holds::Text, &[ProxyAction::Search], "Words to look for in names and descriptions")),
    field("limit", Holds::Number(1), &[ProxyAction::Search], "Most results (default 10)"),
    required(field("tool", Holds::Text, &[ProxyAction::Call], "Name of the tool to call")),
    field("arguments", Holds::Object, &[ProxyAction::Call], "Arguments of the tool"),
    field("argumentsFile", Holds::Text, &[ProxyAction::Call], "Instead of arguments: a JSON file that holds them, or the resultFile of an earlier call"),
    field("resultToFile", Holds::Flag, &[ProxyAction::Call], "Keep the result in a file and show its size, keys and beginning"),
    field("resultSizeThreshold", Holds::Number(0), &[ProxyAction::Call], "Bytes beyond which the result is kept in a file (0 = never), in place of the server's own threshold"),
    required(field("resultFile", Holds::Text, &[ProxyAction::ReadResult], "The resultFile of a call")),
    field("op", Holds::Choice(&OPS), &[ProxyAction::ReadResult], "stat (default): bytes, lines, tokens; head, tail, slice, grep: lines; read: all, so look at stat first"),
    for_ops(&["head", "tail"], "lines", Holds::Number(1), "How many (default 50)"),
    for_ops(&["slice"], "fromLine", Holds::Number(1), "First line, from 1"),
    for_ops(&["slice"], "toLine", Holds::Number(1), "Last line, included"),
    required(for_ops(&["grep"], "pattern", Holds::Text, "Regular expression; case does not count")),
    for_ops(&["grep"], "context", Holds::Number(0), "Lines around each match (default 0)"),
    for_ops(&["head", "tail", "slice", "grep", "read"], "maxBytes", Holds::Number(0), "Cut the text (0 = do not)"),
];

/// Checked fields of one call: their names and types fit its action.
#[derive(Debug)]
pub(super) struct CallFields {
    pub(super) act: ProxyAction,
    /// The operation on a spilled result.
    pub(super) op: &'static str,
    values: BTreeMap<String, Box<RawValue>>,
}

impl CallFields {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// The message about the fault, with the fields that the action takes.
    pub(super) fn read(text: &str) -> Result<CallFields, String> {
        let mut values: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text)
            .map_err(|error| format!("the arguments are no JSON object ({error}); {}", all_actions()))?;
        // Models write null for absent fields.
        values.retain(|_, value| value.get() != "null");
        let action =
            values.remove("action").ok_or_else(|| format!("`action` is missing; {}", all_actions()))?;
        let name: String = serde_json::from_str(action.get())
            .map_err(|_| format!("`action` is no string; {}", all_actions()))?;
        let act = ProxyAction::ALL.into_iter().find(|act| act.name() == name);
        let act = act.ok_or_else(|| format!("there is no action {name:?}; {}", all_actions()))?;
        let op = values.get("op").and_then(|op| serde_json::from_str::<String>(op.get()).ok());
        let op = op.and_then(|op| OPS.into_iter().find(|known| *known == op)).unwrap_or(OPS[0]);
        for (name, value) in &values {
            let field =
                fields_for(act).find(|field| field.name == *name).ok_or_else(|| unknown(act, name))?;
            field.holds.check(value).map_err(|what| format!("`{name}` must be {what}; {}", takes(act)))?;
        }
        if let Some(field) = fields_for(act).find(|field| values.contains_key(field.name) && !field.is_of(op))
        {
            let ops = field.ops.join(" and ");
            return Err(format!("`{}` belongs to op {ops}, not to op {op}; {}", field.name, takes(act)));
        }
        if values.contains_key("arguments") && values.contains_key("argumentsFile") {
            return Err(format!("`arguments` and `argumentsFile` are alternatives; {}", takes(act)));
        }
        match fields_for(act)
            .find(|field| field.is_required && field.is_of(op) && !values.contains_key(field.name))
        {
            Some(field) => Err(format!("`{}` is missing; {}", field.name, takes(act))),
            None => Ok(CallFields { act, op, values }),
        }
    }

    /// The JSON text of a field.
    pub(super) fn raw(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|value| value.get())
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        serde_json::from_str(self.raw(name)?).ok()
    }
}

impl Field {
    fn is_of(&self, op: &str) -> bool {
        self.ops.is_empty() || self.ops.contains(&op)
    }
}

impl Holds {
    fn check(self, value: &RawValue) -> Result<(), String> {
        let text = value.get();
        let (fits, what) = match self {
            Holds::Text => (text.starts_with('"'), "a string".to_owned()),
            Holds::Flag => (matches!(text, "true" | "false"), "true or false".to_owned()),
            Holds::Object => (text.starts_with('{'), "an object".to_owned()),
            Holds::Choice(words) => {
                let word = serde_json::from_str::<String>(text);
                let fits = word.is_ok_and(|word| words.contains(&word.as_str()));
                (fits, format!("one of {}", words.join(", ")))
            }
            Holds::Number(least) => {
                let fits = text.parse::<u64>().is_ok_and(|number| number >= least);
                (fits, format!("a whole number of at least {least}"))
            }
        };
        if fits { Ok(()) } else { Err(what) }
    }

    fn schema(self, about: &str) -> Value {
        match self {
            Holds::Text => json!({ "type": "string", "description": about }),
            Holds::Flag => json!({ "type": "boolean", "description": about }),
            Holds::Object => json!({ "type": "object", "description": about }),
            Holds::Choice(words) => json!({ "type": "string", "enum": words, "description": about }),
            Holds::Number(least) => json!({ "type": "integer", "minimum": least, "description": about }),
        }
    }
}

fn fields_for(act: ProxyAction) -> impl Iterator<Item = &'static Field> {
    FIELDS.iter().filter(move |field| field.acts.contains(&act))
}

fn all_actions() -> String {
    let each: Vec<String> = ProxyAction::ALL.into_iter().map(takes).collect();
    each.join("; ")
}

fn takes(act: ProxyAction) -> String {
    let mut text = format!("{} takes ", act.name());
    for (at, field) in fields_for(act).enumerate() {
        let optional = if field.is_required { "" } else { "?" };
        let _ = write!(text, "{}{}{optional}", if at == 0 { "" } else { ", " }, field.name);
        if !field.ops.is_empty() {
            let _ = write!(text, " ({})", field.ops.join(", "));
        }
    }
    text
}

fn unknown(act: ProxyAction, name: &str) -> String {
    let others = FIELDS.iter().find(|field| field.name == name);
    match others {
        Some(field) => {
            let acts: Vec<&str> = field.acts.iter().map(|act| act.name()).collect();
            format!("`{name}` belongs to {}, not to {}; {}", acts.join(" and "), act.name(), takes(act))
        }
        None => format!("there is no field `{name}`; {}", takes(act)),
    }
}

/// The JSON Schema of the arguments, with a closed variant per action. The variants use `if`, because some
/// clients refuse schemas with `oneOf`, `anyOf` or `allOf` at their top.
pub(super) fn schema() -> Value {
    let mut properties = Map::new();
    let names: Vec<&str> = ProxyAction::ALL.iter().map(|act| act.name()).collect();
    properties.insert("action".into(), json!({ "type": "string", "enum": names }));
    for field in FIELDS {
        properties.insert(field.name.into(), field.holds.schema(field.about));
    }
    let variants: Map<String, Value> =
        ProxyAction::ALL.into_iter().map(|act| (act.name().to_owned(), variant(act))).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "required": ["action"] });
    let reference = |act: ProxyAction| json!({ "$ref": format!("#/$defs/{}", act.name()) });
    let [rest @ .., last] = ProxyAction::ALL;
    let branches = rest.into_iter().rev().fold(reference(last), |otherwise, act| {
        let is_it = json!({ "properties": { "action": { "const": act.name() } } });
        json!({ "if": is_it, "then": reference(act), "else": otherwise })
    });
    if let (Value::Object(schema), Value::Object(branches)) = (&mut schema, branches) {
        schema.extend(branches);
        schema.insert("$defs".into(), variants.into());
    }
    schema
}

fn variant(act: ProxyAction) -> Value {
    let mut properties = Map::new();
    properties.insert("action".into(), json!({ "const": act.name() }));
    properties.extend(fields_for(act).map(|field| (field.name.to_owned(), Value::Bool(true))));
    let required =
        fields_for(act).filter(|field| field.is_required && field.ops.is_empty()).map(|field| field.name);
    let required: Vec<&str> = std::iter::once("action").chain(required).collect();
    json!({ "properties": properties, "required": required, "additionalProperties": false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(arguments: &Value) -> String {
        CallFields::read(&arguments.to_string()).expect_err("it is wrong")
    }

    #[test]
    fn what_is_wrong_is_told_with_what_the_action_takes() {
        let list = "list takes connection?, includeTools?, includeInputSchema?, includeAnnotations?";
        let search = "search takes connection?, includeInputSchema?, includeAnnotations?, query, limit?";
        let table = [
            (
                json!({ "action": "list", "query": "x" }),
                format!("`query` belongs to search, not to list; {list}"),
            ),
            (
                json!({ "action": "list", "includeTools": "yes" }),
                format!("`includeTools` must be true or false; {list}"),
            ),
            (json!({ "action": "search" }), format!("`query` is missing; {search}")),
            (
                json!({ "action": "search", "query": "x", "limit": 0 }),
                format!("`limit` must be a whole number of at least 1; {search}"),
            ),
            (
                json!({ "action": "search", "query": "x", "many": 1 }),
                format!("there is no field `many`; {search}"),
            ),
        ];
        for (arguments, message) in table {
            assert_eq!(wrong(&arguments), message);
        }
        for arguments in [json!({}), json!({ "action": "run" }), json!({ "action": 1 }), json!([])] {
            let message = wrong(&arguments);
            assert!(message.contains(list) && message.contains(search), "{message}");
        }
        let read = "readresult takes resultFile, op?, lines? (head, tail), fromLine? (slice), toLine? (slice), \
            pattern (grep), context? (grep), maxBytes? (head, tail, slice, grep, read)";
        let call =
            "call takes connection?, tool, arguments?, argumentsFile?, resultToFile?, resultSizeThreshold?";
        let table = [
            (json!({ "lines": 1 }), format!("`lines` belongs to op head and tail, not to op stat; {read}")),
            (json!({ "op": "grep" }), format!("`pattern` is missing; {read}")),
            (
                json!({ "op": "cat" }),
                format!("`op` must be one of stat, head, tail, slice, grep, read; {read}"),
            ),
            (json!({ "tool": "t" }), format!("`tool` belongs to call, not to readresult; {read}")),
        ];
        for (mut arguments, message) in table {
            arguments["action"] = "readresult".into();
            arguments["resultFile"] = "r1.json".into();
            assert_eq!(wrong(&arguments), message);
        }
        let both = json!({ "action": "call", "tool": "t", "arguments": {}, "argumentsFile": "f" });
        assert_eq!(wrong(&both), format!("`arguments` and `argumentsFile` are alternatives; {call}"));
        let given =
            CallFields::read(r#"{"action":"call","tool":"t","arguments":{"n":1e400},"connection":null}"#);
        let given = given.expect("it is right");
        assert_eq!(
            (given.act, given.raw("arguments"), given.text("connection")),
            (ProxyAction::Call, Some(r#"{"n":1e400}"#), None)
        );
    }

    #[test]
    fn the_schema_has_a_closed_variant_for_each_action() {
        let schema = schema();
        let mut branch = &schema;
        for act in ProxyAction::ALL {
            let variant = &schema["$defs"][act.name()];
            assert_eq!(variant["properties"]["action"]["const"], act.name());
            assert_eq!(variant["additionalProperties"], false);
            for field in fields_for(act) {
                assert!(
                    variant["properties"].get(field.name).is_some()
                        && schema["properties"].get(field.name).is_some()
                );
            }
            let reference = branch.get("then").unwrap_or(branch);
            assert_eq!(reference["$ref"], format!("#/$defs/{}", act.name()));
            branch = &branch["else"];
        }
        for refused in ["oneOf", "anyOf", "allOf"] {
            assert!(schema.get(refused).is_none());
        }
    }
}
