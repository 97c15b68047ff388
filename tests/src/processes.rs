//! Inspects processes through `/proc` (Linux), and waits for conditions.

use crate::PATIENCE;
use std::process::Command;
use std::time::{Duration, Instant};

/// State letter and parent of a process.
fn stat(id: u32) -> Option<(char, u32)> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in parentheses may hold anything, parentheses too.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// True while the process exists and is no zombie.
pub fn is_alive(id: u32) -> bool {
    stat(id).is_some_and(|(state, _)| state != 'Z')
}

/// True for a process that has exited but has not been waited for.
pub fn is_zombie(id: u32) -> bool {
    stat(id).is_some_and(|(state, _)| state == 'Z')
}

/// The command line of a process.
pub fn command_line(id: u32) -> String {
    String::from_utf8_lossy(&std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default()).into_owned()
}

/// The descendants of a process.
pub fn descendants(id: u32) -> Vec<u32> {
    let all: Vec<(u32, u32)> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|process: u32| Some((process, stat(process)?.1)))
        .collect();
    let mut found = Vec::new();
    let mut open = vec![id];
    while let Some(parent) = open.pop() {
        let children = all.iter().filter(|(_, its_parent)| *its_parent == parent).map(|(child, _)| *child);
        let children: Vec<u32> = children.collect();
        found.extend(&children);
        open.extend(children);
    }
    found
}

/// Peak resident memory of a process in bytes, without the pages of its binary: these are shared, and a dev build has
/// several times as many as a release build.
pub fn peak_resident(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() << 10
    };
    bytes("VmHWM:") - bytes("RssFile:")
}

/// Open descriptors of a process.
pub fn descriptors(id: u32) -> usize {
    std::fs::read_dir(format!("/proc/{id}/fd")).unwrap().count()
}

/// Sends a signal by name, for example `KILL`.
pub fn signal(id: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &id.to_string()]).status().unwrap();
    assert!(sent.success(), "no process {id}");
}

/// Stops a process (SIGSTOP), and waits until all of its threads stand still.
pub fn stand_still(id: u32) {
    signal(id, "STOP");
    let is_stopped = |thread: std::fs::DirEntry| {
        let text = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        text.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('T'))
    };
    eventually("it stands still", || {
        let threads = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
        threads.filter_map(Result::ok).all(is_stopped)
    });
}

/// Waits until the condition holds; fails after [`crate::PATIENCE`].
pub fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_true() {
        assert!(Instant::now() < end, "does not happen: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Number of spilled results that a process has open.
pub fn kept_results(id: u32) -> usize {
    let links = std::fs::read_dir(format!("/proc/{id}/fd")).expect("a process").flatten();
    let is_kept = |path: &std::path::Path| path.to_string_lossy().contains("ptc-spill-");
    links
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .filter(|path| is_kept(path) && path.extension().is_some_and(|kind| kind == "json"))
        .count()
}
