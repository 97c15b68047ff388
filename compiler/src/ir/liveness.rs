//! Liveness analysis: marks where a local variable is read last, or is no longer needed on one of several branches, so
//! that generated code moves values instead of copying and frees them early. The marks are in the IR: on reads, and on
//! edges, the transitions from one expression to the next.
//!
//! One walk against the order of evaluation, with the set of locals that are still read later. The invariant that the
//! code generator builds on: at every point, exactly the locals in that set have full registers. So a read without
//! another one after it takes the value, and where two paths part, locals that only the other path reads are dropped on
//! the edge.
//!
//! A loop keeps outer locals that its body reads full on every round; such a local dies on the edges that leave the
//! loop.

use crate::ir::{
    Callee, Case, Cond, Each, EachStep, Expr, Function, Kind, Logic, Loop, RecurArg, Ref, Refs, Slots,
    SomeChain, Test, TestKind,
};
use crate::meter::Meter;

/// Fills the cells of a function and of the functions inside it.
pub(crate) fn analyse(meter: &Meter<'_>, function: &Function<'_>) {
    for arity in function.arities {
        let live = expr(meter, arity.body, Slots::EMPTY, Slots::EMPTY);
        let mut parameters = Slots::EMPTY;
        for slot in 0..arity.fixed + u8::from(arity.variadic) {
            parameters.insert(slot);
        }
        arity.unread.set(parameters.minus(live));
    }
}

/// The locals that are live before an expression, given those live after it and at the target of `recur`.
fn expr(meter: &Meter<'_>, expr_: &Expr<'_>, out: Slots, recur: Slots) -> Slots {
    if meter.step().is_err() {
        return out;
    }
    match &expr_.kind {
        Kind::Literal(_) | Kind::Capture(_) | Kind::SelfRef | Kind::Global(_) | Kind::GlobalOrNil(_) => out,
        Kind::Local(read) => {
            read.last.set(!out.has(read.slot));
            let mut live = out;
            live.insert(read.slot);
            live
        }
        Kind::Call(callee, arguments) => call(meter, callee, arguments, out, recur),
        Kind::GetKey(_, target) | Kind::AddSmall(target, ..) => expr(meter, target, out, recur),
        Kind::Arithmetic(_, items) => {
            let (first, rest) = items.split_at(2.min(items.len()));
            let live = sequence(meter, rest, out, recur);
            operands(meter, first, first, live, recur)
        }
        Kind::Test(value) => test(meter, value, out, recur),
        Kind::Vector(items) | Kind::Map(items) | Kind::Set(items) => sequence(meter, items, out, recur),
        Kind::Closure(function, captures) => {
            analyse(meter, function);
            sequence(meter, captures, out, recur)
        }
        Kind::Do(items) => sequence(meter, items, out, recur),
        Kind::Let(bindings, body) => {
            let mut live = expr(meter, body, out, recur);
            for binding in bindings.iter().rev() {
                binding.dead.set(!live.has(binding.slot));
                live.remove(binding.slot);
                live = expr(meter, binding.value, live, recur);
            }
            live
        }
        Kind::Cond(value) => cond(meter, value, out, recur),
        Kind::Case(value) => case(meter, value, out, recur),
        Kind::Logic(value) => logic(meter, value, out, recur),
        Kind::SomeChain(value) => some_chain(meter, value, out, recur),
        Kind::Loop(value) => loop_(meter, value, out, recur),
        Kind::Recur(arguments) => recur_(meter, arguments, recur),
        Kind::Each(value) => each(meter, value, out, recur),
        Kind::Collect(level) => expr(meter, level, out, recur),
        Kind::Emit(value) | Kind::Exit(_, value) | Kind::Def { value, .. } => expr(meter, value, out, recur),
        Kind::DefOnce { value, dying, .. } => {
            let live = expr(meter, value, out, recur);
            dying.set(live.minus(out));
            live
        }
    }
}

/// Expressions evaluated one after another into registers of their own.
fn sequence(meter: &Meter<'_>, items: Refs<'_>, out: Slots, recur: Slots) -> Slots {
    items.iter().rev().fold(out, |live, item| expr(meter, item, live, recur))
}

/// Several operands of one instruction. The instruction itself reads locals, in the order of its fields; the others are
/// evaluated before it, in the given order.
fn operands(meter: &Meter<'_>, fields: Refs<'_>, order: Refs<'_>, out: Slots, recur: Slots) -> Slots {
    let is_local = |item: &&Ref<'_>| matches!(item.kind, Kind::Local(_));
    let live = fields.iter().rev().filter(is_local).fold(out, |live, item| expr(meter, item, live, recur));
    order.iter().rev().filter(|item| !is_local(item)).fold(live, |live, item| expr(meter, item, live, recur))
}

#[inline(never)]
fn call(meter: &Meter<'_>, callee: &Callee<'_>, arguments: Refs<'_>, out: Slots, recur: Slots) -> Slots {
    match callee {
        Callee::Builtin(_) if matches!(arguments.len(), 1 | 2) => {
            operands(meter, arguments, arguments, out, recur)
        }
        Callee::Builtin(_) | Callee::Global(_) => sequence(meter, arguments, out, recur),
        Callee::Value(callee) => {
            let live = sequence(meter, arguments, out, recur);
            expr(meter, callee, live, recur)
        }
    }
}

