//! Routes and checks the requests of browsers to the web page (`--ui`): login and logout, views, and decisions on calls
//! that wait for approval. The checks: Host and Origin, the cookie of a visit, and for what changes something the value
//! that a form repeats.
//!
//! - here: routes. [`visits`]: who is in. `events`: the stream of a view that is open.
//!
//! Invariant: a GET changes nothing but the link that it uses.

mod events;
pub(super) mod visits;

use super::body;
use super::guard;
use super::reply;
use super::router::RouterState;
use super::socket::RequestOrigin;
use super::{HttpServer, access::TokenHolder};
use crate::tools::session::SessionTable;
use crate::ui::{self, Decision, Entry, Page, View, Viewer};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};
use std::sync::Arc;
use visits::{Visit, Visits};

/// Where the page is.
pub(super) const PATH: &str = "/ui";

/// Most bytes of a form.
const FORM_BYTES: usize = 16 << 10;

/// The page of a server, and who is in.
pub(super) struct ServedPage {
    pub(super) page: Arc<Page>,
    pub(super) door: PageDoor,
}

/// Where persons come in. It makes links.
#[derive(Clone, Debug)]
pub struct PageDoor {
    pub(super) visits: Arc<Visits>,
    /// The origin of the page.
    pub(super) url: String,
}

impl PageDoor {
    /// A link that works once; `None` if the system has no random numbers.
    pub fn link(&self) -> Option<String> {
        let secret = self.visits.link()?;
        Some(format!("{}{PATH}/open?link={secret}", self.url))
    }
}

/// The line that gives a link to a person.
pub fn page_line(link: &str) -> String {
    format!("page (this link works once): {link}")
}

/// The routes of the page.
pub(super) fn routes(router: Router<RouterState>) -> Router<RouterState> {
    let view = |view: View| {
        get(async move |State(state): State<RouterState>, request: Request<Body>| {
            show(&state.server, request.headers(), view).await
        })
    };
    let run = async |State(state): State<RouterState>, Path(number): Path<String>, request: Request<Body>| {
        // Only one way to write a number leads to a run.
        match number.parse().ok().filter(|parsed: &u64| parsed.to_string() == number) {
            Some(number) => show(&state.server, request.headers(), View::Run(number)).await,
            None => reply::text(StatusCode::NOT_FOUND, "not found"),
        }
    };
    router
        .route(PATH, view(View::Runs))
        .route("/ui/runs/{number}", get(run))
        .route("/ui/approvals", view(View::Approvals))
        .route("/ui/servers", view(View::Servers))
        .route("/ui/sessions", view(View::Sessions))
        .route("/ui/events", get(listen))
        .route("/ui/page.css", get(async || reply::asset("text/css; charset=utf-8", ui::STYLE)))
        .route("/ui/page.js", get(async || reply::asset("text/javascript; charset=utf-8", ui::SCRIPT)))
        .route("/ui/open", get(open))
        .route("/ui/enter", post(enter))
        .route("/ui/link", post(write_link))
        .route("/ui/leave", post(leave))
        .route("/ui/approvals/{id}", post(decide))
}

/// A person who is in.
struct Inside<'s> {
    served: &'s ServedPage,
    visit: Arc<Visit>,
    holder: Arc<TokenHolder>,
    viewer: Viewer,
    sessions: Option<Arc<SessionTable>>,
}

/// The page, if Host and Origin are this server's.
///
/// # Errors
/// The response to the request.
fn asked<'s>(server: &'s HttpServer, headers: &HeaderMap) -> Result<&'s ServedPage, Box<Response>> {
    let served = server.page.as_ref().ok_or_else(|| reply::text(StatusCode::NOT_FOUND, "not found"))?;
    match guard::is_page_of(&server.settings, headers) {
        true => Ok(served),
        false => Err(reply::text(StatusCode::FORBIDDEN, "forbidden").into()),
    }
}

/// The person that a request is of.
///
/// # Errors
/// The response to the request.
fn inside<'s>(server: &'s HttpServer, headers: &HeaderMap) -> Result<Inside<'s>, Box<Response>> {
    let served = asked(server, headers)?;
    let out = |said| Box::new(reply::page(StatusCode::UNAUTHORIZED, &ui::entrance(entry(server), said)));
    let visit = served.door.visits.find(headers, &cookie_name(server)).ok_or_else(|| out(None))?;
    let holder = visit.holder(&server.access).ok_or_else(|| out(Some("Your access has ended.")))?;
    let viewer = Viewer {
        owner: holder.owner,
        servers: holder.servers().cloned(),
        name: holder.name.clone(),
        is_user: visit.is_of_link,
        csrf: visit.csrf.clone(),
    };
    let sessions = server.handlers.for_holder(&holder).and_then(|handler| handler.sessions.clone());
    Ok(Inside { served, visit, holder, viewer, sessions })
}

