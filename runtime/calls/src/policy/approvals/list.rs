//! Publishes questions about tool calls in a list that people answer with `ptc approvals` or a web page, in a folder
//! of the user or a shared database.
//!
//! Ids are unpredictable. An answer repeats the id and the digest of the arguments, so it cannot count for another question.
//! The first answer is the only one.

use super::database::ApprovalDatabase;
use super::folder::ApprovalFolder;
use super::form::{Approver, Form};
use super::{ApprovalAnswer, Said, name_of};
use crate::journal::DurableRuns;
use futures_util::future::BoxFuture;
use ptc_base::files::FileLock;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Pauses between looks for an answer: the first, and the longest. Each is a quarter longer than the one before.
const LOOKS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// A list of questions. Clones share it.
#[derive(Clone, Debug)]
pub struct ApprovalList(Place);

/// Where a list is.
#[derive(Clone, Debug)]
enum Place {
    Folder(ApprovalFolder),
    Database(ApprovalDatabase),
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

/// An answer as it is stored.
#[derive(Serialize, Deserialize)]
pub(super) struct AnswerText {
    pub(super) id: String,
    digest: String,
    pub(super) approve: bool,
    #[serde(default)]
    any: bool,
    pub(super) by: String,
    /// When it was given, in seconds since 1970.
    pub(super) given: u64,
}

impl AnswerText {
    /// Reads the stored answer to the question with this id; `None` for something else.
    pub(super) fn read(stored: &[u8], id: &str) -> Option<AnswerText> {
        serde_json::from_slice::<AnswerText>(stored).ok().filter(|answer| answer.id == id)
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl ApprovalList {
    /// The list below a state folder. It need not exist.
    pub fn below(state: &Path) -> ApprovalList {
        ApprovalList::in_folder(ApprovalList::folder_below(state))
    }

    /// The folder of the list below a state folder.
    pub fn folder_below(state: &Path) -> PathBuf {
        state.join("approvals")
    }

    /// The list in this folder. It need not exist.
    pub fn in_folder(folder: PathBuf) -> ApprovalList {
        ApprovalList(Place::Folder(ApprovalFolder::new(folder)))
    }

    /// The list of all nodes with this database.
    pub fn in_database(nodes: DurableRuns) -> ApprovalList {
        ApprovalList(Place::Database(ApprovalDatabase::new(nodes)))
    }

    /// Questions that wait, the oldest first. Those of processes that were killed are removed: in a folder at once, in a
    /// database once their time is over.
    ///
    /// # Errors
    /// The folder is open to other users, or cannot be read; the database does not answer.
    pub async fn waiting(&self) -> io::Result<Vec<WaitingQuestion>> {
        let mut waiting = match &self.0 {
            Place::Folder(folder) => folder.waiting().await?,
            Place::Database(database) => database.waiting().await?,
        };
        waiting.sort_by(|one, other| (one.asked, &one.id).cmp(&(other.asked, &other.id)));
        Ok(waiting)
    }

    /// Answers a question.
    ///
    /// # Errors
    /// Another answer is there, the question does not offer this one, or the answer cannot be stored.
    pub async fn answer(
        &self,
        question: &WaitingQuestion,
        choice: ApprovalChoice,
        by: &str,
    ) -> io::Result<()> {
        let any = choice == ApprovalChoice::ApproveAny;
        if any && !question.offers_any {
            let why = "the question shows all arguments: approve it as it is";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let WaitingQuestion { id, digest, .. } = question.clone();
        let approve = choice != ApprovalChoice::Deny;
        let answer = AnswerText { id, digest, approve, any, by: by.to_owned(), given: now() };
        match &self.0 {
            Place::Folder(folder) => folder.answer(answer).await,
            Place::Database(database) => database.answer(&answer).await,
        }
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
            let listed = Listed { list: self, id: question.id.clone() };
            // Held until the question no longer waits.
            let _asker = listed.list.list(&question).await.map_err(|error| {
                ApprovalAnswer::Unavailable(format!("the question cannot be listed: {error}").into())
            })?;
            let mut pause = LOOKS.0;
            loop {
                tokio::time::sleep(pause).await;
                pause = (pause * 5 / 4).min(LOOKS.1);
                let Some(answer) = listed.list.read_answer(&question.id).await else { continue };
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

    /// Lists a question: in a folder for as long as the lock is held, in a database until its time is over.
    async fn list(&self, question: &WaitingQuestion) -> io::Result<Option<FileLock>> {
        match &self.0 {
            Place::Folder(folder) => folder.list(question).await.map(Some),
            Place::Database(database) => database.list(question).await.map(|()| None),
        }
    }

    async fn read_answer(&self, id: &str) -> Option<AnswerText> {
        match &self.0 {
            Place::Folder(folder) => folder.read_answer(id).await,
            Place::Database(database) => database.read_answer(id).await,
        }
    }
}

/// Removes a question and its answer when it no longer waits.
struct Listed {
    list: ApprovalList,
    id: String,
}

impl Drop for Listed {
    fn drop(&mut self) {
        match &self.list.0 {
            Place::Folder(folder) => folder.remove(&self.id),
            Place::Database(database) => database.remove_soon(&self.id),
        }
    }
}

#[cfg(test)]
mod tests;
