//! Defines the types of instruction operands (registers, constants, jump distances), so that the verifier and the
//! disassembler need to know operands only, not each instruction. A type defines everything about an operand: its
//! effect on registers and control flow, what it refers to, and its text. A new instruction made of these types needs
//! no code in them.

use super::builtin::{BuiltinId, Names};
use super::effect::Visit;
use super::reference::Reference;
use std::fmt;

/// A register that the instruction fills; empty before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dst(pub u8);

/// A register that the instruction reads, and empties when this is its last use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Src {
    /// The register.
    pub reg: u8,
    /// Take the value instead of copying it.
    pub last: bool,
}

/// A register that the instruction empties: no instruction reads its value after this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last(pub u8);

impl Last {
    /// The register as an operand that may be read again in other instructions.
    #[inline(always)]
    #[must_use]
    pub const fn src(self) -> Src {
        Src { reg: self.0, last: true }
    }
}

/// Consecutive full registers that the instruction empties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Args {
    /// First register.
    pub at: u8,
    /// How many.
    pub count: u8,
}

/// The registers of a call: `at` receives the result, the arguments are at `at + 1 ..= at + count`,
/// full before and empty after. All registers above them are empty. Whether `at` holds the callee
/// before the call depends on the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Result register; the callee's register 0.
    pub at: u8,
    /// Number of arguments.
    pub count: u8,
}

/// A register that the instruction reads and updates in place; full before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinned(pub u8);

/// The iteration state of a loop: this register holds the items, the next one the position. Both are full before and
/// after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(pub u8);

/// Index into the constants of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant(pub u16);

/// Index of a constant that is a keyword or a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(pub u16);

/// Values of a record, and the index of a constant set with as many keys: distinct keywords and strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entries {
    /// The keys.
    pub keys: u16,
    /// The values.
    pub items: Args,
}

/// Index into the captured values of the running closure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture(pub u16);

/// A function of the program and the values that it captures, as many as it declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    /// The function.
    pub proto: ProtoIndex,
    /// The captured values.
    pub captures: Args,
}

/// Index into the global names of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Global(pub u16);

/// Index into the functions of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProtoIndex(pub u16);

/// A jump, in instructions, counted from the instruction after this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Near(pub i16);

/// A jump of any distance, counted from the instruction after this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Far(pub i32);

/// A small integer operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Small(pub i16);

impl Small {
    /// The integer.
    #[inline(always)]
    #[must_use]
    pub const fn value(self) -> i64 {
        self.0 as i64
    }
}

/// An integer operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int([u8; 4]);

impl Int {
    /// The operand, if the integer is in range.
    #[must_use]
    pub fn new(value: i64) -> Option<Int> {
        i32::try_from(value).ok().map(|value| Int(value.to_le_bytes()))
    }

    /// The integer.
    #[inline(always)]
    #[must_use]
    pub const fn value(self) -> i64 {
        i32::from_le_bytes(self.0) as i64
    }
}

/// A register that the instruction compares with an integer, and empties if this is its last use.
///
/// The integer and the flag share four bytes, so that a comparison and its jump fit one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgainstInt {
    /// The register.
    pub reg: u8,
    /// Twice the integer, plus one for the last use.
    packed: [u8; 4],
}

impl AgainstInt {
    /// The operand, if the integer is in range.
    #[must_use]
    pub fn new(src: Src, value: i64) -> Option<AgainstInt> {
        let packed = i32::try_from(value.checked_mul(2)?).ok()? | i32::from(src.last);
        Some(AgainstInt { reg: src.reg, packed: packed.to_le_bytes() })
    }

    /// The integer.
    #[inline(always)]
    #[must_use]
    pub const fn value(self) -> i64 {
        (i32::from_le_bytes(self.packed) >> 1) as i64
    }

    /// The register as an operand.
    #[must_use]
    pub const fn src(self) -> Src {
        Src { reg: self.reg, last: self.packed[0] & 1 == 1 }
    }
}

/// How the source wrote the addition of a small integer; a fault names that form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// `inc` or `dec`.
    Increment,
    /// `+`.
    Plus,
    /// `-`: the integer is negated.
    Minus,
}

/// A comparison with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `=`.
    Equal,
    /// `not=`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterEqual,
}

impl Relation {
    /// The comparison with its sides swapped.
    #[must_use]
    pub const fn mirrored(self) -> Relation {
        match self {
            Relation::Equal => Relation::Equal,
            Relation::NotEqual => Relation::NotEqual,
            Relation::Less => Relation::Greater,
            Relation::LessEqual => Relation::GreaterEqual,
            Relation::Greater => Relation::Less,
            Relation::GreaterEqual => Relation::LessEqual,
        }
    }

    /// Whether it holds for two scalars.
    #[inline(always)]
    pub(crate) fn holds<T: PartialOrd>(self, a: &T, b: &T) -> bool {
        match self {
            Relation::Equal => a == b,
            Relation::NotEqual => a != b,
            Relation::Less => a < b,
            Relation::LessEqual => a <= b,
            Relation::Greater => a > b,
            Relation::GreaterEqual => a >= b,
        }
    }

    /// The answer for values known to be equal or unequal, if that decides it.
    pub(crate) fn decided_by_equality(self, equal: bool) -> Option<bool> {
        match self {
            Relation::Equal => Some(equal),
            Relation::NotEqual => Some(!equal),
            _ => None,
        }
    }
}

/// The side of an operator on which a constant operand stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `(op register constant)`.
    Right,
    /// `(op constant register)`.
    Left,
}

/// How the program ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// `(return v)`.
    Return,
    /// `(fail v)`.
    Fail,
}

