//! Defines the trait through which an application counts the work and memory of searches, and can end a search.

use crate::error::SearchError;

/// Meters the work and the memory of searches, and ends a search by refusing either.
///
/// No search makes more than a few thousand steps between two calls of [`Meter::pay`], so a meter can also check
/// deadlines there, or suspend its thread.
pub trait Meter {
    /// Why a search ends without an answer.
    type Error: From<SearchError>;

    /// Memory that a search has, counted until it is dropped. The default is none.
    type Memory: Default;

    /// Pays for work that has been done or is about to be. A unit is about a step or a byte of text, and some
    /// nanoseconds.
    ///
    /// # Errors
    /// The search must end.
    fn pay(&mut self, units: u64) -> Result<(), Self::Error>;

    /// Counts `bytes` in all for this memory, unless it has more already. The search allocates afterwards.
    ///
    /// # Errors
    /// The search must end, or may not have that much.
    fn hold(&mut self, memory: &mut Self::Memory, bytes: usize) -> Result<(), Self::Error>;
}
