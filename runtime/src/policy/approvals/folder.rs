//! Lists questions as files, which `ptc approvals` shows and answers.
//!
//! A question is `ID.question`, its answer `ID.answer`. The folder belongs to one user, and ids are unpredictable. Both
//! files repeat the id, and an answer repeats the digest of the arguments, so it cannot count for another question. The
//! first answer is the only one.

use super::form::{Approver, Form};
use super::{ApprovalAnswer, Said, name_of};
use crate::files::{self, FileAccess, LinkRule};
use crate::tasks::{self, TaskOwner};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Pauses between looks for an answer: the first, and the longest. Each is a quarter longer than the one before.
const LOOKS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// The folder of questions.
#[derive(Clone, Debug)]
pub struct ApprovalFolder {
    folder: PathBuf,
}

/// A question that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingQuestion {
    /// Its id.
    pub id: String,
    /// `server/tool`, or `program`.
    pub call: String,
    /// How many calls it is about.
    pub calls: usize,
    /// The whole text.
    pub text: String,
    /// What the answer has to repeat.
    pub digest: String,
    /// When it was asked, in seconds since 1970.
    pub asked: u64,
    /// When it no longer waits, in seconds since 1970.
    pub until: u64,
    /// An answer may also approve calls with arguments that the text does not show.
    #[serde(default)]
    pub offers_any: bool,
    /// The owner of the run, where clients have owners.
    #[serde(default)]
    pub owner: Option<u64>,
}

/// An answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalChoice {
    /// The calls that the text shows are approved.
    Approve,
    /// So are calls of the tools that it shows with computed arguments.
    ApproveAny,
    /// It is denied.
    Deny,
}

#[derive(Serialize, Deserialize)]
struct AnswerText {
    id: String,
    digest: String,
    approve: bool,
    #[serde(default)]
    any: bool,
    by: String,
    /// When it was given, in seconds since 1970.
    given: u64,
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl ApprovalFolder {
    /// The folder below a state folder.
    pub fn below(state: &Path) -> PathBuf {
        state.join("approvals")
    }

    /// This folder. It need not exist.
    pub fn new(folder: PathBuf) -> ApprovalFolder {
        ApprovalFolder { folder }
    }

    fn file(&self, id: &str, kind: &str) -> PathBuf {
        self.folder.join(format!("{id}.{kind}"))
    }

    /// Questions that wait, the oldest first. Those of processes that were killed are removed once their time is over.
    ///
    /// # Errors
    /// The folder is open to other users, or cannot be read.
    pub fn waiting(&self) -> io::Result<Vec<WaitingQuestion>> {
        if !self.folder.is_dir() {
            return Ok(Vec::new());
        }
        files::private_folder(&self.folder)?;
        let mut waiting = Vec::new();
        for entry in self.folder.read_dir()? {
            let path = entry?.path();
            if path.extension().and_then(|kind| kind.to_str()) != Some("question") {
                continue;
            }
            let text = files::read_text(&path).ok();
            match text.and_then(|text| serde_json::from_str::<WaitingQuestion>(&text).ok()) {
                Some(question) if path.file_stem().is_none_or(|id| id != &*question.id) => remove(&path),
                Some(question) if question.until >= now() => waiting.push(question),
                Some(_) | None => remove(&path),
            }
        }
        waiting.sort_by(|one, other| (one.asked, &one.id).cmp(&(other.asked, &other.id)));
        Ok(waiting)
    }

    /// Answers a question.
    ///
    /// # Errors
    /// Another answer is there, the question does not offer this one, or the file cannot be written.
    pub fn answer(&self, question: &WaitingQuestion, choice: ApprovalChoice, by: &str) -> io::Result<()> {
        let any = choice == ApprovalChoice::ApproveAny;
        if any && !question.offers_any {
            let why = "the question shows all arguments: approve it as it is";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let WaitingQuestion { id, digest, .. } = question.clone();
        let approve = choice != ApprovalChoice::Deny;
        let answer = AnswerText { id, digest, approve, any, by: by.to_owned(), given: now() };
        let (path, new) = (self.file(&question.id, "answer"), format!(".{:016x}.new", files::random()));
        let new = self.folder.join(new);
        files::replace(&new, &serde_json::to_vec(&answer)?, LinkRule::Replace, FileAccess::Private)?;
        // Of answers at the same time one gets the name.
        let named = files::give_name(&new, &path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => io::Error::new(error.kind(), "it is answered already"),
            _ => error,
        });
        remove(&new);
        named
    }

    /// Lists a question until it is answered. Dropping the future removes it.
    pub(super) fn ask(
        self,
        form: &Form,
        owner: Option<u64>,
        ttl: Duration,
        timeout: Duration,
    ) -> BoxFuture<'static, Said> {
        let asked = now();
        let question = WaitingQuestion {
            id: form.id.to_string(),
            call: form.subject.clone(),
            calls: form.calls.len(),
            text: form.text.clone(),
            digest: form.digest.clone(),
            asked,
            until: asked.saturating_add(timeout.as_secs()),
            offers_any: form.offers_any,
            owner,
        };
        Box::pin(async move {
            let listed = Listed { folder: self.clone(), id: question.id.clone() };
            let (folder, written) = (self.clone(), question.clone());
            let made = tasks::blocking(TaskOwner::Run, move |_| folder.list(&written)).await;
            if let Some(Err(error)) = made {
                return Err(ApprovalAnswer::Unavailable(
                    format!("the question cannot be listed: {error}").into(),
                ));
            }
            let mut pause = LOOKS.0;
            loop {
                tokio::time::sleep(pause).await;
                pause = (pause * 5 / 4).min(LOOKS.1);
                let (folder, id) = (self.clone(), question.id.clone());
                let read = tasks::blocking(TaskOwner::Run, move |_| folder.read_answer(&id)).await.flatten();
                let Some(answer) = read else { continue };
                let is_fresh = now().saturating_sub(answer.given) <= ttl.as_secs();
                drop(listed);
                let by = name_of(&answer.by);
                return match answer.approve && is_fresh && answer.digest == question.digest {
                    true => Ok(Approver { by, is_any: answer.any && question.offers_any }),
                    false => Err(ApprovalAnswer::Denied(by)),
                };
            }
        })
    }

