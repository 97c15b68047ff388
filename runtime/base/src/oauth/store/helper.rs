//! Stores OAuth logins in the system's keyring through a Docker credential helper, a program that is run as
//! `docker-credential-NAME get|store|erase`. The keyrings of macOS, Windows, GNOME and KDE, and `pass`, need no code
//! of their own here.

use super::{LoginKey, OAuthFault, Result};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

/// How long a helper may take: it may ask its person for a password.
const PATIENCE: Duration = Duration::from_secs(60);

/// What helpers say about a credential that they do not have.
const MISSING: &str = "credentials not found";

/// The user name of all entries: helpers want one.
const USER: &str = "ptc";

/// The address under which a login is stored: helpers key their entries by address.
fn address(key: &LoginKey) -> String {
    format!("https://ptc.invalid/{}", key.0)
}

/// The stored text; `None` without one.
pub(super) async fn get(name: &str, key: &LoginKey) -> Result<Option<String>> {
    let Some(said) = run(name, "get", &address(key)).await? else { return Ok(None) };
    let said: Value = serde_json::from_str(&said).unwrap_or_default();
    Ok(said["Secret"].as_str().map(str::to_owned))
}

/// Stores a text.
pub(super) async fn store(name: &str, key: &LoginKey, text: &str) -> Result<()> {
    let entry = json!({ "ServerURL": address(key), "Username": USER, "Secret": text });
    match run(name, "store", &entry.to_string()).await? {
        Some(_) => Ok(()),
        None => Err(OAuthFault::unavailable(format!("docker-credential-{name} stores nothing"))),
    }
}

/// Removes a text, whether or not there is one.
pub(super) async fn erase(name: &str, key: &LoginKey) -> Result<()> {
    run(name, "erase", &address(key)).await.map(drop)
}

/// Runs the helper with this input; gives its output, or `None` where it has no such credential. The output is not shown: it
/// may be a secret.
async fn run(name: &str, action: &str, input: &str) -> Result<Option<String>> {
    let program = format!("docker-credential-{name}");
    let other = |why: &str| OAuthFault::unavailable(format!("{program} {action}: {why}"));
    let mut command = Command::new(&program);
    command.arg(action).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| other(&error.to_string()))?;
    let mut stdin = child.stdin.take().ok_or_else(|| other("it has no input"))?;
    let work = async {
        // A helper that does not read its input says so by its status.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        child.wait_with_output().await
    };
    let output = timeout(PATIENCE, work).await.map_err(|_| other("it does not answer"))?;
    let output = output.map_err(|error| other(&error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(Some(text)),
        false if text.contains(MISSING) => Ok(None),
        false => Err(other(&output.status.to_string())),
    }
}
