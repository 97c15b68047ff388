//! Declares the instruction set of the VM once, as a table from which the enum, its text, the verifier's view and the
//! interpreter's dispatch are generated. A row gives an instruction's mnemonic, control flow, operands and work.
//!
//! The rows also give the effects on registers, the references that the verifier checks, and the arms of both loops of
//! the interpreter. A row says which loops implement it: both (`hot`), or only the complete one (`full`), for which the
//! hot loop exits. Each loop implements the kinds of work in its macro `work`, and rows pass their operands to it. An
//! instruction that does known work on other operands so needs no arm of its own.

use super::builtin::BuiltinId;
use super::builtin::Names;
pub use super::effect::{Effect, Visit};
pub use super::operand::{
    AgainstInt, Args, Capture, Constant, Cursor, Dst, Entries, Far, Field, Global, Int, Key, Last, Near,
    Pinned, ProtoIndex, Relation, Side, Signal, Small, Src, Template, Window, Written,
};
pub use super::reference::Reference;
use std::fmt;

/// Where control goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// To the jump target or to the next instruction. Registers are filled only on the path to the next instruction.
    Branch,
    /// To the jump target only.
    Jump,
    /// Out of the function, with nothing left in registers but the closure.
    Return,
    /// Out of the program, whatever registers hold.
    Exit,
}

