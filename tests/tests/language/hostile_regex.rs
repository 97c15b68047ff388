//! Hostile patterns and texts: each search, match, split, replacement and compilation ends within the limits.

use ptc_tests::serve::Server;
use serde_json::Value;
use std::time::{Duration, Instant};

/// The limits of the programs.
const LIMITS: &[&str] = &["--response-profile", "structured", "--memory", "10M", "--timeout", "200ms"];
const TIMEOUT: Duration = Duration::from_millis(200);

/// How late an answer may be, in the best of several attempts, so that other load does not count.
const LATE: Duration = Duration::from_millis(50);
const ATTEMPTS: usize = 3;

/// Error kinds of a program that hit a limit; an answer is fine as well.
const LIMITED: &[&str] = &["timeout", "fuel_exceeded", "memory_exceeded"];

/// The same for a program with a pattern that takes too many steps.
const COMPLEX: &[&str] = &["timeout", "fuel_exceeded", "memory_exceeded", "type_error"];

/// `double` makes long texts of short ones; `uneven` is a text without a period.
const PRELUDE: &str = r#"
(defn double [s times] (reduce (fn [s _] (str s s)) s (range times)))
(defn uneven [times] (first (reduce (fn [[a b] _] [(str a b) (str b a)]) ["a" "b"] (range times))))
"#;

