//! Compares a generated part of a document with what the tables of the code say, or rewrites it. Tests of other crates
//! include this file by its path.

#![allow(clippy::disallowed_methods, reason = "a test reads and writes a document of the repository")]

/// Tests of one binary that rewrite the same document wait for each other.
static REWRITING: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// The section `name` of `docs/FILE`, between `<!-- generated: NAME -->` and `<!-- end -->`, is `text`.
/// `PTC_BLESS=1` writes it.
pub(super) fn assert_section(file: &str, name: &str, text: &str) {
    let _rewriting = REWRITING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folders = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let path = folders.map(|folder| folder.join("docs").join(file)).find(|path| path.exists()).expect(file);
    let document =
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (before, rest) = document
        .split_once(&format!("<!-- generated: {name} -->\n"))
        .unwrap_or_else(|| panic!("{file} has no section {name}"));
    let (current, after) = rest.split_once("<!-- end -->").expect("the section ends");
    let wanted = format!("\n{}\n\n", text.trim_end());
    if std::env::var_os("PTC_BLESS").is_some() && current != wanted {
        let blessed = format!("{before}<!-- generated: {name} -->\n{wanted}<!-- end -->{after}");
        std::fs::write(&path, blessed).expect("the document");
        return;
    }
    assert!(
        current == wanted,
        "section {name} of docs/{file} is out of date: run this test with PTC_BLESS=1"
    );
}

/// A row of a table; bars inside cells are escaped.
pub(super) fn row(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// The head of a table.
pub(super) fn head(titles: &[&str]) -> String {
    format!("{}|{}\n", row(titles), "---|".repeat(titles.len()))
}
