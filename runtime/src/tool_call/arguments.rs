//! Arguments of a call as JSON text.
//!
//! Keyword keys become their names, with `-` turned into `_` where that is how the tool's schema spells
//! them; string keys pass unchanged, and so does whatever the schema says nothing about. The walk keeps its own stack, pays fuel for every node and
//! asks for memory before the text grows, so shared and deep structures end in a typed fault.

use super::{ParsedCall, fault};
use crate::upstream::Tool;
use ptc_vm::map::MapNode;
use ptc_vm::vector::VectorNode;
use ptc_vm::{Context, Fault, Value};
use serde_json::Value as Json;
use std::collections::HashSet;
use std::rc::Rc;

/// Text written between two looks at the memory limit.
const STEP: usize = 4096;

/// A container being written.
enum Frame<'s> {
    Map { node: Rc<MapNode>, order: Vec<usize>, next: usize, schema: Option<&'s Json> },
    List { node: Items, next: usize, schema: Option<&'s Json> },
}

/// The members of a list or set.
enum Items {
    Vector(Rc<VectorNode>),
    Set(Vec<Value>),
}

impl Items {
    fn get(&self, at: usize) -> Option<Value> {
        match self {
            Items::Vector(node) => node.get(at),
            Items::Set(members) => members.get(at).cloned(),
        }
    }
}

struct Writer<'s> {
    out: Vec<u8>,
    reserved: usize,
    frames: Vec<Frame<'s>>,
}

/// Encodes the argument map of `call`. `tool` is its listing, when that is known.
pub(crate) fn encode(
    cx: &mut Context,
    call: &ParsedCall,
    args: &Value,
    tool: Option<&Tool>,
) -> Result<String, Box<Fault>> {
    let Value::Map(map) = args else {
        check_required(call, tool, &[])?;
        return Ok("{}".to_owned());
    };
    let schema = tool.map(|tool| &tool.input_schema);
    let mut writer = Writer { out: Vec::new(), reserved: 0, frames: Vec::new() };
    let names = writer.open_map(cx, map, schema, true).map_err(|why| rejected(call, why))?;
    check_required(call, tool, &names)?;
    writer.run(cx).map_err(|why| rejected(call, why))?;
    // Every part written is text or ASCII punctuation.
    Ok(String::from_utf8_lossy(&writer.out).into_owned())
}

/// What stops the encoding.
enum Refusal {
    /// A value without a JSON form.
    NotEncodable(String),
    /// A limit of the program.
    Limit(Box<Fault>),
}

impl From<Box<Fault>> for Refusal {
    fn from(limit: Box<Fault>) -> Refusal {
        Refusal::Limit(limit)
    }
}

fn rejected(call: &ParsedCall, refusal: Refusal) -> Box<Fault> {
    match refusal {
        Refusal::Limit(limit) => limit,
        Refusal::NotEncodable(why) => {
            let ParsedCall { server, tool } = call;
            fault(format!("tool '{server}.{tool}' rejected args: not JSON-encodable ({why})"))
        }
    }
}

fn check_required(call: &ParsedCall, tool: Option<&Tool>, given: &[String]) -> Result<(), Box<Fault>> {
    let Some(tool) = tool else { return Ok(()) };
    let missing: Vec<&str> =
        tool.required().filter(|name| !given.iter().any(|given| given == name)).collect();
    if missing.is_empty() { Ok(()) } else { Err(call.missing_arguments(&missing)) }
}

impl<'s> Writer<'s> {
    /// Starts a map; returns the names of its entries.
    fn open_map(
        &mut self,
        cx: &mut Context,
        node: &Rc<MapNode>,
        schema: Option<&'s Json>,
        top: bool,
    ) -> Result<Vec<String>, Refusal> {
        cx.tick(node.len() as u64 + 1)?;
        let mut order = Vec::with_capacity(node.len());
        let mut names = Vec::with_capacity(node.len());
        let mut seen = HashSet::with_capacity(node.len());
        for (at, entry) in node.entries().iter().enumerate() {
            let name = key_name(cx, &entry.key, schema)?;
            if top && entry.value.is_nil() && omitted_when_nil(schema, &name) {
                continue;
            }
            if !seen.insert(name.clone()) {
                return Err(Refusal::NotEncodable(format!("two keys are both called {name:?}")));
            }
            order.push(at);
            names.push(name);
        }
        self.out.push(b'{');
        self.frames.push(Frame::Map { node: node.clone(), order, next: 0, schema });
        Ok(names)
    }

