//! The discovery forms, over real child processes.

use crate::common;
use common::listing::{Listings, file_tools, issue_tools, start};
use common::programs::{failure, options, run, value};
use ptc_base::secrets::SecretRegistry;
use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_engine::{Runtime, RuntimeConfig, StartPolicy};
use ptc_upstream::UpstreamState;
use serde_json::json;

/// Two servers with loaded tools.
async fn loaded(listings: &Listings) -> Runtime {
    let servers = vec![
        listings.server("github", "GitHub MCP server.", &issue_tools()),
        listings.server("fs", "Filesystem MCP server.", &file_tools()),
    ];
    start(servers, StartPolicy::All).await
}

/// A runtime without servers.
async fn alone() -> Runtime {
    start(Vec::new(), StartPolicy::All).await
}

/// The lines of a list, as JSON.
async fn lines(runtime: &Runtime, program: &str) -> Vec<String> {
    let text = value(runtime, &format!("(json/generate-string {program})")).await;
    let list = serde_json::from_str::<String>(&text).and_then(|text| serde_json::from_str(&text));
    list.unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[tokio::test]
async fn dir_lists_the_tools_of_a_server_in_name_order() {
    let listings = Listings::new("dir");
    let runtime = loaded(&listings).await;
    let all = [
        "deleteFile {:path string} - Remove something for good",
        "list_directory {:path string} - List the entries in a directory",
        "read_text_file {:path string :head integer?} - Read the contents of a UTF-8 text file",
    ];
    for program in
        ["(dir 'fs)", "(dir \"fs\")", "(dir fs)", "(let [s \"fs\"] (dir s))", "(def s \"fs\") (dir s)"]
    {
        let program = format!("(do {program})");
        assert_eq!(lines(&runtime, &program).await, all, "{program}");
    }
    assert_eq!(lines(&runtime, "(dir 'fs {:limit 1 :offset 1})").await, all[1..2]);
    let outcome = run(&runtime, "(dir 'fs {:limit 2})").await;
    assert_eq!(outcome.notes, ["dir: 2 of 3 of fs shown; {:offset 2} gives the next"]);
    assert!(lines(&runtime, "(dir 'fs {:offset 9})").await.is_empty());
}

#[tokio::test]
async fn doc_gives_arguments_call_form_and_result_shape() {
    let listings = Listings::new("doc");
    let runtime = loaded(&listings).await;
    let text = value(&runtime, "(doc 'github/search_issues)").await;
    let text: String = serde_json::from_str(&text).unwrap();
    assert_eq!(
        text,
        "github/search_issues\n\
         Description: Search issues\n\
         \n\
         Args: {:query string :kind const<\"issue\">? :labels [string]? :state \"open\"|\"closed\"?}\n\
         Required args: :query\n\
         \n\
         Call:\n\
         (tool/call {:server \"github\" :tool \"search_issues\" :args {:query \"...\"}})\n\
         \n\
         Returns: Result<{:items [{:number integer?}]}>"
    );
    // `meta` has the schema of the same value.
    let output = "(get-in (meta 'github/search_issues) [:output_schema :properties :items :type])";
    assert_eq!(value(&runtime, output).await, "\"array\"");
    // The result type of a tool without an output schema is known after its first call.
    let returns = async |runtime: &Runtime| {
        let text = value(runtime, "(first (re-seq #\"Returns.*\" (doc 'fs/read_text_file)))").await;
        serde_json::from_str::<String>(&text).unwrap()
    };
    assert_eq!(returns(&runtime).await, "Returns: Result<any>");
    value(&runtime, "(tool/call 'fs/read_text_file {:path \"a\"})").await;
    assert_eq!(returns(&runtime).await, "Returns (seen 1 time): {:args {:path string}}");
    // The call form runs verbatim.
    let call = text.lines().find(|line| line.starts_with("(tool/call")).unwrap();
    assert_eq!(value(&runtime, &format!("(get-in {call} [:value :args])")).await, "{\"query\" \"...\"}");
    let meta =
        "(let [m (meta 'fs/read_text_file)] [(:server m) (:tool m) (get-in m [:input_schema :required])
                 (get-in m [:annotations :readOnlyHint]) (:effect m) (:kind m)])";
    assert_eq!(
        value(&runtime, meta).await,
        "[\"fs\" \"read_text_file\" [\"path\"] true \"read\" \"mcp-tool\"]"
    );
}