    fn list(&self, question: &WaitingQuestion) -> io::Result<()> {
        files::private_folder(&self.folder)?;
        let text = serde_json::to_vec(question)?;
        files::replace(&self.file(&question.id, "question"), &text, LinkRule::Replace, FileAccess::Private)
    }

    fn read_answer(&self, id: &str) -> Option<AnswerText> {
        let text = files::read_text(&self.file(id, "answer")).ok()?;
        serde_json::from_str::<AnswerText>(&text).ok().filter(|answer| answer.id == id)
    }
}

fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}

/// Removes a question and its answer when it no longer waits.
struct Listed {
    folder: ApprovalFolder,
    id: String,
}

impl Drop for Listed {
    fn drop(&mut self) {
        for kind in ["question", "answer"] {
            remove(&self.folder.file(&self.id, kind));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn of_answers_at_the_same_time_one_counts() {
        let home = tempfile::tempdir().unwrap();
        let folder = ApprovalFolder::new(home.path().join("approvals"));
        for round in 0..20 {
            let asked = question(&format!("{round}"));
            folder.list(&asked).unwrap();
            let given: Vec<bool> = std::thread::scope(|scope| {
                let answers = (0..8).map(|by| {
                    let (folder, asked) = (&folder, &asked);
                    let choice = if usize::is_multiple_of(by, 2) {
                        ApprovalChoice::Approve
                    } else {
                        ApprovalChoice::Deny
                    };
                    scope.spawn(move || folder.answer(asked, choice, &by.to_string()).is_ok())
                });
                let answers: Vec<_> = answers.collect();
                answers.into_iter().map(|answer| answer.join().unwrap()).collect()
            });
            let winners: Vec<usize> = (0..8).filter(|by| given[*by]).collect();
            let answer = folder.read_answer(&asked.id).unwrap();
            assert_eq!(winners, [answer.by.parse::<usize>().unwrap()]);
            assert_eq!(answer.approve, winners[0].is_multiple_of(2));
        }
    }

    #[test]
    fn a_file_counts_for_the_id_in_its_name_alone() {
        let home = tempfile::tempdir().unwrap();
        let folder = ApprovalFolder::new(home.path().join("approvals"));
        let (one, other) = (question("one"), question("other"));
        folder.list(&one).unwrap();
        folder.answer(&one, ApprovalChoice::Approve, "me").unwrap();
        files::give_name(&folder.file("one", "answer"), &folder.file("other", "answer")).unwrap();
        assert!(folder.read_answer("one").is_some() && folder.read_answer("other").is_none());
        let text = serde_json::to_vec(&other).unwrap();
        let named = folder.file("elsewhere", "question");
        files::replace(&named, &text, LinkRule::Replace, FileAccess::Private).unwrap();
        assert_eq!(folder.waiting().unwrap(), [one]);
    }
}
