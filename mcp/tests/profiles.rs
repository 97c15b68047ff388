//! Golden answers of the three response profiles. Regenerate with `INSTA_UPDATE=always cargo test -p ptc-mcp`.

use ptc_calls::outcome::{
    CallFault, CallRecord, CallStatus, Effect, Failure, JsonRefusal, Media, MediaKind, Outcome,
    RenderedValue, Report, Usage,
};
use ptc_calls::schema::output::Schema;
use ptc_compiler::diagnostic::Diagnostic;
use ptc_server::answer::caps::Profile;
use ptc_server::answer::profile::apply;
use ptc_server::answer::record::Record;
use ptc_server::answer::{Content, RefusalReason, ToolAnswer};
use ptc_vm::{Reason, Span};
use serde_json::json;
use std::time::Duration;

fn call(tool: &str, status: CallStatus, result_bytes: Option<u64>) -> CallRecord {
    CallRecord {
        server: "shop".into(),
        tool: tool.into(),
        status,
        begun: Duration::ZERO,
        duration: Duration::from_millis(142),
        result_bytes,
        effect: Effect::Read,
        arguments_hash: None,
        cached: false,
        ruling: None,
        number: None,
        place: None,
    }
}

fn outcome(result: Result<RenderedValue, Failure>) -> Outcome {
    let timeout = CallStatus::Error { reason: CallFault::Timeout, error: "no answer within 5000 ms".into() };
    let upstream_calls = vec![call("list", CallStatus::Ok, Some(48_122)), call("get", timeout, None)];
    Outcome {
        result,
        prints: vec!["first line".into(), "second line".into()],
        notes: Vec::new(),
        prelude_trace: None,
        call_totals: upstream_calls.iter().collect(),
        upstream_calls,
        stderr: Vec::new(),
        usage: Usage {
            fuel: Some(1_234),
            peak_bytes: 5_678,
            duration: Duration::from_millis(150),
            upstream_calls: 2,
        },
    }
}

fn answer(text: &str, json: Option<Result<String, JsonRefusal>>) -> RenderedValue {
    RenderedValue { json, ..RenderedValue::from_text(text.into()) }
}

