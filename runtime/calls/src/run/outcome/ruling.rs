//! Represents the decision of a policy about one tool call (allow, ask or deny, by which rule), as records of calls
//! show it.

use ptc_base::named_enum;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;

named_enum! {
    /// What a policy says of a call; the later, the stricter.
    #[derive(PartialOrd, Ord, Hash, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Verdict, ALL {
        /// It may be made.
        Allow = "allow",
        /// A person has to approve it.
        Ask = "ask",
        /// It must not be made.
        Deny = "deny",
    }
}

/// The decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRuling {
    /// What was decided.
    pub verdict: Verdict,
    /// The rule that decided, with its place.
    pub rule: Arc<str>,
    /// Who approved or refused it, if a person was asked.
    pub answered_by: Option<Arc<str>>,
    /// How long the call waited for that answer.
    pub waited: Duration,
}

impl PolicyRuling {
    /// A decision without a person.
    pub fn new(verdict: Verdict, rule: Arc<str>) -> PolicyRuling {
        PolicyRuling { verdict, rule, answered_by: None, waited: Duration::ZERO }
    }

    /// For records of calls.
    pub fn to_json(&self) -> Json {
        let mut record = json!({ "verdict": self.verdict.name(), "rule": self.rule });
        if let Some(by) = &self.answered_by {
            record["answered_by"] = (**by).into();
            record["waited_ms"] = u64::try_from(self.waited.as_millis()).unwrap_or(u64::MAX).into();
        }
        record
    }
}
