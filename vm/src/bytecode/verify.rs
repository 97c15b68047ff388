//! Verifies the bytecode of a program before it runs: no instruction reads a register without a value or overwrites a
//! live value, which would leak, and jumps and indices stay in range. No program runs unverified, in any build.
//!
//! It walks each function once, front to back, with the set of full registers (those with a value)
//! as its state, as WebAssembly validation does with its operand stack. A forward jump records the state at its
//! target; the state when the walk arrives there, and of every other jump to it, must be the same.
//! A backward jump must go to an instruction with a recorded state equal to the current one. That is
//! linear in the size of the code, and it proves that no register write can hide a live value (which
//! would leak it) and no read can meet an empty register.

use super::LONGEST_NAME;
use super::code::{Const, Program, Proto};
use super::instruction::{Effect, Flow, Instruction, Reference, Visit};
use std::fmt;

/// Why a program was refused: always a defect of the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// Function index.
    pub proto: usize,
    /// Instruction index.
    pub at: usize,
    /// What rule is broken.
    pub rule: Rule,
}

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A full register is written.
    WriteToFull(u8),
    /// An empty register is read.
    ReadOfEmpty(u8),
    /// A register above the declared count.
    RegisterCount(u16),
    /// A register above a call window is full.
    WindowNotClear(u16),
    /// Two paths to an instruction differ in this register.
    JoinDiffers(u8),
    /// A jump leaves the function.
    JumpOutside,
    /// Control runs off the end.
    NoEnd,
    /// A register other than 0 is full at return.
    FullAtReturn(u8),
    /// An index into constants, globals, functions or symbols is too large.
    BadIndex,
    /// A name is longer than [`LONGEST_NAME`].
    LongName,
    /// More instructions than spans, or no instruction at all.
    Malformed,
    /// A closure gets another number of captures than its function declares.
    CaptureCount,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fn{} instruction {}: {:?}", self.proto, self.at, self.rule)
    }
}

impl std::error::Error for VerifyError {}

/// The set of full registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Full([u64; 4]);

impl Full {
    const EMPTY: Full = Full([0; 4]);

    fn has(&self, reg: u8) -> bool {
        self.0[usize::from(reg >> 6)] >> (reg & 63) & 1 == 1
    }
    fn fill(&mut self, reg: u8) {
        self.0[usize::from(reg >> 6)] |= 1 << (reg & 63);
    }
    fn empty(&mut self, reg: u8) {
        self.0[usize::from(reg >> 6)] &= !(1 << (reg & 63));
    }
    fn first_difference(&self, other: &Full) -> Option<u8> {
        let differs: [u64; 4] = std::array::from_fn(|word| self.0[word] ^ other.0[word]);
        Full(differs).first_from(0)
    }
    /// The first full register that is `from` or above it.
    fn first_from(&self, from: u8) -> Option<u8> {
        let first = usize::from(from >> 6);
        // Registers of the first word that lie below do not count.
        let mut mask = u64::MAX << (from & 63);
        for (word, &bits) in self.0.iter().enumerate().skip(first) {
            let bits = bits & mask;
            if bits != 0 {
                return Some((word * 64) as u8 + bits.trailing_zeros() as u8);
            }
            mask = u64::MAX;
        }
        None
    }
}

/// Checks a whole program.
///
/// # Errors
/// The first broken rule.
pub fn verify(program: &Program) -> Result<(), VerifyError> {
    verify_while(program, &|_| true).unwrap_or(Ok(()))
}

/// Checks a whole program while `goes_on` allows. In long functions it is asked regularly, with the number of
/// instructions that follow. `None` if it ended the check.
pub fn verify_while(program: &Program, goes_on: &dyn Fn(usize) -> bool) -> Option<Result<(), VerifyError>> {
    let mut watch = Watch { goes_on, stopped: false };
    let checked = verify_program(program, &mut watch);
    (!watch.stopped).then_some(checked)
}

