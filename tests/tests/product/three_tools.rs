//! Three tools, one with a recursive filter, are learned in few words: a token of the usual tokenizers has about four
//! bytes of these texts, and at most 700 tokens are the aim.

use ptc_tests::binary::eval;
use ptc_tests::signature::{Style, arguments, read};
use ptc_tests::upstreams::{Upstreams, stdio};
use ptc_tests::workspace;

#[test]
fn a_list_and_one_documentation_suffice() {
    let server = workspace().join("tests/python/notes.py");
    let config = Upstreams::default().add("notes", stdio("python3", &[server.to_str().unwrap()])).write();
    let program = "[(str/join \"\\n\" (dir 'notes)) (doc 'notes/query_database)]";
    let report = eval(program, &config.flags(&[]));
    let [dir, doc] = [0, 1].map(|at| report["json"][at].as_str().unwrap_or_else(|| panic!("{report:#}")));
    assert!(
        dir.len() <= 400 && dir.len() + doc.len() <= 2_000,
        "{} and {} bytes:\n{dir}\n{doc}",
        dir.len(),
        doc.len()
    );
    assert!(
        dir.contains("send_message {:channel string :text string<..4000> :thread string|null?} - Send a"),
        "{dir}"
    );
    // The filter stands there once, and a filter in a filter can be written from it.
    assert_eq!(doc.matches("Filter = {").count(), 1, "{doc}");
    let made = read(arguments(doc).unwrap()).value(Style::First);
    assert_eq!(made["filter"]["and"][0]["or"][0]["text"]["contains"], "text", "{made:#}");
}
