//! Diagnostics for wrong programs as models write them. `diagnostics/<topic>.cases` holds programs after lines
//! `=== title`, which may end in `| flag=number …` for limits; `diagnostics/<topic>.out` holds the rendered errors.
//! Regenerate with `PTC_BLESS=1 cargo test -p ptc-runtime --test runtime diagnostics`.
//!
//! Every error must have a location in the source and a hint.
#![allow(clippy::disallowed_methods, reason = "tests write files as they need them")]

use crate::common;
use common::programs::{options, runtime};
use ptc_calls::limits::{LimitTable, Limits};
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::{Failure, Palette};
use ptc_engine::Runtime;
use ptc_vm::Reason;
use std::path::{Path, PathBuf};

/// The content of `data/…`.
const CONTEXT: &str = r#"{
    "orders": [{"id": 1, "total": 10.5, "user": "ada"}, {"id": 2, "total": null, "user": "bob"}],
    "user": {"name": "Ada", "tags": ["a", "b"]}, "n": 5, "text": "one two"
}"#;

/// Reasons that none of these programs raises: what raises them, and where that is tested.
const ELSEWHERE: &[(Reason, &str)] = &[
    (Reason::CompileTimeout, "a deadline: tests/hostile_source.rs"),
    (Reason::CompileMemoryExceeded, "a text that needs much: tests/hostile_source.rs"),
    (Reason::Cancelled, "a caller who gives up: tests/hostile_source.rs"),
    (Reason::ValidationError, "an output schema: mcp/tests/profiles.rs"),
    (Reason::ToolError, "a tool of a host: tests/host_tools.rs"),
    (Reason::ToolCallLimitExceeded, "tools of a host: tests/host_tools.rs"),
    (Reason::CompileError, "a defect, or a prelude: tests/preludes/compile.rs"),
    (Reason::MissingNamespace, "a prelude: tests/preludes/compile.rs"),
    (Reason::ReservedNamespace, "a prelude: tests/preludes/compile.rs"),
    (Reason::InvalidNamespace, "a prelude: tests/preludes/compile.rs"),
    (Reason::DuplicateRef, "a prelude: tests/preludes/compile.rs"),
    (Reason::InvalidVisibility, "a prelude: tests/preludes/compile.rs"),
    (Reason::InvalidRequires, "a prelude: tests/preludes/compile.rs"),
    (Reason::InvalidMetadata, "a prelude: tests/preludes/compile.rs"),
    (Reason::InvalidSignature, "a prelude: tests/preludes/compile.rs"),
    (Reason::QualifiedSelfReference, "a prelude: tests/preludes/compile.rs"),
    (Reason::PreludeAttachFailed, "a prelude: tests/preludes/attach.rs"),
    (Reason::AlwaysTrue, "a warning: compiler/tests/diagnostics.rs"),
    (Reason::ExecutionError, "a defect, so nothing that is known"),
];

struct Case {
    title: String,
    limits: Limits,
    program: String,
}

fn cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("=== ") {
            let (_, flags) = title.split_once('|').unwrap_or((title, ""));
            cases.push(Case { title: title.to_owned(), limits: limits(flags), program: String::new() });
        } else {
            let case = cases.last_mut().expect("a title comes first");
            case.program.push_str(line);
            case.program.push('\n');
        }
    }
    for case in &mut cases {
        case.program.truncate(case.program.trim_end().len());
    }
    cases
}

fn limits(flags: &str) -> Limits {
    let mut limits = options().limits;
    for flag in flags.split_whitespace() {
        let (name, value) = flag.split_once('=').expect("flag=number");
        let row = Limits::TABLE.iter().find(|row| row.flag == name).expect("a flag of the limits table");
        (row.set)(&mut limits, value.parse().expect("a number"));
    }
    limits
}

async fn failure(runtime: &Runtime, case: &Case) -> Result<Failure, String> {
    let context = Some(CONTEXT.to_owned());
    let options = RunOptions { context, strict_data: true, limits: case.limits, ..options() };
    match runtime.run(case.program.as_str(), options).await.result {
        Ok(answer) => Err(format!("{} answers {}", case.title, answer.text)),
        Err(failure) => Ok(failure),
    }
}

/// Missing requirements of an error: a location inside the program, a hint, no internals.
fn problems(case: &Case, failure: &Failure) -> Vec<String> {
    let mut problems = Vec::new();
    if failure.reports.first().is_none_or(|report| failure.reason != report.reason) {
        problems.push("the first report is not the failure".to_owned());
    }
    let lines: Vec<&str> = case.program.lines().collect();
    for report in &failure.reports {
        let message = &report.message;
        let is_inside = report.position().is_some_and(|start| {
            let line = lines.get(start.line as usize - 1);
            line.is_some_and(|line| (start.column as usize) <= line.chars().count())
        });
        if !is_inside {
            problems.push(format!("no place in the program: {message}"));
        }
        if !report.hints.iter().any(|hint| !hint.is_empty()) {
            problems.push(format!("no hint: {message}"));
        }
        problems.extend(
            report.hints.iter().filter(|hint| hint.chars().count() > 280).map(|hint| format!("long: {hint}")),
        );
        for internal in ["Error(", "internal", "Value::", "Some(", "%"] {
            if message.contains(internal) && !case.program.contains(internal) {
                problems.push(format!("internals leak: {message}"));
            }
        }
    }
    problems.iter().map(|problem| format!("{}: {problem}", case.title)).collect()
}

/// Masks long numbers: the size of values depends on their layout.
fn without_sizes(text: &str) -> String {
    let shorten = |word: &str| match word.len() > 3 && word.bytes().all(|byte| byte.is_ascii_digit()) {
        true => "N".to_owned(),
        false => word.to_owned(),
    };
    let line = |line: &str| line.split(' ').map(shorten).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn topics() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let entries = std::fs::read_dir(folder).expect("the folder of wrong programs exists");
    let paths = entries.map(|entry| entry.expect("a readable entry").path());
    let mut topics: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "cases")).collect();
    topics.sort();
    topics
}

#[tokio::test]
async fn wrong_programs_are_told_where_and_what_to_change() {
    let runtime = runtime().await;
    let (mut different, mut wrong, mut count) = (Vec::new(), Vec::new(), 0);
    let mut missing: Vec<Reason> = Reason::ALL.to_vec();
    missing.retain(|reason| ELSEWHERE.iter().all(|(elsewhere, _)| elsewhere != reason));
    for path in topics() {
        let mut actual = String::new();
        for case in cases(&std::fs::read_to_string(&path).expect("readable cases")) {
            let failure = match failure(&runtime, &case).await {
                Ok(failure) => failure,
                Err(answers) => {
                    wrong.push(answers);
                    continue;
                }
            };
            wrong.append(&mut problems(&case, &failure));
            missing.retain(|reason| failure.reason != *reason);
            let mut text = failure.text("program", Palette::PLAIN);
            if failure.reason == Reason::MemoryExceeded {
                text = without_sizes(&text);
            }
            actual.push_str(&format!("=== {}\n{}\n\n{text}\n\n", case.title, case.program));
            count += 1;
        }
        let recorded = path.with_extension("out");
        if std::env::var_os("PTC_BLESS").is_some() {
            std::fs::write(&recorded, &actual).expect("a writable record");
        } else if std::fs::read_to_string(&recorded).unwrap_or_default() != actual {
            different.push(format!("{}\n{actual}", recorded.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 120, "only {count} wrong programs");
    assert!(missing.is_empty(), "nothing here raises {missing:?}");
    assert!(different.is_empty(), "PTC_BLESS=1 records these:\n{}", different.join("\n"));
}
