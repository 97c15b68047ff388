//! Every example of the document of `execute_program`: its configuration verbatim, its description, its texts byte
//! for byte.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

use ptc_tests::binary::ptc;
use ptc_tests::scripts::{REVENUE, result, without_marks};
use ptc_tests::serve::{Server, text_of};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The configuration of the document.
const CONFIG: &str = r#"# programmatic-executor/config.yaml

servers:
  - name: financial-data
    transport: stdio
    command: node
    args: ["./financial-data-mcp/dist/index.js"]

  - name: document-retrieval
    transport: stdio
    command: python
    args: ["-m", "doc_retrieval_mcp"]

  - name: internal-apis
    transport: sse
    url: "http://localhost:8080/mcp"

# Tool-level access control (uses namespaced names)
tools:
  block:
    - "mcp__internal_apis__delete_resource"
    - "mcp__document_retrieval__admin_reindex"

# Execution constraints
execution:
  timeout_seconds: 120
  max_output_bytes: 65536
"#;

/// A folder with the document's configuration, its servers, and their start scripts.
struct Folder {
    folder: TempDir,
    sse: Child,
    port: u16,
}

impl Folder {
    fn new() -> Folder {
        let folder = tempfile::tempdir().unwrap();
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
        let at = |path: &str| folder.path().join(path);
        std::fs::create_dir_all(at("bin")).unwrap();
        std::fs::create_dir_all(at("financial-data-mcp/dist")).unwrap();
        std::fs::copy(data.join("finance.py"), at("financial-data-mcp/dist/index.js")).unwrap();
        let documents = std::fs::read_to_string(data.join("finance.py")).unwrap();
        let documents = documents.replace("delete-everything", "admin_reindex");
        std::fs::write(at("doc_retrieval_mcp.py"), documents).unwrap();
        for name in ["node", "python"] {
            let file = at(&format!("bin/{name}"));
            std::fs::write(&file, "#!/bin/sh\nexec python3 \"$@\"\n").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut sse =
            Command::new("python3").arg(data.join("sse_server.py")).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(sse.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Folder { port: line.trim().parse().unwrap(), folder, sse }
    }

    /// A command in the folder, with a configuration.
    fn command(&self, arguments: &[&str], config: &str) -> Command {
        let config = config.replace("localhost:8080", &format!("127.0.0.1:{}", self.port));
        std::fs::write(self.folder.path().join("config.yaml"), config).unwrap();
        let mut command = ptc(arguments);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.folder.path().join("bin").display()));
        command.current_dir(self.folder.path()).args(["--upstreams-config", "config.yaml"]);
        command
    }

    fn serve(&self, config: &str) -> Server {
        Server::from_command(self.command(&["serve", "--tools", "execute_program"], config))
    }

