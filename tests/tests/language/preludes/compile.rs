//! Texts that are not valid preludes: reason, message and location of each error.

use ptc_engine::{Prelude, PreludeSource};

/// A text, and the reason, message and `line:column` of its first error.
#[rustfmt::skip]
const WRONG: &[(&str, &str, &str, &str)] = &[
    ("(defn f [] 1)", "missing_namespace", "definition `f` appears before any (ns ...) directive", "1:1"),
    ("", "missing_namespace", "prelude declares no namespace", "1:1"),
    ("(ns tool)", "reserved_namespace", "prelude cannot declare reserved namespace `tool`", "1:5"),
    ("(ns data)", "reserved_namespace", "prelude cannot declare reserved namespace `data`", "1:5"),
    ("(ns budget)", "reserved_namespace", "prelude cannot declare reserved namespace `budget`", "1:5"),
    ("(ns ptc.core)", "reserved_namespace", "prelude cannot declare reserved namespace `ptc.core`", "1:5"),
    ("(ns crm)\n(defn f [] 1)\n(ns crm \"again\")", "invalid_namespace", "namespace 'crm' is declared more than once; declare each prelude namespace exactly once", "3:1"),
    ("(ns)", "invalid_namespace", "(ns ...) requires a namespace name", "1:1"),
    ("(ns \"crm\")", "invalid_namespace", "namespace name must be a symbol, got: \"crm\"", "1:5"),
    ("(ns a/b)", "invalid_namespace", "namespace name must be a symbol, got: a/b", "1:5"),
    ("(ns crm 5)", "invalid_namespace", "malformed (ns ...) directive: (ns crm 5)", "1:1"),
    ("(ns crm)\n(defn f [] 1)\n(defn- f [] 2)", "duplicate_ref", "duplicate prelude definition ref `crm/f` (names must be unique within a namespace)", "3:1"),
    ("(ns crm {:visibility :secret})", "invalid_visibility", "invalid visibility `:secret` (expected :prompt or :discoverable)", "1:22"),
    ("(ns crm)\n(defn f {:visibility \"prompt\"} [] 1)", "invalid_visibility", "invalid visibility \"prompt\" (expected :prompt or :discoverable)", "2:22"),
    ("(ns crm)\n(defn f {:requires \"x\"} [] 1)", "invalid_requires", "prelude :requires must be a list of strings, got: \"x\"", "2:20"),
    ("(ns crm)\n(defn f {:requires [\"tool:a\" :b 3]} [] 1)", "invalid_requires", "prelude :requires must be a list of strings; invalid entries: [:b, 3]", "2:30"),
    ("(ns crm)\n(defn f {:provider-ref 5} [] 1)", "invalid_metadata", "prelude :provider-ref must be a string, got: 5", "2:24"),
    ("(ns crm)\n(defn f {\"visibility\" :prompt} [] 1)", "invalid_metadata", "prelude metadata keys must be keywords, got: \"visibility\"", "2:10"),
    ("(ns crm)\n(defn f)", "invalid_signature", "malformed defn in prelude: (defn f)", "2:1"),
    ("(ns crm)\n(defn)", "invalid_signature", "malformed defn in prelude: (defn)", "2:1"),
    ("(ns crm)\n(def x)", "invalid_signature", "malformed def in prelude: (def x)", "2:1"),
    ("(ns crm)\n(def x 1 2 3)", "invalid_signature", "malformed def in prelude: (def x 1 2 3)", "2:1"),
    ("(ns crm)\n(defn 5 [] 1)", "invalid_signature", "definition name must be a symbol, got: 5", "2:7"),
    ("(ns crm)\n(defn a/b [] 1)", "invalid_signature", "definition name must be a symbol, got: a/b", "2:7"),
    ("(ns crm)\n(defn f x 1)", "invalid_signature", "expected a [params] vector, got: x", "2:9"),
    ("(ns crm)\n(defn g [] 1)\n(defn f [] (crm/g))", "qualified_self_reference", "qualified self-reference `crm/g` is not allowed in a prelude body; call the sibling by its bare name `g`", "3:13"),
    ("(ns crm)\n(defn g [x] x)\n(defn f [xs] (map #(crm/g %) xs))", "qualified_self_reference", "qualified self-reference `crm/g` is not allowed in a prelude body; call the sibling by its bare name `g`", "3:21"),
    ("(ns crm)\n(println 1)", "compile_error", "unsupported top-level prelude form: (println 1)", "2:1"),
    ("(ns crm)\n:loose", "compile_error", "unsupported top-level prelude form: :loose", "2:1"),
    ("(ns crm)\n(defn f [] (typo))", "compile_error", "prelude body references undefined variable(s): typo", "2:13"),
    ("(ns a)\n(defn f [] 1)\n(ns b)\n(defn g [] (f))", "compile_error", "prelude body references undefined variable(s): f", "4:13"),
    ("(ns a)\n(defn f [] 1)\n(ns b)\n(defn g [] (a/f))", "invalid_form", "unknown namespace a/", "4:13"),
    ("(ns crm)\n(defn f [] (def x 1))", "invalid_form", "a prelude holds no state: x cannot be defined inside of a definition", "2:17"),
    ("(ns crm)\n(defn f [] (", "parse_error", "prelude parse error: unbalanced parentheses: 2 unclosed '('", "2:12"),
    ("(ns crm)\n(def x (/ 1 0))", "compile_error", "prelude evaluation failed: division by zero", "2:8"),
    ("(ns crm)\n(def x (tool/call {:server \"s\" :tool \"t\" :args {}}))", "compile_error", "prelude evaluation failed: a constant can ask nothing of the host", "2:1"),
    ("(ns crm)\n(def x (let [n 1] (fn [y] (+ n y))))", "compile_error", "prelude evaluation failed: the constant `x` holds a function, which is no data", "2:1"),
    ("(ns crm)\n(def x (reduce + (range 100000000)))", "compile_error", "prelude evaluation exceeded sandbox limits: ", "2:8"),
    // The copy is refused before it is made: the lazy range itself weighs nothing.
    ("(ns crm)\n(def x (range 1000000000000))", "compile_error", "prelude evaluation exceeded sandbox limits: the constant `x` has more than 65,536 parts or 10 MiB of text", "2:1"),
    ("(ns crm)\n(def x (vec (range 100000)))", "compile_error", "prelude evaluation exceeded sandbox limits: the constant `x` has more than 65,536 parts or 10 MiB of text", "2:1"),
    ("(ns crm)\n(def x (let [s (apply str (repeat 4096 \"x\"))] (vec (repeat 60000 s))))", "compile_error", "prelude evaluation exceeded sandbox limits: the constant `x` has more than 65,536 parts or 10 MiB of text", "2:1"),
    ("(ns crm)\n(def a (inc b))\n(def b (inc a))", "compile_error", "prelude evaluation failed: the constants `b` and `a` need each other", "3:1"),
];

