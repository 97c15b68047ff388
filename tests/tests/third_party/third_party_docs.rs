//! Tools of third-party servers can be called from `doc` alone: arguments made from the signature fit the schema.

use ptc_tests::documented::misfits;
use ptc_tests::third_party::{everything, fetch, filesystem, git, memory, sequential_thinking, sqlite, time};
use ptc_tests::upstreams::Upstreams;
use std::process::Command;

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn every_tool_can_be_called_from_its_documentation() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().canonicalize().expect("a path");
    let done = Command::new("git").current_dir(&path).args(["init", "--quiet"]).status().expect("git runs");
    assert!(done.success());
    let config = Upstreams::default()
        .add("everything", everything())
        .add("fs", filesystem(&path))
        .add("time", time())
        .add("git", git(&path))
        .add("fetch", fetch())
        .add("sqlite", sqlite(&path.join("data.db")))
        .add("memory", memory(&path.join("memory.json")))
        .add("thinking", sequential_thinking())
        .write();
    let (tools, misfits) = misfits(config.path());
    eprintln!("{tools} tools");
    assert!(tools >= 50 && misfits.is_empty(), "{tools} tools: {misfits}");
}
