//! Parses the argument signatures that `doc` shows, and makes values from them without any other knowledge.

use proptest::strategy::{Strategy, ValueTree};
use proptest::string::string_regex;
use proptest::test_runner::TestRunner;
use regex::Regex;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// A type of a signature.
#[derive(Debug)]
#[expect(missing_docs, reason = "the names of the parts say it")]
pub enum Type {
    /// One of these.
    Union(Vec<Type>),
    /// Exactly this value.
    Literal(Value),
    /// A map: its members, the type of other members, and constraints between members.
    Map { members: Vec<Member>, others: Option<Box<Type>>, facts: Vec<String> },
    /// A list of one type, or a tuple.
    List { items: Vec<Type>, facts: Vec<String> },
    /// A type of which the signature leaves something out: members, constraints or the default.
    Cut(Box<Type>),
    /// A type that the signature describes elsewhere, by its name.
    Named(String),
    /// Anything else, by its name.
    Word { name: String, facts: Vec<String> },
}

/// A signature with the types that it names.
#[derive(Debug)]
pub struct Signature {
    of: Type,
    types: Types,
}

type Types = HashMap<String, Type>;

/// Depth at which only the required members of a type are made.
const DEEPEST: usize = 4;

/// A member of a map.
#[derive(Debug)]
pub struct Member {
    name: String,
    of: Type,
    is_required: bool,
    default: Option<Value>,
}

/// Which values to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Only the required members.
    Least,
    /// All members; the first of alternatives.
    First,
    /// All members; the last of alternatives.
    Last,
}

/// Parses a signature and its types; panics if it does not follow the grammar.
pub fn read(text: &str) -> Signature {
    let (signature, rest) = read_start(text);
    assert!(rest.is_empty(), "more than a signature: {rest:?} in {text}");
    signature
}

/// Parses the signature at the start of a text. Types follow it on the same line, or below it.
pub fn read_start(text: &str) -> (Signature, &str) {
    let mut reader = Reader { rest: text };
    let of = reader.union();
    let mut types = Types::new();
    while reader.takes(" where ") || reader.takes("; ") || reader.takes("\n  ") {
        let name = reader.name();
        assert!(reader.takes(" = "), "no definition of {name} in {text}");
        types.insert(name, reader.union());
    }
    (Signature { of, types }, reader.rest)
}

/// The signature of a tool's arguments in its documentation.
pub fn arguments(documentation: &str) -> Option<&str> {
    let (_, rest) = documentation.split_once("\nArgs: ")?;
    rest.split_once("\nRequired args: ").map(|(signature, _)| signature)
}

impl Signature {
    /// Arguments of this signature.
    pub fn value(&self, style: Style) -> Value {
        self.of.value(style, &self.types, 0)
    }
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn takes(&mut self, word: &str) -> bool {
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn union(&mut self) -> Type {
        let mut kinds = vec![self.single()];
        while self.takes("|") {
            if self.takes("…") {
                self.more_values();
            } else {
                kinds.push(self.single());
            }
        }
        if kinds.len() == 1 { kinds.remove(0) } else { Type::Union(kinds) }
    }

    /// The number of values that are not shown: `…14 more`.
    fn more_values(&mut self) {
        let count = self.name();
        let is_count = !count.is_empty() && count.chars().all(|c| c.is_ascii_digit());
        assert!(is_count && self.takes(" more"), "no number of other values: {count}{:?}", self.rest);
    }

    fn single(&mut self) -> Type {
        let of = self.whole();
        if self.takes("…") { Type::Cut(Box::new(of)) } else { of }
    }

    fn whole(&mut self) -> Type {
        if self.takes("{") {
            return self.map();
        }
        if self.takes("[") {
            let mut items = vec![self.union()];
            while self.takes(", ") {
                items.push(self.union());
            }
            assert!(self.takes("]"), "a list without end: {:?}", self.rest);
            return Type::List { items, facts: self.facts() };
        }
        if self.takes("const<") {
            // A JSON parser would require a blank or a comma after these words.
            let word = ["true", "false", "null"].into_iter().find(|word| self.takes(word));
            let value = match word {
                Some(word) => serde_json::from_str(word).expect("JSON"),
                None => self.json(),
            };
            assert!(self.takes(">"), "a constant without end: {:?}", self.rest);
            return Type::Literal(value);
        }
        if self.rest.starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
            return Type::Literal(self.json());
        }
        let name = self.name();
        match &*name {
            "true" | "false" => Type::Literal(json!(name == "true")),
            "" => panic!("no type: {:?}", self.rest),
            _ if name.starts_with(|c: char| c.is_ascii_uppercase()) => Type::Named(name),
            _ => Type::Word { name, facts: self.facts() },
        }
    }