/// An operand: its effects, what it refers to, its text.
pub trait Field {
    /// Visits every effect, reads before writes.
    fn effects(&self, _visit: &mut impl Visit) {}
    /// What it refers to.
    fn reference(&self) -> Option<Reference> {
        None
    }
    /// Writes the operand as the disassembler shows it.
    fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result;
}

macro_rules! indices {
    ($($type:ty: $format:literal $reference:path;)+) => {
        $(impl Field for $type {
            fn reference(&self) -> Option<Reference> { Some($reference(self.0)) }
            fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result { write!(f, $format, self.0) }
        })+
    };
}

indices! {
    Constant: "k{}" Reference::Constant;
    Key: "k{}" Reference::Key;
    Global: "g{}" Reference::Global;
}

impl Field for Capture {
    fn effects(&self, visit: &mut impl Visit) {
        visit.read(0);
    }
    fn reference(&self) -> Option<Reference> {
        Some(Reference::Capture(self.0))
    }
    fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result {
        write!(f, "c{}", self.0)
    }
}

impl Field for Entries {
    fn effects(&self, visit: &mut impl Visit) {
        self.items.effects(visit);
    }
    fn reference(&self) -> Option<Reference> {
        Some(Reference::Keys { constant: self.keys, count: self.items.count })
    }
    fn show(&self, f: &mut fmt::Formatter<'_>, names: Names) -> fmt::Result {
        write!(f, "k{} ", self.keys)?;
        self.items.show(f, names)
    }
}

impl Field for Template {
    fn effects(&self, visit: &mut impl Visit) {
        self.captures.effects(visit);
    }
    fn reference(&self) -> Option<Reference> {
        Some(Reference::Function { proto: self.proto, captures: self.captures.count })
    }
    fn show(&self, f: &mut fmt::Formatter<'_>, names: Names) -> fmt::Result {
        write!(f, "fn{} ", self.proto.0)?;
        self.captures.show(f, names)
    }
}

/// Integers: only a text.
macro_rules! integers {
    ($($type:ty)+) => {
        $(impl Field for $type {
            fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result { write!(f, "#{}", self.value()) }
        })+
    };
}

integers! { Small Int }

impl Field for AgainstInt {
    fn effects(&self, visit: &mut impl Visit) {
        self.src().effects(visit);
    }
    fn show(&self, f: &mut fmt::Formatter<'_>, names: Names) -> fmt::Result {
        self.src().show(f, names)?;
        write!(f, " #{}", self.value())
    }
}

/// Operands with one effect, which has their number.
macro_rules! effects {
    ($($type:ty: $format:literal $effect:ident;)+) => {
        $(impl Field for $type {
            fn effects(&self, visit: &mut impl Visit) { visit.$effect(self.0.into()); }
            fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result { write!(f, $format, self.0) }
        })+
    };
}

effects! {
    Dst: "r{}" fill;
    Last: "~r{}" take;
    Pinned: "&r{}" read;
    Near: "{:+}" jump;
    Far: "{:+}" jump;
}

impl Field for Src {
    fn effects(&self, visit: &mut impl Visit) {
        if self.last { visit.take(self.reg) } else { visit.read(self.reg) }
    }
    fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result {
        write!(f, "{}r{}", if self.last { "~" } else { "" }, self.reg)
    }
}

impl Field for Cursor {
    fn effects(&self, visit: &mut impl Visit) {
        visit.read(self.0);
        match self.0.checked_add(1) {
            Some(position) => visit.read(position),
            // Reported by the verifier.
            None => visit.clear_from(u16::from(self.0) + 1),
        }
    }
    fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result {
        write!(f, "&r{}", self.0)
    }
}

impl Field for Args {
    fn effects(&self, visit: &mut impl Visit) {
        for reg in u16::from(self.at)..u16::from(self.at) + u16::from(self.count) {
            // A register past the window is reported by the verifier through ClearFrom.
            match u8::try_from(reg) {
                Ok(reg) => visit.take(reg),
                Err(_) => visit.clear_from(reg),
            }
        }
    }
    fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result {
        match self.count {
            0 => f.write_str("[]"),
            1 => write!(f, "[~r{}]", self.at),
            count => write!(f, "[~r{}..r{}]", self.at, u16::from(self.at) + u16::from(count) - 1),
        }
    }
}

impl Field for Window {
    fn effects(&self, visit: &mut impl Visit) {
        Args { at: self.at.wrapping_add(1), count: self.count }.effects(visit);
        visit.clear_from(u16::from(self.at));
        visit.fill(self.at);
    }
    fn show(&self, f: &mut fmt::Formatter<'_>, names: Names) -> fmt::Result {
        write!(f, "r{} ", self.at)?;
        Args { at: self.at.wrapping_add(1), count: self.count }.show(f, names)
    }
}

impl Field for BuiltinId {
    fn reference(&self) -> Option<Reference> {
        Some(Reference::Builtin(*self))
    }
    fn show(&self, f: &mut fmt::Formatter<'_>, names: Names) -> fmt::Result {
        f.write_str(names(*self))
    }
}

impl Field for bool {
    fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Words.
macro_rules! words {
    ($($type:ident { $($variant:ident $word:literal),+ })+) => {
        $(impl Field for $type {
            fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result {
                f.write_str(match self { $($type::$variant => $word),+ })
            }
        })+
    };
}

words! {
    Written { Increment "inc", Plus "+", Minus "-" }
    Relation { Equal "=", NotEqual "not=", Less "<", LessEqual "<=", Greater ">", GreaterEqual ">=" }
    Side { Right "right", Left "left" }
    Signal { Return "return", Fail "fail" }
}
