//! Logins at authorization servers that we did not write: FastMCP with its own OAuth, and npm oidc-provider.

use ptc_tests::binary::{Finished, ptc, run};
use ptc_tests::third_party::{installed, new_node, python};
use ptc_tests::workspace;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The server; killed when dropped.
struct Hosted {
    child: Child,
    url: String,
}

impl Hosted {
    /// FastMCP. Access tokens live this many seconds.
    fn fastmcp(life: u32) -> Hosted {
        let mut command = Command::new(python());
        command.arg(script("oauth_server.py")).arg(life.to_string());
        Hosted::start(command)
    }

    /// An MCP server with npm `oidc-provider`. Access tokens live this many seconds.
    fn oidc_provider(life: u32) -> Hosted {
        let mut command = Command::new(new_node());
        // Modules are looked for next to their importer.
        let here = installed().join("oidc_provider.mjs");
        std::fs::copy(script("oidc_provider.mjs"), &here).expect("a copy");
        command.arg(here).arg(life.to_string());
        Hosted::start(command)
    }

    fn start(mut command: Command) -> Hosted {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a server");
        let mut url = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut url).expect("its address");
        let url = url.trim().to_owned();
        let port = url.trim_start_matches("http://").split('/').next().expect("host and port").to_owned();
        ptc_tests::processes::eventually("it listens", || std::net::TcpStream::connect(&port).is_ok());
        Hosted { child, url }
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = ptc(arguments);
    command.env("PTC_UPSTREAMS", folder.join("c.json")).env("XDG_STATE_HOME", folder.join("state"));
    command.env("BROWSER", folder.join("browser"));
    command
}

fn script(name: &str) -> PathBuf {
    workspace().join("tests/third_party").join(name)
}

fn user(server: &Hosted) -> TempDir {
    user_with(json!({ "transport": "mcp_http", "url": server.url }), json!({}))
}

fn user_with(entry: Value, credentials: Value) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).expect("a file");
    write("c.json", json!({ "upstreams": { "hosted": entry }, "credentials": credentials }).to_string());
    write("browser", format!("#!/bin/sh\nexec python3 {} \"$1\"\n", script("person.py").display()));
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path().join("browser"), mode).expect("a mode");
    folder
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn fastmcp_registers_logs_in_renews_and_revokes() {
    // Shorter than the minute before the end at which tokens are renewed: half of it counts.
    let server = Hosted::fastmcp(2);
    let folder = user(&server);
    let ptc = |arguments: &[&str]| -> Finished { run(command(folder.path(), arguments), "") };
    let call = ["call", "hosted/add", "a=1", "b=2"];
    let said = ptc(&call);
    assert!(said.stderr.contains("ptc login hosted"), "{said:?}");
    let said = ptc(&["login", "hosted"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let refreshed = || {
        let said = ptc(&["auth", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&said.stdout).expect("JSON");
        json["logins"][0]["refreshed_at"].is_u64()
    };
    // Each call is answered, before and after the end of the first token; its refresh token is used up then.
    ptc_tests::processes::eventually("the token is renewed", || {
        let said = ptc(&call);
        assert!(said.code == Some(0) && said.stdout.contains('3'), "{said:?}");
        refreshed()
    });
    let said = ptc(&["logout", "hosted", "--revoke"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(ptc(&call).stderr.contains("ptc login hosted"));
}

const CALL: [&str; 4] = ["call", "hosted/add", "a=1", "b=2"];

/// The only stored login.
fn stored(folder: &TempDir) -> Value {
    let tokens = std::fs::read_dir(folder.path().join("state/ptc/tokens")).expect("a folder");
    let paths = tokens.map(|entry| entry.expect("an entry").path());
    let path =
        paths.into_iter().find(|path| path.extension().is_some_and(|end| end == "json")).expect("a login");
    serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
}

/// Uses a refresh token as a thief would: the status.
fn steal(login: &Value) -> String {
    let form = "import sys,urllib.parse,urllib.request,urllib.error\n\
        pairs=dict(grant_type='refresh_token',refresh_token=sys.argv[2],client_id=sys.argv[3])\n\
        try: print(urllib.request.urlopen(sys.argv[1], urllib.parse.urlencode(pairs).encode()).status)\n\
        except urllib.error.HTTPError as error: print(error.status)\n";
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let arguments =
        [text(&login["token_endpoint"]), text(&login["refresh_token"]), text(&login["client"]["id"])];
    let output = Command::new("python3").args(["-c", form]).args(arguments).output().expect("an answer");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn oidc_provider_rotates_for_ten_processes_at_once_and_detects_reuse() {
    let server = Hosted::oidc_provider(4);
    let folder = user(&server);
    let ptc = |arguments: &[&str]| -> Finished { run(command(folder.path(), arguments), "") };
    assert!(ptc(&CALL).stderr.contains("ptc login hosted"));
    let said = ptc(&["login", "hosted"]);
    assert!(said.code == Some(0) && said.stdout.contains("scopes read"), "{said:?}");
    let first = stored(&folder);
    // Half of the life of a token is over again and again: all renew it, and none uses a refresh token twice.
    ptc_tests::processes::eventually("the token is renewed three times", || {
        let running: Vec<_> = (0..10)
            .map(|_| command(folder.path(), &CALL).stdout(Stdio::piped()).spawn().expect("ptc"))
            .collect();
        for child in running {
            let output = child.wait_with_output().expect("an end");
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "3", "{output:?}");
        }
        let now = stored(&folder);
        now["obtained_at"].as_u64() >= first["obtained_at"].as_u64().map(|first| first + 6)
    });
    // A refresh token that was replaced ends the whole login, wherever it is used.
    assert_eq!(steal(&first), "400");
    let said = ptc(&CALL);
    assert!(said.code != Some(0) && said.stderr.contains("ptc login hosted"), "{said:?}");
    assert_eq!(ptc(&["login", "hosted"]).code, Some(0));
    assert_eq!(ptc(&CALL).stdout.trim(), "3");
    assert_eq!(ptc(&["logout", "hosted", "--revoke"]).code, Some(0));
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn oidc_provider_logs_in_on_another_device() {
    let server = Hosted::oidc_provider(60);
    let folder = user(&server);
    let mut child =
        command(folder.path(), &["login", "hosted", "--device"]).stdout(Stdio::piped()).spawn().expect("ptc");
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines().map_while(Result::ok);
    let mut addresses = lines.filter_map(|line| line.strip_prefix("or open ").map(str::to_owned));
    let address = addresses.next().expect("an address with the code in it");
    let person = Command::new("python3").arg(script("person.py")).arg(address).output().expect("a person");
    assert!(person.status.success(), "{person:?}");
    assert!(child.wait().expect("an end").success());
    assert_eq!(run(command(folder.path(), &CALL), "").stdout.trim(), "3");
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn oidc_provider_gives_a_machine_its_token() {
    let server = Hosted::oidc_provider(60);
    let issuer = server.url.trim_end_matches("/mcp");
    let client = json!({ "id": "machine", "secret": "own" });
    let auth =
        json!([{ "scheme": "oauth", "grant": "client_credentials", "client": client, "issuer": issuer }]);
    let own = json!({ "source": "literal", "value": "machine-secret-Zq7Xw9Kd2Lm" });
    let folder =
        user_with(json!({ "transport": "mcp_http", "url": server.url, "auth": auth }), json!({ "own": own }));
    assert_eq!(run(command(folder.path(), &CALL), "").stdout.trim(), "3");
}
