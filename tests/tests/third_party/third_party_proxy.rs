//! The document of `proxy-dispatch`, request by request, against third-party servers.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

use ptc_tests::serve::{Server, text_of};
use ptc_tests::third_party::{everything, filesystem, time};
use ptc_tests::upstreams::{ConfigFile, Upstreams};
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

/// c1 everything, c2 fs, c3 time.
fn config(root: &Path) -> ConfigFile {
    Upstreams::default()
        .add("everything", everything())
        .add("fs", filesystem(root))
        .add("time", time())
        .write()
}

/// A folder with a canonical path, so that servers that resolve links agree with it.
fn folder() -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap().to_str().unwrap().to_owned();
    (dir, path)
}

/// The result of one call of the tool.
fn dispatch(server: &mut Server, arguments: Value) -> Value {
    let id = server.begin("tools/call", json!({ "name": "proxy-dispatch", "arguments": arguments }));
    loop {
        let answer = server.receive();
        if answer["id"] == id {
            let result = answer["result"].clone();
            assert_eq!(result["isError"], false, "{result}");
            return result;
        }
    }
}

fn data(result: &Value) -> Value {
    serde_json::from_str(&text_of(result)).unwrap_or_else(|error| panic!("{error}: {result}"))
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn every_request_of_the_document_is_answered_as_it_says() {
    let (_dir, path) = folder();
    for number in 0..300 {
        std::fs::write(format!("{path}/foo-{number}.txt"), "x").unwrap();
    }
    let config = config(Path::new(&path));
    let mut server = Server::start(&config.flags(&["--tools", "proxy-dispatch", "--files-root", &path]));
    // 1. List connections and tools.
    let list = dispatch(
        &mut server,
        json!({ "action": "list", "connection": "c1", "includeTools": true,
        "includeInputSchema": false, "includeAnnotations": true }),
    );
    let entry = &data(&list)["connections"][0];
    assert_eq!((&entry["alias"], &entry["name"]), (&json!("c1"), &json!("everything")));
    assert!(entry["id"].as_str().unwrap().len() == 32 && entry["lastRefreshed"].is_string(), "{entry}");
    let tools = entry["tools"].as_array().unwrap();
    assert!(
        tools.iter().any(|tool| tool["name"] == "echo")
            && tools.iter().all(|tool| tool.get("inputSchema").is_none())
    );
    assert_eq!(
        data(&dispatch(&mut server, json!({ "action": "list" })))["connections"].as_array().unwrap().len(),
        3
    );
    // 2. Search tools.
    let search = json!({ "action": "search", "query": "time", "connection": "c3", "limit": 10 });
    let found = data(&dispatch(&mut server, search));
    let names: Vec<&str> =
        found["results"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"get_current_time") && names.contains(&"convert_time"), "{found}");
    let found = data(&dispatch(&mut server, json!({ "action": "search", "query": "time" })));
    assert_eq!(found["results"][0]["connection"], "c3", "{found}");
    // 3. Call tools: with a connection, and without one for a tool that is unique.
    let arguments = json!({ "timezone": "UTC" });
    for connection in [json!("c3"), Value::Null] {
        let call = json!({ "action": "call", "tool": "get_current_time", "connection": connection, "arguments": arguments });
        let result = dispatch(&mut server, call);
        assert_eq!((&result["action"], &result["tool"]), (&json!("call"), &json!("get_current_time")));
        assert!(result["estimatedTokens"].as_u64() > Some(5) && result.get("result").is_none(), "{result}");
        assert_eq!(data(&result)["timezone"], "UTC");
    }
    // 4. Large input and output with files.
    let args = format!("{path}/mini-a-proxy-args-123.json");
    let written = format!("{path}/written.txt");
    std::fs::write(&args, json!({ "path": written, "content": "from a file" }).to_string()).unwrap();
    let result = dispatch(
        &mut server,
        json!({ "action": "call", "tool": "write_file", "argumentsFile": args, "resultToFile": true }),
    );
    assert_eq!(result["arguments"], json!({ "_fromFile": args }));
    assert_eq!(std::fs::read_to_string(written).unwrap(), "from a file");
    assert!(Path::new(result["resultFile"].as_str().unwrap()).exists());
    // 5. Reading back a spilled result.
    let result = dispatch(
        &mut server,
        json!({ "action": "call", "tool": "directory_tree", "arguments": { "path": path },
        "resultSizeThreshold": 1_000 }),
    );
    assert_eq!(result["autoSpilled"], true);
    let file = result["resultFile"].as_str().unwrap().to_owned();
    let told = text_of(&result);
    assert!(
        told.starts_with(&format!(
            "Result auto-spilled to temporary JSON file (exceeded 1000 bytes): {file} (auto-deleted"
        )),
        "{told}"
    );
    assert!(
        told.contains("\nSize: ") && told.contains(" tokens).\n") && told.contains("\nPreview: ["),
        "{told}"
    );
    let stat =
        data(&dispatch(&mut server, json!({ "action": "readresult", "resultFile": file, "op": "stat" })));
    assert_eq!(stat["byteSize"], std::fs::metadata(&file).unwrap().len());
    assert!(
        stat["lineCount"].as_u64() > Some(300) && stat["estimatedTokens"].as_u64() > Some(1_000),
        "{stat}"
    );
    let grep = json!({ "action": "readresult", "resultFile": file, "op": "grep", "pattern": "foo-77\\.txt", "context": 2 });
    let found = dispatch(&mut server, grep);
    assert!(found["matchCount"] == 1 && text_of(&found).contains("foo-77.txt"), "{found}");
    let slice =
        json!({ "action": "readresult", "resultFile": file, "op": "slice", "fromLine": 1, "toLine": 100 });
    assert_eq!(text_of(&dispatch(&mut server, slice)).lines().count(), 100);
    let read = dispatch(&mut server, json!({ "action": "readresult", "resultFile": file, "op": "read" }));
    assert_eq!(data(&read).as_array().unwrap().len(), 302);
    // 6. A spilled result becomes the arguments of the next call.
    let message = "a long message ".repeat(100);
    std::fs::write(format!("{path}/message.json"), json!({ "message": message }).to_string()).unwrap();
    let first = dispatch(
        &mut server,
        json!({ "action": "call", "tool": "read_text_file",
        "arguments": { "path": format!("{path}/message.json") }, "resultToFile": true }),
    );
    let second = dispatch(
        &mut server,
        json!({ "action": "call", "tool": "echo", "argumentsFile": first["resultFile"] }),
    );
    assert_eq!(text_of(&second), format!("Echo: {message}"));
}

