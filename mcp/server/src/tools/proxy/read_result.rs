//! The action `readresult` of the tool `proxy-dispatch`, which reads parts of a result that was too large to return and
//! is kept in a file. It opens no other files.

use super::answer::{ProxyAnswer, estimated_tokens};
use super::fields::CallFields;
use super::retained::{Caller, ClientResults};
use ptc_base::spill::{DEFAULT_LINES, Grep, GrepMatches, LookError, MOST_CONTEXT, SpillPart, Spilled, Stat};
use ptc_base::tasks::{StopFlag, read_blocking};
use serde_json::json;
use std::sync::Arc;

/// Most bytes of an answer by default.
const USUAL_BYTES: usize = 2 << 20;

/// Most bytes of an answer in any case, because answers are held in memory.
const MOST_BYTES: usize = 64 << 20;

/// Runs an operation on a result.
pub(super) async fn read_result(
    results: &ClientResults,
    caller: Caller,
    given: &CallFields,
) -> Result<ProxyAnswer, String> {
    let name = given.text("resultFile").unwrap_or_default();
    let spilled = results.find(caller, &name).ok_or_else(|| {
        format!("there is no kept result {name:?}: it is the `resultFile` of a call, and goes when newer ones need its room")
    })?;
    let op = given.op;
    let most = match given.number("maxBytes") {
        None if op != "read" => USUAL_BYTES,
        None | Some(0) => MOST_BYTES,
        Some(most) => usize::try_from(most).unwrap_or(MOST_BYTES).min(MOST_BYTES),
    };
    let lines = given.number("lines").unwrap_or(DEFAULT_LINES);
    let (from, to) = (given.number("fromLine").unwrap_or(1), given.number("toLine").unwrap_or(u64::MAX));
    if from > to {
        return Err(format!("fromLine {from} is after toLine {to}"));
    }
    let pattern = given.text("pattern").unwrap_or_default();
    let context = usize::try_from(given.number("context").unwrap_or(0).min(MOST_CONTEXT)).unwrap_or(0);
    let look = move |stop: &StopFlag| {
        let part = match op {
            "head" => spilled.head(lines, most),
            "tail" => spilled.tail(lines, most),
            "slice" => spilled.slice(from, to, most),
            "read" => spilled.read(most),
            "grep" => {
                let found = spilled
                    .grep(&Grep { pattern, context, most_bytes: most }, stop)
                    .map_err(|error| error.to_string())?;
                return Ok(matches(found, spilled.stat()));
            }
            _ if spilled.is_gone() => Err(LookError::Gone),
            _ => return Ok(stat(&spilled)),
        };
        part.map(|part| shown(&spilled, part)).map_err(|error| error.to_string())
    };
    let looked: Result<ProxyAnswer, String> =
        read_blocking(look).await.unwrap_or_else(|| Err("the result could not be read".to_owned()));
    Ok(looked?.with("action", "readresult").with("op", op).with("resultFile", name))
}

fn stat(spilled: &Arc<Spilled>) -> ProxyAnswer {
    let stat = spilled.stat();
    let data = json!({ "byteSize": stat.bytes, "lineCount": stat.lines,
        "estimatedTokens": estimated_tokens(stat.bytes) });
    ProxyAnswer::data(&data)
}

/// Shows lines, or the beginning. The text also says what is missing, because many hosts show models nothing
/// else.
fn shown(spilled: &Spilled, part: SpillPart) -> ProxyAnswer {
    let SpillPart { text, truncated: is_cut, from_line } = part;
    let Stat { bytes, lines } = spilled.stat();
    let missing = match (is_cut, text.is_empty()) {
        (true, _) => Some(format!(
            "[cut: {} bytes are shown, of a result of {bytes} bytes; a larger maxBytes (0: no limit) or a slice shows more]",
            text.len()
        )),
        (false, true) if bytes == 0 => Some("[the result is empty]".to_owned()),
        (false, true) => Some(format!("[no line {from_line}: the result has {}]", count(lines, "line"))),
        (false, false) => None,
    };
    let answer =
        ProxyAnswer::text(with_note(text, missing)).with("fromLine", from_line).with("lineCount", lines);
    truncated(answer, is_cut)
}

fn matches(found: GrepMatches, stat: Stat) -> ProxyAnswer {
    let GrepMatches { text, matches, truncated: is_cut } = found;
    let missing = match (is_cut, matches) {
        (true, _) => {
            let all = count(matches, "matching line");
            Some(format!(
                "[cut: of {all} not all are shown; a narrower pattern or a larger maxBytes shows more]"
            ))
        }
        (false, 0) => Some(format!("[no match in {}]", count(stat.lines, "line"))),
        (false, _) => None,
    };
    truncated(ProxyAnswer::text(with_note(text, missing)).with("matchCount", matches), is_cut)
}

fn count(number: u64, what: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {what}{end}")
}

fn with_note(mut text: String, note: Option<String>) -> String {
    if let Some(note) = note {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&note);
    }
    text
}

fn truncated(answer: ProxyAnswer, is_cut: bool) -> ProxyAnswer {
    if is_cut { answer.with("truncated", true) } else { answer }
}
