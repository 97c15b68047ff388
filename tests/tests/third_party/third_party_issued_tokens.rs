//! Real clients log in at a real authorization server, whose signed tokens `ptc serve --http-oauth` accepts: the Python
//! SDK, the TypeScript SDK, and `ptc` itself.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::binary::{ptc, run};
use ptc_tests::oauth::visit;
use ptc_tests::processes::eventually;
use ptc_tests::third_party::{installed, new_node, python};
use ptc_tests::upstreams::{ConfigFile, Upstreams, probe_server};
use ptc_tests::web::WebServer;
use ptc_tests::workspace;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// `ptc` behind an authorization server.
struct Guarded {
    server: WebServer,
    issuer: Child,
    folder: TempDir,
    _config: ConfigFile,
}

fn script(name: &str) -> PathBuf {
    workspace().join("tests/third_party").join(name)
}

fn file(resource: &str, issuer: &str) -> String {
    format!(
        "resource = \"{resource}\"\n[[issuer]]\nissuer = \"{issuer}\"\nalgorithms = [\"ES256\"]\n\
         [[grant]]\nscope = \"mcp:open\"\nservers = [\"open\"]\n"
    )
}

impl Guarded {
    fn start() -> Guarded {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("oauth.toml");
        std::fs::write(&path, file("https://ptc.example/mcp", "https://issuer.example")).unwrap();
        let config =
            Upstreams::default().add("open", probe_server(&[])).add("shut", probe_server(&[])).write();
        let server = WebServer::start(&config.flags(&["--http-oauth", path.to_str().unwrap()]));
        let mut command = Command::new(python());
        command.arg(script("authorization_server.py")).arg(server.url());
        let mut issuer = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(issuer.stdout.take().unwrap()).read_line(&mut said).unwrap();
        std::fs::write(&path, file(&server.url(), said.trim())).unwrap();
        eventually("the edit is read", || {
            server.get("/.well-known/oauth-protected-resource").json()["authorization_servers"]
                == json!([said.trim()])
        });
        Guarded { server, issuer, folder, _config: config }
    }

    /// What a client reports of its program and its token.
    fn check(&self, mut command: Command) {
        command.arg(self.server.url()).current_dir(installed());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let finished = run(command, "");
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let report: Value = serde_json::from_str(&finished.stdout).unwrap();
        assert_eq!(report, json!({ "text": "[3 [\"open\"]]", "scope": "mcp:open" }));
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        drop(self.issuer.kill());
        drop(self.issuer.wait());
    }
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn the_python_sdk_logs_in() {
    let guarded = Guarded::start();
    let mut command = Command::new(python());
    command.arg(script("oauth_client.py"));
    guarded.check(command);
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn the_typescript_sdk_logs_in() {
    let guarded = Guarded::start();
    let text = std::fs::read_to_string(script("oauth_client.mjs")).unwrap();
    let mut command = Command::new(new_node());
    command.args(["--input-type=module", "-e", &text, "--"]);
    guarded.check(command);
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn ptc_logs_in() {
    let guarded = Guarded::start();
    let config = guarded.folder.path().join("client.json");
    let entry = json!({ "mcpServers": { "ptc": { "url": guarded.server.url() } } });
    std::fs::write(&config, entry.to_string()).unwrap();
    let command = |words: &[&str]| {
        let mut command = ptc(words);
        command.env("PTC_UPSTREAMS", &config).env("XDG_STATE_HOME", guarded.folder.path());
        command
    };
    let mut login = command(&["login", "ptc", "--paste"]).spawn().unwrap();
    // It goes on writing after the address.
    let mut lines = BufReader::new(login.stdout.take().unwrap()).lines().map_while(Result::ok);
    let address = lines.find(|line| line.trim().starts_with("http")).unwrap();
    let (status, arrived) = visit(address.trim());
    assert_eq!(status, 302);
    writeln!(login.stdin.take().unwrap(), "{}", arrived.unwrap()).unwrap();
    let said: Vec<String> = lines.collect();
    assert!(login.wait().unwrap().success(), "{said:?}");
    let called = run(command(&["call", "ptc/lisp_eval", "program=(map :name (tool/servers))"]), "");
    assert_eq!(called.stdout.split_whitespace().collect::<String>(), "[\"open\"]", "{called:?}");
}
