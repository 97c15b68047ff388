//! The description of `lisp_eval` is true: `tests/description/claims.txt` splits it into claims, each with a program
//! that proves it. The description also fits into what clients show.

use ptc_tests::serve::Server;
use ptc_tests::upstreams::{Upstreams, stdio, table_server};
use ptc_tests::workspace;
use serde_json::json;

/// Clients cut descriptions at this length.
const CUT: usize = 2_048;

const TABLES: &str = "tests/first_try/data.json";

/// A part of the description, and programs with the beginning or, after `ends with`, the end of their answers.
struct Claim {
    text: String,
    proof: Option<(String, String)>,
}

fn claims() -> Vec<Claim> {
    let file = std::fs::read_to_string(workspace().join("tests/description/claims.txt"));
    let file = file.expect("the claims");
    let claim = |block: &str| {
        let text = block.strip_prefix("say ").unwrap_or_else(|| panic!("a claim begins with `say`: {block}"));
        if let Some((text, why)) = text.split_once("\nwhy ") {
            assert!(!why.is_empty());
            return Claim { text: text.to_owned(), proof: None };
        }
        let (text, proof) = text.split_once("\nrun ").unwrap_or_else(|| panic!("not proved: {block}"));
        let (program, answer) =
            proof.split_once("\n=> ").unwrap_or_else(|| panic!("without an answer: {block}"));
        Claim { text: text.to_owned(), proof: Some((program.to_owned(), answer.trim_end().to_owned())) }
    };
    // The answer of a claim may contain empty lines.
    let (_, claims) = file.split_once("\n\nsay ").expect("a claim");
    claims.split("\n\nsay ").map(|block| claim(&format!("say {block}"))).collect()
}

fn serve() -> Server {
    let mut absent = stdio("/nonexistent/server", &[]);
    absent["required"] = false.into();
    let config = Upstreams::probe()
        .add("files", table_server(TABLES, "files"))
        .add("desk", table_server(TABLES, "desk"))
        .add("absent", absent)
        .write();
    // An unanswered call fails soon, while programs have time enough for a slow machine.
    Server::start(&config.flags(&["--timeout", "120s", "--upstream-call-timeout", "2s"]))
}

#[test]
fn all_of_it_is_claimed_and_it_fits() {
    let config = Upstreams::probe().write();
    let mut server = Server::start(&config.flags(&[]));
    let list = server.request("tools/list", json!({}));
    let description = list["result"]["tools"][0]["description"].as_str().unwrap();
    assert!(description.len() < CUT, "{} bytes", description.len());
    let (said, servers) = description.split_once("Configured upstream MCP servers:").unwrap();
    assert!(servers.contains("- probe"), "{description}");
    let mut rest = said;
    for claim in claims() {
        rest = rest.trim_start();
        rest = rest
            .strip_prefix(&claim.text)
            .unwrap_or_else(|| panic!("{:?} is not next in {rest:?}", claim.text));
    }
    assert_eq!(rest.trim(), "", "not among the claims");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn each_claim_is_proved_by_its_program() {
    let mut server = serve();
    let context = json!({ "orders": [{ "id": 1, "tags": ["x"], "user_id": 5 }, { "id": 2 }] });
    let mut wrong = Vec::new();
    for Claim { text, proof } in claims() {
        let Some((program, wanted)) = proof else { continue };
        let arguments = json!({ "program": program, "context": context });
        let answer = server.request("tools/call", json!({ "name": "lisp_eval", "arguments": arguments }));
        let answer = answer["result"]["content"][0]["text"].as_str().unwrap();
        let is_so = match wanted.strip_prefix("ends with ") {
            Some(end) => answer.ends_with(end),
            // An error continues with its location and a hint, an answer with notes.
            None => answer.starts_with(&wanted),
        };
        if !is_so {
            wrong.push(format!("{text}\n  {program}\n  {wanted}\n  {}", &answer[..answer.len().min(400)]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert_eq!(server.end(), Some(0));
}