fn good() -> Outcome {
    outcome(Ok(answer("{:name \"Ada\" :total 3}", Some(Ok(r#"{"name":"Ada","total":3}"#.into())))))
}

fn bad() -> Outcome {
    let finding = Diagnostic::error(Reason::UnboundVar, Span::new(3, 7), "Undefined variable: fooo")
        .hint("Did you mean `foo`?");
    outcome(Err(Failure {
        reason: Reason::UnboundVar.into(),
        message: "Undefined variable: fooo".into(),
        value: None,
        reports: vec![Report::from_diagnostic(&finding, "(+ fooo 1)")],
        more: 0,
    }))
}

fn text<'r>(result: &'r ToolAnswer<'_>) -> &'r str {
    match &result.content {
        Content::Text(text) => text.as_ref(),
        Content::Blocks(_) | Content::Extended { .. } | Content::InputRequired { .. } => {
            panic!("a run is told as text")
        }
    }
}

fn show(result: &ToolAnswer<'_>) -> String {
    let structured = match &result.structured {
        Some(value) => serde_json::to_string_pretty(value).expect("JSON"),
        None => "none".into(),
    };
    format!("isError: {}\n--- text\n{}\n--- structuredContent\n{structured}", result.is_error, text(result))
}

fn golden(name: &str, record: &Record<'_>) {
    for profile in [Profile::Slim, Profile::Structured, Profile::Debug] {
        insta::assert_snapshot!(format!("{name}_{}", profile.name()), show(&apply(profile, record)));
    }
}

#[test]
fn an_answer() {
    golden("answer", &Record::from_outcome(&good(), None));
}

#[test]
fn an_answer_with_a_schema() {
    let schema =
        Schema::parse(&json!({ "type": "object", "properties": { "total": { "type": "integer" } } }));
    golden("validated", &Record::from_outcome(&good(), schema.ok().as_ref()));
}

#[test]
fn an_answer_that_does_not_match_its_schema() {
    let schema = Schema::parse(&json!({ "type": "array", "items": { "type": "string" } }));
    golden("mismatch", &Record::from_outcome(&good(), schema.ok().as_ref()));
}

#[test]
fn notes_stand_below_the_text_and_in_the_feedback() {
    let note = "the discovery budget of 25 operations is used up".to_owned();
    let (mut good, mut bad) = (good(), bad());
    (good.prints, bad.prints) = (Vec::new(), Vec::new());
    (good.notes, bad.notes) = (vec![note.clone()], vec![note.clone()]);
    let (good, bad) = (Record::from_outcome(&good, None), Record::from_outcome(&bad, None));
    let shown = format!("{{:name \"Ada\" :total 3}}\n\n[note: {note}]");
    assert_eq!(text(&apply(Profile::Slim, &good)), shown);
    for profile in [Profile::Structured, Profile::Debug] {
        let structured = |record| apply(profile, record).structured.expect("structured");
        assert_eq!(structured(&good)["feedback"], format!("note: {note}"));
        let feedback = structured(&bad)["feedback"].to_string();
        assert!(feedback.contains("Did you mean") && feedback.contains(&note), "{feedback}");
    }
}

#[test]
fn images_stand_after_the_text() {
    let image = Media { kind: MediaKind::Image, data: "AAAA".into(), mime_type: "image/png".into() };
    let mut outcome = good();
    if let Ok(answer) = &mut outcome.result {
        answer.media = vec![image];
    }
    let plain = good();
    for profile in Profile::ALL {
        let [plain, seen] = [&plain, &outcome].map(|outcome| Record::from_outcome(outcome, None));
        let text = json!(text(&apply(profile, &plain)));
        let Content::Blocks(blocks) = apply(profile, &seen).content else { panic!("no blocks: {profile:?}") };
        let blocks: serde_json::Value = serde_json::from_str(blocks.get()).expect("JSON");
        let image = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" });
        assert_eq!(blocks, json!([{ "type": "text", "text": text }, image]));
    }
}

#[test]
fn base64_never_fills_a_text() {
    let letters: String = ('a'..='z').chain('A'..='Z').chain('0'..='9').cycle().take(5_000).collect();
    let mut outcome = good();
    outcome.prints = vec![letters.clone(), "short".into()];
    let schema = Schema::parse(&json!({ "type": "object", "additionalProperties": true })).expect("a schema");
    if let Ok(answer) = &mut outcome.result {
        answer.json = Some(Ok(json!({ "data": letters }).to_string()));
    }
    let record = Record::from_outcome(&outcome, Some(&schema));
    let result = apply(Profile::Slim, &record);
    let short = format!("{}…[5000 bytes of base64]", &letters[..24]);
    assert_eq!(text(&result), format!("<prints>\n{short}\nshort\n\n<result>\n{{\"data\":\"{short}\"}}"));
    // A schema's data is never shortened.
    assert_eq!(result.structured, Some(json!({ "validated": { "data": letters } })));
}

#[test]
fn a_failure() {
    golden("failure", &Record::from_outcome(&bad(), None));
}

#[test]
fn a_program_that_called_fail() {
    let mut outcome = good();
    outcome.result = Err(Failure {
        reason: Reason::Fail.into(),
        message: "{:why \"no stock\"}".into(),
        value: Some("{:why \"no stock\"}".into()),
        reports: vec![Report::new(Reason::Fail, "{:why \"no stock\"}")],
        more: 0,
    });
    golden("fail", &Record::from_outcome(&outcome, None));
}

#[test]
fn a_refused_call() {
    golden("refused", &Record::refused(RefusalReason::ArgsError, "argument `program` is required"));
}

#[test]
fn a_long_answer_is_cut_and_says_so() {
    let long = "x".repeat(40_000);
    let refusal = Some(Err(JsonRefusal::TooLarge { bytes: 40_002 }));
    let mut outcome = outcome(Ok(answer(&long, refusal)));
    outcome.prints.clear();
    let record = Record::from_outcome(&outcome, None);
    let slim = apply(Profile::Slim, &record);
    assert!(text(&slim).ends_with(
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
    let outcome = outcome(Ok(answer("#{}", refusal)));
    let record = Record::from_outcome(&outcome, Some(&Schema::String));
    let slim = apply(Profile::Slim, &record);
    let shown = text(&slim);
    assert!(
        shown.starts_with("validation_error: validated value: non-JSON-encodable value at rows[0].ts"),
        "{shown}"
    );
}

/// With prints, answer and data of the largest size, no profile exceeds its limit. The bytes are those of plain
/// text, so nothing is escaped.
#[test]
fn every_profile_is_bounded() {
    let json = format!("[{}]", vec!["\"xxxxxxxxxx\""; 200_000].join(","));
    let mut outcome = outcome(Ok(answer(&"x".repeat(4 << 20), Some(Ok(json)))));
    outcome.prints = vec!["y".repeat(100); 100_000];
    outcome.upstream_calls = vec![call("list", CallStatus::Ok, Some(1)); 100_000];
    let schema = Schema::parse(&json!({ "type": "array", "items": { "type": "string" } })).expect("schema");
    for schema in [None, Some(&schema)] {
        let record = Record::from_outcome(&outcome, schema);
        for (profile, bound) in
            [(Profile::Slim, 42 << 10), (Profile::Structured, 84 << 10), (Profile::Debug, 1 << 20)]
        {
            let result = apply(profile, &record);
            let structured = result.structured.as_ref().map_or(0, |value| value.to_string().len());
            let bytes = text(&result).len() + structured;
            assert!(bytes <= bound, "{profile:?}: {bytes} bytes");
            assert!(text(&result).contains("truncated"), "{profile:?} says what it cut");
        }
    }
}

#[test]
fn an_error_after_side_effects_names_the_calls_made() {
    let mut outcome = bad();
    outcome.upstream_calls[0].effect = Effect::Write;
    let record = Record::from_outcome(&outcome, None);
    let slim = apply(Profile::Slim, &record);
    assert!(
        text(&slim).contains("calls already made: writes, which are not undone: shop.list"),
        "{}",
        text(&slim)
    );
    let structured = apply(Profile::Structured, &record).structured.expect("data");
    assert_eq!(
        structured["calls_made"],
        json!([{ "server": "shop", "tool": "list", "effect": "write", "count": 1 }])
    );
    assert_eq!(structured["prints"], json!(["first line", "second line"]));
}
