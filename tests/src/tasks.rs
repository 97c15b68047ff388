//! Starts a server for tasks in words over the sample shop.

use crate::model::ModelServer;
use crate::serve::{Server, text_of};
use crate::upstreams::{ConfigFile, Upstreams, stdio};
use serde_json::{Value, json};

/// The sample shop, with read-only tools.
#[must_use]
pub fn shop() -> ConfigFile {
    let ptc = crate::binary::path().display().to_string();
    // The shop runs the `ptc` binary under another name, since a server must not be this very program.
    let link = format!("exec {ptc} demo-server shop");
    Upstreams::default().add("shop", stdio("sh", &["-c", &link])).write()
}

/// A server that offers `lisp_task`, with this model.
#[must_use]
pub fn started(config: &ConfigFile, model: &ModelServer, more: &[&str]) -> Server {
    let mut flags = vec!["--agentic", "--agentic-model", "some-model", "--agentic-base-url", model.url()];
    flags.extend(more);
    Server::start(&config.flags(&flags))
}

/// The result of a task. Its text is its data, whatever the outcome.
pub fn task(server: &mut Server, arguments: Value) -> Value {
    let asked = json!({ "name": "lisp_task", "arguments": arguments });
    let result = server.request("tools/call", asked)["result"].clone();
    let text: Value = serde_json::from_str(&text_of(&result)).expect("text that is JSON");
    assert_eq!(text, result["structuredContent"]);
    result
}