/// The caller's check that may end the verification of a long function.
struct Watch<'w> {
    goes_on: &'w dyn Fn(usize) -> bool,
    stopped: bool,
}

impl Watch<'_> {
    #[cold]
    fn look(&mut self, instructions: usize) -> bool {
        self.stopped |= !(self.goes_on)(instructions);
        !self.stopped
    }
}

/// Instructions between two calls of `goes_on`.
const STRIDE: usize = 4_096;

/// Ends early, with any result, if it must not go on.
fn verify_program(program: &Program, watch: &mut Watch<'_>) -> Result<(), VerifyError> {
    verify_tables(program)?;
    let mut targets = Targets { row: Vec::new(), states: Vec::new() };
    for (index, proto) in program.protos.iter().enumerate() {
        targets.reset(proto);
        let mut walk = Walk { program, proto, index, targets, at: 0 };
        walk.run(watch)?;
        targets = walk.targets;
    }
    Ok(())
}

fn verify_tables(program: &Program) -> Result<(), VerifyError> {
    let bad = VerifyError { proto: 0, at: 0, rule: Rule::BadIndex };
    let symbols = program.symbols.len();
    if program.symbols.iter().any(|name| name.len() > LONGEST_NAME) {
        return Err(VerifyError { rule: Rule::LongName, ..bad });
    }
    for (row, constant) in program.constants.iter().enumerate() {
        let fine = match constant {
            Const::Keyword(symbol) | Const::Symbol(symbol) | Const::Var(symbol) | Const::Tool(symbol) => {
                (*symbol as usize) < symbols
            }
            Const::Vector(items) | Const::Map(items) | Const::Set(items) | Const::Combinator(_, items) => {
                items.iter().all(|&item| usize::from(item) < row)
            }
            _ => true,
        };
        if !fine {
            return Err(bad);
        }
    }
    let is_symbol = |index: u32| (index as usize) < symbols;
    let globals_fine = program
        .globals
        .iter()
        .all(|global| is_symbol(global.symbol) && global.namespace.is_none_or(is_symbol));
    let entry_fine = program
        .protos
        .get(usize::from(program.entry.0))
        .is_some_and(|entry| entry.captures == 0 && entry.accepts(0));
    if globals_fine && entry_fine { Ok(()) } else { Err(bad) }
}

/// Whether constants are keywords and strings, all distinct: then their set has as many members.
fn are_different_names(program: &Program, rows: &[u16]) -> bool {
    let name = |row: u16| match program.constants.get(usize::from(row)) {
        Some(Const::Keyword(symbol)) => Some((true, program.symbol(*symbol))),
        Some(Const::Str(text)) => Some((false, &**text)),
        _ => None,
    };
    rows.iter().enumerate().all(|(at, &row)| {
        name(row).is_some_and(|this| rows[..at].iter().all(|&other| name(other) != Some(this)))
    })
}

/// States recorded at jump targets: an index per instruction into a list of states, so that memory depends on the
/// number of targets. A function without jumps has no indices.
struct Targets {
    row: Vec<u32>,
    states: Vec<Full>,
}

impl Targets {
    const NONE: u32 = u32::MAX;

    fn reset(&mut self, proto: &Proto) {
        self.row.clear();
        self.states.clear();
        if proto.code.iter().any(|instruction| matches!(instruction.flow(), Flow::Jump | Flow::Branch)) {
            self.row.resize(proto.code.len(), Targets::NONE);
        }
    }
    fn get(&self, at: usize) -> Option<&Full> {
        self.states.get(*self.row.get(at)? as usize)
    }
    fn set(&mut self, at: usize, state: Full) {
        self.row[at] = self.states.len() as u32;
        self.states.push(state);
    }
}

/// Applies the effects of one instruction to the state.
struct Step<'s> {
    state: &'s mut Full,
    /// The function's declared count.
    registers: u16,
    is_branch: bool,
    /// The first broken rule.
    failure: Option<Rule>,
    jump: Option<i32>,
    /// The state on the path to the branch target, if the branch fills a register on the other path.
    before_fill: Option<Full>,
}

