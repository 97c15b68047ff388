use super::super::super::condition::Arguments;
use super::super::super::pattern::RulePattern;
use super::super::{CountedSession, Limit, LimitText, LimitUse, Per};
use super::*;
use crate::journal::RunHolder;
use crate::run::client::asker::CallAsker;
use ptc_base::store::{EmbeddedStore, Store};

fn limit(text: &str) -> Limit {
    LimitText::parse(text).unwrap().into_limit(vec![(RulePattern::new("*"), (1, 1))], Per::All, "p:1".into())
}

fn used(limit: &Limit, arguments: &str) -> LimitUse {
    used_by(limit, arguments, &CountedSession::Local(String::new()))
}

fn used_by(limit: &Limit, arguments: &str, session: &CountedSession) -> LimitUse {
    LimitUse::new(limit, &Arguments::new(arguments), &CallAsker::default(), session).unwrap()
}

impl Book {
    fn take(&mut self, used: &LimitUse, now: u64) -> bool {
        let is_free = check(self, &[used], now).is_ok();
        if is_free {
            self.add(&[used], now);
        }
        is_free
    }
}

#[test]
fn windows_slide_and_amounts_add_up() {
    let (calls, sum) = (limit("calls <= 2 per minute"), limit("sum(\"/amount\") <= 0.3 per day"));
    let mut book = Book::default();
    let mut take =
        |limit: &Limit, arguments: &str, now: u64| book.take(&used(limit, arguments), 1_000_000 + now);
    assert!(take(&calls, "{}", 0) && take(&calls, "{}", 30_000) && !take(&calls, "{}", 59_999));
    assert!(take(&calls, "{}", 60_000) && !take(&calls, "{}", 60_001));
    let mut book = Book::default();
    let mut take = |arguments: &str, now: u64| book.take(&used(&sum, arguments), now);
    assert!(
        take("{\"amount\": 0.1}", 1) && take("{\"amount\": 0.2}", 1) && !take("{\"amount\": 0.000001}", 2)
    );
    // A negative amount gives nothing back, and a second one counts too.
    let mut book = Book::default();
    let mut take = |arguments: &str| book.take(&used(&sum, arguments), 1);
    assert!(
        !take("{\"amount\": -1}") && !take("{\"amount\": 0.1, \"amount\": 0.3}") && take("{\"amount\": 0.3}")
    );
}

#[test]
fn what_is_stored_stays_small_and_expires() {
    let calls = limit("calls <= 1000000 per day");
    let (day, mut book) = (86_400_000, Book::default());
    for call in 0..20_000 {
        assert!(book.take(&used(&calls, "{}"), 2 * day + call * (day / 20_000)));
    }
    let uses = book.0.values().next().unwrap();
    assert!(uses.uses.len() <= 1_001 && uses.sum() == 20_000, "{}", uses.uses.len());
    // A use counts for at least its window.
    book.expire(3 * day - 1);
    assert_eq!(book.0.values().next().unwrap().sum(), 20_000);
    book.expire(4 * day);
    assert!(book.0.is_empty());
}

#[test]
fn the_clock_is_read_under_the_lock() {
    let calls = limit("calls <= 1 per day");
    let book = LimitBook::new(None, None);
    let clock = || {
        assert!(book.memory.try_lock().is_err());
        1
    };
    assert_eq!(book.take_in_memory(&[&used(&calls, "{}")], clock), Ok(()));
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("limits");
    let book = LimitBook::new(None, Some(state.clone()));
    let clock = || {
        let other = files::open_to_lock(&state.join(LOCK)).unwrap();
        assert!(other.try_lock().is_err());
        1
    };
    assert_eq!(book.take_at_folder(&state, &[used(&calls, "{}")], PATIENCE, clock), Ok(()));
}

