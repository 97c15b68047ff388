//! `readresult`: parts of a result that is kept. Only such results are read, by their names; nothing is opened here.

use super::answer::{ProxyAnswer, estimated_tokens};
use super::fields::Given;
use super::kept::{Caller, ClientResults};
use ptc_runtime::spill::{DEFAULT_LINES, Grep, KeptPart, LookError, MOST_CONTEXT, Spilled};
use ptc_runtime::tasks::{StopFlag, look_aside};
use serde_json::json;
use std::sync::Arc;

/// Most bytes of an answer: it has to be carried.
const MOST_BYTES: usize = 2 << 20;

/// Looks at a result.
pub(super) async fn read_result(
    results: &ClientResults,
    caller: Caller,
    given: &Given,
) -> Result<ProxyAnswer, String> {
    let name = given.text("resultFile").unwrap_or_default();
    let spilled = results.find(caller, &name).ok_or_else(|| {
        format!("there is no kept result {name:?}: it is the `resultFile` of a call, and goes when newer ones need its room")
    })?;
    let op = given.op();
    let most = match given.number("maxBytes") {
        None | Some(0) => MOST_BYTES,
        Some(most) => usize::try_from(most).unwrap_or(MOST_BYTES).min(MOST_BYTES),
    };
    let lines = given.number("lines").unwrap_or(DEFAULT_LINES);
    let (from, to) = (given.number("fromLine").unwrap_or(1), given.number("toLine").unwrap_or(u64::MAX));
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
                let answer = ProxyAnswer::text(found.text).with("matchCount", found.matches);
                return Ok(truncated(answer, found.truncated));
            }
            _ if spilled.is_gone() => Err(LookError::Gone),
            _ => return Ok(stat(&spilled)),
        };
        part.map(|part| shown(&spilled, part)).map_err(|error| error.to_string())
    };
    let looked: Result<ProxyAnswer, String> =
        look_aside(look).await.unwrap_or_else(|| Err("the result could not be read".to_owned()));
    Ok(looked?.with("action", "readresult").with("op", op).with("resultFile", name))
}

fn stat(spilled: &Arc<Spilled>) -> ProxyAnswer {
    let stat = spilled.stat();
    let data = json!({ "byteSize": stat.bytes, "lineCount": stat.lines,
        "estimatedTokens": estimated_tokens(stat.bytes) });
    ProxyAnswer::data(&data)
}

fn shown(spilled: &Spilled, part: KeptPart) -> ProxyAnswer {
    let lines = spilled.stat().lines;
    let answer = ProxyAnswer::text(part.text).with("fromLine", part.from_line).with("lineCount", lines);
    truncated(answer, part.truncated)
}

fn truncated(answer: ProxyAnswer, is_cut: bool) -> ProxyAnswer {
    if is_cut { answer.with("truncated", true) } else { answer }
}
