//! MCP clients that we did not write drive `ptc serve`: the Python `mcp` 2.x client and the TypeScript SDK.

use ptc_tests::binary::{self, run};
use ptc_tests::third_party::{installed, python};
use ptc_tests::upstreams::Upstreams;
use ptc_tests::workspace;
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// The client that opens the connection.
#[derive(Clone, Copy, Debug)]
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
        command.env("XDG_CONFIG_HOME", "/nonexistent").env_remove("PTC_RUNNER_MCP_UPSTREAMS");
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
        assert_eq!(report["server"], "ptc_lisp", "{opening:?}");
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
            // Clients check structured content against the tool's output schema, where there is one.
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
