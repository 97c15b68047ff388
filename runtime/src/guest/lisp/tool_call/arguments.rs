//! Arguments of a call as JSON text.
//!
//! Keyword keys become their names, with `-` turned into `_` where that is how the tool's schema spells
//! them; string keys pass unchanged, and so does whatever the schema says nothing about. What the schema
//! proves wrong is refused with the words of [`crate::tools::words`]; an optional entry that is nil and may not
//! be null is left out. The walk keeps its own stack, pays fuel for every node and
//! asks for memory before the text grows, so shared and deep structures end in a typed fault.

use super::{ParsedCall, fault, programmer_fault};
use crate::tools::Tool;
use crate::tools::expectation::{Names, Shape, below, items, mismatch};
use crate::tools::words::{Notation, Path, Problem, rejected, review, undeclared_note};
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
    /// The whole input schema.
    root: Option<&'s Json>,
    /// Arguments that the schema neither has nor refuses.
    undeclared: Vec<String>,
}

/// Arguments that can be sent.
#[derive(Debug)]
pub(crate) struct Encoded {
    /// JSON object text.
    pub(crate) text: String,
    /// Remarks for whoever reads the result.
    pub(crate) notes: Vec<String>,
}

/// Encodes the argument map of `call`. `tool` is its listing, when that is known.
pub(crate) fn encode(
    cx: &mut Context,
    call: &ParsedCall,
    args: &Value,
    tool: Option<&Tool>,
) -> Result<Encoded, Box<Fault>> {
    let empty = MapNode::empty();
    let map = if let Value::Map(map) = args { map } else { &empty };
    let schema = tool.map(|tool| &tool.input_schema);
    let mut writer =
        Writer { out: Vec::new(), reserved: 0, frames: Vec::new(), root: schema, undeclared: Vec::new() };
    let done = writer.open_map(cx, map, schema).and_then(|()| writer.run(cx));
    done.map_err(|why| fault_of(call, tool, why))?;
    let notes = tool.into_iter().flat_map(|tool| {
        writer.undeclared.iter().map(|name| undeclared_note(&call.server, tool, name, Notation::Lisp))
    });
    let notes = notes.collect();
    // Every part written is text or ASCII punctuation.
    let text = String::from_utf8(writer.out)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Ok(Encoded { text, notes })
}

/// What stops the encoding.
enum Refusal {
    /// A value without a JSON form.
    NotEncodable(String),
    /// Something that the schema proves wrong.
    Problem(Problem),
    /// A limit of the program.
    Limit(Box<Fault>),
}

impl From<Box<Fault>> for Refusal {
    fn from(limit: Box<Fault>) -> Refusal {
        Refusal::Limit(limit)
    }
}

fn fault_of(call: &ParsedCall, tool: Option<&Tool>, refusal: Refusal) -> Box<Fault> {
    match refusal {
        Refusal::Limit(limit) => limit,
        Refusal::Problem(problem) => match tool {
            Some(tool) => programmer_fault(problem.of(&call.server, tool)),
            None => fault(rejected(&call.server, &call.tool, &problem.what)),
        },
        Refusal::NotEncodable(why) => {
            let why = format!("not JSON-encodable ({why})");
            fault(rejected(&call.server, &call.tool, &why))
        }
    }
}

impl<'s> Writer<'s> {
    /// Starts a map.
    fn open_map(
        &mut self,
        cx: &mut Context,
        node: &Rc<MapNode>,
        schema: Option<&'s Json>,
    ) -> Result<(), Refusal> {
        cx.tick(node.len() as u64 + 1)?;
        let names = self.names(schema);
        let mut order = Vec::with_capacity(node.len());
        let mut seen = HashSet::with_capacity(node.len());
        for (at, entry) in node.entries().enumerate() {
            let name = key_name(cx, entry.key, names.as_ref())?;
            if entry.value.is_nil() && self.is_omitted_when_nil(schema, &name) {
                continue;
            }
            if !seen.insert(name.clone()) {
                return Err(Refusal::NotEncodable(format!("two keys are both called {name:?}")));
            }
            order.push(at);
        }
        if let Some(names) = names {
            self.check_names(cx, &names, &seen)?;
        }
        self.out.push(b'{');
        self.frames.push(Frame::Map { node: node.clone(), order, next: 0, schema });
        Ok(())
    }