impl Step<'_> {
    #[cold]
    fn fail(&mut self, rule: Rule) {
        self.failure.get_or_insert(rule);
    }

    /// Whether a declared register holds a value; records the broken rule otherwise.
    #[inline]
    fn must_be_full(&mut self, register: u8) -> bool {
        let is_full = u16::from(register) < self.registers && self.state.has(register);
        if !is_full {
            self.fail(match u16::from(register) < self.registers {
                true => Rule::ReadOfEmpty(register),
                false => Rule::RegisterCount(u16::from(register)),
            });
        }
        is_full
    }
}

impl Visit for Step<'_> {
    #[inline]
    fn read(&mut self, register: u8) {
        self.must_be_full(register);
    }

    #[inline]
    fn take(&mut self, register: u8) {
        if self.must_be_full(register) {
            self.state.empty(register);
        }
    }

    #[inline]
    fn fill(&mut self, register: u8) {
        if u16::from(register) >= self.registers {
            return self.fail(Rule::RegisterCount(u16::from(register)));
        }
        if self.state.has(register) {
            return self.fail(Rule::WriteToFull(register));
        }
        if self.is_branch {
            self.before_fill.get_or_insert(*self.state);
        }
        self.state.fill(register);
    }

    fn clear_from(&mut self, register: u16) {
        match u8::try_from(register) {
            Ok(from) => {
                if let Some(full) = self.state.first_from(from) {
                    self.fail(Rule::WindowNotClear(u16::from(full)));
                }
            }
            Err(_) => self.fail(Rule::RegisterCount(register)),
        }
    }

    #[inline]
    fn jump(&mut self, distance: i32) {
        self.jump = Some(distance);
    }
}

struct Walk<'p> {
    program: &'p Program,
    proto: &'p Proto,
    index: usize,
    targets: Targets,
    at: usize,
}

