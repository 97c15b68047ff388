//! Helpers shared by the tests that use real child processes.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]
#![allow(clippy::disallowed_methods, reason = "tests write files as they need them")]

pub(crate) mod http;
pub(crate) mod listing;
pub(crate) mod memory;
pub(crate) mod programs;
#[cfg(feature = "agent")]
pub(crate) mod provider;
pub(crate) mod remote;
#[cfg(feature = "agent")]
pub(crate) mod script;

use ptc_base::secrets::SecretRegistry;
use ptc_calls::tools::{CallTarget, SharedCatalog, SnapshotMode};
use ptc_upstream::config::ServerEntry;
use ptc_upstream::{
    CallResult, ResultSink, ServerRequest, StdioSpec, SupervisedUpstream, SupervisorOptions, Upstream,
    UpstreamFault,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The example binary that cargo builds with the tests.
pub(crate) fn fake_server() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    path.join("examples").join("fake_server")
}

pub(crate) fn entry(name: &str, arguments: &[&str]) -> ServerEntry {
    ServerEntry::custom(name, Arc::new(spec(arguments)))
}

fn spec(arguments: &[&str]) -> StdioSpec {
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    StdioSpec::new(fake_server().display().to_string(), arguments)
}

/// An entry of the fake server with a changed specification.
pub(crate) fn entry_with(arguments: &[&str], change: impl FnOnce(&mut StdioSpec)) -> ServerEntry {
    let mut spec = spec(arguments);
    change(&mut spec);
    ServerEntry::custom("fake", Arc::new(spec))
}

pub(crate) fn upstream_with(
    entry: ServerEntry,
    mode: SnapshotMode,
    secrets: SecretRegistry,
) -> SupervisedUpstream {
    upstream_listed_every(None, entry, mode, secrets)
}

pub(crate) fn upstream_listed_every(
    list_ttl: Option<Duration>,
    entry: ServerEntry,
    mode: SnapshotMode,
    secrets: SecretRegistry,
) -> SupervisedUpstream {
    SupervisedUpstream::new(SupervisorOptions {
        memory: None,
        catalog: SharedCatalog::new([(entry.name.clone(), None)]),
        name: entry.name,
        description: entry.description,
        transport: entry.transport,
        handshake_timeout: entry.handshake_timeout,
        start_permits: Default::default(),
        failed_start: Default::default(),
        unresponsive_timeout: entry.unresponsive_timeout,
        guardian: Arc::default(),
        mode,
        list_ttl,
        policy: entry.tools,
        pins: None,
        limits: entry.limits,
        secrets,
        client: Default::default(),
        logins: Default::default(),
    })
}

pub(crate) fn upstream(arguments: &[&str]) -> SupervisedUpstream {
    upstream_with(entry("fake", arguments), SnapshotMode::Live, SecretRegistry::new())
}

pub(crate) fn request(tool: &str, arguments: Value) -> ServerRequest {
    let (target, sink) = (CallTarget::Tool(tool.into()), ResultSink { max_bytes: 2 << 20, store: None });
    ServerRequest::new(
        ptc_calls::policy::Permitted::by_caller(),
        target,
        arguments.to_string().into(),
        Duration::from_secs(20),
        sink,
    )
}

pub(crate) async fn call(
    upstream: &SupervisedUpstream,
    tool: &str,
    arguments: Value,
) -> Result<Value, UpstreamFault> {
    let result = upstream.call(request(tool, arguments)).await?;
    let CallResult::Mcp(answer) = result else { panic!("{result:?}") };
    Ok(serde_json::from_slice(answer.bytes()).unwrap())
}

/// True if the process exists and is no zombie.
pub(crate) fn is_alive(pid: u64) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'),
        Err(_) => false,
    }
}

/// The living children of this process, sorted.
pub(crate) fn children() -> Vec<u64> {
    let own = std::process::id().to_string();
    let mut children: Vec<u64> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&process| {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
            parent == Some(own.as_str()) && is_alive(process)
        })
        .collect();
    children.sort_unstable();
    children
}

/// Compares with a golden file in a folder of the tests; `PTC_BLESS` in the environment writes it.
pub(crate) fn golden(folder: &str, name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder).join(name);
    if std::env::var_os("PTC_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(kept, text, "{name}: PTC_BLESS=1 writes it");
}
