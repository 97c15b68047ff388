//! Emits the code of one arity of a function: allocates registers, appends instructions, and sets the targets of jumps.

use super::Generator;
use crate::diagnostic::{Done, Fallible, too_many_locals};
use crate::ir::{Arity, Function, Slots};
use ptc_vm::Span;
use ptc_vm::bytecode::instruction::{Far, Flow, Near, Small, Written};
use ptc_vm::bytecode::{Dst, Instruction, Last, Pinned, Proto, Shape, Src};

/// Bytes of an instruction and its span, and of a jump that waits for its target.
const HELD_BY_INSTRUCTION: usize = 2 * (size_of::<Instruction>() + size_of::<Span>());

/// Most registers of a function.
const MAX_REGISTERS: u8 = 250;

/// The destination of an expression's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// This register, which is empty, so it may serve as a scratch register too.
    Fresh(u8),
    /// This register, which may stay full until the value is complete.
    Into(u8),
    /// The function's caller.
    Return,
    /// None: only the effect counts.
    Ignore,
}

/// A jump with a distance that is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Patch(usize);

/// A position to jump back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(usize);

/// The loop or function that `recur` continues.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecurHead {
    pub(super) label: Label,
    pub(super) counter: u8,
    /// Start of the registers pinned inside it, in `Emitter::pinned`.
    pub(super) inside: usize,
}

/// Buffers that consecutive functions reuse during generation.
pub(crate) struct Buffers {
    code: Vec<Instruction>,
    spans: Vec<Span>,
    /// Register of each slot, as far as there were any.
    slots: Vec<u8>,
}

impl Buffers {
    fn new() -> Buffers {
        Buffers { code: Vec::with_capacity(32), spans: Vec::with_capacity(32), slots: Vec::with_capacity(16) }
    }
}

/// Emits one arity of a function.
pub(super) struct Emitter<'g, 'm> {
    pub(super) generator: &'g mut Generator<'m>,
    buffers: Buffers,
    /// First free register; all registers from it on are empty.
    pub(super) top: u8,
    highest: u8,
    /// Bytes reported to the meter for the growth of the code.
    grown: usize,
    /// The last position that was made a jump target.
    last_arrival: usize,
    /// Loop counters that a return leaves behind, outermost first; without last uses, locals too.
    pub(super) pinned: Vec<u8>,
    pub(super) heads: Vec<RecurHead>,
    /// The collecting registers of enclosing `for` forms.
    pub(super) collectors: Vec<u8>,
}

pub(super) fn take(reg: u8) -> Src {
    Src { reg, last: true }
}

pub(super) fn keep(reg: u8) -> Src {
    Src { reg, last: false }
}

impl<'g, 'm> Emitter<'g, 'm> {
    /// Generates one arity.
    pub(super) fn arity(
        generator: &'g mut Generator<'m>,
        function: &Function<'_>,
        arity: &Arity<'_>,
    ) -> Fallible<Proto> {
        let parameters = arity.fixed + u8::from(arity.variadic);
        let buffers = generator.buffers.pop().unwrap_or_else(Buffers::new);
        let mut emitter = Emitter {
            generator,
            buffers,
            top: parameters + 1,
            highest: parameters,
            grown: 0,
            last_arrival: usize::MAX,
            pinned: Vec::new(),
            heads: Vec::new(),
            collectors: Vec::new(),
        };
        for slot in 0..parameters {
            emitter.set_slot(slot, slot + 1);
            emitter.pin(slot + 1);
        }
        let span = arity.span;
        if arity.has_recur {
            let counter = emitter.register(span)?;
            emitter.emit(span, Instruction::LoadInt { value: Small(0), dst: Dst(counter) });
            emitter.pinned.push(counter);
            let (label, inside) = (emitter.label(), emitter.pinned.len());
            emitter.heads.push(RecurHead { label, counter, inside });
        }
        emitter.drop_slots(span, arity.unread.get());
        emitter.value(arity.body, Target::Return)?;
        emitter.generator.meter.release(emitter.grown);
        emitter.generator.meter.hold(emitter.buffers.code.len() * HELD_BY_INSTRUCTION);
        emitter.generator.meter.work(emitter.buffers.code.len())?;
        let registers = u16::from(emitter.highest) + 1;
        let Buffers { code, spans, slots } = &mut emitter.buffers;
        let proto = Proto {
            name: function.name.into(),
            shape: Shape { fixed: arity.fixed, variadic: arity.variadic },
            parameters: arity.parameters.into(),
            registers,
            captures: function.captures,
            next_arity: None,
            // Without spare capacity: programs are cached.
            code: code.as_slice().into(),
            spans: spans.as_slice().to_vec(),
        };
        code.clear();
        spans.clear();
        slots.clear();
        emitter.generator.buffers.push(emitter.buffers);
        Ok(proto)
    }

