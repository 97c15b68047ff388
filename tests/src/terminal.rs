//! Drives a program in a pseudo-terminal: types keys and reads the screen.

use crate::PATIENCE;
use rexpect::process::PtyProcess;
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use vt100::Parser;

/// Lines and columns of the screen.
pub const SIZE: (u16, u16) = (72, 96);

/// Lines of scrollback that can be read.
const KEPT_LINES: usize = 1_000;

/// A process with a pseudo-terminal as its standard streams; killed when dropped.
pub struct Terminal {
    process: PtyProcess,
    keys: File,
    shared: Arc<Shared>,
}

struct Shared {
    screen: Mutex<Parser>,
    has_changed: Condvar,
}

impl Terminal {
    /// Starts a command in a terminal of its own, with colours.
    pub fn start(command: &Command) -> Terminal {
        // The size is set on the controlling side.
        let (lines, columns) = SIZE;
        let mut at_terminal = Command::new("sh");
        at_terminal.arg("-c").arg(format!("stty rows {lines} cols {columns} && exec \"$0\" \"$@\""));
        at_terminal.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => at_terminal.env(name, value),
                None => at_terminal.env_remove(name),
            };
        }
        at_terminal.env("TERM", "xterm-256color").env_remove("NO_COLOR");
        at_terminal.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
        let mut process = PtyProcess::new(at_terminal).unwrap();
        process.set_kill_timeout(Some(1_000));
        let (keys, mut output) = (process.get_file_handle().unwrap(), process.get_file_handle().unwrap());
        let shared = Arc::new(Shared {
            screen: Mutex::new(Parser::new(lines, columns, KEPT_LINES)),
            has_changed: Condvar::new(),
        });
        let shown = shared.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading fails once no process has the terminal open.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shown.screen.lock().unwrap().process(&bytes[..count]);
                shown.has_changed.notify_all();
            }
        });
        Terminal { process, keys, shared }
    }

    /// Types these keys.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// The text on the screen, without blank lines at its end.
    pub fn shown(&self) -> String {
        self.shared.screen.lock().unwrap().screen().contents().trim_end().to_owned()
    }

    /// The last line that is not blank.
    pub fn line(&self) -> String {
        self.shown().lines().next_back().unwrap_or_default().to_owned()
    }

    /// Waits until the condition on the screen holds.
    pub fn until(&self, what: &str, is_it: impl Fn(&str) -> bool) {
        let is_there = self.within(PATIENCE, is_it);
        assert!(is_there, "does not happen: {what}\n{}", self.shown());
    }

    /// Whether the condition on the screen holds within a time.
    pub fn within(&self, time: Duration, is_it: impl Fn(&str) -> bool) -> bool {
        let end = Instant::now() + time;
        let mut screen = self.shared.screen.lock().unwrap();
        loop {
            if is_it(screen.screen().contents().trim_end()) {
                return true;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            screen = self.shared.has_changed.wait_timeout(screen, left).unwrap().0;
        }
    }

    /// Waits for the exit; true for success.
    pub fn ended(self) -> bool {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.process.status() {
                Some(rexpect::process::WaitStatus::StillAlive) => {
                    assert!(Instant::now() < end, "it does not end: {}", self.shown());
                    std::thread::sleep(Duration::from_millis(5));
                }
                Some(rexpect::process::WaitStatus::Exited(_, code)) => return code == 0,
                _ => return false,
            }
        }
    }
}
