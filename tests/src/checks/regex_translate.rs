//! Checks the regular expressions against the `regex` crate on arbitrary patterns and texts.

use ptc_compiler::{CompileOptions, Externals};
use ptc_regex::{check_pattern, translated};
use ptc_vm::bytecode::Program;
use ptc_vm::{Budget, Exit, Isolate};
use std::sync::{Arc, LazyLock};

/// Uses a pattern in every function that takes one, and checks that the results agree.
const PROGRAM: &str = r"
(let [p (re-pattern data/pattern)
      t data/text
      text-of (fn [m] (if (vector? m) (first m) m))
      all (re-seq p t)
      one (re-find p t)
      whole (re-matches p t)]
  (split t p)
  (replace t p (fn [m] (str (text-of m))))
  (cond
    (not= one (first all)) [:first-differs one all]
    (and (some? whole) (not= (text-of whole) t)) [:whole-is-a-part whole]
    (not (every? (fn [m] (includes? t (text-of m))) all)) [:no-part all]
    (not= (replace t p (fn [m] (text-of m))) t) [:identity-changes all]
    :else (mapv text-of all)))";

static COMPILED: LazyLock<Arc<Program>> = LazyLock::new(|| {
    let compiled = ptc_compiler::compile(PROGRAM, &Externals::default(), &CompileOptions::default());
    compiled.unwrap_or_else(|errors| panic!("{errors:?}")).program
});

/// The input is a pattern, a newline, and a text to search. Any pattern is refused or works; a pattern that means the
/// same in both dialects finds the same as the `regex` crate.
pub fn regex_translate(data: &[u8]) {
    let Ok(input) = std::str::from_utf8(data) else { return };
    let (pattern, text) = input.split_once('\n').unwrap_or((input, "a1 b22-\tXé\r\n_ü"));
    let (engine_pattern, backtracking) = translated(pattern);
    if check_pattern(pattern).is_err() {
        return;
    }
    if is_common(pattern) && !backtracking {
        let own = regex::RegexBuilder::new(pattern).size_limit(2 << 20).build();
        assert!(own.is_ok(), "the engine refuses {pattern:?}, but not {engine_pattern:?}");
    }
    let found = search(pattern, text);
    if is_common(pattern)
        && !backtracking
        && let (Ok(own), Some(found)) = (regex::Regex::new(pattern), found)
    {
        let expected = texts(&own, text);
        assert_eq!(found, format!("{expected:?}"), "{pattern:?} on {text:?}");
    }
}

/// The texts of all matches as Java finds them: an empty match may follow another match at once.
fn texts<'t>(regex: &regex::Regex, text: &'t str) -> Vec<&'t str> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at <= text.len()
        && let Some(next) = regex.find_at(text, at)
    {
        found.push(next.as_str());
        let passed = text[next.end()..].chars().next().map_or(1, char::len_utf8);
        at = next.end() + if next.is_empty() { passed } else { 0 };
    }
    found
}

/// True for patterns that mean the same in both dialects.
fn is_common(pattern: &str) -> bool {
    pattern.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"()|*?.^$ ".contains(&byte))
        && !pattern.contains("(?")
}

/// The texts of all matches, as `{:?}` of a slice prints them. `None`: the program hit a limit.
fn search(pattern: &str, text: &str) -> Option<String> {
    let options = Budget { memory_bytes: 64 << 20, fuel: 2_000_000, ..Budget::default() };
    let mut isolate = Isolate::new(options);
    let context = serde_json::json!({"pattern": pattern, "text": text}).to_string();
    let unit = isolate.set_context(&context).and_then(|()| isolate.load(COMPILED.clone()));
    isolate.start(unit.unwrap_or_else(|fault| panic!("{fault:?}")));
    let found = loop {
        match isolate.run(100_000) {
            Exit::SliceEnd => {}
            Exit::Done => {
                break isolate.result(|cx, value| {
                    let items = match value {
                        ptc_vm::Value::Vector(node) => node.iter().collect::<Vec<_>>(),
                        _ => Vec::new(),
                    };
                    assert!(
                        !matches!(items.first(), Some(ptc_vm::Value::Keyword(_))),
                        "{pattern:?} on {text:?}: {:?}",
                        ptc_vm::print::pr_str(cx, value, 1_000)
                    );
                    let texts: Vec<&str> = items.iter().filter_map(ptc_vm::Value::as_str).collect();
                    Some(format!("{texts:?}"))
                });
            }
            Exit::Fault(_) => break None,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(isolate.close(), 0, "bytes left behind by {pattern:?} on {text:?}");
    found
}