/// How persons get in. With one token the client has it, so that a link makes the difference between both: a client must not
/// approve its own calls.
fn entry(server: &HttpServer) -> Entry {
    let by_link = server.access.only_holder().is_some();
    Entry { by_link, by_token: !by_link && server.access.asks_for_tokens() }
}

/// Browsers share cookies between the ports of a host.
fn cookie_name(server: &HttpServer) -> String {
    format!("ptc_ui_{}", server.settings.address.port())
}

/// The header that sets or ends the cookie.
fn cookie(server: &HttpServer, value: &str, is_over_tls: bool) -> Option<HeaderValue> {
    let secure = if server.is_tls || is_over_tls || !server.settings.is_local() { "; Secure" } else { "" };
    let ended = if value.is_empty() { "; Max-Age=0" } else { "" };
    let name = cookie_name(server);
    HeaderValue::try_from(format!("{name}={value}; Path={PATH}; HttpOnly; SameSite=Strict{secure}{ended}"))
        .ok()
}

async fn show(server: &HttpServer, headers: &HeaderMap, view: View) -> Response {
    let Inside { served, viewer, sessions, .. } = match inside(server, headers) {
        Ok(inside) => inside,
        Err(response) => return *response,
    };
    match served.page.document(view, &viewer, sessions.as_ref(), None).await {
        Some(document) => reply::page(StatusCode::OK, &document),
        None => reply::text(StatusCode::NOT_FOUND, "not found"),
    }
}

async fn listen(State(RouterState { server, .. }): State<RouterState>, request: Request<Body>) -> Response {
    let view = request.uri().query().and_then(View::of_query);
    match inside(&server, request.headers()) {
        Ok(inside) => match view {
            Some(view) => events::stream(&server, inside, view),
            None => reply::text(StatusCode::NOT_FOUND, "not found"),
        },
        // A page that is no page: the script says that the access has ended.
        Err(response) => *response,
    }
}

/// Lets in a person with a link.
async fn open(State(RouterState { server, .. }): State<RouterState>, request: Request<Body>) -> Response {
    let served = match asked(&server, request.headers()) {
        Ok(served) => served,
        Err(response) => return *response,
    };
    let secret = request.uri().query().and_then(|query| query.strip_prefix("link=")).unwrap_or_default();
    let holder = server.access.only_holder();
    match holder.filter(|_| served.door.visits.use_link(secret)) {
        Some(holder) => begun(&server, served, (holder, true), false, StatusCode::OK),
        None => {
            let said = "This link was used already, is too old, or is none of this server.";
            reply::page(StatusCode::FORBIDDEN, &ui::entrance(entry(&server), Some(said)))
        }
    }
}

/// Begins a visit.
fn begun(
    server: &HttpServer,
    served: &ServedPage,
    (holder, is_of_link): (Arc<TokenHolder>, bool),
    is_over_tls: bool,
    status: StatusCode,
) -> Response {
    let (owner, name) = (holder.owner, holder.name.clone());
    match served.door.visits.begin(holder, is_of_link).and_then(|value| cookie(server, &value, is_over_tls)) {
        Some(cookie) => {
            tracing::info!(%owner, token = name, "a person has entered the page");
            let response = reply::page(status, &ui::entered());
            reply::with(response, header::SET_COOKIE, cookie)
        }
        None => reply::text(StatusCode::INTERNAL_SERVER_ERROR, "no random numbers"),
    }
}

/// The fields of a form.
struct Form(Vec<(String, String)>);

impl Form {
    fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value).unwrap_or_default()
    }
}

/// The form of a request from a view of this page.
///
/// # Errors
/// The response to the request.
async fn form(server: &HttpServer, request: Request<Body>) -> Result<(HeaderMap, Form), Box<Response>> {
    let refused = |status, text| Box::new(reply::text(status, text));
    let (head, body) = request.into_parts();
    if !guard::comes_from_page(&head.headers) {
        return Err(refused(StatusCode::FORBIDDEN, "forbidden: the request is of no view of this page"));
    }
    let kind = guard::single_header(&head.headers, &header::CONTENT_TYPE).flatten().unwrap_or_default();
    if kind.split(';').next().is_none_or(|kind| kind.trim() != "application/x-www-form-urlencoded") {
        return Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported media type"));
    }
    let time = server.settings.request_timeout();
    match body::read(&head.headers, body, FORM_BYTES, time, &server.bodies).await {
        Ok(body) => {
            let fields = form_urlencoded::parse(&body.bytes).into_owned().collect();
            Ok((head.headers, Form(fields)))
        }
        Err(_) => Err(refused(StatusCode::BAD_REQUEST, "the form could not be read")),
    }
}