/// The JSON of the document, block by block.
mod document {
    pub(super) const LIST: &str = r#"{
  "action": "list",
  "connection": "c1",  // optional: specific connection alias
  "includeTools": true,
  "includeInputSchema": false,
  "includeAnnotations": true
}"#;
    pub(super) const SEARCH: &str = r#"{
  "action": "search",
  "query": "time",
  "connection": "c1",  // optional: limit search to specific connection
  "limit": 10
}"#;
    pub(super) const CALL: &str = r#"{
  "action": "call",
  "tool": "get_current_time",
  "connection": "c1",  // optional: specify connection (auto-detected if unique)
  "arguments": {
    // tool-specific parameters
  }
}"#;
    pub(super) const FILES: &str = r#"{
  "action": "call",
  "tool": "filesystemModify",
  "argumentsFile": "/tmp/mini-a-proxy-args-123.json",
  "resultToFile": true
}"#;
    pub(super) const SPILLED: &str = r#"{
  "action": "call",
  "tool": "filesystemModify",
  "arguments": { "_fromFile": "/tmp/mini-a-proxy-args-123.json" },
  "resultFile": "/tmp/mini-a-proxy-result-xyz.json",
  "autoSpilled": true,
  "content": [{
    "type": "text",
    "text": "Result auto-spilled to temporary JSON file (exceeded 51200 bytes): /tmp/mini-a-proxy-result-xyz.json (auto-deleted at shutdown).\nSize: 83421 bytes (~20855 tokens).\nTop-level keys: [files, metadata, summary]\nPreview: {\"files\":[{\"name\":\"foo.txt\",\"size\":123}..."
  }]
}"#;
    pub(super) const INLINE: &str = r#"{
  "action": "call",
  "tool": "get_current_time",
  "estimatedTokens": 12,
  "content": [{"type":"text","text":"{\"time\":\"2026-02-18T10:00:00Z\"}"}]
}"#;
    pub(super) const STAT: &str =
        r#"{"action":"readresult","resultFile":"/tmp/mini-a-proxy-result-abc.json","op":"stat"}"#;
    pub(super) const STATED: &str = r#"{ "byteSize": 83421, "lineCount": 1204, "estimatedTokens": 20855 }"#;
    pub(super) const GREP: &str = r#"{"action":"readresult","resultFile":"/tmp/mini-a-proxy-result-abc.json","op":"grep","pattern":"foo\\.txt","context":2}"#;
    pub(super) const SLICE: &str = r#"{"action":"readresult","resultFile":"/tmp/mini-a-proxy-result-abc.json","op":"slice","fromLine":1,"toLine":100}"#;
    pub(super) const READ: &str =
        r#"{"action":"readresult","resultFile":"/tmp/mini-a-proxy-result-abc.json","op":"read"}"#;
    pub(super) const QUERY: &str =
        r#"{"action":"call","tool":"filesystemQuery","arguments":{"path":"/data"},"resultToFile":true}"#;
    pub(super) const TRANSFORM: &str =
        r#"{"action":"call","tool":"dataTransform","argumentsFile":"/tmp/mini-a-proxy-result-abc.json"}"#;
    pub(super) const SCENARIO: &str = r#"{"action":"call","tool":"get_current_time","arguments":{}}"#;
}

