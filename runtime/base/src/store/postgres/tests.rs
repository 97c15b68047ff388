//! Tests with a real database, where PostgreSQL is installed.

#[path = "../../../../../tests/src/postgres.rs"]
#[allow(unreachable_pub, dead_code, reason = "a module of the tests of the product, which use more of it")]
mod database;

use super::PostgresStore;
use crate::store::{Store, StoreError, suite};
use database::Database;
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3_600);

/// The store, once the database has started.
async fn open(database: &Database) -> PostgresStore {
    loop {
        match PostgresStore::open(&database.url()).await {
            Ok(store) => return store,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_passes_the_suite() {
    let Some(database) = Database::start() else { return };
    drop(open(&database).await);
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
    let nodes = futures_util::future::join_all((0..4).map(|_| open(&database))).await;
    let [one, two, ..] = nodes.as_slice() else { unreachable!("there are four") };
    // A begin or an append that arrives after the end does not bring the log back.
    let gone = one.begin("run/gone", "a", LONG, vec![b"a".to_vec()]).await.unwrap().unwrap();
    one.remove(&gone, None).await.unwrap();
    assert_eq!(one.begin("run/gone", "a", LONG, vec![b"a".to_vec()]).await.unwrap(), None);
    assert_eq!(two.lease("run/gone", "b", LONG).await.unwrap(), None);
    assert_eq!(one.append(&gone, 1, vec![b"b".to_vec()]).await, Err(StoreError::LeaseLost));
    assert!(one.logs("run/gone").await.unwrap().is_empty());
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
    let store = open(&database).await;
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

/// Longer than any operation may take.
const TOO_LONG: Duration = Duration::from_secs(60);

/// A server that accepts connections and says nothing, and its port.
fn silent_server() -> (std::net::TcpListener, u16) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

fn is_unavailable<T>(done: &Result<T, StoreError>) -> bool {
    matches!(done, Err(StoreError::Unavailable(_)))
}

#[tokio::test(start_paused = true)]
async fn a_database_that_accepts_connections_and_says_nothing_is_away() {
    let (_listener, port) = silent_server();
    let store = PostgresStore::at(&format!("postgres://ptc@127.0.0.1:{port}/postgres")).unwrap();
    let all = async {
        // The receiver of messages has the connection first.
        let lock = store.lock("name");
        let (messages, put, lock) = tokio::join!(store.messages(), store.put("key", 0, None), lock);
        assert!(is_unavailable(&messages) && is_unavailable(&put) && is_unavailable(&lock));
        let opened = PostgresStore::open(&format!("postgres://ptc@127.0.0.1:{port}/postgres")).await;
        assert!(is_unavailable(&opened));
    };
    tokio::time::timeout(TOO_LONG, all).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_nothing_leaves_time_for_the_next_one_of_the_address() {
    let Some(database) = Database::start() else { return };
    drop(open(&database).await);
    let (_listener, port) = silent_server();
    let url =
        database.url().replace('@', &format!("@127.0.0.1:{port},")).replace("/postgres", ":5432/postgres");
    let store = PostgresStore::at(&format!("{url}?target_session_attrs=read-write")).unwrap();
    // One that waits for less than the first server may take leaves the attempt to others.
    let impatient =
        async { while tokio::time::timeout(Duration::from_millis(500), store.get("key")).await.is_err() {} };
    tokio::time::timeout(TOO_LONG, impatient).await.unwrap();
    assert_eq!(store.put("key", 0, Some(Vec::new())).await, Ok(Some(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_goes_on_when_a_database_that_stood_still_does() {
    let Some(database) = Database::start() else { return };
    let store = open(&database).await;
    let _lock = store.lock("name").await.unwrap();
    database.pause();
    let all = async {
        for _ in 0..2 {
            let another = store.lock("another");
            let (got, sent, another) = tokio::join!(store.get("key"), store.send("text"), another);
            assert!(is_unavailable(&got) && is_unavailable(&sent) && is_unavailable(&another));
            // The connection that did not answer is gone, and there is no new one.
            while store.messages().await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        database.go_on();
        while store.get("key").await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let mut received = store.messages().await.unwrap();
        store.send("again").await.unwrap();
        while &*received.recv().await.unwrap() != "again" {}
    };
    tokio::time::timeout(TOO_LONG, all).await.unwrap();
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
