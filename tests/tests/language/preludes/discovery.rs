//! What programs can discover about a prelude.

use super::attach::with_servers;
use super::{CRM, failure, prelude, run, runtime, value};

/// A program and its value.
#[rustfmt::skip]
const VALUES: &[(&str, &str)] = &[
    ("(filter #(= \"crm\" %) (all-ns))", "[\"crm\"]"),
    ("(first (all-ns))", "\"clojure.core\""),
    ("(ns-name 'crm)", "\"crm\""),
    ("(ns-name \"crm\")", "\"crm\""),
    ("(sort (keys (ns-publics 'crm)))", "[\"get-user\" \"get-user!\" \"list-users\" \"page-size\" \"search\"]"),
    ("(= (ns-publics 'crm) (ns-publics crm) (ns-publics \"crm\"))", "true"),
    ("(get (ns-publics 'crm) \"get-user\")", "{:arglists [\"(get-user id)\"] :arity 1 :doc \"Return a CRM user by id.\" :effect :read :name \"get-user\" :source \"prelude\" :visibility :prompt}"),
    ("(:visibility (get (ns-publics 'crm) \"list-users\"))", ":discoverable"),
    ("(dir 'crm)", "[\"(get-user id) - Return a CRM user by id.\" \"(get-user! id) - Return a CRM user, or abort the program.\" \"(list-users) - List CRM users.\" \"(page-size)\" \"(search query) - Search users.\"]"),
    ("(dir 'crm {:limit 1 :offset 2})", "[\"(list-users) - List CRM users.\"]"),
    ("(doc 'crm/get-user)", "\"crm/get-user\\nDescription: Return a CRM user by id.\\nKind: prelude-export\\nNamespace: crm\\nSignature: (get-user id)\\nEffect: read\""),
    ("(doc 'crm)", "\"crm\\nDescription: CRM helpers.\\nKind: namespace\\nNames: 5\\n  (get-user id) - Return a CRM user by id.\\n  (get-user! id) - Return a CRM user, or abort the program.\\n  (list-users) - List CRM users.\\n  (page-size)\\n  (search query) - Search users.\""),
    ("(= (doc 'crm) (doc crm) (doc \"crm\"))", "true"),
    ("(str/starts-with? (doc 'clojure.set) \"clojure.set\\nKind: namespace\\nNames: \")", "true"),
    ("(= (doc 'clojure.set) (doc 'set))", "false"),
    ("(str/ends-with? (doc 'clojure.core) \"\\n  … (dir 'clojure.core {:offset 50}) lists the others\")", "true"),
    ("(= (doc 'crm/get-user) (doc crm/get-user) (doc (str \"crm/\" \"get-user\")))", "true"),
    ("(meta 'crm/get-user)", "{:arglists [\"(get-user id)\"] :arity 1 :doc \"Return a CRM user by id.\" :effect :read :kind \"prelude-export\" :name \"get-user\" :namespace \"crm\" :provider_ref \"upstream:crm/get_user\" :ref \"crm/get-user\" :requires [\"upstream:crm/get_user\"] :source \"prelude\" :visibility :prompt}"),
    ("(first (apropos \"user\"))", "\"prelude: crm/get-user - Return a CRM user by id.\""),
    ("(some #(str/includes? % \"normalize\") (apropos \"normalize id\" {:limit 50}))", "nil"),
    ("(let [source (fn [_] :shadowed)] (source 1))", ":shadowed"),
];

#[tokio::test]
async fn exports_are_found() {
    let runtime = runtime(CRM).await;
    for (program, expected) in VALUES {
        assert_eq!(value(&runtime, program).await, *expected, "{program}");
    }
    for hidden in [
        "(meta 'crm)",
        "(doc 'cmr)",
        "(doc 'crm/normalize-id)",
        "(meta 'crm/normalize-id)",
        "(ns-publics 'nope)",
    ] {
        assert_eq!(failure(&runtime, hidden).await.0, "runtime_error", "{hidden}");
    }
}

#[tokio::test]
async fn a_namespace_and_a_server_of_one_name_are_both_told() {
    let runtime = with_servers(CRM, &["crm"]).await;
    let told = value(&runtime, "(doc 'crm)").await;
    assert!(told.starts_with("\"crm\\nDescription: CRM helpers."), "{told}");
    let server = "\\n\\nServer crm\\nTools: 3, found by (apropos \\\"words\\\" {:load true})\"";
    assert!(told.contains(server), "{told}");
    let runtime = with_servers("(ns m) (defn f [] 1)", &["crm"]).await;
    let told = value(&runtime, "(doc 'crm)").await;
    assert!(told.starts_with("\"crm\\nTools: 3, listed by (dir \\\"crm\\\")"), "{told}");
}

