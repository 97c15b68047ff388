//! Wrong tool calls are refused before any request, with a hint that says what to change; right ones are not. The
//! cases are in `tests/tool_checks`.
#![allow(clippy::unwrap_used, reason = "broken files of cases should be loud")]
#![allow(clippy::disallowed_methods, reason = "tests write files as they need them")]

use crate::common;
use common::listing::{Listings, start};
use common::programs::{failure, run, value};
use ptc_compiler::diagnostic::Palette;
use ptc_engine::{Runtime, StartPolicy};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const SERVERS: [&str; 3] = ["fs", "github", "time"];

/// A right call, made before each wrong one.
const RIGHT: &str = "(tool/call 'fs/list_directory {:path \".\"})";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/tool_checks")
}

async fn runtime(listings: &Listings) -> Runtime {
    let text = std::fs::read_to_string(folder().join("tools.json")).unwrap();
    let tools: Value = serde_json::from_str(&text).unwrap();
    let servers = SERVERS.map(|name| listings.server(name, "", &tools[name]));
    start(servers.into(), StartPolicy::All).await
}

fn requests(listings: &Listings) -> usize {
    SERVERS.iter().map(|server| listings.calls(server)).sum()
}

/// A recorded case: its name, its program, the rendered failure.
struct Case {
    name: String,
    program: String,
    recorded: String,
}

/// Reads a file of cases. Gives its heading as well.
fn cases(file: &Path) -> (String, Vec<Case>) {
    let text = std::fs::read_to_string(file).unwrap();
    let (heading, rest) = text.split_once("\n==== ").unwrap();
    let case = |text: &str| {
        let (name, rest) = text.split_once('\n').unwrap();
        let (program, recorded) = rest.split_once("\n----\n").unwrap();
        Case { name: name.to_owned(), program: program.to_owned(), recorded: recorded.trim_end().to_owned() }
    };
    (heading.to_owned(), rest.split("\n==== ").map(case).collect())
}

/// Runs the cases of a file; compares their texts and the requests that arrived.
async fn judge(name: &str, prelude: &str, sent: usize) -> usize {
    let file = folder().join(name);
    let (heading, cases) = cases(&file);
    let listings = Listings::new(name);
    let runtime = runtime(&listings).await;
    let mut recorded = heading;
    let mut different = Vec::new();
    for case in &cases {
        let before = requests(&listings);
        let failed = failure(&runtime, &format!("{prelude}{}", case.program)).await;
        assert_eq!(requests(&listings) - before, sent, "{}: a request was sent", case.name);
        assert_eq!(failed.reason.class().name(), "runtime_error", "{}", case.name);
        assert!(failed.position().is_some(), "{}", case.name);
        assert!(
            !failed.hints().is_empty(),
            "{}: no hint\n{}",
            case.name,
            failed.text("program", Palette::PLAIN)
        );
        let text = failed.text("program", Palette::PLAIN);
        write!(recorded, "\n==== {}\n{}\n----\n{text}\n", case.name, case.program).unwrap();
        if text != case.recorded {
            different.push(format!("{}\n{text}", case.name));
        }
    }
    if std::env::var_os("PTC_BLESS").is_some() {
        std::fs::write(&file, recorded).unwrap();
    } else {
        assert!(different.is_empty(), "PTC_BLESS=1 records these:\n{}", different.join("\n\n"));
    }
    cases.len()
}

#[tokio::test]
async fn literal_calls_that_are_wrong_are_refused_before_anything_is_sent() {
    let judged = judge("refused.txt", &format!("{RIGHT}\n"), 0).await;
    assert!(judged >= 40, "{judged} cases");
}

#[tokio::test]
async fn computed_calls_that_are_wrong_are_not_sent() {
    judge("refused_when_made.txt", "", 0).await;
}

