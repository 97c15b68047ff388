//! When `ptc serve` is to stop: signals, and an input that ends before the server has started.

use ptc_runtime::tasks::{self, TaskOwner};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::sleep;

/// How often the input is looked at while servers start.
const LOOK: Duration = Duration::from_millis(50);

/// How long a start may go on after the end of its input: as long as requests in flight, and so that one that fails can
/// still say why.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// Signals that ask for an orderly end. The terminal that hangs up is not worse than one that is interrupted.
const ASKING: [SignalKind; 3] = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];

/// Hears signals: the first one asks for an orderly end, the next one ends the process at once; the guardian ends
/// its servers then.
pub(super) struct Stop {
    asked: watch::Receiver<bool>,
    reloads: watch::Receiver<u64>,
}

impl Stop {
    /// Listens from now on. A server that nobody's terminal belongs to goes on when it is told to hang up, and reads its
    /// files again.
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
            // Whoever starts us with a signal ignored (nohup) wants it to stay so.
            if !is_ignored(kind)
                && let Ok(signal) = signal(kind)
            {
                tasks::spawn(TaskOwner::Process, hear(signal, kind, ask.clone()));
            }
        }
        Stop { asked, reloads }
    }

    /// How often the process was asked to read its files again.
    pub(super) fn reloads(&self) -> watch::Receiver<u64> {
        self.reloads.clone()
    }

    /// Resolves when the process is asked to stop.
    pub(super) async fn asked(&self) {
        let mut asked = self.asked.clone();
        if asked.wait_for(|asked| *asked).await.is_err() {
            // No signal can be heard.
            std::future::pending().await
        }
    }
}

async fn hear(mut signal: Signal, kind: SignalKind, ask: watch::Sender<bool>) {
    while signal.recv().await.is_some() {
        if ask.send_replace(true) {
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

/// Resolves when the other end of standard input has gone for a while, so that a start is of no use any more.
pub(super) async fn input_gone() {
    while !has_hung_up() {
        sleep(LOOK).await;
    }
    sleep(GRACE).await;
}

fn has_hung_up() -> bool {
    #[cfg(target_os = "linux")]
    const GONE: i16 = libc::POLLHUP | libc::POLLRDHUP;
    #[cfg(not(target_os = "linux"))]
    const GONE: i16 = libc::POLLHUP;
    let mut input = libc::pollfd { fd: libc::STDIN_FILENO, events: GONE, revents: 0 };
    // SAFETY: one pollfd that lives across the call, which does not block.
    unsafe { libc::poll(&raw mut input, 1, 0) > 0 && input.revents & GONE != 0 }
}
