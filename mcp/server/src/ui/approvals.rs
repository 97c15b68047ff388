//! Shows on the web page (`--ui`) the calls that wait for a person's approval, and passes on the person's decision.

use super::html::Html;
use super::{Viewer, hidden};
use ptc_calls::policy::{ApprovalChoice, ApprovalList, WaitingQuestion};
use std::time::{SystemTime, UNIX_EPOCH};

/// Most questions that are shown.
const MOST: usize = 50;

/// Most bytes of a question. A question that is longer cannot be approved here, because it is not read as a whole.
const QUESTION_BYTES: usize = 64 << 10;

/// What a person decides, as the form says it.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    /// `approve`, `any` or `deny`.
    pub(crate) choice: String,
    /// The digest of the question that was shown.
    pub(crate) digest: String,
}

/// The view at this moment. Without a list of questions it says how there is one.
pub(super) fn shown(is_on: bool, waiting: &[WaitingQuestion], viewer: &Viewer) -> Html {
    let mut html = Html::default();
    html.raw("<h1>Approvals</h1>\n");
    if !is_on {
        html.raw(
            "<p>No question is listed here: there is no state folder (<code>HOME</code> is not set).</p>\n",
        );
        return html;
    }
    html.raw("<div data-part=\"questions\">\n");
    if waiting.is_empty() {
        html.raw("<p class=\"quiet\">No call waits.</p>\n");
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    // An id is the name of a file; one that is none of ours has no address here.
    let has_address =
        |question: &&WaitingQuestion| question.id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    for question in waiting.iter().filter(has_address).take(MOST) {
        one(&mut html, question, viewer, now);
    }
    if waiting.len() > MOST {
        html.raw("<p>").number((waiting.len() - MOST) as u64).raw(" more wait.</p>\n");
    }
    html.raw("</div>\n");
    html
}

fn one(html: &mut Html, question: &WaitingQuestion, viewer: &Viewer, now: u64) {
    let WaitingQuestion { id, call, calls, text, digest, asked, until, offers_any, .. } = question;
    let title = |html: &mut Html| {
        html.short(call, 200);
    };
    html.raw("<article class=\"question\" id=\"q").line(id).raw("\"><h2>");
    title(html);
    if *calls > 1 {
        html.raw(" (").number(*calls as u64).raw(" calls)");
    }
    html.raw("</h2><p class=\"quiet\">asked ").number(now.saturating_sub(*asked)).raw(" s ago, waits ");
    html.number(until.saturating_sub(now)).raw(" s more</p>\n<pre tabindex=\"0\">");
    html.cut(text, QUESTION_BYTES).raw("</pre>\n<form method=\"post\" action=\"/ui/approvals/").line(id);
    html.raw("\">");
    hidden(html, "csrf", &viewer.csrf);
    hidden(html, "digest", digest);
    let button = |html: &mut Html, value: &'static str, words: &'static str, class: &'static str| {
        html.raw("<button name=\"choice\" value=\"").raw(value).raw("\" class=\"").raw(class).raw("\">");
        html.raw(words).raw("<span class=\"unseen\"> ");
        title(html);
        html.raw("</span></button> ");
    };
    if text.len() <= QUESTION_BYTES {
        button(html, "approve", "Approve once", "yes");
        if *offers_any {
            button(html, "any", "Approve, also with computed arguments", "yes");
        }
    } else {
        html.raw(
            "<p>The question is too long for this page: <code>ptc approvals show</code> has all of it.</p>",
        );
    }
    button(html, "deny", "Deny", "no");
    html.raw("</form></article>\n");
}

/// Answers a question.
///
/// # Errors
/// Why it is not answered.
pub(super) async fn decide(
    list: ApprovalList,
    question: WaitingQuestion,
    decision: Decision,
    by: String,
) -> Result<String, String> {
    let choice = match &*decision.choice {
        "approve" => ApprovalChoice::Approve,
        "any" => ApprovalChoice::ApproveAny,
        "deny" => ApprovalChoice::Deny,
        _ => return Err("There is no such choice.".to_owned()),
    };
    if decision.digest != question.digest {
        return Err("The question is not the one that was shown.".to_owned());
    }
    if choice != ApprovalChoice::Deny && question.text.len() > QUESTION_BYTES {
        return Err("The question is too long for this page.".to_owned());
    }
    let word = if choice == ApprovalChoice::Deny { "Denied" } else { "Approved" };
    tracing::info!(question = question.id, call = question.call, decision = word, by, "decided on the page");
    let done = format!("{word}: {}", question.call);
    match list.answer(&question, choice, &by).await {
        Ok(()) => Ok(done),
        Err(error) => Err(format!("It is not answered: {error}")),
    }
}
