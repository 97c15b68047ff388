//! Serves the web page of the background process (`ptc up`), which shows the servers and the tool calls that wait for
//! approval, at a free local port. The port is opened when a link to the page is first requested.

use ptc_base::files;
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::policy::ApprovalList;
use ptc_engine::Runtime;
use ptc_server::server::http::access::hash;
use ptc_server::server::http::access::tokens::TokenGrant;
use ptc_server::server::http::{Access, Handlers, HttpLimits, HttpListener, HttpSettings, PageDoor};
use ptc_server::server::{Gate, GateLimits, Handler, ParkingLimits, Surface};
use ptc_server::tools::owned_table::random_id;
use ptc_server::tools::{Facts, Registry};
use ptc_server::ui::Page;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::sync::{OnceCell, watch};

/// Random bytes of the token that closes the MCP endpoint.
const TOKEN: usize = 32;

/// The page, once it listens.
#[derive(Default)]
pub(super) struct BackgroundPage(OnceCell<PageDoor>);

impl BackgroundPage {
    /// A link to the page that works once.
    ///
    /// # Errors
    /// It cannot listen.
    pub(super) async fn link(&self, runtime: &Arc<Runtime>) -> io::Result<String> {
        let door = self.0.get_or_try_init(|| listen(runtime)).await?;
        door.link().ok_or_else(|| io::Error::other("the system has no random numbers"))
    }
}

/// Listens at a free port of this machine, until the process ends.
async fn listen(runtime: &Arc<Runtime>) -> io::Result<PageDoor> {
    let token = random_id::<TOKEN>("").ok_or_else(|| io::Error::other("the system has no random numbers"))?;
    let settings = HttpSettings {
        address: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
        path: "/mcp".to_owned(),
        origins: Vec::new(),
        instance: "ptc up".to_owned(),
        metrics: None,
        page: true,
        limits: HttpLimits::default(),
    };
    // A token that is written nowhere: the page is all that there is.
    let grant = TokenGrant::unlimited("page", hash(&token));
    let access = Access::by_tokens(vec![grant], None, &settings.limits, true);
    let surface = Surface {
        registry: Registry::default(),
        facts: Facts::default(),
        changes: false,
        instructions: String::new(),
        ready: true,
        recorder: None,
    };
    let handler = Handler::new(surface).map_err(io::Error::other)?;
    let questions = files::state_folder().map(|state| ApprovalList::below(&state));
    let mut listener = HttpListener::bind(settings).await?;
    listener.page = Some(Arc::new(Page::new(runtime, None, questions)));
    let door = listener.door();
    let gate = Gate::new(GateLimits {
        jobs: 1,
        memory_bytes: 0,
        queued: 0,
        queued_bytes: 0,
        parking: ParkingLimits::default(),
    });
    let serve = async move {
        let (_facts, changes) = watch::channel(Arc::new(Facts::default()));
        let handlers = Handlers::single(Arc::new(handler));
        listener.serve(handlers, &gate, access, changes, std::future::pending()).await;
    };
    tasks::spawn(TaskOwner::Process, serve);
    Ok(door)
}
