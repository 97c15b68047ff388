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

    /// Its address.
    pub fn url(&self) -> String {
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://ptc@{folder}/postgres")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
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
