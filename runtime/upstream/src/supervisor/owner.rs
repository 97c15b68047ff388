//! Runs the background task that owns one server: starts and watches it, publishes its tools, backs off after a crash,
//! and shuts it down. No other code uses its connection.

use super::calls::CallTracker;
use super::{Command, FailedStart, Phase, ReadyServer, SupervisorOptions};
use crate::mcp::McpSession;
use crate::transport::listings::ListLoad;
use crate::transport::{ConnectContext, Connection, ConnectionEnd, MayList, Opened, Opening, ServerEvents};
use crate::{LoginNeed, UpstreamFault};
use futures_util::future::BoxFuture;
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::policy::{PinLock, PinReview};
use ptc_calls::state::ListMemory;
use ptc_calls::tools::{Listed, ServerText, SnapshotMode, ToolList};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout_at};

/// The first recovery window. Each crash without an answered call in between doubles it.
const SHORTEST_RECOVERY: Duration = Duration::from_millis(100);

/// The longest recovery window.
const LONGEST_RECOVERY: Duration = Duration::from_secs(30);

/// The longest pause before a failed start is retried without a call.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The shortest time between two loads of a tool list, however often the server reports changes.
const RELIST_PAUSE: Duration = Duration::from_millis(250);

/// The same for changes of resources and prompts only: resources may change with each file of a folder.
const OFFERS_PAUSE: Duration = Duration::from_secs(2);

/// The owner of the server.
pub(super) struct Owner {
    about: Arc<SupervisorOptions>,
    inbox: mpsc::UnboundedReceiver<Command>,
    publish: watch::Sender<Phase>,
    recovery: Duration,
    /// The next start without a call.
    again: Option<Again>,
    /// The failure that was last logged; the same failure is not logged again.
    told: Option<ServerText>,
    /// It has taken calls before.
    was_up: bool,
    /// How long its last start took, in this run of the program or an earlier one.
    last_start: Option<Duration>,
    /// The last connection ended before the server had said anything.
    ended_silently: bool,
    /// Its last list as it gave it, if it is compared with pins, which may change.
    listed: Option<Listed>,
}

/// A retry of a failed start.
#[derive(Clone, Copy)]
struct Again {
    at: Instant,
    /// The pause before it.
    pause: Duration,
}

/// A connected server, with its events.
struct Reached {
    connection: Arc<dyn Connection>,
    events: Arc<ServerEvents>,
    calls: Arc<CallTracker>,
}

impl Drop for Reached {
    // Handlers of the server's requests may hold the connection: they are aborted.
    fn drop(&mut self) {
        self.events.forget_requests();
    }
}

/// Why a server is no longer watched.
enum End {
    /// It is unusable; `why` is the reason.
    Gone { why: String, how: How },
    /// It wants a login.
    LoginRequired(LoginNeed),
    /// It must be shut down; the sender, if any, is notified when that is done.
    Stop(Option<oneshot::Sender<()>>),
}

/// How a server was lost.
#[derive(Clone, Copy, PartialEq)]
enum How {
    /// It ended normally.
    Ended,
    /// It ended abnormally.
    Crashed,
    /// It lives, but is given up.
    GivenUp,
}

impl From<ConnectionEnd> for End {
    fn from(ConnectionEnd { why, is_orderly }: ConnectionEnd) -> End {
        End::Gone { why, how: if is_orderly { How::Ended } else { How::Crashed } }
    }
}

impl Owner {
    /// The owner of a server that is not started yet.
    pub(super) fn new(
        about: Arc<SupervisorOptions>,
        inbox: mpsc::UnboundedReceiver<Command>,
        publish: watch::Sender<Phase>,
    ) -> Owner {
        let last_start = about.memory.as_ref().and_then(ListMemory::last_start);
        Owner {
            about,
            inbox,
            publish,
            recovery: SHORTEST_RECOVERY,
            again: None,
            told: None,
            was_up: false,
            last_start,
            ended_silently: false,
            listed: None,
        }
    }

