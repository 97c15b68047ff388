//! Reloads edited files of the configuration, the policy and the pins while `ptc serve` or `ptc up` runs.

use super::boot::{UpstreamFlags, abort};
use super::policy::warnings;
use clap::ValueEnum;
use ptc_calls::policy::{LOCK_FILE, PinLock};
use ptc_calls::tools::{ServerText, SnapshotMode};
use ptc_engine::{Reconfigured, Runtime};
use ptc_server::console::exit::Abort;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;

/// How often the files are checked.
const LOOK: Duration = Duration::from_millis(500);

/// The configuration files, with their state when they were last read.
pub(super) struct ConfigFiles {
    paths: Vec<PathBuf>,
    read: Vec<Stamp>,
    /// Whether they are checked at intervals.
    follows: bool,
}

/// When configuration files are read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ConfigReload {
    /// When they have changed, and on SIGHUP.
    Watch,
    /// On SIGHUP alone.
    Sighup,
    /// Never.
    Off,
}

/// The modification time and length of a file, which show an edit. `None` when there is no file.
type Stamp = Option<(SystemTime, u64)>;

impl ConfigFiles {
    /// The files to follow, with their state before they are read.
    ///
    /// No files are followed for frozen tool lists. Those of mandatory servers are frozen too, unless
    /// `--config-reload` asks for edits.
    pub(super) fn followed(
        flags: &UpstreamFlags,
        reload: Option<ConfigReload>,
    ) -> Result<ConfigFiles, Abort> {
        let files = flags.files();
        let is_stable = match (reload, flags.snapshot()?) {
            (Some(ConfigReload::Off), _) | (_, Some(SnapshotMode::Frozen)) => true,
            (Some(ConfigReload::Watch | ConfigReload::Sighup), _) => false,
            (None, Some(SnapshotMode::Live) | None) => flags.is_strict(&files),
        };
        let paths = if is_stable { Vec::new() } else { files };
        let read = stamps(&paths);
        let follows = reload.is_none_or(|reload| reload == ConfigReload::Watch);
        Ok(ConfigFiles { paths, read, follows })
    }

    /// The files of the policy to follow, with their state before they are read.
    pub(super) fn of_policy(
        flags: &UpstreamFlags,
        reload: Option<ConfigReload>,
    ) -> Result<ConfigFiles, Abort> {
        let paths = if reload == Some(ConfigReload::Off) { Vec::new() } else { flags.policy.files()? };
        let (read, follows) = (stamps(&paths), reload.is_none_or(|reload| reload == ConfigReload::Watch));
        Ok(ConfigFiles { paths, read, follows })
    }

    /// The file of pins to follow, with its state before it is read.
    pub(super) fn of_pins(flags: &UpstreamFlags, reload: Option<ConfigReload>) -> Result<ConfigFiles, Abort> {
        let is_followed = reload != Some(ConfigReload::Off);
        let paths = if is_followed { flags.policy.followed_pins(&flags.files())? } else { Vec::new() };
        let (read, follows) = (stamps(&paths), reload.is_none_or(|reload| reload == ConfigReload::Watch));
        Ok(ConfigFiles { paths, read, follows })
    }

    /// Passes every edit of the pins to the runtime. Never ends.
    pub(super) async fn follow_pins(self, runtime: &Runtime, reloads: watch::Receiver<u64>) {
        let reload = |paths: &[PathBuf]| {
            for path in paths {
                match PinLock::read(path) {
                    Ok(lock) => {
                        runtime.replace_pins(lock);
                        tracing::info!("{LOCK_FILE} reloaded");
                    }
                    Err(error) => {
                        tracing::error!("the edited {LOCK_FILE} is not used, the one before stays: {error}");
                    }
                }
            }
        };
        self.on_edit(reloads, reload).await;
    }

