//! Section 8 of the guide: the REPL, several sources, the store, sessions.

use super::QUICK_START;
use crate::preludes::{run, value};
use ptc_calls::options::RunOptions;
use ptc_engine::prelude_store::{PreludeRef, PreludeStore, editing};
use ptc_engine::session::SessionLimits;
use ptc_engine::{Prelude, PreludeSource, Runtime};
use ptc_tests::binary::run_ptc;
use serde_json::{Map, Value, json};
use std::sync::Arc;

#[test]
fn the_commands_of_the_repl() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("crm.clj");
    std::fs::write(&file, QUICK_START).expect("written");
    let file = file.to_str().expect("a path");
    for flag in ["--prelude", "-p"] {
        let opened = run_ptc(&["repl", flag, file], "(ns-name 'crm)\n");
        assert_eq!((opened.code, opened.stdout.as_str()), (Some(0), "\"crm\"\n"), "{opened:?}");
    }
    let shown = run_ptc(&["repl", "--prelude", file, "--show-prompt-inventory"], "");
    let inventory = Prelude::compile("crm.clj", QUICK_START).expect("it compiles").inventory().expect("text");
    assert_eq!((shown.code, shown.stdout.trim_end()), (Some(0), inventory.as_str()));
    let evaluated = run_ptc(&["repl", "--prelude", file, "-e", "(ns-publics 'crm)"], "");
    assert!(evaluated.stdout.contains("\"get-user\""), "{evaluated:?}");
    // The user's code is loaded as well; `--help` loads nothing.
    let mine = folder.path().join("mine.ptc");
    std::fs::write(&mine, "(defn publics [] (keys (ns-publics 'crm)))").expect("written");
    let mine = mine.to_str().expect("a path");
    for flag in ["-l", "--load"] {
        let loaded = run_ptc(&["repl", "-p", file, flag, mine, "-e", "(publics)"], "");
        assert_eq!(loaded.stdout, "[\"get-user\"]\n", "{loaded:?}");
    }
    let helped = run_ptc(&["repl", "--prelude", "there/is/none.clj", "--help"], "");
    assert_eq!(helped.code, Some(0), "{helped:?}");
    assert!(helped.stdout.contains("--show-prompt-inventory"));
}

#[tokio::test]
async fn sources_are_composed() {
    let source = |id: &str, text: &str, origin: &str| PreludeSource {
        id: Some(id.to_owned()),
        origin: Some(origin.to_owned()),
        ..PreludeSource::new(id, text)
    };
    let log = source("log", "(ns log) (defn note [x] [:note x])", "memory");
    let paged = source("paged", "(ns paged) (defn inspect [] :paged)", "file:priv/paged.clj");
    let composed = Prelude::compose(vec![log.clone(), paged]).expect("two");
    let ids: Vec<&Value> =
        composed.trace()["components"].as_array().expect("a list").iter().map(|c| &c["id"]).collect();
    assert_eq!(ids, ["log", "paged"]);
    let runtime = Runtime::builder().prelude(Arc::new(composed)).workers(1).start().await.expect("a runtime");
    assert_eq!(value(&runtime, "[(log/note 1) (paged/inspect)]").await, "[[:note 1] :paged]");
    let twice = Prelude::compose(vec![log.clone(), source("more", &log.text, "memory")]).expect_err("twice");
    assert!(twice.failure.message.contains("declared by more than one selected prelude"), "{twice:?}");
}

fn paged(n: u32) -> String {
    format!("(ns paged \"Pages.\") (defn inspect [] {n})")
}

fn reference(text: &str) -> PreludeRef {
    text.parse().expect(text)
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().expect("a map").clone()
}

#[test]
fn the_store_of_the_guide() {
    let store = PreludeStore::in_memory();
    let v1 = store.write("paged", &paged(1), Map::new(), None).expect("written");
    let v2 = store.write("paged", &paged(2), Map::new(), None).expect("written");
    let chosen = PreludeRef { version: Some(v2.version), ..reference("paged") };
    let candidate = store.read(&chosen).expect("there");
    let compiled = candidate.compile().expect("it compiled when it was written");
    assert_eq!(compiled.namespaces().map(|namespace| namespace.name()).collect::<Vec<_>>(), ["paged"]);
    let first = PreludeRef { version: Some(v1.version), ..reference("paged") };
    store.set_default(&first, map(json!({"reason": "verifier preferred v1"}))).expect("there");
    assert_eq!(store.read(&reference("paged")).expect("there").version.version, 1);
    let [listed] = &store.list().expect("listed")[..] else { panic!("one id") };
    assert_eq!((listed.current_version, listed.latest_version), (1, 2));
    let history = store.history("paged").expect("kept");
    assert_eq!(history.iter().map(|version| version.version).collect::<Vec<_>>(), [1, 2]);
    // A text that does not compile does not become a version.
    assert!(store.write("paged", "(ns paged) (nope)", Map::new(), None).is_err());
    assert_eq!(store.history("paged").expect("kept").len(), 2);
}