    /// Runs until the server is stopped for good, or its upstream is dropped.
    pub(super) async fn run(mut self) {
        let mut pins = self.about.pins.as_ref().map(|pins| pins.changes());
        loop {
            let again = self.again.map(|again| again.at);
            tokio::select! {
                command = self.inbox.recv() => match command {
                    Some(Command::Start) if self.may_start() => {}
                    Some(Command::Start) => continue,
                    Some(Command::Stop(done)) => return self.finish(Some(done)),
                    None => return self.finish(None),
                },
                () = sleep_until(again.unwrap_or_else(Instant::now)), if again.is_some() => {}
                () = changed(&mut pins) => {
                    self.compare_again().await;
                    continue;
                }
            }
            if let Err(done) = self.live().await {
                return self.finish(done);
            }
        }
    }

    /// One life of the server, from its start to its end. An error means that it was shut down for good.
    async fn live(&mut self) -> Result<(), Option<oneshot::Sender<()>>> {
        self.publish.send_replace(Phase::Starting { since: Instant::now(), usual: self.last_start });
        loop {
            let permit = self.start_permit().await?;
            let begun = Instant::now();
            let reached = match self.reach(begun).await {
                Ok(reached) => reached,
                Err(End::Stop(done)) => return Err(done),
                Err(End::LoginRequired(need)) => {
                    self.wait_for_login(need);
                    return Ok(());
                }
                Err(End::Gone { why, .. }) => {
                    self.down(why, false);
                    return Ok(());
                }
            };
            match self.attend(&reached, begun, permit).await {
                End::Stop(done) => {
                    reached.connection.shut_down().await;
                    return Err(done);
                }
                End::LoginRequired(need) => {
                    // Calls under way hold the connection: each hears from the server itself what it misses.
                    self.wait_for_login(need);
                    return Ok(());
                }
                End::Gone { why, how } => {
                    let was_ready = matches!(*self.publish.borrow(), Phase::Ready(_));
                    let heard = reached.events.has_spoken();
                    if !was_ready && !heard && how != How::GivenUp && !self.ended_silently {
                        // Some servers of the handshake era exit when anything precedes `initialize`.
                        tracing::debug!(upstream = %self.about.name, "ended at once; trying initialize first");
                        self.ended_silently = true;
                        reached.connection.close(&why);
                        reached.connection.discard().await;
                        continue;
                    }
                    if reached.calls.any_answered() {
                        self.recovery = SHORTEST_RECOVERY;
                    }
                    if !was_ready {
                        self.ended_silently = false;
                    }
                    self.outdate_tools();
                    reached.connection.close(&why);
                    if was_ready && how == How::Ended {
                        tracing::info!(upstream = %self.about.name, "ended: {}", ServerText::new(&why));
                        self.publish.send_replace(Phase::Idle);
                    } else {
                        self.down(why, was_ready);
                    }
                    // In the background: the next start waits for it.
                    reached.connection.discard().await;
                    return Ok(());
                }
            }
        }
    }

    fn may_start(&self) -> bool {
        match *self.publish.borrow() {
            Phase::Idle | Phase::LoginRequired(_) => true,
            Phase::Down { until, .. } => Instant::now() >= until,
            Phase::Starting { .. } | Phase::Ready(_) | Phase::Stopped => false,
        }
    }

    fn finish(&self, done: Option<oneshot::Sender<()>>) {
        self.publish.send_replace(Phase::Stopped);
        if let Some(done) = done {
            let _ = done.send(());
        }
    }

    /// Waits for a permit to start. An error means that the server was shut down for good.
    async fn start_permit(&mut self) -> Result<Option<OwnedSemaphorePermit>, Option<oneshot::Sender<()>>> {
        let permit = self.about.start_permits.take();
        tokio::pin!(permit);
        loop {
            tokio::select! {
                biased;
                permit = &mut permit => return Ok(permit),
                command = self.inbox.recv() => match command {
                    Some(Command::Start) => {}
                    Some(Command::Stop(done)) => return Err(Some(done)),
                    None => return Err(None),
                },
            }
        }
    }

    /// Sets the recovery window, and schedules the start without a call.
    fn down(&mut self, why: String, crashed: bool) {
        let why = ServerText::new(&self.about.secrets.scrub(&why));
        self.tell(&why, crashed);
        self.again = match self.about.failed_start {
            FailedStart::TriedAgain(first) if !crashed => {
                let pause = self.again.map_or(first, |again| (again.pause * 2).min(LONGEST_PAUSE));
                Some(Again { at: Instant::now() + pause, pause })
            }
            _ => None,
        };
        let until = Instant::now() + self.recovery;
        self.recovery = (self.recovery * 2).min(LONGEST_RECOVERY);
        self.publish.send_replace(Phase::Down { until, why, crashed });
    }