/// A block without its comments.
fn block(text: &str) -> Value {
    let without = |line: &str| line.split("  //").next().unwrap().to_owned();
    let text: String = text.lines().map(without).collect::<Vec<_>>().join("\n");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A block with other files in place of the document's.
fn about(text: &str, files: &[(&str, &str)]) -> Value {
    let mut text = block(text).to_string();
    for (theirs, ours) in files {
        text = text.replace(theirs, ours);
    }
    serde_json::from_str(&text).unwrap()
}

/// A text with numbers masked and previews cut.
fn told(text: &str) -> String {
    let text = text.split_once("size\":123").map_or(text, |(before, _)| before);
    text.split(|letter: char| letter.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("#")
}

/// A server with one tool that returns its arguments.
const TRANSFORMING: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params")
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "transform", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "dataTransform", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        result = {"content": [], "structuredContent": {"given": sorted(params["arguments"]), "first": params["arguments"]["files"][0]}}
    elif "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown"}}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// Number of spilled results in a folder for temporary files.
fn kept_in(folder: &str) -> usize {
    let inside = |path: &Path| -> Vec<std::path::PathBuf> {
        std::fs::read_dir(path).map_or(Vec::new(), |all| all.map(|entry| entry.unwrap().path()).collect())
    };
    let bases =
        inside(Path::new(folder)).into_iter().filter(|path| path.to_string_lossy().contains("ptc-spill"));
    let folders = bases.flat_map(|base| inside(&base));
    folders
        .flat_map(|folder| inside(&folder))
        .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
        .count()
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn every_block_of_the_document_is_taken_as_it_stands() {
    use document::*;
    let (_dir, path) = folder();
    let (args, data_folder) = (format!("{path}/mini-a-proxy-args-123.json"), format!("{path}/data"));
    std::fs::create_dir(&data_folder).unwrap();
    std::fs::write(format!("{data_folder}/foo.txt"), "x".repeat(123)).unwrap();
    for number in 1_000..3_500 {
        std::fs::write(format!("{data_folder}/foo{number}.txt"), "").unwrap();
    }
    let transform = ptc_tests::upstreams::stdio("python3", &["-c", TRANSFORMING]);
    let config = Upstreams::default()
        .add("clock", time())
        .add("everything", everything())
        .add("fs", filesystem(Path::new(&path)))
        .add("transform", transform)
        .write();
    let flags = [
        "--tools",
        "proxy-dispatch",
        "--proxy-threshold",
        "51200",
        "--utils",
        "--files-write",
        "--files-root",
        &path,
    ];
    let mut command = ptc_tests::binary::ptc(&[&["serve"][..], &config.flags(&flags)].concat());
    command.env("TMPDIR", &path);
    let mut server = Server::from_command(command);
    // 1 and 2.
    let list = data(&dispatch(&mut server, block(LIST)));
    assert_eq!(list["connections"][0]["alias"], "c1");
    let tools = list["connections"][0]["tools"].as_array().unwrap();
    assert!(
        tools.iter().all(|tool| tool.get("inputSchema").is_none() && tool["description"].is_string()),
        "{list}"
    );
    let found = data(&dispatch(&mut server, block(SEARCH)));
    assert!(
        found["results"].as_array().unwrap().iter().any(|tool| tool["name"] == "get_current_time"),
        "{found}"
    );
    // 3, and the answer with the result.
    for text in [CALL, SCENARIO] {
        let mut call = block(text);
        call["arguments"]["timezone"] = "UTC".into();
        let result = dispatch(&mut server, call);
        for (key, value) in block(INLINE).as_object().unwrap() {
            match key.as_str() {
                "estimatedTokens" => assert!(result[key].is_u64(), "{result}"),
                "content" => assert!(data(&result).is_object() && result[key].as_array().unwrap().len() == 1),
                _ => assert_eq!(&result[key], value),
            }
        }
        assert!(result.get("result").is_none() && result.get("structuredContent").is_none(), "{result}");
    }
    // 4: arguments from a file, the result into one.
    let written = format!("{path}/written.txt");
    std::fs::write(&args, json!({ "path": written, "content": "from a file" }).to_string()).unwrap();
    let files = [("/tmp/mini-a-proxy-args-123.json", args.as_str()), ("/data", data_folder.as_str())];
    let result = dispatch(&mut server, about(FILES, &files));
    assert_eq!(std::fs::read_to_string(&written).unwrap(), "from a file");
    assert_eq!(result["arguments"], json!({ "_fromFile": args }));
    assert!(result["resultFile"].is_string() && result.get("autoSpilled").is_none(), "{result}");
    // The response of a call with too large a result.
    std::fs::write(&args, json!({ "path": data_folder }).to_string()).unwrap();
    let call = json!({ "action": "call", "tool": "filesystemQuery", "argumentsFile": args });
    let result = dispatch(&mut server, call);
    let file = result["resultFile"].as_str().unwrap().to_owned();
    let spilled = about(
        SPILLED,
        &[files[0], ("/tmp/mini-a-proxy-result-xyz.json", &file), ("filesystemModify", "filesystemQuery")],
    );
    for (key, value) in spilled.as_object().unwrap() {
        match key.as_str() {
            "content" => assert_eq!(told(&text_of(&result)), told(&text_of(&spilled))),
            _ => assert_eq!(&result[key], value),
        }
    }
    assert!(
        text_of(&result).contains("Preview: {\"files\":[{\"name\":\"foo.txt\",\"size\":123}"),
        "{result}"
    );
    // 5, on the result of the chain's first step.
    let first = dispatch(&mut server, about(QUERY, &files));
    let kept = first["resultFile"].as_str().unwrap().to_owned();
    let files = [("/tmp/mini-a-proxy-result-abc.json", kept.as_str())];
    let stat = data(&dispatch(&mut server, about(STAT, &files)));
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&stat), keys(&block(STATED)));
    assert!(stat["lineCount"].as_u64() > Some(2_500), "{stat}");
    let found = dispatch(&mut server, about(GREP, &files));
    assert_eq!(found["matchCount"], 1, "{found}");
    assert_eq!(text_of(&found).lines().count(), 5, "with two lines before and after: {found}");
    assert_eq!(text_of(&dispatch(&mut server, about(SLICE, &files))).lines().count(), 100);
    let whole = data(&dispatch(&mut server, about(READ, &files)));
    assert_eq!(keys(&whole), ["files", "metadata", "summary"]);
    // 6: it becomes the arguments of the next call.
    let second = data(&dispatch(&mut server, about(TRANSFORM, &files)));
    assert_eq!(
        second,
        json!({ "given": ["files", "metadata", "summary"], "first": { "name": "foo.txt", "size": 123 } })
    );
    // The warning of section 5: another tool reads a spilled result, and the output is too large again.
    let before = kept_in(&path);
    for (connection, tool, arguments) in [
        ("utils", "filesystemQuery", json!({ "operation": "read", "path": file })),
        (
            "utils",
            "filesystemQuery",
            json!({ "operation": "search", "pattern": ".", "path": path, "includeHidden": true }),
        ),
        ("fs", "read_text_file", json!({ "path": file })),
        ("fs", "read_multiple_files", json!({ "paths": [file, kept] })),
    ] {
        for more in [json!({}), json!({ "resultSizeThreshold": 10 })] {
            let mut call =
                json!({ "action": "call", "connection": connection, "tool": tool, "arguments": arguments });
            call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let answer = server.request("tools/call", json!({ "name": "proxy-dispatch", "arguments": call }))
                ["result"]
                .clone();
            if tool == "filesystemQuery" && arguments["operation"] == "search" {
                // The tool sees the folder's files, but no spilled results.
                let is_kept = answer["resultFile"].is_string();
                assert!(is_kept || !text_of(&answer).contains("ptc-spill-"), "{answer}");
                continue;
            }
            let said = text_of(&answer);
            assert!(
                answer["isError"] == true
                    && said.contains("readresult")
                    && answer.get("resultFile").is_none(),
                "{answer}"
            );
        }
    }
    assert!(kept_in(&path) <= before + 2, "only searches were kept");
    assert_eq!(server.end(), Some(0));
    assert_eq!(kept_in(&path), 0);
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn looking_into_a_kept_result_keeps_nothing_more() {
    let (_dir, path) = folder();
    std::fs::write(format!("{path}/large.txt"), "a line of text\n".repeat(20_000)).unwrap();
    let config = config(Path::new(&path));
    let flags = config.flags(&["--tools", "proxy-dispatch", "--proxy-threshold", "100"]);
    let mut server = Server::start(&flags);
    let read = json!({ "action": "call", "tool": "read_text_file", "arguments": { "path": format!("{path}/large.txt") } });
    let result = dispatch(&mut server, read);
    assert!(result["autoSpilled"] == true && text_of(&result).contains("(exceeded 100 bytes)"), "{result}");
    for op in [
        json!({ "op": "read" }),
        json!({ "op": "head", "lines": 20_000 }),
        json!({ "op": "tail", "lines": 9_999 }),
        json!({ "op": "slice" }),
        json!({ "op": "grep", "pattern": "line" }),
        json!({}),
    ] {
        let mut look = json!({ "action": "readresult", "resultFile": result["resultFile"] });
        look.as_object_mut().unwrap().extend(op.as_object().unwrap().clone());
        let looked = dispatch(&mut server, look);
        assert!(looked.get("autoSpilled").is_none() && looked["resultFile"] == result["resultFile"]);
        assert!(looked["op"] == "stat" || text_of(&looked).len() > 100_000, "{op}");
    }
    let images = json!({ "action": "call", "tool": "get-tiny-image", "resultSizeThreshold": 0 });
    let blocks = dispatch(&mut server, images)["content"].clone();
    assert!(blocks.as_array().unwrap().iter().any(|block| block["type"] == "image"), "{blocks}");
}
