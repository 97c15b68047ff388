//! The store of prelude versions, in memory and in a file.

use ptc_engine::prelude_store::{PreludeRef, PreludeStore};
use ptc_tests::binary::{build_dir, run_ptc};
use ptc_tests::serve::{Server, text_of};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

fn text(id: &str, n: usize) -> String {
    format!("(ns {id} \"About {id}.\") (defn inspect \"Says which it is.\" [] {n})")
}

fn reference(text: &str) -> PreludeRef {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn reason(text: &str) -> Map<String, Value> {
    [("reason".to_owned(), text.into())].into_iter().collect()
}

/// A store of each kind, and the folder of the second.
fn stores() -> (Vec<PreludeStore>, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = PreludeStore::open(&folder.path().join("store.redb")).expect("a store");
    (vec![PreludeStore::in_memory(), file], folder)
}

#[test]
fn writes_make_versions_and_the_newest_is_current() {
    let (stores, _folder) = stores();
    for store in stores {
        assert!(store.list().expect("empty").is_empty());
        let first = store.write("paged", &text("paged", 1), Map::new(), None).expect("written");
        let second = store.write("paged", &text("paged", 2), reason("better"), None).expect("written");
        assert_eq!((first.version, second.version), (1, 2));
        assert_eq!(store.read(&reference("paged")).expect("there").version.version, 2);
        assert_eq!(store.read(&reference("paged@1")).expect("there").source, text("paged", 1));
        // Back to the first version, until another is written.
        let selection =
            store.set_default(&reference("paged@1"), reason("verifier preferred v1")).expect("there");
        assert_eq!(selection.version, 1);
        let listed = store.list().expect("listed");
        assert_eq!((listed[0].current_version, listed[0].latest_version), (1, 2));
        assert_eq!(listed[0].public_view()["selected"]["metadata"]["reason"], "verifier preferred v1");
        store.write("paged", &text("paged", 3), Map::new(), None).expect("written");
        assert_eq!(store.read(&reference("paged")).expect("there").version.version, 3);
        let kept: Vec<u64> =
            store.history("paged").expect("kept").iter().map(|version| version.version).collect();
        assert_eq!(kept, [1, 2, 3]);
    }
}

#[test]
fn a_version_that_was_chosen_outlives_the_others() {
    let (stores, _folder) = stores();
    for store in stores {
        for n in 1..=5 {
            store.write("paged", &text("paged", n), Map::new(), None).expect("written");
        }
        store.set_default(&reference("paged@2"), Map::new()).expect("there");
        for n in 6..=40 {
            store.write("paged", &text("paged", n), Map::new(), None).expect("written");
        }
        let kept: Vec<u64> =
            store.history("paged").expect("kept").iter().map(|version| version.version).collect();
        assert_eq!(kept[0], 2);
        assert_eq!(kept[1..], (21..=40).collect::<Vec<u64>>());
        assert_eq!(store.read(&reference("paged@2")).expect("kept").source, text("paged", 2));
        assert_eq!(store.read(&reference("paged@3")).expect_err("gone").reason, "not_found");
    }
}

#[test]
fn what_cannot_be_kept_is_refused_with_a_reason() {
    let (stores, _folder) = stores();
    for store in stores {
        let first = store.write("paged", &text("paged", 1), Map::new(), None).expect("written");
        let write = |id: &str, text: &str| store.write(id, text, Map::new(), None).expect_err(id).reason;
        assert_eq!(write("paged", "(ns paged) (defn f [] (nope))"), "prelude_compile_error");
        assert_eq!(write("paged", &text("other", 1)), "prelude_namespace_violation");
        assert_eq!(write("paged", "(ns paged) (ns more)"), "prelude_namespace_violation");
        assert_eq!(write("json", "(ns json)"), "prelude_namespace_violation");
        assert_eq!(write("a/b", "(ns a)"), "invalid_ref");
        assert_eq!(
            write("paged", &format!("(ns paged) (def x \"{}\")", "x".repeat(1_000_000))),
            "source_too_large"
        );
        let stale = store.write("paged", &text("paged", 2), Map::new(), Some("00")).expect_err("stale");
        assert_eq!(stale.reason, "stale_base");
        store
            .write("paged", &text("paged", 2), Map::new(), Some(&first.checksum))
            .expect("made from the current");
        let read = |text: &str| store.read(&reference(text)).expect_err(text).reason;
        assert_eq!([read("nope"), read("paged@9")], ["not_found"; 2]);
        let pinned = PreludeRef { checksum: Some("00".to_owned()), ..reference("paged@1") };
        assert_eq!(store.read(&pinned).expect_err("another").reason, "checksum_mismatch");
        assert_eq!(store.set_default(&pinned, Map::new()).expect_err("another").reason, "checksum_mismatch");
        let bare = store.set_default(&reference("paged"), Map::new()).expect_err("no version");
        assert_eq!(bare.reason, "invalid_argument");
        for wrong in ["", "@1", "paged@", "paged@0", "paged@+1", "1paged", "a b"] {
            assert_eq!(wrong.parse::<PreludeRef>().expect_err(wrong).reason, "invalid_ref");
        }
        assert_eq!(store.history("paged").expect("kept").len(), 2);
    }
}

#[test]
fn models_see_what_is_documented() {
    let store = PreludeStore::in_memory();
    let metadata =
        json!({ "reason": "x".repeat(5_000), "created_by": "ada", "secret": 1, "parent_version": [1] });
    let long = format!("(ns paged) (def x 1) ; {}", "y".repeat(100_000));
    store.write("paged", &long, metadata.as_object().expect("a map").clone(), None).expect("written");
    let view = store.read(&reference("paged")).expect("there").public_view();
    assert_eq!(view["source"].as_str().map(str::len), Some(64 << 10));
    assert_eq!((&view["source_truncated"], &view["source_bytes"]), (&json!(true), &json!(long.len())));
    assert_eq!(view["metadata"]["reason"].as_str().map(str::len), Some(1_024));
    assert_eq!(view["metadata"]["created_by"], "ada");
    assert!(view["metadata"].get("secret").is_none() && view["metadata"].get("parent_version").is_none());
    assert_eq!(view["exports"], json!(["x"]));
}

#[test]
fn a_hundred_writers_at_once_lose_nothing() {
    let (stores, folder) = stores();
    for store in &stores {
        std::thread::scope(|scope| {
            for n in 0..100 {
                scope.spawn(move || {
                    let id = format!("id{}", n % 10);
                    store.write(&id, &text(&id, n), Map::new(), None).expect("written");
                });
            }
        });
        for id in 0..10 {
            let history = store.history(&format!("id{id}")).expect("kept");
            let numbers: Vec<u64> = history.iter().map(|version| version.version).collect();
            assert_eq!(numbers, (1..=10).collect::<Vec<u64>>());
        }
    }
    // Acknowledged versions are in the file.
    drop(stores);
    let again = PreludeStore::open(&folder.path().join("store.redb")).expect("a store");
    assert_eq!(again.list().expect("listed").len(), 10);
}

/// Rounds of the test below; `PTC_STORE_KILLS=200` runs all.
const KILLS: usize = 25;

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.redb");
    let rounds = std::env::var("PTC_STORE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let mut acknowledged: BTreeMap<String, BTreeMap<u64, String>> = BTreeMap::new();
    for round in 0..rounds {
        let mut writer = Command::new(build_dir().join("store-writer"))
            .arg(&path)
            .arg(round.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a writer");
        let mut lines = BufReader::new(writer.stdout.take().expect("piped")).lines();
        // Killed while it writes, after a number of versions that differs from round to round.
        for _ in 0..1 + round * 7 % 11 {
            note(&mut acknowledged, &lines.next().expect("a line").expect("text"));
        }
        writer.kill().expect("killed");
        writer.wait().expect("ended");
        for line in lines.map_while(Result::ok) {
            // The last line may be truncated.
            if line.split(' ').nth(2).is_some_and(|checksum| checksum.len() == 64) {
                note(&mut acknowledged, &line);
            }
        }
        let store = PreludeStore::open(&path).expect("the file is whole");
        for (id, versions) in &acknowledged {
            let history = store.history(id).expect("kept");
            let (&newest, checksum) = versions.last_key_value().expect("some");
            // One more version may have been written without acknowledgement.
            assert!(history.last().expect("some").version >= newest, "{id}: {newest} is lost");
            let found = store.read(&reference(&format!("{id}@{newest}"))).expect("there");
            assert_eq!(found.version.checksum, *checksum);
            for version in &history {
                let read = store.read(&reference(&format!("{id}@{}", version.version))).expect("whole");
                assert_eq!(read.source.len() as u64, version.source_bytes);
                let known = versions.get(&version.version);
                assert!(
                    known.is_none_or(|checksum| *checksum == version.checksum),
                    "{id}@{}",
                    version.version
                );
            }
        }
    }
}

fn note(acknowledged: &mut BTreeMap<String, BTreeMap<u64, String>>, line: &str) {
    let parts: Vec<&str> = line.split(' ').collect();
    let [id, version, checksum] = parts.as_slice() else { panic!("{line}") };
    let version = version.parse().expect("a number");
    acknowledged.entry((*id).to_owned()).or_default().insert(version, (*checksum).to_owned());
}

#[test]
fn the_command_line_edits_a_store_and_sessions_freeze_versions_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let (store, source) = (path("store.redb"), path("paged.clj"));
    let run = |arguments: &[&str]| {
        let finished = run_ptc(&[&["prelude"], arguments, &["--prelude-store", &store]].concat(), "");
        assert_eq!(finished.code, Some(0), "{finished:?}");
        finished.stdout
    };
    for n in 1..=2 {
        std::fs::write(&source, text("paged", n)).expect("written");
        assert!(run(&["write", "paged", &source, "--reason", "a try"]).starts_with(&format!("paged@{n} ")));
    }
    assert_eq!(run(&["set-default", "paged@1"]), "paged@1 is the current version\n");
    assert_eq!(run(&["list"]), "paged@1 (latest 2): inspect\n");
    assert_eq!(run(&["history", "paged"]).lines().count(), 2);
    assert_eq!(run(&["show", "paged@2"]), text("paged", 2));

    let mut server =
        Server::start(&["--sessions", "--prelude-store", &store, "--sessions-allow-prelude-write"]);
    let mut call = |name: &str, arguments: Value| {
        let answer = server.request("tools/call", json!({ "name": name, "arguments": arguments }));
        let text = text_of(&answer["result"]);
        serde_json::from_str::<Value>(&text).unwrap_or(Value::String(text))
    };
    let started = call("lisp_session_start", json!({ "preludes": ["paged"] }));
    assert_eq!(started["prelude_refs"][0]["version"], 1, "{started}");
    assert_eq!(
        started["preludes"],
        json!([{ "namespace": "paged", "doc": "About paged.", "discover": "(ns-publics 'paged)",
            "source": "(source paged/sym)" }])
    );
    let old = started["session_id"].clone();
    let writing = call("lisp_session_start", json!({ "mode": "write_capable" }))["session_id"].clone();
    let mut eval = |session: &Value, program: &str| {
        let text = call("lisp_session_eval", json!({ "session_id": session, "program": program }));
        text.as_str().map_or_else(|| text.to_string(), str::to_owned)
    };
    // A new version changes nothing for a session in progress.
    let third = text("paged", 3).replace('"', "\\\"");
    let program = format!(
        "(:version (prelude/write {{:id \"paged\" :source \"{third}\" :metadata {{:reason \"more\"}}}}))"
    );
    assert!(eval(&writing, &program).starts_with('3'), "{}", eval(&writing, &program));
    assert!(eval(&old, "(paged/inspect)").starts_with('1'));
    assert!(eval(&writing, "(:current_version (first (prelude/list)))").starts_with('3'));
    assert!(eval(&writing, "(prelude/source \"paged@2\")").contains("About paged."));
    assert!(eval(&writing, "(:reason (prelude/read \"nope\"))").contains("not_found"));
    assert!(eval(&writing, "(:version (prelude/set-default {:id \"paged\" :version 2}))").starts_with('2'));
    assert!(eval(&writing, "(count (prelude/history \"paged\"))").starts_with('3'));
    assert!(
        eval(&writing, "(tool/prelude_store_list {})")
            .contains("Private tool 'prelude_store_list' cannot be called directly")
    );
    // A session that cannot write has neither the namespace nor its tools.
    assert!(eval(&old, "(prelude/list)").contains("unknown namespace prelude/"));
    assert!(eval(&old, "(tool/prelude_store_list {})").contains("Unknown tool"));
    // What a session may do, the stored preludes that it takes may do as well, and no more.
    let through = "(ns through) (defn go [] (tool/prelude_store_list {}))";
    let program = format!(
        "(:version (prelude/write {{:id \"through\" :source \"{through}\" :metadata {{:reason \"x\"}}}}))"
    );
    assert!(eval(&writing, &program).starts_with('1'), "{}", eval(&writing, &program));
    let begin = |mode: &str| json!({ "preludes": ["through"], "mode": mode });
    let reading = call("lisp_session_start", begin("read_only"))["session_id"].clone();
    let refused = call("lisp_session_eval", json!({ "session_id": reading, "program": "(through/go)" }));
    assert!(refused.to_string().contains("prelude_attach_failed"), "{refused}");
    let capable = call("lisp_session_start", begin("write_capable"))["session_id"].clone();
    let went =
        call("lisp_session_eval", json!({ "session_id": capable, "program": "(:status (through/go))" }));
    assert!(!went.to_string().contains("rolled back"), "{went}");
    let refs = call("lisp_session_list_preludes", json!({ "session_id": old }));
    assert_eq!(refs["prelude_refs"][0]["version"], 1);
    assert_eq!(call("lisp_session_list_preludes", json!({}))["preludes"][0]["latest_version"], 3);
    for (arguments, message) in [
        (json!({ "preludes": "paged" }), "preludes must be an array when supplied"),
        (json!({ "preludes": ["1x"] }), "preludes[0] must be a valid prelude id or id@version ref"),
        (json!({ "preludes": [{ "id": "paged", "x": 1 }] }), "preludes[0] contains an unexpected field"),
        (
            json!({ "preludes": [{ "id": "paged", "version": 0 }] }),
            "preludes[0].version must be a positive integer",
        ),
        (json!({ "preludes": ["nope"] }), "not_found: no prelude nope in the store"),
    ] {
        let answer = call("lisp_session_start", arguments);
        assert_eq!((&answer["reason"], &answer["message"]), (&json!("session_args_error"), &json!(message)));
    }
    server.end();
    let mut without = Server::start(&["--sessions"]);
    let arguments = json!({ "name": "lisp_session_start", "arguments": { "preludes": ["paged"] } });
    let refused = text_of(&without.request("tools/call", arguments)["result"]);
    assert!(refused.contains(":prelude_store is required when :preludes is supplied"), "{refused}");
    without.end();
}

#[test]
fn a_file_that_was_changed_from_outside_is_refused_or_right() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.redb");
    let store = PreludeStore::open(&path).expect("a store");
    let written: Vec<String> = (1..=3).map(|n| text("paged", n)).collect();
    for text in &written {
        store.write("paged", text, Map::new(), None).expect("written");
    }
    drop(store);
    let whole = std::fs::read(&path).expect("the file");
    let used: Vec<usize> = (0..whole.len()).filter(|&at| whole[at] != 0).collect();
    // Whether the store opens with the right content.
    let look = |changed: &[u8], what: &str| {
        std::fs::write(&path, changed).expect("written");
        let read = PreludeStore::open(&path).and_then(|store| {
            store.list()?;
            store.history("paged")?;
            let read = store.read(&reference("paged@2"))?.source;
            store.write("paged", &text("paged", 4), Map::new(), None)?;
            Ok(read)
        });
        match read {
            Ok(read) if written.contains(&read) => true,
            Ok(read) => panic!("{what}: {read}"),
            Err(error) if error.reason == "prelude_store_error" || error.reason == "not_found" => false,
            Err(error) => panic!("{what}: {error}"),
        }
    };
    let mut is_right = Vec::new();
    for (turn, &at) in used.iter().step_by(used.len() / 150).enumerate() {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (turn % 8);
        is_right.push(look(&changed, &format!("bit {} of byte {at}", turn % 8)));
        // The error is one line, and contains no internals of the library.
        if turn % 8 == 0 && is_right.last() == Some(&false) {
            let told = run_ptc(&["prelude", "list", "--prelude-store", path.to_str().expect("a path")], "");
            assert!(told.code == Some(0) || told.stderr.lines().count() == 1, "{told:?}");
            assert!(!told.stderr.contains("panicked"), "{told:?}");
        }
    }
    for length in (1..whole.len()).step_by(whole.len() / 20) {
        assert!(!look(&whole[..length], &format!("{length} bytes")));
    }
    assert!(!look(&[], "no bytes"));
    assert!(is_right.contains(&true) && is_right.contains(&false), "{is_right:?}");
    assert!(look(&whole, "the whole file"));
}

