//! Shows progress on a terminal's standard error: which upstream servers are starting, the latest progress message of a
//! running tool, or how many programs of `ptc batch` are answered.

use crate::redact;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ptc_upstream::{ProgressListener, ToolStep};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a start must take before the line appears.
const TICK: Duration = Duration::from_millis(100);

/// A line on stderr; it is hidden when stderr is not a terminal.
#[derive(Debug)]
pub struct ProgressLine {
    bar: ProgressBar,
    pending: Mutex<StartingServers>,
}

#[derive(Debug)]
struct StartingServers {
    servers: Vec<String>,
    // `None` once the last server has settled.
    all_settled: Option<oneshot::Sender<()>>,
}

impl ProgressLine {
    /// Shows the starting servers. The receiver resolves when the last of them has settled.
    pub fn starting(servers: Vec<String>) -> (ProgressLine, oneshot::Receiver<()>) {
        let bar = if redact::stderr_is_terminal() && !servers.is_empty() {
            let bar = spinner();
            bar.enable_steady_tick(TICK);
            bar
        } else {
            ProgressBar::hidden()
        };
        let (sender, receiver) = oneshot::channel();
        let all_settled = Some(sender).filter(|_| !servers.is_empty());
        let progress = ProgressLine { bar, pending: Mutex::new(StartingServers { servers, all_settled }) };
        progress.show();
        (progress, receiver)
    }

    /// Notes that one server has started or failed.
    pub fn settled(&self, server: &str) {
        if let Ok(mut pending) = self.pending.lock() {
            pending.servers.retain(|name| name != server);
            if pending.servers.is_empty()
                && let Some(all_settled) = pending.all_settled.take()
            {
                // The receiver is gone if start-up has already failed.
                let _ = all_settled.send(());
            }
        }
        self.show();
    }

    /// Removes the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&self) {
        if let Ok(pending) = self.pending.lock() {
            show(&self.bar, &format!("starting {}", pending.servers.join(", ")));
        }
    }
}

/// A line on stderr with the latest step of a tool.
#[derive(Debug)]
pub struct ToolLine {
    bar: ProgressBar,
}

impl ToolLine {
    /// An empty line; `None` when stderr is not a terminal.
    pub fn on_terminal() -> Option<Arc<ToolLine>> {
        redact::stderr_is_terminal().then(|| Arc::new(ToolLine { bar: spinner() }))
    }

    /// Removes the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl ProgressListener for ToolLine {
    fn stepped(&self, step: ToolStep) {
        show(&self.bar, &step.to_string());
    }
}

/// A bar of work that is counted, if stderr is a terminal.
pub fn counted() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, on_stderr());
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} answered, {per_sec}, {eta} left");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_draw_target(on_stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style);
    }
    bar
}

fn show(bar: &ProgressBar, line: &str) {
    bar.set_message(redact::visible_line(&redact::secrets().scrub(line)).into_owned());
}

#[expect(clippy::disallowed_methods, reason = "`show` makes all texts that it draws, and scrubs them")]
fn on_stderr() -> ProgressDrawTarget {
    ProgressDrawTarget::stderr()
}