#[test]
fn references_and_retention() {
    let store = PreludeStore::in_memory();
    for n in 1..=7 {
        store.write("paged", &paged(n), Map::new(), None).expect("written");
    }
    let seventh = store.read(&reference("paged@7")).expect("there").version;
    assert_eq!(store.read(&reference("paged")).expect("there").version, seventh);
    let with = |checksum: &str| PreludeRef { checksum: Some(checksum.to_owned()), ..reference("paged@7") };
    assert_eq!(store.read(&with(&seventh.checksum)).expect("the same").version, seventh);
    assert_eq!(store.read(&with("00")).expect_err("another").reason, "checksum_mismatch");
    store.set_default(&reference("paged@2"), Map::new()).expect("there");
    for n in 8..=60 {
        store.write("paged", &paged(n), Map::new(), None).expect("written");
    }
    // The default version is retained outside the window; other old versions are gone.
    assert!(store.read(&reference("paged@2")).is_ok());
    assert!(store.read(&reference("paged@7")).is_err());
    assert_eq!(store.read(&reference("paged")).expect("the newest").version.version, 60);
}

#[tokio::test]
async fn the_editing_namespace() {
    let store = Arc::new(PreludeStore::in_memory());
    for n in 1..=2 {
        store.write("paged", &paged(n), Map::new(), None).expect("written");
    }
    let checksum = store.read(&reference("paged@1")).expect("there").version.checksum;
    let runtime = Runtime::builder().workers(1).start().await.expect("a runtime");
    let (tools, namespace) = editing(&store);
    let place = runtime.base().with(tools, &[namespace]).expect("a place");
    let source = paged(3).replace('"', "\\\"");
    for (program, expected) in [
        ("(map :id (prelude/list))".to_owned(), "[\"paged\"]"),
        ("(map :version (prelude/history \"paged\"))".to_owned(), "[1 2]"),
        ("(:version (prelude/read \"paged@2\"))".to_owned(), "2"),
        ("(str/includes? (prelude/source \"paged\") \"(defn inspect [] 2)\")".to_owned(), "true"),
        (
            format!(
                "(let [new-source \"{source}\"] (:version (prelude/write {{:id \"paged\" :source new-source \
                 :metadata {{:reason \"add profile\"}}}})))"
            ),
            "3",
        ),
        (
            "(:version (prelude/set-default {:id \"paged\" :version 1 :metadata {:reason \"rollback\"}}))"
                .to_owned(),
            "1",
        ),
        (
            format!(
                "(:version (prelude/set-default {{:id \"paged\" :version 1 :checksum \"{checksum}\" :metadata \
                 {{:reason \"verified candidate\"}}}}))"
            ),
            "1",
        ),
        (
            "(:reason (prelude/set-default {:id \"paged\" :version 1 :checksum \"00\"}))".to_owned(),
            "\"checksum_mismatch\"",
        ),
    ] {
        let outcome = place.run(program.as_str(), RunOptions::default()).await;
        assert_eq!(outcome.result.expect(&program).text, expected, "{program}");
    }
    // Other programs have neither the namespace nor its tools.
    for program in ["(prelude/list)", "(tool/prelude_store_list {})"] {
        assert!(run(&runtime, program).await.result.is_err(), "{program}");
    }
}

#[tokio::test]
async fn a_session_keeps_its_versions() {
    let store = PreludeStore::in_memory();
    store.write("paged", &paged(1), Map::new(), None).expect("written");
    let (bundle, versions) = store.bundle(&[reference("paged")]).expect("there");
    assert_eq!(versions[0].version, 1);
    let runtime = Runtime::builder().workers(1).start().await.expect("a runtime");
    let session =
        runtime.base().with(Vec::new(), &[bundle]).expect("a place").session(SessionLimits::default());
    let eval = async |program: &str| {
        let run = session.run(program, RunOptions::default(), None).expect("nothing else runs");
        run.await.result.expect(program).text
    };
    assert_eq!(eval("(paged/inspect)").await, "1");
    store.write("paged", &paged(2), Map::new(), None).expect("written");
    assert_eq!(eval("(paged/inspect)").await, "1");
}
