//! Stores the questions by which people approve tool calls, and the answers, in a database that several ptc servers
//! share, so that any of them and `ptc approvals` can list and answer the questions.

use super::list::{AnswerText, WaitingQuestion, now};
use crate::journal::DurableRuns;
use ptc_base::store::StoreError;
use ptc_base::tasks::{self, TaskOwner};
use std::io;

/// Keys of questions begin so, before the id.
const QUESTION: &str = "approval/";

/// Keys of answers begin so, before the id.
const ANSWER: &str = "approval-answer/";

/// How long an answer stays that no question has used, in seconds.
const DAY: u64 = 24 * 3_600;

/// How often a removal is tried while the database is away. The pause before the next try grows by a second each time.
const REMOVALS: u32 = 5;

/// The questions in a database.
#[derive(Clone, Debug)]
pub(super) struct ApprovalDatabase(DurableRuns);

fn failed(error: StoreError) -> io::Error {
    io::Error::other(error.to_string())
}

impl ApprovalDatabase {
    pub(super) fn new(nodes: DurableRuns) -> ApprovalDatabase {
        ApprovalDatabase(nodes)
    }

    /// Questions that wait, in any order. Expired ones are removed.
    pub(super) async fn waiting(&self) -> io::Result<Vec<WaitingQuestion>> {
        let mut waiting = Vec::new();
        for (key, text) in self.0.notes(QUESTION).await.map_err(failed)? {
            let id = key.trim_start_matches(QUESTION);
            match serde_json::from_slice::<WaitingQuestion>(&text) {
                Ok(question) if question.id == id && question.until >= now() => waiting.push(question),
                Ok(_) | Err(_) => self.remove(id).await.map_err(failed)?,
            }
        }
        // Answers to questions that had been withdrawn.
        for (key, text) in self.0.notes(ANSWER).await.map_err(failed)? {
            let answer = serde_json::from_slice::<AnswerText>(&text);
            if answer.map_or(true, |answer| answer.given.saturating_add(DAY) < now()) {
                self.0.note(&key, None).await.map_err(failed)?;
            }
        }
        Ok(waiting)
    }

    /// Stores an answer.
    ///
    /// # Errors
    /// Another one is there; the database cannot be written.
    pub(super) async fn answer(&self, answer: &AnswerText) -> io::Result<()> {
        let key = format!("{ANSWER}{}", answer.id);
        match self.0.add_note(&key, serde_json::to_vec(answer)?).await.map_err(failed)? {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is answered already")),
        }
    }

    /// Lists a question.
    pub(super) async fn list(&self, question: &WaitingQuestion) -> io::Result<()> {
        let text = serde_json::to_vec(question)?;
        self.0.note(&format!("{QUESTION}{}", question.id), Some(text)).await.map_err(failed)
    }

    /// The answer to a question, if there is one. A database that does not answer has none yet.
    pub(super) async fn read_answer(&self, id: &str) -> Option<AnswerText> {
        let text = self.0.read_note(&format!("{ANSWER}{id}")).await.ok().flatten()?;
        serde_json::from_slice::<AnswerText>(&text).ok().filter(|answer| answer.id == id)
    }

    async fn remove(&self, id: &str) -> Result<(), StoreError> {
        // The answer last: without it another one could be given to a question that is still listed.
        self.0.note(&format!("{QUESTION}{id}"), None).await?;
        self.0.note(&format!("{ANSWER}{id}"), None).await
    }

    /// Removes a question and its answer, without waiting for it. What stays while the database is away is removed by those
    /// who list questions, once its time is over.
    pub(super) fn remove_soon(&self, id: &str) {
        let (database, id) = (self.clone(), id.to_owned());
        tasks::spawn(TaskOwner::Process, async move {
            for after in 1..=REMOVALS {
                if database.remove(&id).await.is_ok() {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_secs(after.into())).await;
            }
        });
    }
}
