//! Wraps the standard input of `ptc serve`, so that runs which are cancelled because it ends stay stored and can be
//! resumed later.

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
