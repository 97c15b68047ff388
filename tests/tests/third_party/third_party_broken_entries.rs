//! Eighteen third-party MCP servers in one configuration file of a host, with an unreachable remote server, an unset
//! variable and a broken command among them: all eighteen become ready, and a program joins four of them.

use ptc_tests::binary::run_ptc;
use ptc_tests::documented::misfits;
use ptc_tests::workspace;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Scripts of npm packages, and the variables that they require.
const NODE: [(&str, &str, &[&str]); 14] = [
    ("github", "@modelcontextprotocol/server-github/dist/index.js", &["GITHUB_PERSONAL_ACCESS_TOKEN"]),
    ("gitlab", "@modelcontextprotocol/server-gitlab/dist/index.js", &["GITLAB_PERSONAL_ACCESS_TOKEN"]),
    ("slack", "@modelcontextprotocol/server-slack/dist/index.js", &["SLACK_BOT_TOKEN", "SLACK_TEAM_ID"]),
    ("brave", "@modelcontextprotocol/server-brave-search/dist/index.js", &["BRAVE_API_KEY"]),
    ("maps", "@modelcontextprotocol/server-google-maps/dist/index.js", &["GOOGLE_MAPS_API_KEY"]),
    ("context7", "@upstash/context7-mcp/dist/index.js", &[]),
    ("notion", "@notionhq/notion-mcp-server/bin/cli.mjs", &["NOTION_TOKEN"]),
    ("tavily", "tavily-mcp/build/index.js", &["TAVILY_API_KEY"]),
    ("exa", "exa-mcp-server/dist/stdio.cjs", &["EXA_API_KEY"]),
    ("firecrawl", "firecrawl-mcp/dist/index.js", &["FIRECRAWL_API_KEY"]),
    ("eslint", "@eslint/mcp/src/mcp-cli.js", &[]),
    ("chart", "@antv/mcp-server-chart/build/index.js", &[]),
    ("desktop", "@wonderwhy-er/desktop-commander/dist/index.js", &[]),
    ("sheets", "@negokaz/excel-mcp-server/dist/launcher.js", &[]),
];

/// Programs of PyPI packages, each in an environment of its own name.
const PYTHON: [(&str, &str, &[&str]); 4] = [
    ("calculator", "mcp-server-calculator", &[]),
    ("wikipedia", "wikipedia-mcp", &[]),
    ("search", "duckduckgo-mcp-server", &[]),
    ("excel", "excel-mcp-server", &["stdio"]),
];

/// The broken entries, and what `doctor` says of them.
const BROKEN: [(&str, &str); 3] = [
    ("broken", "command not found"),
    ("remote", "connection refused"),
    ("unset", "PTC_TEST_UNSET is not set"),
];

/// A generous timeout for busy machines.
const PATIENCE: &str = "300s";

fn servers(installed: &Path) -> Map<String, Value> {
    let mut servers = Map::new();
    for (name, script, variables) in NODE {
        let script = installed.join("node_modules").join(script);
        let variables: Map<String, Value> =
            variables.iter().map(|name| ((*name).to_owned(), "placeholder-of-the-test".into())).collect();
        servers.insert(name.into(), json!({ "command": "node", "args": [script], "env": variables }));
    }
    for (name, package, arguments) in PYTHON {
        let program = installed.join(package).join("bin").join(package);
        servers.insert(name.into(), json!({ "command": program, "args": arguments }));
    }
    servers
}

fn with_broken(mut servers: Map<String, Value>) -> Map<String, Value> {
    // No server listens there.
    servers.insert("remote".into(), json!({ "url": "http://127.0.0.1:9/mcp" }));
    servers.insert("unset".into(), json!({ "command": "x", "env": { "K": "${PTC_TEST_UNSET}" } }));
    servers.insert("broken".into(), json!({ "command": "npx -y nothing" }));
    servers
}

#[test]
#[cfg_attr(
    not(third_party_eighteen),
    ignore = "needs tests/third_party/eighteen/install.sh, half a gigabyte"
)]
fn eighteen_servers_are_ready_and_four_are_joined() {
    let installed = workspace().join("target/third_party_eighteen");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let at = |name: &str| path.join(name).to_str().unwrap().to_owned();
    std::fs::write(at("prices.csv"), "tea,3\n").unwrap();
    std::fs::write(at("x.js"), "console.log(b)\n").unwrap();
    std::fs::write(at("eslint.config.js"), "module.exports = [{ rules: { \"no-undef\": \"error\" } }];\n")
        .unwrap();
    let config = at("hosts.json");
    std::fs::write(&config, json!({ "mcpServers": with_broken(servers(&installed)) }).to_string()).unwrap();
    let flags = ["--upstreams-config", &config, "--handshake-timeout", PATIENCE];

    let doctor = run_ptc(&[&["doctor", "--output", "json"], &flags[..]].concat(), "");
    assert_eq!(doctor.code, Some(3), "three are meant to fail: {doctor:?}");
    let report: Value = serde_json::from_str(&doctor.stdout).unwrap();
    let all = report["servers"].as_array().unwrap();
    assert_eq!(all.len(), NODE.len() + PYTHON.len() + BROKEN.len());
    let failed: Vec<&Value> = all.iter().filter(|server| server["state"] != "ready").collect();
    let names: Vec<&Value> = failed.iter().map(|server| &server["name"]).collect();
    assert_eq!(names, BROKEN.map(|(name, _)| name), "{report:#}");
    for (server, (name, why)) in failed.iter().zip(BROKEN) {
        assert!(server.to_string().contains(why), "{name}: {server:#}");
    }

    let program = r#"(let [value (fn [r] (if (:ok r) (:value r) (fail (:message r))))]
      [(value (tool/call {:server "desktop" :tool "read_file" :args {:path data/prices}}))
       (value (tool/call {:server "calculator" :tool "calculate" :args {:expression "6*7"}}))
       (:content (tool/call {:server "eslint" :tool "lint-files" :args {:filePaths [data/script]}}))
       (value (tool/call {:server "excel" :tool "create_workbook" :args {:path data/book}}))])"#;
    let context =
        json!({ "prices": at("prices.csv"), "script": at("x.js"), "book": at("book.xlsx") }).to_string();
    let more =
        ["eval", "-", "--timeout", PATIENCE, "--upstream-call-timeout", PATIENCE, "--context", &context];
    let joined = run_ptc(&[&more[..], &flags[..]].concat(), program);
    assert_eq!(joined.code, Some(0), "{joined:?}");
    for part in ["tea,3", "42", "no-undef"] {
        assert!(joined.stdout.contains(part), "{part}: {joined:?}");
    }
    assert!(path.join("book.xlsx").is_file(), "{joined:?}");
}

#[test]
#[cfg_attr(
    not(third_party_eighteen),
    ignore = "needs tests/third_party/eighteen/install.sh, half a gigabyte"
)]
fn every_tool_of_theirs_can_be_called_from_its_documentation() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("hosts.json");
    // As entries of our own format, where each sets its own start timeout.
    let servers = servers(&workspace().join("target/third_party_eighteen"));
    let patient = servers.into_iter().map(|(name, mut entry)| {
        entry["transport"] = "mcp_stdio".into();
        entry["handshake_timeout_ms"] = 300_000.into();
        (name, entry)
    });
    let patient: Map<String, Value> = patient.collect();
    std::fs::write(&config, json!({ "upstreams": patient }).to_string()).unwrap();
    let (tools, misfits) = misfits(config.to_str().unwrap());
    eprintln!("{tools} tools");
    assert!(tools >= 200 && misfits.is_empty(), "{tools} tools: {misfits}");
}
