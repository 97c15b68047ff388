//! `ptc prelude`.

use super::CRM;
use ptc_tests::binary::{Finished, eval, run_ptc};
use ptc_tests::upstreams::{Upstreams, table_server};
use ptc_tests::workspace;
use serde_json::Value;
use tempfile::TempDir;

fn crm() -> String {
    workspace().join("tests/preludes/crm.clj").to_str().expect("a path").to_owned()
}

fn command(arguments: &[&str]) -> Finished {
    run_ptc(&[&["prelude"], arguments].concat(), "")
}

fn write(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("written");
    path.to_str().expect("a path").to_owned()
}

#[test]
fn check_says_what_is_wrong_and_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = command(&["check", &crm()]);
    assert_eq!((good.code, good.stdout.as_str()), (Some(0), "crm: ok (5 exports)\n"), "{good:?}");
    let wrong = write(&folder, "wrong.clj", "(ns w)\n(defn f [] (nope))");
    let refused = command(&["check", &wrong]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stdout.contains("wrong.clj:2:13"), "{refused:?}");
    let poor = Upstreams::default().add("crm", table_server("tests/preludes/servers.json", "poor")).write();
    let missing = command(&["check", &crm(), "--upstreams-config", poor.path(), "--output", "json"]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    let report: Value = serde_json::from_str(&missing.stdout).expect("JSON");
    let diagnostic = &report["diagnostics"][0];
    assert_eq!(diagnostic["reason"], "prelude_attach_failed");
    assert_eq!(
        diagnostic["message"],
        "prelude attach failed: export `crm/get-user` requires upstream operation `upstream:crm/get_user`, but tool \
         `get_user` is not present on upstream server `crm`"
    );
    assert_eq!(report["prelude"]["protected_namespaces"][0], "crm");
}

#[test]
fn inventory_and_documentation_are_printed() {
    let inventory = command(&["inventory", &crm()]);
    let prelude = ptc_engine::Prelude::compile("crm.clj", CRM).expect("it compiles");
    assert_eq!(inventory.stdout.trim_end(), prelude.inventory().expect("exports"));
    let document = command(&["doc", &crm()]).stdout;
    for part in [
        "# crm\n\nCRM helpers.\n",
        "## `(crm/get-user id)`\n\nReturn a CRM user by id.\n\nMeant to change nothing. Needs `upstream:crm/get_user`.\n",
        "## `crm/page-size`\n\nA constant.\n",
        "Not listed in prompts.",
    ] {
        assert!(document.contains(part), "{part}\n{document}");
    }
}

const TESTS: &str = r#"; Tests of the prelude of the guide.
(defn name-of [res] (get-in res [:value "name"]))

(deftest users-are-found
  (def ada (crm/get-user "u_123"))
  (is (:ok ada))
  (is (= "Ada" (name-of ada))))

(deftest strangers-abort
  (is (thrown? (crm/get-user! "nobody")))
  (is (= :tool_error (:reason (crm/get-user "nobody")))))

(deftest wrong-ones
  (is (= "Bob" (name-of (crm/get-user "u_123"))) "the name")
  (is (/ 1 0))
  (is nil)
  (is (thrown? 5)))
"#;

const REPLAY: &str = r#"{"crm": {
    "get_user": [{"args": {"id": "norm:u_123"}, "result": {"name": "Ada"}}, {"error": "no such user"}],
    "list_users": [], "search": []
}}"#;

#[test]
fn tests_hold_against_recorded_and_against_running_servers() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tests, replay) = (write(&folder, "crm_test.clj", TESTS), write(&folder, "calls.json", REPLAY));
    let servers = Upstreams::default().add("crm", table_server("tests/preludes/servers.json", "crm")).write();
    for servers in [["--replay", replay.as_str()], ["--upstreams-config", servers.path()]] {
        let told = command(&["test", &tests, "--prelude", &crm(), servers[0], servers[1]]);
        assert_eq!(told.code, Some(1), "{told:?}");
        let out = &told.stdout;
        for part in [
            "users-are-found: ok\nstrangers-abort: ok\nwrong-ones: failed\n",
            "crm_test.clj:14:3: not equal\n    \"Bob\"  <- \"Bob\"\n    \"Ada\"  <- (name-of (crm/get-user \"u_123\"))\n",
            "crm_test.clj:15:3: arithmetic_error: division by zero",
            "crm_test.clj:15:7",
            "crm_test.clj:16:3: the value is nil\n",
            "crm_test.clj:17:3: it did not fail, its value is 5\n",
            "4 held, 4 failed\n",
        ] {
            assert!(out.contains(part), "{part}\n{out}");
        }
    }
    let wrong = write(&folder, "odd.clj", "(deftest nothing)\n(deftest nothing (is 1))");
    let refused = command(&["test", &wrong]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("a test without (is …) asserts nothing"), "{refused:?}");
}

#[test]
fn a_record_of_a_run_says_which_prelude_it_had() {
    let trace = eval("crm/page-size", &["--prelude", &crm()])["prelude_trace"].clone();
    assert_eq!(trace["protected_namespaces"], serde_json::json!(["crm"]));
    assert_eq!(trace["source_hash"].as_str().map(str::len), Some(64));
    assert_eq!(trace["components"][0]["id"], "crm");
    let exports = trace["exports"].as_array().expect("a list");
    assert_eq!(exports[0]["ref"], "crm/get-user");
    assert_eq!(exports[0]["params"], serde_json::json!(["id"]));
    assert!(!trace.to_string().contains("normalize"), "{trace}");
    assert_eq!(eval("1", &[])["prelude_trace"], Value::Null);
}
