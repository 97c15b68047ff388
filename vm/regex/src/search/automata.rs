//! Finds a match with the two automata of a pattern: one finds its end, the other reads backwards to its beginning.

use super::alphabet::Alphabet;
use super::dfa::{Dfa, View};
use crate::error::{PatternError, SearchError};
use crate::meter::Meter;
use crate::pattern::Pattern;
use crate::pattern::class::Set;
use crate::pattern::look::Look;
use crate::pattern::program::{Direction, Instruction, Program};
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// The automata of a pattern.
pub(crate) struct Automata<M: Meter> {
    alphabet: Alphabet,
    forward: Dfa<M>,
    /// The pattern from its end to its beginning.
    reversed: Program,
    backward: Dfa<M>,
    _memory: M::Memory,
}

impl<M: Meter> Automata<M> {
    /// Automata without states.
    ///
    /// # Errors
    /// Refused by the meter.
    pub(crate) fn new(meter: &mut M, pattern: &Pattern) -> Result<Box<Automata<M>>, M::Error> {
        let mut pay = |units| meter.pay(units).map_err(PatternError::Stopped);
        let reversed =
            Program::new(&pattern.syntax, Direction::Backward, &mut pay).map_err(|error| match error {
                PatternError::Pattern(reason) => SearchError::NoAutomaton(reason).into(),
                PatternError::Stopped(error) => error,
            })?;
        let words = word_sets(meter, &pattern.program)?;
        let alphabet = Alphabet::new(meter, &pattern.program, &pattern.syntax.sets, &words)?;
        let mut memory = M::Memory::default();
        meter.hold(&mut memory, size_of::<Automata<M>>() + alphabet.bytes() + reversed.bytes())?;
        Ok(Box::new(Automata {
            forward: Dfa::new(Direction::Forward, &alphabet, pattern.first.are_few()),
            backward: Dfa::new(Direction::Backward, &alphabet, false),
            alphabet,
            reversed,
            _memory: memory,
        }))
    }

    /// The position of the first match that begins at `at` or later.
    ///
    /// # Errors
    /// Refused by the meter.
    pub(crate) fn find(
        &mut self,
        meter: &mut M,
        pattern: &Pattern,
        text: &str,
        at: usize,
    ) -> Result<Option<(usize, usize)>, M::Error> {
        let (sets, alphabet) = (&pattern.syntax.sets, &self.alphabet);
        let view = View { program: &pattern.program, sets, alphabet };
        let Some(end) = self.forward.forward(meter, view, &pattern.first, text, at)? else {
            return Ok(None);
        };
        let view = View { program: &self.reversed, sets, alphabet };
        let start = self.backward.backward(meter, view, text, at, end)?;
        Ok(start.map(|start| (start, end)))
    }

    /// True when the whole text is a match.
    ///
    /// # Errors
    /// Refused by the meter.
    pub(crate) fn is_match(
        &mut self,
        meter: &mut M,
        pattern: &Pattern,
        text: &str,
    ) -> Result<bool, M::Error> {
        let view = View { program: &self.reversed, sets: &pattern.syntax.sets, alphabet: &self.alphabet };
        Ok(self.backward.backward(meter, view, text, 0, text.len())? == Some(0))
    }
}

/// The sets of word characters, if a program has word assertions.
fn word_sets<M: Meter>(meter: &mut M, program: &Program) -> Result<Vec<Set>, M::Error> {
    let asks =
        program.code.iter().any(|instruction| matches!(instruction, Instruction::Look(Look::Word(..))));
    if !asks {
        return Ok(Vec::new());
    }
    meter.pay(1_024)?;
    let hir = regex_syntax::parse(r"\w").map_err(|error| SearchError::NoAutomaton(error.to_string()))?;
    let all = match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => class.clone(),
        _ => ClassUnicode::empty(),
    };
    let ascii = [('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
    let ascii = ClassUnicode::new(ascii.map(|(start, end)| ClassUnicodeRange::new(start, end)));
    Ok(vec![Set::new(&all), Set::new(&ascii)])
}
