//! Tests the behavior that every implementation of [`Store`] (versioned values, logs, leases, locks) must have, whether
//! in a file or in PostgreSQL.

use super::{Entry, LogName, LogNote, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3_600);

/// Runs all tests. `open` opens the same store again after the one before was dropped.
pub(crate) async fn all(open: impl Fn() -> Arc<dyn Store>) {
    values(&*open()).await;
    logs(&*open()).await;
    fences(&*open()).await;
    notes(&*open()).await;
    locks(open()).await;
    changes(&*open()).await;
    messages(&*open()).await;
    survives(&open).await;
}

async fn values(store: &dyn Store) {
    assert_eq!(store.get("v/a").await.unwrap(), None);
    assert_eq!(store.put("v/a", 1, Some(b"x".to_vec())).await.unwrap(), None);
    assert_eq!(store.put("v/a", 0, Some(b"x".to_vec())).await.unwrap(), Some(1));
    assert_eq!(store.put("v/a", 0, Some(b"y".to_vec())).await.unwrap(), None);
    assert_eq!(store.put("v/a", 1, Some(b"y".to_vec())).await.unwrap(), Some(2));
    assert_eq!(store.get("v/a").await.unwrap(), Some(Entry { version: 2, value: b"y".to_vec() }));
    assert_eq!(store.put("v/a", 2, None).await.unwrap(), Some(3));
    assert_eq!(store.get("v/a").await.unwrap(), None);
    // A value that comes again has no version that it had before.
    assert_eq!(store.put("v/a", 0, Some(b"z".to_vec())).await.unwrap(), Some(4));
    store.put("v/b", 0, Some(Vec::new())).await.unwrap();
    store.put("w", 0, Some(Vec::new())).await.unwrap();
    store.put("v", 0, Some(Vec::new())).await.unwrap();
    for (first, expected) in
        [("", &["v/a", "v/b"][..]), ("v/", &["v/a", "v/b"]), ("v/a1", &["v/b"]), ("w", &[])]
    {
        let keys = store.list("v/", first).await.unwrap().into_iter().map(|(key, _)| key);
        assert_eq!(keys.collect::<Vec<String>>(), expected);
    }
}

async fn messages(store: &dyn Store) {
    let mut received = store.messages().await.unwrap();
    let texts = ["", "one", &"\u{e4}\n".repeat(100_000), "last"];
    for text in texts {
        store.send(text).await.unwrap();
    }
    for text in texts {
        assert_eq!(&*received.recv().await.unwrap(), text);
    }
    let mut later = store.messages().await.unwrap();
    store.send("two").await.unwrap();
    assert_eq!(&*later.recv().await.unwrap(), "two");
}

async fn logs(store: &dyn Store) {
    let begun = store.begin("log", "me", LONG, vec![b"a".to_vec(), b"b".to_vec()]).await.unwrap();
    assert_eq!(store.begin("log", "you", LONG, vec![b"x".to_vec()]).await.unwrap(), None);
    let lease = begun.unwrap();
    store.append(&lease, 2, vec![b"c".to_vec()]).await.unwrap();
    // As after a connection that was lost before the answer came.
    store.append(&lease, 2, vec![b"c".to_vec()]).await.unwrap();
    assert_eq!(
        store.begin("log", "me", LONG, vec![b"a".to_vec(), b"b".to_vec()]).await.unwrap(),
        Some(lease.clone())
    );
    assert_eq!(store.read_from("log", 0).await.unwrap(), [b"a", b"b", b"c"]);
    assert_eq!(store.read_from("log", 2).await.unwrap(), [b"c"]);
    assert!(store.read_from("log", 3).await.unwrap().is_empty());
    // The lease of a log that is not there makes none.
    assert_eq!(store.lease("log2", "me", LONG).await.unwrap(), None);
    let other = store.begin("log2", "me", LONG, Vec::new()).await.unwrap().unwrap();
    let named = |name: &str| LogName { name: name.to_owned(), holder: Some("me".to_owned()) };
    assert_eq!(store.logs("log").await.unwrap(), [named("log"), named("log2")]);
    store.append(&other, 0, vec![vec![0; 2 << 20]]).await.unwrap();
    store.remove(&lease, None).await.unwrap();
    assert!(store.read_from("log", 0).await.unwrap().is_empty());
    assert_eq!(store.read_from("log2", 0).await.unwrap().len(), 1);
}

