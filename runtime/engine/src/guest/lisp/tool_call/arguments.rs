//! Encodes the arguments of a call as JSON text, and refuses what the schema of the tool proves wrong.
//!
//! Keyword keys become their names, with `-` turned into `_` where the tool's schema spells them so. String keys pass
//! unchanged, and so does everything that the schema does not mention. Refusals have the texts of
//! [`ptc_calls::tools::call_messages`]. An optional entry that is nil and may not be null is left out. The traversal
//! keeps its own stack and charges fuel for every node. Text, stack and tables of names are on the program's account,
//! so shared, deep and wide structures end in a typed fault.

use super::{fault, programmer_fault};
use foldhash::quality::RandomState;
use ptc_calls::schema::judge::{Judge, Names, ValueShape, below, items, mismatch};
use ptc_calls::tools::UpstreamTool;
use ptc_calls::tools::call_messages::{Notation, Path, Problem, rejected, review, undeclared_note};
use ptc_vm::memory::{Dropped, Item, List};
use ptc_vm::value::map::MapNode;
use ptc_vm::value::set::SetNode;
use ptc_vm::value::vector::VectorNode;
use ptc_vm::{BoundedText, Context, Fault, Value};
use serde::Serialize;
use serde_json::Value as Json;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::rc::Rc;

/// Memory of a name in a set of names, without its text.
const NAME_BYTES: usize = 96;

/// Bytes of an integer as a name.
const INT_BYTES: usize = 20;

/// Room for the quotes and brackets that follow a text.
const BEHIND: usize = 32;

/// Required names that are checked per unit of fuel.
const REQUIRED: u64 = 8;

/// Steps in a schema per unit of fuel.
const JUDGED: u64 = 8;

/// A container being written.
enum OpenContainer<'s> {
    Map { node: Rc<MapNode>, next: usize, schema: Option<&'s Json> },
    List { node: Items, next: usize, schema: Option<&'s Json> },
}

/// As deep as values nest.
impl Item for OpenContainer<'_> {
    fn discard(dropped: Dropped<Self>) {
        dropped.at_once();
    }
}

/// The members of a list or set.
enum Items {
    Vector(Rc<VectorNode>),
    Set(Rc<SetNode>),
}

impl Items {
    fn get(&self, cx: &mut Context, at: usize) -> Result<Option<Value>, Box<Fault>> {
        Ok(match self {
            Items::Vector(node) => node.get(at),
            // The order is computed once.
            Items::Set(node) => node.order(cx)?.get(at).map(|&row| node.member(row as usize).clone()),
        })
    }
}

struct Writer<'s> {
    out: List<u8>,
    frames: List<OpenContainer<'s>>,
    /// The judge of the whole input schema.
    judge: Option<Judge<'s>>,
    /// Arguments that the schema neither declares nor refuses.
    undeclared: Vec<String>,
}

/// Encodes the arguments, a map, of a call of `label` of `server`. `tool` is its listing, if known. Returns JSON object
/// text, and notes to the client.
pub(crate) fn encode(
    cx: &mut Context,
    (server, label): (&str, &str),
    args: &Value,
    tool: Option<&UpstreamTool>,
) -> Result<(String, Vec<String>), Box<Fault>> {
    let empty = MapNode::empty();
    let map = if let Value::Map(map) = args { map } else { &empty };
    let schema = tool.map(|tool| &tool.input_schema);
    let judge = schema.map(|root| Judge::new(root, u64::MAX));
    let mut writer = Writer { out: List::default(), frames: List::default(), judge, undeclared: Vec::new() };
    let done = writer.open_map(cx, map, schema).and_then(|()| writer.run(cx));
    done.map_err(|why| fault_of((server, label), tool, why))?;
    let notes = tool.into_iter().flat_map(|tool| {
        writer.undeclared.iter().map(|name| undeclared_note(server, tool, name, Notation::Lisp))
    });
    let notes = notes.collect();
    // Every part written is text or ASCII punctuation.
    let text = String::from_utf8(writer.out.into_iter().collect())
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Ok((text, notes))
}

/// The names of a map in a program.
type GivenNames<'n> = HashSet<Cow<'n, str>, RandomState>;

/// Why the encoding stopped.
enum ArgumentError {
    /// A value without a JSON form.
    NotEncodable(String),
    /// The schema proves it wrong.
    Problem(Problem),
    /// A limit of the program.
    Limit(Box<Fault>),
}

