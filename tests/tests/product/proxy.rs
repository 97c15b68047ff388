//! The tool `proxy-dispatch` through `ptc serve`.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

mod texts;

use crate::policy::PolicyFile;
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::{ConfigFile, Upstreams, probe_server};
use ptc_tests::web::{SessionClient, WebServer};
use serde_json::{Value, json};

const ONLY_PROXY: [&str; 2] = ["--tools", "proxy-dispatch"];

/// Two servers with the same tools, and one that never starts.
fn config() -> ConfigFile {
    let mut absent =
        ptc_tests::upstreams::stdio("/nonexistent/server", &["--token", "correct-horse-battery"]);
    absent["required"] = false.into();
    Upstreams::default()
        .add("one", probe_server(&[]))
        .add("two", probe_server(&[]))
        .add("zero", absent)
        .write()
}

/// The result of one call of the tool.
fn dispatch(server: &mut Server, arguments: Value) -> Value {
    let id = server.begin("tools/call", json!({ "name": "proxy-dispatch", "arguments": arguments }));
    loop {
        let answer = server.receive();
        if answer["id"] == id {
            return answer["result"].clone();
        }
    }
}

/// The text of the result, as data.
fn data(server: &mut Server, arguments: Value) -> Value {
    let result = dispatch(server, arguments);
    assert_eq!(result["isError"], false, "{result}");
    serde_json::from_str(&text_of(&result)).unwrap()
}

/// The error of the result.
fn wrong(server: &mut Server, arguments: Value) -> String {
    let result = dispatch(server, arguments);
    assert_eq!(result["isError"], true, "{result}");
    text_of(&result)
}

