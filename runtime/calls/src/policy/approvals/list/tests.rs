use super::*;
use crate::journal::RunHolder;
use ptc_base::files::{self, FileAccess, LinkRule};
use ptc_base::store::EmbeddedStore;
use std::sync::Arc;
use tempfile::TempDir;

fn question(id: &str) -> WaitingQuestion {
    WaitingQuestion {
        id: id.to_owned(),
        call: "bank/pay".to_owned(),
        calls: 1,
        text: "May ptc?".to_owned(),
        digest: "d".to_owned(),
        asked: now(),
        until: now() + 600,
        offers_any: false,
        owner: None,
    }
}

/// A list of each kind, in a folder that is to be retained.
fn lists() -> (TempDir, [ApprovalList; 2]) {
    let home = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(&home.path().join("state")).unwrap());
    let nodes = DurableRuns::new(store, RunHolder::node(Duration::from_secs(30), Duration::ZERO));
    let lists = [ApprovalList::below(home.path()), ApprovalList::in_database(nodes)];
    (home, lists)
}

#[tokio::test]
async fn of_answers_at_the_same_time_one_counts() {
    let (_home, lists) = lists();
    for list in lists {
        for round in 0..20 {
            let asked = question(&format!("{round}"));
            let _held = list.list(&asked).await.unwrap();
            let answers = (0..8).map(|by| {
                let (list, asked) = (list.clone(), asked.clone());
                let choice =
                    if usize::is_multiple_of(by, 2) { ApprovalChoice::Approve } else { ApprovalChoice::Deny };
                async move { list.answer(&asked, choice, &by.to_string()).await.is_ok() }
            });
            let given: Vec<bool> = futures_util::future::join_all(answers).await;
            let winners: Vec<usize> = (0..8).filter(|by| given[*by]).collect();
            let answer = list.read_answer(&asked.id).await.unwrap();
            assert_eq!(winners, [answer.by.parse::<usize>().unwrap()]);
            assert_eq!(answer.approve, winners[0].is_multiple_of(2));
        }
    }
}

#[tokio::test]
async fn a_question_whose_time_is_over_is_removed_with_its_answer() {
    let (_home, lists) = lists();
    for list in lists {
        let (old, young) = (WaitingQuestion { until: 1, ..question("old") }, question("young"));
        let _held = [list.list(&old).await.unwrap(), list.list(&young).await.unwrap()];
        assert_eq!(list.waiting().await.unwrap(), [young]);
        assert_eq!(list.waiting().await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn an_answer_to_a_withdrawn_question_does_not_stay_for_ever() {
    let (_home, [_, list]) = lists();
    for (id, given) in [("old", 1), ("new", now())] {
        let (id, digest, by) = (id.to_owned(), "d".to_owned(), "me".to_owned());
        let answer = AnswerText { id, digest, approve: true, any: false, by, given };
        let Place::Database(database) = &list.0 else { panic!("it is in a database") };
        database.answer(&answer).await.unwrap();
    }
    list.waiting().await.unwrap();
    assert!(list.read_answer("old").await.is_none() && list.read_answer("new").await.is_some());
}

#[tokio::test]
async fn a_file_counts_for_the_id_in_its_name_alone() {
    let home = tempfile::tempdir().unwrap();
    let folder = ApprovalFolder::new(ApprovalList::folder_below(home.path()));
    let list = ApprovalList::below(home.path());
    let (one, other) = (question("one"), question("other"));
    let _held = list.list(&one).await.unwrap();
    list.answer(&one, ApprovalChoice::Approve, "me").await.unwrap();
    files::give_name(&folder.file("one", "answer"), &folder.file("other", "answer")).unwrap();
    assert!(list.read_answer("one").await.is_some() && list.read_answer("other").await.is_none());
    let text = serde_json::to_vec(&other).unwrap();
    let named = folder.file("elsewhere", "question");
    files::replace(&named, &text, LinkRule::Replace, FileAccess::Private).unwrap();
    assert_eq!(list.waiting().await.unwrap(), [one]);
}

/// The process may have no descriptor to spare just now. Then the question still waits.
#[tokio::test]
async fn a_question_that_cannot_be_read_for_a_moment_stays() {
    let (home, [list, _]) = lists();
    let _held = list.list(&question("a")).await.unwrap();
    // Nothing can read a link to itself.
    let path = home.path().join("approvals/b.question");
    std::os::unix::fs::symlink("b.question", &path).unwrap();
    let why = list.waiting().await.unwrap_err().to_string();
    assert!(why.contains("b.question") && std::fs::symlink_metadata(&path).is_ok(), "{why}");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(list.waiting().await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_answer_that_says_nothing_is_replaced() {
    let (home, [list, _]) = lists();
    let asked = question("a");
    let _held = list.list(&asked).await.unwrap();
    let path = home.path().join("approvals/a.answer");
    for damaged in ["", "garbage", "{\"id\": \"b\"}"] {
        files::replace(&path, damaged.as_bytes(), LinkRule::Replace, FileAccess::Private).unwrap();
        list.answer(&asked, ApprovalChoice::Approve, "me").await.unwrap();
        assert!(list.read_answer("a").await.is_some());
    }
    assert!(list.answer(&asked, ApprovalChoice::Deny, "me").await.is_err());
}

#[tokio::test]
async fn a_question_of_a_process_that_is_gone_does_not_wait() {
    let (home, [list, _]) = lists();
    let (kept, gone) = (question("kept"), question("gone"));
    let _held = list.list(&kept).await.unwrap();
    drop(list.list(&gone).await.unwrap());
    assert_eq!(list.waiting().await.unwrap(), [kept]);
    let left = std::fs::read_dir(home.path().join("approvals")).unwrap();
    assert_eq!(left.count(), 2, "the other question and its lock");
}
