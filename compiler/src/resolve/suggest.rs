//! Hints for names that mean nothing: the nearest known name, or the PTC-Lisp way to what a Clojure name
//! does.

use super::Resolver;
use crate::diagnostic::Diagnostic;
use crate::names::Name;
use crate::syntax::Special;
use ptc_vm::builtins::{self, Category};
use ptc_vm::{Reason, Span};

/// Names of Clojure that this language does not have, and what to write instead.
const ABSENT: &[(&[&str], &str)] = &[
    (
        &[
            "atom",
            "swap!",
            "reset!",
            "deref",
            "ref",
            "volatile!",
            "vswap!",
            "agent",
            "send",
            "binding",
            "set!",
        ],
        "There is no mutable state; carry values through `loop`/`recur` or `reduce`.",
    ),
    (
        &["try", "catch", "finally", "throw", "ex-info", "ex-message", "ex-data"],
        "There are no exceptions; tool results carry `:ok`, test it, and end early with `(fail value)`.",
    ),
    (
        &["require", "use", "import", "ns", "in-ns"],
        "Everything is loaded already; use names like `str/join` directly.",
    ),
    (&["while"], "Use `loop` and `recur`."),
    (&["declare"], "Write `defn`s in the order of use."),
    (&["lazy-seq", "lazy-cat"], "Sequences are eager; use `iterate`, `loop`, `reduce` or `range`."),
    (
        &["future", "promise", "delay", "deliver", "thread", "go"],
        "Use `pmap` or `pcalls` to overlap tool calls.",
    ),
    (
        &["print", "pr", "printf", "newline", "print-str", "with-out-str", "tap>"],
        "Use `println`; format with `str` or `format`.",
    ),
    (
        &["rand", "rand-int", "rand-nth", "shuffle", "uuid", "random-uuid"],
        "Programs are deterministic; pass random values in.",
    ),
    (&["slurp", "spit", "line-seq", "read-line"], "There is no file access; call a tool."),
    (&["read-string", "eval", "load-string", "macroexpand", "defmacro", "gensym"], "Code is not data here."),
    (
        &["sorted-map-by", "sorted-set-by"],
        "Maps and sets are always in key order; use `sort-by` for another.",
    ),
    (&["assert"], "Use (when-not test (fail message))."),
    (&["trampoline"], "Call the function itself: recursion is limited by memory only."),
    (&["identical?"], "Use `=`."),
    (&["symbol", "with-meta", "vary-meta"], "Use keywords and strings; values carry no metadata."),
    (
        &["volatile!", "vreset!"],
        "There is no mutable state; carry values through `loop`/`recur` or `reduce`.",
    ),
    (&["defrecord", "deftype", "defprotocol", "defmulti", "defmethod"], "Use maps and functions."),
    (
        &["assoc!", "conj!", "dissoc!", "transient", "persistent!"],
        "Use `assoc` and `conj`; they update in place when they can.",
    ),
    (&["time"], "Use (System/currentTimeMillis)."),
    (&["data"], "Read the context with `data/key`."),
    (&["tool"], "Call tools with (tool/call {:server \"s\" :tool \"t\" :args {}})."),
];

/// A name that nothing defines.
#[derive(Debug)]
pub(crate) struct Unbound {
    name: Name,
    span: Span,
    hint: Option<String>,
}

/// Unbound names that are reported.
const MAX_UNBOUND: usize = 20;

impl<'a> Resolver<'a, '_> {
    /// Records an unbound name; its hint looks at the names in scope here.
    pub(crate) fn note_unbound(&mut self, name: Name, span: Span) {
        if self.unbound.len() < MAX_UNBOUND && !self.unbound.iter().any(|unbound| unbound.name == name) {
            let hint = self.hint(name);
            self.unbound.push(Unbound { name, span, hint });
        }
    }

    /// One error for each unbound name, in order of appearance.
    pub(crate) fn take_unbound(&mut self) -> impl Iterator<Item = Diagnostic> {
        let error = |unbound: &Unbound| {
            let message = format!("Undefined variable: {}", self.names.text(unbound.name));
            let mut error = Diagnostic::error(Reason::UnboundVar, unbound.span, message);
            error.hints.extend(unbound.hint.clone());
            error
        };
        let errors: Vec<Diagnostic> = self.unbound.iter().map(error).collect();
        errors.into_iter()
    }

    fn hint(&self, name: Name) -> Option<String> {
        let text = self.names.text(name);
        if self.globals.is_definable(name) {
            return Some(format!(
                "`{text}` is defined by a `def` that does not run before this on every way; define it earlier, at \
                 the top level."
            ));
        }
        if Special::lookup(text).is_some() {
            return Some(format!("'{text}' is a special form, use ({text} ...) with parentheses"));
        }
        if let Some((_, advice)) = ABSENT.iter().find(|(absent, _)| absent.contains(&text)) {
            return Some(format!("Not available in PTC-Lisp. {advice}"));
        }
        let candidates = self.candidates();
        if text.contains('_') {
            let hyphens = text.replace('_', "-");
            if candidates.contains(&hyphens.as_str()) {
                return Some(format!("Use hyphens, not underscores: `{hyphens}`"));
            }
        }
        nearest(text, &candidates).map(|near| format!("Did you mean `{near}`?"))
    }

    /// Everything a name could have meant, in order.
    fn candidates(&self) -> Vec<&str> {
        let mut candidates: Vec<&str> = builtins::all()
            .filter(|(_, builtin)| !matches!(builtin.category, Category::Internal | Category::Json))
            .map(|(_, builtin)| builtin.name)
            .collect();
        candidates.extend(Special::NAMES);
        candidates.extend(self.externals.session.iter().map(|session| session.name));
        candidates.extend(self.globals.visible_names().map(|name| self.names.text(name)));
        candidates.extend(
            self.functions.iter().flat_map(|function| function.names()).map(|name| self.names.text(name)),
        );
        candidates.sort_unstable();
        candidates.dedup();
        candidates
    }
}

/// The candidate nearest to a word, if any is near: one change for short words, two for longer ones.
pub(crate) fn nearest<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let allowed = match word.len() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    candidates
        .iter()
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= allowed)
        .map(|candidate| (distance(word.as_bytes(), candidate.as_bytes()), *candidate))
        .filter(|(distance, _)| *distance > 0 && *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edit distance where swapping neighbours is one change. Names are short, so the square table is small.
fn distance(a: &[u8], b: &[u8]) -> usize {
    const LONGEST: usize = 64;
    if a.len() > LONGEST || b.len() > LONGEST {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (above[j] + 1).min(row[j - 1] + 1).min(above[j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}
