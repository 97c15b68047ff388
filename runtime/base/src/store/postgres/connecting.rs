//! Opens connections to PostgreSQL: tries the servers of an address in turn, each for a bounded time, and receives
//! notifications as long as the connection is open.

use super::messages::{self, Assembly};
use super::{MESSAGES_LOST, StoreError, Value, failed, unavailable};
use crate::net::TlsOptions;
use crate::tasks::{self, TaskOwner};
use ring::rand::{SecureRandom as _, SystemRandom};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::config::{Host, LoadBalanceHosts};
use tokio_postgres::{AsyncMessage, Client, Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Channel of the notifications about changed values.
const CHANNEL: &str = "ptc";

/// How long a server may take to accept a connection and to say what it is, if the address does not say.
const CONNECT: Duration = Duration::from_secs(5);

/// Addresses of a name that can be tried in the time for one server: the driver waits for each until it accepts.
const ADDRESSES: u32 = 3;

/// Longest time for all servers of an address together. Each has an equal part of it, so that one that stands still leaves
/// time for the next one.
const CONNECT_ALL: Duration = Duration::from_secs(8);

/// Idle time after which the system asks whether the server is still there, if the address does not say.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// What the driver uses if the address does not say.
const DRIVERS_KEEPALIVE: Duration = Duration::from_secs(2 * 60 * 60);

/// How long sent data may stay without an acknowledgement, if the address does not say.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);

/// Settings of a connection: the server gives up before this process does, and a commit is on the disk.
const SETTINGS: &str = "SET statement_timeout = '8s'; SET lock_timeout = '5s'; SET synchronous_commit = on";

/// An open connection. Dropping it ends the connection, and statements that are under way fail.
pub(super) struct OpenConnection {
    pub(super) client: Client,
    task: AbortHandle,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl OpenConnection {
    /// Executes one statement. `None`: there was no answer until this time. The connection then ends, and no other one.
    pub(super) async fn query(
        &self,
        statement: &str,
        values: &[Value<'_>],
        until: Instant,
    ) -> Option<Result<Vec<Row>, StoreError>> {
        match timeout_at(until, self.client.query_typed(statement, values)).await {
            Ok(done) => Some(done.map_err(failed)),
            Err(_) => {
                self.task.abort();
                None
            }
        }
    }
}

/// Why there is no connection.
pub(super) struct NoConnection {
    pub(super) error: StoreError,
    /// A server did not answer, so that the attempt took long.
    pub(super) was_silent: bool,
}

/// Makes connections to the servers of one address.
pub(super) struct Connector {
    /// Settings for each server, in the order of the address.
    servers: Vec<Config>,
    /// The longest time for one of them.
    patience: Duration,
    is_shuffled: bool,
    tls: MakeRustlsConnect,
    changes: watch::Sender<u64>,
    messages: broadcast::Sender<Arc<str>>,
    /// A connection was made before: messages that came since it was lost are lost, too.
    has_connected: AtomicBool,
}

impl Connector {
    pub(super) fn new(
        url: &str,
        changes: watch::Sender<u64>,
        messages: broadcast::Sender<Arc<str>>,
    ) -> Result<Connector, StoreError> {
        // The message of the parser may quote parts of the address, which has a password.
        let mut config: Config = url
            .parse()
            .map_err(|_| unavailable("its address cannot be read: postgres://USER@HOST/DATABASE"))?;
        if config.get_application_name().is_none() {
            config.application_name("ptc");
        }
        let patience = config.get_connect_timeout().copied().unwrap_or(CONNECT);
        config.connect_timeout(patience / ADDRESSES);
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(UNACKNOWLEDGED);
        }
        if config.get_keepalives_idle() == DRIVERS_KEEPALIVE {
            config.keepalives_idle(KEEPALIVE);
        }
        let mut tls = TlsOptions::default().config().map_err(unavailable)?;
        // The server refuses names of HTTP versions.
        tls.alpn_protocols.clear();
        let is_shuffled = config.get_load_balance_hosts() == LoadBalanceHosts::Random;
        let (servers, tls) = (servers_of(&config)?, MakeRustlsConnect::new(tls));
        let has_connected = AtomicBool::new(false);
        Ok(Connector { servers, patience, is_shuffled, tls, changes, messages, has_connected })
    }

    /// A connection to the first server that has what the address asks for. It takes no longer than [`CONNECT_ALL`].
    pub(super) async fn connect(&self) -> Result<OpenConnection, NoConnection> {
        let mut none = NoConnection { error: unavailable("its address names no server"), was_silent: false };
        let count = self.servers.len();
        let first = if self.is_shuffled { random() % count.max(1) } else { 0 };
        for server in self.servers.iter().cycle().skip(first).take(count) {
            let most = self.patience.min(CONNECT_ALL / u32::try_from(count).unwrap_or(u32::MAX));
            match timeout(most, self.connect_to(server)).await {
                Ok(Ok(open)) => return Ok(open),
                Ok(Err(error)) => none.error = error,
                Err(_) => none = NoConnection { error: super::silent(), was_silent: true },
            }
        }
        Err(none)
    }

    async fn connect_to(&self, server: &Config) -> Result<OpenConnection, StoreError> {
        let (client, mut connection) = server.connect(self.tls.clone()).await.map_err(failed)?;
        let (changes, messages) = (self.changes.clone(), self.messages.clone());
        let task = tasks::spawn(TaskOwner::Process, async move {
            // Dropping the connection makes every statement under way fail.
            let mut assembly = Assembly::default();
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                match message {
                    AsyncMessage::Notification(part) if part.channel() == messages::CHANNEL => {
                        if let Some(message) = assembly.add(part.process_id(), part.payload()) {
                            // Without a receiver there is nothing to do.
                            let _ = messages.send(message.into());
                        }
                    }
                    AsyncMessage::Notification(_) => changes.send_modify(|changes| *changes += 1),
                    _ => {}
                }
            }
        });
        let open = OpenConnection { client, task: task.abort_handle() };
        open.client
            .batch_execute(&format!("{SETTINGS}; LISTEN {CHANNEL}; LISTEN {}", messages::CHANNEL))
            .await
            .map_err(failed)?;
        if self.has_connected.swap(true, Ordering::AcqRel) {
            // Without a receiver there is nothing to do.
            let _ = self.messages.send(MESSAGES_LOST.into());
        }
        Ok(open)
    }
}

/// The settings for each server of an address: the driver would wait for the first one without end if that accepts a
/// connection and says nothing.
fn servers_of(config: &Config) -> Result<Vec<Config>, StoreError> {
    let (hosts, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = hosts.len().max(addresses.len());
    let is_whole = |others: usize| others == 0 || others == count;
    if count == 0 || !is_whole(hosts.len()) || !is_whole(addresses.len()) {
        return Err(unavailable("its address names no server, or not one for each `hostaddr`"));
    }
    if ports.len() > 1 && ports.len() != count {
        return Err(unavailable("its address does not have one port, or one for each server"));
    }
    let server = |place: usize| {
        let mut server = without_servers(config);
        match hosts.get(place) {
            Some(Host::Tcp(name)) => drop(server.host(name)),
            #[cfg(unix)]
            Some(Host::Unix(folder)) => drop(server.host_path(folder)),
            None => {}
        }
        if let Some(address) = addresses.get(place) {
            server.hostaddr(*address);
        }
        if let Some(port) = ports.get(place).or_else(|| ports.first()) {
            server.port(*port);
        }
        server
    };
    Ok((0..count).map(server).collect())
}

/// All settings but names, addresses and ports of servers, which the driver can only add to.
fn without_servers(config: &Config) -> Config {
    let mut bare = Config::new();
    config.get_user().map(|user| bare.user(user));
    config.get_password().map(|password| bare.password(password));
    config.get_dbname().map(|database| bare.dbname(database));
    config.get_options().map(|options| bare.options(options));
    config.get_application_name().map(|name| bare.application_name(name));
    config.get_connect_timeout().map(|time| bare.connect_timeout(*time));
    config.get_tcp_user_timeout().map(|time| bare.tcp_user_timeout(*time));
    config.get_keepalives_interval().map(|time| bare.keepalives_interval(time));
    config.get_keepalives_retries().map(|count| bare.keepalives_retries(count));
    bare.ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding())
        .load_balance_hosts(config.get_load_balance_hosts());
    bare
}

fn random() -> usize {
    let mut bytes = [0; 2];
    // Without random numbers the order of the address is as good.
    let _ = SystemRandom::new().fill(&mut bytes);
    u16::from_ne_bytes(bytes).into()
}