#[tokio::test]
async fn apropos_ranks_tools_before_names_of_the_language() {
    let listings = Listings::new("apropos");
    let runtime = loaded(&listings).await;
    let found = lines(&runtime, "(apropos \"file\" {:limit 50})").await;
    let tools: Vec<&str> = found.iter().map(|line| line.split(' ').next().unwrap()).take(3).collect();
    // Name and description, then the name alone (camelCase is split), then a description.
    assert_eq!(tools, ["fs/read_text_file", "fs/deleteFile", "github/get_pr"]);
    assert!(found[3..].iter().all(|line| line.starts_with("local: ")), "{found:?}");
    let by_argument = lines(&runtime, "(apropos \"labels\")").await;
    assert_eq!(
        by_argument[0],
        "github/search_issues {:query string :kind const<\"issue\">? :labels [string]? \
         :state \"open\"|\"closed\"?} - Search issues"
    );
    let by_hint = lines(&runtime, "(apropos \"destructive\")").await;
    assert_eq!(by_hint[0], "fs/deleteFile {:path string} - Remove something for good");
    // A hint is found by each of its words, as a description is.
    assert_eq!(lines(&runtime, "(apropos \"destruct\" {:load true})").await, by_hint[..1]);
    let found = lines(&runtime, "(apropos \"readOnlyHint\" {:load true})").await;
    assert!(found[0].starts_with("fs/read_text_file "), "{found:?}");
    for query in ["only", "readonly", "read only"] {
        let found = lines(&runtime, &format!("(apropos \"{query}\" {{:load true}})")).await;
        assert!(found.iter().any(|line| line.starts_with("fs/read_text_file ")), "{query}: {found:?}");
        assert!(!found.iter().any(|line| line.starts_with("fs/deleteFile ")), "{query}: {found:?}");
    }
    assert_eq!(lines(&runtime, "(apropos \"file\" {:limit 2})").await.len(), 2);
    assert_eq!(lines(&runtime, "(apropos \"file\" {:load true :limit 50})").await.len(), 3);
    assert!(lines(&runtime, "(apropos \"zzzz\")").await.is_empty());
}

#[tokio::test]
async fn unloaded_servers_answer_with_hints_until_they_are_loaded() {
    let listings = Listings::new("unloaded");
    let servers = || {
        vec![
            listings.server("fs", "Filesystem MCP server.", &file_tools()),
            listings.server("github", "", &issue_tools()),
            listings.dead_server("dead", "Reads files of the dead"),
        ]
    };
    let runtime = start(servers(), StartPolicy::Lazy).await;
    let outcome = run(&runtime, "(apropos \"filesystem\")").await;
    assert_eq!(
        outcome.result.unwrap().text,
        "[\"fs: Filesystem MCP server. Catalog not loaded. Use (dir \\\"fs\\\" {:limit 20}).\"]"
    );
    assert_eq!(
        outcome.notes,
        ["apropos: the tools of dead, github are not loaded; {:load true} searches them too"]
    );
    assert!(runtime.servers().iter().all(|server| server.state == UpstreamState::Idle));
    let before_local = lines(&runtime, "(apropos \"files\" {:limit 3})").await;
    assert!(
        before_local[0].starts_with("dead: Reads files of the dead. Catalog not loaded."),
        "{before_local:?}"
    );

    let outcome =
        run(&runtime, "(map (fn [l] (first (str/split l #\" \"))) (apropos \"file\" {:load true}))").await;
    assert_eq!(outcome.result.unwrap().text, "[\"fs/read_text_file\" \"fs/deleteFile\" \"github/get_pr\"]");
    assert_eq!(outcome.notes, ["apropos: the tools of dead could not be loaded"]);
    // Discovery starts servers, but does not count as a call.
    assert_eq!((outcome.upstream_calls.len(), outcome.usage.upstream_calls), (0, 0));

    let fresh = start(servers(), StartPolicy::Lazy).await;
    assert_eq!(value(&fresh, "(count (dir 'fs))").await, "3");
    assert!(value(&fresh, "(doc 'github/get_pr)").await.contains(":number integer"));
    let outcome =
        run(&fresh, "[(dir 'dead) (doc 'dead/x) (meta 'dead/x) (pmap dir ['fs 'github 'dead])]").await;
    let text = outcome.result.unwrap().text;
    assert!(text.starts_with("[nil nil nil [[\"deleteFile"), "{text}");
    assert!(outcome.notes[0].starts_with("dir: server dead is not available ("), "{:?}", outcome.notes);
}

