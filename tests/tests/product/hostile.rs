//! Programs and servers that exceed limits: each fails with its own error, and the next request is answered.

use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::Upstreams;
use serde_json::{Value, json};

/// Error kinds of a program that may run out of time before it runs out of another resource.
const OUT_OF_BUDGET: &[&str] = &["timeout", "fuel_exceeded", "memory_exceeded"];

/// A program and the ways in which it may end: an answer's text, or error kinds.
struct Hostile {
    program: &'static str,
    answer: Option<&'static str>,
    errors: &'static [&'static str],
}

const fn ends(program: &'static str, errors: &'static [&'static str]) -> Hostile {
    Hostile { program, answer: None, errors }
}

const fn answers(program: &'static str, answer: &'static str, errors: &'static [&'static str]) -> Hostile {
    Hostile { program, answer: Some(answer), errors }
}

#[rustfmt::skip]
const PROGRAMS: &[Hostile] = &[
    // Deep values: built, compared with a copy, printed, dropped.
    answers("(do (reduce (fn [a _] [a]) nil (range 1000000)) 1)", "1", OUT_OF_BUDGET),
    answers("(let [deep (fn [] (reduce (fn [a _] [a]) nil (range 1000000)))] (= (deep) (deep)))", "true", OUT_OF_BUDGET),
    answers("(count (pr-str (reduce (fn [a _] [a]) nil (range 1000000))))", "2000003", &["timeout", "fuel_exceeded", "memory_exceeded", "type_error"]),
    ends("(reduce (fn [a _] [a]) nil (range 1000000))", &["timeout", "fuel_exceeded", "memory_exceeded", "type_error", ""]),
    // 64 nodes and 2^64 paths: printed, compared, hashed, encoded.
    // As an answer it is cut like any long text.
    ends("(reduce (fn [a _] [a a]) nil (range 64))", &["timeout", "fuel_exceeded", "memory_exceeded", ""]),
    ends("(count (str (reduce (fn [a _] [a a]) nil (range 64))))", OUT_OF_BUDGET),
    ends("(println (reduce (fn [a _] [a a]) nil (range 64)))", OUT_OF_BUDGET),
    ends("(let [wide (fn [] (reduce (fn [a _] [a a]) nil (range 64)))] (= (wide) (wide)))", OUT_OF_BUDGET),
    ends("(let [wide (fn [] (reduce (fn [a _] [a a]) nil (range 64)))] (compare (wide) (wide)))", OUT_OF_BUDGET),
    ends("(let [wide (fn [] (reduce (fn [a _] [a a]) nil (range 64)))] (count (hash-map (wide) 1 (wide) 2)))", OUT_OF_BUDGET),
    ends("(count #{(reduce (fn [a _] [a a]) nil (range 64))})", &["timeout", "fuel_exceeded", "memory_exceeded", ""]),
    ends("(json/generate-string (reduce (fn [a _] [a a]) nil (range 64)))", OUT_OF_BUDGET),
    ends("(count (flatten (reduce (fn [a _] [a a]) 1 (range 64))))", OUT_OF_BUDGET),
    // Big numbers, endless work, endless calls.
    ends("(reduce * (range 1 200000))", OUT_OF_BUDGET),
    ends("(loop [n 2] (recur (* n n)))", &["timeout", "fuel_exceeded", "memory_exceeded", "arithmetic_error"]),
    ends("(defn f [n] (inc (f n))) (f 1)", OUT_OF_BUDGET),
    ends("(defn f [n] (map (fn [x] (f x)) [n])) (f 1)", OUT_OF_BUDGET),
    answers("(count (range 1000000000))", "1000000000", OUT_OF_BUDGET),
    ends("(loop [] (recur))", OUT_OF_BUDGET),
    ends("(defn f [] (pmap (fn [_] (f)) [1 2])) (f)", &["timeout", "fuel_exceeded", "memory_exceeded", "pmap_error"]),
    ends("(loop [s \"x\"] (recur (str s s)))", OUT_OF_BUDGET),
    ends("(loop [v [1]] (recur (into v v)))", OUT_OF_BUDGET),
    ends("(loop [m {} n 0] (recur (assoc m n (range 100)) (inc n)))", OUT_OF_BUDGET),
    ends("(loop [] (println \"again and again and again\") (recur))", OUT_OF_BUDGET),
    ends("(sort (fn [a b] (loop [] (recur))) [2 1])", OUT_OF_BUDGET),
    ends("(re-find #\"(a+)+$\" (str (join (map (fn [_] \"a\") (range 100000))) \"b\"))", &["timeout", "fuel_exceeded", "memory_exceeded", ""]),
];

