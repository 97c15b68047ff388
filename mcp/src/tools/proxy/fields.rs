//! The fields of the tool's arguments: one table, of which the schema is made and by which a call is checked.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    List,
    Search,
    Call,
}

impl Act {
    pub(super) const ALL: [Act; 3] = [Act::List, Act::Search, Act::Call];

    /// Its name on the wire.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Act::List => "list",
            Act::Search => "search",
            Act::Call => "call",
        }
    }
}

/// What a field holds.
#[derive(Clone, Copy, PartialEq)]
enum Holds {
    Text,
    Flag,
    /// A whole number of at least this.
    Number(u64),
    Object,
}

struct Field {
    name: &'static str,
    holds: Holds,
    acts: &'static [Act],
    is_required: bool,
    about: &'static str,
}

const fn field(name: &'static str, holds: Holds, acts: &'static [Act], about: &'static str) -> Field {
    Field { name, holds, acts, is_required: false, about }
}

const fn required(field: Field) -> Field {
    Field { is_required: true, ..field }
}

const FIELDS: &[Field] = &[
    field(
        "connection",
        Holds::Text,
        &[Act::List, Act::Search, Act::Call],
        "Alias (c1), id or name of one connection; call needs it only for a tool that several have",
    ),
    field("includeTools", Holds::Flag, &[Act::List], "With tools (default true)"),
    field("includeInputSchema", Holds::Flag, &[Act::List, Act::Search], "With input schemas (default false)"),
    field("includeAnnotations", Holds::Flag, &[Act::List, Act::Search], "With annotations (default true)"),
    required(field("query", Holds::Text, &[Act::Search], "Words to look for in names and descriptions")),
    field("limit", Holds::Number(1), &[Act::Search], "Most results (default 10)"),
    required(field("tool", Holds::Text, &[Act::Call], "Name of the tool to call")),
    field("arguments", Holds::Object, &[Act::Call], "Arguments of the tool"),
];

/// The fields of one call, whose names and types fit its action.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) act: Act,
    values: BTreeMap<String, Box<RawValue>>,
}

impl Given {
    /// Reads arguments as they came.
    ///
    /// # Errors
    /// What is wrong, with the fields that the action takes.
    pub(super) fn read(text: &str) -> Result<Given, String> {
        let mut values: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text)
            .map_err(|error| format!("the arguments are no JSON object ({error}); {}", all_actions()))?;
        // As good as absent, and models write it.
        values.retain(|_, value| value.get() != "null");
        let action =
            values.remove("action").ok_or_else(|| format!("`action` is missing; {}", all_actions()))?;
        let name: String = serde_json::from_str(action.get())
            .map_err(|_| format!("`action` is no string; {}", all_actions()))?;
        let act = Act::ALL.into_iter().find(|act| act.name() == name);
        let act = act.ok_or_else(|| format!("there is no action {name:?}; {}", all_actions()))?;
        for (name, value) in &values {
            let field = of(act).find(|field| field.name == *name).ok_or_else(|| unknown(act, name))?;
            field.holds.check(value).map_err(|what| format!("`{name}` must be {what}; {}", takes(act)))?;
        }
        match of(act).find(|field| field.is_required && !values.contains_key(field.name)) {
            Some(field) => Err(format!("`{}` is missing; {}", field.name, takes(act))),
            None => Ok(Given { act, values }),
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

impl Holds {
    fn check(self, value: &RawValue) -> Result<(), String> {
        let text = value.get();
        let (fits, what) = match self {
            Holds::Text => (text.starts_with('"'), "a string".to_owned()),
            Holds::Flag => (matches!(text, "true" | "false"), "true or false".to_owned()),
            Holds::Object => (text.starts_with('{'), "an object".to_owned()),
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
            Holds::Number(least) => json!({ "type": "integer", "minimum": least, "description": about }),
        }
    }
}

fn of(act: Act) -> impl Iterator<Item = &'static Field> {
    FIELDS.iter().filter(move |field| field.acts.contains(&act))
}

fn all_actions() -> String {
    let each: Vec<String> = Act::ALL.into_iter().map(takes).collect();
    each.join("; ")
}

fn takes(act: Act) -> String {
    let mut text = format!("{} takes ", act.name());
    for (at, field) in of(act).enumerate() {
        let optional = if field.is_required { "" } else { "?" };
        let _ = write!(text, "{}{}{optional}", if at == 0 { "" } else { ", " }, field.name);
    }
    text
}

fn unknown(act: Act, name: &str) -> String {
    let others = FIELDS.iter().find(|field| field.name == name);
    match others {
        Some(field) => {
            let acts: Vec<&str> = field.acts.iter().map(|act| act.name()).collect();
            format!("`{name}` belongs to {}, not to {}; {}", acts.join(" and "), act.name(), takes(act))
        }
        None => format!("there is no field `{name}`; {}", takes(act)),
    }
}

/// The JSON Schema of the arguments: a closed variant an action. They hang on `if`, because some clients refuse a
/// tool whose schema has `oneOf`, `anyOf` or `allOf` at its top.
pub(super) fn schema() -> Value {
    let mut properties = Map::new();
    let names: Vec<&str> = Act::ALL.iter().map(|act| act.name()).collect();
    properties.insert("action".into(), json!({ "type": "string", "enum": names }));
    for field in FIELDS {
        properties.insert(field.name.into(), field.holds.schema(field.about));
    }
    let variants: Map<String, Value> =
        Act::ALL.into_iter().map(|act| (act.name().to_owned(), variant(act))).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "required": ["action"] });
    let reference = |act: Act| json!({ "$ref": format!("#/$defs/{}", act.name()) });
    let [rest @ .., last] = Act::ALL;
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

fn variant(act: Act) -> Value {
    let mut properties = Map::new();
    properties.insert("action".into(), json!({ "const": act.name() }));
    properties.extend(of(act).map(|field| (field.name.to_owned(), Value::Bool(true))));
    let required = of(act).filter(|field| field.is_required).map(|field| field.name);
    let required: Vec<&str> = std::iter::once("action").chain(required).collect();
    json!({ "properties": properties, "required": required, "additionalProperties": false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(arguments: &Value) -> String {
        Given::read(&arguments.to_string()).expect_err("it is wrong")
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
        let given = Given::read(r#"{"action":"call","tool":"t","arguments":{"n":1e400},"connection":null}"#);
        let given = given.expect("it is right");
        assert_eq!(
            (given.act, given.raw("arguments"), given.text("connection")),
            (Act::Call, Some(r#"{"n":1e400}"#), None)
        );
    }

    #[test]
    fn the_schema_has_a_closed_variant_for_each_action() {
        let schema = schema();
        let mut branch = &schema;
        for act in Act::ALL {
            let variant = &schema["$defs"][act.name()];
            assert_eq!(variant["properties"]["action"]["const"], act.name());
            assert_eq!(variant["additionalProperties"], false);
            for field in of(act) {
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