#[test]
fn what_is_wrong_is_said_with_reason_place_and_hint() {
    for (text, reason, message, place) in WRONG {
        let error = Prelude::compile("p.clj", text).expect_err(text);
        let failure = &error.failure;
        assert_eq!(failure.reason.raw(), *reason, "{text}\n{failure:?}");
        match message.strip_suffix(": ") {
            Some(start) => assert!(failure.message.starts_with(start), "{text}\n{failure:?}"),
            None => assert_eq!(failure.message, *message, "{text}"),
        }
        let at = failure.position().map(|at| format!("{}:{}", at.line, at.column));
        assert_eq!(at.as_deref(), Some(*place), "{text}\n{failure:?}");
        assert!(failure.reports.iter().all(|report| !report.hints.is_empty()), "{text}\n{failure:?}");
    }
}

#[test]
fn independent_errors_are_told_together() {
    let text = "(ns crm)\n(defn f [] (typo))\n(defn g [x] (crm/f))\n(defn h [] (other))";
    let failure = Prelude::compile("p.clj", text).expect_err("three errors").failure;
    let places: Vec<u32> =
        failure.reports.iter().filter_map(|report| Some(report.position()?.line)).collect();
    assert_eq!(places, [2, 3, 4], "{failure:?}");
}

#[test]
fn one_mistake_is_told_once() {
    for text in [
        "(ns tool)\n(defn f [] 1)\n(def x 2)",
        "(ns a (:require [b :as c]))\n(defn f [] 1)",
        "(ns crm)\n(defn f [] 1)\n(ns hr)\n(defn g [] 1)\n(ns crm)\n(defn g [] 2)",
    ] {
        let failure = Prelude::compile("p.clj", text).expect_err(text).failure;
        assert_eq!(failure.reports.len(), 1, "{text}\n{failure:?}");
    }
    let cross = "(ns a)\n(defn- f [] 1)\n(ns b)\n(defn g [] (a/f))";
    let failure = Prelude::compile("p.clj", cross).expect_err("another namespace").failure;
    assert!(failure.reports[0].hints.concat().contains("their own namespace alone"), "{failure:?}");
}

