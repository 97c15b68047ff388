//! Counts the tool calls of one run, and the bytes of their answers, by how the calls ended. The totals are exact,
//! whereas the records are a bounded sample.

use super::outcome::{CallFault, CallRecord, CallStatus};

/// A number of calls and the payload bytes of their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of calls.
    pub count: u64,
    /// Payload bytes as received.
    pub bytes: u64,
}

impl Tally {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn merge(&mut self, other: Tally) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Totals of calls, by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTotals {
    /// Calls that succeeded.
    #[doc(hidden)]
    pub ok: Tally,
    /// Calls that failed, except for oversized answers.
    #[doc(hidden)]
    pub failed: Tally,
    /// Calls with an oversized answer.
    #[doc(hidden)]
    pub oversize: Tally,
    /// Failed calls that were refused because a call budget was used up. They are part of `failed`.
    pub refused: u64,
}

impl CallTotals {
    /// Counts one call.
    pub(crate) fn add(&mut self, status: &CallStatus, bytes: Option<u64>) {
        let (tally, is_refused) = match status {
            CallStatus::Ok => (&mut self.ok, false),
            CallStatus::Error { reason: CallFault::ResponseTooLarge, .. } => (&mut self.oversize, false),
            CallStatus::Error { reason, .. } => (&mut self.failed, *reason == CallFault::CapExhausted),
        };
        tally.add(bytes.unwrap_or(0));
        self.refused += u64::from(is_refused);
    }

    /// Adds the totals of another run.
    pub fn merge(&mut self, other: &CallTotals) {
        self.ok.merge(other.ok);
        self.failed.merge(other.failed);
        self.oversize.merge(other.oversize);
        self.refused += other.refused;
    }

    /// Payload bytes of all answers.
    pub fn bytes(&self) -> u64 {
        self.ok.bytes.saturating_add(self.failed.bytes).saturating_add(self.oversize.bytes)
    }

    /// Number of all calls.
    pub fn count(&self) -> u64 {
        self.ok.count + self.failed.count + self.oversize.count
    }
}

impl<'c> FromIterator<&'c CallRecord> for CallTotals {
    fn from_iter<I: IntoIterator<Item = &'c CallRecord>>(calls: I) -> CallTotals {
        let mut totals = CallTotals::default();
        calls.into_iter().for_each(|call| totals.add(&call.status, call.result_bytes));
        totals
    }
}