/// Lets in a person with a token.
async fn enter(State(RouterState { server, .. }): State<RouterState>, request: Request<Body>) -> Response {
    let from = request.extensions().get::<RequestOrigin>().map(|origin| origin.address.ip());
    let checked = async {
        let served = asked(&server, request.headers())?;
        Ok::<_, Box<Response>>((served, form(&server, request).await?))
    };
    let (served, (head, form)) = match checked.await {
        Ok(checked) => checked,
        Err(response) => return *response,
    };
    let Some(from) = from.filter(|_| entry(&server).by_token) else {
        return reply::text(StatusCode::NOT_FOUND, "not found");
    };
    // A proxy may take TLS off; the browser says what it speaks.
    let origin = guard::single_header(&head, &header::ORIGIN).flatten();
    let is_over_tls = origin.is_some_and(|origin| origin.starts_with("https://"));
    let mut headers = HeaderMap::new();
    if let Ok(bearer) = HeaderValue::try_from(format!("Bearer {}", form.get("token").trim())) {
        headers.insert(header::AUTHORIZATION, bearer);
    }
    match server.access.admit(from, &headers).await {
        Ok(holder) => {
            let response = begun(&server, served, (holder, false), is_over_tls, StatusCode::SEE_OTHER);
            reply::with(response, header::LOCATION, HeaderValue::from_static(PATH))
        }
        Err(refused) => {
            let status = reply::refused(&refused, None).status();
            reply::page(status, &ui::entrance(entry(&server), Some("The token is not accepted.")))
        }
    }
}

/// Writes a new link to the log, which only those who run the server read.
async fn write_link(
    State(RouterState { server, .. }): State<RouterState>,
    request: Request<Body>,
) -> Response {
    let checked = async {
        let served = asked(&server, request.headers())?;
        form(&server, request).await?;
        Ok::<_, Box<Response>>(served)
    };
    let served = match checked.await {
        Ok(served) => served,
        Err(response) => return *response,
    };
    if !entry(&server).by_link {
        return reply::text(StatusCode::NOT_FOUND, "not found");
    }
    if !served.door.visits.may_ask_for_link() {
        return reply::retry_after(reply::text(StatusCode::TOO_MANY_REQUESTS, "a link was just written"), 5);
    }
    served.announce();
    let said = "A new link is in the server's log.";
    reply::page(StatusCode::OK, &ui::entrance(entry(&server), Some(said)))
}

impl ServedPage {
    /// Writes a link for those who read the log of the server.
    fn announce(&self) {
        match self.door.link() {
            Some(link) => crate::console::complain(&page_line(&link)),
            None => tracing::warn!("the system has no random numbers, so there is no link to the page"),
        }
    }
}

/// The person and the form of a request that changes something.
///
/// # Errors
/// The response to the request.
async fn acting<'s>(
    server: &'s HttpServer,
    request: Request<Body>,
) -> Result<(Inside<'s>, Form), Box<Response>> {
    asked(server, request.headers())?;
    let (headers, form) = form(server, request).await?;
    let inside = inside(server, &headers)?;
    if !inside.visit.admits(form.get("csrf")) {
        let text = "forbidden: the form is of no view of this visit";
        return Err(reply::text(StatusCode::FORBIDDEN, text).into());
    }
    Ok((inside, form))
}

async fn leave(State(RouterState { server, .. }): State<RouterState>, request: Request<Body>) -> Response {
    let (Inside { served, visit, .. }, _) = match acting(&server, request).await {
        Ok(acting) => acting,
        Err(response) => return *response,
    };
    served.door.visits.leave(&visit);
    let response = reply::page(StatusCode::OK, &ui::entrance(entry(&server), Some("You have left.")));
    match cookie(&server, "", false) {
        Some(cookie) => reply::with(response, header::SET_COOKIE, cookie),
        None => response,
    }
}

async fn decide(
    State(RouterState { server, .. }): State<RouterState>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Response {
    let (Inside { served, viewer, sessions, .. }, form) = match acting(&server, request).await {
        Ok(acting) => acting,
        Err(response) => return *response,
    };
    let decision = Decision { choice: form.get("choice").to_owned(), digest: form.get("digest").to_owned() };
    let (status, said) = match served.page.decide(&viewer, &id, decision).await {
        Ok(done) => (StatusCode::OK, done),
        Err(why) => (StatusCode::CONFLICT, why),
    };
    match served.page.document(View::Approvals, &viewer, sessions.as_ref(), Some(&said)).await {
        Some(document) => reply::page(status, &document),
        None => reply::text(StatusCode::NOT_FOUND, "not found"),
    }
}