#[tokio::test]
async fn right_calls_are_not_refused() {
    let listings = Listings::new("right");
    let runtime = runtime(&listings).await;
    let programs = [
        "(tool/call 'fs/read_text_file {:path \"a\" :head 5})",
        "(tool/call 'fs/read_text_file {:path \"a\" :head 5.0 :tail nil})",
        "(tool/call 'fs/read_text_file {\"path\" \"a\"})",
        "(tool/call 'fs/read-many {:paths [] :with-hidden true})",
        "(tool/call 'fs/edit_file {:path \"a\" :edits [{:oldText \"x\" :newText \"y\"}] :dryRun false})",
        "(tool/call 'github/search_issues {:query \"x\" :state :open :sort-by \"created\" :limit 3 :labels [\"bug\"]})",
        "(tool/call 'github/search_issues {:query \"x\" :state nil :labels #{\"docs\"} :milestone nil})",
        "(tool/call 'github/search_issues (merge {:query \"x\"} {:milestone 4}))",
        "(tool/call 'github/create_issue {:title \"t\" :kind \"issue\" :assignee {:login \"me\" :site-admin nil}})",
        "(tool/call 'github/list_repos {:whatever 1})",
        "(tool/call 'time/now)",
        "(tool/call 'time/convert {:from \"UTC\" :to \"CET\" :at 5})",
        "(tool/call {:server \"fs\" :tool (str \"list\" \"_directory\") :args {:path \"a\"}})",
        "(tool/call 'fs/list_directory {:path (str \"a\" 1)})",
        "(tool/call 'fs/list_directory {(keyword \"path\") \"a\"})",
    ];
    for program in programs {
        assert_eq!(value(&runtime, &format!("(:ok {program})")).await, "true", "{program}");
    }
    assert_eq!(requests(&listings), programs.len());
}

#[tokio::test]
async fn a_program_that_looks_at_the_servers_is_not_refused_for_what_its_branches_do() {
    let listings = Listings::new("looks");
    let runtime = runtime(&listings).await;
    let programs = [
        "(if (some #(= (:name %) \"slack\") (tool/servers)) (tool/call 'slack/post {:text \"x\"}) :no)",
        "(let [have (set (map :name (tool/servers)))] (cond (have \"slack\") (tool/call 'slack/post {}) :else :no))",
        "(defn post [] (tool/call 'slack/post {})) (if (empty? (apropos \"slack\")) :no (post))",
        "(when (empty? (filter #(= (:name %) \"slack\") (tool/servers))) (return :no)) (tool/call 'slack/post {})",
    ];
    for program in programs {
        assert_eq!(value(&runtime, program).await, ":no", "{program}");
    }
    // Outside of a branch the same call is certain to fail.
    let failed = failure(&runtime, "(println (count (tool/servers))) (tool/call 'slack/post {})").await;
    assert!(failed.message.starts_with("no upstream 'slack' configured"), "{}", failed.message);
    assert_eq!(requests(&listings), 0);
}

#[tokio::test]
async fn servers_that_are_not_loaded_are_checked_when_they_are_called() {
    let listings = Listings::new("lazy");
    let tools = json!([{"name": "read", "inputSchema": {"type": "object", "required": ["path"]}}]);
    let runtime = start(vec![listings.server("fs", "", &tools)], StartPolicy::Lazy).await;
    let program = "(println \"begun\") (tool/call 'fs/read {})";
    let first = run(&runtime, program).await;
    assert_eq!(first.prints, ["begun"]);
    let message = "tool 'fs.read' rejected args: missing required args path";
    assert_eq!(first.result.unwrap_err().message, message);
    // Now the list is known: the same text is refused before it runs, although it was compiled earlier.
    let second = run(&runtime, program).await;
    assert!(second.prints.is_empty());
    assert_eq!(second.result.unwrap_err().message, message);
    assert_eq!(listings.calls("fs"), 0);
}

#[tokio::test]
async fn arguments_that_a_schema_does_not_declare_are_sent_and_remarked_upon() {
    let listings = Listings::new("undeclared");
    let runtime = runtime(&listings).await;
    let outcome = run(&runtime, "(get-in (tool/call 'time/convert {:from \"a\" :to \"b\" :at \"c\" :style \"long\"}) [:value :args :style])").await;
    assert_eq!(outcome.result.unwrap().text, "\"long\"");
    assert_eq!(
        outcome.notes,
        ["the schema of time/convert has no argument :style; it may be ignored. \
          Signature: time/convert {:from string :to string :at string|integer}"]
    );
}

#[tokio::test]
async fn the_call_forms_of_documentation_pass_the_checks() {
    let listings = Listings::new("forms");
    let runtime = runtime(&listings).await;
    let text = std::fs::read_to_string(folder().join("tools.json")).unwrap();
    let tools: Value = serde_json::from_str(&text).unwrap();
    for server in SERVERS {
        for tool in tools[server].as_array().unwrap() {
            let reference = format!("{server}/{}", tool["name"].as_str().unwrap());
            let call = value(&runtime, &format!("(:call (meta \"{reference}\"))")).await;
            let call: String = serde_json::from_str(&call).unwrap();
            assert_eq!(value(&runtime, &format!("(:ok {call})")).await, "true", "{call}");
        }
    }
}