async fn fences(store: &dyn Store) {
    let mine = store.begin("run", "a", LONG, Vec::new()).await.unwrap().unwrap();
    assert_eq!(store.lease("run", "b", LONG).await.unwrap(), None);
    // The same holder renews its lease; one that is over is anybody's.
    assert_eq!(store.lease("run", "a", Duration::ZERO).await.unwrap().unwrap(), mine);
    // A begin that arrives late takes nothing from another holder.
    let theirs = store.lease("run", "b", LONG).await.unwrap().unwrap();
    assert_eq!(store.begin("run", "a", LONG, vec![b"late".to_vec()]).await.unwrap(), None);
    assert!(theirs.epoch > mine.epoch);
    assert_eq!(store.append(&mine, 0, vec![b"late".to_vec()]).await, Err(StoreError::LeaseLost));
    assert_eq!(store.remove(&mine, None).await, Err(StoreError::LeaseLost));
    store.append(&theirs, 0, vec![b"x".to_vec()]).await.unwrap();
    // A lease is renewed by its epoch: one that is lost stays lost.
    assert_eq!(store.renew(std::slice::from_ref(&mine), LONG).await.unwrap(), std::slice::from_ref(&mine));
    assert_eq!(store.lease("run", "b", Duration::ZERO).await.unwrap().unwrap(), theirs);
    assert_eq!(store.logs("run").await.unwrap(), [LogName { name: "run".to_owned(), holder: None }]);
    assert_eq!(store.renew(&[theirs, mine.clone()], LONG).await.unwrap(), [mine]);
    assert_eq!(store.lease("run", "a", LONG).await.unwrap(), None);
}

async fn notes(store: &dyn Store) {
    let note = |value: Option<&[u8]>| LogNote { key: "n/a".to_owned(), value: value.map(<[u8]>::to_vec) };
    let value = async || store.get("n/a").await.unwrap().map(|entry| entry.value);
    let mine = store.begin("noted", "a", Duration::ZERO, vec![b"a".to_vec()]).await.unwrap().unwrap();
    store.note(&mine, note(Some(b"1"))).await.unwrap();
    store.note(&mine, note(Some(b"2"))).await.unwrap();
    assert_eq!(value().await.as_deref(), Some(&b"2"[..]));
    // A holder that has lost its lease writes no note, with or without the end of the log.
    let theirs = store.lease("noted", "b", LONG).await.unwrap().unwrap();
    assert_eq!(store.note(&mine, note(Some(b"late"))).await, Err(StoreError::LeaseLost));
    assert_eq!(store.remove(&mine, Some(note(Some(b"late")))).await, Err(StoreError::LeaseLost));
    assert_eq!(value().await.as_deref(), Some(&b"2"[..]));
    store.note(&theirs, note(None)).await.unwrap();
    assert_eq!(value().await, None);
    store.remove(&theirs, Some(note(Some(b"end")))).await.unwrap();
    assert_eq!(value().await.as_deref(), Some(&b"end"[..]));
    assert!(store.read_from("noted", 0).await.unwrap().is_empty());
    assert_eq!(store.note(&theirs, note(Some(b"late"))).await, Err(StoreError::LeaseLost));
    assert_eq!(value().await.as_deref(), Some(&b"end"[..]));
    // It is a value like all others.
    let version = store.get("n/a").await.unwrap().unwrap().version;
    assert!(store.put("n/a", version, None).await.unwrap().is_some());
}

async fn locks(store: Arc<dyn Store>) {
    let first = store.lock("name").await.unwrap();
    let _other = store.lock("another").await.unwrap();
    let (second, taken) = (store.clone(), Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let seen = taken.clone();
    let waiting = async move {
        let _lock = second.lock("name").await.unwrap();
        seen.store(true, std::sync::atomic::Ordering::SeqCst);
    };
    let release = async move {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!taken.load(std::sync::atomic::Ordering::SeqCst));
        drop(first);
    };
    tokio::join!(waiting, release);
}

async fn changes(store: &dyn Store) {
    let mut changes = store.watch();
    changes.mark_unchanged();
    store.put("changed", 0, Some(Vec::new())).await.unwrap();
    assert!(changes.has_changed().unwrap());
    changes.changed().await.unwrap();
    let lease = store.begin("changed", "a", LONG, Vec::new()).await.unwrap().unwrap();
    store.append(&lease, 0, vec![Vec::new()]).await.unwrap();
    assert!(changes.has_changed().unwrap());
}

async fn survives(open: &impl Fn() -> Arc<dyn Store>) {
    let epoch = {
        let store = open();
        store.put("kept", 0, Some(b"x".to_vec())).await.unwrap();
        let lease = store.begin("kept", "a", LONG, Vec::new()).await.unwrap().unwrap();
        store.append(&lease, 0, vec![b"y".to_vec()]).await.unwrap();
        lease.epoch
    };
    let store = open();
    assert_eq!(store.get("kept").await.unwrap().unwrap().value, b"x");
    assert_eq!(store.read_from("kept", 0).await.unwrap(), [b"y"]);
    assert_eq!(store.lease("kept", "a", LONG).await.unwrap().unwrap().epoch, epoch);
}
