//! Credentials of HTTP services never leave the process, whatever their source, header or echo.
//!
//! Every secret of [`SECRETS`] is a credential of each kind of source and is sent in each kind of header. The service
//! that receives it repeats it in every form, in its document and in its answers, a few bytes at a time.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::binary::{self, batch_line, ptc};
use ptc_tests::leaks::{SECRETS, forms, found};
use ptc_tests::leaky_service::{self, OPERATIONS, Planted, base64};
use ptc_tests::serve::Server;
use ptc_tests::upstreams::{ConfigFile, Upstreams};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::process::Command;

/// Emitters, which turn a credential into a header, and whether the value is a user with a password.
const EMITTERS: [(&str, bool); 4] =
    [("bearer", false), ("custom_header", false), ("basic", true), ("basic", true)];

const SOURCES: [&str; 3] = ["env", "file", "literal"];

/// Services and the configuration that names them.
struct Leaky {
    _folder: tempfile::TempDir,
    config: ConfigFile,
    variables: Vec<(String, String)>,
    services: usize,
}

impl Leaky {
    fn start() -> Leaky {
        let folder = tempfile::tempdir().unwrap();
        let mut upstreams = Upstreams::default();
        let (mut planted, mut variables, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        let mut kinds = HashSet::new();
        for (kind, (scheme, is_pair)) in EMITTERS.into_iter().enumerate() {
            for (index, secret) in SECRETS.into_iter().enumerate() {
                // A value that no header can carry is refused; base64 carries everything.
                if !is_pair && !secret.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
                    continue;
                }
                let (at, source) = (planted.len(), SOURCES[(kind + index) % SOURCES.len()]);
                kinds.insert((source, scheme));
                // The end of a file is trimmed.
                let secret = if source == "file" { secret.trim_end() } else { secret };
                let value = match (is_pair, kind % 2) {
                    (false, _) => secret.to_owned(),
                    (true, 0) => format!("me:{secret}"),
                    (true, _) => json!({ "user": "me", "pass": secret }).to_string(),
                };
                let header = match scheme {
                    "bearer" => ("authorization".to_owned(), format!("Bearer {secret}")),
                    "basic" => {
                        ("authorization".to_owned(), format!("Basic {}", base64(&format!("me:{secret}"))))
                    }
                    _ => ("x-api-key".to_owned(), secret.to_owned()),
                };
                planted.push(Planted { header, secret: secret.to_owned() });
                let binding = match source {
                    "env" => {
                        variables.push((format!("V{at}"), value));
                        json!({ "source": "env", "var": format!("V{at}") })
                    }
                    "file" => {
                        let path = folder.path().join(at.to_string());
                        std::fs::write(&path, value + "\n").unwrap();
                        json!({ "source": "file", "path": path })
                    }
                    _ => json!({ "source": "literal", "value": value }),
                };
                let mut emitter = json!({ "scheme": scheme, "binding": format!("c{at}") });
                if scheme == "custom_header" {
                    emitter["header"] = "X-Api-Key".into();
                }
                upstreams = upstreams.credential(&format!("c{at}"), binding);
                entries.push(emitter);
            }
        }
        assert_eq!(kinds.len(), SOURCES.len() * 3, "each source with each scheme");
        let port = leaky_service::start(planted);
        for (at, emitter) in entries.iter().enumerate() {
            let base = format!("http://127.0.0.1:{port}/{at}");
            let entry = json!({ "transport": "openapi", "base_url": base, "schema_url": format!("{base}/openapi.json"),
                "auth": [emitter], "include_operations": OPERATIONS, "allow_insecure_http": true,
                "allow_insecure_auth": true, "handshake_timeout_ms": 120_000 });
            upstreams = upstreams.add(&format!("s{at}"), entry);
        }
        Leaky { _folder: folder, config: upstreams.write(), variables, services: entries.len() }
    }