#[tokio::test]
async fn local_names_are_documented_without_servers() {
    let runtime = alone().await;
    assert_eq!(
        value(&runtime, "(all-ns)").await,
        "[\"clojure.core\" \"clojure.set\" \"clojure.string\" \"clojure.walk\" \"json\"]"
    );
    assert_eq!(
        value(&runtime, "[(ns-name 'str) (ns-name clojure.set)]").await,
        "[\"clojure.string\" \"clojure.set\"]"
    );
    let doc = value(&runtime, "(doc map)").await;
    for part in
        ["map\\n", "Description: ", "Kind: ptc-builtin", "Namespace: clojure.core", "Signatures: (map f"]
    {
        assert!(doc.contains(part), "{part} in {doc}");
    }
    assert_eq!(
        value(&runtime, "(= (doc map) (doc 'map) (doc \"map\") (first (map doc [map])))").await,
        "true"
    );
    assert!(value(&runtime, "(doc 'let)").await.contains("Kind: special-form"));
    assert!(value(&runtime, "(doc 'Math/sqrt)").await.contains("Kind: java-interop"));
    assert!(value(&runtime, "(doc tool/call)").await.contains("Calls a tool"));
    assert_eq!(
        value(&runtime, "(select-keys (meta 'str/join) [:kind :source :namespace :name :ref])").await,
        "{:kind \"ptc-builtin\" :name \"join\" :namespace \"clojure.string\" :ref \"str/join\" :source \"local\"}"
    );
    assert_eq!(
        value(&runtime, "(keys (get (ns-publics 'clojure.set) \"union\"))").await,
        "[:arglists :doc :name :section :source]"
    );
    assert!(
        lines(&runtime, "(dir 'clojure.string {:limit 200})")
            .await
            .iter()
            .any(|line| line.starts_with("join - "))
    );
    assert!(lines(&runtime, "(dir 'Math)").await.iter().any(|line| line.starts_with("sqrt - ")));
    assert!(lines(&runtime, "(apropos \"sort\" {:load true})").await[0].starts_with("local: sort"));
    let source = run(&runtime, "(source map)").await;
    assert_eq!(
        (source.result.unwrap().text.as_str(), source.prints[0].as_str()),
        ("nil", "no source available for map")
    );
    // Names of the program take precedence, as for any function.
    assert_eq!(value(&runtime, "(let [doc inc] (doc 1))").await, "2");
    assert_eq!(value(&runtime, "(defn dir [x] (* 2 x)) (dir 4)").await, "8");
}