/// Runs each program: it ends in time, with an answer or one of these errors, and the server goes on.
fn all_end_in_time(programs: &[String], errors: &[&str]) {
    let mut server = Server::start(LIMITS);
    let mut wrong = Vec::new();
    for program in programs {
        let mut best = Duration::MAX;
        let mut result = Value::Null;
        for _ in 0..ATTEMPTS {
            let started = Instant::now();
            result = server.run(&format!("{PRELUDE}{program}"));
            best = best.min(started.elapsed());
            if best <= TIMEOUT + LATE {
                break;
            }
        }
        let kind = result["structuredContent"]["error_kind"].as_str().unwrap_or_default();
        if best > TIMEOUT + LATE || result["isError"] == true && !errors.contains(&kind) {
            let (program, shown): (String, String) =
                (program.chars().take(200).collect(), result.to_string().chars().take(300).collect());
            wrong.push(format!("{program}\n    {best:?} {shown}"));
        }
        assert_eq!(server.run("(+ 1 2)")["structuredContent"]["result"], "3", "after {:.200}", program);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(server.end(), Some(0));
}

fn searches(patterns: &[&str], texts: &[&str]) -> Vec<String> {
    let uses = ["(re-find #\"P\" T)", "(count (re-seq #\"P\" T))", "(re-matches #\"P\" T)"];
    let mut programs = Vec::new();
    for pattern in patterns {
        for text in texts {
            programs.extend(uses.map(|using| using.replace('P', pattern).replace('T', text)));
        }
    }
    programs
}

#[test]
fn automata_that_never_end_being_built() {
    let patterns = [
        "[ab]*a[ab]{2000}c",
        "(?:a|b)*a(?:a|b){4000}c",
        ".*a.{500}b.{500}c",
        r"(?:\\w{240}){240}0",
        r"(?i)(?:a|b|\\pL)*a\\pL{900}!",
        r"(?:[ab]?){3000}c",
    ];
    all_end_in_time(&searches(&patterns, &["(uneven 20)", "(uneven 12)"]), LIMITED);
}

#[test]
fn groups_of_long_matches() {
    let patterns = [
        r"((a)|(b))*c?",
        r"(((a|b)(a|b))*)*",
        r"(?:(a)(b)|(b)(a)|(.)(.))*",
        r"(\\w*)(\\w*)(\\w*)(\\w*)$",
        "()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()(.*)",
    ];
    all_end_in_time(&searches(&patterns, &["(uneven 20)"]), LIMITED);
}

#[test]
fn looking_around_again_and_again() {
    let patterns = [
        "(?:(?=.*x)a)+y",
        "(?=(?=(?=.*x).*x).*x)z",
        "(?:(?!.*x)[ab])+y",
        "(?<=(?:a|aa|b){100})c",
        "(?<!(?:a|b|ab){0,200})c",
        r"(?=(a|b|ab)*c)\\w",
        "(?:a?b?(?=.*(?=.*c)))*d",
    ];
    all_end_in_time(&searches(&patterns, &["(uneven 14)", "(double \"a\" 15)"]), COMPLEX);
}

#[test]
fn referring_back_and_not_backtracking() {
    let patterns = [
        r"(.*)(.*)(.*)\\1\\2\\3x",
        r"((a|b)*)*\\1c",
        r"(?:(a+)|(b+))+\\1\\2!",
        r"(?i)([ab]+)+\\1!",
        r"(?>(?>a*)*b*)*c",
        r"(?:a*+b*+)*+c",
        r"(a|aa)*\\1$!",
        r"(?:(a)?(?(1)b|a))*c",
        r"(?:(|a|b)*){200}\\1c",
    ];
    all_end_in_time(&searches(&patterns, &["(uneven 14)", "(double \"a\" 15)"]), COMPLEX);
}

#[test]
fn the_text_from_each_place_to_its_end() {
    let patterns =
        ["a(?:.*z)?", "a|b.*c", "(?:a|b.*c)+?", "(a|aa)*$", r"\\b\\w(?:\\w*!)?", "(?s)a??(?:.*c)?", ""];
    all_end_in_time(&searches(&patterns, &["(uneven 20)", "(double \"é a\" 17)"]), LIMITED);
}

#[test]
fn splitting_and_replacing() {
    let programs = [
        r#"(count (split (double "ab" 20) #"a(?:.*z)?"))"#,
        r#"(count (split (double "ab" 20) #""))"#,
        r#"(count (re-split #"(?:)" (double "é" 20)))"#,
        r#"(count (replace (double "ab" 20) #"a(?:.*z)?" "$0$0"))"#,
        r#"(count (replace (double "ab" 18) #"(a)(b)" (double "$1$2" 15)))"#,
        r#"(count (replace (double "ab" 18) #"" (double "$0" 20)))"#,
        r#"(count (replace "ab" #"(?<name>a)" (double "${name}" 18)))"#,
        r#"(count (replace-first (double "ab" 18) #"c|$" (double "\\$" 20)))"#,
        r#"(count (replace (double "ab" 20) #"a(?:.*z)?" (fn [m] (str m m))))"#,
        r#"(count (replace (double "a" 15) #"(?=.*b)|a" (fn [m] m)))"#,
    ];
    all_end_in_time(&programs.map(str::to_owned), LIMITED);
}

#[test]
fn compiling_patterns() {
    let literals = |count: usize, pattern: &str| {
        (0..count)
            .map(|at| format!("#\"{}\"", pattern.replace('N', &at.to_string())))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let made =
        |pattern: &str| format!("(loop [i 0] (do (re-find (re-pattern {pattern}) \"abc\") (recur (inc i))))");
    let programs = [
        format!("(count [{}])", literals(100, r"\\w{50}N0")),
        format!("(count [{}])", literals(2_000, r"(?i)\\pL\\PL[\\w\\W]N")),
        format!("(count [{}])", literals(300, r"(?:a{200}){200}N")),
        format!("(count [{}])", literals(40, &format!("(?i){}N", "[\u{1}-\u{10FFFE}]".repeat(30)))),
        made(r#"(str "(?:a{200}){250}" i)"#),
        made(r#"(str "(?i)" (double "\\pL\\PL" 4) i)"#),
        made(r#"(str "(?i)" (double "[\\w&&\\pL]" 4) i)"#),
        made(r#"(str "(?:" (double "(?:" 4) "a|" (double "){2}" 4) "){9}" i)"#),
        made(r#"(str "\\b\\w{" i "}\\b")"#),
    ];
    // Literals are compiled with the program, and compilation has reasons of its own.
    let compiling = ["compile_timeout", "compile_memory_exceeded"];
    let errors = [&["timeout", "fuel_exceeded", "memory_exceeded", "runtime_error"][..], &compiling].concat();
    all_end_in_time(&programs, &errors);
}

#[test]
fn more_patterns_than_are_kept() {
    let programs = [
        // Each text is long enough for the automaton.
        r#"(let [t (uneven 16)] (loop [i 0] (do (re-find (re-pattern (str "[ab]*a[ab]{" (mod i 40) "}c")) t) (recur (inc i)))))"#,
        r#"(let [t (uneven 16)] (mapv (fn [i] (let [p (re-pattern (str "[ab]*a[ab]{" i "}c"))] (re-find p t) p)) (range 1000)))"#,
        r#"(let [t (uneven 13)] (mapv (fn [i] (re-find (re-pattern (str "(?=(a|b)*c)" i)) t)) (range 10000)))"#,
    ];
    all_end_in_time(&programs.map(str::to_owned), COMPLEX);
}
