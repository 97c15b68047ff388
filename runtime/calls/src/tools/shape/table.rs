//! Detects tool results that are textual tables or lines of JSON, so that a program knows how to parse them.

use super::keys::is_heading;
use super::observe::Look;
use super::{Evidence, MOST_KEYS, MapShape, Member, Scalars, Shape};
use ptc_base::named_enum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Limit of examined lines.
const LINES: usize = 64;

/// Limit of the length of an examined line, in bytes.
const LINE_BYTES: usize = 64 << 10;

named_enum! {
    /// How a text holds rows.
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    pub(crate) enum TableForm {
        /// Comma-separated values (RFC 4180) with a heading.
        #[serde(rename = "csv")]
        Commas = "CSV",
        /// The same with semicolons.
        #[serde(rename = "semicolons")]
        Semicolons = "CSV with semicolons",
        /// The same with tabs.
        #[serde(rename = "tsv")]
        Tabs = "TSV",
        /// A table of Markdown.
        #[serde(rename = "markdown")]
        Markdown = "a Markdown table",
        /// A JSON value a line.
        #[serde(rename = "jsonl")]
        JsonLines = "JSON Lines",
    }
}

/// The form of a text that is a table as a whole, and the shape of its rows.
pub(super) fn table(text: &str, look: &Look<'_>) -> Option<(TableForm, Shape)> {
    let lines: Vec<&str> = text.trim_end().lines().take(LINES).collect();
    if lines.len() < 2 || lines.iter().any(|line| line.len() > LINE_BYTES) {
        return None;
    }
    if lines[0].starts_with(['{', '[']) {
        return json_lines(&lines, look).map(|row| (TableForm::JsonLines, row));
    }
    if lines[0].trim_start().starts_with('|') {
        return markdown(&lines, look.evidence).map(|row| (TableForm::Markdown, row));
    }
    let separators = [(TableForm::Tabs, '\t'), (TableForm::Commas, ','), (TableForm::Semicolons, ';')];
    separators
        .into_iter()
        .find_map(|(form, separator)| Some((form, separated(&lines, separator, look.evidence)?)))
}

fn json_lines(lines: &[&str], look: &Look<'_>) -> Option<Shape> {
    // The last line may be cut by the limit of lines, never inside.
    let rows = lines.iter().filter(|line| !line.trim().is_empty());
    rows.map(|line| look.json(line.as_bytes())).try_fold(Shape::default(), |all, row| Some(all.join(row?)))
}

/// `| a | b |`, a rule, and rows.
fn markdown(lines: &[&str], evidence: Evidence) -> Option<Shape> {
    let cells = |line: &&str| -> Vec<String> {
        line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let is_rule = |cell: &String| !cell.is_empty() && cell.chars().all(|mark| matches!(mark, '-' | ':'));
    let (heading, rule) = (cells(lines.first()?), cells(lines.get(1)?));
    let is_table = rule.iter().all(is_rule)
        && rule.len() == heading.len()
        && lines.iter().all(|line| line.trim_start().starts_with('|'));
    is_table.then(|| row(heading, evidence))
}

/// Every line has as many cells as the heading, and more than one.
fn separated(lines: &[&str], separator: char, evidence: Evidence) -> Option<Shape> {
    let heading = cells(lines.first()?, separator)?;
    let is_row = |line: &&&str| cells(line, separator).is_some_and(|cells| cells.len() == heading.len());
    let is_table = heading.len() > 1 && lines.iter().skip(1).filter(is_row).count() == lines.len() - 1;
    // Prose with commas has no heading of names.
    (is_table && heading.iter().all(|cell| is_heading(cell))).then(|| row(heading, evidence))
}

/// The cells of a line. `None` when a quoted cell does not end on it.
fn cells(line: &str, separator: char) -> Option<Vec<String>> {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    for character in line.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            character if character == separator && !is_quoted => cells.push(std::mem::take(&mut cell)),
            character => cell.push(character),
        }
    }
    cells.push(cell);
    (!is_quoted).then_some(cells)
}

/// The shape of a row with these columns. Headings that are no names are not stored.
fn row(heading: Vec<String>, evidence: Evidence) -> Shape {
    let cell = || Shape::scalar(Scalars::STRING);
    if heading.len() > MOST_KEYS || !heading.iter().all(|name| is_heading(name)) {
        return Shape::of_map(MapShape::Dictionary(cell()));
    }
    let member = |name| (name, Member { is_optional: false, shape: cell(), evidence });
    let members: BTreeMap<String, Member> = heading.into_iter().map(member).collect();
    Shape::of_map(MapShape::record(members))
}
