//! The instruction set, declared once: the table below yields the enum, the text form of the
//! disassembler and the register effects that the verifier checks.

use super::builtin::{BuiltinId, Names};
pub use super::effect::{Effect, Visit};
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

/// A register that the instruction reads and updates in place; full before and after. `Next` also
/// owns the register after it, which must be full too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinned(pub u8);

/// Index into the constants of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant(pub u16);

/// Index into the global names of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Global(pub u16);

/// Index into the functions of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// A register that the instruction compares with an integer, and empties when this is its last use.
///
/// The integer and the flag share four bytes, so that a comparison and its jump are one instruction.
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

/// How the source wrote the addition of a small integer: a fault speaks of that.
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
    /// The comparison with its sides exchanged.
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
}

impl Relation {
    /// The answer for values that are known to be equal or not, if that decides it.
    pub(crate) fn of_equality(self, equal: bool) -> Option<bool> {
        match self {
            Relation::Equal => Some(equal),
            Relation::NotEqual => Some(!equal),
            _ => None,
        }
    }
}

/// On which side of an operator a constant operand stands.
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

/// A field of an instruction: its text and its effects.
pub trait Field {
    /// Tells every effect, reads before writes.
    fn effects(&self, visit: &mut impl Visit);
    /// Writes the operand as the disassembler shows it.
    fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result;
}

macro_rules! plain_field {
    ($($type:ty: $format:literal;)+) => {
        $(impl Field for $type {
            fn effects(&self, _visit: &mut impl Visit) {}
            fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result { write!(f, $format, self.0) }
        })+
    };
}

plain_field! {
    Constant: "k{}";
    Global: "g{}";
    ProtoIndex: "fn{}";
    Small: "#{}";
}

impl Field for Int {
    fn effects(&self, _visit: &mut impl Visit) {}
    fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result {
        write!(f, "#{}", self.value())
    }
}

impl Field for AgainstInt {
    fn effects(&self, visit: &mut impl Visit) {
        self.src().effects(visit);
    }
    fn show(&self, f: &mut fmt::Formatter<'_>, names: Names) -> fmt::Result {
        self.src().show(f, names)?;
        write!(f, " #{}", self.value())
    }
}

