//! The messages between the process that `ptc up` starts and the other `ptc` processes that use it: a line with the
//! request, and a line with its answer.

use super::UpArgs;
use crate::cli::boot::UpstreamFlags;
use crate::cli::flags::variables;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The first line of a connection.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Request {
    /// The state.
    State,
    /// The state once each server has started or failed.
    Settled,
    /// The end of the process. Its answer comes when the servers have ended.
    Stop,
    /// A link to its page.
    Page,
    /// A server. What follows is MCP.
    Server { name: String, fingerprint: u64 },
}

/// What the process says about itself.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct State {
    /// Version of the package.
    pub(super) package: String,
    /// Identity of the file that runs.
    pub(super) build: u64,
    pub(super) process: u32,
    /// What it was started with.
    #[serde(default)]
    pub(super) settings: UpSettings,
    pub(super) servers: Vec<RunningServer>,
}

/// What `ptc up` is asked to do.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct UpSettings {
    /// Hash of the flags and of their variables, which may hold secrets; `None` without any.
    flags: Option<u64>,
    /// The configuration files.
    files: Vec<PathBuf>,
}

impl UpSettings {
    /// Those of a command line with these flags, and of the environment.
    pub(super) fn new(words: &[OsString], flags: &UpstreamFlags) -> io::Result<UpSettings> {
        let command = UpArgs::augment_args(clap::Command::new("up"));
        // Files are compared by where they are.
        let flag =
            |arg: &clap::Arg| arg.get_long().filter(|flag| *flag != "upstreams-config").map(str::to_owned);
        let named = command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(flag);
        let value = |flag: String| Some((variables::read(&flag, variables::text).ok()??, flag));
        let variables: Vec<_> = named.filter_map(value).collect();
        let mut hasher = DefaultHasher::new();
        (words, &variables).hash(&mut hasher);
        let has_flags = !words.is_empty() || !variables.is_empty();
        let files = flags.expected_files().into_iter().map(std::path::absolute).collect::<io::Result<_>>()?;
        Ok(UpSettings { flags: has_flags.then(|| hasher.finish()), files })
    }

    /// Whether these are what is asked for. Without flags and variables it is the files alone.
    pub(super) fn has(&self, asked: &UpSettings) -> bool {
        self.files == asked.files && (asked.flags.is_none() || self.flags == asked.flags)
    }
}

/// A server that is kept running.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct RunningServer {
    pub(super) name: String,
    pub(super) state: String,
    pub(super) error: Option<String>,
    pub(super) tools: usize,
}

/// The answer to [`Request::Page`].
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct PageAnswer {
    pub(super) link: Option<String>,
    pub(super) error: Option<String>,
}

/// Identifies the file that runs: another build of the same version may differ.
pub(super) fn build() -> u64 {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    let file = std::env::current_exe().and_then(std::fs::metadata).ok();
    file.map(|file| (file.ino(), file.len(), file.mtime(), file.mtime_nsec())).hash(&mut hasher);
    hasher.finish()
}
