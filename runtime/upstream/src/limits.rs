//! Defines the limits that the configuration sets on calls to one server: time, size of a result, concurrent calls, and
//! calls per program.

use std::time::Duration;

/// What the configuration of one server says about calls to it. The limits of the program decide the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// Time limit of one call.
    pub timeout: Option<Duration>,
    /// Size limit of one result.
    pub max_response_bytes: Option<usize>,
    /// Calls in flight at once, of all programs; further calls wait for a permit.
    pub max_concurrent: Option<usize>,
    /// Limit of calls of one program.
    pub max_calls_per_program: Option<u32>,
    /// Results that are too large are stored for programs instead of being refused.
    pub spills_large: bool,
}
