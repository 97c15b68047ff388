//! Golden programs: `golden/<name>.out` holds the disassembly and warnings, or the rendered errors, of
//! `golden/<name>.clj`. Regenerate with `PTC_BLESS=1 cargo test -p ptc-compiler --test compiler golden`.

use ptc_compiler::diagnostic::{Palette, Report};
use ptc_compiler::{CompileOptions, Diagnostic, Externals, compile};
use std::path::Path;

fn rendered(source: &str, findings: &[Diagnostic]) -> String {
    let text = |finding| Report::from_diagnostic(finding, source).text("program", Palette::PLAIN);
    findings.iter().map(|finding| format!("{}\n", text(finding))).collect()
}

fn outcome(source: &str) -> String {
    match compile(source, &Externals::default(), &CompileOptions::default()) {
        Ok(compiled) => {
            let warnings = rendered(source, &compiled.warnings);
            let separator = if warnings.is_empty() { "" } else { "\nwarnings\n" };
            format!("{}{separator}{warnings}", compiled.program.disassemble())
        }
        Err(errors) => rendered(source, &errors),
    }
}

#[test]
fn golden_programs_compile_to_the_recorded_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut sources: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder of golden programs exists")
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "clj"))
        .collect();
    sources.sort();
    let mut different = Vec::new();
    for path in sources {
        let source = std::fs::read_to_string(&path).expect("a readable program");
        let actual = outcome(&source);
        let recorded = path.with_extension("out");
        if std::env::var_os("PTC_BLESS").is_some() {
            std::fs::write(&recorded, &actual).expect("a writable record");
        } else if std::fs::read_to_string(&recorded).unwrap_or_default() != actual {
            different.push(format!("{}\n{actual}", path.display()));
        }
    }
    assert!(different.is_empty(), "PTC_BLESS=1 records these:\n{}", different.join("\n"));
}
