//! Makes the answer to the client from the [`Record`] of a run: text, structured data or data for debugging, as much as
//! the response profile of the tool says.

use super::caps::{COUNTED_BYTES, Caps, Prints, Profile, cut};
use super::effects;
use super::outcome::{call_fault, call_json, metrics, usage_json};
use super::record::{ErrorEnding, EvalEnding, Record, Validated};
use super::{CallSummary, Content, ToolAnswer};
use ptc_calls::outcome::{JsonRefusal, Outcome, RenderedValue};
use ptc_vm::print::brief;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Applies a profile.
pub fn apply<'r>(profile: Profile, record: &'r Record<'_>) -> ToolAnswer<'r> {
    let caps = profile.caps();
    let (shown, structured) = match profile {
        Profile::Slim => {
            let validated = match &record.ending {
                EvalEnding::Ok { validated: Some(validated), .. } => Some(slim_validated(validated, &caps)),
                _ => None,
            };
            (text(record, &caps), validated)
        }
        Profile::Structured => (text(record, &caps), Some(structured(record, &caps).into())),
        Profile::Debug => {
            let full = Value::from(full(record, &caps));
            (full.to_string().into(), Some(full))
        }
    };
    let content = match &record.ending {
        EvalEnding::Ok { answer, .. } if !answer.media.is_empty() => Content::Text(shown).with(&answer.media),
        _ => Content::Text(shown),
    };
    let is_error = matches!(record.ending, EvalEnding::Error(_));
    let summary = CallSummary::from_record(record);
    ToolAnswer { is_error, structured, summary, ..ToolAnswer::new(content) }
}

/// Applies a profile to a run with a documented text. The profile only decides on the data next to the text.
/// The text has a limit of its own, which also applies to the same texts in the data. `more` is data of the
/// tool that is part of the text; only the debug profile adds it to the data.
pub fn apply_with_text<'o>(
    profile: Profile,
    record: &Record<'o>,
    text: String,
    more: Map<String, Value>,
) -> ToolAnswer<'o> {
    let caps = profile.caps();
    let answer_bytes = caps.answer_bytes + text.len();
    let caps = Caps { result_bytes: text.len(), message_bytes: text.len(), answer_bytes, ..caps };
    let is_error = matches!(record.ending, EvalEnding::Error(_));
    let (text, structured) = match profile {
        Profile::Slim => (text, None),
        Profile::Structured => (text, Some(structured(record, &caps).into())),
        Profile::Debug => {
            let mut full = full(record, &caps);
            full.extend(more);
            let full = Value::from(full);
            (full.to_string(), Some(full))
        }
    };
    let summary = CallSummary::from_record(record);
    ToolAnswer { is_error, structured, summary, ..ToolAnswer::new(Content::Text(text.into())) }
}

/// The text for the model.
fn text<'r>(record: &'r Record<'_>, caps: &Caps) -> Cow<'r, str> {
    let prints = Prints::of_run(record.run.map_or(&[], |run| &run.prints));
    let result_bytes = prints.room_of_result(caps);
    let mut note = None;
    let main = match &record.ending {
        EvalEnding::Ok { answer, validated } => match validated {
            Some(validated) if validated.json.len() <= caps.value_bytes => {
                brief(&validated.json).map_or(Cow::Borrowed(validated.json.as_str()), Cow::Owned)
            }
            _ => {
                note = truncation_note(answer, result_bytes);
                cut(&answer.text, result_bytes).0
            }
        },
        EvalEnding::Error(error) => error_text(error, record.run, caps).into(),
    };
    let failed = matches!(record.ending, EvalEnding::Error(_));
    let notes = record.run.map_or(&[][..], |run| run.notes.as_slice());
    let (prints, prints_note) = prints.shown(main.len(), caps);
    // A text without quotes and escapes is marked, so that it is not taken for data.
    let mark = match &record.ending {
        EvalEnding::Ok { answer, .. } if answer.is_plain => "<text>\n",
        EvalEnding::Ok { .. } if !prints.is_empty() => "<result>\n",
        _ => "",
    };
    if mark.is_empty() && prints.is_empty() && note.is_none() && notes.is_empty() {
        return main;
    }
    let mut text = String::with_capacity(main.len() + 64);
    if prints.is_empty() {
        text.push_str(mark);
        text.push_str(&main);
    } else if failed {
        text.push_str(&format!("{main}\n\n<prints>\n{}", prints.join("\n")));
    } else {
        text.push_str(&format!("<prints>\n{}\n\n{mark}{main}", prints.join("\n")));
    }
    if let Some(note) = prints_note {
        text.push_str(&format!("\n\n[prints cut: {note}]"));
    }
    if let Some(note) = note {
        text.push_str(&note);
    }
    for note in notes {
        text.push_str(&format!("\n\n[note: {}]", cut(note, caps.message_bytes).0));
    }
    text.into()
}

