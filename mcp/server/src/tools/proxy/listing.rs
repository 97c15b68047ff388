//! The actions `list` and `search` of the tool `proxy-dispatch`, which show the configured servers (connections) and
//! their tools.

use super::answer::ProxyAnswer;
use super::connection::{self, Connection, Shown, tool_entry};
use super::fields::CallFields;
use ptc_calls::run::account::RunAccount;
use ptc_engine::Runtime;
use ptc_engine::discovery::matching_tools;
use serde_json::{Value, json};
use std::sync::Arc;

/// Results of a search without a limit of its own.
const RESULTS: u64 = 10;

/// Lists all connections, or one. Starts those that have not been started.
pub(super) async fn list(
    runtime: &Runtime,
    account: &Arc<RunAccount>,
    given: &CallFields,
    shows_arguments: bool,
) -> Result<ProxyAnswer, String> {
    let shown = given.flag("includeTools").unwrap_or(true).then(|| shown(given));
    let all = loaded(runtime, account, given).await?;
    let word = given.text("connection");
    let meant = all.iter().filter(|one| word.as_ref().is_none_or(|word| one.is(word)));
    let connections: Vec<Value> = meant.map(|one| one.entry(shown, shows_arguments)).collect();
    Ok(ProxyAnswer::data(&json!({ "connections": connections })).with("action", "list"))
}

/// Lists the matching tools, best first.
pub(super) async fn search(
    runtime: &Runtime,
    account: &Arc<RunAccount>,
    given: &CallFields,
) -> Result<ProxyAnswer, String> {
    let query = given.text("query").unwrap_or_default();
    let all = loaded(runtime, account, given).await?;
    let word = given.text("connection");
    let find = |server: &str| all.iter().find(|one| *one.status.name == *server);
    let catalog = runtime.catalog();
    let servers = catalog
        .servers()
        .filter(|server| word.as_ref().is_none_or(|word| find(&server.name).is_some_and(|one| one.is(word))));
    let listed = servers.filter_map(|server| Some((server, server.tools.as_ref()?)));
    let found = matching_tools(listed, &query);
    let limit = usize::try_from(given.number("limit").unwrap_or(RESULTS)).unwrap_or(usize::MAX);
    let results: Vec<Value> = found
        .iter()
        .take(limit)
        .filter_map(|(server, tool)| {
            let connection = find(server)?;
            let mut entry = json!({ "connection": connection.alias, "server": server });
            entry.as_object_mut()?.extend(tool_entry(tool, shown(given)));
            Some(entry)
        })
        .collect();
    let unsearched: Vec<Value> = all
        .iter()
        .filter(|one| !one.status.tools_loaded && word.as_ref().is_none_or(|word| one.is(word)))
        .map(|one| json!({ "connection": one.alias, "server": one.status.name, "error": one.status.error }))
        .collect();
    let mut answer = json!({ "totalMatches": found.len(), "results": results });
    if !unsearched.is_empty() {
        answer["unsearched"] = unsearched.into();
    }
    Ok(ProxyAnswer::data(&answer).with("action", "search"))
}

fn shown(given: &CallFields) -> Shown {
    Shown {
        schemas: given.flag("includeInputSchema").unwrap_or(false),
        annotations: given.flag("includeAnnotations").unwrap_or(true),
    }
}

/// All connections, after an attempt to start those that the call refers to.
async fn loaded(
    runtime: &Runtime,
    account: &Arc<RunAccount>,
    given: &CallFields,
) -> Result<Vec<Connection>, String> {
    let all = Connection::all(runtime);
    let only = match given.text("connection") {
        Some(word) => Some(connection::find(&all, &word)?.status.name.clone()),
        None => None,
    };
    let is_meant = |server: &str| only.as_ref().is_none_or(|only| **only == *server);
    if all.iter().all(|one| one.status.tools_loaded || !is_meant(&one.status.name)) {
        return Ok(all);
    }
    runtime.broker().start(account, is_meant).await;
    Ok(Connection::all(runtime))
}