impl From<Box<Fault>> for ArgumentError {
    fn from(limit: Box<Fault>) -> ArgumentError {
        ArgumentError::Limit(limit)
    }
}

impl From<Problem> for ArgumentError {
    fn from(problem: Problem) -> ArgumentError {
        ArgumentError::Problem(problem)
    }
}

fn fault_of(
    (server, label): (&str, &str),
    tool: Option<&UpstreamTool>,
    refusal: ArgumentError,
) -> Box<Fault> {
    match refusal {
        ArgumentError::Limit(limit) => limit,
        ArgumentError::Problem(problem) => match tool {
            Some(tool) => programmer_fault(problem.into_wrong_call(server, tool)),
            None => fault(rejected(server, label, &problem.what)),
        },
        ArgumentError::NotEncodable(why) => {
            let why = format!("not JSON-encodable ({why})");
            fault(rejected(server, label, &why))
        }
    }
}

impl<'s> Writer<'s> {
    fn put(&mut self, cx: &mut Context, text: &[u8]) -> Result<(), ArgumentError> {
        Ok(self.out.append(cx, text)?)
    }

    /// Charges the steps of the judge since the last time.
    fn pay_judge(&self, cx: &mut Context) -> Result<(), ArgumentError> {
        let work = self.judge.as_ref().map_or(0, Judge::take_work);
        Ok(cx.tick(work / JUDGED)?)
    }

    /// Starts a map.
    fn open_map(
        &mut self,
        cx: &mut Context,
        node: &Rc<MapNode>,
        schema: Option<&'s Json>,
    ) -> Result<(), ArgumentError> {
        cx.tick(node.len() as u64 + 1)?;
        let mut bytes = 0;
        for key in node.keys() {
            bytes += NAME_BYTES;
            match key {
                // Charged, because the text is searched although not copied.
                Value::Str(text) => _ = cx.read(text)?,
                Value::Keyword(symbol) | Value::Symbol(symbol) => bytes += cx.text(*symbol).len(),
                _ => bytes += INT_BYTES,
            }
        }
        cx.reserve(bytes)?;
        cx.holding(bytes, |cx| self.check_map(cx, node, schema))?;
        self.put(cx, b"{")?;
        self.frames.push(cx, OpenContainer::Map { node: node.clone(), next: 0, schema })?;
        Ok(())
    }

    /// Checks the names of a map.
    fn check_map(
        &mut self,
        cx: &mut Context,
        node: &MapNode,
        schema: Option<&'s Json>,
    ) -> Result<(), ArgumentError> {
        let names = self.names(schema);
        let mut given: GivenNames<'_> =
            GivenNames::with_capacity_and_hasher(node.len(), RandomState::default());
        for entry in node.entries() {
            let name = key_name(cx, entry.key, names.as_ref())?;
            if entry.value.is_nil() && self.is_omitted_when_nil(cx, schema, &name)? {
                self.pay_judge(cx)?;
                continue;
            }
            if given.contains(&name) {
                return Err(ArgumentError::NotEncodable(clash(cx, node, &name, names.as_ref())));
            }
            given.insert(name);
        }
        names.map_or(Ok(()), |names| self.check_names(cx, &names, &given))
    }

