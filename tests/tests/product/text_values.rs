//! Values that are texts are shown with their line breaks in the text profile, and as data everywhere else.

use ptc_tests::serve::Server;
use ptc_tests::upstreams::Upstreams;
use serde_json::json;

fn shown(server: &mut Server, program: &str) -> String {
    let answer =
        server.request("tools/call", json!({ "name": "lisp_eval", "arguments": { "program": program } }));
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer:#}")).to_owned()
}

#[test]
fn a_text_with_line_breaks_is_shown_as_it_is() {
    let config = Upstreams::probe().write();
    let mut server = Server::start(&config.flags(&[]));
    let mut show = |program: &str| shown(&mut server, program);
    assert_eq!(show(r#"(str "a \"b\"" "\n" "c")"#), "<text>\na \"b\"\nc");
    assert_eq!(show(r#"(println "x") (str "a\nb")"#), "<prints>\nx\n\n<text>\na\nb");
    // Other values are data.
    assert_eq!(show(r#"[(str "a\nb")]"#), r#"["a\nb"]"#);
    assert_eq!(show(r#"(str "a b")"#), r#""a b""#);
    // What discovery gives is text, however a program collects it.
    let doc = show("(doc 'probe/echo)");
    assert!(doc.starts_with("<text>\nprobe/echo\n") && doc.contains("\n\nArgs: "), "{doc}");
    let docs = show("(mapv doc ['probe/echo 'probe/stats])");
    assert!(docs.starts_with("<text>\nprobe/echo\n") && docs.contains("\n\nprobe/stats\n"), "{docs}");
    let dir = show("(filter #(str/includes? % \"echo\") (dir 'probe))");
    assert!(dir.starts_with("<text>\necho {") && !dir.contains('\\'), "{dir}");
    let found = show("[(apropos \"echo\" {:limit 1}) (dir 'probe {:limit 1})]");
    assert_eq!(found.split("\n\n[note").next().unwrap().lines().count(), 3, "{found}");
    assert!(show("{:doc (doc 'probe/echo)}").starts_with("{:doc \"probe/echo\\n"));
    assert!(show("(fail (doc 'probe/echo))").starts_with("fail: probe/echo\n"));
}

#[test]
fn data_profiles_show_texts_as_data() {
    let config = Upstreams::probe().write();
    let mut server = Server::start(&config.flags(&["--response-profile", "structured"]));
    let call = json!({ "name": "lisp_eval", "arguments": { "program": r#"(str "a\nb")"# } });
    let answer = server.request("tools/call", call);
    assert_eq!(answer["result"]["structuredContent"]["result"], r#""a\nb""#, "{answer:#}");
    assert_eq!(answer["result"]["structuredContent"]["value"], "a\nb");
}