#[tokio::test]
async fn a_local_name_wins_over_a_server_of_the_same_name() {
    let listings = Listings::new("wins");
    let servers = vec![listings.server("json", "", &file_tools())];
    let runtime = start(servers, StartPolicy::All).await;
    assert!(lines(&runtime, "(dir 'json)").await.iter().any(|line| line.starts_with("parse-string")));
    assert!(value(&runtime, "(doc 'json/list_directory)").await.contains("List the entries"));
}

#[tokio::test]
async fn defects_of_the_program_are_faults_with_hints() {
    let listings = Listings::new("defects");
    let runtime = loaded(&listings).await;
    let cases = [
        ("(apropos \"\")", "apropos requires query (non-empty string), got \"\"", ""),
        ("(apropos nil)", "apropos requires query (non-empty string), got nil", ""),
        ("(apropos \"x\" {:limit 0})", "apropos :limit must be an integer 1..50, got 0", ""),
        ("(apropos \"x\" {:limit 51})", "apropos :limit must be an integer 1..50, got 51", ""),
        ("(apropos \"x\" {:load 1})", "apropos :load must be a boolean, got 1", ""),
        ("(apropos \"x\" {:lmit 1})", "apropos got unknown option :lmit", ":limit and :load"),
        ("(apropos \"x\" 5)", "discovery options must be a map, got 5", ""),
        ("(dir 'fs {:limit 201})", "dir :limit must be an integer 1..200, got 201", ""),
        ("(dir 'fs {:limit \"5\"})", "dir :limit must be an integer 1..200, got \"5\"", ""),
        ("(dir 'fs {:offset -1})", "dir :offset must be a non-negative integer, got -1", ""),
        ("(dir 5)", "dir requires a quoted symbol or string ref, got 5", "(dir 'name)"),
        ("(doc \"\")", "doc requires a quoted symbol or string ref, got \"\"", ""),
        ("(dir 'gthub)", "no upstream 'gthub' configured. Configured upstreams: fs, github", "\"github\""),
        (
            "(doc 'gthub/get_pr)",
            "no upstream 'gthub' configured. Configured upstreams: fs, github",
            "\"github\"",
        ),
        (
            "(doc 'github/get_prs)",
            "no tool 'get_prs' in upstream 'github'. Known tools: get_pr, search_issues",
            "\"get_pr\"",
        ),
        ("(doc 'get_pr)", "doc requires upstream/tool ref, got 'get_pr", "'github/get_pr"),
        ("(doc 'str/jion)", "doc: unknown name \"str/jion\"", "`str/join`"),
        ("(meta 'redduce)", "meta requires upstream/tool ref, got 'redduce", "'reduce"),
        ("(ns-publics 'fs)", "ns-publics: unknown namespace \"fs\"", "(dir \"fs\")"),
        ("(ns-name 'nope)", "ns-name: unknown namespace \"nope\"", "clojure.core"),
    ];
    for (program, message, hint) in cases {
        let failed = failure(&runtime, program).await;
        assert_eq!(failed.message, message, "{program}");
        assert_eq!(failed.reason.class().name(), "runtime_error", "{program}");
        assert!(failed.position().is_some(), "{program}");
        assert!(
            failed.hints().iter().any(|given| given.contains(hint)) || hint.is_empty(),
            "{program}: {failed:?}"
        );
    }
}

