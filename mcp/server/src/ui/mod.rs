//! Renders the web page for people (`--ui`): live runs, one run, approvals, servers and sessions.
//!
//! # Layout
//!
//! - here: what the page shows, and the frame of every view. `html`: builds HTML.
//! - `runs`, `run`, `approvals`, `servers`, `sessions`: the views. `feed`: events for a view that is open.
//! - `page.js`, `page.css`: all of the script and style; they are part of the binary.
//!
//! The server's `page` module has the routes, and decides who may see and do what: a `Viewer`.
//!
//! Invariant: everything is bounded, in number and in bytes. A view is made when it is asked for, from a copy, so no
//! run waits for a reader.

mod approvals;
pub(crate) mod feed;
pub(crate) mod html;
mod run;
mod runs;
mod servers;
mod sessions;

use crate::observe::CallRecorder;
use crate::tools::CallOwner;
use crate::tools::session::SessionTable;
use html::Html;
use ptc_base::sync::Locked;
use ptc_calls::policy::{ApprovalList, WaitingQuestion};
use ptc_calls::tools::ServerNames;
use ptc_engine::Runtime;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// The style of all views.
pub(crate) const STYLE: &str = concat!(include_str!("../drawing/chart.css"), include_str!("page.css"));
/// The script of all views.
pub(crate) const SCRIPT: &str = include_str!("page.js");

/// How long a list of questions may be old.
const QUESTIONS_AGE: Duration = Duration::from_secs(1);

/// What the page shows.
pub struct Page {
    /// Ends with its process, whatever page is open.
    runtime: Weak<Runtime>,
    recorder: Option<Arc<CallRecorder>>,
    approvals: Option<ApprovalList>,
    questions: Mutex<Option<(Instant, Arc<[WaitingQuestion]>)>>,
}

/// Who looks at the page.
#[derive(Clone, Debug)]
pub(crate) struct Viewer {
    /// Only what belongs to this owner is shown.
    pub(crate) owner: CallOwner,
    /// The servers that it may see; `None`: all.
    pub(crate) servers: Option<ServerNames>,
    /// The name of its token; empty without one.
    pub(crate) name: String,
    /// The user of this machine who runs the server: sees the questions of all of their processes.
    pub(crate) is_user: bool,
    /// What its forms have to repeat.
    pub(crate) csrf: String,
}

/// The views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Runs,
    Run(u64),
    Approvals,
    Servers,
    Sessions,
}

impl View {
    /// Those of the menu.
    const MENU: [View; 4] = [View::Runs, View::Approvals, View::Servers, View::Sessions];

    /// Its title, its path, and its word in the address of its events.
    const fn names(self) -> [&'static str; 3] {
        match self {
            View::Runs => ["Runs", "/ui", "runs"],
            View::Run(_) => ["Run", "/ui", "run"],
            View::Approvals => ["Approvals", "/ui/approvals", "approvals"],
            View::Servers => ["Servers", "/ui/servers", "servers"],
            View::Sessions => ["Sessions", "/ui/sessions", "sessions"],
        }
    }

    /// The view that a query names.
    pub(crate) fn of_query(query: &str) -> Option<View> {
        let (key, value) = query.split_once('=')?;
        match key {
            "run" => value.parse().ok().map(View::Run),
            "view" => View::MENU.into_iter().find(|view| view.names()[2] == value),
            _ => None,
        }
    }
}

impl Page {
    /// The page of this runtime. `approvals` is the list of questions.
    pub fn new(
        runtime: &Arc<Runtime>,
        recorder: Option<Arc<CallRecorder>>,
        approvals: Option<ApprovalList>,
    ) -> Page {
        Page { runtime: Arc::downgrade(runtime), recorder, approvals, questions: Mutex::default() }
    }

    /// A view as a whole document; `None`: there is nothing of this kind. `said` is a message about what was just done.
    pub(crate) async fn document(
        &self,
        view: View,
        viewer: &Viewer,
        sessions: Option<&Arc<SessionTable>>,
        said: Option<&str>,
    ) -> Option<String> {
        let content = self.content(view, viewer, sessions).await?;
        let waiting = self.questions(viewer).await.len();
        let mark = self.mark(view, viewer, sessions).await;
        Some(framed(view, viewer, (waiting, &mark), said, &content))
    }

    /// What a view shows at this moment.
    async fn content(
        &self,
        view: View,
        viewer: &Viewer,
        sessions: Option<&Arc<SessionTable>>,
    ) -> Option<Html> {
        Some(match view {
            View::Runs => runs::shown(self, viewer),
            View::Run(number) => run::shown(self, viewer, number)?,
            View::Approvals => {
                approvals::shown(self.approvals.is_some(), &self.questions(viewer).await, viewer)
            }
            View::Servers => servers::shown(self.runtime.upgrade().as_deref(), viewer),
            View::Sessions => sessions::shown(sessions, viewer.owner),
        })
    }

    /// The questions that a viewer may answer, the oldest first.
    async fn questions(&self, viewer: &Viewer) -> Vec<WaitingQuestion> {
        let known = self.questions.locked().clone();
        let all = match known.filter(|(read, _)| read.elapsed() < QUESTIONS_AGE) {
            Some((_, all)) => all,
            None => self.read_questions().await,
        };
        all.iter().filter(|question| viewer.may_answer(question)).cloned().collect()
    }

    async fn read_questions(&self) -> Arc<[WaitingQuestion]> {
        let Some(list) = &self.approvals else { return Arc::default() };
        let all: Arc<[WaitingQuestion]> = match list.waiting().await {
            Ok(all) => all.into(),
            Err(error) => {
                tracing::warn!(%error, "the questions cannot be read");
                Arc::default()
            }
        };
        *self.questions.locked() = Some((Instant::now(), all.clone()));
        all
    }