/// Passes the rows of the table to a macro, after the macro's own arguments.
macro_rules! instruction_table {
    ($then:ident $($given:tt)*) => { $then! { [$($given)*]
    // ----- registers and constants
    /// dst = the constant.
    LoadConst "const" Next { constant: Constant, dst: Dst } hot load_const(constant, dst);
    /// dst = the integer.
    LoadInt "int" Next { value: Small, dst: Dst } hot put(dst, Value::Int(value.value()));
    /// dst = nil.
    LoadNil "nil" Next { dst: Dst } hot put(dst, Value::Nil);
    /// dst = true or false.
    LoadBool "bool" Next { value: bool, dst: Dst } hot put(dst, Value::Bool(value));
    /// dst = src. With `last` this moves, else it copies (a reference count goes up).
    Move "move" Next { src: Src, dst: Dst } hot move_value(src, dst);
    /// Drops the value of a register.
    Drop "drop" Next { src: Last } hot drop_value(src);
    /// dst = capture number `index` of the closure in register 0.
    LoadCapture "capture" Next { index: Capture, dst: Dst } hot load_capture(index, dst);

    // ----- globals
    /// dst = value of a global; faults with unbound_var if it has no value and there is no builtin of that name.
    LoadGlobal "global" Next { global: Global, dst: Dst } hot load_global(global, dst);
    /// Sets a global in the user namespace.
    StoreGlobal "def" Next { global: Global, src: Src } full store_global(global, src);
    /// dst = true when the global is defined (used by defonce).
    IsDefined "defined?" Next { global: Global, dst: Dst } full is_defined(global, dst);

    // ----- arithmetic and comparison, with integer and float fast paths
    /// dst = a + b.
    Add "add" Next { a: Src, b: Src, dst: Dst } hot compute(Add, a, b, dst);
    /// dst = a - b.
    Subtract "sub" Next { a: Src, b: Src, dst: Dst } hot compute(Subtract, a, b, dst);
    /// dst = a * b.
    Multiply "mul" Next { a: Src, b: Src, dst: Dst } hot compute(Multiply, a, b, dst);
    /// dst = (mod a b).
    Modulo "mod" Next { a: Src, b: Src, dst: Dst } hot compute(Modulo, a, b, dst);
    /// dst = (quot a b).
    Quotient "quot" Next { a: Src, b: Src, dst: Dst } full compute(Quotient, a, b, dst);
    /// dst = (rem a b).
    Remainder "rem" Next { a: Src, b: Src, dst: Dst } full compute(Remainder, a, b, dst);
    /// dst = a + constant, or constant + a.
    AddConst "add-k" Next { a: Src, constant: Constant, dst: Dst, side: Side }
        hot compute_constant(Add, a, constant, dst, side);
    /// dst = a - constant, or constant - a.
    SubtractConst "sub-k" Next { a: Src, constant: Constant, dst: Dst, side: Side }
        full compute_constant(Subtract, a, constant, dst, side);
    /// dst = a * constant, or constant * a.
    MultiplyConst "mul-k" Next { a: Src, constant: Constant, dst: Dst, side: Side }
        hot compute_constant(Multiply, a, constant, dst, side);
    /// dst = (mod a constant).
    ModuloConst "mod-k" Next { a: Src, constant: Constant, dst: Dst }
        hot compute_constant(Modulo, a, constant, dst, Side::Right);
    /// dst = (quot a constant).
    QuotientConst "quot-k" Next { a: Src, constant: Constant, dst: Dst }
        full compute_constant(Quotient, a, constant, dst, Side::Right);
    /// dst = (rem a constant).
    RemainderConst "rem-k" Next { a: Src, constant: Constant, dst: Dst }
        full compute_constant(Remainder, a, constant, dst, Side::Right);
    /// dst = a * integer, or integer * a.
    MultiplyInt "mul#" Next { a: Src, value: Small, dst: Dst, side: Side }
        hot compute_int(Multiply, a, value, dst, side);
    /// dst = (mod a integer).
    ModuloInt "mod#" Next { a: Src, value: Int, dst: Dst } hot compute_int(Modulo, a, value, dst, Side::Right);
    /// dst = (quot a integer).
    QuotientInt "quot#" Next { a: Src, value: Int, dst: Dst } hot compute_int(Quotient, a, value, dst, Side::Right);
    /// dst = (rem a integer).
    RemainderInt "rem#" Next { a: Src, value: Int, dst: Dst } hot compute_int(Remainder, a, value, dst, Side::Right);
    /// dst = a + small integer (also `inc`, `dec` and subtraction of a literal).
    AddSmall "add#" Next { a: Src, value: Small, dst: Dst, written: Written } hot add_small(a, value, dst, written);
    /// dst = (= a b).
    Equal "eq" Next { a: Src, b: Src, dst: Dst } hot answer(dst, compare(Equal, a, b));
    /// dst = (< a b).
    Less "lt" Next { a: Src, b: Src, dst: Dst } hot answer(dst, compare(Less, a, b));
    /// dst = (<= a b).
    LessEqual "le" Next { a: Src, b: Src, dst: Dst } hot answer(dst, compare(LessEqual, a, b));
    /// dst = whether the relation holds between a and the constant.
    CompareConst "compare-k" Next { relation: Relation, a: Src, constant: Constant, dst: Dst }
        hot answer(dst, relate(relation, a, constant));
    /// dst = logical not.
    Not "not" Next { a: Src, dst: Dst } hot answer(dst, falsy(a));

    // ----- access
    /// dst = flexible lookup of a constant keyword or string in a map; nil when src is not a map.
    /// The keyword is in call position: `(:k m)`.
    GetKey "get-key" Next { src: Src, key: Key, dst: Dst } hot get_key(src, key, dst);

    /// dst = one item of a sequential pattern's source; nil when there is none.
    Element "element" Next { src: Src, index: Small, dst: Dst } hot element(src, index, dst);

    // ----- construction
    /// dst = vector of the arguments.
    MakeVector "vector" Next { items: Args, dst: Dst } hot make_vector(items, dst);
    /// dst = vector in src with the arguments appended; for literals longer than a window.
    AppendVector "vector+" Next { src: Last, items: Args, dst: Dst } full append_vector(src, items, dst);
    /// dst = map of the arguments, key and value alternating; a later equal key wins.
    MakeMap "map" Next { items: Args, dst: Dst } full make_map(items, dst);
    /// dst = map of the keys of a constant vector, all different keywords or strings, and the values.
    MakeRecord "record" Next { entries: Entries, dst: Dst } hot make_record(entries, dst);
    /// dst = map in src with more entries.
    AppendMap "map+" Next { src: Last, items: Args, dst: Dst } full append_map(src, items, dst);
    /// dst = set of the arguments.
    MakeSet "set" Next { items: Args, dst: Dst } full make_set(items, dst);
    /// dst = set in src with more members.
    AppendSet "set+" Next { src: Last, items: Args, dst: Dst } full append_set(src, items, dst);
    /// dst = closure over the captured values (as many as the function declares), from `at` on.
    MakeClosure "closure" Next { template: Template, dst: Dst } hot make_closure(template, dst);

    // ----- control
    /// Goes to the target.
    Jump "jump" Jump { to: Far } hot jump(to);
    /// Backward jump of `loop` and `recur`: pays fuel and counts one round in the counter register.
    LoopBack "loop" Jump { counter: Pinned, to: Far } hot loop_back(counter, to);
    /// A shortcut through the two instructions that follow it: an `AddSmall` of the same variable and the `LoopBack`
    /// to the same target. Does their work in the simple case; otherwise they run.
    CountLoop "count" Branch { variable: Pinned, step: Small, to: Far } hot count_loop(variable, step, to);
    /// Jumps when the value is nil or false.
    JumpIfFalse "jump-false" Branch { condition: Src, to: Far } hot jump_unless(to, truthy(condition));
    /// Jumps when the value is neither nil nor false.
    JumpIfTrue "jump-true" Branch { condition: Src, to: Far } hot jump_if(to, truthy(condition));
    /// Jumps when the value is nil.
    JumpIfNil "jump-nil" Branch { condition: Src, to: Far } hot jump_if(to, nil(condition));
    /// Jumps unless (= a b).
    JumpUnlessEqual "jump-ne" Branch { a: Src, b: Src, to: Near } hot jump_unless(to, compare(Equal, a, b));
    /// Jumps unless (< a b).
    JumpUnlessLess "jump-ge" Branch { a: Src, b: Src, to: Near } hot jump_unless(to, compare(Less, a, b));
    /// Jumps unless (<= a b).
    JumpUnlessLessEqual "jump-gt" Branch { a: Src, b: Src, to: Near } hot jump_unless(to, compare(LessEqual, a, b));
    /// Jumps unless (= a integer).
    JumpUnlessEqualInt "jump-ne#" Branch { a: AgainstInt, to: Near } hot jump_unless(to, compare_int(Equal, a));
    /// Jumps unless (not= a integer).
    JumpUnlessNotEqualInt "jump-eq#" Branch { a: AgainstInt, to: Near } hot jump_unless(to, compare_int(NotEqual, a));
    /// Jumps unless (< a integer).
    JumpUnlessLessInt "jump-ge#" Branch { a: AgainstInt, to: Near } hot jump_unless(to, compare_int(Less, a));
    /// Jumps unless (<= a integer).
    JumpUnlessLessEqualInt "jump-gt#" Branch { a: AgainstInt, to: Near }
        hot jump_unless(to, compare_int(LessEqual, a));
    /// Jumps unless (> a integer).
    JumpUnlessGreaterInt "jump-le#" Branch { a: AgainstInt, to: Near } hot jump_unless(to, compare_int(Greater, a));
    /// Jumps unless (>= a integer).
    JumpUnlessGreaterEqualInt "jump-lt#" Branch { a: AgainstInt, to: Near }
        hot jump_unless(to, compare_int(GreaterEqual, a));
    /// Jumps unless the relation holds between a and the constant.
    JumpUnlessConst "jump-unless-k" Branch { relation: Relation, a: Src, constant: Constant, to: Near }
        hot jump_unless(to, relate(relation, a, constant));
    /// Iteration of `for` and `doseq`: `seq` holds a vector (made by `%seq`), the register after it the
    /// integer index. Fills dst with the next element and pays fuel, or jumps when there is none.
    Next "next" Branch { seq: Cursor, dst: Dst, to: Far } hot next(seq, dst, to);

    // ----- calls
    /// Calls the value in the window's first register.
    Call "call" Next { callee: Args, window: Window } hot call(window);
    /// Calls a global without copying it where it is a known function.
    CallGlobal "call-global" Next { global: Global, window: Window } hot call_global(global, window);
    /// Calls a builtin with any number of arguments.
    CallBuiltin "call-builtin" Next { builtin: BuiltinId, window: Window } hot call_many(builtin, window);
    /// dst = builtin(a). Callbacks run above the function's declared registers.
    Call1 "call1" Next { builtin: BuiltinId, a: Src, dst: Dst } hot call_one(builtin, a, dst);
    /// dst = builtin(a, b).
    Call2 "call2" Next { builtin: BuiltinId, a: Src, b: Src, dst: Dst } hot call_two(builtin, a, b, dst);
    /// Ends the whole program with `(return v)` or `(fail v)`.
    Exit "exit" Exit { signal: Signal, src: Last } full exit(signal, src);
    /// Returns the value and drops register 0.
    Return "return" Return { src: Last } hot return_value(src);
    } };
}
pub(crate) use instruction_table;