#[tokio::test]
async fn the_discovery_budget_is_exact_and_apart_from_the_call_budget() {
    let listings = Listings::new("budget");
    let runtime = loaded(&listings).await;
    // Discovery of local names does not use up the discovery budget.
    let program = "(doc 'map) (dir 'json)
                   (let [found (map (fn [_] (dir 'fs)) (range 30))
                         call (tool/call 'fs/list_directory {:path \"x\"})]
                     [(count (filter some? found)) (apropos \"x\") (tool/servers) (:ok call) (some? (doc 'map))])";
    let outcome = run(&runtime, program).await;
    assert_eq!(outcome.result.unwrap().text, "[26 nil nil true true]");
    assert_eq!(
        outcome.notes,
        ["the discovery budget of 25 operations is used up; further discovery forms gave nil"]
    );
    let limits =
        Limits { max_catalog_ops: 2, max_upstream_calls: 1, timeout_ms: 60_000, ..Limits::with_upstreams() };
    let program = "[(count (tool/servers)) (some? (apropos \"x\")) (some? (dir 'fs)) (dir 'fs)]";
    let outcome = runtime.run(program, RunOptions { limits, ..options() }).await;
    assert_eq!(outcome.result.unwrap().text, "[2 true true nil]");
}

#[tokio::test]
async fn lists_over_the_cap_are_cut_and_texts_over_it_are_nil() {
    let listings = Listings::new("cap");
    let runtime = loaded(&listings).await;
    let with = |bytes| {
        let limits =
            Limits { max_catalog_result_bytes: bytes, timeout_ms: 60_000, ..Limits::with_upstreams() };
        RunOptions { limits, ..options() }
    };
    let outcome =
        runtime.run("[(count (dir 'fs)) (doc 'fs/deleteFile) (meta 'fs/deleteFile)]", with(100)).await;
    assert_eq!(outcome.result.unwrap().text, "[1 nil nil]");
    // The next page begins at the first entry that was cut.
    assert_eq!(
        outcome.notes[0],
        "dir: 1 of 3 entries fit into max-catalog-result-bytes (100); {:offset 1} gives the next"
    );
    assert_eq!(outcome.notes.len(), 3, "{:?}", outcome.notes);
    let outcome = runtime.run("(count (dir 'fs {:offset 1 :limit 1}))", with(100)).await;
    assert_eq!(outcome.result.unwrap().text, "1");
    assert_eq!(outcome.notes, ["dir: 1 of 3 of fs shown; {:offset 2} gives the next"]);
    let outcome = runtime.run("(dir 'fs)", with(10)).await;
    assert_eq!(outcome.result.unwrap().text, "[]");
    assert_eq!(outcome.notes, ["dir: 0 of 3 entries fit into max-catalog-result-bytes (10)"]);
}

#[tokio::test]
async fn secrets_that_a_server_echoes_do_not_reach_the_program() {
    let listings = Listings::new("secrets");
    let tools = json!([{"name": "t", "description": "The key is sesame-open", "inputSchema": {
        "properties": {"k": {"default": "sesame-open"}}}}]);
    let secrets = SecretRegistry::new();
    secrets.register("sesame-open");
    let servers = vec![listings.server("leaky", "Opened by sesame-open", &tools)];
    let config = RuntimeConfig { servers, secrets, workers: 1, ..RuntimeConfig::default() };
    let runtime = Runtime::start(config).await.unwrap();
    // Checked inside the program, before outgoing redaction.
    let program = "(map (fn [x] [(str/includes? x \"sesame\") (str/includes? x \"[REDACTED]\")])
                     [(doc 'leaky/t) (str (meta 'leaky/t)) (str (dir 'leaky)) (str (apropos \"key\")) (str (tool/servers))])";
    let clean = "[[false true] [false true] [false true] [false true] [false true]]";
    assert_eq!(value(&runtime, program).await, clean);
}

#[tokio::test]
async fn thousands_of_tools_are_searched_within_the_limits() {
    let listings = Listings::new("many");
    let tools: Vec<_> = (0..10_000)
        .map(|n| json!({"name": format!("tool_{n}"), "description": format!("Does thing number {n}")}))
        .collect();
    let runtime = start(vec![listings.server("big", "", &json!(tools))], StartPolicy::All).await;
    let found = lines(&runtime, "(apropos \"tool_7777\")").await;
    assert_eq!(found[0], "big/tool_7777 {* any} - Does thing number 7777");
    let program = "(count (map (fn [n] (dir 'big {:limit 200 :offset (* n 200)})) (range 20)))";
    assert_eq!(value(&runtime, program).await, "20");
}