#[test]
fn a_store_has_its_name_when_it_is_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.redb");
    let path = path.to_str().expect("a path");
    for command in [&["list"][..], &["history", "paged"], &["show", "paged"], &["set-default", "paged@1"]] {
        let told = run_ptc(&[&["prelude"], command, &["--prelude-store", path]].concat(), "");
        assert_eq!(told.code, Some(2), "{told:?}");
        assert!(told.stderr.contains("there is no store"), "{told:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0);
    // A folder that takes no file, a folder in place of the file, and a missing folder.
    for path in ["/proc/store.redb", folder.path().to_str().expect("a path"), "/nowhere/store.redb"] {
        let told = run_ptc(&["prelude", "write", "--prelude-store", path, "paged", "-"], &text("paged", 1));
        assert_eq!((told.code, told.stderr.contains(path)), (Some(2), true), "{told:?}");
        assert!(!told.stderr.contains("panicked"), "{told:?}");
    }
    // All create it at once: one succeeds, and the others find it or learn that it is in use.
    let makers: Vec<_> = (0..8)
        .map(|_| {
            let path = std::path::PathBuf::from(path);
            std::thread::spawn(move || PreludeStore::open(&path).map(drop))
        })
        .collect();
    let mut opened = 0;
    for maker in makers {
        match maker.join().expect("no panic") {
            Ok(()) => opened += 1,
            Err(error) => assert!(error.message.contains("another process"), "{error}"),
        }
    }
    assert!(opened > 0);
    let left: std::collections::BTreeSet<_> = std::fs::read_dir(folder.path())
        .expect("the folder")
        .flatten()
        .map(|file| file.file_name())
        .collect();
    // A lock file next to the store names its holder.
    assert_eq!(left, ["store.redb", "store.redb.lock"].into_iter().map(Into::into).collect());
}

#[test]
fn an_empty_file_is_no_store_and_stays_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.redb");
    std::fs::write(&path, "").expect("made");
    let store = path.to_str().expect("a path");
    let want = format!(
        "{store} is empty, and no store: put a copy of the store in its place, or remove the file to begin anew"
    );
    for command in [&["list"][..], &["show", "paged"], &["write", "paged", "-"]] {
        let told = run_ptc(&[&["prelude"], command, &["--prelude-store", store]].concat(), &text("paged", 1));
        assert!(told.code == Some(2) && told.stderr.contains(&want), "{told:?}");
    }
    let told = run_ptc(&["serve", "--sessions", "--prelude-store", store], "");
    assert!(told.code == Some(2) && told.stderr.contains(&want), "{told:?}");
    assert_eq!(path.metadata().expect("still there").len(), 0);
    std::fs::remove_file(&path).expect("removed");
    PreludeStore::open(&path).expect("a new store");
}

#[cfg(unix)]
#[test]
fn a_store_may_be_somewhere_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, real) = (folder.path().join("store.redb"), folder.path().join("real.redb"));
    std::os::unix::fs::symlink(&real, &path).expect("linked");
    let written =
        |store: &PreludeStore| store.write("paged", &text("paged", 1), Map::new(), None).expect("written");
    assert_eq!(written(&PreludeStore::open(&path).expect("made")).version, 1);
    assert_eq!(written(&PreludeStore::open(&real).expect("there")).version, 2);
    // A store in another folder is used, but none is made there.
    let project = folder.path().join("project");
    std::fs::create_dir(&project).expect("a folder");
    let (link, missing) = (project.join("store.redb"), folder.path().join("missing.redb"));
    std::os::unix::fs::symlink(&missing, &link).expect("linked");
    let error = PreludeStore::open(&link).err().expect("a refusal");
    assert!(error.to_string().contains("leads out of") && !missing.exists(), "{error}");
    std::fs::remove_file(&link).expect("removed");
    std::os::unix::fs::symlink(&real, &link).expect("linked");
    assert_eq!(written(&PreludeStore::open(&link).expect("there")).version, 3);
}
