//! Runs one program with progress, as a client made with the Rust SDK; prints each step with its time, then the answer.
//!
//! usage: `rmcp_client PROGRAM COMMAND ARGUMENT…`; the command is that of the server, such as `ptc serve --stdio …`.

use rmcp::model::{CallToolRequestParams, ProgressNotificationParam};
use rmcp::service::NotificationContext;
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use std::sync::{Arc, Mutex};
use std::time::Instant;

#[derive(Clone)]
struct Client {
    steps: Arc<Mutex<Vec<String>>>,
    began: Instant,
}

impl ClientHandler for Client {
    async fn on_progress(&self, step: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let message = step.message.unwrap_or_default();
        let line = format!("{} ms: {} {message}", self.began.elapsed().as_millis(), step.progress);
        self.steps.lock().expect("no step panics").push(line);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut given = std::env::args().skip(1);
    let (program, name) =
        given.next().zip(given.next()).ok_or("usage: rmcp_client PROGRAM COMMAND ARGUMENT…")?;
    let mut command = tokio::process::Command::new(name);
    command.args(given);
    let client = Client { steps: Arc::default(), began: Instant::now() };
    let service = client.clone().serve(TokioChildProcess::new(command)?).await?;
    let arguments = serde_json::json!({ "program": program });
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let result = service.call_tool(CallToolRequestParams::new("lisp_eval").with_arguments(arguments)).await?;
    // Later steps do not count: they would come after the answer.
    let steps = client.steps.lock().expect("no step panics").clone();
    steps.iter().for_each(|step| println!("{step}"));
    println!("{} steps, then {}", steps.len(), serde_json::to_string(&result)?);
    service.cancel().await?;
    Ok(())
}
