//! The line on a terminal while upstream servers start.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Duration;

/// How long a start must take before the line appears.
const TICK: Duration = Duration::from_millis(100);

/// A line on stderr; nothing at all when stderr is no terminal.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    pending: Mutex<Vec<String>>,
}

impl Progress {
    /// Shows the servers that are starting.
    pub fn starting(servers: Vec<String>) -> Progress {
        let bar = if std::io::stderr().is_terminal() && !servers.is_empty() {
            let bar = ProgressBar::new_spinner();
            bar.set_draw_target(ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(TICK);
            bar
        } else {
            ProgressBar::hidden()
        };
        let progress = Progress { bar, pending: Mutex::new(servers) };
        progress.show();
        progress
    }

    /// One server has started or failed.
    pub fn settled(&self, server: &str) {
        if let Ok(mut pending) = self.pending.lock() {
            pending.retain(|name| name != server);
        }
        self.show();
    }

    /// Removes the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&self) {
        if let Ok(pending) = self.pending.lock() {
            self.bar.set_message(format!("starting {}", pending.join(", ")));
        }
    }
}
