//! Counts how many names of a list the language has, each with documentation and an example:
//!
//! ```sh
//! cargo run -p ptc-compiler --example language_names -- tests/language/names.txt
//! ```

use ptc_compiler::reference::{entries, find};

fn main() -> std::process::ExitCode {
    let path = std::env::args().nth(1).unwrap_or_else(|| "tests/language/names.txt".into());
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("cannot read {path}");
        return std::process::ExitCode::FAILURE;
    };
    let names: Vec<&str> = text.lines().filter(|line| !line.starts_with("# ")).collect();
    let is_complete = |name: &&&str| {
        let found = find(name);
        found.iter().any(|entry| !entry.doc.is_empty() && !entry.examples.is_empty())
    };
    let present = names.iter().filter(is_complete).count();
    for name in names.iter().filter(|name| !is_complete(name)) {
        println!("missing: {name}");
    }
    println!("{present} of {} present with documentation and example", names.len());
    let examples: usize = entries().iter().map(|entry| entry.examples.len()).sum();
    println!("{} names and {examples} examples in the reference", entries().len());
    if present == names.len() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
