//! The values of the language: 16 bytes, immutable, reference-counted without atomics, acyclic.
//!
//! A value never holds a pointer to itself: closures capture by value, a named function reaches itself
//! through register 0, and globals are slots. Counting therefore frees everything.

use crate::bytecode::{BuiltinId, ProtoIndex};
pub mod build;
pub(crate) mod code_ref;
pub mod combinator;
pub(crate) mod extensions;
pub(crate) mod garbage;
mod index;
pub mod map;
pub(crate) mod read;
pub mod regex;
pub mod relation;
pub mod set;
pub(crate) mod slot;
mod store;
pub mod string;
pub mod symbol;
pub mod temporal;
#[cfg(test)]
pub(crate) mod testing;
pub mod vector;

use crate::bytecode::{CombinatorKind, Endless};
use crate::fault::Fault;
use crate::memory::account;
use crate::value::code_ref::{CodeRef, FunctionId};
use crate::value::combinator::Combinator;
use crate::value::map::MapNode;
use crate::value::regex::RegexNode;
use crate::value::set::SetNode;
use crate::value::string::StringNode;
use crate::value::symbol::Symbol;
use crate::value::temporal::{DateTime, Duration, LocalDate};
use crate::value::vector::VectorNode;
use garbage::drop_children;
use num_bigint::BigInt;
use std::fmt::Display;
use std::rc::Rc;
pub use store::Store;

/// A value of the language.
#[derive(Default)]
#[repr(u64)]
pub enum Value {
    /// nil.
    #[default]
    Nil,
    /// true or false.
    Bool(bool),
    /// An integer that fits 64 bits. Larger ones are `BigInt`; the two never overlap.
    Int(i64),
    /// A float, the IEEE specials included.
    Float(f64),
    /// `:name`.
    Keyword(Symbol),
    /// A quoted symbol, `'name` or `'server/tool`.
    Symbol(Symbol),
    /// The result of `def`: `#'name`.
    Var(Symbol),
    /// A builtin function as a value.
    Builtin(BuiltinId),
    /// A host tool as a value; the symbol holds the name without `tool/`.
    Tool(Symbol),
    /// A day of the calendar.
    LocalDate(LocalDate),
    /// A point of time.
    DateTime(DateTime),
    /// A length of time.
    Duration(Duration),
    /// An integer outside 64 bits.
    BigInt(Rc<BigIntNode>),
    /// A string.
    Str(Rc<StringNode>),
    /// A vector; also every sequence.
    Vector(Rc<VectorNode>),
    /// A map.
    Map(Rc<MapNode>),
    /// A set.
    Set(Rc<SetNode>),
    /// A function of the program.
    Closure(Rc<Closure>),
    /// A function made by `comp`, `partial`, `juxt` and the like.
    Combinator(Rc<Combinator>),
    /// A compiled regular expression.
    Regex(Rc<RegexNode>),
}

const _: () = assert!(size_of::<Value>() == 16);

impl Clone for Value {
    /// Frequent kinds inline, the others in a call.
    #[inline]
    fn clone(&self) -> Value {
        match self {
            Value::Int(value) => Value::Int(*value),
            Value::Keyword(symbol) => Value::Keyword(*symbol),
            Value::Str(node) => Value::Str(node.clone()),
            Value::Map(node) => Value::Map(node.clone()),
            Value::Vector(node) => Value::Vector(node.clone()),
            other => other.clone_rare(),
        }
    }
}

impl Value {
    /// An empty string or a string of this text.
    pub fn string(text: &str) -> Value {
        Value::Str(StringNode::new(text))
    }

    /// A vector of these items.
    pub fn vector(items: Vec<Value>) -> Value {
        Value::Vector(VectorNode::new(items))
    }

    /// A vector of a few items.
    pub fn row<const N: usize>(items: [Value; N]) -> Value {
        Value::vector(Vec::from(items))
    }

    /// An integer of any size.
    pub fn integer(value: BigInt) -> Value {
        match i64::try_from(&value) {
            Ok(small) => Value::Int(small),
            Err(_) => Value::BigInt(BigIntNode::new(value)),
        }
    }

    #[inline(never)]
    fn clone_rare(&self) -> Value {
        match self {
            Value::Nil => Value::Nil,
            Value::Bool(value) => Value::Bool(*value),
            Value::Int(value) => Value::Int(*value),
            Value::Float(value) => Value::Float(*value),
            Value::Keyword(symbol) => Value::Keyword(*symbol),
            Value::Symbol(symbol) => Value::Symbol(*symbol),
            Value::Var(symbol) => Value::Var(*symbol),
            Value::Builtin(builtin) => Value::Builtin(*builtin),
            Value::Tool(symbol) => Value::Tool(*symbol),
            Value::LocalDate(date) => Value::LocalDate(*date),
            Value::DateTime(date_time) => Value::DateTime(*date_time),
            Value::Duration(duration) => Value::Duration(*duration),
            Value::BigInt(node) => Value::BigInt(node.clone()),
            Value::Str(node) => Value::Str(node.clone()),
            Value::Vector(node) => Value::Vector(node.clone()),
            Value::Map(node) => Value::Map(node.clone()),
            Value::Set(node) => Value::Set(node.clone()),
            Value::Closure(node) => Value::Closure(node.clone()),
            Value::Combinator(node) => Value::Combinator(node.clone()),
            Value::Regex(node) => Value::Regex(node.clone()),
        }
    }

    /// Neither nil nor false.
    #[inline]
    pub fn is_truthy(&self) -> bool {
        !matches!(self, Value::Nil | Value::Bool(false))
    }

    /// nil.
    #[inline]
    pub fn is_nil(&self) -> bool {
        matches!(self, Value::Nil)
    }

