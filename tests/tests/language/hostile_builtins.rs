//! Calls every builtin with values as large, deep, shared and colliding as the language allows, at 10 MiB and 200 ms,
//! in one process with little address space: none aborts, runs on, or holds unaccounted memory. New builtins are
//! included automatically.
//!
//! `PTC_HOSTILE=all` tries more shapes of calls and more values, which takes some minutes.

use serde_json::Value;
use std::process::Command;

/// Address space of the process, in KiB.
const ADDRESS_SPACE: u64 = 1 << 20;

/// Builtins with a distinct name; fewer would mean that the table was not read.
const LEAST_BUILTINS: u64 = 300;

#[test]
fn every_builtin_keeps_its_limits_whatever_it_is_called_with() {
    let extent = std::env::var("PTC_HOSTILE").unwrap_or_default();
    let probe = env!("CARGO_BIN_EXE_hostile-probe");
    let script = format!("ulimit -v {ADDRESS_SPACE}; exec \"$0\" \"$@\"");
    let output = Command::new("sh").arg("-c").arg(script).arg(probe).arg(extent).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {printed}{errors}", output.status);
    let last: Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    assert!(last["builtins"].as_u64().unwrap() >= LEAST_BUILTINS, "{last}");
    assert_eq!(last["broken"], 0, "{printed}");
}
