//! Golden answers of the three response profiles. Regenerate with `INSTA_UPDATE=always cargo test -p ptc`.

use ptc_compiler::diagnostic::Diagnostic;
use ptc_mcp::protocol::plain::PlainCall;
use ptc_mcp::protocol::{Action, Handler, Session, Surface, frame};
use ptc_mcp::tool::EdgeReason;
use ptc_mcp::tool::caps::Profile;
use ptc_mcp::tool::profile::{ToolResult, apply};
use ptc_mcp::tool::record::Record;
use ptc_mcp::tool::schema::Schema;
use ptc_runtime::Now;
use ptc_runtime::limits::Limits;
use ptc_runtime::outcome::{
    Answer, CallFault, CallRecord, CallStatus, Completion, Effect, Failure, JsonRefusal, Outcome, Report,
    Usage,
};
use ptc_vm::{Reason, Span};
use serde_json::json;
use std::time::Duration;

fn call(tool: &str, status: CallStatus, result_bytes: Option<u64>) -> CallRecord {
    CallRecord {
        server: "shop".into(),
        tool: tool.into(),
        status,
        duration: Duration::from_millis(142),
        result_bytes,
        effect: Effect::Read,
    }
}

fn outcome(result: Result<Answer, Failure>) -> Outcome {
    let timeout = CallStatus::Error { reason: CallFault::Timeout, error: "no answer within 5000 ms".into() };
    Outcome {
        result,
        prints: vec!["first line".into(), "second line".into()],
        notes: Vec::new(),
        upstream_calls: vec![call("list", CallStatus::Ok, Some(48_122)), call("get", timeout, None)],
        usage: Usage {
            fuel: 1_234,
            peak_bytes: 5_678,
            duration: Duration::from_millis(150),
            upstream_calls: 2,
        },
    }
}

fn answer(text: &str, json: Option<Result<String, JsonRefusal>>) -> Answer {
    Answer {
        completion: Completion::Value,
        text: text.into(),
        truncated: false,
        text_bytes: text.len() as u64,
        is_nil: false,
        json,
    }
}

