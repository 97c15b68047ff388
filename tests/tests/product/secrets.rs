//! Configured secrets never leave the process, in any form, by any output.
//!
//! A server plants every secret of [`SECRETS`] in every form in its outputs, and programs carry them to every place
//! from which text leaves `ptc`.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::binary::{self, Finished, batch_line, build_dir, ptc};
use ptc_tests::leaks::{SECRETS, forms, found, table};
use ptc_tests::serve::Server;
use ptc_tests::upstreams::{ConfigFile, Upstreams, stdio};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// An entry of the leaky server; it gets every secret from the environment of `ptc`.
fn leaky(arguments: &[&str]) -> Value {
    let mut entry = stdio(build_dir().join("leaky-server").to_str().unwrap(), arguments);
    let variables = (0..SECRETS.len()).map(|index| (format!("S{index}"), json!(format!("${{S{index}}}"))));
    entry["env"] = Value::Object(variables.collect());
    entry
}

/// The arguments of a command with this configuration.
fn arguments<'a>(config: &'a ConfigFile, command: &[&'a str]) -> Vec<&'a str> {
    command.iter().copied().chain(config.flags(&[])).collect()
}

fn config() -> ConfigFile {
    Upstreams::default().add("leaky", leaky(&[])).write()
}

fn with_secrets(mut command: Command) -> Command {
    for (index, secret) in SECRETS.iter().enumerate() {
        command.env(format!("S{index}"), secret);
    }
    command
}

fn run(arguments: &[&str], input: &str) -> Finished {
    binary::run(with_secrets(ptc(arguments)), input)
}

fn assert_clean(what: &str, text: &str) {
    let found = found(text);
    assert!(found.is_empty(), "{what}: {} secrets\n{}", found.len(), found[..found.len().min(5)].join("\n"));
}

/// Programs that send a secret, `v`, and all its forms, `vs`, to each output.
const SINKS: [&str; 25] = [
    "vs",
    "v",
    "{v vs}",
    "(into {} (map (fn [f] [f f]) vs))",
    "(into #{} vs)",
    "{:k {v (fn [x] x)}}",
    "{:k [1 {v #{1}}]}",
    "(do (println v) (run! println vs) 1)",
    "(do (run! (fn [f] (println (str (apply str (repeat 1990 \"x\")) f))) vs) 1)",
    "(do (println vs) (fail v))",
    "(fail {v vs})",
    "(return (pr-str (pr-str vs)))",
    "(json/generate-string {v vs})",
    "(describe {v vs :all (str/join \" \" vs)})",
    "(+ 1 v)",
    "(get-in 5 v)",
    "(keyword v)",
    "(tool/call {:server v :tool \"give\"})",
    "(tool/call {:server \"leaky\" :tool v})",
    "(str (apply str (repeat 24560 \"x\")) (str/join \" \" vs))",
    "(fail (str (apply str (repeat 24560 \"x\")) (str/join \" \" vs)))",
    "(fail (str (apply str (repeat 990 \"x\")) (str/join \" \" vs)))",
    "(map (fn [i] (tool/call {:server \"leaky\" :tool \"refuse\" :args {:secret s :form i}})) (range (count vs)))",
    "(map (fn [i] (tool/call {:server \"leaky\" :tool \"fail\" :args {:secret s :form i}})) (range (count vs)))",
    "(map (fn [i] (tool/call {:server \"leaky\" :tool \"say\" :args {:secret s :form i}})) (range (count vs)))",
];

/// Programs that query a server.
const QUESTIONS: [&str; 7] = [
    "(dir 'leaky {:limit 200})",
    "(dir 'leaky {:limit 200 :offset 200})",
    "(apropos \"of word\" {:limit 50})",
    "(tool/servers)",
    "(map (fn [i] (doc (str \"leaky/d\" i))) (range 12))",
    "(map (fn [i] (meta (str \"leaky/d\" i))) (range 12))",
    "(map (fn [l] (doc (first (str/split l #\" \")))) (take 40 (dir 'leaky {:limit 200})))",
];

fn program(secret: usize, sink: &str) -> String {
    format!(
        "(let [s {secret} r (:value (tool/call {{:server \"leaky\" :tool \"give\" :args {{:secret s}}}})) \
         v (:plain r) vs (:forms r)] {sink})"
    )
}

fn programs() -> Vec<String> {
    let mut programs = Vec::new();
    for secret in 0..SECRETS.len() {
        for sink in SINKS {
            programs.push(program(secret, sink));
        }
    }
    programs.extend(QUESTIONS.map(str::to_owned));
    programs
}

/// Runs all programs under a profile; gives everything that the server wrote.
fn served(profile: &str, log: bool) -> String {
    let config = config();
    let flags = ["serve", "--response-profile", profile, "--catalog-mode", "inline", "--timeout", "60s"];
    let arguments = arguments(&config, &[&flags[..], &["--max-upstream-calls", "200"]].concat());
    let mut input = String::new();
    let mut say = |message: Value| {
        input.push_str(&message.to_string());
        input.push('\n');
    };
    say(
        json!({ "jsonrpc": "2.0", "id": "a", "method": "initialize", "params": { "protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": { "name": "tests", "version": "1" } } }),
    );
    say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    if log {
        say(
            json!({ "jsonrpc": "2.0", "id": "b", "method": "logging/setLevel", "params": { "level": "debug" } }),
        );
    }
    say(json!({ "jsonrpc": "2.0", "id": "c", "method": "tools/list" }));
    let programs = programs();
    let mut child = with_secrets(ptc(&arguments)).stderr(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let expected = programs.len();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let writer = std::thread::spawn(move || {
        stdin.write_all(input.as_bytes()).unwrap();
        for (id, program) in programs.iter().enumerate() {
            let params = json!({ "name": "lisp_eval", "arguments": { "program": program },
                "_meta": { "progressToken": id } });
            let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
            writeln!(stdin, "{call}").unwrap();
        }
        stdin
    });
    let mut all = String::new();
    let mut answered = 0;
    while answered < expected {
        let start = all.len();
        assert!(output.read_line(&mut all).unwrap() > 0, "the server has ended");
        let message: Value = serde_json::from_str(&all[start..]).unwrap();
        assert_eq!(message["jsonrpc"], "2.0");
        answered += usize::from(message["id"].is_u64());
    }
    drop(writer.join().unwrap());
    assert!(child.wait().unwrap().success());
    all
}

#[test]
fn no_answer_log_message_or_description_of_the_server_holds_a_secret() {
    let planted: usize = SECRETS.iter().map(|secret| forms(secret).len() * SINKS.len() * 3).sum();
    assert!(planted >= 1_000, "{planted}");
    for profile in ["slim", "structured", "debug"] {
        let all = served(profile, true);
        assert!(all.contains("[REDACTED]") && all.contains("notifications/message"), "{profile}");
        assert_clean(profile, &all);
    }
}

#[test]
fn no_command_writes_a_secret_to_either_stream() {
    let config = config();
    let mut commands: Vec<Vec<&str>> = Vec::new();
    for command in ["tools", "doctor"] {
        commands.push(arguments(&config, &[command, "--log-level", "debug"]));
        commands.push(arguments(&config, &[command, "--output", "json"]));
    }
    for arguments in commands {
        let finished = run(&arguments, "");
        assert_eq!(finished.code, Some(0), "{arguments:?}: {finished:?}");
        assert!(finished.stdout.contains("[REDACTED]"), "{arguments:?}: {finished:?}");
        assert_clean(&format!("stdout of {arguments:?}"), &finished.stdout);
        assert_clean(&format!("stderr of {arguments:?}"), &finished.stderr);
    }
    let programs = programs();
    let lines: String = programs.iter().enumerate().map(|(id, program)| batch_line(id, program)).collect();
    let finished =
        run(&arguments(&config, &["batch", "--timeout", "60s", "--max-upstream-calls", "200"]), &lines);
    assert_eq!(finished.stdout.lines().count(), programs.len());
    assert_clean("batch", &finished.stdout);
    for sink in ["{v vs}", "(do (run! println vs) (fail vs))", "(+ 1 v)"] {
        for secret in [1, 2, 6, 8] {
            let program = &program(secret, sink);
            for output in ["text", "json"] {
                let flags = ["eval", "--output", output, "--timeout", "60s", "--log-level", "debug", program];
                let finished = run(&arguments(&config, &flags), "");
                assert_clean(&format!("eval of {program}"), &(finished.stdout + &finished.stderr));
            }
        }
    }
}

#[test]
fn a_server_that_dies_with_a_secret_on_its_lips_tells_nobody() {
    for index in 0..SECRETS.len() {
        let config = Upstreams::default().add("leaky", leaky(&["die", &index.to_string()])).write();
        for command in [&["doctor"][..], &["tools", "--output", "json"], &["serve"]] {
            let finished = run(&arguments(&config, command), "");
            assert_eq!(finished.code, Some(3), "{finished:?}");
            assert_clean(&format!("{command:?}"), &(finished.stdout + &finished.stderr));
        }
    }
}

/// Literal secrets of a host's file are hidden, and warnings say which values cannot be.
#[test]
fn literal_secrets_of_hosts_files_are_hidden_as_well() {
    let home = tempfile::tempdir().unwrap();
    let server = build_dir().join("leaky-server");
    let [token, key, header, password, query] =
        ["t0ken-in-env", "k3y-after-equals", "h3ader-value", "p4ssw0rd-in-address", "s3cret-in-query"];
    let entry = json!({ "command": server, "args": ["die", format!("--api-key={key}"), "--header",
        format!("Authorization: Bearer {header}"), format!("postgres://me:{password}@host/db"),
        format!("https://host/mcp?api_key={query}"), "--access-token", key],
        "env": { "GITHUB_TOKEN": token, "S0": token, "MODE": "fast", "X_KEY": "abc", "Y_KEY": "true" } });
    let file = home.path().join(".cursor/mcp.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, json!({ "mcpServers": { "x": entry } }).to_string()).unwrap();
    let clean = |what: &str, text: &str| {
        for secret in [token, key, header, password, query] {
            assert!(!text.contains(secret), "{what}: {secret} in {text}");
        }
    };
    let file = file.to_str().unwrap();
    for arguments in [&["doctor", "--upstreams-config", file][..], &["tools", "--upstreams-config", file]] {
        let finished = run(arguments, "");
        assert_eq!(finished.code, Some(3), "{finished:?}");
        clean("stdout", &finished.stdout);
        clean("stderr", &finished.stderr);
        let told = if arguments[0] == "doctor" { &finished.stdout } else { &finished.stderr };
        assert!(told.contains("X_KEY") && told.contains("too short"), "{finished:?}");
        assert!(told.contains("Y_KEY") && told.contains("an ordinary word"), "{finished:?}");
    }
    for output in ["text", "json"] {
        let mut command = ptc(&["config", "import", "--dry-run", "--output", output]);
        command
            .env("HOME", home.path())
            .env("XDG_CONFIG_HOME", home.path().join(".config"))
            .current_dir(home.path());
        let finished = binary::run(command, "");
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert!(finished.stdout.contains("[REDACTED]") && finished.stdout.contains("fast"), "{finished:?}");
        clean("import", &finished.stdout);
    }
}

/// A secret that is also a word of the protocol does not break the protocol.
#[test]
fn messages_stay_valid_whatever_a_secret_is() {
    const WORDS: [&str; 16] = [
        "text",
        "type",
        "result",
        "content",
        "jsonrpc",
        "tools",
        "name",
        "structuredContent",
        "value",
        "status",
        "isError",
        "inputSchema",
        "error",
        "message",
        "lisp_eval",
        "object",
    ];
    let variables = (0..WORDS.len()).map(|index| (format!("W{index}"), json!(format!("${{W{index}}}"))));
    let mut entry = leaky(&[]);
    entry["env"].as_object_mut().unwrap().extend(variables);
    let config = Upstreams::default().add("leaky", entry).write();
    let command = |flags: &[&str]| {
        let mut command = with_secrets(ptc(&arguments(&config, flags)));
        for (index, word) in WORDS.iter().enumerate() {
            command.env(format!("W{index}"), word);
        }
        command
    };
    let mut server = Server::from_command(command(&["serve", "--response-profile", "structured"]));
    let list = server.request("tools/list", json!({}));
    assert_eq!(list["result"]["tools"][0]["name"], "lisp_eval", "{list}");
    assert_eq!(list["result"]["tools"][0]["inputSchema"]["type"], "object", "{list}");
    let answer = server.run("{\"text\" \"a text\" \"n\" 5 \"status\" [\"value\"]}");
    assert_eq!(answer["content"][0]["type"], "text", "{answer}");
    assert_eq!(answer["isError"], false);
    let structured = &answer["structuredContent"];
    assert_eq!(structured["status"], "ok", "{answer}");
    assert_eq!(structured["value"]["n"], 5, "{answer}");
    let shown = structured["value"].to_string() + structured["result"].as_str().unwrap();
    assert!(WORDS.iter().all(|word| !shown.contains(word)), "{answer}");
    let answer = server.run("(fail \"text\")");
    assert_eq!(
        (&answer["isError"], &answer["structuredContent"]["status"]),
        (&json!(true), &json!("error")),
        "{answer}"
    );
    // Values that a program computes with are not altered.
    let computed = "(count (:value (tool/call {:server \"leaky\" :tool \"say\" :args {:secret 7 :form 0}})))";
    assert_eq!(server.run(computed)["structuredContent"]["value"], SECRETS[7].len());
    assert_eq!(server.end(), Some(0));
    let finished = binary::run(command(&["tools", "--output", "json"]), "");
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(report["servers"][0]["state"], "ready", "{report}");
}

/// `PTC_BLESS=1 cargo test -p ptc-tests --test secrets` rewrites the table.
#[test]
fn the_documented_forms_are_those_that_are_tested() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/design/secrets.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once("| form | example |").unwrap();
    let after = rest.split_once("\n\n").unwrap().1;
    let right = format!("{before}{}\n{after}", table());
    if std::env::var_os("PTC_BLESS").is_some() {
        std::fs::write(&path, &right).unwrap();
    }
    assert!(
        document == right,
        "docs/design/secrets.md does not list the tested forms; PTC_BLESS=1 writes them"
    );
}
