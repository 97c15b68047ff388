//! Tests of tool calls in a program: forms of a call, arguments as JSON, results as values.

use super::*;
use crate::broker::CallPayload;
use ptc_calls::run::outcome::CallFault;
use ptc_calls::tools::{CallTarget, UpstreamTool};
use ptc_upstream::{CallResult, RawAnswer};
use ptc_vm::builtins::HostFunction;
use ptc_vm::json::{Keys, encode as to_json};
use ptc_vm::value::map::MapNode;
use ptc_vm::{Budget, Isolate};
use serde_json::json;

const SERVERS: [&str; 2] = ["fs", "github"];

/// Encodes the arguments of a call as they were read.
fn encode(
    cx: &mut Context,
    call: &ParsedCall,
    args: &Value,
    tool: Option<&UpstreamTool>,
) -> Result<(String, Vec<String>), Box<Fault>> {
    super::encode(cx, (&call.server, call.target.label()), args, tool)
}

fn with<T>(work: impl FnOnce(&mut Context) -> T) -> T {
    let mut isolate = Isolate::new(Budget::default());
    let result = isolate.with(work);
    assert_eq!(isolate.close(), 0);
    result
}

fn map(cx: &mut Context, entries: &[(Value, Value)]) -> Value {
    let mut map = MapNode::empty();
    for (key, value) in entries {
        map = MapNode::insert(map, cx, key.clone(), value.clone()).unwrap();
    }
    Value::Map(map)
}

/// A map with keyword keys from a JSON object.
fn call_map(cx: &mut Context, object: serde_json::Value) -> Value {
    let entries: Vec<(Value, Value)> = object
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| {
            let value = ptc_vm::json::decode(cx, value.to_string().as_bytes()).unwrap();
            (cx.keyword(key), value)
        })
        .collect();
    map(cx, &entries)
}

fn parse_error(object: serde_json::Value) -> String {
    with(|cx| {
        let value = call_map(cx, object);
        parse(cx, HostFunction::ToolCall, &[value], &SERVERS).map(drop).unwrap_err().message.into()
    })
}

#[test]
fn the_documented_programmer_faults() {
    assert_eq!(parse_error(json!({"a": 1})), "tool/call got unknown key :a");
    let list = " Configured upstreams: fs, github";
    assert_eq!(parse_error(json!({})), format!("tool/call requires :server (string), got nil.{list}"));
    assert_eq!(
        parse_error(json!({"server": 5})),
        format!("tool/call requires :server (string), got 5.{list}")
    );
    assert_eq!(
        parse_error(json!({"server": ""})),
        format!("tool/call requires :server (string), got \"\".{list}")
    );
    assert_eq!(
        parse_error(json!({"server": "fs", "tool": [1]})),
        "tool/call on upstream 'fs' requires :tool (string), got [1]"
    );
    assert_eq!(
        parse_error(json!({"server": "fs", "tool": "read", "args": "x"})),
        "tool 'fs.read' rejected args: :args must be a map, got \"x\""
    );
    with(|cx| {
        let text = |cx: &mut Context, arguments: &[Value]| {
            parse(cx, HostFunction::ToolCall, arguments, &SERVERS).map(drop).unwrap_err().message
        };
        assert_eq!(text(cx, &[Value::Int(5)]), "tool/call requires a map, got 5");
        let unqualified = Value::Symbol(cx.symbols.intern("fs"));
        assert_eq!(
            text(cx, &[unqualified]),
            "tool/call symbol form requires a qualified symbol like 'server/tool"
        );
        let (tool, args) = (Value::Symbol(cx.symbols.intern("fs/read")), call_map(cx, json!({})));
        assert_eq!(
            text(cx, &[tool, args, Value::Int(3)]),
            "tool/call takes one map after the name of a tool, got 2 values"
        );
        let (keyword, string) = (cx.keyword("server"), Value::string("server"));
        let both = map(cx, &[(keyword, Value::Nil), (string, Value::Nil)]);
        assert!(text(cx, &[both]).starts_with("tool/call got duplicate key "));
    });
}