macro_rules! instructions {
    ([] $(
        $(#[doc = $doc:literal])+
        $name:ident $text:literal $flow:ident { $($field:ident: $type:ty),* } $loops:ident $work:ident $operands:tt;
    )+) => {
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

            /// Where control goes after it.
            pub const fn flow(&self) -> Flow {
                match self { $(Instruction::$name { .. } => Flow::$flow,)+ }
            }

            /// Tells every effect of every operand, in order.
            pub fn effects(&self, visit: &mut impl Visit) {
                match self { $(Instruction::$name { $($field),* } => { $($field.effects(visit);)* let _ = &visit; })+ }
            }

            /// Its reference to something other than registers: at most one.
            pub fn reference(&self) -> Option<Reference> {
                match self { $(Instruction::$name { $($field),* } => None$(.or($field.reference()))*,)+ }
            }

            /// The text of the instruction, given the names of builtins.
            pub fn text(&self, names: Names) -> impl fmt::Display {
                let instruction = *self;
                fmt::from_fn(move |f| {
                    write!(f, "{:<12}", instruction.name())?;
                    match instruction { $(Instruction::$name { $($field),* } => {
                        $(f.write_str(" ")?; $field.show(f, names)?;)*
                    })+ }
                    Ok(())
                })
            }
        }
    };
}

instruction_table!(instructions);

const _: () = assert!(size_of::<Instruction>() == 8);
