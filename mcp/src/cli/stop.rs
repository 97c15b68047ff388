//! Detects when a server process has to stop or to reload its files: by signals, or because its input ends while it is
//! still starting.

use super::SETTLING;
use ptc_base::oauth::settle_for_good;
use ptc_base::tasks::{self, TaskOwner};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::sleep;

/// How often the input is checked while servers start.
const LOOK: Duration = Duration::from_millis(50);

/// How long a start may go on after the end of its input. It is the same time that requests in flight get,
/// and lets a failing start report why.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// Signals that request an orderly end. A hangup is treated like an interrupt.
const ASKING: [SignalKind; 3] = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];

/// Listens for signals. The first one requests an orderly end, the second one ends the process as soon as no login is
/// being renewed. The guardian then ends the servers.
pub(super) struct Stop {
    asked: watch::Receiver<bool>,
    /// Counts the requests to reload files.
    pub(super) reloads: watch::Receiver<u64>,
}

impl Stop {
    /// Starts to listen. A daemon, which has no terminal, reloads its files on a hangup and goes on.
    pub(super) fn listen(is_daemon: bool) -> Stop {
        let (ask, asked) = watch::channel(false);
        let (reload, reloads) = watch::channel(0);
        if is_daemon && let Ok(mut signal) = signal(SignalKind::hangup()) {
            tasks::spawn(TaskOwner::Process, async move {
                while signal.recv().await.is_some() {
                    tracing::info!("SIGHUP: reading configuration, tokens and certificate again");
                    reload.send_modify(|count| *count += 1);
                }
            });
        }
        for kind in ASKING.into_iter().filter(|kind| !is_daemon || *kind != SignalKind::hangup()) {
            // A signal that the parent ignored (nohup) stays ignored.
            if !is_ignored(kind)
                && let Ok(signal) = signal(kind)
            {
                tasks::spawn(TaskOwner::Process, hear(signal, kind, ask.clone()));
            }
        }
        Stop { asked, reloads }
    }

    /// Resolves when a signal requests the end.
    pub(super) async fn asked(&self) {
        let mut asked = self.asked.clone();
        if asked.wait_for(|asked| *asked).await.is_err() {
            // The sender is gone, so no signal will come.
            std::future::pending().await
        }
    }
}

async fn hear(mut signal: Signal, kind: SignalKind, ask: watch::Sender<bool>) {
    while signal.recv().await.is_some() {
        if ask.send_replace(true) {
            // A renewal that is interrupted loses the login.
            settle_for_good(SETTLING).await;
            std::process::exit(128 + kind.as_raw_value());
        }
    }
}

fn is_ignored(kind: SignalKind) -> bool {
    // SAFETY: a zeroed sigaction is a valid value, and a null action changes nothing.
    unsafe {
        let mut current: libc::sigaction = std::mem::zeroed();
        libc::sigaction(kind.as_raw_value(), std::ptr::null(), &raw mut current) == 0
            && current.sa_sigaction == libc::SIG_IGN
    }
}

/// Resolves when the other end of standard input has been closed for a while, so that starting is pointless.
pub(super) async fn input_gone() {
    while !has_hung_up() {
        sleep(LOOK).await;
    }
    sleep(GRACE).await;
}

fn has_hung_up() -> bool {
    #[cfg(target_os = "linux")]
    let gone = PollFlags::HUP | PollFlags::RDHUP;
    #[cfg(not(target_os = "linux"))]
    let gone = PollFlags::HUP;
    let input = std::io::stdin();
    let mut inputs = [PollFd::new(&input, gone)];
    // A timeout of 0 does not block.
    poll(&mut inputs, Some(&Timespec::default())).is_ok() && inputs[0].revents().intersects(gone)
}
