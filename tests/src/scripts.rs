//! Sends scripts to a server's `execute_program` and reads the resulting texts.

use crate::serve::{Server, text_of};
use crate::upstreams::Upstreams;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

/// The engines that run scripts here: python3 where it can be jailed, and the interpreter that is built in.
pub fn engines() -> Vec<&'static str> {
    let all = [("cpython", cfg!(jail)), ("monty", cfg!(feature = "monty"))];
    all.into_iter().filter(|(_, runs)| *runs).map(|(name, _)| name).collect()
}

/// One of them, for tests that are not about engines.
pub fn engine() -> &'static str {
    engines().last().copied().unwrap_or("auto")
}

/// Flags for a server that runs scripts and nothing else.
pub const ONLY_SCRIPTS: [&str; 2] = ["--tools", "execute_program"];

/// Precedes the output of a script that failed.
pub const BEFORE: &str = "\n\n[Output before the failure]\n";

/// A file of `tests/python`.
pub fn data(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(name).to_str().unwrap().to_owned()
}

/// The server of the document's example.
pub fn finance() -> Upstreams {
    let finance = json!({ "transport": "mcp_stdio", "command": "python3", "args": [data("finance.py")] });
    Upstreams::default().add("financial-data", finance)
}

/// A server that counts its calls and has tools that never answer.
pub fn counter() -> Upstreams {
    let counter = json!({ "transport": "mcp_stdio", "command": "python3", "args": [data("counter.py")] });
    Upstreams::default().add("counter", counter)
}

/// The script of the document's example, and its result.
pub const REVENUE: (&str, &str) = (
    r#"
tickers = ["AMZN", "MSFT", "GOOG"]
for t in tickers:
    data = await mcp__financial_data__query_financials(
        ticker=t, statement="income", period="quarter", limit=4
    )
    revenues = [q["revenue"] for q in data]
    trend = " → ".join(f"${r/1e9:.1f}B" for r in revenues)
    print(f"{t}: {trend}")
"#,
    "[Script executed successfully]\nAMZN: $170.0B → $165.3B → $158.9B → $149.2B\n\
     MSFT: $65.6B → $62.0B → $59.1B → $56.5B\nGOOG: $96.5B → $88.3B → $85.0B → $80.5B\n",
);

/// Removes the marks below source lines, which Python prints from 3.11 on.
pub fn without_marks(text: &str) -> String {
    let is_marks = |line: &&str| !line.is_empty() && line.chars().all(|c| " ~^".contains(c));
    text.split('\n').filter(|line| !is_marks(line)).collect::<Vec<_>>().join("\n")
}

/// Sends a script.
pub fn begin(server: &mut Server, code: &str) -> u64 {
    server.begin("tools/call", json!({ "name": "execute_program", "arguments": { "code": code } }))
}

/// The result of a script.
pub fn result(server: &mut Server, code: &str) -> Value {
    let id = begin(server, code);
    loop {
        let answer = server.receive();
        if answer["id"] == id {
            return answer["result"].clone();
        }
    }
}

/// The result as text.
pub fn run(server: &mut Server, code: &str) -> String {
    text_of(&result(server, code))
}

/// The texts of `count` answers, by request.
pub fn answers(server: &mut Server, count: usize) -> HashMap<u64, String> {
    let mut texts = HashMap::new();
    while texts.len() < count {
        let answer = server.receive();
        if let Some(id) = answer["id"].as_u64() {
            texts.insert(id, text_of(&answer["result"]));
        }
    }
    texts
}

/// The scripts of a file of `tests/python`, by their titles.
pub fn sections(name: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(data(name)).unwrap();
    let section =
        |section: &str| section.split_once('\n').map(|(name, code)| (name.to_owned(), code.to_owned()));
    text.split("\n# ---- ").skip(1).filter_map(section).collect()
}

/// The output of CPython for each script of `scripts.py`, by title.
pub fn reference() -> Vec<(String, String)> {
    let output =
        Command::new("python3").args(["-I", &data("reference.py"), &data("scripts.py")]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs all attacks at once. None may succeed, and the server still answers the next script.
pub fn attack(server: &mut Server) {
    let attacks = sections("attacks.py");
    assert!(attacks.len() >= 60);
    let began: Vec<(u64, &str)> =
        attacks.iter().map(|(name, code)| (begin(server, code), name.as_str())).collect();
    for _ in &began {
        let answer = server.receive();
        let (_, name) = began.iter().find(|(id, _)| answer["id"] == *id).unwrap();
        // A traceback quotes lines of the script, and the output follows it: only a line of its own counts.
        let text = text_of(&answer["result"]);
        let printed = match text.starts_with("[Script executed") {
            true => text.as_str(),
            false => text.split_once(BEFORE).map_or("", |(_, printed)| printed),
        };
        assert!(!printed.contains("BROKEN"), "{name}: {text}");
    }
    assert_eq!(
        run(server, "import math, json\nprint(json.loads('1'), math.pi > 3)"),
        "[Script executed successfully]\n1 True\n"
    );
    println!("{} attacks, 0 succeeded", attacks.len());
}
