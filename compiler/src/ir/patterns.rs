//! Compiles the regex literals of a program, and limits the memory and work that all of them take in total.

use super::tables::{Tables, full};
use crate::diagnostic::{Diagnostic, Failed};
use crate::meter::Stopped;
use crate::names::HashState;
use ptc_regex::{Pattern, PatternError};
use ptc_vm::Span;
use ptc_vm::bytecode::Const;
use std::collections::HashMap;
use std::sync::Arc;

/// The regex literals of a program.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    rows: HashMap<Box<str>, u16, HashState>,
    bytes: usize,
    units: u64,
}

/// Logical bytes of all regex literals of a program.
const MOST_PATTERN_BYTES: usize = 8 << 20;

/// Most work on all regex literals of a program, in units of fuel.
const MOST_PATTERN_UNITS: u64 = 2 << 20;

/// Units of work on a pattern for one step.
const UNITS_PER_STEP: usize = 256;

impl Tables<'_> {
    /// The row of a regex literal. Each pattern is compiled once, and their total work is limited.
    pub(crate) fn pattern(&mut self, span: Span, text: &str) -> Result<u16, PatternError<Diagnostic>> {
        if let Some(&row) = self.patterns.rows.get(text) {
            return Ok(row);
        }
        let Tables { patterns, meter, .. } = self;
        let pattern = Pattern::new(text, &mut |units| {
            patterns.units += units;
            if meter.work(1 + units as usize / UNITS_PER_STEP).is_err() {
                return Err(*Failed::from(Stopped));
            }
            if patterns.units > MOST_PATTERN_UNITS { Err(full(span, "regexes")) } else { Ok(()) }
        })?;
        patterns.bytes += pattern.bytes();
        meter.hold(text.len() + pattern.bytes());
        if patterns.bytes > MOST_PATTERN_BYTES {
            return Err(PatternError::Stopped(full(span, "regexes")));
        }
        let row = self.constant(span, Const::Regex(Arc::new(pattern))).map_err(PatternError::Stopped)?;
        self.patterns.rows.insert(text.into(), row);
        Ok(row)
    }
}
