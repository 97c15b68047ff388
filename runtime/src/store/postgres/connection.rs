//! The connection of a store to its database. All operations share it: each is one statement, and statements that are
//! under way together are pipelined.

use super::{StoreError, unavailable};
use crate::net::TlsOptions;
use crate::tasks::{self, TaskOwner};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio_postgres::{AsyncMessage, Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Channel of the notifications about changed values.
pub(super) const CHANNEL: &str = "ptc";

/// How long a connection may take, if the address does not say.
const CONNECT: Duration = Duration::from_secs(5);

/// The connection, made again after it was lost.
pub(super) struct Connection {
    config: Config,
    tls: MakeRustlsConnect,
    client: Mutex<Option<Arc<Client>>>,
    changes: watch::Sender<u64>,
}

impl Connection {
    /// A connection to this address, which is made when it is needed.
    pub(super) fn new(url: &str, changes: watch::Sender<u64>) -> Result<Connection, StoreError> {
        // The message of the parser may quote parts of the address, which has a password.
        let mut config: Config = url
            .parse()
            .map_err(|_| unavailable("its address cannot be read: postgres://USER@HOST/DATABASE"))?;
        if config.get_application_name().is_none() {
            config.application_name("ptc");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        let mut tls = TlsOptions::default().config().map_err(unavailable)?;
        // The server refuses names of HTTP versions.
        tls.alpn_protocols.clear();
        let tls = MakeRustlsConnect::new(tls);
        Ok(Connection { config, tls, client: Mutex::default(), changes })
    }

    /// The present connection, or a new one.
    pub(super) async fn client(&self) -> Result<Arc<Client>, StoreError> {
        let mut present = self.client.lock().await;
        if let Some(client) = present.as_ref().filter(|client| !client.is_closed()) {
            return Ok(client.clone());
        }
        let client = Arc::new(self.connect().await?);
        *present = Some(client.clone());
        Ok(client)
    }

    /// Ends the present connection; statements that are under way fail.
    pub(super) async fn close(&self) {
        self.client.lock().await.take();
    }

    async fn connect(&self) -> Result<Client, StoreError> {
        let (client, mut connection) = self.config.connect(self.tls.clone()).await.map_err(unavailable)?;
        let changes = self.changes.clone();
        tasks::spawn(TaskOwner::Process, async move {
            // Dropping the connection makes every statement under way fail.
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notification(_) = message {
                    changes.send_modify(|changes| *changes += 1);
                }
            }
        });
        client.batch_execute(&format!("LISTEN {CHANNEL}")).await.map_err(unavailable)?;
        Ok(client)
    }
}
