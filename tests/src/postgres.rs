//! A PostgreSQL server for a test, where PostgreSQL is installed: CI does not have it.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

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
        url_of(self.folder.path())
    }

    /// What a statement gives, as text.
    pub fn query(&self, statement: &str) -> String {
        let mut psql = Command::new("psql");
        psql.arg(self.url()).args(["--tuples-only", "--no-align", "--command", statement]);
        let output = psql.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

/// Name of the socket of a database in its folder.
const SOCKET: &str = ".s.PGSQL.5432";

/// Another way to a database, which can be slow, or closed.
#[derive(Debug)]
pub struct Way {
    folder: tempfile::TempDir,
    /// Milliseconds that each piece takes.
    delay: Arc<AtomicU64>,
    is_closed: Arc<AtomicBool>,
}

impl Way {
    /// A new way to a database. Its threads end with the process.
    pub fn to(database: &Database) -> Way {
        let folder = tempfile::Builder::new().prefix("way").tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let target = database.folder.path().join(SOCKET);
        let (delay, is_closed) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (slow, closed) = (delay.clone(), is_closed.clone());
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = UnixStream::connect(&target) else { continue };
                if closed.load(Ordering::Acquire) {
                    continue;
                }
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let (slow, closed) = (slow.clone(), closed.clone());
                    std::thread::spawn(move || pass_on(from, to, &slow, &closed));
                }
            }
        });
        Way { folder, delay, is_closed }
    }

    /// The address of the database on this way.
    pub fn url(&self) -> String {
        url_of(self.folder.path())
    }

    /// Sets how long each piece takes.
    pub fn set_delay(&self, delay: Duration) {
        self.delay.store(u64::try_from(delay.as_millis()).unwrap(), Ordering::Release);
    }

    /// Closes the way, with its connections, or opens it again.
    pub fn set_closed(&self, is_closed: bool) {
        self.is_closed.store(is_closed, Ordering::Release);
    }
}

/// Passes on what comes from one end to the other, until one of them or the way is closed.
fn pass_on(mut from: UnixStream, mut to: UnixStream, delay: &AtomicU64, is_closed: &AtomicBool) {
    let mut piece = vec![0; 1 << 16];
    let _ = from.set_read_timeout(Some(Duration::from_millis(10)));
    while !is_closed.load(Ordering::Acquire) {
        match from.read(&mut piece) {
            Ok(0) => break,
            Ok(bytes) => {
                std::thread::sleep(Duration::from_millis(delay.load(Ordering::Acquire)));
                if is_closed.load(Ordering::Acquire) || to.write_all(&piece[..bytes]).is_err() {
                    break;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    for end in [from, to] {
        let _ = end.shutdown(std::net::Shutdown::Both);
    }
}

/// The address of a database whose socket is in this folder.
fn url_of(folder: &Path) -> String {
    let folder = folder.display().to_string().replace('/', "%2F");
    format!("postgres://ptc@{folder}/postgres")
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