    fn name(&mut self) -> String {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = self.rest.find(|c| !is_of_name(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        name.to_owned()
    }

    fn map(&mut self) -> Type {
        let (mut members, mut others) = (Vec::new(), None);
        while !self.takes("}") {
            self.takes(" ");
            if self.takes("* ") {
                others = Some(Box::new(self.union()));
                continue;
            }
            if self.takes("… (") {
                let end = self.rest.find(')').expect("an end of the names");
                self.rest = &self.rest[end + 1..];
                continue;
            }
            if self.takes("…") {
                continue;
            }
            let name = if self.takes(":") {
                let end = self.rest.find(' ').expect("a type after the name");
                let (name, rest) = self.rest.split_at(end);
                self.rest = rest;
                name.to_owned()
            } else {
                self.json().as_str().expect("a name").to_owned()
            };
            assert!(self.takes(" "), "no type of {name}");
            let of = self.union();
            let is_required = !self.takes("?");
            let default = self.takes(" = ").then(|| self.json());
            members.push(Member { name, of, is_required, default });
        }
        Type::Map { members, others, facts: self.facts() }
    }

    fn json(&mut self) -> Value {
        // A number ends where its characters do; a JSON parser would require a blank or a comma there.
        if self.rest.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            let is_of_number = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
            let end = self.rest.find(|c| !is_of_number(c)).unwrap_or(self.rest.len());
            let (number, rest) = self.rest.split_at(end);
            self.rest = rest;
            return serde_json::from_str(number).expect("a number");
        }
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter();
        let value = values.next().expect("a value").expect("JSON");
        self.rest = &self.rest[values.byte_offset()..];
        value
    }

    /// The constraints in `<…>`.
    fn facts(&mut self) -> Vec<String> {
        if !self.takes("<") {
            return Vec::new();
        }
        let mut facts = Vec::new();
        loop {
            let word = ["not ", "unlike "].into_iter().find(|word| self.takes(word));
            if word.is_some() || self.rest.starts_with('"') {
                facts.push(word.unwrap_or_default().to_owned() + &self.json().to_string());
            } else {
                let end = self.rest.find([',', '>', '|']).expect("an end");
                let (fact, rest) = self.rest.split_at(end);
                facts.push(fact.to_owned());
                self.rest = rest;
            }
            if self.takes(">") {
                return facts;
            }
            assert!(self.takes(", ") || self.takes("|"), "{:?}", self.rest);
        }
    }
}

impl Type {
    /// True if the signature does not say all that a value needs.
    fn is_cut(&self) -> bool {
        match self {
            Type::Cut(_) => true,
            Type::Union(kinds) => kinds.iter().any(Type::is_cut),
            Type::List { items, .. } => items.iter().any(Type::is_cut),
            Type::Map { members, .. } => {
                members.iter().any(|member| member.is_required && member.of.is_cut())
            }
            _ => false,
        }
    }

