//! Sections 1 to 7 of the guide: a prelude file, its parts, and their effect on a program.

use super::QUICK_START;
use crate::preludes::attach::{requires, with_servers};
use crate::preludes::{CRM, failure, prelude, run, runtime, value};
use ptc_calls::options::RunOptions;
use ptc_engine::{Prelude, Runtime};
use std::sync::Arc;

#[tokio::test]
async fn the_quick_start_works_in_a_program_too() {
    let runtime = with_servers(QUICK_START, &["crm"]).await;
    let options =
        RunOptions { context: Some(r#"{"user-id": "norm:u_123"}"#.into()), ..RunOptions::default() };
    let program = "(let [res (crm/get-user data/user-id)] (if (:ok res) (get (:value res) \"name\") :none))";
    assert_eq!(runtime.run(program, options).await.result.expect("a user").text, "\"Ada\"");
    assert_eq!(value(&runtime, "(keys (ns-publics 'crm))").await, "[\"get-user\"]");
    assert!(value(&runtime, "(doc 'crm/get-user)").await.contains("Return a CRM user by id."));
}

#[tokio::test]
async fn the_parts_of_a_file_are_what_they_are_called() {
    let runtime = runtime(CRM).await;
    assert_eq!(value(&runtime, "[crm/page-size (crm/page-size)]").await, "[50 50]");
    for hidden in ["(crm/normalize-id \"x\")", "crm/normalize-id"] {
        let (_, message) = failure(&runtime, hidden).await;
        assert!(
            message.starts_with("crm/normalize-id is not a public export of namespace crm"),
            "{hidden}: {message}"
        );
    }
    for (program, found) in [
        ("(contains? (ns-publics 'crm) \"normalize-id\")", "false"),
        ("(contains? (ns-publics 'crm) \"get-user\")", "true"),
        ("(some #(str/includes? % \"normalize-id\") (dir 'crm {:limit 50}))", "nil"),
    ] {
        assert_eq!(value(&runtime, program).await, found, "{program}");
    }
    let several = prelude("(ns a) (defn f [] 1) (ns b {:visibility :discoverable}) (defn f [] 2)");
    let names: Vec<&str> = several.namespaces().map(|namespace| namespace.name()).collect();
    assert_eq!(names, ["a", "b"]);
    let reopened = Prelude::compile("p.clj", "(ns a) (ns b) (ns a)").expect_err("it is reopened");
    assert_eq!(reopened.failure.reason.raw(), "invalid_namespace");
}

#[test]
fn namespaces_of_the_host_cannot_be_declared() {
    for name in ["tool", "data", "budget", "ptc.core"] {
        let error = Prelude::compile("p.clj", &format!("(ns {name})")).expect_err(name);
        assert_eq!(error.failure.reason.raw(), "reserved_namespace", "{name}");
    }
}

#[tokio::test]
async fn results_are_recoverable() {
    let runtime = with_servers(CRM, &["crm"]).await;
    let branch = |id: &str| {
        format!(
            "(def res (crm/get-user \"{id}\")) (if (res :ok) (return {{:user (res :value)}}) (return {{:error (res \
             :reason)}}))"
        )
    };
    let found = value(&runtime, &branch("u_123")).await;
    assert!(found.starts_with("{:user {") && found.contains("\"Ada\""), "{found}");
    assert_eq!(value(&runtime, &branch("nobody")).await, "{:error :tool_error}");
    // The rows of the table; a direct call gives the same.
    for (id, ok) in [("u_123", true), ("nobody", false)] {
        let through = format!("(crm/get-user \"{id}\")");
        let direct =
            format!("(tool/call {{:server \"crm\" :tool \"get_user\" :args {{:id \"norm:{id}\"}}}})");
        assert_eq!(value(&runtime, &format!("(:ok {through})")).await, ok.to_string());
        assert_eq!(value(&runtime, &format!("(contains? {through} :reason)")).await, (!ok).to_string());
        assert_eq!(value(&runtime, &through).await, value(&runtime, &direct).await);
    }
}

#[tokio::test]
async fn helpers_may_abort_and_siblings_have_bare_names() {
    let runtime = with_servers(CRM, &["crm"]).await;
    assert_eq!(value(&runtime, "(get (crm/get-user! \"u_124\") \"name\")").await, "\"Bob\"");
    let aborted = failure(&runtime, "[(crm/get-user! \"nobody\") :never]").await;
    assert_eq!(aborted, ("fail", "{:reason :tool_error}".to_owned()));
    let qualified = CRM.replace("(let [res (get-user id)]", "(let [res (crm/get-user id)]");
    let refused = Prelude::compile("p.clj", &qualified).expect_err("a qualified sibling").failure;
    assert_eq!(refused.reason.raw(), "qualified_self_reference");
    assert!(refused.message.contains("call the sibling by its bare name `get-user`"), "{refused:?}");
}

/// The file of the fourth section.
const VISIBLE: &str = r#"
(ns crm "CRM." {:visibility :prompt})

(defn get-user "One user." [id] (tool/call {:server "crm" :tool "get_user" :args {:id id}}))

(defn list-users
  "List CRM users."
  {:visibility :discoverable}
  []
  (tool/call {:server "crm" :tool "list_users" :args {}}))
"#;

#[tokio::test]
async fn visibility_decides_about_prompts_alone() {
    let inventory = prelude(VISIBLE).inventory().expect("one is for prompts");
    for (export, is_listed) in [("crm/get-user", true), ("crm/list-users", false)] {
        assert_eq!(inventory.contains(export), is_listed, "{inventory}");
        let runtime = runtime(VISIBLE).await;
        let name = export.trim_start_matches("crm/");
        assert_eq!(value(&runtime, &format!("(contains? (ns-publics 'crm) \"{name}\")")).await, "true");
        assert!(value(&runtime, &format!("(apropos \"{name}\")")).await.contains(export));
        assert!(value(&runtime, &format!("(doc '{export})")).await.contains("Kind: prelude-export"));
    }
    // The prompt text about the language mentions no prelude.
    assert!(!ptc_engine::card::LANGUAGE.contains("crm/"));
}

#[test]
fn a_host_narrows_visibility() {
    let narrowed = |names: &[&str]| prelude(VISIBLE).narrowed(names).expect("they are there").inventory();
    assert_eq!(narrowed(&["crm/get-user"]), None);
    assert_eq!(narrowed(&["crm"]), None);
    // Exports hidden from prompts do not appear there.
    assert_eq!(narrowed(&["crm/list-users"]), prelude(VISIBLE).inventory());
    let none = prelude(VISIBLE).narrowed(&["crm/nope"]).expect_err("there is none");
    assert!(none.contains("crm/nope"), "{none}");
}

#[test]
fn backing_operations_are_inferred() {
    let prelude = prelude(QUICK_START);
    let (ids, provider, effect) = requires(&prelude, "crm/get-user");
    assert_eq!(ids, serde_json::json!(["upstream:crm/get_user"]));
    assert_eq!((provider, effect), ("upstream:crm/get_user".into(), "read".into()));
    assert!(!prelude.trace().to_string().contains("tool:call"), "the tool of a call is none of the host");
}

#[test]
fn explicit_metadata_adds_and_overrides() {
    let text = r#"(ns crm)
(defn search
  "Search users."
  {:provider-ref "upstream:crm/search" :effect :read
   :requires ["upstream:crm/search"]}
  [query]
  (tool/call {:server "crm" :tool "search" :args {:q query}}))
(defn more {:requires ["tool:audit"]} [query] (search query))
(defn other {:provider-ref "upstream:crm/index" :effect :write} [query]
  (tool/call {:server "crm" :tool "search" :args {:q query}}))"#;
    let prelude = prelude(text);
    let search = serde_json::json!("upstream:crm/search");
    for (export, ids, provider, effect) in [
        ("search", vec!["upstream:crm/search"], search.clone(), "read"),
        ("more", vec!["tool:audit", "upstream:crm/search"], serde_json::Value::Null, "read"),
        ("other", vec!["upstream:crm/search"], "upstream:crm/index".into(), "write"),
    ] {
        let expected = (ids.into(), provider, effect.into());
        assert_eq!(requires(&prelude, &format!("crm/{export}")), expected, "{export}");
    }
    let malformed = text.replace("[\"tool:audit\"]", "[:audit]");
    let refused = Prelude::compile("p.clj", &malformed).expect_err("no text").failure;
    assert_eq!(refused.reason.raw(), "invalid_requires");
}

#[tokio::test]
async fn every_form_of_discovery_works() {
    let runtime = runtime(CRM).await;
    for (program, part) in [
        ("(all-ns)", "\"crm\""),
        ("(ns-name 'crm)", "\"crm\""),
        ("(ns-publics 'crm)", "\"page-size\""),
        ("(dir 'crm)", "\"(get-user id) - Return a CRM user by id.\""),
        ("(dir 'crm {:limit 1 :offset 4})", "\"(search query) - Search users.\""),
        ("(doc 'crm/get-user)", "Return a CRM user by id."),
        ("(meta 'crm/get-user)", ":provider_ref \"upstream:crm/get_user\""),
        ("(apropos \"user\")", "prelude: crm/get-user"),
        // A text instead of a quoted symbol.
        ("(ns-name \"crm\")", "\"crm\""),
        ("(ns-publics \"crm\")", "\"page-size\""),
    ] {
        let found = value(&runtime, program).await;
        assert!(found.contains(part), "{program}: {found}");
    }
    for (reference, part) in [
        ("crm/get-user", "(defn get-user \"Return a CRM user by id.\" [id]"),
        ("crm/normalize-id", "(defn- normalize-id"),
        ("nope", "no source available for nope"),
        ("map", "no source available for map"),
    ] {
        let shown = run(&runtime, &format!("(source '{reference})")).await;
        assert_eq!(shown.result.expect(reference).text, "nil");
        assert!(shown.prints.join("\n").contains(part), "{reference}: {:?}", shown.prints);
    }
    let (_, called) = failure(&runtime, "(crm/normalize-id \"x\")").await;
    assert!(called.contains("not a public export"), "what can be read can still not be called: {called}");
}

#[tokio::test]
async fn a_program_has_a_prelude_with_and_without_servers() {
    // An artifact serves any number of runtimes. Without servers no tools are required, and calls are refused.
    let artifact = Arc::new(Prelude::compile("crm.clj", QUICK_START).expect("it compiles"));
    for _ in 0..2 {
        let runtime =
            Runtime::builder().prelude(artifact.clone()).workers(1).start().await.expect("a runtime");
        assert_eq!(value(&runtime, "(fn? crm/get-user)").await, "true");
        let outcome = run(&runtime, "(:ok (crm/get-user \"u\"))").await;
        assert!(outcome.upstream_calls.is_empty(), "{outcome:?}");
    }
    // With servers the requirements are checked.
    let reached = with_servers(QUICK_START, &["crm"]).await;
    assert_eq!(value(&reached, "(:ok (crm/get-user \"norm:u_123\"))").await, "true");
    let (reason, message) = failure(&with_servers(QUICK_START, &["hr"]).await, "1").await;
    assert_eq!(reason, "prelude_attach_failed", "{message}");
}