    fn command(&self, command: &[&str]) -> Command {
        let arguments: Vec<&str> = command.iter().copied().chain(self.config.flags(&[])).collect();
        let mut command = ptc(&arguments);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Programs that send the text of each service to each output.
    fn programs(&self) -> Vec<String> {
        let count = forms(SECRETS[0]).len();
        let mut programs = Vec::new();
        for at in 0..self.services {
            let failing: Vec<String> = OPERATIONS[1..].iter().map(|name| format!("{name:?}")).collect();
            programs.push(format!(
                "(pmap (fn [[tool form]] (tool/call {{:server \"s{at}\" :tool tool :args {{:form form}}}})) \
                 (for [tool [{}] form (range {count})] [tool form]))",
                failing.join(" ")
            ));
            programs.push(format!(
                "(let [v (:value (tool/call 's{at}/give {{}}))] (println v) (run! println (:forms v)) v)"
            ));
            programs.push(format!("(fail (:value (tool/call 's{at}/give {{}})))"));
            programs.push(format!("(dir 's{at})"));
            let all: Vec<String> = OPERATIONS.iter().map(|name| format!("'s{at}/{name}")).collect();
            programs.push(format!("(let [all [{}]] [(map meta all) (run! doc all)])", all.join(" ")));
        }
        programs.push("(apropos \"of word\" {:limit 50})".to_owned());
        programs.push("(tool/servers)".to_owned());
        programs
    }
}

const LIMITS: [&str; 6] = ["--timeout", "120s", "--max-upstream-calls", "400", "--log-level", "debug"];

fn assert_clean(what: &str, text: &str) {
    let found = found(text);
    assert!(found.is_empty(), "{what}: {} secrets\n{}", found.len(), found[..found.len().min(5)].join("\n"));
    assert!(text.contains("[REDACTED]"), "{what}: nothing was said\n{}", &text[..text.len().min(500)]);
}

#[test]
fn no_sink_shows_a_credential() {
    let leaky = Leaky::start();
    let planted = leaky.services * forms(SECRETS[0]).len() * OPERATIONS.len();
    assert!(planted >= 1_000, "{planted}");
    let programs = leaky.programs();
    let lines: String = programs.iter().enumerate().map(|(id, program)| batch_line(id, program)).collect();
    let finished = binary::run(leaky.command(&[&["batch"][..], &LIMITS].concat()), &lines);
    assert_eq!(finished.stdout.lines().count(), programs.len(), "{}", finished.stderr);
    assert_clean("batch", &finished.stdout);
    assert!(found(&finished.stderr).is_empty(), "{}", finished.stderr);
    for command in [
        ["tools", "--output", "json"],
        ["doctor", "--output", "json"],
        ["tools", "--output", "text"],
        ["doctor", "--output", "text"],
    ] {
        let finished = binary::run(leaky.command(&command), "");
        assert_eq!(finished.code, Some(0), "{command:?}: {finished:?}");
        assert_clean(&format!("{command:?}"), &finished.stdout);
        assert!(found(&finished.stderr).is_empty(), "{command:?}: {}", finished.stderr);
    }
    for output in ["text", "json"] {
        let program = &programs[1];
        let finished =
            binary::run(leaky.command(&[&["eval", program, "--output", output][..], &LIMITS].concat()), "");
        assert_clean(&format!("eval {output}"), &(finished.stdout + &finished.stderr));
    }
}

#[test]
fn the_server_shows_none_and_programs_get_what_was_said() {
    let leaky = Leaky::start();
    for profile in ["slim", "debug"] {
        let flags = ["serve", "--response-profile", profile, "--catalog-mode", "inline"];
        let mut server = Server::from_command(leaky.command(&[&flags[..], &LIMITS].concat()));
        let mut all = server.request("logging/setLevel", json!({ "level": "debug" })).to_string();
        all += &server.request("tools/list", json!({})).to_string();
        // A subset suffices for the second profile, which formats the same content.
        for program in leaky.programs().into_iter().step_by(if profile == "slim" { 1 } else { 3 }) {
            all.push('\n');
            all += &server.run(&program).to_string();
        }
        assert_clean(profile, &all);
        for (at, secret) in [(0, SECRETS[0]), (1, SECRETS[1])] {
            let reversed: String = secret.chars().rev().collect();
            let program = format!(
                "(= {} (apply str (reverse (:plain (:value (tool/call 's{at}/give {{}}))))))",
                Value::from(reversed)
            );
            assert!(server.run(&program).to_string().contains("true"), "{program}");
        }
        assert_eq!(server.end(), Some(0));
    }
}
