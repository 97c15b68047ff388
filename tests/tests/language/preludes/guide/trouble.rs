//! Sections 9 and 11 of the guide: what a trace says, and every symptom with the guide's text for it.

use crate::preludes::attach::with_servers;
use crate::preludes::{CRM, failure, prelude, runtime};
use ptc_engine::{Prelude, PreludeSource};

#[test]
fn a_trace_says_which_prelude_it_was() {
    let source = |id: &str, text: &str| PreludeSource {
        id: Some(id.to_owned()),
        origin: Some(format!("file:{id}.clj")),
        ..PreludeSource::new(format!("{id}.clj"), text)
    };
    let log = "(ns log) (defn- secret-helper [x] [x \"sk-not-shown\"]) (defn note [x] (secret-helper x))";
    let composed = Prelude::compose(vec![source("crm", CRM), source("log", log)]).expect("two texts");
    let trace = composed.trace();
    for hash in ["source_hash", "artifact_hash"] {
        assert_eq!(trace[hash].as_str().map(str::len), Some(64), "{hash}");
    }
    assert_eq!(trace["protected_namespaces"], serde_json::json!(["crm", "log"]));
    for (at, id) in ["crm", "log"].iter().enumerate() {
        let component = &trace["components"][at];
        assert_eq!(component["id"], **id);
        assert_eq!(component["origin"], format!("file:{id}.clj"));
        assert_eq!(component["namespaces"], serde_json::json!([id]));
        assert_eq!(component["source_hash"].as_str().map(str::len), Some(64));
    }
    let exports = trace["exports"].as_array().expect("records");
    let get_user = exports.iter().find(|export| export["ref"] == "crm/get-user").expect("an export");
    for (key, expected) in [
        ("namespace", serde_json::json!("crm")),
        ("symbol", "get-user".into()),
        ("arity", 1.into()),
        ("params", serde_json::json!(["id"])),
        ("visibility", "prompt".into()),
        ("effect", "read".into()),
        ("provider_ref", "upstream:crm/get_user".into()),
        ("requires", serde_json::json!(["upstream:crm/get_user"])),
    ] {
        assert_eq!(get_user[key], expected, "{key}");
    }
    let text = trace.to_string();
    for hidden in ["secret-helper", "sk-not-shown", "normalize-id", "tool/call"] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
}

fn wrong(text: &str) -> String {
    Prelude::compile("p.clj", text).expect_err(text).failure.message
}

#[tokio::test]
async fn every_symptom_has_the_text_of_the_guide() {
    let bare = ptc_engine::Runtime::builder().workers(1).start().await.expect("a runtime");
    let attached = runtime(CRM).await;
    let logs = runtime("(ns log) (defn sessions [] (tool/log_sessions {}))").await;
    let poor = with_servers(CRM, &["hr"]).await;
    let of = async |runtime, program| failure(runtime, program).await;
    // The prelude is not attached.
    assert_eq!(of(&bare, "(crm/get-user 1)").await.1, "unknown namespace crm/");
    // An operation does not exist; a tool is not granted.
    let (reason, message) = of(&poor, "1").await;
    assert_eq!(reason, "prelude_attach_failed");
    assert!(message.starts_with("prelude attach failed: ") && message.contains("upstream:crm/get_user"));
    let (reason, message) = of(&logs, "1").await;
    assert_eq!(reason, "prelude_attach_failed");
    assert!(
        message.starts_with("prelude attach failed: ")
            && message.contains("requires granted tool `log_sessions`")
    );
    // Protected names.
    for program in ["(def crm/get-user 1)", "(defn crm/get-user [x] x)"] {
        assert!(of(&attached, program).await.1.starts_with("cannot redefine crm/get-user"), "{program}");
    }
    for program in ["(def crm/mine 1)", "(defn crm/mine [x] x)"] {
        assert!(of(&attached, program).await.1.contains("crm is a protected namespace"), "{program}");
    }
    // Texts that are not preludes.
    for (text, part) in [
        ("(ns crm) (ns crm)", "namespace 'crm' is declared more than once"),
        ("(ns crm {:visibility :secret})", "invalid visibility"),
        ("(ns crm) (defn f {:requires [1]} [] 1)", ":requires must be a list of strings"),
        ("(ns crm) (def x (reduce + (range 100000000)))", "prelude evaluation exceeded sandbox limits"),
    ] {
        assert!(wrong(text).contains(part), "{text}: {}", wrong(text));
    }
    let duplicate = wrong("(ns crm) (defn f [] 1) (defn f [] 2)");
    assert!(duplicate.starts_with("duplicate ") && duplicate.contains(" ref `crm/f`"), "{duplicate}");
    // Exports that are hidden from prompts.
    let inventory = prelude(CRM).inventory().expect("exports");
    assert!(!inventory.contains("crm/list-users") && inventory.contains("crm/get-user"));
}