    /// Waits for a login: no recovery window, and no start by itself. The last tool list stays, so that programs are
    /// checked against it.
    fn wait_for_login(&mut self, need: LoginNeed) {
        self.recovery = SHORTEST_RECOVERY;
        self.again = None;
        let text = ServerText::new(&self.about.secrets.scrub(&need.to_string()));
        let is_reported = self.about.failed_start == FailedStart::Reported && !self.was_up;
        if self.told.as_ref() != Some(&text) && !is_reported {
            tracing::warn!(upstream = %self.about.name, "{text}");
        }
        self.told = Some(text);
        self.publish.send_replace(Phase::LoginRequired(need));
    }

    /// Logs a failure in one line, unless a caller reports it or it was logged before.
    fn tell(&mut self, why: &ServerText, crashed: bool) {
        let name = &self.about.name;
        let is_news = self.told.as_ref() != Some(why);
        let is_reported = self.about.failed_start == FailedStart::Reported && !self.was_up;
        match (crashed, is_news && !is_reported) {
            (true, _) => tracing::warn!(upstream = %name, "crashed: {why}"),
            (false, true) => tracing::warn!(upstream = %name, "could not start: {why}"),
            (false, false) => tracing::debug!(upstream = %name, "could not start: {why}"),
        }
        self.told = (!crashed).then(|| why.clone());
    }

    /// Publishes a list, the first of a start that took `started_in`. It runs on a blocking thread: the list may be long,
    /// and is compared with the last one.
    async fn publish_tools(&mut self, mut listed: Listed, started_in: Option<Duration>) -> usize {
        let about = self.about.clone();
        listed.origin = Some(about.transport.origin().into());
        self.listed = about.pins.is_some().then(|| listed.clone());
        let publish = move || {
            let SupervisorOptions { name, policy, pins, catalog, mode, memory, .. } = &*about;
            if let Some(memory) = memory {
                memory.keep(&listed);
                started_in.into_iter().for_each(|took| memory.keep_start(took));
            }
            let list = ToolList::new(pins.reviewed(name, policy.admitted(name, listed)));
            for note in list.notes() {
                tracing::warn!(upstream = %name, "{}", ServerText::new(note));
            }
            let count = list.len();
            catalog.publish(name, list, *mode);
            count
        };
        tasks::blocking(TaskOwner::Connection, move |_| publish()).await.unwrap_or_default()
    }

    /// Compares the last list with what was reviewed since, while the server does not run.
    async fn compare_again(&mut self) {
        if let Some(listed) = self.listed.clone() {
            self.publish_tools(listed, None).await;
            return self.outdate_tools();
        }
        let SupervisorOptions { name, policy, pins, catalog, memory, .. } = &*self.about;
        if let Some(listed) = memory.as_ref().and_then(ListMemory::last) {
            catalog.remember(name, ToolList::new(pins.reviewed(name, policy.admitted(name, listed))));
        }
    }

    /// Marks the last list as no longer current; a frozen list stays valid.
    fn outdate_tools(&self) {
        if self.about.mode == SnapshotMode::Live {
            self.about.catalog.outdate(&self.about.name);
        }
    }

    /// Connects to the server within the time limit of a start.
    async fn reach(&mut self, begun: Instant) -> Result<Reached, End> {
        let about = self.about.clone();
        let events = Arc::new(ServerEvents::new(about.name.clone(), about.client.clone()));
        let (guardian, secrets) = (about.guardian.clone(), about.secrets.clone());
        let context =
            ConnectContext { events: events.clone(), guardian, secrets, logins: about.logins.clone() };
        let patience = self.about.handshake_timeout;
        let connecting = within(begun, patience, about.transport.connect(&context));
        tokio::pin!(connecting);
        let connected = loop {
            tokio::select! {
                biased;
                connected = &mut connecting => break connected,
                command = self.inbox.recv() => end_of(command)?,
            }
        };
        match connected {
            Some(Ok(connection)) => {
                let connection = match about.transport.speaks_mcp() {
                    true => Arc::new(McpSession::new(connection, &context)),
                    false => connection,
                };
                Ok(Reached { connection, events, calls: Arc::default() })
            }
            Some(Err(UpstreamFault::LoginRequired(need))) => Err(End::LoginRequired(need)),
            Some(Err(fault)) => Err(End::Gone { why: fault.to_string(), how: How::GivenUp }),
            None => Err(End::Gone { why: timed_out(patience), how: How::GivenUp }),
        }
    }