impl Field for Dst {
    fn effects(&self, visit: &mut impl Visit) {
        visit.fill(self.0);
    }
    fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

impl Field for Src {
    fn effects(&self, visit: &mut impl Visit) {
        if self.last { visit.take(self.reg) } else { visit.read(self.reg) }
    }
    fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result {
        write!(f, "{}r{}", if self.last { "~" } else { "" }, self.reg)
    }
}

impl Field for Pinned {
    fn effects(&self, visit: &mut impl Visit) {
        visit.read(self.0);
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

impl Field for Near {
    fn effects(&self, visit: &mut impl Visit) {
        visit.jump(i32::from(self.0));
    }
    fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result {
        write!(f, "{:+}", self.0)
    }
}

impl Field for Far {
    fn effects(&self, visit: &mut impl Visit) {
        visit.jump(self.0);
    }
    fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result {
        write!(f, "{:+}", self.0)
    }
}

impl Field for BuiltinId {
    fn effects(&self, _visit: &mut impl Visit) {}
    fn show(&self, f: &mut fmt::Formatter<'_>, names: Names) -> fmt::Result {
        f.write_str(names(*self))
    }
}

impl Field for bool {
    fn effects(&self, _visit: &mut impl Visit) {}
    fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Field for Written {
    fn effects(&self, _visit: &mut impl Visit) {}
    fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result {
        f.write_str(match self {
            Written::Increment => "inc",
            Written::Plus => "+",
            Written::Minus => "-",
        })
    }
}

impl Field for Relation {
    fn effects(&self, _visit: &mut impl Visit) {}
    fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result {
        f.write_str(match self {
            Relation::Equal => "=",
            Relation::NotEqual => "not=",
            Relation::Less => "<",
            Relation::LessEqual => "<=",
            Relation::Greater => ">",
            Relation::GreaterEqual => ">=",
        })
    }
}

impl Field for Side {
    fn effects(&self, _visit: &mut impl Visit) {}
    fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result {
        f.write_str(match self {
            Side::Right => "right",
            Side::Left => "left",
        })
    }
}

impl Field for Signal {
    fn effects(&self, _visit: &mut impl Visit) {}
    fn show(&self, f: &mut fmt::Formatter<'_>, _names: Names) -> fmt::Result {
        f.write_str(match self {
            Signal::Return => "return",
            Signal::Fail => "fail",
        })
    }
}

macro_rules! instructions {
    ($($(#[doc = $doc:literal])+ $name:ident $text:literal $flow:ident { $($field:ident: $type:ty),* };)+) => {
        /// One instruction; 8 bytes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Instruction { $($(#[doc = $doc])+ $name {
            $(#[doc = "Operand."] $field: $type),*
        },)+ }

        impl Instruction {
            /// The mnemonic.
            pub const fn name(&self) -> &'static str {
                match self { $(Instruction::$name { .. } => $text,)+ }
            }

            /// Whether the next instruction can follow.
            pub const fn flow(&self) -> Flow {
                match self { $(Instruction::$name { .. } => Flow::$flow,)+ }
            }

            /// Tells every effect of every operand, in order.
            pub fn effects(&self, visit: &mut impl Visit) {
                match self { $(Instruction::$name { $($field),* } => { $($field.effects(visit);)* let _ = &visit; })+ }
            }
        }

        impl Instruction {
            /// The text of the instruction, given the names of builtins.
            pub fn text(&self, names: Names) -> impl fmt::Display {
                Text(*self, names)
            }
        }

        /// An instruction to be written.
        struct Text(Instruction, Names);

        impl fmt::Display for Text {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let Text(instruction, names) = *self;
                write!(f, "{:<12}", instruction.name())?;
                match instruction { $(Instruction::$name { $($field),* } => {
                    $(f.write_str(" ")?; $field.show(f, names)?;)*
                })+ }
                Ok(())
            }
        }
    };
}

/// Where control goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// To the jump target or to the next instruction. Registers are filled only on the way to the next.
    Branch,
    /// To the jump target only.
    Jump,
    /// Out of the function.
    End,
}

instructions! {
    // ----- registers and constants
    /// dst = the constant.
    LoadConst "const" Next { constant: Constant, dst: Dst };
    /// dst = the integer.
    LoadInt "int" Next { value: Small, dst: Dst };
    /// dst = nil.
    LoadNil "nil" Next { dst: Dst };
    /// dst = true or false.
    LoadBool "bool" Next { value: bool, dst: Dst };
    /// dst = src. With `last` this moves, else it copies (a reference count goes up).
    Move "move" Next { src: Src, dst: Dst };
    /// Drops the value of a register (`last` must be set).
    Drop "drop" Next { src: Src };
    /// dst = capture number `index` of the closure in register 0.
    LoadCapture "capture" Next { index: Constant, dst: Dst };
    /// dst = the running closure (register 0).
    LoadSelf "self" Next { dst: Dst };

    // ----- globals
    /// dst = value of a global; faults with unbound_var when it has none and no builtin of that name exists.
    LoadGlobal "global" Next { global: Global, dst: Dst };
    /// Sets a global in the user namespace.
    StoreGlobal "def" Next { global: Global, src: Src };
    /// dst = true when the global is defined (used by defonce).
    IsDefined "defined?" Next { global: Global, dst: Dst };

    // ----- arithmetic and comparison, with integer and float fast paths
    /// dst = a + b.
    Add "add" Next { a: Src, b: Src, dst: Dst };
    /// dst = a - b.
    Subtract "sub" Next { a: Src, b: Src, dst: Dst };
    /// dst = a * b.
    Multiply "mul" Next { a: Src, b: Src, dst: Dst };
    /// dst = (mod a b).
    Modulo "mod" Next { a: Src, b: Src, dst: Dst };
    /// dst = (quot a b).
    Quotient "quot" Next { a: Src, b: Src, dst: Dst };
    /// dst = (rem a b).
    Remainder "rem" Next { a: Src, b: Src, dst: Dst };
    /// dst = a + constant, or constant + a.
    AddConst "add-k" Next { a: Src, constant: Constant, dst: Dst, side: Side };
    /// dst = a - constant, or constant - a.
    SubtractConst "sub-k" Next { a: Src, constant: Constant, dst: Dst, side: Side };
    /// dst = a * constant, or constant * a.
    MultiplyConst "mul-k" Next { a: Src, constant: Constant, dst: Dst, side: Side };
    /// dst = (mod a constant).
    ModuloConst "mod-k" Next { a: Src, constant: Constant, dst: Dst };
    /// dst = (quot a constant).
    QuotientConst "quot-k" Next { a: Src, constant: Constant, dst: Dst };
    /// dst = (rem a constant).
    RemainderConst "rem-k" Next { a: Src, constant: Constant, dst: Dst };
    /// dst = a * integer, or integer * a.
    MultiplyInt "mul#" Next { a: Src, value: Small, dst: Dst, side: Side };
    /// dst = (mod a integer).
    ModuloInt "mod#" Next { a: Src, value: Int, dst: Dst };
    /// dst = (quot a integer).
    QuotientInt "quot#" Next { a: Src, value: Int, dst: Dst };
    /// dst = a + small integer (also `inc`, `dec` and subtraction of a literal).
    AddSmall "add#" Next { a: Src, value: Small, dst: Dst, written: Written };
    /// dst = (= a b).
    Equal "eq" Next { a: Src, b: Src, dst: Dst };
    /// dst = (< a b).
    Less "lt" Next { a: Src, b: Src, dst: Dst };
    /// dst = (<= a b).
    LessEqual "le" Next { a: Src, b: Src, dst: Dst };
    /// dst = whether the relation holds between a and the constant.
    CompareConst "compare-k" Next { relation: Relation, a: Src, constant: Constant, dst: Dst };
    /// dst = logical not.
    Not "not" Next { a: Src, dst: Dst };

    // ----- access
    /// dst = flexible lookup of a constant keyword or string in a map; nil when src is not a map.
    /// The keyword is in call position: `(:k m)`.
    GetKey "get-key" Next { src: Src, constant: Constant, dst: Dst };

    /// dst = one item of a sequential pattern's source; nil when there is none.
    Element "element" Next { src: Src, index: Small, dst: Dst };

    // ----- construction
    /// dst = vector of the arguments.
    MakeVector "vector" Next { items: Args, dst: Dst };
    /// dst = vector in src (taken) with the arguments appended; for literals longer than a window.
    AppendVector "vector+" Next { src: Src, items: Args, dst: Dst };
    /// dst = map of the arguments, key and value alternating; a later equal key wins.
    MakeMap "map" Next { items: Args, dst: Dst };
    /// dst = map of the keys of a constant vector, all different keywords or strings, and the values.
    MakeRecord "record" Next { keys: Constant, items: Args, dst: Dst };
    /// dst = map in src (taken) with more entries.
    AppendMap "map+" Next { src: Src, items: Args, dst: Dst };
    /// dst = set of the arguments.
    MakeSet "set" Next { items: Args, dst: Dst };
    /// dst = set in src (taken) with more members.
    AppendSet "set+" Next { src: Src, items: Args, dst: Dst };
    /// dst = closure over the captured values (as many as the function declares), from `at` on.
    MakeClosure "closure" Next { proto: ProtoIndex, captures: Args, dst: Dst };

    // ----- control
    /// Goes to the target.
    Jump "jump" Jump { to: Far };
    /// Backward jump of `loop` and `recur`: pays fuel and counts one round in the counter register.
    LoopBack "loop" Jump { counter: Pinned, to: Far };
    /// A short cut through the two instructions that follow it: an `AddSmall` of the same variable and the
    /// `LoopBack` to the same target. Does what they do where that is simple; else they do it.
    CountLoop "count" Branch { variable: Pinned, step: Small, to: Far };
    /// Jumps when the value is nil or false.
    JumpIfFalse "jump-false" Branch { condition: Src, to: Far };
    /// Jumps when the value is neither nil nor false.
    JumpIfTrue "jump-true" Branch { condition: Src, to: Far };
    /// Jumps when the value is nil.
    JumpIfNil "jump-nil" Branch { condition: Src, to: Far };
    /// Jumps unless (= a b).
    JumpUnlessEqual "jump-ne" Branch { a: Src, b: Src, to: Near };
    /// Jumps unless (< a b).
    JumpUnlessLess "jump-ge" Branch { a: Src, b: Src, to: Near };
    /// Jumps unless (<= a b).
    JumpUnlessLessEqual "jump-gt" Branch { a: Src, b: Src, to: Near };
    /// Jumps unless (= a integer).
    JumpUnlessEqualInt "jump-ne#" Branch { a: AgainstInt, to: Near };
    /// Jumps unless (not= a integer).
    JumpUnlessNotEqualInt "jump-eq#" Branch { a: AgainstInt, to: Near };
    /// Jumps unless (< a integer).
    JumpUnlessLessInt "jump-ge#" Branch { a: AgainstInt, to: Near };
    /// Jumps unless (<= a integer).
    JumpUnlessLessEqualInt "jump-gt#" Branch { a: AgainstInt, to: Near };
    /// Jumps unless (> a integer).
    JumpUnlessGreaterInt "jump-le#" Branch { a: AgainstInt, to: Near };
    /// Jumps unless (>= a integer).
    JumpUnlessGreaterEqualInt "jump-lt#" Branch { a: AgainstInt, to: Near };
    /// Jumps unless the relation holds between a and the constant.
    JumpUnlessConst "jump-unless-k" Branch { relation: Relation, a: Src, constant: Constant, to: Near };
    /// Iteration of `for` and `doseq`: `seq` holds a vector (made by `%seq`), the register after it the
    /// integer index. Fills dst with the next element and pays fuel, or jumps when there is none.
    Next "next" Branch { seq: Pinned, dst: Dst, to: Far };

    // ----- calls
    /// Calls the value in the window's first register.
    Call "call" Next { callee: Args, window: Window };
    /// Calls a global without copying it where it is a known function.
    CallGlobal "call-global" Next { global: Global, window: Window };
    /// Calls a builtin with any number of arguments.
    CallBuiltin "call-builtin" Next { builtin: BuiltinId, window: Window };
    /// dst = builtin(a). Callbacks run above the function's declared registers.
    Call1 "call1" Next { builtin: BuiltinId, a: Src, dst: Dst };
    /// dst = builtin(a, b).
    Call2 "call2" Next { builtin: BuiltinId, a: Src, b: Src, dst: Dst };
    /// Ends the whole program with `(return v)` or `(fail v)` (`last` must be set).
    Exit "exit" End { signal: Signal, src: Src };
    /// Returns the value (`last` must be set) and drops register 0.
    Return "return" End { src: Src };
}

const _: () = assert!(size_of::<Instruction>() == 8);