#[test]
fn two_sources_cannot_declare_one_namespace() {
    let source = |id: &str, text: &str| PreludeSource {
        id: Some(id.to_owned()),
        ..PreludeSource::new(format!("{id}.clj"), text)
    };
    let error = Prelude::compose(vec![source("a", "(ns crm)"), source("b", "(ns hr)\n(ns crm)")])
        .expect_err("crm is there twice");
    assert_eq!(error.source, "b.clj");
    let message = "namespace `crm` is declared by more than one selected prelude (\"a\" and \"b\")";
    assert_eq!(error.failure.message, message);
    assert_eq!(error.failure.position().map(|at| at.line), Some(2));
    let composed = Prelude::compose(vec![source("a", "(ns crm)"), source("b", "(ns hr)")]).expect("two");
    let names: Vec<&str> = composed.namespaces().map(|namespace| namespace.name()).collect();
    assert_eq!(names, ["crm", "hr"]);
}

#[test]
fn metadata_that_means_nothing_is_a_warning() {
    let text = "(ns crm {:visibilty :prompt})\n(defn f {:effect :wirte :provider_ref \"x\"} [] 1)";
    let prelude = Prelude::compile("p.clj", text).expect("warnings only");
    let warnings: Vec<String> = prelude.warnings().map(|(_, warning)| warning.message.to_string()).collect();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    // A text after the parameters is no documentation, unless it is the whole body.
    let text = "(ns crm)\n(defn f [x] \"What it does.\" (inc x))\n(defn g [] \"value\")\n(defn h \"Says.\" [] \"a\" 1)";
    let misplaced = Prelude::compile("p.clj", text).expect("a warning only");
    let places: Vec<u32> = misplaced.warnings().map(|(_, warning)| warning.span.start).collect();
    assert_eq!(places, [21], "{:?}", misplaced.warnings().collect::<Vec<_>>());
    assert!(prelude.warnings().all(|(_, warning)| !warning.hints.is_empty()));
}

#[test]
fn hashes_depend_on_the_text_alone() {
    let of = |text: &str| {
        let prelude = Prelude::compile("p.clj", text).expect(text);
        (prelude.source_hash().to_owned(), prelude.artifact_hash().to_owned())
    };
    let text = "(ns crm)\n(defn f [x] x)";
    assert_eq!(of(text), of(text));
    // SHA-256 as standard tools compute it.
    assert_eq!(of("(ns crm)").0, "eab83cc85cdabde5b9e30729b7322783b638b86bced24131540c8572c3f3ea35");
    let (source, artifact) = of(text);
    // A different implementation of the same exports is the same artifact.
    let (other_source, other_artifact) = of("(ns crm)\n(defn f [x] (identity x))");
    assert_ne!(source, other_source);
    assert_eq!(artifact, other_artifact);
    assert_ne!(artifact, of("(ns crm)\n(defn f [x y] x)").1);
}
