//! The intermediate representation (IR) of the compiler: a program with resolved names, between syntax trees and
//! bytecode.
//!
//! - Names are gone: a local is a *slot*, numbered by how many locals are in scope when it is bound, so two locals of
//!   a function share a slot only if they never live at once. Outer locals are captures.
//! - Sugar is gone: every conditional is a [`Kind::Cond`], threading is a [`Kind::Let`] that binds one slot again and
//!   again. Chains are slices, so their length costs no recursion; the nesting of the source bounds the depth of the
//!   tree.
//! - Evaluation order is the order of the fields, except that an instruction reads a local operand when it runs
//!   (unlike arguments of a window call). Values are immutable, so programs cannot observe this.
//! - The liveness pass ([`crate::ir::liveness`]) fills the cells: last uses, and the locals that die on an edge
//!   between two expressions.

pub(crate) mod effects;
pub(crate) mod liveness;
mod patterns;
pub(crate) mod tables;

use ptc_vm::Span;
use ptc_vm::bytecode::BuiltinId;
use ptc_vm::bytecode::instruction::{Signal, Written};
use std::cell::Cell;

/// Most locals of one function in scope at once; there are 256 registers.
pub(crate) const MAX_SLOTS: usize = 200;

/// A set of slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slots([u64; 4]);

impl Slots {
    pub(crate) const EMPTY: Slots = Slots([0; 4]);

    pub(crate) fn has(&self, slot: u8) -> bool {
        self.0[usize::from(slot >> 6)] >> (slot & 63) & 1 == 1
    }
    pub(crate) fn insert(&mut self, slot: u8) {
        self.0[usize::from(slot >> 6)] |= 1 << (slot & 63);
    }
    pub(crate) fn remove(&mut self, slot: u8) {
        self.0[usize::from(slot >> 6)] &= !(1 << (slot & 63));
    }
    pub(crate) fn union(&self, other: Slots) -> Slots {
        Slots(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }
    pub(crate) fn minus(&self, other: Slots) -> Slots {
        Slots(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }
    pub(crate) fn iter(self) -> impl Iterator<Item = u8> {
        self.0.into_iter().zip([0, 64, 128, 192]).flat_map(|(mut word, base)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as u8)?;
                word &= word - 1;
                Some(base + bit)
            })
        })
    }
}

/// An expression with its span.
#[derive(Debug)]
pub(crate) struct Expr<'a> {
    pub(crate) span: Span,
    pub(crate) kind: Kind<'a>,
}

const _: () = assert!(size_of::<Expr<'_>>() <= 48);

/// A reference to an expression in the arena.
pub(crate) type Ref<'a> = &'a Expr<'a>;

/// References to several.
pub(crate) type Refs<'a> = &'a [Ref<'a>];

/// A read of a local.
#[derive(Debug)]
pub(crate) struct Use {
    pub(crate) slot: u8,
    pub(crate) last: Cell<bool>,
}

/// A value known at compile time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Literal {
    Nil,
    Bool(bool),
    Int(i64),
    /// A row of the constant table.
    Row(u16),
}

/// The kinds of expressions. Large ones are stored separately in the arena, so that the others stay small.
#[derive(Debug)]
pub(crate) enum Kind<'a> {
    Literal(Literal),
    Local(Use),
    Capture(u16),
    /// The running closure.
    SelfRef,
    Global(u16),
    /// A global, or nil while it is not defined (a bare name in `or`).
    GlobalOrNil(u16),
    Call(Callee<'a>, Refs<'a>),
    /// `(:key target)`; the row is a keyword or a string.
    GetKey(u16, Ref<'a>),
    /// Two operands or more, folded from the left.
    Arithmetic(Arithmetic, Refs<'a>),
    AddSmall(Ref<'a>, i16, Written),
    /// The value of a test, as a boolean.
    Test(Test<'a>),
    Vector(Refs<'a>),
    /// Keys and values alternate.
    Map(Refs<'a>),
    Set(Refs<'a>),
    Closure(&'a Function<'a>, Refs<'a>),
    Do(Refs<'a>),
    Let(&'a [Binding<'a>], Ref<'a>),
    Cond(&'a Cond<'a>),
    Case(&'a Case<'a>),
    /// `and` and `or`; never empty.
    Logic(&'a Logic<'a>),
    /// `some->`.
    SomeChain(&'a SomeChain<'a>),
    Loop(&'a Loop<'a>),
    Recur(&'a [RecurArg<'a>]),
    /// `doseq`, or one level of `for` inside `Collect`.
    Each(&'a Each<'a>),
    /// `for`: collects the values of `Emit` inside the body.
    Collect(Ref<'a>),
    Emit(Ref<'a>),
    /// Sets the global and gives the row (a var).
    Def {
        global: u16,
        var: u16,
        value: Ref<'a>,
    },
    /// Like `Def` unless the global is defined.
    DefOnce {
        global: u16,
        var: u16,
        value: Ref<'a>,
        dying: &'a Cell<Slots>,
    },
    Exit(Signal, Ref<'a>),
}

/// The target of a call.
#[derive(Debug)]
pub(crate) enum Callee<'a> {
    Builtin(BuiltinId),
    Global(u16),
    Value(Ref<'a>),
}

/// Arithmetic with an instruction of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Modulo,
    Quotient,
    Remainder,
}

/// Comparison with an instruction of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Less,
    LessEqual,
}

/// A condition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Test<'a> {
    pub(crate) negated: bool,
    pub(crate) kind: TestKind<'a>,
}

/// The operands of a condition.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TestKind<'a> {
    Truthy(Ref<'a>),
    NotNil(Ref<'a>),
    /// `(a op b)`; `swapped` if `b` is written, and evaluated, first.
    Compare {
        op: Comparison,
        a: Ref<'a>,
        b: Ref<'a>,
        swapped: bool,
    },
}

/// One value and its slot. The same slot may be bound again: the old value is dead then.
#[derive(Debug)]
pub(crate) struct Binding<'a> {
    pub(crate) slot: u8,
    pub(crate) value: Ref<'a>,
    /// Nothing reads it.
    pub(crate) dead: Cell<bool>,
}

impl<'a> Binding<'a> {
    pub(crate) fn new(slot: u8, value: Ref<'a>) -> Binding<'a> {
        Binding { slot, value, dead: Cell::new(false) }
    }
}

/// Clauses tried in order.
#[derive(Debug)]
pub(crate) struct Cond<'a> {
    pub(crate) clauses: &'a [Clause<'a>],
    /// nil if absent.
    pub(crate) otherwise: Option<Ref<'a>>,
    /// Locals that die on the edge to `otherwise`.
    pub(crate) dying: Cell<Slots>,
}

/// A test and the body that it guards.
#[derive(Debug)]
pub(crate) struct Clause<'a> {
    /// A local bound before the test, in scope in the test and the body (`if-let`).
    pub(crate) binding: Option<Binding<'a>>,
    pub(crate) test: Test<'a>,
    pub(crate) body: Ref<'a>,
    /// Locals that die on the edge to the body.
    pub(crate) dying_body: Cell<Slots>,
    /// Locals that die on the edge to the next clause (not used by the last clause).
    pub(crate) dying_next: Cell<Slots>,
}

/// `case`: the first clause with an equal constant.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub(crate) subject: Ref<'a>,
    pub(crate) clauses: &'a [CaseClause<'a>],
    pub(crate) otherwise: Option<Ref<'a>>,
    pub(crate) dying: Cell<Slots>,
}

/// One clause of `case`.
#[derive(Debug)]
pub(crate) struct CaseClause<'a> {
    pub(crate) constants: &'a [Literal],
    pub(crate) body: Ref<'a>,
    pub(crate) dying: Cell<Slots>,
}

/// `and` or `or`.
#[derive(Debug)]
pub(crate) struct Logic<'a> {
    pub(crate) is_or: bool,
    pub(crate) items: Refs<'a>,
    /// For each item but the last: locals that die if the item decides.
    pub(crate) dying: &'a [Cell<Slots>],
}

/// Steps over one slot that stop at nil.
#[derive(Debug)]
pub(crate) struct SomeChain<'a> {
    pub(crate) slot: u8,
    pub(crate) first: Ref<'a>,
    pub(crate) steps: &'a [(Ref<'a>, Cell<Slots>)],
}

