use crate::policy::flows::decide::Tainted;
use crate::policy::{Policy, Subject};
use crate::run::client::asker::CallAsker;
use crate::tools::{CallTarget, UpstreamTool};
use ptc_compiler::flows::{FlowCallKind, FlowPlan};
use ptc_compiler::{CompileOptions, Externals};
use serde_json::{Value as Json, json};
use std::sync::Arc;

const STANDARD: &str = r#"
flows = "standard"
[labels]
untrusted = ["mail/*", "web/*"]
private = ["mail/*", "drive/*"]
closed = ["bank/*", "mail/*", "drive/*"]
"#;

fn policy(text: &str) -> Policy {
    Policy::parse([("policy.toml", text)]).unwrap_or_else(|error| panic!("{error}"))
}

fn plan(source: &str) -> Arc<FlowPlan> {
    let options = CompileOptions { flows: true, ..CompileOptions::default() };
    let compiled = ptc_compiler::compile(source, &Externals::default(), &options);
    compiled.expect("a program").flows.expect("a plan")
}

fn tool(name: &str) -> UpstreamTool {
    let schema = json!({
        "properties": {
            "link": { "type": "string", "format": "uri" },
            "body": {},
            "referred": { "$ref": "#/$defs/link" },
            "maybe": { "anyOf": [{ "$ref": "#/$defs/parts" }, { "type": "null" }] },
            "elsewhere": { "$ref": "https://example.org/schema" },
            "tree": { "$ref": "#/$defs/tree" },
            "pair": { "items": [{ "format": "email" }, {}] },
        },
        "$defs": {
            "link": { "format": "uri" },
            "parts": { "allOf": [{ "properties": { "target": { "$ref": "#/$defs/link" } } }] },
            "tree": { "properties": { "child": { "$ref": "#/$defs/tree" } } },
        },
    });
    serde_json::from_value(json!({ "name": name, "inputSchema": schema })).expect("a tool")
}

/// What is said of a call, given what was answered before.
fn said(policy: &Policy, target: &str, arguments: &Json, run: &Tainted) -> String {
    let (server, name) = target.split_once('/').expect("server/tool");
    let (arguments, tool, target) = (arguments.to_string(), tool(name), CallTarget::Tool(name.into()));
    let asker = CallAsker::default();
    // The place of the first call of this tool.
    let planned = run.plan.iter().flat_map(|plan| &plan.calls);
    let place = planned
        .filter(|call| call.tool.as_deref().is_none_or(|tool| tool == name))
        .map(|call| call.span)
        .next();
    let call =
        Subject { server, target: &target, tool: &tool, arguments: &arguments, place, origins: None, asker };
    policy.flow_finding(&call, run).map_or_else(|| "-".to_owned(), |finding| finding.text)
}

fn after(answers: &[(&str, &str)], source: Option<&str>) -> Tainted {
    let answered = answers.iter().map(|(server, tool)| ((*server).into(), (*tool).into())).collect();
    Tainted { plan: source.map(plan), answered, ..Tainted::default() }
}

#[test]
fn answers_before_a_call_count_where_there_is_no_plan() {
    let policy = policy(STANDARD);
    let mail = after(&[("mail", "read")], None);
    let nothing = after(&[("bank", "balance")], None);
    for (target, arguments, is_flow) in [
        ("bank/send", json!({ "recipient": "x" }), true),
        ("bank/send", json!({ "subject": "x" }), false),
        ("bank/send", json!({ "to_account": { "iban": "x" } }), true),
        ("bank/send", json!({ "link": "http://x" }), true),
        // What is no object may be anything.
        ("bank/send", json!([1]), true),
        ("web/get", json!({}), true),
        ("chat/post", json!({ "body": "x" }), true),
        ("drive/write", json!({ "text": "x" }), false),
        ("drive/write", json!({ "rows": [{ "file_id": 1 }] }), true),
        ("drive/write", json!({ "rows": [[{ "file_id": 1 }], 1] }), true),
        // A key may be the data.
        ("bank/send", json!({ "recipient": { "GB1": {} } }), true),
        ("bank/send", json!({ "recipient": [{}] }), true),
        ("bank/send", json!({ "a": { "b": { "c": { "d": { "recipient": 1 } } } } }), true),
        ("bank/send", json!({ "toAddresses": "x" }), true),
        ("bank/send", json!({ "to_addresses": "x" }), true),
        ("bank/send", json!({ "fileID": 1 }), true),
        ("bank/send", json!({ "userIDs": 1 }), true),
        ("bank/send", json!({ "webhookURL": "x" }), true),
        ("bank/send", json!({ "candid": 1, "video": 1, "processes": 1, "HIDE": 1, "total": 1 }), false),
        ("bank/send", json!({ "referred": "x" }), true),
        ("bank/send", json!({ "maybe": { "target": "x" } }), true),
        ("bank/send", json!({ "elsewhere": "x" }), true),
        ("bank/send", json!({ "tree": { "child": 1 } }), false),
        ("bank/send", json!({ "pair": [1] }), true),
        ("bank/send", json!({ "a": { "b": { "c": { "d": { "e": { "text": 1 } } } } } }), false),
    ] {
        assert_eq!(said(&policy, target, &arguments, &nothing), "-", "{target} {arguments}");
        assert_eq!(said(&policy, target, &arguments, &mail) != "-", is_flow, "{target} {arguments}");
    }
}

