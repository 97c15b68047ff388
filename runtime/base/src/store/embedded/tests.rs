//! Tests the store in a file: full disks, damaged files, processes that die while they make one.

#![allow(clippy::disallowed_methods, reason = "tests damage files as they need it")]

use super::*;
use crate::files;
use std::sync::atomic::{AtomicBool, Ordering};

#[tokio::test]
async fn it_passes_the_suite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let open = || Arc::new(EmbeddedStore::open(&path).unwrap()) as Arc<dyn Store>;
    super::super::suite::all(open).await;
}

/// A file on a disk that can be full.
#[derive(Debug)]
struct FullDisk {
    file: redb::backends::FileBackend,
    is_full: Arc<AtomicBool>,
}

impl redb::StorageBackend for FullDisk {
    fn len(&self) -> Result<u64, std::io::Error> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), std::io::Error> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<(), std::io::Error> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> Result<(), std::io::Error> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), std::io::Error> {
        match self.is_full.load(Ordering::Relaxed) {
            true => Err(std::io::Error::from(std::io::ErrorKind::StorageFull)),
            false => self.file.write(offset, data),
        }
    }
}

#[tokio::test]
async fn it_goes_on_when_a_full_disk_has_room_again() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let is_full = Arc::<AtomicBool>::default();
    let full = is_full.clone();
    let open = move || {
        let file = redb::backends::FileBackend::new(file.reopen().unwrap()).map_err(unavailable)?;
        let disk = FullDisk { file, is_full: full.clone() };
        Database::builder().create_with_backend(disk).map_err(unavailable)
    };
    let store = EmbeddedStore::opened_by("runs.redb".into(), Box::new(open)).unwrap();
    let long = Duration::from_secs(60);
    let lease = store.begin("log", "me", long, vec![b"a".to_vec()]).await.unwrap().unwrap();
    is_full.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        let refused = store.append(&lease, 1, vec![vec![b'x'; 100_000]]).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    }
    is_full.store(false, Ordering::Relaxed);
    assert_eq!(store.append(&lease, 1, vec![b"b".to_vec()]).await, Ok(()));
    assert_eq!(store.read_from("log", 0).await.unwrap(), [b"a", b"b"]);
}

#[tokio::test]
async fn one_process_has_it_and_only_its_user_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let _first = EmbeddedStore::open(&path).unwrap();
    assert!(matches!(EmbeddedStore::open(&path), Err(StoreError::Taken(_))));
    for (path, mode) in [(path.clone(), 0o700), (path.join("runs.redb"), 0o600)] {
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, mode);
    }
}

const LONG: Duration = Duration::from_secs(60);

/// A folder with a store that was closed, and the records of its log.
async fn closed() -> (tempfile::TempDir, PathBuf, Vec<Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let store = EmbeddedStore::open(&path).unwrap();
    let records: Vec<_> = (0..200_u32).map(|n| format!("the record {n} is here").into_bytes()).collect();
    store.begin("log", "me", LONG, records.clone()).await.unwrap().unwrap();
    store.put("key", 0, Some(b"value".to_vec())).await.unwrap();
    drop(store);
    (folder, path, records)
}

/// What the store of a folder says: its records, or why it cannot be used.
async fn read(path: &Path) -> Result<Vec<Vec<u8>>, String> {
    let store = EmbeddedStore::open(path).map_err(|error| error.to_string())?;
    store.read_from("log", 0).await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_changed_byte_never_changes_what_is_read() {
    let (_folder, path, records) = closed().await;
    let file = path.join("runs.redb");
    let whole = std::fs::read(&file).unwrap();
    let text = b"the record 100 is here";
    let record = whole.windows(text.len()).position(|bytes| bytes == text).unwrap();
    // The header and the pages in use; most of the file is free.
    let places = (0..320).step_by(16).chain((0..whole.len()).filter(|at| whole[*at] != 0).step_by(1_009));
    let mut refused = 0;
    for at in places.chain([record + 11]) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x01;
        std::fs::write(&file, bytes).unwrap();
        match read(&path).await {
            Ok(found) => assert_eq!(found, records, "byte {at}"),
            Err(why) => {
                assert!(why.contains(&*file.to_string_lossy()), "byte {at}: {why}");
                assert!(at != record + 11 || why.contains("put a copy of the file in its place"), "{why}");
                refused += 1;
            }
        }
        assert!(at != record + 11 || read(&path).await.is_err(), "a record that was changed was read");
    }
    assert!(refused > 2, "{refused}");
}

#[tokio::test]
async fn a_file_that_was_cut_is_named_and_says_what_to_do() {
    let (_folder, path, _) = closed().await;
    let file = path.join("runs.redb");
    let whole = std::fs::read(&file).unwrap();
    for left in [0, 100, 5_000, whole.len() / 2] {
        std::fs::write(&file, &whole[..left]).unwrap();
        let why = read(&path).await.unwrap_err();
        let expected = format!("the state in {} cannot be used: it is damaged", file.display());
        assert!(why.starts_with(&expected) && why.contains("move it away"), "{left}: {why}");
    }
}

/// A process that dies while it makes a store, and one that finds no room, leave a file of another name.
#[tokio::test]
async fn a_store_that_was_not_finished_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    files::private_folder(&path).unwrap();
    std::fs::write(path.join("runs.new"), vec![0; 73_728]).unwrap();
    assert_eq!(read(&path).await, Ok(Vec::new()));
    assert!(!path.join("runs.new").exists());
}

#[tokio::test]
async fn damage_that_is_met_while_it_is_open_is_a_reason_and_ends_nothing() {
    let (_folder, path, records) = closed().await;
    let store = EmbeddedStore::open(&path).unwrap();
    let met = store.on_thread(|_| -> Result<(), StoreError> { panic!("entered unreachable code") }).await;
    let Err(StoreError::Unavailable(why)) = met else { panic!("{met:?}") };
    assert!(why.contains("runs.redb cannot be used: it is damaged"), "{why}");
    assert_eq!(store.read_from("log", 0).await, Ok(records));
}

#[tokio::test]
async fn a_late_failure_does_not_close_what_was_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(&folder.path().join("state")).unwrap();
    let times = || store.database.current.read_locked().times;
    let first = times();
    store.database.close(first);
    assert_eq!(store.get("key").await, Ok(None));
    store.database.close(first);
    assert!(store.database.current.read_locked().database.is_some());
    assert_eq!((first, times()), (1, 2));
}
