//! What instructions do to registers and control flow, as the verifier sees it.

/// What a field of an instruction does to registers and control flow.
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

/// Who looks at effects one after another. A function of one effect is one; the verifier, which looks at
/// every effect of every program, has a method for each kind.
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
