//! Default arguments that are secrets: what callers and policies see of them, and what is sent.

use super::*;
use ptc_calls::policy::Policy;

const NUMBER: u64 = 987_654_321_012;

/// A service with secrets in defaults of every kind.
fn guarded(base_url: &str) -> Service {
    let query = |name: &str, kind: &str| parameter(name, "query", json!({ "schema": { "type": kind } }));
    let parameters = json!([
        query("access_token", "integer"),
        query("tokens", "array"),
        query("filter", "object"),
        query("q", "string")
    ]);
    let body = json!({ "content": { "application/json": { "schema": { "type": "object" } } } });
    let paths = json!({ "/find": { "get": operation("find", json!({ "parameters": parameters })) },
        "/send": { "post": operation("send", json!({ "requestBody": body })) } });
    let find = json!({ "access_token": NUMBER, "tokens": ["list-of-secrets"], "q": "all" });
    let send = json!({ "body": { "inner": { "api_key": "nested-secret" }, "env": "prod" } });
    let members = json!({ "include_operations": ["find", "send"], "allow_operations_with_effects": ["send"],
        "operation_overrides": { "find": { "default_args": find }, "send": { "default_args": send } } });
    Service::new(base_url, &document(paths), members)
}

#[tokio::test]
async fn secrets_of_every_kind_are_sent_and_neither_shown_nor_set() {
    let server = HttpServer::new(echo).await;
    let runtime = guarded(&server.url("")).runtime().await;
    let shown =
        value(&runtime, "(str (dir 'obs) (meta 'obs/find) (meta 'obs/send) (doc 'obs/find) (doc 'obs/send))")
            .await;
    for hidden in ["987654321012", "list-of-secrets", "nested-secret"] {
        assert!(!shown.contains(hidden), "{hidden}: {shown}");
    }
    assert!(shown.contains("all"), "{shown}");
    for call in [
        "(tool/call {:server \"obs\" :tool \"find\" :args {:access_token 5}})",
        "(tool/call {:server \"obs\" :tool \"find\" :args {:tokens []}})",
        "(tool/call {:server \"obs\" :tool \"send\" :args {:body {}}})",
    ] {
        let failure = failure(&runtime, call).await.compact();
        assert!(failure.contains("unknown arg"), "{call}: {failure}");
    }
    assert!(server.got().is_empty());
    value(&runtime, "(tool/call! 'obs/find {:filter {:z 1}})").await;
    value(&runtime, "(tool/call! 'obs/send {})").await;
    let got = server.got();
    assert_eq!(got[0].path, format!("/find?access_token={NUMBER}&tokens=list-of-secrets&z=1&q=all"));
    assert_eq!(got[1].json(), json!({ "inner": { "api_key": "nested-secret" }, "env": "prod" }));
    // Members of an object without a name of its own do not stand in for a secret.
    for name in ["access_token", "Tokens"] {
        let call = format!("(:message (tool/call 'obs/find {{:filter {{\"{name}\" \"mine\"}}}}))");
        let told = value(&runtime, &call).await;
        assert!(told.contains(&format!("filter cannot have a member {name}")), "{told}");
    }
    assert!(server.got().is_empty());
    runtime.shutdown().await;
}

/// Whether a policy with this rule denies the call.
async fn is_denied(runtime: &Runtime, tool: &str, when: &str, arguments: &str) -> bool {
    let text = format!(
        "default = {{ read = \"allow\", write = \"allow\", destructive = \"allow\" }}\n\
         [[rule]]\ntools = [\"obs/*\"]\ndo = \"deny\"\nwhen = {{ {when} }}"
    );
    let policy = Policy::parse([("policy.toml", text.as_str())]).unwrap();
    runtime.replace_policy(Arc::new(policy)).unwrap();
    value(runtime, &format!("(:reason (tool/call 'obs/{tool} {arguments}))")).await == ":denied"
}

#[tokio::test]
async fn a_rule_about_an_argument_that_is_hidden_counts() {
    let server = HttpServer::new(echo).await;
    let runtime = guarded(&server.url("")).runtime().await;
    for when in [
        r#""/body/env" = "prod""#,
        r#""/body" = { present = true }"#,
        r#""/*/env" = "prod""#,
        r#""/**" = "prod""#,
    ] {
        assert!(is_denied(&runtime, "send", when, "{}").await, "{when}");
    }
    assert!(server.got().is_empty());
    // What is known of a call decides alone, and a credential has no texts to look for.
    let when = r#""/**" = "drop*""#;
    assert!(!is_denied(&runtime, "find", when, "{}").await);
    assert!(is_denied(&runtime, "find", when, "{:q \"drop it\"}").await);
    assert!(!is_denied(&runtime, "send", r#""/other" = "prod""#, "{}").await);
    runtime.shutdown().await;
}
