//! Tests with a real database, where `initdb` and `postgres` are installed; elsewhere they are left out, which is said.

use super::PostgresStore;
use crate::store::{Store, StoreError, suite};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3_600);

/// A database in a folder, on a socket in it.
struct Database {
    folder: tempfile::TempDir,
    server: Option<Child>,
}

impl Database {
    /// `None`: PostgreSQL is not installed.
    fn start() -> Option<Database> {
        let folder = tempfile::Builder::new().prefix("pg").tempdir().unwrap();
        let data = folder.path().join("data");
        let mut initdb = as_user("initdb", folder.path());
        initdb.args(["--username=ptc", "--auth=trust", "--no-sync", "--pgdata"]).arg(&data);
        match initdb.stdout(Stdio::null()).status() {
            Ok(status) => assert!(status.success(), "initdb: {status}"),
            Err(error) => {
                eprintln!("not tested: PostgreSQL is not installed ({error})");
                return None;
            }
        }
        let mut database = Database { folder, server: None };
        database.run();
        Some(database)
    }

    fn run(&mut self) {
        let folder = self.folder.path();
        let mut server = as_user("postgres", folder);
        server.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
        server.args(["-c", "listen_addresses=", "-c", "fsync=off"]).stderr(Stdio::null());
        self.server = Some(server.spawn().unwrap());
    }

    fn stop(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        // Immediate shutdown, as after a crash.
        let pid = rustix::process::Pid::from_child(&server);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        let _ = server.wait();
    }

    fn url(&self) -> String {
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://ptc@{folder}/postgres")
    }

    /// The store, once the database has started.
    async fn open(&self) -> PostgresStore {
        loop {
            match PostgresStore::open(&self.url()).await {
                Ok(store) => return store,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
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

#[tokio::test(flavor = "multi_thread")]
async fn it_passes_the_suite() {
    let Some(database) = Database::start() else { return };
    drop(database.open().await);
    let open = || {
        let opened = PostgresStore::at(&database.url()).unwrap();
        Arc::new(opened) as Arc<dyn Store>
    };
    suite::all(open).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_share_it() {
    let Some(database) = Database::start() else { return };
    // All of them make the tables.
    let nodes = futures_util::future::join_all((0..4).map(|_| database.open())).await;
    let [one, two, ..] = nodes.as_slice() else { unreachable!("there are four") };
    // One of many gets a lease, and one of many a version.
    let leases = nodes.iter().enumerate().map(|(node, store)| async move {
        store.begin("run/a", &node.to_string(), LONG, vec![b"a".to_vec()]).await.unwrap()
    });
    let leases = futures_util::future::join_all(leases).await;
    assert_eq!(leases.iter().flatten().count(), 1);
    let puts = nodes.iter().map(|store| store.put("key", 0, Some(b"x".to_vec())));
    let puts = futures_util::future::join_all(puts).await;
    assert_eq!(puts.iter().filter(|put| *put == &Ok(Some(1))).count(), 1);
    // A write of another node is seen.
    let mut changes = two.watch();
    changes.mark_unchanged();
    one.put("key", 1, None).await.unwrap();
    changes.changed().await.unwrap();
    // A lock of one node keeps the others out until it is dropped.
    let lock = one.lock("name").await.unwrap();
    let waiting = two.lock("name");
    tokio::pin!(waiting);
    assert!(futures_util::poll!(&mut waiting).is_pending());
    drop(lock);
    waiting.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn it_comes_back_when_the_database_does() {
    let Some(mut database) = Database::start() else { return };
    let store = database.open().await;
    let lease = store.begin("run/a", "me", LONG, vec![b"a".to_vec()]).await.unwrap().unwrap();
    database.stop();
    let refused = store.append(&lease, 1, vec![b"b".to_vec()]).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    database.run();
    while store.append(&lease, 1, vec![b"b".to_vec()]).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(store.read_from("run/a", 0).await.unwrap(), [b"a", b"b"]);
}

#[tokio::test]
async fn an_error_does_not_show_the_password() {
    for url in
        ["postgres://me:hunter2@127.0.0.1:1/x?nonsense=1", "postgres://me:hunter2@127.0.0.1:1/x", "hunter2"]
    {
        let error = PostgresStore::open(url).await.err().unwrap().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