impl Walk<'_> {
    fn error(&self, rule: Rule) -> VerifyError {
        VerifyError { proto: self.index, at: self.at, rule }
    }

    fn run(&mut self, watch: &mut Watch<'_>) -> Result<(), VerifyError> {
        let proto = self.proto;
        if proto.code.is_empty() || proto.code.len() != proto.spans.len() {
            return Err(self.error(Rule::Malformed));
        }
        self.mark_backward_targets();
        let mut state = Full::EMPTY;
        for reg in 0..=u16::from(proto.shape.fixed) + u16::from(proto.shape.variadic) {
            match u8::try_from(reg) {
                Ok(reg) => state.fill(reg),
                Err(_) => return Err(self.error(Rule::RegisterCount(reg))),
            }
        }
        let mut reachable = true;
        for (stride, code) in proto.code.chunks(STRIDE).enumerate() {
            if stride > 0 && !watch.look(code.len()) {
                return Ok(());
            }
            reachable = self.walk(stride * STRIDE, code, &mut state, reachable)?;
        }
        if reachable { Err(self.error(Rule::NoEnd)) } else { Ok(()) }
    }

    /// Walks a range of consecutive instructions; true if the code after it is reachable.
    fn walk(
        &mut self,
        from: usize,
        code: &[Instruction],
        state: &mut Full,
        mut reachable: bool,
    ) -> Result<bool, VerifyError> {
        for (at, instruction) in (from..).zip(code) {
            self.at = at;
            match (self.targets.get(at), reachable) {
                (Some(recorded), true) if *recorded != UNVISITED => {
                    if let Some(reg) = recorded.first_difference(state) {
                        return Err(self.error(Rule::JoinDiffers(reg)));
                    }
                }
                (Some(recorded), false) if *recorded != UNVISITED => *state = *recorded,
                (Some(_), true) => self.targets.set(at, *state),
                (_, true) => {}
                // Unreachable code: it cannot run, so there is nothing to check.
                (_, false) => continue,
            }
            reachable = self.step(instruction, state)?;
        }
        Ok(reachable)
    }

    /// Backward jumps need the state at their target, so the walk records it when it passes.
    fn mark_backward_targets(&mut self) {
        if self.targets.row.is_empty() {
            return;
        }
        for (at, instruction) in self.proto.code.iter().enumerate() {
            if !matches!(instruction.flow(), Flow::Jump | Flow::Branch) {
                continue;
            }
            instruction.effects(&mut |effect| {
                if let Effect::Jump(distance) = effect
                    && distance < 0
                    && let Ok(target) = usize::try_from(at as i64 + 1 + i64::from(distance))
                    && target < self.proto.code.len()
                    && self.targets.get(target).is_none()
                {
                    self.targets.set(target, UNVISITED);
                }
            });
        }
    }

    /// Applies one instruction; true if the next one can follow.
    fn step(&mut self, instruction: &Instruction, state: &mut Full) -> Result<bool, VerifyError> {
        self.check_reference(instruction)?;
        let flow = instruction.flow();
        let mut step = Step {
            state,
            registers: self.proto.registers,
            is_branch: flow == Flow::Branch,
            failure: None,
            jump: None,
            before_fill: None,
        };
        instruction.effects(&mut step);
        let Step { state, failure, jump, before_fill, .. } = step;
        if let Some(rule) = failure {
            return Err(self.error(rule));
        }
        if let Some(distance) = jump {
            let arriving = match flow {
                Flow::Branch => before_fill.unwrap_or(*state),
                _ => *state,
            };
            self.jump(distance, arriving)?;
        }
        if flow == Flow::Return
            && let Some(reg) = state.first_from(1)
        {
            return Err(self.error(Rule::FullAtReturn(reg)));
        }
        Ok(matches!(flow, Flow::Next | Flow::Branch))
    }

    fn jump(&mut self, distance: i32, arriving: Full) -> Result<(), VerifyError> {
        let target = usize::try_from(self.at as i64 + 1 + i64::from(distance))
            .ok()
            // In a function with a jump there are as many rows as instructions.
            .filter(|&target| target < self.targets.row.len())
            .ok_or_else(|| self.error(Rule::JumpOutside))?;
        match self.targets.get(target) {
            Some(recorded) if *recorded != UNVISITED => match recorded.first_difference(&arriving) {
                Some(reg) => Err(self.error(Rule::JoinDiffers(reg))),
                None => Ok(()),
            },
            // A backward jump into code that the walk found unreachable cannot come from reachable code of the
            // compiler; refuse it.
            _ if target <= self.at => Err(self.error(Rule::JumpOutside)),
            _ => {
                self.targets.set(target, arriving);
                Ok(())
            }
        }
    }

    fn check_reference(&self, instruction: &Instruction) -> Result<(), VerifyError> {
        let Some(reference) = instruction.reference() else { return Ok(()) };
        let program = self.program;
        let constant = |index: u16| program.constants.get(usize::from(index));
        let is_there = match reference {
            Reference::Constant(index) => usize::from(index) < program.constants.len(),
            Reference::Key(index) => matches!(constant(index), Some(Const::Keyword(_) | Const::Str(_))),
            Reference::Keys { constant: index, count } => match constant(index) {
                Some(Const::Set(rows)) => {
                    rows.len() == usize::from(count) && are_different_names(program, rows)
                }
                _ => false,
            },
            Reference::Global(index) => usize::from(index) < program.globals.len(),
            Reference::Capture(index) => index < self.proto.captures,
            Reference::Function { proto, captures } => match program.protos.get(usize::from(proto.0)) {
                Some(target) if target.captures != u16::from(captures) => {
                    return Err(self.error(Rule::CaptureCount));
                }
                target => target.is_some(),
            },
            // The table of builtins makes only valid numbers.
            Reference::Builtin(_) => true,
        };
        if is_there { Ok(()) } else { Err(self.error(Rule::BadIndex)) }
    }
}

/// Marks a target of a backward jump that the walk has not reached yet. No reachable state equals it, since register
/// 0 is always full.
const UNVISITED: Full = Full::EMPTY;