    /// Exit code, output and log of a script.
    fn exec(&self, config: &str, code: &str) -> (Option<i32>, String, String) {
        std::fs::write(self.folder.path().join("script.py"), code).unwrap();
        let output = self.command(&["exec", "script.py"], config).stderr(Stdio::piped()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = self.sse.kill();
        let _ = self.sse.wait();
    }
}

fn run(server: &mut Server, code: &str) -> String {
    let result = result(server, code);
    let text = text_of(&result);
    assert_eq!(result["isError"] == true, text.starts_with("[Script execution failed]"));
    text
}

/// Waits until all servers have listed their tools.
fn settled(server: &mut Server) {
    while run(server, "print(len(tools()))") != "[Script executed successfully]\n6\n" {}
}

fn assert_texts(server: &mut Server, table: &[(&str, &str)]) {
    for (code, want) in table {
        assert_eq!(without_marks(&run(server, code)), without_marks(want), "{code}");
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn the_example_interaction_with_the_configuration_as_it_stands() {
    let folder = Folder::new();
    let mut server = folder.serve(CONFIG);
    settled(&mut server);
    assert_texts(
        &mut server,
        &[
            REVENUE,
            // The server over SSE, and the second over stdio; dict, list, str.
            (
                "a = await mcp__internal_apis__get_resource(id='7')\nb = await mcp__document_retrieval__stock_quote(ticker='X')\n\
             c = await mcp__financial_data__query_financials(ticker='GOOG', limit=1)\nprint(a, b, c)",
                "[Script executed successfully]\n{'id': '7', 'tool': 'get_resource'} {'ticker': 'X', 'price': 12.5} [{'revenue': 96500000000.0}]\n",
            ),
            // 5.4
            (
                "await mcp__internal_apis__delete_resource(id='7')",
                "[Script execution failed]\nToolError: 'mcp__internal_apis__delete_resource' is not available in execute_program",
            ),
            (
                "await mcp__document_retrieval__admin_reindex()",
                "[Script execution failed]\nToolError: 'mcp__document_retrieval__admin_reindex' is not available in execute_program",
            ),
            // 6.4
            ("kept = 1", "[Script executed successfully]\n(no output)"),
            (
                "print(kept)",
                "[Script execution failed]\nTraceback (most recent call last):\n  File \"<program>\", line 1, in __main__\n    \
             print(kept)\nNameError: name 'kept' is not defined",
            ),
            // 8.1
            (
                "for t in ['DOWN']:\n    data = 1\n    data = await mcp__financial_data__query_financials(ticker=t)",
                "[Script execution failed]\nTraceback (most recent call last):\n  File \"<program>\", line 3, in __main__\n    \
             data = await mcp__financial_data__query_financials(ticker=t)\n\
             ToolError: 'mcp__financial_data__query_financials' failed: connection refused",
            ),
            // 8.2
            (
                "quarter = {'revenue': 1}\nprint(quarter['revenues'])",
                "[Script execution failed]\nTraceback (most recent call last):\n  File \"<program>\", line 2, in __main__\n    \
             print(quarter['revenues'])\nKeyError: 'revenues'",
            ),
            // 10: in parallel.
            (
                "import asyncio\nrows = await asyncio.gather(mcp__financial_data__query_financials(ticker='AMZN', limit=1), \
             mcp__internal_apis__get_resource(id='x'))\nprint(rows)",
                "[Script executed successfully]\n[[{'revenue': 170000000000.0}], {'id': 'x', 'tool': 'get_resource'}]\n",
            ),
        ],
    );
    // 8.4: the server is lost in the middle of a script.
    let lost = run(&mut server, "await mcp__financial_data__query_financials(ticker='GONE')");
    let error = lost.lines().last().unwrap();
    assert!(error.starts_with("ToolError: 'mcp__financial_data__query_financials' failed: "), "{lost}");
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn the_table_of_outputs() {
    let folder = Folder::new();
    let config = CONFIG.replace("120", "1").replace("65536", "20");
    let mut server = folder.serve(&config);
    assert_texts(
        &mut server,
        &[
            ("print('hello')", "[Script executed successfully]\nhello\n"),
            ("x = 1", "[Script executed successfully]\n(no output)"),
            ("print('  \\n')", "[Script executed successfully]\n(no output)"),
            (
                "1/0",
                "[Script execution failed]\nTraceback (most recent call last):\n  File \"<program>\", line 1, in __main__\n    1/0\nZeroDivisionError: division by zero",
            ),
            (
                "import asyncio\nawait asyncio.sleep(100)",
                "[Script execution failed]\nTimeoutError: Execution exceeded 1s limit",
            ),
            ("while True: pass", "[Script execution failed]\nTimeoutError: Execution exceeded 1s limit"),
            (
                "print('0123456789' * 3)",
                "[Script executed successfully]\n01234567890123456789\n... (truncated)",
            ),
            (
                "print('ü' * 30 + '\\n', end='')",
                "[Script executed successfully]\nüüüüüüüüüü\n... (truncated)",
            ),
            ("print('0123456789' * 2, end='')", "[Script executed successfully]\n01234567890123456789"),
        ],
    );
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn the_tool_is_described_as_written() {
    let description = "Execute a Python program with access to MCP tools as async functions. Tool calls within the script \
        are dispatched to their respective MCP servers. Only stdout (from print statements) is returned — intermediate \
        tool results do not enter the conversation context. Use this when a task involves 3+ tool calls, loops, filtering, \
        aggregation, or conditional logic based on intermediate results. For single tool calls, call the tool directly. All \
        tool functions require `await`.";
    let code = "Python code to execute. MCP tools are available as async functions using their namespaced names (e.g., \
        mcp__financial_data__query_financials). Use `await` for all tool calls. Use `print()` to produce output.";
    let mut server = Server::start(&["--tools", "execute_program"]);
    let tools: Value = server.request("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(tools.as_array().unwrap().len(), 1);
    assert_eq!(
        (&tools[0]["name"], &tools[0]["description"]),
        (&json!("execute_program"), &json!(description))
    );
    let schema = json!({ "type": "object", "properties": { "code": { "type": "string", "description": code } }, "required": ["code"] });
    assert_eq!(tools[0]["inputSchema"], schema);
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn a_server_that_cannot_be_reached_is_a_warning() {
    let folder = Folder::new();
    let config =
        CONFIG.replace("doc_retrieval_mcp", "no_such_module").replace("localhost:8080", "127.0.0.1:1");
    let code = "print(tools())\nawait mcp__internal_apis__get_resource(id='1')";
    let (exit, output, log) = folder.exec(&config, code);
    assert_eq!(exit, Some(1), "{log}");
    assert!(output.contains("NameError: name 'mcp__internal_apis__get_resource' is not defined"), "{output}");
    for server in ["document-retrieval", "internal-apis"] {
        let warned = log
            .lines()
            .any(|line| line.contains("WARN") && line.contains(server) && line.contains("could not start"));
        assert!(warned, "{server}: {log}");
    }
    let (exit, output, _) = folder.exec(&config, "print(tools())");
    let left = "['mcp__financial_data__delete_everything', 'mcp__financial_data__query_financials', 'mcp__financial_data__stock_quote']\n";
    assert_eq!((exit, output.as_str()), (Some(0), left));
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn only_listed_tools_are_allowed() {
    let folder = Folder::new();
    let (_, tools) = CONFIG.split_once("# Tool-level").unwrap();
    let config = CONFIG.replace(tools, "\ntools:\n  allow: [mcp__financial_data__stock_quote]\n");
    let code = "print(tools())\nawait mcp__internal_apis__get_resource(id='7')";
    let (exit, output, log) = folder.exec(&config, code);
    let want = "ToolError: 'mcp__internal_apis__get_resource' is not available in execute_program\n\n\
                [Output before the failure]\n['mcp__financial_data__stock_quote']\n";
    assert_eq!((exit, output.as_str()), (Some(1), want), "{log}");
    assert_eq!(folder.exec(&config, "print(tools())").1, "['mcp__financial_data__stock_quote']\n");
}

#[test]
fn two_tools_of_one_name_are_refused_with_both_names() {
    let folder = Folder::new();
    let config = CONFIG.replace("name: document-retrieval", "name: financial_data");
    let want = "financial-data/query_financials and financial_data/query_financials would both be the function \
                mcp__financial_data__query_financials";
    // A script that names no tool needs no server, and so sees no functions.
    let (exit, _, log) = folder.exec(&config, "print(tools())");
    assert_eq!(exit, Some(2), "{log}");
    assert!(log.contains(want), "{log}");
    let mut serve = folder.command(&["serve", "--tools", "execute_program"], &config);
    // Its input stays open, so the signal ends it.
    let mut child = serve.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _input = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    if cfg!(jail) {
        assert_eq!(output.status.code(), Some(2), "{log}");
        assert!(log.contains(want), "{log}");
    }
}

#[test]
fn errors_have_their_line_and_column() {
    let folder = Folder::new();
    for (from, to, want) in [
        (
            "transport: sse",
            "transport: pigeon",
            "config.yaml:15:5: upstream internal-apis has unsupported transport \"pigeon\"; use stdio, http, sse, openapi or local",
        ),
        ("command: node", "comand: node", "config.yaml:4:5: upstream financial-data requires command"),
        ("    url: ", "    uri: ", "config.yaml:14:5: upstream internal-apis requires url"),
        (
            "name: internal-apis",
            "name: financial-data",
            "config.yaml:14:5: two servers are called financial-data",
        ),
        (
            "  - name: internal-apis\n    transport",
            "  - transport",
            "config.yaml:14:5: a server needs a name",
        ),
        (
            "  block:",
            "  allow: [x]\n  block:",
            "config.yaml:21:3: tools.allow and tools.block exclude each other",
        ),
        (
            "seconds: 120",
            "seconds: soon",
            "config.yaml:26:3: execution.timeout_seconds must be a positive whole number",
        ),
        (
            "bytes: 65536",
            "bytes: -1",
            "config.yaml:27:3: execution.max_output_bytes must be a positive whole number",
        ),
        ("execution:", "execution: [", "config.yaml:27:19: upstreams config YAML decode failed"),
    ] {
        let (exit, _, log) = folder.exec(&CONFIG.replace(from, to), "print(1)");
        assert_eq!(exit, Some(2), "{to}: {log}");
        assert!(log.contains(want), "{to}: {log}");
    }
    let (_, _, log) = folder.exec(&CONFIG.replace("max_output", "max_outptu"), "print(1)");
    assert!(log.contains("config.yaml:27:3: unknown key"), "{log}");
}