fn good() -> Outcome {
    outcome(Ok(answer("{:name \"Ada\" :total 3}", Some(Ok(r#"{"name":"Ada","total":3}"#.into())))))
}

fn bad() -> Outcome {
    let finding = Diagnostic::error(Reason::UnboundVar, Span::new(3, 7), "Undefined variable: fooo")
        .hint("Did you mean `foo`?");
    outcome(Err(Failure {
        reason: Reason::UnboundVar,
        message: "Undefined variable: fooo".into(),
        value: None,
        reports: vec![Report::of_diagnostic(&finding, "(+ fooo 1)")],
        more: 0,
    }))
}

fn show(result: &ToolResult) -> String {
    let structured = match &result.structured {
        Some(value) => serde_json::to_string_pretty(value).expect("JSON"),
        None => "none".into(),
    };
    format!("isError: {}\n--- text\n{}\n--- structuredContent\n{structured}", result.is_error, result.text)
}

fn golden(name: &str, record: &Record) {
    for profile in [Profile::Slim, Profile::Structured, Profile::Debug] {
        insta::assert_snapshot!(format!("{name}_{}", profile.name()), show(&apply(profile, record)));
    }
}

#[test]
fn an_answer() {
    golden("answer", &Record::of(good(), None));
}

#[test]
fn an_answer_with_a_schema() {
    let schema =
        Schema::parse(&json!({ "type": "object", "properties": { "total": { "type": "integer" } } }));
    golden("validated", &Record::of(good(), schema.ok().as_ref()));
}

#[test]
fn an_answer_that_does_not_match_its_schema() {
    let schema = Schema::parse(&json!({ "type": "array", "items": { "type": "string" } }));
    golden("mismatch", &Record::of(good(), schema.ok().as_ref()));
}

#[test]
fn notes_stand_below_the_text_and_in_the_feedback() {
    let note = "the discovery budget of 25 operations is used up".to_owned();
    let (mut good, mut bad) = (good(), bad());
    (good.prints, bad.prints) = (Vec::new(), Vec::new());
    (good.notes, bad.notes) = (vec![note.clone()], vec![note.clone()]);
    let (good, bad) = (Record::of(good, None), Record::of(bad, None));
    let text = format!("{{:name \"Ada\" :total 3}}\n\n[note: {note}]");
    assert_eq!(apply(Profile::Slim, &good).text, text);
    for profile in [Profile::Structured, Profile::Debug] {
        let structured = |record| apply(profile, record).structured.expect("structured");
        assert_eq!(structured(&good)["feedback"], format!("note: {note}"));
        let feedback = structured(&bad)["feedback"].to_string();
        assert!(feedback.contains("Did you mean") && feedback.contains(&note), "{feedback}");
    }
}

#[test]
fn a_failure() {
    golden("failure", &Record::of(bad(), None));
}

#[test]
fn a_program_that_called_fail() {
    let mut outcome = good();
    outcome.result = Err(Failure {
        reason: Reason::Fail,
        message: "{:why \"no stock\"}".into(),
        value: Some("{:why \"no stock\"}".into()),
        reports: vec![Report::new(Reason::Fail, "{:why \"no stock\"}")],
        more: 0,
    });
    golden("fail", &Record::of(outcome, None));
}

#[test]
fn a_refused_call() {
    golden("refused", &Record::refused(EdgeReason::ArgsError, "argument `program` is required"));
}

#[test]
fn a_long_answer_is_cut_and_says_so() {
    let long = "x".repeat(40_000);
    let refusal = Some(Err(JsonRefusal::TooLarge { bytes: 40_002 }));
    let mut outcome = outcome(Ok(answer(&long, refusal)));
    outcome.prints.clear();
    let record = Record::of(outcome, None);
    let slim = apply(Profile::Slim, &record);
    assert!(slim.text.ends_with(
        "x\n\n[truncated: 32768 of 40000 bytes; return less, for example with take, select-keys, count or a summary]"
    ));
    let structured = apply(Profile::Structured, &record).structured.expect("structured");
    assert_eq!(structured["truncated"], true);
    assert_eq!(structured["value_bytes"], 40_002);
    assert!(structured["value_hint"].is_string());
    let debug = apply(Profile::Debug, &record);
    assert_eq!(debug.structured.expect("structured")["result"], long);
}

#[test]
fn a_result_without_a_json_form_fails_validation() {
    let refusal = Some(Err(JsonRefusal::NotEncodable { path: "rows[0].ts".into() }));
    let record = Record::of(outcome(Ok(answer("#{}", refusal))), Some(&Schema::String));
    let text = apply(Profile::Slim, &record).text;
    assert!(
        text.starts_with("validation_error: validated value: non-JSON-encodable value at rows[0].ts"),
        "{text}"
    );
}

/// Prints, the answer and the data are as large as can be: no profile sends more than its bound. Bytes are
/// those of plain text, so nothing is escaped.
#[test]
fn every_profile_is_bounded() {
    let json = format!("[{}]", vec!["\"xxxxxxxxxx\""; 200_000].join(","));
    let mut outcome = outcome(Ok(answer(&"x".repeat(4 << 20), Some(Ok(json)))));
    outcome.prints = vec!["y".repeat(100); 100_000];
    outcome.upstream_calls = vec![call("list", CallStatus::Ok, Some(1)); 100_000];
    let schema = Schema::parse(&json!({ "type": "array", "items": { "type": "string" } })).expect("schema");
    for schema in [None, Some(&schema)] {
        let record = Record::of(outcome.clone(), schema);
        for (profile, bound) in
            [(Profile::Slim, 42 << 10), (Profile::Structured, 84 << 10), (Profile::Debug, 1 << 20)]
        {
            let result = apply(profile, &record);
            let structured = result.structured.map_or(0, |value| value.to_string().len());
            let bytes = result.text.len() + structured;
            assert!(bytes <= bound, "{profile:?}: {bytes} bytes");
            assert!(result.text.contains("truncated"), "{profile:?} says what it cut");
        }
    }
}

#[test]
fn an_error_after_side_effects_names_the_calls_made() {
    let mut outcome = bad();
    outcome.upstream_calls[0].effect = Effect::Write;
    let record = Record::of(outcome, None);
    let slim = apply(Profile::Slim, &record);
    assert!(slim.text.contains("calls already made, which are not undone: shop.list"), "{}", slim.text);
    let structured = apply(Profile::Structured, &record).structured.expect("data");
    assert_eq!(
        structured["calls_made"],
        json!([{ "server": "shop", "tool": "list", "effect": "write", "count": 1 }])
    );
    assert_eq!(structured["prints"], json!(["first line", "second line"]));
}

#[test]
fn a_plain_call_runs_and_is_answered_as_by_the_general_way() {
    let handshake = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"lisp_eval","arguments":{"program":"(+ 1 2)"}}}"#;
    let stateless = handshake.replace(
        r#""arguments""#,
        r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"arguments""#,
    );
    // What the runtime makes of a whole text with nothing beside it.
    let is_text = |outcome: &Outcome| match &outcome.result {
        Ok(answer) => {
            let is_whole = !answer.truncated && answer.text.len() <= Profile::Slim.caps().result_bytes;
            is_whole && outcome.prints.is_empty() && outcome.notes.is_empty()
        }
        Err(_) => false,
    };
    let quiet =
        |text: &str| Outcome { prints: Vec::new(), ..outcome(Ok(answer(text, Some(Ok("1".into()))))) };
    let mut cut = quiet("abc");
    if let Ok(answer) = &mut cut.result {
        answer.truncated = true;
    }
    let mut noted = quiet("3");
    noted.notes.push("a note".into());
    let outcomes =
        [quiet("3"), quiet("\"two\\n\u{e9}\u{1}\""), quiet(&"x".repeat(200_000)), cut, noted, good(), bad()];
    for profile in [Profile::Slim, Profile::Structured, Profile::Debug] {
        let surface = Surface {
            tools: Vec::new(),
            changes: false,
            instructions: String::new(),
            profile,
            limits: Limits::default(),
        };
        let handler = Handler::new(surface).expect("handler");
        let session = Session::default();
        let lines = [handshake.as_bytes(), stateless.as_bytes()];
        for (line, outcome) in
            lines.iter().flat_map(|line| outcomes.iter().map(move |outcome| (line, outcome)))
        {
            let call = PlainCall::read(line).expect("plain");
            let general = handler.handle(frame::parse(line).expect("message"), &mut Session::default());
            let Action::Run(general) = general else { panic!("no run") };
            let options = handler.plain_options(&call, &session).expect("usual").clone();
            let timed = ptc_runtime::options::RunOptions { timed: true, ..options };
            assert_eq!(format!("{timed:?}"), format!("{:?}", general.options));
            assert_eq!(call.program, general.program);
            let mut out = Vec::new();
            let ended = match &outcome.result {
                Ok(answer) if handler.shows_text_alone() && is_text(outcome) => Now::Text(&answer.text),
                _ => Now::Outcome(Box::new(outcome.clone())),
            };
            handler.finish_plain(&call, ended, &mut out);
            let reply = handler.finish(&general.ticket, outcome.clone());
            assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(reply.as_bytes()));
        }
    }
}
