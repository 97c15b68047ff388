//! Asks a person to approve the tool calls for which a policy requires it, and remembers the answer for later calls as
//! far as the policy allows.
//!
//! An answer is bound to one call: run, server, tool, digest of the arguments, digest of the tool's text, version of the
//! policy. It is used once. Questions of one run that are alike (same tool, same rule) and come together are one question,
//! whose text has the arguments of all of them.
//!
//! # Layout
//! - this file: groups of questions, and who answers them; `question`: what is asked, and what the answer is bound to;
//!   `form`: a question as it is put
//! - `review`: the question about a whole program, before its first call
//! - `remembered`: answers that count for further calls
//! - `client`: the form of a client; `webhook`: another service
//! - `list`: the questions for `ptc approvals` and the page, in a `folder` or in the `database` of the nodes

mod client;
mod database;
mod folder;
mod form;
mod list;
mod question;
mod remembered;
mod review;
mod webhook;

pub use list::{ApprovalChoice, ApprovalList, WaitingQuestion};
pub(in crate::policy) use question::{AskRule, Remember};
pub(crate) use question::{AskedCall, Binding, Question};
pub(in crate::policy) use review::{PlannedRow, ProgramReview};
pub use webhook::ApprovalWebhook;

use crate::run::account::RunAccount;
use crate::run::client::ServedClient;
use crate::tools::visible::visible_line;
use form::{Approver, Form};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use ptc_base::sync::Locked;
use question::QuestionKind;
use remembered::RememberedAnswers;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a question waits for the next one that is alike: parallel branches ask at the same time.
const GATHERED: Duration = Duration::from_millis(50);

/// Most calls in one question, so that a person sees all of them.
const MOST_IN_GROUP: usize = 50;

/// Who answers questions, and for how long they wait.
#[derive(Clone)]
pub struct ApprovalSettings {
    /// Where questions are listed for `ptc approvals`. `None`: they are not. Nodes that share a database list them there
    /// instead.
    pub list: Option<ApprovalList>,
    /// A service that answers.
    pub webhook: Option<ApprovalWebhook>,
    /// How long an answer counts that was not used.
    pub ttl: Duration,
    /// How long a question waits for its answer.
    pub timeout: Duration,
}

impl Default for ApprovalSettings {
    fn default() -> ApprovalSettings {
        let ten_minutes = Duration::from_secs(600);
        ApprovalSettings { list: None, webhook: None, ttl: ten_minutes, timeout: ten_minutes }
    }
}

/// What was said to a question: an approval, or none.
type Said = Result<Approver, ApprovalAnswer>;

/// Length limit of the name of a person, in characters.
const NAME: usize = 100;

/// The name of a person, as an answer gives it: on one line, without characters that a terminal obeys.
fn name_of(by: &str) -> Arc<str> {
    visible_line(by).chars().take(NAME).collect::<String>().into()
}

/// Why a call is not approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// A person said no; who.
    Denied(Arc<str>),
    /// There is none to ask; why.
    Unavailable(Arc<str>),
}

/// The answer to one call, to be used once.
#[derive(Debug)]
pub struct Approval {
    pub(super) binding: Binding,
    pub(super) by: Arc<str>,
}

/// The questions of a runtime.
pub(crate) struct Approvals {
    settings: ApprovalSettings,
    groups: Mutex<Vec<Group>>,
    pub(super) remembered: RememberedAnswers,
    waiting: AtomicU64,
}

/// Questions that are alike, before they are asked.
struct Group {
    run: Weak<RunAccount>,
    subject: QuestionKind,
    members: Vec<(Question, oneshot::Sender<Said>)>,
}

/// Counts a question while it waits.
struct Counted<'a>(&'a AtomicU64);