#[test]
fn a_plan_tells_arguments_apart() {
    let policy = policy(STANDARD);
    let source = "(let [m (tool/call! {:server \"mail\" :tool \"read\"})]
      (tool/call {:server \"bank\" :tool \"send\" :args {:recipient \"GB1\" :subject (:subject m)}})
      (tool/call {:server \"bank\" :tool \"pay\" :args {:recipient (:iban m)}})
      (when (:paid m) (tool/call {:server \"bank\" :tool \"close\" :args {:account 1}}))
      (tool/call {:server \"chat\" :tool \"post\" :args {:body \"x\"}}))";
    let run = after(&[("mail", "read")], Some(source));
    let call = |target: &str| said(&policy, target, &json!({ "recipient": "GB1" }), &run);
    assert_eq!(call("bank/send"), "-");
    assert_eq!(
        call("bank/pay"),
        "policy.toml: flows = \"standard\": mail/read (line 1) (untrusted) may reach /recipient of bank/pay (line 3). \
         Write the value of /recipient in the program, or pass it as data/recipient."
    );
    assert_eq!(
        call("bank/close"),
        "policy.toml: flows = \"standard\": mail/read (line 1) (untrusted) may decide whether bank/close (line 4) is \
         called. Call it without a branch on that, or branch on :ok."
    );
    assert_eq!(call("chat/post"), "-");
    // Before anything was read, nothing can be in the arguments.
    let before = after(&[], Some(source));
    assert_eq!(said(&policy, "bank/pay", &json!({}), &before), "-");
    // What a function of a prelude calls stands in no plan.
    let source = "(def f 1) (f 2) (tool/call {:server \"bank\" :tool \"send\" :args {:recipient \"GB1\"}})";
    let mut opened = FlowPlan::clone(&plan(source));
    opened.calls[0].kind = FlowCallKind::Function;
    let run_ = Tainted { plan: Some(Arc::new(opened)), ..after(&[("mail", "read")], None) };
    assert!(said(&policy, "bank/send", &json!({ "recipient": "GB1" }), &run_).contains("was read before"));
    // A call that the plan does not have is decided by what came before.
    assert_ne!(call("bank/other"), "-");
}

#[test]
fn what_the_plan_knows_as_a_whole_has_the_parts_of_the_call() {
    let policy = policy(STANDARD);
    let source = "(let [m (tool/call! {:server \"mail\" :tool \"read\"})]
      (tool/call {:server \"bank\" :tool \"pay\" :args {:transfers [{:recipient (:iban m)}]}})
      (tool/call {:server \"bank\" :tool \"note\" :args {:payload (:whole m)}}))";
    let run = after(&[("mail", "read")], Some(source));
    let call = |target: &str, arguments: Json| said(&policy, target, &arguments, &run);
    assert!(call("bank/pay", json!({ "transfers": [{ "recipient": 1 }] })).contains("/transfers/recipient"));
    assert_eq!(call("bank/pay", json!({ "transfers": [{ "note": 1 }] })), "-");
    assert_ne!(call("bank/note", json!({ "payload": { "to": 1 } })), "-");
    assert_eq!(call("bank/note", json!({ "payload": { "text": 1 } })), "-");
}

#[test]
fn a_program_is_refused_before_it_runs_whatever_other_rule_denies() {
    for order in [["", "before = true"], ["before = true", ""]] {
        let rules: String = ["private", "untrusted"]
            .iter()
            .zip(order)
            .map(|(label, before)| {
                format!("[[flow]]\ndo = \"deny\"\nfrom = \"{label}\"\nto = [\"bank/pay\"]\n{before}\n")
            })
            .collect();
        let policy = policy(&format!("[labels]\nuntrusted = [\"mail/*\"]\nprivate = [\"mail/*\"]\n{rules}"));
        let source = "(let [m (tool/call! {:server \"mail\" :tool \"read\"})]
          (tool/call {:server \"bank\" :tool \"pay\" :args {:v (:iban m)}}))";
        let run = Tainted { plan: Some(plan(source)), ..Tainted::default() };
        assert!(policy.refused_flow(&run, &|_, _| None).is_some(), "{order:?}");
    }
}

#[test]
fn rules_override_the_usual_ones_label_by_label() {
    let rules = format!(
        "{STANDARD}secret = [\"vault/*\"]
[[flow]]
do = \"allow\"
from = \"untrusted\"
to = [\"bank/*\"]
args = [\"/recipient\"]
[[flow]]
do = \"deny\"
from = \"secret\"
to = [\"*/*\"]
status = true
before = true
reason = \"it stays\""
    );
    let policy = policy(&rules);
    let source = "(let [m (tool/call! {:server \"mail\" :tool \"read\"}) v (tool/call {:server \"vault\" :tool \"get\"})]
      (tool/call {:server \"bank\" :tool \"pay\" :args {:recipient (:iban m)}})
      (tool/call {:server \"bank\" :tool \"send\" :args {:recipient 1 :amount (:amount m)}})
      (when (:ok v) (tool/call {:server \"bank\" :tool \"open\" :args {}})))";
    let run = after(&[("mail", "read"), ("vault", "get")], Some(source));
    let call = |target: &str| said(&policy, target, &json!({}), &run);
    assert_eq!(call("bank/pay"), "-");
    assert!(call("bank/send").contains("may reach /amount"), "{}", call("bank/send"));
    assert!(
        call("bank/open").starts_with("policy.toml:13: deny secret to */* (it stays): status of vault/get"),
        "{}",
        call("bank/open")
    );
    let refused =
        policy.refused_flow(&Tainted { plan: Some(plan(source)), ..Tainted::default() }, &|_, _| None);
    assert!(refused.expect("refused").text.contains("bank/open (line 4)"));
    let harmless = plan("(tool/call {:server \"vault\" :tool \"get\"})");
    assert!(
        policy.refused_flow(&Tainted { plan: Some(harmless), ..Tainted::default() }, &|_, _| None).is_none()
    );
}

#[test]
fn names_that_look_alike_and_new_servers_are_on_the_safe_side() {
    let policy = policy(STANDARD);
    // The label counts for a tool whose name only looks like another one, and `closed` does not.
    let look_alike = after(&[("mail", "re\u{0430}d")], None);
    assert_ne!(said(&policy, "bank/send", &json!({ "recipient": "x" }), &look_alike), "-");
    let upper = after(&[("Mail", "read")], None);
    assert_ne!(said(&policy, "bank/send", &json!({ "recipient": "x" }), &upper), "-");
    assert_ne!(
        said(&policy, "b\u{0430}nk/look", &json!({ "q": "x" }), &after(&[("mail", "read")], None)),
        "-"
    );
    // A server that the file does not name may pass on what it gets.
    assert_ne!(said(&policy, "new/tool", &json!({ "q": "x" }), &after(&[("drive", "read")], None)), "-");
}

#[test]
fn the_model_is_steered_by_what_it_has_seen() {
    let policy = policy(STANDARD);
    let source = "(tool/call {:server \"bank\" :tool \"pay\" :args {:recipient \"GB1\"}})";
    let mut run = after(&[], Some(source));
    assert_eq!(said(&policy, "bank/pay", &json!({}), &run), "-");
    run.shown.insert(("mail".into(), "read".into()));
    assert!(said(&policy, "bank/pay", &json!({}), &run).contains("the program's text (untrusted)"));
}

#[test]
fn what_a_file_cannot_mean_is_an_error() {
    for (text, error) in [
        (
            "[labels]\nuser = [\"mail/*\"]",
            "policy.toml:2:9: user names keys of the context: user = [\"data/*\"]",
        ),
        ("[labels]\nx = [\"\"]", "policy.toml:2:5: a name is empty"),
        (
            "[[flow]]\ndo = \"deny\"\nfrom = \"x\"\nto = [\"a/b\"]",
            "policy.toml:3:8: there is no label \"x\"; [labels] has private, untrusted",
        ),
        (
            "[[flow]]\ndo = \"ask\"\nbefore = true\nfrom = \"private\"\nto = [\"a/b\"]",
            "policy.toml:3:10: only a rule that denies refuses programs before they run",
        ),
        (
            "[[flow]]\ndo = \"deny\"\nfrom = \"private\"\nto = []",
            "policy.toml:1:1: the rule names no tools: tools = [\"server/tool\"]",
        ),
    ] {
        let found = Policy::parse([("policy.toml", text)]).expect_err(text).to_string();
        assert_eq!(found, error);
    }
}