#[test]
fn every_form_of_a_call() {
    with(|cx| {
        let as_map = call_map(cx, json!({"server": "fs", "tool": "read", "args": {"path": "x"}}));
        let symbol = Value::Symbol(cx.symbols.intern("fs/read"));
        let args = call_map(cx, json!({"path": "x"}));
        let pairs = [
            cx.keyword("server"),
            Value::string("fs"),
            cx.keyword("tool"),
            Value::string("read"),
            cx.keyword("args"),
            args.clone(),
        ];
        let forms: [&[Value]; 3] = [&[as_map], &[symbol.clone(), args], &pairs];
        for form in forms {
            let (call, args) = parse(cx, HostFunction::ToolCall, form, &SERVERS).unwrap();
            assert_eq!((call.server.as_str(), call.target.label()), ("fs", "read"));
            assert_eq!(encode(cx, &call, &args, None).unwrap().0, r#"{"path":"x"}"#);
        }
        let (call, args) = parse(cx, HostFunction::ToolCall, &[symbol], &SERVERS).unwrap();
        assert_eq!(encode(cx, &call, &args, None).unwrap().0, "{}");
    });
}

fn tool(schema: serde_json::Value) -> UpstreamTool {
    serde_json::from_value(json!({"name": "t", "inputSchema": schema})).unwrap()
}

fn call() -> ParsedCall {
    ParsedCall { server: "s".into(), target: CallTarget::Tool("t".into()), keeps_large: false }
}

#[test]
fn keyword_keys_become_names_and_string_keys_stay() {
    with(|cx| {
        let tool = tool(json!({"properties": {"with-hyphen": {}, "user_id": {},
            "deep": {"properties": {"a-b": {}, "c_d": {}}}}}));
        let inner = call_map(cx, json!({"a-b": 1, "c-d": 2, "Content-Type": "x"}));
        let deep = cx.keyword("deep");
        let entries = [
            (cx.keyword("with-hyphen"), Value::Int(1)),
            (cx.keyword("user-id"), Value::Int(2)),
            (cx.keyword("not-in-schema"), Value::Int(3)),
            (Value::string("str-key"), cx.keyword("value-kw")),
            (deep, inner),
        ];
        let args = map(cx, &entries);
        let text = encode(cx, &call(), &args, Some(&tool)).unwrap().0;
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let want = json!({"with-hyphen": 1, "user_id": 2, "not-in-schema": 3, "str-key": "value-kw",
            "deep": {"a-b": 1, "c_d": 2, "Content-Type": "x"}});
        assert_eq!(value, want);
    });
}

#[test]
fn required_and_nil_arguments() {
    with(|cx| {
        let schema = json!({"properties": {"a": {"type": "string"}, "b": {"type": "string"},
            "n": {"type": ["string", "null"]}}, "required": ["a"]});
        let tool = tool(schema);
        let args = call_map(cx, json!({"a": "x", "b": null, "n": null}));
        let text = encode(cx, &call(), &args, Some(&tool)).unwrap().0;
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), json!({"a": "x", "n": null}));
        let args = call_map(cx, json!({"b": "x"}));
        let fault = encode(cx, &call(), &args, Some(&tool)).unwrap_err();
        assert_eq!(fault.message, "tool 's.t' rejected args: missing required args a");
        let fault = encode(cx, &call(), &Value::Nil, Some(&tool)).unwrap_err();
        assert_eq!(fault.message, "tool 's.t' rejected args: missing required args a");
    });
}

#[test]
fn what_has_no_json_form_is_a_programmer_fault() {
    with(|cx| {
        let key = cx.keyword("x");
        let args = map(cx, &[(key.clone(), Value::Float(f64::NAN))]);
        let fault = encode(cx, &call(), &args, None).unwrap_err();
        assert!(
            fault.message.starts_with("tool 's.t' rejected args: not JSON-encodable ("),
            "{}",
            fault.message
        );
        let underscore = cx.keyword("a_b");
        let hyphen = cx.keyword("a-b");
        let args = map(cx, &[(underscore, Value::Int(1)), (hyphen, Value::Int(2))]);
        let tool = tool(json!({"properties": {"a_b": {}}}));
        let fault = encode(cx, &call(), &args, Some(&tool)).unwrap_err();
        assert!(fault.message.contains("the keys :a"), "{}", fault.message);
        assert!(fault.message.contains("are both called \"a_b\""), "{}", fault.message);
        let text = cx.host_text("x").unwrap();
        let both = map(cx, &[(key.clone(), Value::Int(1)), (text, Value::Int(2))]);
        let args = map(cx, &[(key, both)]);
        let fault = encode(cx, &call(), &args, None).unwrap_err();
        let why = "the keys :x and \"x\" are both called \"x\"";
        assert!(fault.message.contains(why), "{}", fault.message);
    });
}