impl<'a> Counted<'a> {
    fn new(waiting: &'a AtomicU64) -> Counted<'a> {
        waiting.fetch_add(1, Ordering::Relaxed);
        Counted(waiting)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Approvals {
    pub(crate) fn new(settings: ApprovalSettings) -> Approvals {
        let (groups, remembered) = (Mutex::default(), RememberedAnswers::default());
        Approvals { settings, groups, remembered, waiting: AtomicU64::new(0) }
    }

    /// Calls that wait for a person.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// True if there is a person to ask.
    pub(super) fn can_ask(&self, has_client: bool) -> bool {
        has_client || self.settings.list.is_some() || self.settings.webhook.is_some()
    }

    /// Asks about a call. Dropping the future withdraws the question.
    ///
    /// # Errors
    /// The answer, if it is no approval.
    pub(crate) async fn ask(
        &self,
        run: &Arc<RunAccount>,
        question: Question,
        client: Option<Arc<dyn ServedClient>>,
    ) -> Result<Approval, ApprovalAnswer> {
        if !self.can_ask(client.is_some()) {
            return Err(ApprovalAnswer::Unavailable(
                "no client can be asked, and neither --approvals wait nor --approval-webhook is given".into(),
            ));
        }
        let _counted = Counted::new(&self.waiting);
        let (binding, asks) = (question.binding.clone(), question.asks);
        let answer = loop {
            match self.join(run, &question) {
                Joined::Leader(answer) => {
                    let _leading = Leading { approvals: self, leader: question.id.clone() };
                    let mut gathered = 0;
                    // Ends, because a group is bounded.
                    while self.members(&question.id) > gathered {
                        gathered = self.members(&question.id);
                        tokio::time::sleep(GATHERED).await;
                    }
                    let members = self.close(&question.id);
                    let questions: Vec<&Question> = members.iter().map(|(question, _)| question).collect();
                    // The group of a leader has at least its own question.
                    let said = match Form::of_calls(&questions) {
                        Some(form) => self.put(&form, owner_of(run), client.clone()).await,
                        None => Err(ApprovalAnswer::Unavailable("the question was withdrawn".into())),
                    };
                    for (_, sender) in members {
                        // A call that has ended meanwhile needs no answer.
                        let _ = sender.send(said.clone());
                    }
                    drop(answer);
                    break said;
                }
                // A leader that was cancelled gives no answer; the next one asks.
                Joined::Member(answer) => {
                    if let Ok(said) = answer.await {
                        break said;
                    }
                }
            }
        };
        let Approver { by, .. } = answer?;
        self.remembered.add(run, &binding, asks, &by);
        Ok(Approval { binding, by })
    }

    /// Adds a question to the group of its kind. The first one leads it.
    fn join(&self, run: &Arc<RunAccount>, question: &Question) -> Joined {
        let (sender, answer) = oneshot::channel();
        let subject = question.kind();
        let mut groups = self.groups.locked();
        groups.retain(|group| group.run.strong_count() > 0);
        let alike = groups.iter_mut().find(|group| {
            std::ptr::eq(group.run.as_ptr(), Arc::as_ptr(run))
                && group.subject == subject
                && group.members.len() < MOST_IN_GROUP
                // Without a leader that listens the group is dead.
                && group.members.first().is_some_and(|(_, leader)| !leader.is_closed())
        });
        match alike {
            Some(group) => {
                group.members.push((question.clone(), sender));
                Joined::Member(answer)
            }
            None => {
                groups.push(Group {
                    run: Arc::downgrade(run),
                    subject,
                    members: vec![(question.clone(), sender)],
                });
                Joined::Leader(answer)
            }
        }
    }

    /// How many questions are in the group that a question leads.
    fn members(&self, leader: &str) -> usize {
        let groups = self.groups.locked();
        let led =
            groups.iter().find(|group| group.members.first().is_some_and(|(first, _)| &*first.id == leader));
        led.map_or(0, |group| group.members.len())
    }

    /// Takes the group that a question leads.
    fn close(&self, leader: &str) -> Vec<(Question, oneshot::Sender<Said>)> {
        let mut groups = self.groups.locked();
        let led = groups
            .iter()
            .position(|group| group.members.first().is_some_and(|(first, _)| &*first.id == leader));
        led.map(|at| groups.swap_remove(at).members).unwrap_or_default()
    }

    /// Puts a question about a run of this owner to everybody who may answer; the first answer counts.
    async fn put(&self, form: &Form, owner: Option<u64>, client: Option<Arc<dyn ServedClient>>) -> Said {
        let mut asked: FuturesUnordered<BoxFuture<'_, Said>> = FuturesUnordered::new();
        if let Some(client) = client {
            asked.push(Box::pin(client::ask(client, form)));
        }
        if let Some(webhook) = &self.settings.webhook {
            asked.push(Box::pin(webhook.ask(form)));
        }
        if let Some(list) = self.settings.list.clone() {
            asked.push(Box::pin(list.ask(form, owner, self.settings.ttl, self.settings.timeout)));
        }
        let answered = async {
            let mut why: Arc<str> = "there is none to ask".into();
            while let Some(said) = asked.next().await {
                match said {
                    Err(ApprovalAnswer::Unavailable(reason)) => why = reason,
                    said => return said,
                }
            }
            Err(ApprovalAnswer::Unavailable(why))
        };
        match tokio::time::timeout(self.settings.timeout, answered).await {
            Ok(said) => said,
            Err(_) => {
                let seconds = self.settings.timeout.as_secs();
                let why = format!("no answer within {seconds} s (--approval-timeout)");
                Err(ApprovalAnswer::Unavailable(why.into()))
            }
        }
    }
}

/// The owner of a run, where clients have owners.
pub(in crate::policy) fn owner_of(run: &RunAccount) -> Option<u64> {
    run.client().map(|client| client.owner)
}

/// Ends the group of a leader that is cancelled, so that its members ask again.
struct Leading<'a> {
    approvals: &'a Approvals,
    leader: Arc<str>,
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        drop(self.approvals.close(&self.leader));
    }
}

/// The place of a question in its group.
enum Joined {
    /// It is asked, for all of the group.
    Leader(oneshot::Receiver<Said>),
    /// Its leader asks.
    Member(oneshot::Receiver<Said>),
}

#[cfg(test)]
mod tests;