#[test]
fn connections_and_tools_are_listed_and_found() {
    let config = config();
    let mut server = Server::start(&config.flags(&ONLY_PROXY));
    let tools = server.request("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(tools.as_array().unwrap().len(), 1);
    assert_eq!(tools[0]["name"], "proxy-dispatch");
    assert!(tools[0]["description"].as_str().unwrap().ends_with("c1 = one, c2 = two, c3 = zero"), "{tools}");
    let list = data(&mut server, json!({ "action": "list" }));
    let entries = list["connections"].as_array().unwrap();
    let shown = |key: &str| entries.iter().map(|entry| entry[key].clone()).collect::<Value>();
    assert_eq!(shown("alias"), json!(["c1", "c2", "c3"]));
    assert_eq!(shown("name"), json!(["one", "two", "zero"]));
    assert!(entries[0]["tools"][0]["name"] == "echo" && entries[0]["tools"][0].get("inputSchema").is_none());
    assert!(entries[0]["lastRefreshed"].as_str().unwrap().ends_with('Z'), "{list}");
    assert!(entries[2].get("lastRefreshed").is_none() && entries[2]["error"].is_string(), "{list}");
    assert!(!list.to_string().contains("correct-horse"), "{list}");
    let id = entries[1]["id"].as_str().unwrap().to_owned();
    assert!(id.len() == 32 && id != entries[0]["id"], "one id a connection: {list}");
    for name in ["c2", "two", &id] {
        let arguments = json!({ "action": "list", "connection": name, "includeTools": false });
        let one = data(&mut server, arguments)["connections"].clone();
        assert_eq!((&one[0]["id"], one.as_array().unwrap().len()), (&json!(id), 1));
        assert!(one[0].get("tools").is_none());
    }
    let arguments = json!({ "action": "list", "connection": "c1", "includeInputSchema": true });
    assert!(data(&mut server, arguments)["connections"][0]["tools"][0]["inputSchema"].is_object());
    let found = data(&mut server, json!({ "action": "search", "query": "echo", "limit": 1 }));
    assert_eq!((&found["totalMatches"], found["results"].as_array().unwrap().len()), (&json!(2), 1));
    assert_eq!(
        (&found["results"][0]["connection"], &found["results"][0]["name"]),
        (&json!("c1"), &json!("echo"))
    );
    assert_eq!(found["unsearched"][0]["connection"], "c3", "{found}");
    let found = data(&mut server, json!({ "action": "search", "query": "echo", "connection": "c2" }));
    assert_eq!(found["results"][0]["server"], "two");
    // The id does not depend on the process.
    let mut again = Server::start(&config.flags(&ONLY_PROXY));
    let list = data(&mut again, json!({ "action": "list", "connection": "two" }));
    assert_eq!(list["connections"][0]["id"], id);
}

#[test]
fn calls_carry_their_result_once() {
    let config = config();
    let mut server = Server::start(&config.flags(&ONLY_PROXY));
    let call = |tool: &str, arguments: Value| json!({ "action": "call", "connection": "c1", "tool": tool, "arguments": arguments });
    let result = dispatch(&mut server, call("echo", json!({ "v": { "rows": [1, 2] } })));
    let want = json!({ "content": [{ "type": "text", "text": "{\"rows\":[1,2]}" }], "isError": false,
        "action": "call", "connection": "c1", "tool": "echo", "estimatedTokens": 4 });
    assert_eq!(result, want);
    assert_eq!(wrong(&mut server, call("refuse", json!({}))), "no");
    // Images of a failure arrive, with its texts and its data.
    let content = json!([{ "type": "text", "text": "no" }, { "type": "image", "data": "AAEC", "mimeType": "image/png" }]);
    let given = json!({ "isError": true, "content": content, "structuredContent": { "n": 1 } });
    let failed = dispatch(&mut server, call("echo", json!({ "result": given })));
    assert_eq!((&failed["isError"], &failed["reason"]), (&json!(true), &json!("tool_error")), "{failed}");
    let data = json!({ "type": "text", "text": "{\"n\":1}" });
    assert_eq!(failed["content"], json!([content[0], content[1], data]), "{failed}");
    let several = wrong(&mut server, json!({ "action": "call", "tool": "echo" }));
    assert_eq!(several, "several connections have a tool \"echo\": c1 (one), c2 (two); say which");
    let none = wrong(&mut server, json!({ "action": "call", "tool": "eco" }));
    assert!(
        none.contains("no connection has a tool \"eco\" (did you mean \"echo\"?)")
            && none.contains("c3 (zero): "),
        "{none}"
    );
    let none = wrong(&mut server, call("eco", json!({})));
    assert!(none.starts_with("no tool 'eco' in upstream 'one'") && none.contains("Did you mean"), "{none}");
    let none = wrong(&mut server, json!({ "action": "list", "connection": "c9" }));
    assert_eq!(none, "there is no connection \"c9\"; there is: c1 (one), c2 (two), c3 (zero)");
    let fields = wrong(&mut server, json!({ "action": "list", "tool": "echo" }));
    assert!(fields.starts_with("`tool` belongs to call, not to list; list takes connection?"), "{fields}");
}

#[test]
fn it_stands_beside_other_tools_and_starts_servers_when_they_are_needed() {
    let config = config();
    let flags = ["--tools", "proxy-dispatch,lisp_eval", "--catalog-snapshot-mode", "live"];
    let mut server = Server::start(&config.flags(&flags));
    assert_eq!(server.text("(+ 1 2)"), "3");
    let call = json!({ "action": "call", "connection": "two", "tool": "echo", "arguments": { "v": 7 } });
    assert_eq!(text_of(&dispatch(&mut server, call)), "7");
}

/// A server with its own folder for temporary files.
fn server_in(dir: &std::path::Path, flags: &[&str]) -> Server {
    let mut command = ptc_tests::binary::ptc(&[&["serve"], flags].concat());
    command.env("TMPDIR", dir);
    Server::from_command(command)
}

/// The spilled results of a folder.
fn kept(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let inside = |path: &std::path::Path| -> Vec<std::path::PathBuf> {
        std::fs::read_dir(path).map_or(Vec::new(), |all| all.map(|entry| entry.unwrap().path()).collect())
    };
    let bases = inside(dir).into_iter().filter(|path| path.is_dir());
    bases
        .flat_map(|base| inside(&base))
        .filter(|path| path.is_dir())
        .flat_map(|folder| inside(&folder))
        .collect()
}

fn results(dir: &std::path::Path) -> usize {
    kept(dir).iter().filter(|path| path.extension().is_some_and(|kind| kind == "json")).count()
}

#[test]
fn large_results_are_kept_and_looked_at_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let config = Upstreams::probe().write();
    let flags = config.flags(&[&ONLY_PROXY[..], &["--proxy-threshold", "2000"]].concat());
    let mut server = server_in(dir.path(), &flags);
    let rows: Vec<Value> = (0..500).map(|id| json!({ "id": id, "name": format!("foo{id}.txt") })).collect();
    let value = json!({ "files": rows, "metadata": {}, "summary": "s" });
    let call = |more: Value| {
        let mut arguments = json!({ "action": "call", "tool": "echo", "arguments": { "v": value.clone() } });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let result = dispatch(&mut server, call(json!({})));
    assert_eq!(
        (&result["autoSpilled"], result.get("estimatedTokens"), result.get("result")),
        (&json!(true), None, None)
    );
    let file = result["resultFile"].as_str().unwrap().to_owned();
    let text = text_of(&result);
    let bytes = std::fs::metadata(&file).unwrap().len();
    let beginning = format!(
        "Result auto-spilled to temporary JSON file (exceeded 2000 bytes): {file} (auto-deleted at \
        shutdown).\nSize: {bytes} bytes (~{} tokens).\nTop-level keys: [files, metadata, summary]\nPreview: \
        {{\"files\":[{{\"id\":0,\"name\":\"foo0.txt\"}},",
        (bytes + 2) / 4
    );
    assert!(text.starts_with(&beginning), "{text}");
    // No threshold for this call, then another one; the file is written regardless.
    assert!(dispatch(&mut server, call(json!({ "resultSizeThreshold": 0 }))).get("resultFile").is_none());
    assert!(
        dispatch(&mut server, call(json!({ "resultSizeThreshold": 100_000 }))).get("resultFile").is_none()
    );
    let wanted = dispatch(&mut server, call(json!({ "resultSizeThreshold": 0, "resultToFile": true })));
    assert!(wanted["resultFile"].is_string() && wanted.get("autoSpilled").is_none(), "{wanted}");
    assert!(text_of(&wanted).starts_with("Result written to temporary JSON file: "), "{wanted}");
    let read = |more: Value| {
        let mut arguments = json!({ "action": "readresult", "resultFile": file });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let stat = data(&mut server, read(json!({})));
    assert_eq!(stat["byteSize"], bytes);
    let lines = stat["lineCount"].as_u64().unwrap();
    assert!(lines > 500 && stat["estimatedTokens"] == (bytes + 2) / 4, "{stat}");
    let text = |server: &mut Server, more: Value| text_of(&dispatch(server, read(more)));
    let head = text(&mut server, json!({ "op": "head" }));
    assert!(head.lines().count() == 50 && head.starts_with("{\n \"files\":[\n  {\"id\":0,"), "{head}");
    assert_eq!(text(&mut server, json!({ "op": "tail", "lines": 1 })), "}\n");
    let slice = text(&mut server, json!({ "op": "slice", "fromLine": 3, "toLine": 4 }));
    assert_eq!(slice, "  {\"id\":0,\"name\":\"foo0.txt\"},\n  {\"id\":1,\"name\":\"foo1.txt\"},\n");
    let found = dispatch(&mut server, read(json!({ "op": "grep", "pattern": "FOO12\\.txt", "context": 1 })));
    assert_eq!(found["matchCount"], 1);
    assert!(text_of(&found).contains("\n15:  {\"id\":12,"), "{found}");
    let whole = text(&mut server, json!({ "op": "read" }));
    assert_eq!(serde_json::from_str::<Value>(&whole).unwrap(), value);
    let cut = dispatch(&mut server, read(json!({ "op": "read", "maxBytes": 10 })));
    let note = format!(
        "[cut: 10 bytes are shown, of a result of {bytes} bytes; a larger maxBytes (0: no limit) or a slice shows more]"
    );
    assert_eq!((text_of(&cut), &cut["truncated"]), (format!("{{\n \"files\"\n{note}"), &json!(true)));
    // A spilled result becomes the arguments of the next call.
    let arguments = json!({ "v": { "from": "a file" } });
    let first =
        json!({ "action": "call", "tool": "echo", "resultToFile": true, "arguments": { "v": arguments } });
    let first = dispatch(&mut server, first)["resultFile"].as_str().unwrap().to_owned();
    let next = dispatch(&mut server, json!({ "action": "call", "tool": "echo", "argumentsFile": first }));
    assert_eq!(
        (&next["arguments"]["_fromFile"], text_of(&next)),
        (&json!(first), "{\"from\":\"a file\"}".to_owned())
    );
    assert!(results(dir.path()) >= 3);
    assert_eq!(server.end(), Some(0));
    assert_eq!(kept(dir.path()), [] as [std::path::PathBuf; 0]);
}

#[test]
fn a_stored_result_has_its_data_and_its_content_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let config = Upstreams::probe().write();
    let flags = config.flags(&[&ONLY_PROXY[..], &["--proxy-threshold", "200"]].concat());
    let mut server = server_in(dir.path(), &flags);
    let rows = |count: usize| -> Value { (0..count).map(|id| json!({ "id": id })).collect() };
    let blocks = json!([{ "type": "text", "text": "Found the rows" }]);
    for (count, is_asked_for) in [(3, true), (100, false)] {
        let given = json!({ "content": blocks, "structuredContent": { "rows": rows(count) } });
        let call = json!({ "action": "call", "tool": "echo", "resultToFile": is_asked_for, "arguments": { "result": given } });
        let result = dispatch(&mut server, call);
        let mut stored = |member: &str| -> Value {
            data(&mut server, json!({ "action": "readresult", "resultFile": result[member], "op": "read" }))
        };
        assert_eq!(stored("resultFile"), json!({ "rows": rows(count) }), "{result}");
        assert_eq!(stored("contentFile"), blocks, "{result}");
        let text = text_of(&result);
        assert!(text.contains("Top-level keys: [rows]"), "{text}");
        assert!(text.contains(result["contentFile"].as_str().unwrap()), "{text}");
    }
}

#[test]
fn files_are_named_in_given_folders_only() {
    let (dir, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let config = Upstreams::probe().write();
    let path = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("args.json"), r#"{"v": [1, 2]}"#).unwrap();
    std::fs::write(path("list.json"), "[1]").unwrap();
    std::fs::write(dir.path().join("outside.json"), r#"{"v": "outside"}"#).unwrap();
    std::os::unix::fs::symlink(dir.path().join("outside.json"), path("link.json")).unwrap();
    let roots = ["--files-root", root.path().to_str().unwrap()];
    let mut server = server_in(dir.path(), &config.flags(&[&ONLY_PROXY[..], &roots[..]].concat()));
    let call = |file: &str| json!({ "action": "call", "tool": "echo", "argumentsFile": file });
    for file in [&path("args.json"), "args.json"] {
        assert_eq!(text_of(&dispatch(&mut server, call(file))), "[1,2]");
    }
    let outside = dir.path().join("outside.json").to_str().unwrap().to_owned();
    for file in [
        &path("link.json"),
        "link.json",
        &outside,
        "/etc/passwd",
        "../x",
        &path("list.json"),
        &path("none.json"),
    ] {
        let why = wrong(&mut server, call(file));
        assert!(!why.contains("outside\"") && !why.contains("root:"), "{why}");
    }
    for file in [&path("args.json"), "/etc/passwd", "../r1.json", ".lock"] {
        let why = wrong(&mut server, json!({ "action": "readresult", "resultFile": file }));
        assert!(why.starts_with("there is no kept result"), "{why}");
    }
}

#[test]
fn what_is_too_large_to_be_carried_goes_to_a_file_as_it_comes() {
    let dir = tempfile::tempdir().unwrap();
    let config = Upstreams::probe().write();
    let flags = [&ONLY_PROXY[..], &["--max-spill-bytes", "16M"]].concat();
    let mut server = server_in(dir.path(), &config.flags(&flags));
    let flood = |bytes: u64| json!({ "action": "call", "tool": "flood", "arguments": { "bytes": bytes } });
    let result = dispatch(&mut server, flood(6 << 20));
    assert_eq!((&result["isError"], &result["autoSpilled"]), (&json!(false), &json!(true)), "{result}");
    let stat = data(&mut server, json!({ "action": "readresult", "resultFile": result["resultFile"] }));
    assert_eq!((&stat["byteSize"], &stat["lineCount"]), (&json!(6 << 20), &json!(1)));
    let why = wrong(&mut server, flood(20 << 20));
    assert!(why.contains("response_too_large"), "{why}");
    // The connection still works.
    assert!(text_of(&dispatch(&mut server, flood(10))) == "xxxxxxxxxx");
}

#[test]
fn kept_results_are_their_owners_and_end_with_their_session() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens.toml");
    // The hashes of 32 times the letter a, and of b.
    let hashes = [
        "3ba3f5f43b92602683c19aee62a20342b084dd5971ddd33808d81a328879a547",
        "bdb339768bc5e4fecbe55a442056919b2b325907d49bcbf3bf8de13781996a83",
    ];
    let text = format!("[a]\nsha256 = \"{}\"\n[b]\nsha256 = \"{}\"\n", hashes[0], hashes[1]);
    std::fs::write(&tokens, text).unwrap();
    let config = Upstreams::probe().write();
    let flags =
        ["--http", "127.0.0.1:0", "--tools", "proxy-dispatch", "--http-tokens", tokens.to_str().unwrap()];
    let mut command = ptc_tests::binary::ptc(&[&["serve"][..], &config.flags(&flags)].concat());
    command.env("TMPDIR", dir.path());
    let server = WebServer::from_command(command);
    let bearer = |letter: &str| format!("Bearer {}", letter.repeat(32));
    let (a, b) = (bearer("a"), bearer("b"));
    let begin = |token: &str| SessionClient::begin(&server, "2025-11-25", &[("Authorization", token)]);
    let call = |client: &mut SessionClient, arguments: Value| {
        let asked = json!({ "name": "proxy-dispatch", "arguments": arguments });
        client.ask(&server, "tools/call", asked).json()["result"].clone()
    };
    let (mut first, mut again, mut other) = (begin(&a), begin(&a), begin(&b));
    let keep = json!({ "action": "call", "tool": "echo", "arguments": { "v": { "v": "mine" } }, "resultToFile": true });
    let kept_file = call(&mut first, keep.clone())["resultFile"].clone();
    let look = json!({ "action": "readresult", "resultFile": kept_file, "op": "read" });
    let chain = json!({ "action": "call", "tool": "echo", "argumentsFile": kept_file });
    for client in [&mut first, &mut again] {
        assert!(text_of(&call(client, look.clone())).contains("mine"));
        assert!(text_of(&call(client, chain.clone())).contains("mine"));
    }
    for arguments in [&look, &chain] {
        let answer = call(&mut other, arguments.clone());
        assert!(answer["isError"] == true && !answer.to_string().contains("mine"), "{answer}");
    }
    let others = call(&mut other, keep)["resultFile"].clone();
    assert_eq!(results(dir.path()), 2);
    assert_eq!(server.ask("DELETE", &first.headers(), "").status, 204);
    ptc_tests::processes::eventually("it ended with its session", || results(dir.path()) == 1);
    assert!(text_of(&call(&mut again, look)).starts_with("there is no kept result"));
    assert!(std::path::Path::new(others.as_str().unwrap()).exists());
}

#[test]
fn a_result_that_nobody_looks_at_goes() {
    let dir = tempfile::tempdir().unwrap();
    let config = Upstreams::probe().write();
    let flags = config.flags(&[&ONLY_PROXY[..], &["--max-spill-age", "1ms"]].concat());
    let mut server = server_in(dir.path(), &flags);
    let keep = json!({ "action": "call", "tool": "echo", "arguments": { "v": 1 }, "resultToFile": true });
    let file = dispatch(&mut server, keep)["resultFile"].clone();
    let look = json!({ "action": "readresult", "resultFile": file });
    ptc_tests::processes::eventually("it is gone", || {
        dispatch(&mut server, look.clone())["isError"] == true && results(dir.path()) == 0
    });
}

#[test]
fn lists_and_objects_are_toon_where_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let config = Upstreams::probe().write();
    let flags = config.flags(&[&ONLY_PROXY[..], &["--proxy-threshold", "200", "--proxy-toon"]].concat());
    let mut server = server_in(dir.path(), &flags);
    let rows =
        |count: u64| (0..count).map(|id| json!({ "id": id, "name": format!("n{id}") })).collect::<Value>();
    let call = |value: Value| json!({ "action": "call", "tool": "echo", "arguments": { "v": value } });
    let small = dispatch(&mut server, call(json!({ "rows": rows(2) })));
    assert_eq!(text_of(&small), "rows[2]{id,name}:\n  0,n0\n  1,n1");
    assert_eq!(small["estimatedTokens"], 8);
    assert_eq!(text_of(&dispatch(&mut server, call(json!("text")))), "\"text\"");
    // As JSON it has more bytes than the threshold, as TOON fewer.
    assert!(json!({ "rows": rows(10) }).to_string().len() > 200);
    assert!(dispatch(&mut server, call(json!({ "rows": rows(10) }))).get("resultFile").is_none());
    let large = dispatch(&mut server, call(json!({ "v": rows(100) })));
    let look = json!({ "action": "readresult", "resultFile": large["resultFile"], "op": "slice", "fromLine": 1, "toLine": 2 });
    assert_eq!(text_of(&dispatch(&mut server, look)), "v[100]{id,name}:\n  0,n0\n");
    assert!(text_of(&large).contains("Preview: v[100]{id,name}:"), "{large}");
    let chain = json!({ "action": "call", "tool": "echo", "argumentsFile": large["resultFile"], "resultSizeThreshold": 0 });
    assert_eq!(serde_json::from_str::<Value>(&text_of(&dispatch(&mut server, chain))).unwrap(), rows(100));
}

/// A name, and the arguments of the nth call.
type Keeper = (&'static str, Box<dyn Fn(u64) -> Value>);

/// Calls that spill results of so many bytes: of the proxy, of the file utilities, of a program.
fn keepers(root: &str) -> [Keeper; 3] {
    let file = format!("{root}/large.txt");
    let proxied = |tool: &str, arguments: Value| {
        json!({ "name": "proxy-dispatch", "arguments":
        { "action": "call", "tool": tool, "resultToFile": true, "arguments": arguments } })
    };
    [
        ("proxy-dispatch", Box::new(move |bytes| proxied("flood", json!({ "bytes": bytes })))),
        (
            "utils",
            Box::new(move |bytes| {
                std::fs::write(&file, "a line of text\n".repeat(bytes as usize / 15)).unwrap();
                proxied("filesystemQuery", json!({ "path": file }))
            }),
        ),
        (
            "lisp_eval",
            Box::new(|bytes| {
                let call =
                    "(tool/call {:server \"probe\" :tool \"flood\" :args {:bytes BYTES} :on-large :spill})";
                // The program holds its result while it runs.
                let program = format!("(let [r {call}] (loop [n 0] (spill/stat r) (recur (inc n))))");
                json!({ "name": "lisp_eval", "arguments": { "program": program.replace("BYTES", &bytes.to_string()) } })
            }),
        ),
    ]
}

#[test]
fn a_killed_server_leaves_nothing_behind_for_long() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().to_str().unwrap();
    for (name, call) in keepers(root) {
        let dir = tempfile::tempdir().unwrap();
        let config = Upstreams::probe().write();
        let limits = ["--timeout", "600s", "--fuel", "1000000000000", "--max-spill-bytes", "200M"];
        let flags =
            [&["--tools", "proxy-dispatch,lisp_eval", "--utils", "--files-root", root], &limits[..]].concat();
        let flags = config.flags(&flags);
        let mut server = server_in(dir.path(), &flags);
        // A complete spill, and one in progress.
        server.begin("tools/call", call(3 << 20));
        ptc_tests::processes::eventually("one is kept", || results(dir.path()) == 1);
        let before = kept(dir.path()).len();
        server.begin("tools/call", call(60 << 20));
        // The incoming message has an unlinked file; the result made from it has a name.
        ptc_tests::processes::eventually("it is being written", || kept(dir.path()).len() > before);
        let id = server.id();
        ptc_tests::processes::signal(id, "KILL");
        server.ended();
        assert!(results(dir.path()) >= 1, "nobody could remove it: {name}");
        let mut again = server_in(dir.path(), &flags);
        again.request("tools/list", json!({}));
        assert_eq!(results(dir.path()), 0, "{name}");
        assert_eq!(again.end(), Some(0), "{name}");
        assert_eq!(kept(dir.path()).len(), 0, "{name}");
    }
}

/// A call is a run of its own. What it is given of retained results carries what these hold.
#[test]
fn a_retained_result_that_is_passed_on_carries_its_labels() {
    let config = config();
    let policy = PolicyFile::new(
        "default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }
[labels]
untrusted = [\"one/stats\"]
[[flow]]
do = \"deny\"
from = \"untrusted\"
to = [\"two/echo\"]
",
    );
    let flags = [&ONLY_PROXY[..], &["--policy", policy.path()]].concat();
    let mut server = Server::start(&config.flags(&flags));
    for (tool, is_denied) in [("echo", false), ("stats", true)] {
        let arguments = json!({ "q": "x" });
        let arguments = if tool == "stats" { json!({}) } else { arguments };
        let call = json!({
            "action": "call", "connection": "one", "tool": tool, "arguments": arguments, "resultToFile": true,
        });
        let result = dispatch(&mut server, call);
        let file = result["resultFile"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned();
        for by in
            [json!({ "argumentsFile": file }), json!({ "arguments": { "look": file }, "resultToFile": true })]
        {
            let mut call = json!({ "action": "call", "connection": "two", "tool": "echo" });
            call.as_object_mut().unwrap().extend(by.as_object().unwrap().clone());
            let said = text_of(&dispatch(&mut server, call));
            assert_eq!(said.contains("denied"), is_denied, "{tool} {by}: {said}");
        }
    }
}