/// Runs every program on one server: an error ends only its own program.
fn all_end(flags: &[&str]) {
    let mut server = Server::start(&[&["--response-profile", "structured"], flags].concat());
    let mut wrong = Vec::new();
    for hostile in PROGRAMS {
        let result = server.run(hostile.program);
        wrong.extend(judge(hostile, &result));
        assert_eq!(server.run("(+ 1 2)")["structuredContent"]["result"], "3", "after {}", hostile.program);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(server.end(), Some(0));
}

/// What is wrong with the result.
fn judge(hostile: &Hostile, result: &Value) -> Option<String> {
    let content = &result["structuredContent"];
    let right = if result["isError"] == true {
        hostile.errors.contains(&content["error_kind"].as_str().unwrap_or("no kind"))
    } else {
        match hostile.answer {
            Some(answer) => content["result"] == answer,
            // An empty kind allows any answer.
            None => hostile.errors.contains(&""),
        }
    };
    let shown: String = result.to_string().chars().take(300).collect();
    (!right).then(|| format!("{}\n    {shown}", hostile.program))
}

#[test]
fn programs_at_the_default_limits() {
    all_end(&[]);
}

#[test]
fn programs_with_a_gibibyte() {
    all_end(&["--memory", "1G", "--max-total-memory", "2G"]);
}

/// Programs give right answers when they have enough time and memory.
#[test]
fn answers_are_right_where_the_limits_allow_them() {
    let roomy =
        ["--memory", "1G", "--max-total-memory", "2G", "--timeout", "120s", "--fuel", "1000000000000"];
    let mut server = Server::start(&roomy);
    for hostile in PROGRAMS {
        if let Some(answer) = hostile.answer {
            assert_eq!(server.text(hostile.program), answer, "{}", hostile.program);
        }
    }
}

/// The same programs, all at once.
#[test]
fn programs_side_by_side() {
    let mut server = Server::start(&["--response-profile", "structured"]);
    let requests: Vec<(u64, &Hostile)> =
        PROGRAMS.iter().map(|hostile| (server.begin_program(hostile.program), hostile)).collect();
    let mut wrong = Vec::new();
    for _ in &requests {
        let answer = server.receive();
        let (_, hostile) = requests.iter().find(|(id, _)| answer["id"] == *id).expect("one of ours");
        wrong.extend(judge(hostile, &answer["result"]));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(server.run("(+ 1 2)")["structuredContent"]["result"], "3");
}

const MEGABYTES_100: &str =
    "(let [r (tool/call {:server \"probe\" :tool \"flood\" :args {:bytes 100000000}})]
       (if (:ok r) (count (:value r)) [(:reason r) (:message r)]))";

/// An upstream answer of 100 MB exceeds the default cap: it is refused before it is parsed.
#[test]
fn an_upstream_answer_beyond_the_cap() {
    let config = Upstreams::probe().write();
    let mut server = Server::start(&config.flags(&["--timeout", "120s", "--upstream-call-timeout", "120s"]));
    let text = server.text(MEGABYTES_100);
    assert!(
        text.starts_with("[:response_too_large ") && text.contains("max_upstream_response_bytes"),
        "{text}"
    );
    let next = "(:value (tool/call {:server \"probe\" :tool \"echo\" :args {:v \"next\"}}))";
    assert_eq!(server.text(next), "\"next\"", "the connection is still usable");
    assert_eq!(server.text("(+ 1 2)"), "3");
}

/// A cap of 200 MB admits the answer. It becomes a value if the program has memory for it, else a memory error.
#[test]
fn an_upstream_answer_within_a_large_cap() {
    let config = Upstreams::probe().write();
    for (memory, expected) in [("1G", "100000000"), ("50M", "memory_exceeded")] {
        let flags = [
            ["--timeout", "120s"],
            ["--upstream-call-timeout", "120s"],
            ["--max-upstream-response-bytes", "200M"],
            ["--memory", memory],
        ]
        .concat();
        let mut server = Server::start(&config.flags(&flags));
        let result = server.run(MEGABYTES_100);
        let text = text_of(&result);
        assert!(
            text.contains(expected) || (memory == "50M" && text.contains("memory_limit")),
            "{memory}: {text}"
        );
        assert_eq!(server.text("(+ 1 2)"), "3");
    }
}

/// Malformed frames get the protocol's errors, and the server goes on.
#[test]
fn malformed_frames() {
    let mut server = Server::start(&[]);
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    for (frame, code) in [
        ("nonsense", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1", -32700),
        ("[]", -32600),
        ("{}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32600),
        (deep.as_str(), -32700),
    ] {
        server.send_line(frame);
        let answer = server.receive();
        let shown: String = frame.chars().take(60).collect();
        let got = answer["error"]["code"].as_i64();
        // Deeply nested JSON may count as a parse error or as an invalid request.
        assert!(got == Some(code) || (frame.len() > 1_000 && got == Some(-32600)), "{shown}: {answer}");
        assert_eq!(answer["id"], Value::Null, "{shown}: {answer}");
    }
    assert_eq!(server.request("no/such", json!({}))["error"]["code"], -32601);
    assert_eq!(server.text("(+ 1 2)"), "3");
}