    pub(super) fn emit(&mut self, span: Span, instruction: Instruction) {
        if self.buffers.code.len() == self.buffers.code.capacity() {
            self.note_growth();
        }
        self.buffers.code.push(instruction);
        self.buffers.spans.push(span);
    }

    /// The code grows to twice its length, which is held while the function is generated. The next expression reports
    /// it.
    #[cold]
    fn note_growth(&mut self) {
        let more = self.buffers.code.capacity() * HELD_BY_INSTRUCTION;
        self.grown += more;
        self.generator.meter.hold(more);
        let _ = self.generator.meter.look_now();
    }

    // ----- registers

    /// The next free register.
    pub(super) fn register(&mut self, span: Span) -> Fallible<u8> {
        let register = self.top;
        if register >= MAX_REGISTERS {
            return Err(too_many_locals(span));
        }
        self.top += 1;
        self.highest = self.highest.max(register);
        Ok(register)
    }

    pub(super) fn slot(&self, slot: u8) -> u8 {
        self.buffers.slots.get(usize::from(slot)).copied().unwrap_or(0)
    }

    pub(super) fn set_slot(&mut self, slot: u8, register: u8) {
        let slot = usize::from(slot);
        if slot >= self.buffers.slots.len() {
            self.buffers.slots.resize(slot + 1, 0);
        }
        self.buffers.slots[slot] = register;
    }

    pub(super) fn drop_slots(&mut self, span: Span, slots: Slots) {
        if slots.is_empty() {
            return;
        }
        // These steps do not belong to an expression: one may need many.
        let _ = self.generator.meter.step();
        for slot in slots.iter() {
            let register = self.slot(slot);
            self.emit(span, Instruction::Drop { src: Last(register) });
        }
    }

    /// The register in which an instruction leaves a value for the target: the target's own, or the next free one,
    /// which [`Emitter::finish`] empties again.
    pub(super) fn destination(&mut self, span: Span, target: Target) -> Fallible<u8> {
        match target {
            Target::Fresh(register) | Target::Into(register) => Ok(register),
            Target::Return | Target::Ignore => {
                let register = self.register(span)?;
                self.top = register;
                Ok(register)
            }
        }
    }

    /// A register for a value that is built in steps: the target's, if it is empty, or a free one.
    pub(super) fn fresh(&mut self, span: Span, target: Target) -> Fallible<u8> {
        match target {
            Target::Fresh(register) => Ok(register),
            _ => self.register(span),
        }
    }

    /// Makes a value for its target with one instruction; its operands need the registers from `saved` on no longer.
    pub(super) fn make(
        &mut self,
        span: Span,
        saved: u8,
        target: Target,
        instruction: impl FnOnce(Dst) -> Instruction,
    ) -> Done {
        self.top = saved;
        let dst = Dst(self.destination(span, target)?);
        self.emit(span, instruction(dst));
        self.finish(span, take(dst.0), target)
    }

