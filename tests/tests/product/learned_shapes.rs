//! Shapes of results are learned across runs of the program, and nothing else of the results is stored.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::binary::{Finished, ptc, run};
use ptc_tests::serve::Server;
use ptc_tests::upstreams::{ConfigFile, Upstreams, table_server};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::Path;
use tempfile::{NamedTempFile, TempDir};

/// Servers with these tables, one tool each without an output schema, and a folder for state.
struct Bank {
    _tables: NamedTempFile,
    config: ConfigFile,
    state: TempDir,
}

impl Bank {
    fn new(tables: &Value) -> Bank {
        Bank::with(&[("bank", tables)])
    }

    fn with(servers: &[(&str, &Value)]) -> Bank {
        let mut file = NamedTempFile::new().unwrap();
        let mut all = Map::new();
        for (server, tables) in servers {
            let names = tables.as_object().unwrap().keys();
            let tool = |name: &String| json!({ "description": "Rows.", "args": {}, "rows": name });
            let tools: Map<String, Value> = names.map(|name| (name.clone(), tool(name))).collect();
            all.insert((*server).into(), json!({ "tables": tables, "tools": tools, "as": "text" }));
        }
        write!(file, "{}", Value::Object(all)).unwrap();
        let path = file.path().to_str().unwrap();
        let add = |all: Upstreams, (name, _): &(&str, &Value)| all.add(name, table_server(path, name));
        let config = servers.iter().fold(Upstreams::default(), add).write();
        Bank { _tables: file, config, state: tempfile::tempdir().unwrap() }
    }

    fn eval(&self, program: &str, flags: &[&str]) -> String {
        let mut arguments = vec!["eval", program];
        arguments.extend(self.config.flags(flags));
        let mut command = ptc(&arguments);
        command.env("XDG_STATE_HOME", self.state.path());
        let Finished { code, stdout, stderr } = run(command, "");
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        stdout
    }

    fn returns(&self, tool: &str, flags: &[&str]) -> String {
        self.eval(&format!("(first (re-seq #\"Returns.*\" (doc \"bank/{tool}\")))"), flags).trim().to_owned()
    }
}

/// All that is stored.
fn stored(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        text += &format!("{}\n", path.display());
        match path.is_dir() {
            true => text += &stored(&path),
            false => text += &String::from_utf8(std::fs::read(&path).unwrap()).unwrap(),
        }
    }
    text
}

fn transactions() -> Value {
    json!({ "list_transactions": [
        { "id": 1, "sender": "me", "amount": 12.5, "note": null },
        { "id": 2, "sender": "GB29NWBK60161331926819", "amount": 3.25, "note": "rent for March" },
    ] })
}

#[test]
fn a_later_run_knows_the_shape() {
    let bank = Bank::new(&transactions());
    assert!(bank.returns("list_transactions", &[]).contains("Returns: Result<any>"));
    for _ in 0..2 {
        bank.eval("(count (:value (tool/call 'bank/list_transactions {})))", &[]);
    }
    assert_eq!(
        bank.returns("list_transactions", &[]),
        "\"Returns (seen 2 times, 2 to 3 items): [{:amount float :id int :note string|nil :sender string}]\""
    );
    let stored = stored(bank.state.path());
    assert!(stored.contains("sender") && stored.contains("shapes/"), "{stored}");
    for value in ["rent", "GB29", "12.5", "\"me\""] {
        assert!(!stored.contains(value), "{value} in {stored}");
    }
}

#[test]
fn the_flag_decides_how_long_shapes_are_remembered() {
    let bank = Bank::new(&transactions());
    let both = "(do (tool/call 'bank/list_transactions {}) (first (re-seq #\"Returns.*\" (doc 'bank/list_transactions))))";
    assert!(bank.eval(both, &["--learn-shapes", "off"]).contains("Returns: Result<any>"));
    assert!(bank.eval(both, &["--learn-shapes", "run"]).contains("(seen 1 time, "));
    assert!(bank.returns("list_transactions", &[]).contains("Returns: Result<any>"));
    assert!(!stored(bank.state.path()).contains("shapes/"));
}

