//! Third-party MCP clients drive `ptc serve` over stdio: the Python `mcp` 2.x client and the TypeScript SDK.

use ptc_tests::binary::{self, run};
use ptc_tests::third_party::{everything, installed, python};
use ptc_tests::upstreams::Upstreams;
use ptc_tests::workspace;
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// The client and its way to open a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    /// Python, `server/discover` first, then requests with their own `_meta`.
    PythonDiscover,
    /// Python, `initialize`.
    PythonInitialize,
    /// TypeScript SDK, `initialize`.
    TypeScript,
}

impl Opening {
    const ALL: [Opening; 3] = [Opening::PythonDiscover, Opening::PythonInitialize, Opening::TypeScript];

    fn protocol(self) -> &'static str {
        match self {
            Opening::PythonDiscover => "2026-07-28",
            Opening::PythonInitialize | Opening::TypeScript => "2025-11-25",
        }
    }

    /// What the client saw of `ptc serve` with these flags.
    fn drive(self, flags: &[&str]) -> Value {
        self.drive_following(flags, "")
    }

    /// [`Opening::drive`] with a program that is run with progress.
    fn drive_following(self, flags: &[&str], followed: &str) -> Value {
        let scripts = workspace().join("tests/third_party");
        let mut command = match self {
            Opening::TypeScript => {
                let script = std::fs::read_to_string(scripts.join("client.mjs")).expect("the script");
                let mut command = Command::new("node");
                command.args(["--input-type=module", "-e", &script, "--"]);
                command
            }
            Opening::PythonDiscover | Opening::PythonInitialize => {
                let mut command = Command::new(python());
                let mode = if matches!(self, Opening::PythonDiscover) { "auto" } else { "legacy" };
                command.arg(scripts.join("client.py")).arg(mode);
                command
            }
        };
        command.current_dir(installed()).arg(binary::path()).arg("serve").args(flags);
        command
            .env("XDG_CONFIG_HOME", "/nonexistent")
            .env("XDG_STATE_HOME", "/dev/null")
            .env("FOLLOWED", followed)
            .env_remove("PTC_UPSTREAMS");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let finished = run(command, "");
        assert_eq!(finished.code, Some(0), "{self:?}: {}", finished.stderr);
        serde_json::from_str(&finished.stdout)
            .unwrap_or_else(|error| panic!("{self:?}: {error}: {finished:?}"))
    }
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn every_client_sees_the_same_server() {
    for opening in Opening::ALL {
        let report = opening.drive(&[]);
        let text =
            |key: &str| report[key]["text"].as_str().unwrap_or_else(|| panic!("{report:#}")).to_owned();
        assert_eq!(report["protocol"], opening.protocol(), "{opening:?}");
        assert_eq!(report["server"], "ptc", "{opening:?}");
        let [tool] = report["tools"].as_array().expect("tools").as_slice() else { panic!("{report:#}") };
        assert_eq!(tool["name"], "lisp_eval");
        assert!(tool["description"].as_str().expect("text").len() < 2_048);
        assert_eq!(tool["inputSchema"]["required"], json!(["program"]));
        assert_eq!(text("value"), "5050", "{opening:?}");
        assert_eq!(text("context"), "[\"é\" \"b\"]", "{opening:?}");
        assert_eq!(report["failed"]["error"], true, "{opening:?}");
        assert!(text("failed").contains("undefined-name"), "{opening:?}: {}", text("failed"));
        assert_eq!(report["schema"]["structured"]["validated"], json!({ "n": 3 }), "{opening:?}");
        let squares: Vec<String> = (0..50).map(|n| (n * n).to_string()).collect();
        assert_eq!(report["parallel"], json!(squares), "{opening:?}");
        assert_eq!(text("after_cancel"), "\"still here\"", "{opening:?}");
    }
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn every_profile_and_upstreams() {
    let config = Upstreams::probe().write();
    for opening in Opening::ALL {
        for profile in ["slim", "structured", "debug"] {
            // Clients check structured content against the tool's output schema, if there is one.
            let report = opening.drive(&config.flags(&["--response-profile", profile]));
            assert_eq!(report["value"]["error"], false, "{opening:?} {profile}");
            assert!(
                report["upstream"]["text"].as_str().expect("text").contains("45"),
                "{opening:?} {profile}"
            );
            let structured = &report["upstream"]["structured"];
            match profile {
                "slim" => assert_eq!(*structured, Value::Null, "{opening:?}"),
                _ => assert_eq!(structured["result"], "45", "{opening:?} {profile}"),
            }
            if profile == "debug" {
                assert_eq!(structured["upstream_calls"].as_array().map(Vec::len), Some(10), "{opening:?}");
            }
        }
    }
}

/// server-everything reports a step every half second; each client has all of them when it has the answer.
#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn every_client_gets_every_step_before_the_answer() {
    let config = Upstreams::probe().add("all", everything()).write();
    let program = r#"(:value (tool/call {:server "all" :tool "trigger-long-running-operation" :args {:duration 3 :steps 6}}))"#;
    for opening in Opening::ALL {
        let report = opening.drive_following(&config.flags(&[]), program);
        let followed = report["followed"]["text"].as_str().expect("text");
        assert!(followed.contains("completed"), "{opening:?}: {followed}");
        let steps: Vec<&str> = report["progress"]
            .as_array()
            .expect("progress")
            .iter()
            .filter_map(|step| step[1].as_str())
            .filter(|text| text.starts_with("all/"))
            .collect();
        let want: Vec<String> =
            (1..=6).map(|step| format!("all/trigger-long-running-operation: {step} of 6")).collect();
        assert_eq!(steps, want, "{opening:?}");
        if opening == Opening::TypeScript {
            // Not six, because the SDK may drop the step that arrives with the answer.
            assert!(report["heard"].as_u64() > Some(0), "{opening:?}: {report:#}");
        }
        let counts: Vec<f64> =
            report["progress"].as_array().into_iter().flatten().filter_map(|step| step[0].as_f64()).collect();
        assert!(counts.is_sorted_by(|one, next| one < next), "{opening:?}: {counts:?}");
    }
}