    /// Moves a value from a register to its target.
    pub(super) fn finish(&mut self, span: Span, src: Src, target: Target) -> Done {
        match target {
            Target::Fresh(register) | Target::Into(register) => {
                if src != take(register) {
                    self.emit(span, Instruction::Move { src, dst: Dst(register) });
                }
            }
            Target::Ignore if src.last => self.emit(span, Instruction::Drop { src: Last(src.reg) }),
            Target::Ignore => {}
            Target::Return => {
                let src = self.owned(span, src)?;
                for at in (0..self.pinned.len()).rev() {
                    let counter = self.pinned[at];
                    self.emit(span, Instruction::Drop { src: Last(counter) });
                }
                self.emit(span, Instruction::Return { src });
            }
        }
        Ok(())
    }

    /// The operand, copied to a free register if this is not its last use.
    pub(super) fn owned(&mut self, span: Span, src: Src) -> Fallible<Last> {
        if src.last {
            return Ok(Last(src.reg));
        }
        let register = self.destination(span, Target::Ignore)?;
        self.emit(span, Instruction::Move { src, dst: Dst(register) });
        Ok(Last(register))
    }

    // ----- jumps

    /// Marks this position as a target of backward jumps.
    pub(super) fn label(&mut self) -> Label {
        self.last_arrival = self.buffers.code.len();
        Label(self.buffers.code.len())
    }

    /// Emits a jump to a later target.
    pub(super) fn jump(&mut self, span: Span, instruction: Instruction) -> Patch {
        self.emit(span, instruction);
        Patch(self.buffers.code.len() - 1)
    }

    /// Emits an unconditional jump, unless this position is unreachable.
    pub(super) fn leave(&mut self, span: Span) -> Option<Patch> {
        self.is_reachable().then(|| self.jump(span, Instruction::Jump { to: Far(0) }))
    }

    pub(super) fn is_reachable(&self) -> bool {
        self.last_arrival == self.buffers.code.len()
            || self.buffers.code.last().is_none_or(|last| matches!(last.flow(), Flow::Next | Flow::Branch))
    }

    /// Makes jumps arrive here.
    pub(super) fn arrive(&mut self, patches: impl IntoIterator<Item = Patch>) {
        for patch in patches {
            let label = self.label();
            self.patch_to(patch, label);
        }
    }

    /// If the code ends with the increment of a loop variable in place, inserts the shortcut through it and the
    /// following `LoopBack` before it.
    pub(super) fn count_loop(&mut self, span: Span, head: Label) {
        let Some(&Instruction::AddSmall { a, value: step, dst, written: Written::Increment }) =
            self.buffers.code.last()
        else {
            return;
        };
        if a != take(dst.0) || self.last_arrival == self.buffers.code.len() {
            return;
        }
        let at = self.buffers.code.len() - 1;
        let short_cut = Instruction::CountLoop { variable: Pinned(dst.0), step, to: Far(0) };
        self.buffers.code.insert(at, short_cut);
        self.buffers.spans.insert(at, span);
        self.patch_to(Patch(at), head);
    }

    pub(super) fn patch_to(&mut self, patch: Patch, label: Label) {
        let distance = label.0 as i64 - patch.0 as i64 - 1;
        match &mut self.buffers.code[patch.0] {
            Instruction::Jump { to }
            | Instruction::LoopBack { to, .. }
            | Instruction::CountLoop { to, .. }
            | Instruction::JumpIfFalse { to, .. }
            | Instruction::JumpIfTrue { to, .. }
            | Instruction::JumpIfNil { to, .. }
            | Instruction::Next { to, .. } => *to = Far(distance as i32),
            Instruction::JumpUnlessEqual { to, .. }
            | Instruction::JumpUnlessConst { to, .. }
            | Instruction::JumpUnlessLess { to, .. }
            | Instruction::JumpUnlessLessEqual { to, .. }
            | Instruction::JumpUnlessEqualInt { to, .. }
            | Instruction::JumpUnlessNotEqualInt { to, .. }
            | Instruction::JumpUnlessLessInt { to, .. }
            | Instruction::JumpUnlessLessEqualInt { to, .. }
            | Instruction::JumpUnlessGreaterInt { to, .. }
            | Instruction::JumpUnlessGreaterEqualInt { to, .. } => match i16::try_from(distance) {
                Ok(distance) => *to = Near(distance),
                Err(_) => self.generator.too_far = true,
            },
            _ => {}
        }
    }
}