    /// Starts a server, which needs a permit, and watches it to its end.
    async fn attend(
        &mut self,
        reached: &Reached,
        begun: Instant,
        permit: Option<OwnedSemaphorePermit>,
    ) -> End {
        let started = self.start(reached, begun).await;
        drop(permit);
        match started {
            Ok(tools_may_change) => {
                let end = self.watch(reached, tools_may_change).await;
                reached.events.tools.end(match &end {
                    End::Gone { why, .. } => why.clone(),
                    End::LoginRequired(need) => need.to_string(),
                    End::Stop(_) => "it is stopped".to_owned(),
                });
                end
            }
            Err(End::Gone { why, how }) => {
                let said = reached.connection.diagnostics().map(|text| format!("; {text}"));
                End::Gone { why: why + &said.unwrap_or_default(), how }
            }
            Err(end) => end,
        }
    }

    /// From the reached server to one that takes calls. Gives whether its tools may change.
    async fn start(&mut self, reached: &Reached, begun: Instant) -> Result<bool, End> {
        let about = self.about.clone();
        let patience = about.handshake_timeout;
        let opening = Opening { patience, ended_silently: self.ended_silently, may_list: may_list(&about) };
        let startup = within(begun, patience, reached.connection.open(opening));
        tokio::pin!(startup);
        let started = loop {
            tokio::select! {
                biased;
                started = &mut startup => break started,
                end = reached.connection.gone() => return Err(end.into()),
                command = self.inbox.recv() => end_of(command)?,
            }
        };
        let why = match started {
            Some(Ok(Opened { listed, server_info, version, tools_may_change })) => {
                let started_in = begun.elapsed();
                let tools = self.publish_tools(listed, Some(started_in)).await;
                tracing::info!(upstream = %about.name, tools, protocol = version,
                    ms = started_in.as_millis(), "ready");
                (self.again, self.told, self.was_up) = (None, None, true);
                self.last_start = Some(started_in);
                let (calls, events) = (reached.calls.clone(), reached.events.clone());
                let connection = Arc::downgrade(&reached.connection);
                let server = ReadyServer { connection, calls, events, server_info, version, started_in };
                self.publish.send_replace(Phase::Ready(Arc::new(server)));
                return Ok(tools_may_change);
            }
            Some(Err(UpstreamFault::LoginRequired(need))) => return Err(End::LoginRequired(need)),
            None | Some(Err(UpstreamFault::Timeout(_))) => timed_out(patience),
            Some(Err(fault)) => format!("handshake failed: {fault}"),
        };
        Err(End::Gone { why, how: How::GivenUp })
    }

