//! Lets several server processes (nodes) with one database act as one server, so that any of them can take any request:
//! relays requests, signs the ids of sessions, and shares the limits on calls per minute.
//!
//! A session of the handshake era is in its signed id, so every node can take it in. What a node has in memory stays
//! there: a request for a task or a parked run of another node is relayed to that node, through messages of the
//! database, and so are answers to questions and cancellations.
//!
//! # Layout
//! - this file: one node. `session_id`: signed ids of sessions. `session_notes`: what changes in a session.
//! - `rates`: the calls a minute that tokens have left at all nodes.
//! - `message`: what nodes send each other. `sealing`: how it is kept from others.
//! - `asking`: a request that another node answers. `answering`: the other side.

mod answering;
mod asking;
mod message;
mod rates;
mod sealing;
mod session_id;
mod session_notes;

pub(super) use answering::follow;
pub(super) use asking::Asked;
use asking::OpenAsks;
pub(super) use message::{AskedRequest, Claim, NodeMessage, SessionUpdate};
use ptc_base::digest::hex;
use ptc_base::store::{MESSAGES_LOST, StoreError};
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::journal::DurableRuns;
use ring::hmac;
use sealing::{Dropped, SENDER_BYTES, Seal};
pub(super) use session_id::SignedSession;
pub(super) use session_notes::SessionNote;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::{OnceCell, Semaphore, broadcast};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// The key of the secret that all nodes have.
const SIGNING_KEY: &str = "session-key";

/// Random bytes in the name of a node.
const NAME_BYTES: usize = 6;

/// Interval at which a lost connection to the database is made again.
const LOOK: Duration = Duration::from_secs(1);

/// How long the database may take before it counts as away.
const DATABASE_PATIENCE: Duration = Duration::from_secs(2);

/// Most messages that are sent without waiting for them.
const MOST_SOON: usize = 1_024;

/// This node, among those that share its database.
pub(super) struct Nodes {
    runs: DurableRuns,
    /// Its name, which no other process has.
    name: String,
    /// Its random name in the messages that it sends.
    sender: [u8; SENDER_BYTES],
    keys: OnceCell<NodeKeys>,
    open: OpenAsks,
    /// The database did not answer when it was last looked at.
    is_database_away: AtomicBool,
    /// A permit for each message that is sent without waiting for it.
    soon: Arc<Semaphore>,
    /// It was said that messages are out of time.
    has_warned: AtomicBool,
}

/// A message could not be sent, or it is not known whether it was.
struct MessageLost;

/// What is made of the secret that all nodes have.
struct NodeKeys {
    sessions: hmac::Key,
    messages: Seal,
}

impl Nodes {
    /// This process, if others can share the state.
    pub(super) fn of(runs: Option<DurableRuns>) -> Option<Arc<Nodes>> {
        let runs = runs.filter(DurableRuns::is_shared)?;
        let mut sender = [0; SENDER_BYTES];
        if let Err(error) = getrandom::fill(&mut sender) {
            tracing::error!(%error, "sessions and calls that wait stay with this node: there are no random numbers");
            return None;
        }
        let name = hex(&sender[..NAME_BYTES]);
        Some(Arc::new(Nodes {
            runs,
            name,
            sender,
            keys: OnceCell::new(),
            open: OpenAsks::default(),
            is_database_away: AtomicBool::new(false),
            soon: Arc::new(Semaphore::new(MOST_SOON)),
            has_warned: AtomicBool::new(false),
        }))
    }

    /// Reads the secret that all nodes have, if this node does not have it yet. Without it the ids of new sessions are
    /// unsigned: they stay with this node, and so do messages.
    pub(super) async fn read_key(&self) {
        let read = async {
            let secret = self.runs.shared_secret(SIGNING_KEY).await?;
            let no_key = || StoreError::Unavailable("no key can be made for messages".to_owned());
            let messages = Seal::new(&secret, self.sender).ok_or_else(no_key)?;
            Ok::<_, StoreError>(NodeKeys { sessions: hmac::Key::new(hmac::HMAC_SHA256, &secret), messages })
        };
        if let Err(error) = self.keys.get_or_try_init(|| read).await {
            tracing::warn!(%error, "a session stays with this node");
        }
    }

    /// The key that signs ids of sessions.
    fn session_key(&self) -> Option<&hmac::Key> {
        self.keys.get().map(|keys| &keys.sessions)
    }

    /// True while the database does not answer.
    pub(super) fn is_database_away(&self) -> bool {
        self.is_database_away.load(Relaxed)
    }