#[test]
fn shared_structure_in_arguments_ends_in_a_limit() {
    let mut isolate = Isolate::new(Budget { fuel: 10_000_000, ..Budget::default() });
    isolate.with(|cx| {
        let mut value = Value::Nil;
        for _ in 0..64 {
            value = Value::vector(vec![value.clone(), value]);
        }
        let key = cx.keyword("x");
        let args = map(cx, &[(key, value)]);
        let fault = encode(cx, &call(), &args, None).unwrap_err();
        assert!(matches!(fault.reason, Reason::MemoryExceeded | Reason::FuelExceeded), "{fault:?}");
    });
    assert_eq!(isolate.close(), 0);
}

/// A map with this many entries and integer keys.
fn wide(cx: &mut Context, entries: i64) -> Value {
    let mut map = MapNode::empty();
    for key in 0..entries {
        map = MapNode::insert(map, cx, Value::Int(key), Value::Nil).unwrap();
    }
    Value::Map(map)
}

#[test]
fn what_is_worked_out_about_names_is_on_the_account() {
    const ENTRIES: i64 = 20_000;
    let run = |memory_bytes, encoded: bool| {
        let mut isolate = Isolate::new(Budget { memory_bytes, ..Budget::default() });
        let done = isolate.with(|cx| {
            let args = wide(cx, ENTRIES);
            if encoded { encode(cx, &call(), &args, None).map(|done| done.0.len()) } else { Ok(0) }
        });
        let peak = isolate.peak_bytes();
        assert_eq!(isolate.close(), 0);
        (done, peak)
    };
    let (_, map) = run(1 << 30, false);
    let fault = run(map + 20 * ENTRIES as u64, true).0.unwrap_err();
    assert_eq!(fault.reason, ptc_vm::Reason::MemoryExceeded, "{}", fault.message);
    let (text, _) = run(map + 200 * ENTRIES as u64, true);
    assert!(text.unwrap() > 10 * ENTRIES as usize);
    // The text itself is charged, too.
    let (_, peak) = run(1 << 30, true);
    assert!(peak > map, "{peak} {map}");
}

#[test]
fn long_names_and_many_of_them_make_no_long_messages() {
    with(|cx| {
        // A path of 300 names of 10 KB each: one node in the program.
        let key = cx.host_text(&"k".repeat(10_000)).unwrap();
        let deep = (0..300).fold(Value::Int(5), |inner, _| map(cx, &[(key.clone(), inner)]));
        let schema = json!({"type": "object", "additionalProperties": {"$ref": "#"}});
        let fault = encode(cx, &call(), &deep, Some(&tool(schema))).unwrap_err();
        assert!(fault.message.contains("rejected args: \"kkk"), "{}", fault.message);
        let one = cx.host_text("1").unwrap();
        let twice = map(cx, &[(Value::Int(1), Value::Nil), (one, Value::Nil)]);
        let fault = encode(cx, &call(), &twice, None).unwrap_err();
        assert!(fault.message.contains("are both called \"1\""), "{}", fault.message);
        let wide = wide(cx, 5_000);
        let open = tool(json!({"type": "object", "properties": {"description": {}}}));
        let (_, notes) = encode(cx, &call(), &wide, Some(&open)).unwrap();
        assert_eq!(notes.len(), 10);
        assert!(notes[0].contains("has no argument"), "{}", notes[0]);
    });
}

fn unwrapped(result: serde_json::Value) -> (serde_json::Value, u64, Option<(CallFault, String)>) {
    unwrapped_as(CallResult::Mcp, result.to_string())
}

fn unwrapped_as(
    form: fn(RawAnswer) -> CallResult,
    body: impl Into<Vec<u8>>,
) -> (serde_json::Value, u64, Option<(CallFault, String)>) {
    with(|cx| {
        let payload = CallPayload::of(form(RawAnswer::from_bytes(body)), Some("result"));
        let (value, why) = unwrap(cx, &payload, ResultForm::Tagged).unwrap();
        let text = to_json(cx, &value, Keys::Names, usize::MAX).unwrap().unwrap();
        let why = why.map(|fault| (fault.reason, fault.message));
        (serde_json::from_str(&text).unwrap(), payload.bytes(), why)
    })
}

