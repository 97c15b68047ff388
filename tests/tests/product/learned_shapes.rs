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
            let tool =
                |name: &String| json!({ "description": "Rows.", "args": { "n": "integer" }, "rows": name });
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
        { "n": 1, "sender": "me", "amount": 12.5, "note": null },
        { "n": 2, "sender": "GB29NWBK60161331926819", "amount": 3.25, "note": "rent for March" },
    ] })
}

#[test]
fn a_later_run_knows_the_shape() {
    let bank = Bank::new(&transactions());
    assert!(bank.returns("list_transactions", &[]).contains("Returns: Result<any>"));
    for _ in 0..2 {
        bank.eval("(count (:value (tool/call 'bank/list_transactions {})))", &[]);
    }
    // The tool itself names `n`. The other keys may be data: no process saw them in two different results.
    assert_eq!(bank.returns("list_transactions", &[]), "\"Returns (seen 2 times, 2 to 3 items): [object]\"");
    bank.eval("(mapv (fn [n] (:ok (tool/call 'bank/list_transactions {:n n}))) [1 2])", &[]);
    assert_eq!(
        bank.returns("list_transactions", &[]),
        "\"Returns (seen 4 times, 1 to 3 items): [{:amount float :n int :note string|nil :sender string}]\""
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

const WORDS: [&str; 16] = [
    "river", "stone", "maple", "garden", "winter", "copper", "velvet", "lantern", "harbor", "meadow",
    "orchard", "pepper", "saddle", "timber", "violet", "walnut",
];
const SYLLABLES: [&str; 16] =
    ["mo", "ri", "la", "ne", "su", "to", "vi", "lo", "mar", "ren", "sil", "tan", "ul", "or", "il", "nor"];

/// Three of these, other ones for each number below 4,096.
fn three(number: u64, of: [&str; 16], between: &str) -> String {
    let part = |place: u32| of[usize::try_from(number >> (4 * place)).unwrap() % 16];
    [part(0), part(1), part(2)].join(between)
}

/// Secrets in the forms in which services hand them out, personal data that may be keys, and words.
fn secret(number: u64) -> String {
    let digits = |length| token(number, "0123456789", length);
    match number % 16 {
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
        9 => format!("{}+/{}==", token(number, ALNUM, 20), token(number + 1, ALNUM, 20)),
        10 => three(number, WORDS, "-"),
        11 => three(number, WORDS, "_"),
        12 => three(number, WORDS, " "),
        13 => three(number, SYLLABLES, ""),
        14 => format!("user_{}", three(number, SYLLABLES, "")),
        _ => token(number, ALNUM, 20),
    }
}

/// Every secret is in one result, as a value and as a key: alone, next to names, in several rows.
#[test]
fn a_thousand_secrets_leave_no_trace() {
    let secrets: Vec<String> = (0..1_000).map(secret).collect();
    let row = |at: usize| {
        let (n, secret) = (at % 2, secrets[at].as_str());
        match at / 2 % 3 {
            0 => json!({ "n": n, "note": secret, "owners": { secret: { "limit": 1 } } }),
            1 => json!({ "n": n, "note": secret, secret: true }),
            _ => {
                json!({ "n": n, "note": secret, "owners": [{ "id": 1, secret: 1 }, { "id": 2, secret: 2 }] })
            }
        }
    };
    let tables: Map<String, Value> =
        (0..500).map(|at| (format!("rows_{at}"), json!([row(2 * at), row(2 * at + 1)]))).collect();
    let bank = Bank::new(&tables.into());
    let mut server = Server::from_command({
        let mut arguments = vec!["serve"];
        arguments.extend(bank.config.flags(&["--max-upstream-calls", "5000", "--timeout", "120s"]));
        let mut command = ptc(&arguments);
        command.env("XDG_STATE_HOME", bank.state.path());
        command
    });
    // The same result twice, and another one of the same tool.
    let answer = server.text(
        "(count (filter :ok (pmap (fn [[at n]] (tool/call {:server \"bank\" :tool (str \"rows_\" at) :args {:n n}}))
           (for [at (range 500) n [0 0 1]] [at n]))))",
    );
    assert!(answer.starts_with("1500"), "{answer}");
    assert_eq!(server.end(), Some(0));
    let stored = stored(&bank.state.path().join("ptc/shapes"));
    assert!(["rows_3", "rows_4", "rows_5"].iter().all(|tool| stored.contains(tool)), "nothing was learned");
    // A map with a key that looks like data keeps no name: of every third tool that is the map with the note.
    let notes = stored.matches("\"note\"").count();
    assert!((334..500).contains(&notes), "{notes}");
    let found: Vec<&String> = secrets.iter().filter(|secret| stored.contains(secret.as_str())).collect();
    assert!(found.is_empty(), "{} of {}: {found:?}", found.len(), secrets.len());
}
