//! Stores the questions by which a person approves tool calls, and the answers, as files that the processes of one
//! user share.
//!
//! A question is `ID.question`, its answer `ID.answer`. The folder belongs to one user. Both files repeat the id. The
//! process that asks holds the lock of `ID.asker`: a question whose lock is free has lost its process, and is removed.

use super::list::{AnswerText, WaitingQuestion, now};
use ptc_base::files::{self, FileAccess, FileLock, LinkRule};
use ptc_base::tasks::{self, TaskOwner};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The ending of the file that the asking process has locked.
const ASKER: &str = "asker";

/// The folder of questions.
#[derive(Clone, Debug)]
pub(super) struct ApprovalFolder {
    folder: PathBuf,
}

impl ApprovalFolder {
    /// This folder. It need not exist.
    pub(super) fn new(folder: PathBuf) -> ApprovalFolder {
        ApprovalFolder { folder }
    }

    pub(super) fn file(&self, id: &str, kind: &str) -> PathBuf {
        self.folder.join(format!("{id}.{kind}"))
    }

    /// Questions that wait, in any order. Expired ones are removed.
    pub(super) async fn waiting(&self) -> io::Result<Vec<WaitingQuestion>> {
        self.blocking(TaskOwner::Process, ApprovalFolder::read_waiting).await
    }

    fn read_waiting(&self) -> io::Result<Vec<WaitingQuestion>> {
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
            let text = match files::read_text(&path) {
                Ok(text) => text,
                // It was answered or has expired a moment ago, or is a folder.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory) =>
                {
                    continue;
                }
                // It is none of ours.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) =>
                {
                    remove(&path);
                    continue;
                }
                // One of another user must not hide the others.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    tracing::warn!(%error, path = %path.display(), "a waiting question cannot be read");
                    continue;
                }
                // It can be read at another time, such as when files can be opened again.
                Err(error) => {
                    return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display())));
                }
            };
            match serde_json::from_str::<WaitingQuestion>(&text).ok() {
                Some(question) if path.file_stem().is_none_or(|id| id != &*question.id) => remove(&path),
                Some(question) if self.is_abandoned(&question.id) => self.remove(&question.id),
                Some(question) if question.until >= now() => waiting.push(question),
                Some(_) | None => remove(&path),
            }
        }
        Ok(waiting)
    }

    /// Whether the process that has asked is gone. One that cannot be found out about counts as alive.
    fn is_abandoned(&self, id: &str) -> bool {
        files::open_own(&self.file(id, ASKER)).is_ok_and(|asker| asker.try_lock().is_ok())
    }

    /// Stores an answer.
    ///
    /// # Errors
    /// Another one is there; the file cannot be written.
    pub(super) async fn answer(&self, answer: AnswerText) -> io::Result<()> {
        self.blocking(TaskOwner::Process, move |folder| folder.write_answer(&answer)).await
    }

    fn write_answer(&self, answer: &AnswerText) -> io::Result<()> {
        let (path, new) = (self.file(&answer.id, "answer"), format!(".{:016x}.new", files::random()));
        let new = self.folder.join(new);
        files::replace(&new, &serde_json::to_vec(answer)?, LinkRule::Replace, FileAccess::Private)?;
        // Of answers at the same time one gets the name. One that says nothing is no answer.
        if files::read(&path).is_ok_and(|there| AnswerText::read(&there, &answer.id).is_none()) {
            remove(&path);
        }
        let named = files::give_name(&new, &path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => io::Error::new(error.kind(), "it is answered already"),
            _ => error,
        });
        remove(&new);
        named
    }

    /// Lists a question, for as long as the lock is held.
    pub(super) async fn list(&self, question: &WaitingQuestion) -> io::Result<FileLock> {
        let (path, text) = (self.file(&question.id, "question"), serde_json::to_vec(question)?);
        let asker = self.file(&question.id, ASKER);
        let write = move |folder: &ApprovalFolder| {
            files::private_folder(&folder.folder)?;
            // Before the question: no reader sees one that seems to have lost its process.
            let lock = FileLock::wait(&asker, Duration::ZERO)?;
            files::replace(&path, &text, LinkRule::Replace, FileAccess::Private)
                .inspect_err(|_| remove(&asker))?;
            Ok(lock)
        };
        self.blocking(TaskOwner::Run, write).await
    }

    /// The answer to a question, if there is one.
    pub(super) async fn read_answer(&self, id: &str) -> Option<AnswerText> {
        let (path, id) = (self.file(id, "answer"), id.to_owned());
        let read = self.blocking(TaskOwner::Run, move |_| files::read(&path)).await;
        AnswerText::read(&read.ok()?, &id)
    }

    /// Removes a question and its answer.
    pub(super) fn remove(&self, id: &str) {
        for kind in ["question", "answer", ASKER] {
            remove(&self.file(id, kind));
        }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        owner: TaskOwner,
        work: impl FnOnce(&ApprovalFolder) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let folder = self.clone();
        let done = tasks::blocking(owner, move |_| work(&folder)).await;
        done.unwrap_or_else(|| Err(io::Error::other("the process ends")))
    }
}

fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}