    /// True when dropping or overwriting the value has work to do.
    #[inline]
    pub fn is_heap(&self) -> bool {
        matches!(
            self,
            Value::BigInt(_)
                | Value::Str(_)
                | Value::Vector(_)
                | Value::Map(_)
                | Value::Set(_)
                | Value::Closure(_)
                | Value::Combinator(_)
                | Value::Regex(_)
        )
    }

    /// True when the value can hold other values, so that its drop may cascade.
    #[inline]
    pub(crate) fn is_composite(&self) -> bool {
        matches!(
            self,
            Value::Vector(_) | Value::Map(_) | Value::Set(_) | Value::Closure(_) | Value::Combinator(_)
        )
    }

    /// The text of a string value.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(node) => Some(node.as_str()),
            _ => None,
        }
    }

    /// Whether a string, vector, map or set is empty; `None` for other values.
    pub(crate) fn has_no_items(&self) -> Option<bool> {
        match self {
            Value::Str(node) => Some(node.is_empty()),
            Value::Vector(node) => Some(node.is_empty()),
            Value::Map(node) => Some(node.is_empty()),
            Value::Set(node) => Some(node.is_empty()),
            _ => None,
        }
    }

    /// True if both are the same node of a string, vector, map or set.
    pub(crate) fn is_node(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Str(a), Value::Str(b)) => Rc::ptr_eq(a, b),
            (Value::Vector(a), Value::Vector(b)) => Rc::ptr_eq(a, b),
            (Value::Map(a), Value::Map(b)) => Rc::ptr_eq(a, b),
            (Value::Set(a), Value::Set(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// True for values that can be called with arguments as functions (keywords and collections are
    /// callable too but are no functions).
    pub fn is_function(&self) -> bool {
        match self {
            Value::Builtin(_) | Value::Closure(_) | Value::Tool(_) => true,
            Value::Combinator(node) => {
                !matches!(node.kind, CombinatorKind::Reduced | CombinatorKind::Endless(_))
            }
            _ => false,
        }
    }

    /// The kind and the parts of an endless sequence.
    pub(crate) fn endless(&self) -> Option<(Endless, &[Value])> {
        match self {
            Value::Combinator(node) => match node.kind {
                CombinatorKind::Endless(kind) => Some((kind, node.parts())),
                _ => None,
            },
            _ => None,
        }
    }

    /// The word error messages use for the type.
    pub fn type_word(&self) -> &'static str {
        match self {
            Value::Nil => "nil",
            Value::Bool(_) => "boolean",
            Value::Int(_) | Value::Float(_) | Value::BigInt(_) => "number",
            Value::Keyword(_) => "keyword",
            Value::Symbol(_) => "symbol",
            Value::Var(_) => "var",
            Value::Str(_) => "string",
            Value::Vector(_) => "list",
            Value::Map(_) => "map",
            Value::Set(_) => "set",
            Value::Combinator(node) if node.kind == CombinatorKind::Reduced => "reduced value",
            Value::Combinator(_) if !self.is_function() => "endless sequence",
            Value::Builtin(_) | Value::Closure(_) | Value::Combinator(_) | Value::Tool(_) => "function",
            Value::Regex(_) => "regex",
            Value::LocalDate(_) => "LocalDate",
            Value::DateTime(_) => "DateTime",
            Value::Duration(_) => "Duration",
        }
    }

    /// `type_error: …, got …`: a function needs a value of another type.
    #[cold]
    pub(crate) fn mistyped(&self, needed: impl Display) -> Box<Fault> {
        Fault::type_error(format_args!("{needed}, got {}", self.type_word()))
    }
}

/// An integer outside 64 bits.
#[derive(Debug)]
pub struct BigIntNode(BigInt);

/// Logical bytes of a big integer in addition to its digits.
pub const BIGINT_BYTES: usize = 48;

impl BigIntNode {
    /// Wraps an integer that does not fit 64 bits; use [`Value::integer`] when it may.
    pub fn new(value: BigInt) -> Rc<BigIntNode> {
        let node = BigIntNode(value);
        account::charge(node.bytes());
        Rc::new(node)
    }

    /// The integer.
    pub fn get(&self) -> &BigInt {
        &self.0
    }

    /// Not divisible by two.
    pub fn is_odd(&self) -> bool {
        self.0.magnitude().bit(0)
    }

    /// Below zero.
    pub fn is_negative(&self) -> bool {
        self.0.sign() == num_bigint::Sign::Minus
    }

    fn bytes(&self) -> usize {
        BIGINT_BYTES + (self.0.bits() as usize).div_ceil(64) * 8
    }
}

impl Drop for BigIntNode {
    fn drop(&mut self) {
        account::release(self.bytes());
    }
}

/// A function of a program with the values it captured.
pub struct Closure {
    /// The function; it refers to further arities.
    pub(crate) function: FunctionId,
    captures: Vec<Value>,
    /// Keeps the program loaded.
    _code: CodeRef,
}

/// Logical bytes of a closure in addition to its captures.
pub const CLOSURE_BYTES: usize = 56;

impl Closure {
    /// A closure.
    pub(crate) fn new(code: &CodeRef, proto: ProtoIndex, captures: Vec<Value>) -> Rc<Closure> {
        account::charge(CLOSURE_BYTES + captures.capacity() * size_of::<Value>());
        Rc::new(Closure { function: code.unit().function(proto), captures, _code: code.clone() })
    }

    /// The captured values.
    pub fn captures(&self) -> &[Value] {
        &self.captures
    }
}

impl Drop for Closure {
    fn drop(&mut self) {
        let bytes = CLOSURE_BYTES + self.captures.capacity() * size_of::<Value>();
        drop_children(std::mem::take(&mut self.captures), bytes);
    }
}
