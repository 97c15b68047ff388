//! A configuration edit takes effect without a restart: new servers start, removed ones end after their calls in
//! flight, changed ones are replaced, and the others go on undisturbed.

use ptc_tests::processes::{eventually, is_alive};
use ptc_tests::serve::Server;
use ptc_tests::upstreams::probe_server;
use serde_json::{Value, json};
use std::path::Path;

fn write(path: &Path, servers: &[(&str, &str)]) {
    let entry = |(name, description): &(&str, &str)| {
        let mut entry = probe_server(&[]);
        entry["description"] = (*description).into();
        ((*name).to_owned(), entry)
    };
    let servers: serde_json::Map<String, Value> = servers.iter().map(entry).collect();
    std::fs::write(path, json!({ "upstreams": servers }).to_string()).expect("the file is written");
}

fn process_of(server: &mut Server, name: &str) -> u32 {
    let program = format!("(:pid (:value (tool/call {{:server \"{name}\" :tool \"stats\"}})))");
    server.text(&program).parse().expect("a process id")
}

/// Waits until these are the servers.
fn are(server: &mut Server, names: &str) {
    eventually(names, || server.text("(map :name (tool/servers))") == names);
}

#[test]
fn servers_come_go_and_change_with_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("upstreams.json");
    write(&path, &[("changed", "before"), ("gone", ""), ("kept", "")]);
    let mut server = Server::start(&[
        "--config-reload",
        "watch",
        "--upstreams-config",
        path.to_str().unwrap(),
        "--timeout",
        "120s",
    ]);
    let [changed, gone, kept] = ["changed", "gone", "kept"].map(|name| process_of(&mut server, name));
    let list = server.request("tools/list", json!({}));
    assert!(list.to_string().contains("- changed: before"), "{list}");
    // A removed server still answers its caller: this call is in flight until it is cancelled.
    let call = server.begin_program(r#"(tool/call {:server "gone" :tool "hold"})"#);
    eventually("the call is in flight", || {
        server.text(r#"(:most_in_flight (:value (tool/call {:server "gone" :tool "stats"})))"#) == "2"
    });

    write(&path, &[("changed", "after"), ("kept", ""), ("new", "")]);
    are(&mut server, r#"["changed" "kept" "new"]"#);
    assert_eq!(process_of(&mut server, "kept"), kept, "it is the one that it was");
    let now = process_of(&mut server, "changed");
    assert!(now != changed && process_of(&mut server, "new") != now);
    eventually("what was replaced has ended", || !is_alive(changed));
    let list = server.request("tools/list", json!({}));
    assert!(list.to_string().contains("- changed: after") && list.to_string().contains("- new"), "{list}");
    let refused = server.text(r#"(tool/call {:server "gone" :tool "stats"})"#);
    assert!(refused.contains("gone") && refused.contains("kept"), "{refused}");

    assert!(is_alive(gone), "a call is in flight");
    server.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": call } }),
    );
    eventually("nothing is in flight any more", || !is_alive(gone));
    assert_eq!(server.end(), Some(0));
    assert!(![now, kept].into_iter().any(is_alive));
}

#[test]
fn a_broken_edit_changes_nothing_and_the_log_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("upstreams.json");
    write(&path, &[("kept", "")]);
    let mut server =
        Server::start(&["--config-reload", "watch", "--upstreams-config", path.to_str().unwrap()]);
    let kept = process_of(&mut server, "kept");
    for (broken, why) in
        [("{ \"upstreams\": {", "upstreams.json"), (r#"{"upstreams": {"kept": {}}}"#, "upstream kept")]
    {
        std::fs::write(&path, broken).unwrap();
        server.has_logged("the one before stays: ");
        server.has_logged(why);
        assert_eq!(process_of(&mut server, "kept"), kept);
    }
    write(&path, &[("kept", ""), ("new", "")]);
    are(&mut server, r#"["kept" "new"]"#);
    // A repaired file has the same effect as before.
    assert!(is_alive(kept) && process_of(&mut server, "kept") == kept);
    assert_eq!(server.end(), Some(0));
}
