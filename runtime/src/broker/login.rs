//! Asks the client of a run to log in at a server, while the program waits in its call.

use crate::run::account::RunAccount;
use crate::run::client::ServedClient;
use crate::upstream::LoginNeed;
use serde_json::{Value, json};
use std::sync::Arc;

/// Asks the client, if it can lead its user to an address. True after a login. The caller has stopped the clock of the run.
pub(super) async fn logged_in(account: &RunAccount, need: &LoginNeed) -> bool {
    if !need.may_ask() {
        return false;
    }
    let calling = account.client().filter(|client| client.offered.urls);
    let Some(client) = calling.and_then(|client| client.asked.clone()).or_else(|| need.client()) else {
        return false;
    };
    let show = |address: String| agrees(client, need, address);
    match need.login().ask(show).await {
        Ok(()) => true,
        Err(fault) => {
            tracing::warn!(upstream = &**need.server(), "no login: {fault}");
            false
        }
    }
}

async fn agrees(client: Arc<dyn ServedClient>, need: &LoginNeed, address: String) -> bool {
    let server = need.server();
    let params = json!({
        "mode": "url",
        "message": format!("{server} asks for a login. Open the address to log in; the program waits."),
        "url": address,
        // Unique at a time: one login of a server is asked for at once.
        "elicitationId": format!("login-{server}"),
    });
    let answer = client.ask("elicitation/create", params.to_string()).await;
    let answer: Value = answer.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    answer["action"] == "accept"
}
