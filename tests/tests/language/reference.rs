//! The reference of the language is complete, true, and the same in `docs/language.md`.

use ptc_compiler::reference::{Entry, EntryKind, entries, find, namespaces};
use ptc_tests::binary::{batch, batch_line};
use ptc_tests::upstreams::Upstreams;
use ptc_tests::workspace;
use std::fmt::Write;

/// The namespaces in the order of the document, with an introduction for each.
const ABOUT: &[(&str, &str)] = &[
    ("clojure.core", "Special forms and the functions on sequences, maps, functions and values."),
    ("clojure.string", "Strings. Also as `str/…` and `string/…`, and most by plain name."),
    ("clojure.set", "Sets, and sets of maps as relations. Also as `set/…`, and most by plain name."),
    ("clojure.walk", "Nested collections. Also as `walk/…` and by plain name."),
    ("regex", "Regular expressions, by plain name."),
    ("Math", "Numbers and bits. Plain names work too: `(sqrt 16)`."),
    ("json", "JSON text, by qualified name only."),
    ("java", "Methods of strings and dates, parsers and constants, as in Java."),
    (
        "tool",
        "Tools of the upstream servers. In the examples, `probe` is a server whose tool `echo` gives its argument `v` back.",
    ),
    ("budget", "What the program may still use."),
    ("prompt", "Prompts of the upstream servers. The server `probe` has one, `greet`."),
    (
        "spill",
        "Results that are too large to be carried, kept by `:on-large :spill` for the program that made the call.",
    ),
    ("resource", "Resources of the upstream servers. The server `probe` has two."),
    ("data", "The program's input."),
];

#[test]
fn every_example_gives_its_result() {
    let config = Upstreams::probe().write();
    let examples: Vec<_> = entries()
        .iter()
        .flat_map(|entry| entry.examples.iter().map(move |example| (entry, example)))
        .collect();
    let lines: String =
        examples.iter().map(|(entry, example)| batch_line(entry.name, example.program)).collect();
    let answers = batch(&config.flags(&["--timeout", "60s"]), &lines);
    assert_eq!(answers.len(), examples.len());
    let wrong: Vec<String> = examples
        .iter()
        .zip(&answers)
        .filter(|((_, example), answer)| answer["ok"] != true || answer["value"] != example.result)
        .map(|((_, example), answer)| format!("{} => {} but: {answer}", example.program, example.result))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The names that every PTC-Lisp has.
fn required() -> Vec<String> {
    let path = workspace().join("tests/language/names.txt");
    let text = std::fs::read_to_string(path).expect("the list of names");
    text.lines().filter(|line| !line.starts_with("# ")).map(str::to_owned).collect()
}

#[test]
fn all_324_names_are_there_with_documentation_and_example() {
    let required = required();
    assert_eq!(required.len(), 324);
    let complete = |name: &String| {
        let found = find(name);
        !found.is_empty()
            && found.iter().all(|entry| {
                !entry.signature.is_empty() && !entry.doc.is_empty() && !entry.examples.is_empty()
            })
    };
    let missing: Vec<&String> = required.iter().filter(|name| !complete(name)).collect();
    println!("{} of {} present", required.len() - missing.len(), required.len());
    assert!(missing.is_empty(), "{missing:?}");
}

/// The list contains what the specification names, if its folder exists next to this repository.
#[test]
#[cfg_attr(not(specification), ignore = "no specification beside the repository")]
fn the_list_of_names_is_that_of_the_specification() {
    let path = workspace().join("../shared/spec/language.md");
    let specification = std::fs::read_to_string(&path).expect("the specification");
    assert!(specification.contains("**324 documented functions and special forms**"));
    // The specification abbreviates families: `+' -' *' inc' dec'`, `bit ops`,
    // `Double/POSITIVE_INFINITY NEGATIVE_INFINITY`.
    let unnamed: Vec<String> = required()
        .into_iter()
        .filter(|name| !name.starts_with("bit-"))
        .filter(|name| {
            let short = name
                .rsplit_once('/')
                .filter(|(space, _)| !space.is_empty())
                .map_or(&**name, |(_, short)| short);
            !specification.contains(short)
        })
        .collect();
    assert!(unnamed.is_empty(), "{unnamed:?}");
}

fn heading(entry: &Entry) -> String {
    let kind = match entry.kind {
        EntryKind::Function => String::new(),
        kind => format!(" ({})", kind.label()),
    };
    format!("#### `{}`{kind}", entry.name)
}

/// The text of `docs/language.md`.
fn render() -> String {
    let mut text = String::from(
        "# PTC-Lisp: special forms and functions\n\n\
         Made from the tables of the compiler and the VM; every example is executed by a test. `(doc name)` shows the \
         same in a program.\nA signature marks an optional argument with `?` and any number of the one before with \
         `…`. The [guide](guide.md) says how the language differs from Clojure.\n",
    );
    for namespace in namespaces() {
        let members: Vec<&Entry> = entries().iter().filter(|entry| entry.namespace == namespace).collect();
        let about =
            ABOUT.iter().find(|(known, _)| *known == namespace).expect("a line about each namespace").1;
        let _ = writeln!(text, "\n## {namespace}\n\n{about} {} names.\n", members.len());
        let names: Vec<String> = members.iter().map(|entry| format!("`{}`", entry.name)).collect();
        let _ = writeln!(text, "{}", names.join(" "));
        for entry in members {
            let _ = writeln!(text, "\n{}\n", heading(entry));
            let _ = writeln!(text, "`{}`\n\n{}\n\n```clojure", entry.signature, entry.doc);
            for example in &entry.examples {
                let _ = writeln!(text, "{}\n;=> {}", example.program, example.result);
            }
            let _ = writeln!(text, "```");
        }
    }
    text
}

/// `PTC_BLESS=1 cargo test -p ptc-tests --test language reference` rewrites the file.
#[test]
fn the_document_is_up_to_date() {
    let unnamed: Vec<_> =
        namespaces().into_iter().filter(|space| !ABOUT.iter().any(|(known, _)| known == space)).collect();
    assert!(unnamed.is_empty(), "nothing says what belongs to {unnamed:?}");
    let path = workspace().join("docs/language.md");
    let text = render();
    if std::env::var_os("PTC_BLESS").is_some() {
        std::fs::write(&path, &text).expect("docs/language.md");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "docs/language.md is not what the tables say; PTC_BLESS=1 writes it");
}

/// The programs of a document, each up to the line with its result.
fn programs(text: &str) -> Vec<(String, String)> {
    let (mut found, mut program, mut inside) = (Vec::new(), String::new(), false);
    for line in text.lines() {
        match line.strip_prefix(";=> ") {
            _ if line.starts_with("```") => inside = line == "```clojure",
            Some(result) if inside => found.push((std::mem::take(&mut program), result.to_owned())),
            _ if inside => program = program + line + "\n",
            _ => {}
        }
    }
    assert!(program.is_empty(), "a program without its result: {program}");
    found
}

#[test]
fn the_guide_is_true() {
    let text = std::fs::read_to_string(workspace().join("docs/guide.md")).expect("the guide");
    let programs = programs(&text);
    assert!(programs.len() >= 10);
    let config = Upstreams::probe().write();
    let lines: String = programs.iter().map(|(program, _)| batch_line("guide", program)).collect();
    let answers = batch(&config.flags(&["--timeout", "60s"]), &lines);
    assert_eq!(answers.len(), programs.len());
    for ((program, result), answer) in programs.iter().zip(&answers) {
        assert_eq!(answer["value"].as_str(), Some(result.as_str()), "{program}{answer}");
    }
}