fn test(meter: &Meter<'_>, test: &Test<'_>, out: Slots, recur: Slots) -> Slots {
    match test.kind {
        TestKind::Truthy(a) | TestKind::NotNil(a) => expr(meter, a, out, recur),
        TestKind::Compare { a, b, swapped: false, .. } => operands(meter, &[a, b], &[a, b], out, recur),
        TestKind::Compare { a, b, swapped: true, .. } => operands(meter, &[a, b], &[b, a], out, recur),
    }
}

#[inline(never)]
fn cond(meter: &Meter<'_>, cond: &Cond<'_>, out: Slots, recur: Slots) -> Slots {
    let mut next = cond.otherwise.map_or(out, |otherwise| expr(meter, otherwise, out, recur));
    cond.dying.set(Slots::EMPTY);
    for (index, clause) in cond.clauses.iter().enumerate().rev() {
        let body = expr(meter, clause.body, out, recur);
        clause.dying_body.set(next.minus(body));
        let dying = body.minus(next);
        match index + 1 == cond.clauses.len() {
            true => cond.dying.set(dying),
            false => clause.dying_next.set(dying),
        }
        next = test(meter, &clause.test, body.union(next), recur);
        if let Some(binding) = &clause.binding {
            binding.dead.set(!next.has(binding.slot));
            next.remove(binding.slot);
            next = expr(meter, binding.value, next, recur);
        }
    }
    next
}

#[inline(never)]
fn case(meter: &Meter<'_>, case: &Case<'_>, out: Slots, recur: Slots) -> Slots {
    // The bodies' own sets stay in their cells until the union is known.
    let default = case.otherwise.map_or(out, |otherwise| expr(meter, otherwise, out, recur));
    let mut union = default;
    for clause in case.clauses {
        let body = expr(meter, clause.body, out, recur);
        clause.dying.set(body);
        union = union.union(body);
    }
    for clause in case.clauses {
        clause.dying.set(union.minus(clause.dying.get()));
    }
    case.dying.set(union.minus(default));
    expr(meter, case.subject, union, recur)
}

#[inline(never)]
fn logic(meter: &Meter<'_>, logic: &Logic<'_>, out: Slots, recur: Slots) -> Slots {
    let Some((last, before)) = logic.items.split_last() else { return out };
    let mut live = expr(meter, last, out, recur);
    for (item, dying) in before.iter().zip(logic.dying).rev() {
        dying.set(live.minus(out));
        live = expr(meter, item, live.union(out), recur);
    }
    live
}

#[inline(never)]
fn some_chain(meter: &Meter<'_>, chain: &SomeChain<'_>, out: Slots, recur: Slots) -> Slots {
    let mut end = out;
    end.insert(chain.slot);
    let mut live = end;
    for (step, dying) in chain.steps.iter().rev() {
        live.remove(chain.slot);
        let entry = expr(meter, step, live, recur);
        let mut edge = entry.minus(end);
        // The slot itself in the set means that the step does not read it: it dies on the edge to the step.
        if !entry.has(chain.slot) {
            edge.insert(chain.slot);
        }
        dying.set(edge);
        live = entry.union(end);
    }
    live.remove(chain.slot);
    expr(meter, chain.first, live, recur)
}

#[inline(never)]
fn loop_(meter: &Meter<'_>, loop_: &Loop<'_>, out: Slots, recur: Slots) -> Slots {
    let head = loop_.kept.get().union(out);
    let body = expr(meter, loop_.body, out, head);
    let mut live = head;
    let mut unread = Slots::EMPTY;
    for binding in loop_.bindings {
        live.insert(binding.slot);
        if !body.has(binding.slot) {
            unread.insert(binding.slot);
        }
    }
    loop_.unread.set(unread);
    for binding in loop_.bindings.iter().rev() {
        live.remove(binding.slot);
        live = expr(meter, binding.value, live, recur);
    }
    live
}

fn recur_(meter: &Meter<'_>, arguments: &[RecurArg<'_>], target: Slots) -> Slots {
    let mut live = target;
    for argument in arguments.iter().rev() {
        argument.direct.set(!live.has(argument.slot));
        live = expr(meter, argument.value, live, target);
    }
    live
}

#[inline(never)]
fn each(meter: &Meter<'_>, each: &Each<'_>, out: Slots, recur: Slots) -> Slots {
    let head = each.kept.get().union(out);
    let mut live = expr(meter, each.body, head, Slots::EMPTY);
    for step in each.steps.iter().rev() {
        live = match step {
            EachStep::Bind(binding) => {
                binding.dead.set(!live.has(binding.slot));
                live.remove(binding.slot);
                expr(meter, binding.value, live, Slots::EMPTY)
            }
            EachStep::When(condition, dying) | EachStep::While(condition, dying) => {
                dying.set(live.minus(head));
                test(meter, condition, live.union(head), Slots::EMPTY)
            }
        };
    }
    each.unread.set(!live.has(each.slot));
    each.dying.set(head.minus(out));
    expr(meter, each.collection, head, recur)
}
