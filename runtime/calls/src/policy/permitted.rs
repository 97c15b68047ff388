//! Defines `Permitted`, the proof that a policy or the caller has allowed a tool call, without which no call can be
//! sent.

/// The right of one call to leave. Every request to a server and every call of a host tool carries one.
#[derive(Debug)]
pub struct Permitted(());

impl Permitted {
    /// A policy has decided, or there is none.
    pub(super) const fn by_policy() -> Permitted {
        Permitted(())
    }

    /// The caller has decided. This is for callers that pass no broker: another process that asks its own policy
    /// before it asks here, and the session's own questions, which no program makes.
    pub const fn by_caller() -> Permitted {
        Permitted(())
    }

    /// The same call once more: its server has not looked at it.
    pub const fn again(&self) -> Permitted {
        Permitted(())
    }
}
