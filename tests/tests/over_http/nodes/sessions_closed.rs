//! Sessions of programs that are closed, or of which there are more than a node has room for, with several nodes.
#![allow(clippy::unwrap_used, reason = "a broken answer should be loud")]

use super::session_tools::{SessionNodes, call, eval, start, tool, tool_as};
use ptc_tests::processes::eventually;
use ptc_tests::web::{Door, sha256};
use serde_json::{Value, json};
use std::io::Write as _;
use std::thread::scope;
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

fn listed(node: &Door) -> Vec<Value> {
    let listed = tool(node, "lisp_session_list", json!({}));
    listed["structuredContent"]["sessions"].as_array().unwrap_or_else(|| panic!("{listed}")).clone()
}

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn name_of(file: &NamedTempFile) -> &str {
    file.path().to_str().unwrap()
}

/// Closes a session at the second node while a program of it is under way at the first one.
fn close_beneath_a_program(world: &SessionNodes, close: impl FnOnce(&str)) {
    let [one, _] = &world.nodes[..] else { panic!() };
    let id = start(one);
    scope(|scope| {
        let program = scope.spawn(|| eval(one, &id, "(tool/call! 'probe/hold {})"));
        eventually("the program is under way", || {
            call(one, "lisp_session_inspect", &id).contains("\"eval_status\":\"running\"")
        });
        let begun = Instant::now();
        close(&id);
        let ended = program.join().unwrap();
        assert!(ended.contains("closed"), "{ended}");
        // Less than the program itself would take.
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    });
    assert!(eval(one, &id, "1").contains("session_closed"));
}

#[test]
fn a_session_that_is_closed_at_one_node_ends_its_program_at_another() {
    let Some(world) = SessionNodes::start(2, &[]) else { return };
    let close =
        |id: &str| assert!(call(&world.nodes[1], "lisp_session_close", id).contains("\"closed\":true"));
    close_beneath_a_program(&world, close);
    // A node that misses the message finds out.
    close_beneath_a_program(&world, |id| {
        world.ways[0].set_closed(true);
        close(id);
        world.ways[0].set_closed(false);
    });
}

#[test]
fn a_close_that_cannot_be_stored_says_so() {
    let Some(world) = SessionNodes::start(2, &[]) else { return };
    let [one, other] = &world.nodes[..] else { panic!() };
    let id = start(one);
    assert_eq!(eval(other, &id, "(do (def n 7) n)"), "7");
    world.ways[0].set_closed(true);
    let refused = call(one, "lisp_session_close", &id);
    assert!(refused.contains("state_unavailable") && refused.contains("close it again"), "{refused}");
    world.ways[0].set_closed(false);
    assert_eq!(eval(other, &id, "n"), "7");
    eventually("it is closed", || call(one, "lisp_session_close", &id).contains("\"closed\":true"));
    for node in [one, other] {
        assert!(eval(node, &id, "n").contains("\"reason\":\"session_"));
    }
}

#[test]
fn sessions_that_another_node_has_closed_leave_lists_and_quotas() {
    let Some(world) = SessionNodes::start(2, &["--max-sessions-per-owner", "2"]) else { return };
    let [one, other] = &world.nodes[..] else { panic!() };
    let ids = [start(one), start(one)];
    assert_eq!((listed(one).len(), listed(other).len()), (2, 2));
    for id in &ids {
        call(other, "lisp_session_close", id);
    }
    assert_eq!((listed(one).len(), listed(other).len()), (0, 0));
    let ids = [start(one), start(other)];
    for (node, id) in [(one, &ids[1]), (other, &ids[0])] {
        assert_eq!(eval(node, id, "1"), "1");
    }
}

/// Sessions that start in the same moment count each other.
#[test]
fn an_owner_has_so_many_sessions_at_all_nodes_together() {
    let Some(world) = SessionNodes::start(3, &["--max-sessions-per-owner", "3"]) else { return };
    for _ in 0..3 {
        let started: Vec<Value> = scope(|scope| {
            let begin = |node| scope.spawn(move || tool(node, "lisp_session_start", json!({})));
            let begun: Vec<_> =
                world.nodes.iter().chain(&world.nodes).chain(&world.nodes).map(begin).collect();
            begun.into_iter().map(|start| start.join().unwrap()["structuredContent"].clone()).collect()
        });
        let ids: Vec<&str> = started.iter().filter_map(|started| started["session_id"].as_str()).collect();
        assert_eq!((ids.len(), listed(&world.nodes[0]).len()), (3, 3), "{started:?}");
        // Those that are closed count no longer.
        ids.iter().for_each(|id| drop(call(&world.nodes[1], "lisp_session_close", id)));
    }
}

