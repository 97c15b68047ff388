//! Lets a tool call wait for a person's approval or for the count of a limit, then looks its tool up again.
//!
//! Tool lists, approved definitions, the policy and the configuration may have changed while the call waited.

use super::load::Loaded;
use super::reserve::{CallPlan, refused};
use super::{CallError, WorldFault};
use ptc_calls::policy::{Approval, ApprovalAnswer, AskedOf, CountedCall, Permitted};
use ptc_calls::run::account::RunAccount;
use ptc_calls::run::outcome::PolicyRuling;

/// A call that has waited. Each wait of a loaded call ends with one, and it can only be found again or ended.
pub(super) struct Waited(Loaded);

impl Waited {
    /// The call with its tool as it is now.
    ///
    /// # Errors
    /// The tool has gone, or may not be called any more.
    pub(super) async fn found_again(self) -> Result<Loaded, CallError> {
        let Waited(mut call) = self;
        match call.plan.find_again().await {
            Ok(found) => {
                call.tool = found.unwrap_or(call.tool);
                Ok(call)
            }
            Err(CallError::World(fault)) => Err(call.unsent(fault).into()),
            Err(_) if call.may_be_made() => Err(call.unsent(WorldFault::outcome_unknown()).into()),
            Err(wrong) => Err(refused(call.call, wrong)),
        }
    }

    /// Ends the call.
    pub(super) fn ended(self, end: impl FnOnce(Loaded) -> WorldFault) -> WorldFault {
        end(self.0)
    }
}

impl Loaded {
    /// Asks about the program, if that is to be done. The time of the run stands still.
    ///
    /// # Errors
    /// Meanwhile the tool has gone.
    pub(super) async fn reviewed(self) -> Result<Loaded, CallError> {
        if !self.is_unread() {
            return Ok(self);
        }
        let CallPlan { broker, account, .. } = &self.plan;
        park(account).await;
        let pause = account.wait_for_start();
        let client = broker.client.form_for(account.client());
        broker.policy.review(account, &broker.catalog.snapshot(), client).await;
        drop(pause);
        Waited(self).found_again().await
    }

    /// Asks a person. The time of the run stands still.
    pub(super) async fn asked(self, asked: &AskedOf) -> (Waited, Result<Approval, ApprovalAnswer>) {
        let CallPlan { broker, account, .. } = &self.plan;
        park(account).await;
        let pause = account.wait_for_start();
        let client = broker.client.form_for(account.client());
        let answer = broker.policy.ask(account, asked, &self.subject(), client).await;
        drop(pause);
        (Waited(self), answer)
    }

    /// Counts the call. It may wait for another process.
    pub(super) async fn counted(
        self,
        counted: CountedCall,
    ) -> (Waited, Result<(Permitted, PolicyRuling), PolicyRuling>) {
        let answer = self.plan.broker.policy.count(counted).await;
        (Waited(self), answer)
    }
}

/// A run that outlives its process waits for a person in its store.
async fn park(account: &RunAccount) {
    if let Some(parked) = account.journal().and_then(|journal| journal.park()) {
        // What could not be stored is logged; the question is asked all the same.
        let _ = parked.done().await;
    }
}