async fn printed(runtime: &ptc_engine::Runtime, program: &str) -> String {
    let outcome = run(runtime, program).await;
    assert_eq!(outcome.result.expect(program).text, "nil", "{program}");
    outcome.prints.join("\n")
}

#[tokio::test]
async fn source_prints_the_defining_form() {
    let text = format!(
        "{CRM}\n(defn- unused [x] x)\n(ns lit)\n(def limit 42)\n(def answer \"The answer.\" 42)\n(defn shapes \
         {{:visibility :discoverable :since \"1.0\"}} [xs ; a comment\n & more]\n  [(map #(* % 2) xs), #\"ab\" 'flag #{{1 \
         2}} {{:a \"b c\"}}])"
    );
    let runtime = runtime(&text).await;
    for (reference, expected) in [
        (
            "crm/get-user",
            ";; crm/get-user — visibility: prompt, effect: read, arity: 1 (effective)\n;; depends-on: (source \
             crm/normalize-id)\n(defn get-user \"Return a CRM user by id.\" [id] (tool/call {:server \"crm\" :tool \
             \"get_user\" :args {:id (normalize-id id)}}))",
        ),
        (
            "crm/normalize-id",
            ";; crm/normalize-id — visibility: private, arity: 1 (effective)\n(defn- normalize-id \"Trim and tag a raw \
             id.\" [raw] (str \"norm:\" raw))",
        ),
        ("lit/limit", ";; lit/limit — visibility: prompt, arity: 0 (effective)\n(def limit 42)"),
        (
            "lit/answer",
            ";; lit/answer — visibility: prompt, arity: 0 (effective)\n(def answer \"The answer.\" 42)",
        ),
        (
            "lit/shapes",
            ";; lit/shapes — visibility: discoverable, arity: variadic (effective)\n(defn shapes {:visibility \
             :discoverable :since \"1.0\"} [xs & more] [(map #(* % 2) xs) #\"ab\" 'flag #{1 2} {:a \"b c\"}])",
        ),
        // A helper that no export reaches is not visible.
        ("crm/unused", "no source available for crm/unused"),
        ("map", "no source available for map"),
        ("missing/ns", "no source available for missing/ns"),
    ] {
        for program in [format!("(source '{reference})"), format!("(source \"{reference}\")")] {
            assert_eq!(printed(&runtime, &program).await, expected, "{program}");
        }
    }
    assert_eq!(failure(&runtime, "(source)").await.0, "arity_error");
}

#[test]
fn the_inventory_lists_what_is_meant_for_prompts() {
    let inventory = prelude(CRM).inventory().expect("exports");
    assert_eq!(inventory, prelude(CRM).inventory().expect("the same"));
    let lines: Vec<&str> = inventory.lines().collect();
    assert_eq!(lines[0], ";; === prelude capabilities ===");
    for line in [
        ";; crm — CRM helpers.",
        "  crm/get-user (get-user id) [read] — Return a CRM user by id.",
        "  crm/page-size (page-size)",
    ] {
        assert!(lines.contains(&line), "{line}\n{inventory}");
    }
    for hidden in ["normalize-id", "List CRM users"] {
        assert!(!inventory.contains(hidden), "{inventory}");
    }
    let many: String = (1..9).map(|n| format!("(defn e{n} \"Doc {n}.\" [] {n})")).collect();
    let inventory = prelude(&format!("(ns big \"Many.\") {many}")).inventory().expect("exports");
    assert_eq!((1..9).filter(|n| inventory.contains(&format!("(e{n})"))).count(), 5);
    assert!(inventory.contains("\n  ;; +3 more — discover via (ns-publics 'big)"), "{inventory}");
    assert_eq!(prelude("(ns h {:visibility :discoverable}) (defn f [] 1)").inventory(), None);
}

#[tokio::test]
async fn names_that_are_almost_those_of_exports_are_told_apart() {
    let runtime = runtime(CRM).await;
    for (program, hint) in [
        ("(get-user 1)", "Write crm/get-user."),
        ("(map get_user [1])", "Write crm/get-user."),
        ("(crm.get-user 1)", "Write crm/get-user."),
        ("(CRM/get-user 1)", "Did you mean `crm/get-user`?"),
        ("(cmr/search 1)", "Did you mean `crm/search`?"),
        ("(crm/get_user 1)", "Did you mean `crm/get-user`?"),
        ("crm/pagesize", "Did you mean `crm/page-size`?"),
    ] {
        let failure = run(&runtime, program).await.result.expect_err(program);
        assert_eq!(failure.reports[0].hints, [hint], "{program}\n{failure:?}");
    }
    runtime.shutdown().await;
}
