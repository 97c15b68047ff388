//! Preludes given as files on the command line.

use ptc_tests::binary::{run_ptc, value};
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::{Upstreams, table_server};
use ptc_tests::workspace;
use serde_json::json;

fn crm() -> String {
    workspace().join("tests/preludes/crm.clj").to_str().expect("a path").to_owned()
}

#[test]
fn a_program_calls_an_export_that_calls_a_server() {
    let file = Upstreams::default().add("crm", table_server("tests/preludes/servers.json", "crm")).write();
    let program = "(get-in (crm/get-user \"u_123\") [:value \"name\"])";
    assert_eq!(value(program, &file.flags(&["--prelude", &crm()])), "\"Ada\"");
    let mut server = Server::start(&file.flags(&["--prelude", &crm()]));
    assert_eq!(text_of(&server.run(program)), "\"Ada\"");
    assert_eq!(
        server.text("(first (apropos \"user\"))"),
        "<text>\nprelude: crm/get-user - Return a CRM user by id."
    );
    server.end();
}

#[test]
fn descriptions_hold_the_inventory() {
    let mut server = Server::start(&["--prelude", &crm(), "--sessions"]);
    let first = server.request("tools/list", json!({}));
    let tools = first["result"]["tools"].as_array().expect("tools").clone();
    for name in ["lisp_eval", "lisp_session_eval"] {
        let tool = tools.iter().find(|tool| tool["name"] == name).expect(name);
        let description = tool["description"].as_str().expect("text");
        assert!(
            description.contains("  crm/get-user (get-user id) [read] — Return a CRM user by id."),
            "{description}"
        );
    }
    assert_eq!(server.request("tools/list", json!({}))["result"], first["result"]);
    server.end();
}

#[test]
fn files_are_composed_and_errors_are_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.to_str().expect("a path").to_owned()
    };
    let (hr, wrong) =
        (write("hr.clj", "(ns hr) (defn who [] :hr)"), write("wrong.clj", "(ns w)\n(defn f [] (nope))"));
    assert_eq!(value("[crm/page-size (hr/who)]", &["-p", &crm(), "-p", &hr]), "[50 :hr]");
    let finished = run_ptc(&["eval", "1", "--prelude", &wrong], "");
    assert_eq!(finished.code, Some(2), "{finished:?}");
    for text in ["does not compile", "prelude body references undefined variable(s): nope", "wrong.clj:2:13"]
    {
        assert!(finished.stderr.contains(text), "{text}\n{finished:?}");
    }
    let twice = run_ptc(&["eval", "1", "-p", &crm(), "-p", &crm()], "");
    assert!(
        twice.stderr.contains("namespace `crm` is declared by more than one selected prelude"),
        "{twice:?}"
    );
}