fn truncation_note(answer: &RenderedValue, result_bytes: usize) -> Option<String> {
    let (shown, cut_here) = cut(&answer.text, result_bytes);
    (answer.truncated || cut_here).then(|| {
        format!(
            "\n\n[truncated: {} of {} bytes; return less, for example with take, select-keys, count or a summary]",
            shown.len(),
            counted(answer.text_bytes)
        )
    })
}

/// A size that is counted up to [`COUNTED_BYTES`].
fn counted(bytes: u64) -> String {
    let most = COUNTED_BYTES as u64;
    if bytes > most { format!("more than {most}") } else { bytes.to_string() }
}

fn error_text(error: &ErrorEnding<'_>, run: Option<&Outcome>, caps: &Caps) -> String {
    let (detail, _) = cut(&error.detail, caps.message_bytes);
    let mut text = if detail.strip_prefix(error.reason).is_some_and(|rest| rest.starts_with(": ")) {
        detail.into_owned()
    } else {
        format!("{}: {detail}", error.reason)
    };
    let failed =
        run.and_then(|run| run.upstream_calls.iter().find_map(|call| Some((call, call_fault(call)?))));
    if let Some((call, (reason, _))) = failed {
        text.push_str(&format!("\nupstream {}.{} failed: {reason}", call.server, call.tool));
    }
    if let Some(line) = run.and_then(|run| effects::line(&run.upstream_calls)) {
        text.push('\n');
        text.push_str(&line);
    }
    text
}

fn slim_validated(validated: &Validated, caps: &Caps) -> Value {
    let mut map = Map::new();
    put_validated(&mut map, validated, caps);
    map.into()
}

fn put_validated(map: &mut Map<String, Value>, validated: &Validated, caps: &Caps) {
    if validated.json.len() <= caps.value_bytes {
        map.insert("validated".into(), validated.value.clone());
    } else {
        map.insert("validated_bytes".into(), validated.json.len().into());
        map.insert("truncated".into(), true.into());
    }
}

fn structured(record: &Record<'_>, caps: &Caps) -> Map<String, Value> {
    let mut map = Map::new();
    match &record.ending {
        EvalEnding::Ok { answer, validated } => {
            map.insert("status".into(), "ok".into());
            let result_bytes =
                record.run.map_or(caps.result_bytes, |run| Prints::of_run(&run.prints).room_of_result(caps));
            let (shown, cut_here) = cut(&answer.text, result_bytes);
            map.insert("result".into(), shown.into());
            // A validated value is the same data; once is enough.
            match validated {
                Some(validated) => put_validated(&mut map, validated, caps),
                None => put_value(&mut map, answer, caps),
            }
            if answer.truncated || cut_here {
                map.insert("truncated".into(), true.into());
            }
        }
        EvalEnding::Error(error) => {
            put_error(&mut map, error, caps);
            let calls = record.run.map(|run| effects::effectful(&run.upstream_calls)).unwrap_or_default();
            if !calls.is_empty() {
                map.insert("calls_made".into(), effects::as_json(&calls));
            }
        }
    }
    if let Some(run) = record.run.filter(|run| !run.prints.is_empty()) {
        put_prints(&mut map, run, caps);
    }
    if let Some(run) = record.run.filter(|run| !run.notes.is_empty()) {
        put_notes(&mut map, &run.notes, caps);
    }
    map
}

