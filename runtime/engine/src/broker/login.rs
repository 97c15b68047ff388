//! Asks the user's client to log in at a server that refused a call for lack of a login, and repeats the call, while
//! the program waits.

use super::reserve::start;
use ptc_calls::run::account::RunAccount;
use ptc_calls::run::client::ServedClient;
use ptc_upstream::{ClientFeatures, LoginNeed, ServerRequest, Upstream, UpstreamFault};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::time::Instant;

/// Limit of logins for one call: a server may ask for other scopes each time.
const MOST_LOGINS: usize = 2;

/// The client that can be asked to log in: that of the run, or the one of this process.
fn asked(account: &RunAccount, features: &ClientFeatures) -> Option<Arc<dyn ServedClient>> {
    let calling = account.client().filter(|client| client.offered.urls);
    calling.and_then(|client| client.asked.clone()).or_else(|| features.url_client())
}

/// Asks the client, if it can lead its user to an address. True after a login. The caller has stopped the clock of the run.
pub(super) async fn logged_in(account: &RunAccount, need: &LoginNeed) -> bool {
    if !need.may_ask() {
        return false;
    }
    let Some(client) = asked(account, need.features()) else { return false };
    let show = |address: String| agrees(client, need, address);
    match need.login().ask(need.scopes(), show).await {
        Ok(()) => true,
        Err(fault) => {
            tracing::warn!(upstream = &**need.server(), "no login: {fault}");
            false
        }
    }
}

/// Repeats a call for which its server wants a login, after a person has logged in.
pub(super) struct LoginRetry {
    /// The call once more; `None` where no client can be asked.
    spare: Option<ServerRequest>,
    logins: usize,
}

impl LoginRetry {
    /// Retains a call where its client can be asked.
    pub(super) fn of_call(
        account: &RunAccount,
        features: &ClientFeatures,
        request: &ServerRequest,
    ) -> LoginRetry {
        let spare = asked(account, features).map(|_| request.resend());
        LoginRetry { spare, logins: 0 }
    }

    /// The call once more, if it has failed for a login that a person has made meanwhile. The time of the call and of its
    /// program stands still until then. The server has refused the call before it looked at it.
    pub(super) async fn after(
        &mut self,
        failed: &UpstreamFault,
        account: &Arc<RunAccount>,
        upstream: &Arc<dyn Upstream>,
    ) -> Option<ServerRequest> {
        let UpstreamFault::LoginRequired(need) = failed else { return None };
        let spare = self.spare.take()?;
        if self.logins == MOST_LOGINS {
            return None;
        }
        self.logins += 1;
        let left = spare.deadline.saturating_duration_since(Instant::now());
        let wait = account.wait_for_start();
        if !logged_in(account, need).await {
            return None;
        }
        drop(wait);
        start(account, upstream).await.ok()?;
        self.spare = Some(spare.resend().within(left));
        Some(spare.within(left))
    }
}

async fn agrees(client: Arc<dyn ServedClient>, need: &LoginNeed, address: String) -> bool {
    let server = need.server();
    let scopes = need.scopes().map(|scopes| format!(" with the scopes {scopes}")).unwrap_or_default();
    let params = json!({
        "mode": "url",
        "message": format!("{server} asks for a login{scopes}. Open the address to log in; the program waits."),
        "url": address,
        // Unique at a time: one login of a server is asked for at once.
        "elicitationId": format!("login-{server}"),
    });
    let answer = client.ask("elicitation/create", params.to_string()).await;
    let answer: Value = answer.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    answer["action"] == "accept"
}
