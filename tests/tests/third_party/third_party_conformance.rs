//! The official MCP conformance suite against a server built on our handler and listener: every scenario that a
//! revision requires passes. docs/conformance.md has the list.

use ptc_tests::binary::{path, run, server_example};
use ptc_tests::third_party::{conformance_suite, new_node};
use ptc_tests::web::WebServer;
use ptc_tests::workspace;
use std::path::Path;
use std::process::{Command, Stdio};

/// Scenarios that run but do not count and do not pass: they wait for a change of the suite.
const NOT_OURS: [&str; 1] = ["http-custom-header-server-validation"];

/// Scenarios of logins that a client of both revisions passes. The extensions DPoP and workload identity are not supported.
const LOGINS: [&str; 30] = [
    "metadata-default",
    "metadata-var1",
    "metadata-var2",
    "metadata-var3",
    "basic-cimd",
    "scope-from-www-authenticate",
    "scope-from-scopes-supported",
    "scope-omitted-when-undefined",
    "scope-step-up",
    "scope-retry-limit",
    "token-endpoint-auth-basic",
    "token-endpoint-auth-post",
    "token-endpoint-auth-none",
    "pre-registration",
    "2025-03-26-oauth-metadata-backcompat",
    "2025-03-26-oauth-endpoint-fallback",
    "resource-mismatch",
    "offline-access-scope",
    "offline-access-not-supported",
    "authorization-server-migration",
    "iss-supported",
    "iss-not-advertised",
    "iss-supported-missing",
    "iss-wrong-issuer",
    "iss-unexpected",
    "iss-normalized",
    "metadata-issuer-mismatch",
    "client-credentials-jwt",
    "client-credentials-basic",
    "enterprise-managed-authorization",
];

fn suite(revision: &str, scenarios: usize) {
    let mut command = Command::new(server_example("conformance_server"));
    command.arg("127.0.0.1:0").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let server = WebServer::from_command(command);
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(new_node());
    command
        .arg(conformance_suite())
        .args(["server", "--requirements", revision, "--url", &server.url(), "--timeout", "120000"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let finished = run(command, "");
    let (summary, rest) =
        finished.stdout.split_once("=== SUMMARY ===").unwrap_or_else(|| panic!("{finished:?}"));
    let rest = rest.split("Not scored").next().unwrap_or_default();
    let failed: Vec<&str> = rest
        .lines()
        .filter_map(|line| line.strip_prefix("✗ "))
        .filter(|line| !NOT_OURS.iter().any(|name| line.starts_with(name)))
        .collect();
    assert!(failed.is_empty(), "{failed:#?}\n{summary}");
    // A suite that runs nothing fails nothing.
    let passed = rest.lines().filter(|line| line.starts_with("✓ ") && !line.contains(": 0 passed")).count();
    assert!(passed >= scenarios, "{passed} of {scenarios}: {rest}");
    assert_eq!(finished.code, Some(0), "{rest}");
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn every_scenario_of_2025_11_25_passes() {
    // 30 that count, and 2 that were added later.
    suite("2025-11-25", 32);
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn every_scenario_of_2026_07_28_passes() {
    // 37 that count, and 2 that do not yet.
    suite("2026-07-28", 39);
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn every_scenario_of_logins_passes() {
    let client = workspace().join("tests/third_party/conformance_client.py");
    let failed: Vec<String> = LOGINS.iter().filter_map(|name| login(name, &client)).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// What the suite says of a scenario that does not pass.
fn login(name: &str, client: &Path) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = format!("auth/{name}");
    let mut command = Command::new(new_node());
    command
        .arg(conformance_suite())
        .args(["client", "--scenario", &scenario, "--timeout", "120000", "--command"])
        .arg(client)
        .env("PTC", path())
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let finished = run(command, "");
    let said = format!("{}{}", finished.stdout, finished.stderr);
    let passes = said.contains("OVERALL: PASSED") && said.contains(" 0 failed, 0 warnings");
    (!passes).then(|| format!("{name}: {said}"))
}