    /// Decides a question with the text that the viewer has seen.
    ///
    /// # Errors
    /// Why it is not decided.
    pub(crate) async fn decide(
        &self,
        viewer: &Viewer,
        id: &str,
        decision: Decision,
    ) -> Result<String, String> {
        let list = self.approvals.clone().ok_or("questions are not listed here")?;
        let all = self.read_questions().await;
        let mut own = all.iter().filter(|question| viewer.may_answer(question));
        let question = own.find(|question| question.id == id).ok_or("This question no longer waits.")?;
        let by = if viewer.name.is_empty() {
            "the page".to_owned()
        } else {
            format!("the page ({})", viewer.name)
        };
        let done = approvals::decide(list, question.clone(), decision, by).await;
        // The question is gone, or is answered: the next view shows it.
        *self.questions.locked() = None;
        done
    }
}

pub(crate) use approvals::Decision;

impl Viewer {
    fn may_answer(&self, question: &WaitingQuestion) -> bool {
        self.is_user || question.owner == Some(self.owner.0)
    }
}

/// The frame of every view. `waiting`: how many questions wait.
fn framed(
    view: View,
    viewer: &Viewer,
    (waiting, mark): (usize, &str),
    said: Option<&str>,
    content: &Html,
) -> String {
    let [title, path, word] = view.names();
    let mut html = begun(title);
    html.raw("<body data-view=\"").raw(word).raw("\" data-events=\"/ui/events?");
    match view {
        View::Run(number) => html.raw("run=").number(number),
        _ => html.raw("view=").raw(word),
    };
    html.raw("\" data-path=\"").raw(path);
    if let View::Run(number) = view {
        html.raw("/runs/").number(number);
    }
    html.raw("\">\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header class=\"top\"><strong>ptc</strong>");
    html.raw("<nav aria-label=\"Views\">");
    for one in View::MENU {
        let [title, path, _] = one.names();
        html.raw("<a href=\"").raw(path).raw("\"");
        if one == view || (one == View::Runs && matches!(view, View::Run(_))) {
            html.raw(" aria-current=\"page\"");
        }
        html.raw(">").raw(title);
        if one == View::Approvals {
            html.raw(" <span id=\"waiting\" class=\"badge\"").raw(if waiting == 0 { " hidden" } else { "" });
            html.raw(">").number(waiting as u64).raw("</span>");
        }
        html.raw("</a>");
    }
    html.raw("</nav><span class=\"who quiet\">").short(&viewer.name, 60);
    html.raw("</span><form method=\"post\" action=\"/ui/leave\">");
    hidden(&mut html, "csrf", &viewer.csrf);
    html.raw("<button>Leave</button></form></header>\n<p id=\"state\" role=\"status\" class=\"state\">");
    html.line(said.unwrap_or_default());
    html.raw("</p>\n<main id=\"main\" tabindex=\"-1\" data-mark=\"")
        .line(mark)
        .raw("\">\n")
        .piece(content)
        .raw("</main>\n</body>\n</html>\n");
    html.into_string()
}

/// A hidden field of a form.
fn hidden(html: &mut Html, name: &'static str, value: &str) {
    html.raw("<input type=\"hidden\" name=\"").raw(name).raw("\" value=\"").line(value).raw("\">");
}

fn begun(title: &'static str) -> Html {
    let mut html = Html::default();
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>").raw(title);
    html.raw(" · ptc</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.raw("<link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"/ui/page.css\">\n");
    html.raw("<script src=\"/ui/page.js\" defer></script>\n</head>\n");
    html
}

/// How a person gets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// With a link that the server writes to its log.
    pub(crate) by_link: bool,
    /// With a token.
    pub(crate) by_token: bool,
}

/// The document for a person who is not in yet.
pub(crate) fn entrance(entry: Entry, said: Option<&str>) -> String {
    let mut html = begun("Enter");
    html.raw(
        "<body>\n<main id=\"main\" class=\"narrow\">\n<h1>ptc</h1>\n<p role=\"status\" class=\"state\">",
    );
    html.line(said.unwrap_or_default()).raw("</p>\n");
    if entry.by_link {
        html.raw(
            "<p>This page is open to those who have a link from the server. A link works once.</p>\n\
             <form method=\"post\" action=\"/ui/link\"><button>Write a new link to the server's log</button></form>\n",
        );
    }
    if entry.by_token {
        html.raw(
            "<form method=\"post\" action=\"/ui/enter\"><p><label for=\"token\">Token of this server</label></p>\n\
             <p><input id=\"token\" name=\"token\" type=\"password\" required autocomplete=\"off\" size=\"50\"></p>\n\
             <p><button>Enter</button></p></form>\n\
             <p class=\"quiet\">You see the runs, questions and sessions of this token.</p>\n",
        );
    }
    html.raw("</main>\n</body>\n</html>\n");
    html.into_string()
}

/// The document after a link was used: it leads on, as a step of this site, so that the browser sends its cookie.
pub(crate) fn entered() -> String {
    let mut html = Html::default();
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>ptc</title>\n");
    html.raw("<meta http-equiv=\"refresh\" content=\"0;url=/ui\">\n<link rel=\"stylesheet\" href=\"/ui/page.css\">\n");
    html.raw(
        "</head>\n<body><main class=\"narrow\"><p><a href=\"/ui\">Go on</a></p></main></body>\n</html>\n",
    );
    html.into_string()
}