    /// What the schema says about the names of a map.
    fn names(&self, schema: Option<&'s Json>) -> Option<Names<'s>> {
        Some(Names::of(self.root?, schema?))
    }

    /// True when nil for this entry means that it is left out: it is optional, and may not be null.
    fn is_omitted_when_nil(&self, schema: Option<&'s Json>, name: &str) -> bool {
        let (Some(root), Some(schema)) = (self.root, schema) else { return false };
        let is_required = Names::of(root, schema).required().any(|required| required == name);
        !is_required
            && below(root, schema, name).is_some_and(|entry| mismatch(root, entry, &Shape::Nil).is_some())
    }

    fn check_names(
        &mut self,
        cx: &Context,
        names: &Names<'s>,
        given: &HashSet<String>,
    ) -> Result<(), Refusal> {
        let given_names = given.iter().map(String::as_str);
        let undeclared = review(names, given_names, |name| given.contains(name), || self.path(cx));
        let undeclared = undeclared.map_err(Refusal::Problem)?;
        if self.frames.is_empty() {
            self.undeclared.extend(undeclared.into_iter().map(str::to_owned));
        }
        Ok(())
    }

    /// Where the value is that is being written.
    fn path(&self, cx: &Context) -> Path {
        self.frames.iter().fold(Path::root(Notation::Lisp), |path, frame| match frame {
            Frame::Map { node, order, next, schema } => {
                let at = next.checked_sub(1).and_then(|at| order.get(at));
                let name = at.and_then(|&at| key_name(cx, node.key(at), self.names(*schema).as_ref()).ok());
                path.entry(&name.unwrap_or_default())
            }
            Frame::List { next, .. } => path.item(next.saturating_sub(1)),
        })
    }

    fn run(&mut self, cx: &mut Context) -> Result<(), Refusal> {
        while let Some(frame) = self.frames.last_mut() {
            match frame {
                Frame::Map { node, order, next, schema } => {
                    let Some(entry) = order.get(*next).map(|&at| node.entry(at)) else {
                        self.out.push(b'}');
                        self.frames.pop();
                        continue;
                    };
                    if *next > 0 {
                        self.out.push(b',');
                    }
                    *next += 1;
                    let schema = *schema;
                    let (key, value) = (entry.key.clone(), entry.value.clone());
                    let name = key_name(cx, &key, self.names(schema).as_ref())?;
                    self.text(cx, &name)?;
                    self.out.push(b':');
                    let entry = self.root.zip(schema).and_then(|(root, schema)| below(root, schema, &name));
                    self.value(cx, &value, entry)?;
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

    /// Writes a string; escapes may make it six times as long.
    fn text(&mut self, cx: &mut Context, text: &str) -> Result<(), Refusal> {
        let escapes = |byte: u8| match byte {
            b'"' | b'\\' => 1,
            0..0x20 => 5,
            _ => 0,
        };
        let more: usize = text.bytes().map(escapes).sum();
        cx.reserve(self.out.len() + text.len() + more + 2)?;
        write_text(&mut self.out, text);
        Ok(())
    }

    fn value(&mut self, cx: &mut Context, value: &Value, schema: Option<&'s Json>) -> Result<(), Refusal> {
        cx.tick(1)?;
        if self.out.len() >= self.reserved {
            self.reserved = self.out.len() + STEP;
            cx.reserve(self.reserved)?;
        }
        if let (Some(root), Some(schema)) = (self.root, schema) {
            let shape = shape(cx, value);
            if let Some(why) = mismatch(root, schema, &shape) {
                return Err(Refusal::Problem(Problem::mismatch(&self.path(cx), &why, &shape)));
            }
        }
        match value {
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::Bool(true) => self.out.extend_from_slice(b"true"),
            Value::Bool(false) => self.out.extend_from_slice(b"false"),
            Value::Int(number) => self.out.extend_from_slice(number.to_string().as_bytes()),
            Value::BigInt(_) => {
                let digits = ptc_vm::print::pr_str(cx, value, usize::MAX)?.text;
                cx.reserve(self.out.len() + digits.len())?;
                self.out.extend_from_slice(digits.as_bytes());
            }
            Value::Float(number) => match serde_json::Number::from_f64(*number) {
                Some(number) => self.out.extend_from_slice(number.to_string().as_bytes()),
                None => return Err(Refusal::NotEncodable(format!("{number} has no JSON form"))),
            },
            Value::Str(text) => {
                cx.tick(text.as_str().len() as u64)?;
                self.text(cx, text.as_str())?;
            }
            Value::Keyword(symbol) | Value::Symbol(symbol) => write_text(&mut self.out, cx.text(*symbol)),
            Value::Map(node) => self.open_map(cx, node, schema)?,
            Value::Vector(node) => {
                self.out.push(b'[');
                let items = self.root.zip(schema).and_then(|(root, schema)| items(root, schema));
                self.frames.push(Frame::List { node: Items::Vector(node.clone()), next: 0, schema: items });
            }
            Value::Set(node) => {
                let members = node.ordered(cx)?.cloned().collect();
                self.out.push(b'[');
                let items = self.root.zip(schema).and_then(|(root, schema)| items(root, schema));
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
fn key_name(cx: &Context, key: &Value, names: Option<&Names<'_>>) -> Result<String, Refusal> {
    match key {
        Value::Str(text) => Ok(text.as_str().to_owned()),
        Value::Keyword(symbol) | Value::Symbol(symbol) => {
            let text = cx.text(*symbol);
            Ok(names.map_or(text.into(), |names| names.spelled(text, true)).into_owned())
        }
        Value::Int(number) => Ok(number.to_string()),
        other => Err(Refusal::NotEncodable(format!("a {} cannot be an object key", other.type_word()))),
    }
}

/// What the checks look at of a value.
fn shape<'v>(cx: &'v Context, value: &'v Value) -> Shape<'v> {
    match value {
        Value::Nil => Shape::Nil,
        Value::Bool(value) => Shape::Bool(*value),
        Value::Int(value) => Shape::Int(*value),
        Value::BigInt(_) => Shape::BigInt("a big integer".into()),
        Value::Float(value) => Shape::Float(*value),
        Value::Str(text) => Shape::Text(text.as_str().into()),
        Value::Keyword(symbol) | Value::Symbol(symbol) => Shape::Text(cx.text(*symbol).into()),
        Value::LocalDate(date) => Shape::Text(date.to_string().into()),
        Value::DateTime(date_time) => Shape::Text(date_time.to_string().into()),
        Value::Duration(duration) => Shape::Int(duration.millis()),
        Value::Vector(_) | Value::Set(_) => Shape::List,
        Value::Map(_) => Shape::Map,
        _ => Shape::Unknown,
    }
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    // Writing a string to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}
