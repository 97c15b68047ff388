//! A PostgreSQL server for a test, where PostgreSQL is installed: CI does not have it.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A database in a folder, on a socket in it.
#[derive(Debug)]
pub struct Database {
    folder: tempfile::TempDir,
    server: Option<Child>,
}

impl Database {
    /// `None`: PostgreSQL is not installed.
    pub fn start() -> Option<Database> {
        let folder = tempfile::Builder::new().prefix("pg").tempdir().unwrap();
        let data = folder.path().join("data");
        let mut initdb = as_user("initdb", folder.path());
        initdb.args(["--username=ptc", "--auth=trust", "--no-sync", "--pgdata"]).arg(&data);
        match initdb.stdout(Stdio::null()).status() {
            Ok(status) => assert!(status.success(), "initdb: {status}"),
            Err(_) => return None,
        }
        let mut database = Database { folder, server: None };
        database.run();
        Some(database)
    }

    /// Starts the server, also after [`Database::stop`].
    pub fn run(&mut self) {
        let folder = self.folder.path();
        let mut server = as_user("postgres", folder);
        server.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
        server.args(["-c", "listen_addresses=", "-c", "fsync=off"]).stderr(Stdio::null());
        self.server = Some(server.spawn().unwrap());
    }

    /// Stops it at once, as a crash does.
    pub fn stop(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        let pid = rustix::process::Pid::from_child(&server);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        let _ = server.wait();
    }

    /// Makes it stand still: the system goes on accepting connections and data for it, and there is no answer.
    pub fn pause(&self) {
        self.signal(rustix::process::Signal::STOP);
    }

    /// Goes on after [`Database::pause`].
    pub fn go_on(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    /// Sends a signal to the server, and then to its processes: when it stands still it starts no more of them.
    fn signal(&self, signal: rustix::process::Signal) {
        let Some(server) = &self.server else { return };
        let _ = rustix::process::kill_process(rustix::process::Pid::from_child(server), signal);
        for child in children(server.id()) {
            let _ = rustix::process::kill_process(child, signal);
        }
    }

    /// Its address.
    pub fn url(&self) -> String {
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://ptc@{folder}/postgres")
    }
}

/// The processes that this one has started.
#[allow(
    clippy::disallowed_methods,
    reason = "no named pipe, but a file of the system; not all crates refuse it"
)]
fn children(parent: u32) -> Vec<rustix::process::Pid> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_child = |id: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // The name before it may have spaces; state and parent follow.
        let parents = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        parents == Some(parent)
    };
    let ids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    ids.filter(|id| is_child(*id)).filter_map(rustix::process::Pid::from_raw).collect()
}

impl Drop for Database {
    fn drop(&mut self) {
        // A process that stands still does not end.
        self.go_on();
        self.stop();
    }
}

/// A command of PostgreSQL, which refuses to run as root: it then runs as another user, who gets the folder.
fn as_user(command: &str, folder: &Path) -> Command {
    const UNPRIVILEGED: u32 = 65_534;
    let mut command = Command::new(command);
    if rustix::process::geteuid().is_root() {
        use std::os::unix::process::CommandExt;
        let _ = std::os::unix::fs::chown(folder, Some(UNPRIVILEGED), Some(UNPRIVILEGED));
        command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    }
    command.current_dir(folder);
    command
}
