//! The backing tools that a prelude requires of a host, and the failure of programs when they are missing.

use super::{CRM, prelude, run, runtime, value};
use ptc_engine::{Prelude, Runtime, RuntimeConfig, StartPolicy};
use ptc_tests::upstreams::{Upstreams, table_server};
use ptc_upstream::config::ServerEntry;
use serde_json::Value;

pub(crate) fn requires(prelude: &Prelude, reference: &str) -> (Value, Value, Value) {
    let trace = prelude.trace();
    let exports = trace["exports"].as_array().expect("a list");
    let export = exports.iter().find(|export| export["ref"] == reference).expect(reference);
    (export["requires"].clone(), export["provider_ref"].clone(), export["effect"].clone())
}

#[test]
fn requirements_are_inferred_from_literal_calls() {
    let text = r#"(ns m)
(defn- fetch [id] (tool/call {:server "crm" :tool "get_user" :args {:id id}}))
(defn- far [id] (inner id))
(defn- inner [id] (if id (far nil) (fetch id)))
(defn direct [id] (tool/call {:server "crm" :tool "get_user" :args {:id id}}))
(defn quoted [id] (tool/call 'crm/get_user {:id id}))
(defn through [id] (far id))
(defn both [id] [(fetch id) (tool/call {:server "hr" :tool "find" :args {}})])
(defn two [] [(tool/call {:server "a" :tool "x" :args {}}) (tool/call {:server "a" :tool "y" :args {}})])
(defn dynamic [s t] (tool/call {:server s :tool t :args {}}))
(defn half [t] (tool/call {:server "a" :tool t :args {}}))
(defn granted [x] (tool/log {:x x}))
(defn held [xs] (map tool/log xs))
(defn pure [x] (inc x))
(defn hidden [fetch] (fetch 1))
(defn told {:requires ["tool:z"] :effect :write} [id] (fetch id))
(defn named {:provider-ref "upstream:other/op"} [s] (tool/call {:server s :tool "x" :args {}}))
"#;
    let prelude = prelude(text);
    for (export, ids, provider, effect) in [
        ("direct", vec!["upstream:crm/get_user"], Some("upstream:crm/get_user"), "read"),
        ("quoted", vec!["upstream:crm/get_user"], Some("upstream:crm/get_user"), "read"),
        ("through", vec!["upstream:crm/get_user"], None, "read"),
        ("both", vec!["upstream:crm/get_user", "upstream:hr/find"], Some("upstream:hr/find"), "read"),
        ("two", vec!["upstream:a/x", "upstream:a/y"], None, "read"),
        ("dynamic", vec![], None, "unknown"),
        ("half", vec![], None, "unknown"),
        ("granted", vec!["tool:log"], None, "read"),
        ("held", vec!["tool:log"], None, "read"),
        ("pure", vec![], None, "unknown"),
        ("hidden", vec![], None, "unknown"),
        ("told", vec!["tool:z", "upstream:crm/get_user"], None, "write"),
        ("named", vec![], Some("upstream:other/op"), "read"),
    ] {
        let expected = (ids.into(), provider.into(), effect.into());
        assert_eq!(requires(&prelude, &format!("m/{export}")), expected, "{export}");
    }
}

/// Servers with the tables of the guide; the server `hr` has none of them.
pub(crate) fn entries(servers: &[&str]) -> Vec<ServerEntry> {
    let mut upstreams = Upstreams::default();
    for name in servers {
        upstreams = upstreams.add(
            name,
            table_server("tests/preludes/servers.json", if *name == "hr" { "poor" } else { name }),
        );
    }
    let file = upstreams.write();
    let secrets = ptc_base::secrets::SecretRegistry::new();
    let configs = ptc_upstream::config::Config::load_all(&[file.path().into()], &secrets)
        .map_err(|error| error.to_string());
    configs.expect("a configuration").into_iter().flat_map(|config| config.servers).collect()
}

pub(crate) async fn with_servers(text: &str, servers: &[&str]) -> Runtime {
    let config = RuntimeConfig {
        servers: entries(servers),
        preludes: vec![prelude(text)],
        start: StartPolicy::All,
        workers: 1,
        ..RuntimeConfig::default()
    };
    Runtime::start(config).await.expect("servers start")
}

async fn refused(runtime: &Runtime, program: &str) -> String {
    let failure = run(runtime, program).await.result.expect_err(program);
    assert_eq!(failure.reason.raw(), "prelude_attach_failed");
    assert!(!failure.hints().is_empty());
    failure.message
}

#[tokio::test]
async fn calls_reach_the_upstream() {
    let runtime = with_servers(CRM, &["crm"]).await;
    for (program, expected) in [
        ("(:value (crm/get-user \"u_123\"))", "{\"id\" \"norm:u_123\" \"name\" \"Ada\" \"plan\" \"pro\"}"),
        (
            "(def res (crm/get-user \"u_123\")) (if (res :ok) (return {:user (get (res :value) \"name\")}) (return {:error (res :reason)}))",
            "{:user \"Ada\"}",
        ),
        ("(:reason (crm/get-user \"nobody\"))", ":tool_error"),
        ("(count (:value (crm/list-users)))", "2"),
        ("(pmap #(get (crm/get-user! %) \"name\") [\"u_123\" \"u_124\"])", "[\"Ada\" \"Bob\"]"),
        ("(map (fn [u] (get u \"name\")) (:value (crm/search \"Bob\")))", "[\"Bob\"]"),
    ] {
        assert_eq!(value(&runtime, program).await, expected, "{program}");
    }
    let failed = run(&runtime, "(crm/get-user! \"nobody\")").await.result.expect_err("it aborts");
    assert_eq!((failed.reason.raw(), failed.message.as_str()), ("fail", "{:reason :tool_error}"));
}

#[tokio::test]
async fn what_is_missing_ends_a_program_before_it_begins() {
    let runtime = with_servers(CRM, &["hr"]).await;
    assert_eq!(
        refused(&runtime, "(println :begun)").await,
        "prelude attach failed: export `crm/get-user` requires upstream operation `upstream:crm/get_user`, but upstream \
         server `crm` is not configured for this run"
    );
    let text = "(ns m) (defn find [] (tool/call {:server \"hr\" :tool \"find\" :args {}}))";
    let runtime = with_servers(text, &["hr"]).await;
    assert_eq!(
        refused(&runtime, "1").await,
        "prelude attach failed: export `m/find` requires upstream operation `upstream:hr/find`, but tool `find` is not \
         present on upstream server `hr`"
    );
    assert_eq!(run(&runtime, "(println 1)").await.prints, Vec::<String>::new());
}

#[tokio::test]
async fn without_servers_upstreams_are_not_asked_for_and_tools_are() {
    assert_eq!(value(&runtime(CRM).await, "crm/page-size").await, "50");
    let granted = runtime("(ns m) (defn log [x] (tool/log_sessions {:x x}))").await;
    assert_eq!(
        refused(&granted, "1").await,
        "prelude attach failed: export `m/log` requires granted tool `log_sessions`, but the host did not grant a tool of \
         that name for this run"
    );
    let odd = runtime("(ns m) (defn f {:requires [\"db:users\"]} [] 1)").await;
    assert_eq!(
        refused(&odd, "1").await,
        "prelude attach failed: export `m/f` declares an unrecognized backing requirement `db:users`; supported shapes \
         are `upstream:<server>/<tool>` and `tool:<name>`"
    );
}