    /// A value of this type; `depth`: how many named types are around it.
    fn value(&self, style: Style, types: &Types, depth: usize) -> Value {
        match self {
            Type::Union(kinds) if style == Style::Last => kinds[kinds.len() - 1].value(style, types, depth),
            Type::Union(kinds) => {
                let is_short = |kind: &&Type| style != Style::Least || !matches!(kind, Type::Named(_));
                kinds.iter().find(is_short).unwrap_or(&kinds[0]).value(style, types, depth)
            }
            Type::Literal(value) => value.clone(),
            Type::Map { members, others, facts } => {
                // Members of which one set is required.
                let with: Vec<&str> = facts
                    .iter()
                    .find_map(|fact| fact.strip_prefix("with "))
                    .unwrap_or_default()
                    .split(' ')
                    .collect();
                let is_wanted = |member: &&Member| {
                    let is_named = with.iter().any(|name| name.trim_start_matches(':') == member.name);
                    // The signature does not say what such a member contains.
                    let is_known = style != Style::Least && !member.of.is_cut();
                    is_known || member.is_required || is_named
                };
                let value = |member: &Member| match &member.default {
                    Some(default) if style == Style::First => default.clone(),
                    _ => member.of.value(style, types, depth),
                };
                let mut map: Map<String, Value> = members
                    .iter()
                    .filter(is_wanted)
                    .map(|member| (member.name.clone(), value(member)))
                    .collect();
                let least = bounds(facts).0.unwrap_or(0.0) as usize;
                for member in members.iter().filter(|member| !member.is_required) {
                    if map.len() < least {
                        map.insert(member.name.clone(), value(member));
                    }
                }
                if let Some(others) = others.as_ref().filter(|_| style != Style::Least) {
                    map.insert("other".to_owned(), others.value(style, types, depth));
                }
                map.into()
            }
            Type::List { items, facts } => {
                let (least, most) = bounds(facts);
                if items.len() > 1 {
                    return items.iter().map(|item| item.value(style, types, depth)).collect();
                }
                let wanted = if style == Style::Least { 0.0 } else { 1.0 };
                let count = f64::max(wanted, least.unwrap_or(0.0)).min(most.unwrap_or(f64::MAX));
                (0..count as usize).map(|_| items[0].value(style, types, depth)).collect()
            }
            Type::Named(name) => {
                let of = types.get(name).unwrap_or_else(|| panic!("no definition of {name}"));
                of.value(if depth < DEEPEST { style } else { Style::Least }, types, depth + 1)
            }
            Type::Cut(of) => of.value(style, types, depth),
            Type::Word { name, facts } => {
                let is_refused = |value: &Value| facts.iter().any(|fact| *fact == format!("not {value}"));
                match word(name, facts) {
                    value if !is_refused(&value) => value,
                    Value::Number(number) => json!(number.as_f64().unwrap_or(0.0) as i64 + 1),
                    Value::Bool(value) => json!(!value),
                    other => json!(format!("{}!", other.as_str().unwrap_or_default())),
                }
            }
        }
    }
}

/// `least..most` among the constraints.
fn bounds(facts: &[String]) -> (Option<f64>, Option<f64>) {
    let range = facts.iter().filter(|fact| !fact.starts_with('"')).find_map(|fact| fact.split_once(".."));
    let (least, most) = range.unwrap_or_default();
    (least.parse().ok(), most.parse().ok())
}

fn word(name: &str, facts: &[String]) -> Value {
    let (least, most) = bounds(facts);
    let fact = |word: &str| facts.iter().find_map(|fact| fact.strip_prefix(word)?.trim().parse::<f64>().ok());
    match name {
        "boolean" => json!(true),
        "null" => Value::Null,
        "integer" | "number" => {
            let above = fact("above ").map(|limit| limit + 1.0);
            let below = fact("below ").map(|limit| limit - 1.0);
            let most = most.or(below);
            let mut number =
                above.into_iter().chain(least).reduce(f64::max).unwrap_or(1.0).min(most.unwrap_or(f64::MAX));
            if let Some(step) = fact("times ") {
                number = (number / step).ceil() * step;
            }
            if number.fract() == 0.0 { json!(number as i64) } else { json!(number) }
        }
        "string" => {
            let pattern = facts.iter().find(|fact| fact.starts_with('"'));
            let pattern = pattern.map(|text| serde_json::from_str::<String>(text).expect("a pattern"));
            let is_format = |fact: &&String| {
                !["\"", "not ", "unlike "].iter().any(|start| fact.starts_with(start)) && !fact.contains("..")
            };
            let format = facts.iter().find(is_format).map_or("", String::as_str);
            let length = least.unwrap_or(0.0) as usize..=most.unwrap_or(f64::MAX) as usize;
            json!(text(pattern.as_deref(), format, length))
        }
        "array" => json!([]),
        "object" => json!({}),
        "any" => json!("anything"),
        other => panic!("no value of {other}"),
    }
}

/// Texts of formats. Some of them have patterns that people write instead.
const FORMATS: [(&str, &str); 19] = [
    ("date-time", "2026-01-02T03:04:05Z"),
    ("date", "2026-01-02"),
    ("time", "10:30:00Z"),
    ("uri", "https://example.com/a"),
    ("url", "https://example.com/a"),
    ("email", "ada@example.com"),
    ("uuid", "123e4567-e89b-12d3-a456-426614174000"),
    ("", "main"),
    ("", "10:30"),
    ("", "12"),
    ("", "a b"),
    ("uri-reference", "/a"),
    ("hostname", "example.com"),
    ("ipv4", "192.0.2.1"),
    ("ipv6", "2001:db8::1"),
    ("cidrv4", "192.0.2.0/24"),
    ("cidrv6", "2001:db8::/32"),
    ("duration", "P1D"),
    ("json", "{}"),
];

/// A text of this pattern or format, and of this length.
fn text(pattern: Option<&str>, format: &str, length: RangeInclusive<usize>) -> String {
    let Some(pattern) = pattern else {
        let known = FORMATS.iter().find(|(name, _)| *name == format && !name.is_empty());
        let text = known.map_or("text", |(_, text)| text).to_owned();
        // A text of a format is not padded: that would be another one.
        let lacks = if known.is_some() { 0 } else { length.start().saturating_sub(text.len()) };
        return (text + &"x".repeat(lacks)).chars().take(*length.end()).collect();
    };
    let regex = Regex::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    let fits = |text: &str| regex.is_match(text) && length.contains(&text.chars().count());
    if let Some((_, known)) = FORMATS.iter().find(|(_, text)| fits(text)) {
        return (*known).to_owned();
    }
    let text = text_like(pattern);
    let ends = text.chars().next_back().into_iter().chain(text.chars().next());
    let longer = ends.chain(['x', 'a', '0']).map(|pad| {
        let lacks = length.start().saturating_sub(text.chars().count());
        text.clone() + &String::from(pad).repeat(lacks)
    });
    longer.into_iter().find(|longer| fits(longer)).unwrap_or(text)
}

/// A text that a pattern matches, the same one each time.
fn text_like(pattern: &str) -> String {
    let body = pattern.strip_prefix('^').unwrap_or(pattern);
    let body = body.strip_suffix('$').unwrap_or(body);
    let texts = string_regex(body).unwrap_or_else(|error| panic!("a text like {pattern}: {error}"));
    let text =
        texts.new_tree(&mut TestRunner::deterministic()).expect("texts are made without rejecting any");
    text.current()
}
