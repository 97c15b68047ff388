//! Describes what an instruction does to registers and control flow, operand by operand, for visitors such as the
//! bytecode verifier.

/// The effect of one field of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Reads a full register and keeps it.
    Read(u8),
    /// Reads a full register and empties it.
    Take(u8),
    /// Fills an empty register.
    Fill(u8),
    /// Requires that no register from here on is full.
    ClearFrom(u16),
    /// Continues here as well as (or instead of) at the next instruction.
    Jump(i32),
}

/// Receives effects one after another. A closure that takes an [`Effect`] is a visitor; the verifier, which visits
/// every effect of every program, implements each method separately.
pub trait Visit {
    /// [`Effect::Read`].
    fn read(&mut self, register: u8);
    /// [`Effect::Take`].
    fn take(&mut self, register: u8);
    /// [`Effect::Fill`].
    fn fill(&mut self, register: u8);
    /// [`Effect::ClearFrom`].
    fn clear_from(&mut self, register: u16);
    /// [`Effect::Jump`].
    fn jump(&mut self, distance: i32);
}

impl<F: FnMut(Effect)> Visit for F {
    fn read(&mut self, register: u8) {
        self(Effect::Read(register));
    }
    fn take(&mut self, register: u8) {
        self(Effect::Take(register));
    }
    fn fill(&mut self, register: u8) {
        self(Effect::Fill(register));
    }
    fn clear_from(&mut self, register: u16) {
        self(Effect::ClearFrom(register));
    }
    fn jump(&mut self, distance: i32) {
        self(Effect::Jump(distance));
    }
}