#[test]
fn more_sessions_than_a_node_has_room_for_go_on_at_every_node() {
    let Some(world) = SessionNodes::start(2, &["--max-sessions", "2"]) else { return };
    let ids: Vec<String> = (0..5).map(|number| start(&world.nodes[number % 2])).collect();
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(
            eval(&world.nodes[number % 2], id, &format!("(do (def n {number}) n)")),
            number.to_string()
        );
    }
    for (number, id) in ids.iter().enumerate() {
        for node in &world.nodes {
            assert_eq!(eval(node, id, "n"), number.to_string());
        }
    }
    assert_eq!((listed(&world.nodes[0]).len(), listed(&world.nodes[1]).len()), (5, 5));
    // Those with a program under way stay in memory.
    let one = &world.nodes[0];
    let hold = "(tool/call! 'probe/hold {})";
    scope(|scope| {
        let held: Vec<_> = ids[..2].iter().map(|id| scope.spawn(move || eval(one, id, hold))).collect();
        eventually("both programs are under way", || {
            ids[..2].iter().all(|id| call(one, "lisp_session_inspect", id).contains("\"running\""))
        });
        assert!(eval(one, &ids[2], "n").contains("session_limit_exceeded"));
        assert_eq!(eval(&world.nodes[1], &ids[2], "n"), "2");
        for id in &ids[..2] {
            call(&world.nodes[1], "lisp_session_close", id);
        }
        held.into_iter().for_each(|program| drop(program.join()));
    });
    assert_eq!(eval(one, &ids[2], "n"), "2");
}

#[test]
fn limits_of_a_session_count_its_calls_at_all_nodes() {
    let policy = file(
        "default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }
[[limit]]
tools = [\"probe/*\"]
per = \"session\"
limit = 'calls <= 3 per day'
",
    );
    let Some(world) = SessionNodes::start(3, &["--policy", name_of(&policy)]) else { return };
    for _ in 0..2 {
        let id = start(&world.nodes[0]);
        let call = "(:reason (tool/call 'probe/echo {:v 7}))";
        let answers: Vec<String> = (0..8).map(|turn| eval(&world.nodes[turn % 3], &id, call)).collect();
        assert_eq!(answers.iter().filter(|answer| *answer == "nil").count(), 3, "{answers:?}");
        assert_eq!(answers.iter().filter(|answer| *answer == ":denied").count(), 5, "{answers:?}");
    }
}

/// What a token got from a server that it may not use any more does not come back.
#[test]
fn a_token_with_other_servers_does_not_have_its_earlier_sessions() {
    let token = "t".repeat(40);
    let tokens = |servers: &str| file(&format!("[one]\nsha256 = \"{}\"\n{servers}\n", sha256(&token)));
    let (before, after) = (tokens("servers = [\"probe\", \"other\"]"), tokens("servers = [\"probe\"]"));
    let Some(world) = SessionNodes::start(1, &["--http-tokens", name_of(&before)]) else { return };
    let say = |node: &Door, name: &str, arguments: Value| {
        tool_as(node, &token, name, arguments)["structuredContent"].clone()
    };
    let id = say(&world.nodes[0], "lisp_session_start", json!({}))["session_id"].clone();
    let program = json!({ "session_id": id, "program": "(def n (tool/call! 'other/echo {:v 7}))" });
    say(&world.nodes[0], "lisp_session_eval", program);
    let same = world.one_more(&["--http-tokens", name_of(&before)]);
    assert_eq!(say(&same.door(), "lisp_session_inspect", json!({ "session_id": id }))["status"], "ok");
    let server = world.one_more(&["--http-tokens", name_of(&after)]);
    let other = server.door();
    for name in ["lisp_session_inspect", "lisp_session_close"] {
        assert_eq!(say(&other, name, json!({ "session_id": id }))["reason"], "session_not_found");
    }
    assert_eq!(say(&other, "lisp_session_list", json!({}))["count"], 0);
}