    /// Notes whether the database answers.
    pub(super) fn set_database_away(&self, is_away: bool) {
        if self.is_database_away.swap(is_away, Relaxed) != is_away {
            match is_away {
                true => tracing::warn!("the database of the nodes does not answer"),
                false => tracing::info!("the database of the nodes answers again"),
            }
        }
    }

    /// Looks whether the database answers, again and again. Never ends.
    pub(super) async fn watch_database(&self) {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            look.tick().await;
            let mut looking = std::pin::pin!(self.runs.read_note(SIGNING_KEY));
            let looked = match timeout(DATABASE_PATIENCE, &mut looking).await {
                Ok(looked) => looked,
                Err(_) => {
                    self.set_database_away(true);
                    // The store gives up a connection only when a statement on it has had its whole time.
                    looking.await
                }
            };
            self.set_database_away(looked.is_err());
        }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sends a message to the other nodes. One that cannot be sent is lost.
    pub(super) async fn send(&self, message: NodeMessage) {
        // It has said so.
        let _ = self.try_send(message).await;
    }

    /// Sends a message to the other nodes.
    async fn try_send(&self, message: NodeMessage) -> Result<(), MessageLost> {
        let text = message.sent_by(&self.name);
        let Some(sealed) = self.keys.get().and_then(|keys| keys.messages.close(&text)) else {
            tracing::warn!("a message to other nodes is lost: the key of the nodes is not known yet");
            return Err(MessageLost);
        };
        self.runs.send(&sealed).await.map_err(|error| {
            tracing::warn!(%error, "a message to other nodes is lost");
            MessageLost
        })
    }

    /// A message of another node, and its name. `None`: it is not from a node, is one of this node, or has come before.
    fn open(&self, sealed: &str) -> Option<(String, NodeMessage)> {
        match self.keys.get()?.messages.open(sealed) {
            Ok(text) => NodeMessage::read(&text).filter(|(from, _)| *from != self.name),
            Err(Dropped::OutOfTime) if !self.has_warned.swap(true, Relaxed) => {
                tracing::warn!("messages are dropped that are old, or of a node with another time");
                None
            }
            Err(dropped) => {
                tracing::debug!(?dropped, "a message is dropped");
                None
            }
        }
    }

    /// Sends a message to the other nodes, and does not wait for it. It is lost if too many wait already.
    pub(super) fn send_soon(self: &Arc<Nodes>, message: NodeMessage) {
        let Ok(permit) = self.soon.clone().try_acquire_owned() else {
            return tracing::warn!("a message to other nodes is lost: too many wait for the database");
        };
        let nodes = self.clone();
        tasks::spawn(TaskOwner::Process, async move {
            nodes.send(message).await;
            drop(permit);
        });
    }

    /// Receives messages of other nodes, with the names of these. Those that answer a request of this node are passed on to
    /// it. `None`: messages may have been lost. Never ends.
    pub(super) async fn receive(&self, mut handle: impl FnMut(Option<(String, NodeMessage)>)) {
        loop {
            match self.runs.messages().await {
                Ok(received) => self.receive_all(received, &mut handle).await,
                Err(error) => {
                    tracing::debug!(%error, "messages of other nodes are not received");
                    sleep(LOOK).await;
                }
            }
        }
    }

    async fn receive_all(
        &self,
        mut received: broadcast::Receiver<Arc<str>>,
        handle: &mut impl FnMut(Option<(String, NodeMessage)>),
    ) {
        let mut look = interval(LOOK);
        loop {
            let text = tokio::select! {
                text = received.recv() => text,
                _ = look.tick() => {
                    // Makes a lost connection again.
                    let _ = self.runs.messages().await;
                    self.read_key().await;
                    continue;
                }
            };
            match text {
                Ok(text) if *text == *MESSAGES_LOST => handle(None),
                Ok(text) => {
                    let Some((from, message)) = self.open(&text) else { continue };
                    match message {
                        NodeMessage::Reply { to, id, number, reply } if to == self.name => {
                            self.open.pass_on(from, id, (number, reply));
                        }
                        NodeMessage::Reply { .. } => {}
                        message => handle(Some((from, message))),
                    }
                }
                Err(broadcast::error::RecvError::Lagged(lost)) => {
                    tracing::warn!(lost, "messages of other nodes are lost");
                    handle(None);
                }
                Err(broadcast::error::RecvError::Closed) => return,
            }
        }
    }
}