/// Each client holds a session over fifty programs with upstream calls, one of which fails, and queries the records.
#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn every_client_holds_a_session() {
    const PROGRAMS: u64 = 50;
    let config = Upstreams::probe().write();
    let scripts = workspace().join("tests/third_party");
    let script = std::fs::read_to_string(scripts.join("session_client.mjs")).expect("the script");
    let mut node = Command::new("node");
    node.args(["--input-type=module", "-e", &script, "--"]);
    let mut python = Command::new(python());
    python.arg(scripts.join("session_client.py"));
    for mut command in [python, node] {
        command.current_dir(installed()).arg(PROGRAMS.to_string()).arg(binary::path()).arg("serve");
        command.args(config.flags(&["--sessions", "--debug-tool"]));
        command
            .env("XDG_CONFIG_HOME", "/nonexistent")
            .env("XDG_STATE_HOME", "/dev/null")
            .env_remove("PTC_UPSTREAMS");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let finished = run(command, "");
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        let report: Value = serde_json::from_str(&finished.stdout).expect("a report");
        // Definitions of the failed program are gone; its calls are not undone.
        let total = |upto: u64| (0..=upto).filter(|n| *n != 25).sum::<u64>();
        for (number, text) in (0..PROGRAMS).zip(report["texts"].as_array().expect("texts")) {
            let text = text.as_str().expect("a text");
            match number {
                25 => assert!(text.starts_with("fail: :not-this") && text.contains("[rolled back"), "{text}"),
                _ => assert!(text.starts_with(&format!("{}\n[stored: ", total(number))), "{number}: {text}"),
            }
            assert!(text.ends_with("turn upstream calls: 1]"), "{text}");
        }
        assert_eq!(report["total"], format!("[{} 49 49]", total(49)));
        let session = &report["session"];
        assert_eq!(
            (&session["session"]["turn"], &session["usage"]["binding_count"]),
            (&json!(51), &json!(3))
        );
        let eval = &report["debug"]["by_tool"]["lisp_session_eval"];
        assert_eq!((&eval["calls"], &eval["error"]), (&json!(52), &json!(1)));
        assert_eq!(report["debug"]["upstream_calls"]["by_server"]["probe"]["ok"], 50);
        assert_eq!(report["debug"]["payload_reduction"]["calls_with_metrics"], 50);
        let recent: Vec<&str> = report["recent"]["calls"]
            .as_array()
            .expect("calls")
            .iter()
            .filter_map(|call| call["tool"].as_str())
            .collect();
        assert_eq!(recent, ["lisp_session_inspect", "lisp_session_eval", "lisp_session_eval"]);
        assert_eq!(
            (&report["closed"]["closed"], &report["after"]["reason"]),
            (&json!(true), &json!("session_closed"))
        );
    }
}
