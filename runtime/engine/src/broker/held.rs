//! Holds a call until it may be sent: until a person has approved it, limits have counted it, or large arguments are
//! decided about.

use super::load::Loaded;
use super::{CallError, WorldFault};
use ptc_calls::policy::{Approval, ApprovalAnswer, Clearance, CountedCall, Permitted};
use ptc_calls::run::outcome::{CallFault, PolicyRuling, Verdict};
use ptc_upstream::deadline;
use std::time::{Duration, Instant};

/// Steps of one call to its clearance: the policy or the tool may change while a question waits.
const ROUNDS: u32 = 10;

impl Loaded {
    /// Asks until a person has decided about the call as it is now, counts it, and clears it for its way. Its time and that
    /// of its program stand still while a person is asked.
    pub(super) async fn cleared(mut self) -> Result<(Loaded, Permitted), CallError> {
        let (is_in_doubt, is_made) = (self.is_in_doubt, self.task.is_some());
        let (begun, mut waited) = (Instant::now(), Duration::ZERO);
        let (mut loaded, mut clearance) = match self.clearance.take() {
            _ if is_in_doubt => self.repeated().await?,
            // It did not wait.
            Some(Clearance::Granted(permitted, _)) => return Ok((self, permitted)),
            Some(clearance) => (self, clearance),
            None if is_made => self.decided(None).await?,
            None => self.reviewed().await?.decided(None).await?,
        };
        for _ in 0..ROUNDS {
            (loaded, clearance) = match clearance {
                // It was approved and counted when it was made.
                Clearance::Asked(_) | Clearance::Counted(_) if is_made => {
                    (loaded, Clearance::Granted(Permitted::by_caller(), None))
                }
                Clearance::Asked(asked) => {
                    let (call, answer) = loaded.asked(&asked).await;
                    waited = begun.elapsed();
                    match answer {
                        Ok(approval) => call.found_again().await?.decided(Some(approval)).await?,
                        Err(answer) => {
                            let refused = |call: Loaded| call.refused(asked.ruling, answer, waited);
                            return Err(call.ended(refused).into());
                        }
                    }
                }
                Clearance::Counted(counted) => loaded.granted(counted, waited).await?,
                Clearance::Granted(permitted, ruling) => {
                    if let Some(ruling) = ruling {
                        loaded.call.set_ruling(PolicyRuling { waited, ..ruling });
                    }
                    loaded.deadline = deadline(loaded.left);
                    return Ok((loaded, permitted));
                }
                Clearance::Denied(ruling) => {
                    return Err(loaded.denied(PolicyRuling { waited, ..ruling }).into());
                }
            };
        }
        let ruling = PolicyRuling::new(Verdict::Ask, "the policy".into());
        let answer = ApprovalAnswer::Unavailable("the policy or the tool changes all the time".into());
        Err(loaded.refused(ruling, answer, begun.elapsed()).into())
    }

    /// Counts a call, and decides again about one whose tool has changed meanwhile.
    async fn granted(self, counted: CountedCall, waited: Duration) -> Result<(Loaded, Clearance), CallError> {
        let tool = self.tool.clone();
        let (call, answer) = self.counted(counted).await;
        match answer {
            Err(ruling) => {
                let ruling = PolicyRuling { waited, ..ruling };
                Err(call.ended(|call| call.denied(ruling)).into())
            }
            Ok((permitted, ruling)) => {
                let call = call.found_again().await?;
                match *call.tool == *tool {
                    true => Ok((call, Clearance::Granted(permitted, Some(ruling)))),
                    false => Ok(call.decided(None).await?),
                }
            }
        }
    }

    /// Asks a person whether a call that may have been made is made again, and then the policy.
    ///
    /// # Errors
    /// It is not: its outcome stays unknown.
    async fn repeated(self) -> Result<(Loaded, Clearance), CallError> {
        let Some(asked) = self.plan.broker.policy.in_doubt(&self.subject()) else {
            return Err(self.unsent(WorldFault::outcome_unknown()).into());
        };
        let (call, answer) = self.asked(&asked).await;
        let Ok(approval): Result<Approval, _> = answer else {
            return Err(call.ended(|call| call.unsent(WorldFault::outcome_unknown())).into());
        };
        Ok(call.found_again().await?.decided(Some(approval)).await?)
    }

    /// Ends a call that a person did not approve.
    fn refused(self, ruling: PolicyRuling, answer: ApprovalAnswer, waited: Duration) -> WorldFault {
        let (reason, by, message) = match answer {
            ApprovalAnswer::Denied(by) => {
                let message = format!("{by} denied it, as asked by {}", ruling.rule);
                (CallFault::Denied, Some(by), message)
            }
            ApprovalAnswer::Unavailable(why) => {
                let message = format!("a person has to approve it ({}): {why}", ruling.rule);
                (CallFault::ApprovalUnavailable, None, message)
            }
        };
        let fault = self.plan.broker.world_fault(reason, &message);
        self.call.set_ruling(PolicyRuling { answered_by: by, waited, ..ruling });
        self.unsent(fault)
    }
}