/// Adds notes to the feedback, after what it says about an error.
fn put_notes(map: &mut Map<String, Value>, notes: &[String], caps: &Caps) {
    let said = map.get("feedback").and_then(Value::as_str).map(str::to_owned);
    let lines: Vec<String> =
        said.into_iter().chain(notes.iter().map(|note| format!("note: {note}"))).collect();
    map.insert("feedback".into(), cut(&lines.join("\n"), caps.message_bytes).0.into());
}

/// Adds the JSON form of the result, if it has one and is small enough.
fn put_value(map: &mut Map<String, Value>, answer: &RenderedValue, caps: &Caps) {
    const NARROW: &str = "too large to show; narrow it with take, select-keys, count or a summary";
    match &answer.json {
        Some(Ok(json)) if json.len() <= caps.value_bytes => {
            if let Ok(value) = serde_json::from_str(json) {
                map.insert("value".into(), value);
            }
        }
        Some(Ok(json)) => {
            map.insert("value_bytes".into(), json.len().into());
            map.insert("value_hint".into(), NARROW.into());
        }
        Some(Err(JsonRefusal::TooLarge { bytes })) => {
            map.insert("value_bytes".into(), (*bytes).into());
            map.insert("value_hint".into(), NARROW.into());
        }
        Some(Err(JsonRefusal::NotEncodable { path })) => {
            map.insert("value_hint".into(), format!("not JSON-encodable at {path}").into());
        }
        Some(Err(clash @ JsonRefusal::SameName { .. })) => {
            map.insert("value_hint".into(), format!("not JSON-encodable: {clash}").into());
        }
        None => {}
    }
}

fn put_error(map: &mut Map<String, Value>, error: &ErrorEnding<'_>, caps: &Caps) {
    map.insert("status".into(), "error".into());
    map.insert("reason".into(), error.reason.into());
    if let Some(kind) = error.kind {
        map.insert("error_kind".into(), kind.into());
    }
    map.insert("message".into(), cut(&error.message, caps.message_bytes).0.into());
    map.insert("feedback".into(), cut(&error.detail, caps.message_bytes).0.into());
    if let Some((line, column)) = error.position {
        map.insert("line".into(), line.into());
        map.insert("column".into(), column.into());
    }
    if let Some(value) = &error.value {
        map.insert("result".into(), cut(value, caps.result_bytes).0.into());
    }
}

fn put_prints(map: &mut Map<String, Value>, run: &Outcome, caps: &Caps) {
    let result = map.get("result").and_then(Value::as_str).map_or(0, str::len);
    let (prints, note) = Prints::of_run(&run.prints).shown(result, caps);
    map.insert("prints".into(), json!(prints));
    if let Some(note) = note {
        map.insert("prints_truncated".into(), true.into());
        map.insert("prints_hint".into(), note.into());
        map.insert("truncated".into(), true.into());
    }
}

fn full(record: &Record<'_>, caps: &Caps) -> Map<String, Value> {
    let mut map = structured(record, caps);
    for (key, default) in [("prints", json!([])), ("feedback", json!("")), ("truncated", json!(false))] {
        map.entry(key).or_insert(default);
    }
    if let Some(run) = record.run {
        let calls: Vec<Value> = run.upstream_calls.iter().take(caps.calls).map(call_json).collect();
        if (calls.len() as u64) < run.call_totals.count() {
            map.insert("upstream_calls_total".into(), run.call_totals.count().into());
        }
        map.insert("upstream_calls".into(), calls.into());
        let final_bytes = match &record.ending {
            EvalEnding::Ok { .. } => map.get("result").and_then(Value::as_str).map_or(0, str::len),
            EvalEnding::Error(_) => 0,
        };
        let metrics = serde_json::to_value(metrics(run, final_bytes as u64)).unwrap_or_default();
        map.insert("ptc_metrics".into(), metrics);
        map.insert("usage".into(), usage_json(run));
        if !run.stderr.is_empty() {
            map.insert("stderr".into(), Prints::of_run(&run.stderr).shown(0, caps).0.into());
        }
        if let Some(trace) = &run.prelude_trace {
            map.insert("prelude_trace".into(), (**trace).clone());
        }
    }
    map
}