    /// Watches a ready server: its end, changes of its lists, whether it still answers.
    async fn watch(&mut self, reached: &Reached, tools_may_change: bool) -> End {
        let Reached { connection, events, calls } = reached;
        let about = self.about.clone();
        let live = tools_may_change && about.mode == SnapshotMode::Live;
        let mut listing: Option<BoxFuture<'_, Result<Listed, UpstreamFault>>> = None;
        let mut subscription: Option<BoxFuture<'_, Result<(), UpstreamFault>>> =
            live.then(|| connection.listen());
        let mut liveness: Option<BoxFuture<'_, bool>> = None;
        let (mut load, mut pause) = (ListLoad::default(), RELIST_PAUSE);
        if live {
            events.tools.follow(about.name.clone(), about.catalog.clone());
        }
        let (mut next_wanted, mut next_listing, mut next_offers) =
            (Instant::now(), Instant::now(), Instant::now());
        let expiry = || about.list_ttl.and_then(|ttl| Instant::now().checked_add(ttl));
        let mut expires = expiry();
        let mut pins = about.pins.as_ref().map(|pins| pins.changes());
        loop {
            let lists_changed = async {
                sleep_until(next_listing).await;
                let offers_changed = async {
                    sleep_until(next_offers).await;
                    events.offers_changed().await;
                };
                let aged = async {
                    match expires {
                        Some(expires) => sleep_until(expires).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = events.tools.changed() => {}
                    () = offers_changed => {}
                    () = aged => {}
                }
            };
            let list_wanted = async {
                sleep_until(next_wanted).await;
                events.tools.wanted().await;
            };
            let listing_due = async {
                tokio::select! {
                    () = lists_changed => {}
                    () = list_wanted => {}
                }
            };
            tokio::select! {
                end = connection.gone() => return end.into(),
                command = self.inbox.recv() => if let Err(end) = end_of(command) {
                    return end;
                },
                () = listing_due, if live && listing.is_none() => {
                    load = events.tools.load_begins();
                    listing = Some(connection.list_tools(about.handshake_timeout, may_list(&about)));
                }
                () = changed(&mut pins) => {
                    if let Some(listed) = self.listed.clone() {
                        self.publish_tools(listed, None).await;
                    }
                }
                listed = finished(&mut listing) => {
                    let is_other_session = match listed {
                        Ok(tools) => {
                            let tools = self.publish_tools(tools, None).await;
                            tracing::info!(upstream = %about.name, tools, "tools listed again");
                            events.tools.load_ended(load, None)
                        }
                        Err(error) => {
                            let error = ServerText::new(&error.to_string());
                            tracing::warn!(upstream = %about.name, %error, "tools/list failed");
                            events.tools.load_ended(load, Some(error.to_string()))
                        }
                    };
                    // A server that loses its session with each list would be asked for it for ever.
                    pause = if is_other_session { (pause * 2).min(LONGEST_PAUSE) } else { RELIST_PAUSE };
                    next_wanted = Instant::now() + RELIST_PAUSE;
                    next_listing = Instant::now() + pause;
                    next_offers = Instant::now() + OFFERS_PAUSE;
                    expires = expiry();
                }
                ended = finished(&mut subscription) => match ended {
                    Ok(()) => tracing::debug!(upstream = %about.name,
                        "the subscription to list changes has ended"),
                    Err(fault) => {
                        let fault = ServerText::new(&fault.to_string());
                        tracing::debug!(upstream = %about.name, %fault, "no subscription to list changes");
                    }
                },
                need = calls.login_required() => return End::LoginRequired(need),
                () = calls.lost(), if liveness.is_none() => {
                    liveness = Some(connection.is_alive(about.unresponsive_timeout));
                }
                alive = finished(&mut liveness) => if !alive {
                    let silent = about.unresponsive_timeout.as_millis();
                    let why = format!("stopped answering: no answer for {silent} ms after a call was given up");
                    return End::Gone { why, how: How::GivenUp };
                },
            }
        }
    }
}

/// The lists of resources and prompts that the policy allows to request.
fn may_list(about: &SupervisorOptions) -> MayList {
    let refused: Vec<&str> = about.policy.refused_requests(&about.name).map(|(method, _)| method).collect();
    MayList::without(&refused)
}

/// The effect of a command on a server that is starting or ready.
fn end_of(command: Option<Command>) -> Result<(), End> {
    match command {
        Some(Command::Start) => Ok(()),
        Some(Command::Stop(done)) => Err(End::Stop(Some(done))),
        None => Err(End::Stop(None)),
    }
}

/// The result of the work, unless `patience` since `begun` is over first.
async fn within<T>(begun: Instant, patience: Duration, work: impl Future<Output = T>) -> Option<T> {
    match begun.checked_add(patience) {
        Some(deadline) => timeout_at(deadline, work).await.ok(),
        None => Some(work.await),
    }
}

fn timed_out(patience: Duration) -> String {
    format!("handshake timed out after {} ms", patience.as_millis())
}

/// Waits for the future in the slot and empties it; waits forever while the slot is empty. Cancel safe.
async fn finished<T>(slot: &mut Option<BoxFuture<'_, T>>) -> T {
    let result = match slot {
        Some(work) => work.await,
        None => std::future::pending().await,
    };
    *slot = None;
    result
}

/// Ends when what was reviewed is replaced; never, if tools are not compared with anything.
async fn changed(pins: &mut Option<watch::Receiver<Arc<PinLock>>>) {
    if let Some(pins) = pins
        && pins.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}
