//! Reloads the files of the configuration, the policy and the approved tool definitions (pins) after edits, while `ptc
//! serve` or `ptc up` runs.

use super::boot::{UpstreamFlags, abort};
use super::policy::warnings;
use clap::ValueEnum;
use ptc_base::files::{FollowedFiles, ReloadSignal};
use ptc_calls::policy::{LOCK_FILE, PinLock};
use ptc_calls::tools::{ServerText, SnapshotMode};
use ptc_engine::{Reconfigured, Runtime};
use ptc_server::console::Abort;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// The configuration files, with their state when they were last read.
pub(super) struct ConfigFiles(FollowedFiles);

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

impl ConfigFiles {
    fn new(paths: Vec<PathBuf>, reload: Option<ConfigReload>) -> ConfigFiles {
        let files = FollowedFiles::unread(paths);
        ConfigFiles(match reload {
            None | Some(ConfigReload::Watch) => files,
            Some(ConfigReload::Sighup | ConfigReload::Off) => files.on_request(),
        })
    }

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
        Ok(ConfigFiles::new(paths, reload))
    }

    /// The files to follow, also while the default one does not exist.
    pub(super) fn expected(flags: &UpstreamFlags) -> Result<ConfigFiles, Abort> {
        let is_stable = flags.snapshot()? == Some(SnapshotMode::Frozen);
        let paths = if is_stable { Vec::new() } else { flags.expected_files() };
        Ok(ConfigFiles::new(paths, Some(ConfigReload::Watch)))
    }

    /// The files of the policy to follow, with their state before they are read.
    pub(super) fn of_policy(
        flags: &UpstreamFlags,
        reload: Option<ConfigReload>,
    ) -> Result<ConfigFiles, Abort> {
        let paths = if reload == Some(ConfigReload::Off) { Vec::new() } else { flags.policy.files()? };
        Ok(ConfigFiles::new(paths, reload))
    }

    /// The file of pins to follow, with its state before it is read.
    pub(super) fn of_pins(flags: &UpstreamFlags, reload: Option<ConfigReload>) -> Result<ConfigFiles, Abort> {
        let is_followed = reload != Some(ConfigReload::Off);
        let paths = if is_followed { flags.policy.followed_pins(&flags.files())? } else { Vec::new() };
        Ok(ConfigFiles::new(paths, reload))
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
        self.0.follow(ReloadSignal(Some(reloads)), reload).await;
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
        self.0.follow(ReloadSignal(Some(reloads)), reload).await;
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
        self.0.follow(ReloadSignal(Some(reloads)), reload).await;
    }
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
        files.0.looks()
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
