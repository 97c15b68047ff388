//! Connects over a Unix socket to a server that another ptc process of the same user keeps running. Once attached, the
//! socket carries messages of MCP as the pipes of a child process do.

use super::channel::StdioChannel;
use crate::transport::{ConnectContext, Connection, ConnectionEnd, Location, Transport};
use crate::{CallResult, ServerRequest, UpstreamFault};
use ptc_base::oauth::{LoginOptions, ServerLogin};
use ptc_base::secrets::SecretRegistry;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The answer to the line that asks for a server.
pub const ATTACHED: &str = "{\"ok\":true}";

/// A configured server, and the process that keeps it.
pub struct AttachedSpec {
    /// How it is reached without that process.
    pub inner: Arc<dyn Transport>,
    /// Where that process listens.
    pub socket: PathBuf,
    /// The line that asks for the server.
    pub request: String,
}

#[async_trait::async_trait]
impl Transport for AttachedSpec {
    async fn connect(&self, context: &ConnectContext) -> Result<Arc<dyn Connection>, UpstreamFault> {
        match self.attach(context).await {
            Some(connection) => Ok(Arc::new(connection)),
            // The process has ended, or its configuration has changed.
            None => self.inner.connect(context).await,
        }
    }

    async fn login(
        &self,
        options: LoginOptions,
        secrets: &SecretRegistry,
    ) -> Result<Option<ServerLogin>, String> {
        self.inner.login(options, secrets).await
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn descriptor(&self) -> Value {
        self.inner.descriptor()
    }

    fn identity(&self) -> Value {
        self.inner.identity()
    }

    fn locate(&self) -> Location {
        self.inner.locate()
    }

    fn remedy(&self, error: &str) -> String {
        self.inner.remedy(error)
    }

    fn remedy_of_slow_start(&self, patience: Duration) -> String {
        self.inner.remedy_of_slow_start(patience)
    }

    fn runs(&self, program: &Path) -> bool {
        self.inner.runs(program)
    }
}

impl AttachedSpec {
    async fn attach(&self, context: &ConnectContext) -> Option<AttachedConnection> {
        let stream = UnixStream::connect(&self.socket).await.ok()?;
        let (reader, mut writer) = stream.into_split();
        writer.write_all(format!("{}\n", self.request).as_bytes()).await.ok()?;
        let (mut reader, mut line) = (BufReader::new(reader), String::new());
        reader.read_line(&mut line).await.ok()?;
        if line.trim() != ATTACHED {
            return None;
        }
        let channel = Arc::new(StdioChannel::new(context.events.clone()));
        let (publish, ended) = watch::channel(false);
        let mut streams = JoinSet::new();
        let (read, written) = (channel.clone(), channel.clone());
        streams.spawn(async move { written.write(writer).await });
        streams.spawn(async move {
            read.read(reader, |_| ()).await;
            publish.send_replace(true);
        });
        Some(AttachedConnection { channel, ended, _streams: streams })
    }
}

/// One attached server.
struct AttachedConnection {
    channel: Arc<StdioChannel>,
    /// Becomes true when the other process has closed the socket.
    ended: watch::Receiver<bool>,
    /// Tasks that move its bytes. They end with it.
    _streams: JoinSet<()>,
}

#[async_trait::async_trait]
impl Connection for AttachedConnection {
    async fn call(&self, request: ServerRequest) -> Result<CallResult, UpstreamFault> {
        self.channel.call(request).await
    }

    fn notify(&self, method: &'static str, _: &str) {
        self.channel.notify(method);
    }

    async fn gone(&self) -> ConnectionEnd {
        // The sender lives in a task of this connection: its end is the end of the socket.
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
        ConnectionEnd { why: "the background process has ended".to_owned(), is_orderly: false }
    }

    fn close(&self, why: &str) {
        self.channel.close(why);
    }
}