#[test]
fn a_tool_with_another_schema_is_another_tool() {
    let bank = Bank::new(&transactions());
    bank.eval("(count (:value (tool/call 'bank/list_transactions {})))", &[]);
    let folder = bank.state.path().join("ptc/shapes");
    let file = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let file = file.into_iter().find(|path| path.extension().is_some_and(|end| end == "json")).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let at = text.find("\"digest\":\"").unwrap() + 10;
    std::fs::write(&file, format!("{}{}{}", &text[..at], "0".repeat(32), &text[at + 32..])).unwrap();
    assert!(bank.returns("list_transactions", &[]).contains("Returns: Result<any>"));
}

/// Letters and digits that depend on the number only.
fn token(mut seed: u64, alphabet: &str, length: usize) -> String {
    let letters: Vec<char> = alphabet.chars().collect();
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        letters[usize::try_from(seed >> 33).unwrap() % letters.len()]
    };
    (0..length).map(|_| next()).collect()
}

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Secrets in the forms in which services hand them out, and personal data that may be keys.
fn secret(number: u64) -> String {
    let digits = |length| token(number, "0123456789", length);
    match number % 10 {
        0 => format!("sk_live_{}", token(number, ALNUM, 24)),
        1 => format!("ghp_{}", token(number, ALNUM, 36)),
        2 => format!("AKIA{}", token(number, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)),
        3 => token(number, "0123456789abcdef", 32),
        4 => format!(
            "eyJ{}.eyJ{}.{}",
            token(number, ALNUM, 20),
            token(number + 1, ALNUM, 30),
            token(number + 2, ALNUM, 43)
        ),
        5 => format!("xoxb-{}-{}", digits(12), token(number, ALNUM, 24)),
        6 => format!("{}@{}.example", token(number, "abcdefghijklmnop", 8), token(number + 1, "abcdefgh", 5)),
        7 => format!("DE{}", digits(20)),
        8 => token(number, "abcdefghijklmnopqrstuvwxyz", 16),
        _ => token(number, ALNUM, 20),
    }
}

#[test]
fn a_thousand_secrets_leave_no_trace() {
    let secrets: Vec<String> = (0..1_000).map(secret).collect();
    // Each as a value, and each as a key: alone, among names, in a dictionary.
    let row = |at: usize, secret: &String| match at % 3 {
        0 => json!({ secret.as_str(): { "limit": 1 } }),
        1 => json!({ "id": 1, "name": "x", secret.as_str(): true }),
        _ => json!({ "owners": { secret.as_str(): [1] } }),
    };
    // The shapes of at most 512 tools of a server are remembered.
    let mut tables = [Value::default(), Value::default(), Value::default()];
    for (at, secret) in secrets.iter().enumerate() {
        let row = row(at / 3, secret);
        tables[at % 3][format!("rows_{at}")] = json!([row.clone(), row]);
    }
    let values: Vec<Value> = secrets.iter().map(|secret| json!({ "id": 1, "token": secret })).collect();
    tables[0]["values"] = values.into();
    let [a, b, c] = &tables;
    let bank = Bank::with(&[("a", a), ("b", b), ("c", c)]);
    let mut server = Server::from_command({
        let mut arguments = vec!["serve"];
        arguments.extend(bank.config.flags(&["--max-upstream-calls", "5000", "--timeout", "120s"]));
        let mut command = ptc(&arguments);
        command.env("XDG_STATE_HOME", bank.state.path());
        command
    });
    // Each tool twice, so that every key is confirmed.
    for (index, name) in ["a", "b", "c"].into_iter().enumerate() {
        let program = format!(
            "(let [names (conj (mapv (fn [n] (str \"rows_\" (+ {index} (* 3 n)))) (range 333)) {:?})]
               (count (filter :ok (pmap (fn [n] (tool/call {{:server {name:?} :tool n :args {{}}}})) (into names names)))))",
            ["values", "rows_1", "rows_2"][index],
        );
        let answer = server.text(&program);
        assert!(answer.starts_with("668"), "{answer}");
    }
    assert_eq!(server.end(), Some(0));
    let stored = stored(&bank.state.path().join("ptc/shapes"));
    assert!(["rows_3", "rows_4", "rows_5"].iter().all(|tool| stored.contains(tool)), "nothing was learned");
    assert!(stored.contains("\"token\""), "{}", stored.len());
    let found: Vec<&String> = secrets.iter().filter(|secret| stored.contains(secret.as_str())).collect();
    assert!(found.is_empty(), "{} of {}: {found:?}", found.len(), secrets.len());
}