#[tokio::test]
async fn a_lock_that_is_never_released_refuses_calls_and_takes_one_thread() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("limits");
    files::private_folder(&state).unwrap();
    let held = files::open_to_lock(&state.join(LOCK)).unwrap();
    held.lock().unwrap();
    let (calls, book) = (limit("calls <= 100 per day"), LimitBook::new(None, Some(state.clone())));
    let short = Duration::from_millis(1);
    let refused = book.take_at_folder(&state, &[used(&calls, "{}")], short, || 1).unwrap_err();
    assert!(matches!(&refused, LimitRefusal::Unknown(why) if why.contains("limits.lock")), "{refused:?}");
    let alive = tasks::alive(TaskOwner::Run);
    let takes: Vec<_> = (0..50).map(|_| book.take(vec![used(&calls, "{}")])).collect();
    let mut takes = Box::pin(futures_util::future::join_all(takes));
    assert!(futures_util::poll!(&mut takes).is_pending());
    assert!(tasks::alive(TaskOwner::Run) <= alive + 1);
    // A limit of a session needs no lock.
    let own = LimitUse { is_local: true, ..used(&calls, "{}") };
    assert_eq!(book.take(vec![own]).await, Ok(()));
    drop(held);
    assert_eq!(takes.await, vec![Ok(()); 50]);
}

#[test]
fn a_shared_file_counts_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("limits");
    let calls = limit("calls <= 50 per day");
    let taken: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                // Each has a book of its own, as each process has.
                let (book, calls, state) = (LimitBook::new(None, Some(state.clone())), &calls, &state);
                scope.spawn(move || {
                    let uses = [used(calls, "{}")];
                    let take = |_: &usize| book.take_at_folder(state, &uses, PATIENCE, milliseconds).is_ok();
                    (0..25).filter(take).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(taken, 50);
}

#[tokio::test]
async fn nodes_with_one_store_count_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(&folder.path().join("state")).unwrap());
    let (calls, own) = (limit("calls <= 50 per day"), limit("calls <= 10 per minute"));
    let nodes = (0..4).map(|_| {
        let runs = DurableRuns::new(store.clone(), RunHolder::node(Duration::from_secs(30), Duration::ZERO));
        let (book, calls, own) = (LimitBook::new(Some(runs), None), used(&calls, "{}"), used(&own, "{}"));
        async move {
            let mut taken = (0, 0);
            for _ in 0..25 {
                taken.0 += usize::from(book.take(vec![calls.clone()]).await.is_ok());
                // A limit of a session is of one process.
                let own = LimitUse { is_local: true, ..own.clone() };
                taken.1 += usize::from(book.take(vec![own]).await.is_ok());
            }
            taken
        }
    });
    let taken: Vec<(usize, usize)> = futures_util::future::join_all(nodes).await;
    assert_eq!(taken.iter().map(|(shared, _)| shared).sum::<usize>(), 50);
    assert!(taken.iter().all(|(_, own)| *own == 10), "{taken:?}");
}

#[tokio::test]
async fn a_damaged_file_is_named_and_never_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("limits");
    let calls = limit("calls <= 2 per day");
    let book = LimitBook::new(None, Some(state.clone()));
    book.take(vec![used(&calls, "{}")]).await.unwrap();
    let file = state.join(FILE);
    let well = files::read_text(&file).unwrap();
    let write = |text: &str| files::replace(&file, text.as_bytes(), LinkRule::Replace, FileAccess::Private);
    let negative = well.replace(",1]", ",-9]");
    let endless = well.replace("\"window\":86400000", "\"window\":0");
    assert!(negative != well && endless != well, "{well}");
    for text in ["", &well[..well.len() / 2], "\u{feff}{}", "[]", &negative, &endless] {
        write(text).unwrap();
        let Err(LimitRefusal::Unknown(why)) = book.take(vec![used(&calls, "{}")]).await else {
            panic!("{text}")
        };
        assert!(
            why.contains(&*file.to_string_lossy()) && why.contains("remove it to count from zero"),
            "{why}"
        );
    }
    write(&well).unwrap();
    assert_eq!(book.take(vec![used(&calls, "{}")]).await, Ok(()));
}