    fn run(&mut self, cx: &mut Context) -> Result<(), Refusal> {
        while let Some(frame) = self.frames.last_mut() {
            match frame {
                Frame::Map { node, order, next, schema } => {
                    let Some(entry) = order.get(*next).and_then(|&at| node.entries().get(at)) else {
                        self.out.push(b'}');
                        self.frames.pop();
                        continue;
                    };
                    if *next > 0 {
                        self.out.push(b',');
                    }
                    *next += 1;
                    let schema = *schema;
                    let name = key_name(cx, &entry.key, schema)?;
                    let value = entry.value.clone();
                    write_text(&mut self.out, &name);
                    self.out.push(b':');
                    let below = schema.and_then(|schema| schema.get("properties")?.get(&name));
                    self.value(cx, &value, below)?;
                }
                Frame::List { node, next, schema } => {
                    let Some(item) = node.get(*next) else {
                        self.out.push(b']');
                        self.frames.pop();
                        continue;
                    };
                    if *next > 0 {
                        self.out.push(b',');
                    }
                    *next += 1;
                    let schema = *schema;
                    self.value(cx, &item, schema)?;
                }
            }
        }
        Ok(())
    }

    fn value(&mut self, cx: &mut Context, value: &Value, schema: Option<&'s Json>) -> Result<(), Refusal> {
        cx.tick(1)?;
        if self.out.len() >= self.reserved {
            self.reserved = self.out.len() + STEP;
            cx.reserve(self.reserved)?;
        }
        match value {
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::Bool(true) => self.out.extend_from_slice(b"true"),
            Value::Bool(false) => self.out.extend_from_slice(b"false"),
            Value::Int(number) => self.out.extend_from_slice(number.to_string().as_bytes()),
            Value::BigInt(number) => {
                cx.tick(number.get().bits())?;
                self.out.extend_from_slice(number.get().to_string().as_bytes());
            }
            Value::Float(number) => match serde_json::Number::from_f64(*number) {
                Some(number) => self.out.extend_from_slice(number.to_string().as_bytes()),
                None => return Err(Refusal::NotEncodable(format!("{number} has no JSON form"))),
            },
            Value::Str(text) => {
                cx.tick(text.as_str().len() as u64)?;
                cx.reserve(self.out.len() + text.as_str().len())?;
                write_text(&mut self.out, text.as_str());
            }
            Value::Keyword(symbol) | Value::Symbol(symbol) => write_text(&mut self.out, cx.text(*symbol)),
            Value::Map(node) => {
                self.open_map(cx, node, schema, false)?;
            }
            Value::Vector(node) => {
                self.out.push(b'[');
                let items = schema.and_then(|schema| schema.get("items"));
                self.frames.push(Frame::List { node: Items::Vector(node.clone()), next: 0, schema: items });
            }
            Value::Set(node) => {
                let members = node.ordered(cx)?.map(|entry| entry.key.clone()).collect();
                self.out.push(b'[');
                let items = schema.and_then(|schema| schema.get("items"));
                self.frames.push(Frame::List { node: Items::Set(members), next: 0, schema: items });
            }
            Value::LocalDate(date) => write_text(&mut self.out, &date.to_string()),
            Value::DateTime(date_time) => write_text(&mut self.out, &date_time.to_string()),
            Value::Duration(duration) => {
                self.out.extend_from_slice(duration.millis().to_string().as_bytes());
            }
            other => return Err(Refusal::NotEncodable(format!("a {} has no JSON form", other.type_word()))),
        }
        Ok(())
    }
}

/// The JSON name of a key.
fn key_name(cx: &Context, key: &Value, schema: Option<&Json>) -> Result<String, Refusal> {
    match key {
        Value::Str(text) => Ok(text.as_str().to_owned()),
        Value::Keyword(symbol) | Value::Symbol(symbol) => {
            let text = cx.text(*symbol);
            let has = |name: &str| schema.and_then(|schema| schema.get("properties")?.get(name)).is_some();
            if !text.contains('-') || has(text) {
                return Ok(text.to_owned());
            }
            let underscored = text.replace('-', "_");
            Ok(if has(&underscored) { underscored } else { text.to_owned() })
        }
        Value::Int(number) => Ok(number.to_string()),
        other => Err(Refusal::NotEncodable(format!("a {} cannot be an object key", other.type_word()))),
    }
}

/// True when nil for this argument means that it is left out: it is optional, and its schema does not
/// take null.
fn omitted_when_nil(schema: Option<&Json>, name: &str) -> bool {
    let Some(schema) = schema else { return false };
    let required = schema.get("required").and_then(Json::as_array);
    if required.is_some_and(|required| required.iter().any(|entry| entry == name)) {
        return false;
    }
    match schema.get("properties").and_then(|properties| properties.get(name)).and_then(|it| it.get("type")) {
        Some(Json::String(kind)) => kind != "null",
        Some(Json::Array(kinds)) => !kinds.iter().any(|kind| kind == "null"),
        _ => false,
    }
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    // Writing a string to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}
