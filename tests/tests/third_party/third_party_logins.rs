//! Logins at a server that we did not write: FastMCP with its own OAuth.

use ptc_tests::binary::{Finished, ptc, run};
use ptc_tests::third_party::python;
use ptc_tests::workspace;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The server; killed when dropped.
struct Hosted {
    child: Child,
    url: String,
}

impl Hosted {
    /// Access tokens live this many seconds.
    fn start(life: u32) -> Hosted {
        let mut command = Command::new(python());
        command.arg(workspace().join("tests/third_party/oauth_server.py")).arg(life.to_string());
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

fn user(server: &Hosted) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let entry = json!({ "transport": "mcp_http", "url": server.url });
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).expect("a file");
    write("c.json", json!({ "upstreams": { "hosted": entry } }).to_string());
    let script =
        "#!/usr/bin/env python3\nimport sys, urllib.request\nurllib.request.urlopen(sys.argv[1]).read()\n";
    write("browser", script.to_owned());
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path().join("browser"), mode).expect("a mode");
    folder
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn fastmcp_registers_logs_in_renews_and_revokes() {
    // Shorter than the minute before the end at which tokens are renewed: half of it counts.
    let server = Hosted::start(2);
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