/// `loop` with at least one `recur`.
#[derive(Debug)]
pub(crate) struct Loop<'a> {
    /// Slots are consecutive.
    pub(crate) bindings: &'a [Binding<'a>],
    pub(crate) body: Ref<'a>,
    /// Outer locals that the body reads; full during the whole loop.
    pub(crate) kept: Cell<Slots>,
    /// Loop variables that the body never reads.
    pub(crate) unread: Cell<Slots>,
}

/// An argument of `recur`.
#[derive(Debug)]
pub(crate) struct RecurArg<'a> {
    pub(crate) slot: u8,
    pub(crate) value: Ref<'a>,
    /// The variable is dead by the time the value is computed, so the value goes directly into its register.
    pub(crate) direct: Cell<bool>,
}

/// Iteration over one collection.
#[derive(Debug)]
pub(crate) struct Each<'a> {
    pub(crate) collection: Ref<'a>,
    pub(crate) slot: u8,
    pub(crate) steps: &'a [EachStep<'a>],
    /// Evaluated for its effect.
    pub(crate) body: Ref<'a>,
    pub(crate) kept: Cell<Slots>,
    /// Nothing reads the element.
    pub(crate) unread: Cell<bool>,
    /// Kept locals that die at the end.
    pub(crate) dying: Cell<Slots>,
}

/// A step between an element and the body.
#[derive(Debug)]
pub(crate) enum EachStep<'a> {
    Bind(Binding<'a>),
    /// Continues with the next element if false.
    When(Test<'a>, Cell<Slots>),
    /// Ends this level if false.
    While(Test<'a>, Cell<Slots>),
}

/// A function with one or more arities that share their captures.
#[derive(Debug)]
pub(crate) struct Function<'a> {
    /// Empty for anonymous functions.
    pub(crate) name: &'a str,
    pub(crate) arities: &'a [Arity<'a>],
    pub(crate) captures: u16,
}

/// One arity. Parameters are the slots from 0 on.
#[derive(Debug)]
pub(crate) struct Arity<'a> {
    pub(crate) span: Span,
    pub(crate) fixed: u8,
    pub(crate) variadic: bool,
    /// As `#fn[x y]` shows them.
    pub(crate) parameters: &'a str,
    pub(crate) body: Ref<'a>,
    pub(crate) has_recur: bool,
    /// Parameters that the body never reads.
    pub(crate) unread: Cell<Slots>,
}

/// An expression as a condition.
pub(crate) fn as_test(expr: Ref<'_>) -> Test<'_> {
    match &expr.kind {
        Kind::Test(test) => *test,
        _ => Test { negated: false, kind: TestKind::Truthy(expr) },
    }
}