#[test]
fn plain_json_is_the_value_itself() {
    let is = |body: &str, value: serde_json::Value| {
        assert_eq!(unwrapped_as(CallResult::Json, body), (ok(value, "json"), body.len() as u64, None));
    };
    is(r#"{"a": [1]}"#, json!({"a": [1]}));
    is(" null ", json!(null));
    // In MCP these would be an error, or several blocks.
    is(r#"{"isError":true,"content":[]}"#, json!({"isError": true, "content": []}));
    assert_eq!(unwrapped_as(CallResult::Json, "").0, ok(json!(null), "none"));
    for broken in [&b"{\"a\":"[..], b"plain", b"\"\xff\""] {
        let (value, _, error) = unwrapped_as(CallResult::Json, broken);
        let (reason, text) = error.unwrap();
        assert_eq!((reason, &value["ok"]), (CallFault::UpstreamError, &json!(false)));
        assert!(text.starts_with("the result cannot be decoded: "), "{text}");
    }
}

#[test]
fn plain_text_is_the_value_whatever_it_looks_like() {
    for body in ["", "words", "17", r#"{"a":1}"#, "null"] {
        assert_eq!(unwrapped_as(CallResult::Text, body), (ok(json!(body), "text"), body.len() as u64, None));
    }
    let (_, _, error) = unwrapped_as(CallResult::Text, b"caf\xe9");
    assert_eq!(error, Some((CallFault::UpstreamError, "the result is not UTF-8".to_owned())));
}

fn text(text: &str) -> serde_json::Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn ok(value: serde_json::Value, kind: &str) -> serde_json::Value {
    json!({"ok": true, "value": value, "value_kind": kind})
}

#[test]
fn payloads_are_unwrapped_in_the_documented_order() {
    let mirrored =
        json!({"content": [{"type": "text", "text": "{\"a\": 1}"}], "structuredContent": {"a": 1}});
    assert_eq!(unwrapped(mirrored), (ok(json!({"a": 1}), "json"), 7, None));
    assert_eq!(unwrapped(text("{\"a\": [1]}")), (ok(json!({"a": [1]}), "json"), 10, None));
    assert_eq!(unwrapped(text("42")).0, ok(json!(42), "json"));
    assert_eq!(unwrapped(text("null")).0, ok(json!(null), "json"));
    assert_eq!(unwrapped(text("hello {")), (ok(json!("hello {"), "text"), 7, None));
    assert_eq!(unwrapped(text("{broken}")).0, ok(json!("{broken}"), "text"));
    assert_eq!(unwrapped(text("")).0, ok(json!(""), "text"));
    assert_eq!(unwrapped(json!({})), (ok(json!(null), "none"), 0, None));
    assert_eq!(unwrapped(json!({"content": [], "structuredContent": null})).0, ok(json!(null), "none"));
    let list = json!({"resultType": "complete", "structuredContent": [1, 2]});
    assert_eq!(unwrapped(list).0, ok(json!([1, 2]), "json"));
}

#[test]
fn nothing_of_a_result_is_dropped() {
    let blocks = [
        json!({"type": "image", "data": "AA", "mimeType": "image/png"}),
        json!({"type": "audio", "data": "BB", "mimeType": "audio/wav"}),
        json!({"type": "resource_link", "uri": "file:///x", "name": "x"}),
        json!({"type": "resource", "resource": {"uri": "file:///y", "text": "inside"}}),
        json!({"type": "something-new", "of": [1]}),
    ];
    let with = |mut value: serde_json::Value, blocks: &[serde_json::Value]| {
        value["content"] = json!(blocks);
        value
    };
    for block in &blocks {
        let (value, bytes, _) = unwrapped(json!({"content": [block]}));
        assert_eq!(value, with(ok(json!(null), "none"), std::slice::from_ref(block)));
        assert_eq!(bytes, json!([block]).to_string().len() as u64);
        let note = json!({"type": "text", "text": "see"});
        let both = [block.clone(), note];
        assert_eq!(unwrapped(json!({"content": both})).0, with(ok(json!("see"), "text"), &both));
        let structured = json!({"content": [block], "structuredContent": {"a": 1}});
        assert_eq!(unwrapped(structured).0, with(ok(json!({"a": 1}), "json"), std::slice::from_ref(block)));
    }
    let texts = [json!({"type": "text", "text": "1"}), json!({"type": "text", "text": "two"})];
    assert_eq!(unwrapped(json!({"content": texts})), (with(ok(json!(1), "json"), &texts), 4, None));
    let prose = [json!({"type": "text", "text": "one row"})];
    let structured = json!({"content": prose, "structuredContent": {"a": 1}});
    assert_eq!(unwrapped(structured), (with(ok(json!({"a": 1}), "json"), &prose), 7, None));
}

fn bad(reason: &str, message: &str) -> serde_json::Value {
    json!({"ok": false, "reason": reason, "message": message})
}

#[test]
fn tool_errors_are_world_faults_with_all_they_say() {
    let failed = json!({"isError": true, "content": [{"type": "text", "text": "no row"}]});
    let (value, _, error) = unwrapped(failed);
    assert_eq!(value, bad("tool_error", "no row"));
    assert_eq!(error, Some((CallFault::ToolError, "no row".into())));
    let long = "x".repeat(10_000);
    let several = json!({"isError": true, "content":
        [{"type": "text", "text": "a"}, {"type": "text", "text": ""}, {"type": "text", "text": long}]});
    assert_eq!(unwrapped(several).0, bad("tool_error", &format!("a\n{long}")));
    let endless = json!({"isError": true, "content": [{"type": "text", "text": "é".repeat(100_000)}]});
    let message = unwrapped(endless).0["message"].as_str().unwrap().to_owned();
    assert!(message.len() < (16 << 10) + 4 && message.ends_with("é…"));
    let image = json!({"type": "image", "data": "AA"});
    let mut want = bad("tool_error", "look");
    want["content"] = json!([{"type": "text", "text": "look"}, image]);
    want["structured_content"] = json!({"code": 7});
    let rich = json!({"isError": true, "content": want["content"], "structuredContent": {"code": 7}});
    assert_eq!(unwrapped(rich).0, want);
    let mut want = bad("tool_error", "{\"code\":7}");
    want["structured_content"] = json!({"code": 7});
    assert_eq!(unwrapped(json!({"isError": true, "structuredContent": {"code": 7}})).0, want);
}

#[test]
fn bad_payloads_are_world_faults() {
    assert_eq!(unwrapped(json!([])).0, bad("upstream_error", "the result is not an object"));
    let odd = json!({"content": "text"});
    assert_eq!(unwrapped(odd).0, bad("upstream_error", "the result's content is not a list of blocks"));
    let asks = json!({"resultType": "input_required", "inputRequests": {}});
    let text = "the tool asks for more input, which a program cannot give";
    assert_eq!(unwrapped(asks).0, bad("upstream_error", text));
    let strange = json!({"resultType": "task", "taskId": "1"});
    let text = "the tool answered with the resultType task, not a result";
    assert_eq!(unwrapped(strange).0, bad("upstream_error", text));
}

#[test]
fn a_result_that_is_wrapped_is_what_is_in_the_wrapping() {
    let wrapped = |structured: serde_json::Value, texts: &[&str]| {
        let blocks: Vec<_> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
        unwrapped(json!({"structuredContent": structured, "content": blocks})).0
    };
    // FastMCP wraps results like this: the texts repeat the value, in full or one item each.
    assert_eq!(wrapped(json!({"result": "hello"}), &["hello"]), ok(json!("hello"), "text"));
    assert_eq!(wrapped(json!({"result": 5}), &["5"]), ok(json!(5), "json"));
    assert_eq!(wrapped(json!({"result": "{\"a\": [1]}"}), &["{\"a\": [1]}"]), ok(json!({"a": [1]}), "json"));
    let rows = json!([{"id": 1}, {"id": 2}]);
    let texts = ["{\"id\": 1}", "{\"id\": 2}"];
    assert_eq!(wrapped(json!({"result": rows}), &texts), ok(rows.clone(), "json"));
    assert_eq!(wrapped(json!({"result": ["a", "b"]}), &["a", "b"]), ok(json!(["a", "b"]), "json"));
    assert_eq!(wrapped(json!({"result": null}), &[]), ok(json!(null), "json"));
    // A text that adds something stays.
    let more = wrapped(json!({"result": ["a"]}), &["Found one."]);
    assert_eq!((&more["value"], more["content"].is_array()), (&json!(["a"]), true));
    // A text that repeats a field, as from the reference filesystem server, and cases that only look alike.
    assert_eq!(wrapped(json!({"content": "line"}), &["line"]), ok(json!("line"), "text"));
    for structured in
        [json!({"content": "line"}), json!({"content": ["line"]}), json!({"result": 1, "page": 2})]
    {
        let value = wrapped(structured.clone(), &["{}"]);
        assert_eq!(value, ok(structured, "json"));
    }
}
