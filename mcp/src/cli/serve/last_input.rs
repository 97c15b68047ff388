//! Marks the store of runs as closing when the standard input of `ptc serve` ends: the server then exits, and the store
//! keeps the runs that the exit interrupts, so that a later process can resume them.

use ptc_calls::journal::DurableRuns;
use std::io::Read;

/// An input. Its end is that of the process, which leaves its runs stored.
pub(super) struct LastInput<R> {
    /// Where it comes from.
    pub(super) input: R,
    /// The stored runs.
    pub(super) runs: Option<DurableRuns>,
}

impl<R: Read> Read for LastInput<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.input.read(buffer)?;
        if read == 0
            && let Some(runs) = &self.runs
        {
            runs.close();
        }
        Ok(read)
    }
}
