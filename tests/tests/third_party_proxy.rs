//! The document of `proxy-dispatch`, request by request, against servers that we did not write.
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

/// A folder with real path, so that servers that resolve links agree about it.
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
    // 6. A kept result is the arguments of the next call.
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
