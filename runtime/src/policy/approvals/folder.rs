//! Lists questions as files, which `ptc approvals` shows and answers.
//!
//! A question is `ID.question`, its answer `ID.answer`. The folder belongs to one user, and ids are unpredictable. An
//! answer repeats the digest of the arguments, so it cannot count for another question.

use super::question::{Question, text};
use super::{ApprovalAnswer, Said};
use crate::files::{self, FileAccess, LinkRule};
use crate::tasks::{self, TaskOwner};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often an answer is looked for.
const LOOK: Duration = Duration::from_millis(200);

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
    /// `server/tool`.
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
}

#[derive(Serialize, Deserialize)]
struct AnswerText {
    digest: String,
    approve: bool,
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
    /// Another answer is there, or the file cannot be written.
    pub fn answer(&self, question: &WaitingQuestion, approve: bool, by: &str) -> io::Result<()> {
        let answer = AnswerText { digest: question.digest.clone(), approve, by: by.to_owned(), given: now() };
        let path = self.file(&question.id, "answer");
        if path.exists() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is answered already"));
        }
        let text = serde_json::to_vec(&answer)?;
        files::replace(&path, &text, LinkRule::Replace, FileAccess::Private)
    }

    /// Lists a question until it is answered. Dropping the future removes it.
    pub(super) fn ask(
        self,
        questions: &[&Question],
        ttl: Duration,
        timeout: Duration,
    ) -> BoxFuture<'static, Said> {
        let Some(first) = questions.first() else {
            return Box::pin(async { Err(ApprovalAnswer::Unavailable("there is no question".into())) });
        };
        let digests: Vec<String> = questions.iter().map(|question| question.digest()).collect();
        let asked = now();
        let question = WaitingQuestion {
            id: first.id.to_string(),
            call: first.name(),
            calls: questions.len(),
            text: text(questions),
            digest: digests.join("+"),
            asked,
            until: asked.saturating_add(timeout.as_secs()),
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
            loop {
                tokio::time::sleep(LOOK).await;
                let (folder, id) = (self.clone(), question.id.clone());
                let read = tasks::blocking(TaskOwner::Run, move |_| folder.read_answer(&id)).await.flatten();
                let Some(answer) = read else { continue };
                let is_fresh = now().saturating_sub(answer.given) <= ttl.as_secs();
                drop(listed);
                let by: Arc<str> = answer.by.into();
                return match answer.approve && is_fresh && answer.digest == question.digest {
                    true => Ok(by),
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
        serde_json::from_str(&text).ok()
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
