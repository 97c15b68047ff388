//! The page of `ptc serve --ui` in a browser: a thousand live calls, light and dark, and the keyboard alone.

use ptc_tests::binary::{ptc, run};
use ptc_tests::processes::eventually;
use ptc_tests::upstreams::Upstreams;
use ptc_tests::web::WebServer;
use ptc_tests::workspace;
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};

/// Calls at once.
const CALLS: usize = 1_000;

/// What a policy says that asks about `probe/echo`.
const ASKS: &str = "default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }
[[rule]]
do = \"ask\"
tools = [\"probe/echo\"]
";

/// The browser of this machine; `None` without one.
fn browser() -> Option<&'static str> {
    let names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];
    names.into_iter().find(|name| {
        let mut asked = Command::new(name);
        asked.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        asked.status().is_ok_and(|status| status.success())
    })
}

#[test]
fn a_browser_shows_a_thousand_live_calls_and_needs_no_pointer() {
    let Some(browser) = browser() else {
        eprintln!("left out: there is no Chromium (apt-get install chromium-headless-shell)");
        return;
    };
    let (config, state) = (Upstreams::probe().write(), tempfile::tempdir().unwrap());
    let mut policy = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    write!(policy, "{ASKS}").unwrap();
    let policy = policy.path().to_str().unwrap();
    let flags = ["serve", "--http", "127.0.0.1:0", "--ui", "--sessions", "--policy", policy];
    let waits = ["--approvals", "wait", "--timeout", "600s", "--max-upstream-calls", "2000"];
    let mut command = ptc(&[&flags[..], &waits, &config.flags(&[])].concat());
    command.env("XDG_STATE_HOME", state.path());
    let server = WebServer::from_command(command);
    let mut said = Vec::new();
    let link = |said: &[String]| {
        let line = said.iter().find(|line| line.contains("/ui/open?link="))?;
        Some(line[line.find("http").unwrap()..].to_owned())
    };
    eventually("a link", || {
        said.extend(server.log());
        link(&said).is_some()
    });
    let mut look = Command::new("node");
    look.args(["--experimental-websocket", "--no-warnings"]);
    look.arg(workspace().join("tests/third_party/page.mjs"));
    look.args([browser, &link(&said).unwrap(), &server.url(), &CALLS.to_string()]);
    look.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let looked = run(look, "");
    assert_eq!(looked.code, Some(0), "{looked:?}");
    let report: Value = serde_json::from_str(&looked.stdout).unwrap();
    eprintln!("{report:#}");
    assert_eq!(report["rows"], CALLS);
    assert_eq!((&report["line"], &report["answer"]), (&"2".into(), &"nil".into()));
    assert_eq!(report["faults"], Value::Array(Vec::new()), "{report:#}");
    for (view, contrast) in report["contrast"].as_object().unwrap() {
        assert!(contrast.as_f64().unwrap() >= 4.5, "{view}: {contrast}");
    }
    for focus in report["keyboard"].as_array().unwrap() {
        assert!(focus["seen"] == true && focus["name"] != "", "{focus}");
    }
    assert_eq!(report["keyboard"][0]["name"], "Skip to the content");
}