    /// Passes every edit of the policy to the runtime, for calls from now on. Never ends.
    pub(super) async fn follow_policy(
        self,
        flags: &UpstreamFlags,
        runtime: &Runtime,
        reloads: watch::Receiver<u64>,
    ) {
        let reload = |_: &[PathBuf]| match flags.policy.load() {
            Ok(Some(policy)) => match runtime.replace_policy(policy) {
                Ok(()) => {
                    tracing::info!("policy reloaded");
                    for text in warnings::texts(runtime) {
                        tracing::warn!("{}", ServerText::new(&text));
                    }
                }
                Err(error) => {
                    tracing::error!("the edited policy is not used, the one before stays: {error}");
                }
            },
            Ok(None) => {}
            Err(Abort { message, .. }) => {
                tracing::error!("the edited policy is not used, the one before stays: {message}");
            }
        };
        self.on_edit(reloads, reload).await;
    }

    /// Passes every edit to the runtime, and all files whenever `reloads` changes. Never ends.
    pub(super) async fn follow(
        self,
        flags: &UpstreamFlags,
        runtime: &Runtime,
        reloads: watch::Receiver<u64>,
    ) {
        let reload = |paths: &[PathBuf]| {
            let reloaded = flags.entries(paths).and_then(|(new, _)| runtime.reconfigure(new).map_err(abort));
            match reloaded {
                Ok(changes) => tell(&changes),
                Err(Abort { message, .. }) => {
                    tracing::error!("the edited configuration is not used, the one before stays: {message}");
                }
            }
        };
        self.on_edit(reloads, reload).await;
    }

    /// Calls `reload` after every edit, and whenever `reloads` changes. Never ends.
    async fn on_edit(mut self, mut reloads: watch::Receiver<u64>, reload: impl Fn(&[PathBuf])) {
        let mut seen = self.read.clone();
        while !self.paths.is_empty() {
            let asked = async {
                if reloads.changed().await.is_err() {
                    // The sender is gone, so no signal will come.
                    std::future::pending().await
                }
            };
            let is_asked = tokio::select! {
                () = asked => true,
                () = tokio::time::sleep(LOOK), if self.follows => false,
            };
            let now = stamps(&self.paths);
            let is_same = std::mem::replace(&mut seen, now) == seen;
            // Waits for another look, because the file may still be written.
            if !is_asked && (!is_same || seen == self.read) {
                continue;
            }
            self.read.clone_from(&seen);
            reload(&self.paths);
        }
        std::future::pending().await
    }
}

fn stamps(paths: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |path: &PathBuf| {
        let data = Path::metadata(path).ok()?;
        Some((data.modified().ok()?, data.len()))
    };
    paths.iter().map(stamp).collect()
}

fn tell(changes: &Reconfigured) {
    let list = |names: &[Arc<str>]| names.join(", ");
    let Reconfigured { added, changed, removed } = changes;
    let (added, changed, removed) = (list(added), list(changed), list(removed));
    tracing::info!(added, changed, removed, "configuration reloaded");
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Flags {
        #[command(flatten)]
        upstreams: UpstreamFlags,
    }

    fn follows(text: &str, flags: &[&str], reload: Option<ConfigReload>) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.json");
        #[expect(clippy::disallowed_methods, reason = "a folder of its own")]
        std::fs::write(&path, text).unwrap();
        let given = ["ptc", "--upstreams-config", path.to_str().unwrap()];
        let flags = Flags::parse_from(given.iter().chain(flags)).upstreams;
        let files = ConfigFiles::followed(&flags, reload).ok().unwrap();
        !files.paths.is_empty() && files.follows
    }

    #[test]
    fn edits_of_servers_that_have_to_start_are_followed_only_where_somebody_asks_for_that() {
        let strict = r#"{"upstreams": {"a": {"transport": "mcp_stdio", "command": "x"}}}"#;
        let hosts = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
        for (text, flags, reload, want) in [
            (strict, &[][..], None, false),
            (strict, &[], Some(ConfigReload::Watch), true),
            (strict, &["--startup", "lenient"], None, true),
            (strict, &["--catalog-snapshot-mode", "frozen"], Some(ConfigReload::Watch), false),
            (hosts, &[], None, true),
            (hosts, &[], Some(ConfigReload::Off), false),
            (hosts, &["--startup", "strict"], None, false),
        ] {
            assert_eq!(follows(text, flags, reload), want, "{text} {flags:?} {reload:?}");
        }
    }
}