    /// The schema's rules for the names of a map.
    fn names(&self, schema: Option<&'s Json>) -> Option<Names<'s>> {
        Some(Names::for_object(self.judge.as_ref()?, schema?))
    }

    /// True when a nil entry is left out: it is optional, and may not be null.
    fn is_omitted_when_nil(
        &self,
        cx: &mut Context,
        schema: Option<&'s Json>,
        name: &str,
    ) -> Result<bool, ArgumentError> {
        let (Some(judge), Some(schema)) = (&self.judge, schema) else { return Ok(false) };
        let (mut required, mut is_required) = (0, false);
        for other in Names::for_object(judge, schema).required() {
            required += 1;
            is_required |= other == name;
        }
        cx.tick(required / REQUIRED)?;
        let may_not_be_nil = |entry| mismatch(judge, entry, &ValueShape::Nil).is_some();
        Ok(!is_required && below(judge, schema, name).is_some_and(may_not_be_nil))
    }

    fn check_names(
        &mut self,
        cx: &mut Context,
        names: &Names<'s>,
        given: &GivenNames<'_>,
    ) -> Result<(), ArgumentError> {
        let given_names = given.iter().map(|name| &**name);
        let cx = RefCell::new(cx);
        let path = || self.path(&cx.borrow());
        let pay = |units| Ok(cx.borrow_mut().tick(units)?);
        let undeclared = review::<ArgumentError>(names, given_names, |name| given.contains(name), path, pay)?;
        if self.frames.is_empty() {
            self.undeclared.extend(undeclared.into_iter().map(|name| BoundedText::new(name).into()));
        }
        Ok(())
    }

    /// Path of the value that is being written.
    fn path(&self, cx: &Context) -> Path {
        let mut path = Path::root(Notation::Lisp);
        for frame in &*self.frames {
            if path.is_full() {
                break;
            }
            path = match frame {
                OpenContainer::Map { node, next, schema } => {
                    let key = node.keys().get(next.saturating_sub(1));
                    let name = key.and_then(|key| key_name(cx, key, self.names(*schema).as_ref()).ok());
                    path.entry(&name.unwrap_or_default())
                }
                OpenContainer::List { next, .. } => path.item(next.saturating_sub(1)),
            };
        }
        path
    }

    fn run(&mut self, cx: &mut Context) -> Result<(), ArgumentError> {
        while let Some(frame) = self.frames.last_mut() {
            match frame {
                OpenContainer::Map { node, next, schema } => {
                    if *next >= node.len() {
                        self.frames.pop();
                        self.put(cx, b"}")?;
                        continue;
                    }
                    let (key, value, schema) = (node.key(*next).clone(), node.value(*next).clone(), *schema);
                    *next += 1;
                    let name = key_name(cx, &key, self.names(schema).as_ref())?;
                    if value.is_nil() && self.is_omitted_when_nil(cx, schema, &name)? {
                        continue;
                    }
                    // No entry ends with an opening bracket.
                    if self.out.last() != Some(&b'{') {
                        self.put(cx, b",")?;
                    }
                    self.text(cx, &name)?;
                    self.put(cx, b":")?;
                    let entry = self
                        .judge
                        .as_ref()
                        .zip(schema)
                        .and_then(|(judge, schema)| below(judge, schema, &name));
                    self.value(cx, &value, entry)?;
                }
                OpenContainer::List { node, next, schema } => {
                    let Some(item) = node.get(cx, *next)? else {
                        self.frames.pop();
                        self.put(cx, b"]")?;
                        continue;
                    };
                    let (is_first, schema) = (*next == 0, *schema);
                    *next += 1;
                    if !is_first {
                        self.put(cx, b",")?;
                    }
                    self.value(cx, &item, schema)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a string.
    fn text(&mut self, cx: &mut Context, text: &str) -> Result<(), ArgumentError> {
        // Reserves for the closing characters too, so that a large text is not copied for them.
        self.out.make_room(cx, text.len() + BEHIND)?;
        self.json(cx, text)
    }

    /// Writes a value that serde can serialize.
    fn json(&mut self, cx: &mut Context, value: &(impl Serialize + ?Sized)) -> Result<(), ArgumentError> {
        let mut sink = ArgumentSink { out: &mut self.out, cx, fault: None };
        // The only possible error is a limit, which the sink records.
        let _ = serde_json::to_writer(&mut sink, value);
        sink.fault.map_or(Ok(()), |fault| Err(ArgumentError::Limit(fault)))
    }

    /// Starts a list.
    fn open_list(
        &mut self,
        cx: &mut Context,
        node: Items,
        schema: Option<&'s Json>,
    ) -> Result<(), ArgumentError> {
        let schema = self.judge.as_ref().zip(schema).and_then(|(judge, schema)| items(judge, schema));
        self.put(cx, b"[")?;
        Ok(self.frames.push(cx, OpenContainer::List { node, next: 0, schema })?)
    }

    fn value(
        &mut self,
        cx: &mut Context,
        value: &Value,
        schema: Option<&'s Json>,
    ) -> Result<(), ArgumentError> {
        cx.tick(1)?;
        if let (Some(judge), Some(schema)) = (&self.judge, schema) {
            let shape = shape(cx, value);
            if let Some(why) = mismatch(judge, schema, &shape) {
                return Err(ArgumentError::Problem(Problem::mismatch(&self.path(cx), &why, &shape)));
            }
        }
        self.pay_judge(cx)?;
        match value {
            Value::Nil => self.put(cx, b"null"),
            Value::Bool(value) => self.put(cx, value.to_string().as_bytes()),
            Value::Int(number) => self.json(cx, number),
            Value::BigInt(_) => {
                let digits = ptc_vm::print::pr_str(cx, value, usize::MAX)?.text;
                cx.holding(digits.len(), |cx| self.put(cx, digits.as_bytes()))
            }
            Value::Float(number) => match serde_json::Number::from_f64(*number) {
                Some(number) => self.put(cx, number.to_string().as_bytes()),
                None => Err(ArgumentError::NotEncodable(format!("{number} has no JSON form"))),
            },
            Value::Str(text) => {
                cx.tick(text.as_str().len() as u64)?;
                self.text(cx, text.as_str())
            }
            Value::Keyword(symbol) | Value::Symbol(symbol) => {
                let text = cx.text(*symbol).to_owned();
                self.text(cx, &text)
            }
            Value::Map(node) => self.open_map(cx, node, schema),
            Value::Vector(node) => self.open_list(cx, Items::Vector(node.clone()), schema),
            Value::Set(node) => self.open_list(cx, Items::Set(node.clone()), schema),
            Value::LocalDate(date) => self.text(cx, &date.to_string()),
            Value::DateTime(date_time) => self.text(cx, &date_time.to_string()),
            Value::Duration(duration) => self.put(cx, duration.millis().to_string().as_bytes()),
            other => Err(ArgumentError::NotEncodable(format!("a {} has no JSON form", other.type_word()))),
        }
    }
}

/// Writes text that is charged to the account of a program.
struct ArgumentSink<'w> {
    out: &'w mut List<u8>,
    cx: &'w mut Context,
    fault: Option<Box<Fault>>,
}

impl io::Write for ArgumentSink<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        match self.out.append(self.cx, text) {
            Ok(()) => Ok(text.len()),
            Err(fault) => {
                self.fault = Some(fault);
                Err(io::ErrorKind::OutOfMemory.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The error about keys of a map that have the same name in JSON.
fn clash(cx: &Context, node: &MapNode, name: &str, names: Option<&Names<'_>>) -> String {
    let is_called = |key: &&Value| key_name(cx, key, names).is_ok_and(|other| other == name);
    let shown = |key: &Value| match key {
        Value::Keyword(symbol) | Value::Symbol(symbol) => format!(":{}", BoundedText::new(cx.text(*symbol))),
        Value::Str(text) => format!("{:?}", BoundedText::new(text.as_str())),
        _ => BoundedText::new(name).into(),
    };
    let keys: Vec<String> = node.keys().iter().filter(is_called).take(2).map(shown).collect();
    format!("the keys {} are both called {:?}", keys.join(" and "), BoundedText::new(name))
}

/// The JSON name of a key.
fn key_name<'k>(
    cx: &Context,
    key: &'k Value,
    names: Option<&Names<'_>>,
) -> Result<Cow<'k, str>, ArgumentError> {
    match key {
        Value::Str(text) => Ok(text.as_str().into()),
        Value::Keyword(symbol) | Value::Symbol(symbol) => {
            let text = cx.text(*symbol);
            Ok(names.map_or(text.into(), |names| names.spelled(text, true)).into_owned().into())
        }
        Value::Int(number) => Ok(number.to_string().into()),
        other => Err(ArgumentError::NotEncodable(format!("a {} cannot be an object key", other.type_word()))),
    }
}

/// The shape of a value, for the checks.
fn shape<'v>(cx: &'v Context, value: &'v Value) -> ValueShape<'v> {
    match value {
        Value::Nil => ValueShape::Nil,
        Value::Bool(value) => ValueShape::Bool(*value),
        Value::Int(value) => ValueShape::Int(*value),
        Value::BigInt(_) => ValueShape::BigInt("a big integer".into()),
        Value::Float(value) => ValueShape::Float(*value),
        Value::Str(text) => ValueShape::Text(text.as_str().into()),
        Value::Keyword(symbol) | Value::Symbol(symbol) => ValueShape::Text(cx.text(*symbol).into()),
        Value::LocalDate(date) => ValueShape::Text(date.to_string().into()),
        Value::DateTime(date_time) => ValueShape::Text(date_time.to_string().into()),
        Value::Duration(duration) => ValueShape::Int(duration.millis()),
        Value::Vector(_) | Value::Set(_) => ValueShape::List,
        Value::Map(_) => ValueShape::Map,
        _ => ValueShape::Unknown,
    }
}
