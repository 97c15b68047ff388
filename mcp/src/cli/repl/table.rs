//! Formats a result that is a list of maps as a text table, for the REPL command `:table`.

use ptc_base::secrets::{Cut, shortened};
use serde_json::Value;

/// Most characters of a cell.
const CELL: usize = 40;

/// Most rows.
const MOST_ROWS: usize = 100;

/// The table; `None` for anything but a list of maps.
pub(super) fn table(value: &Value) -> Option<String> {
    let rows: Vec<_> = value.as_array()?.iter().map(Value::as_object).collect::<Option<_>>()?;
    let mut columns: Vec<&String> = Vec::new();
    for row in &rows {
        columns.extend(row.keys().filter(|key| !columns.contains(key)).collect::<Vec<_>>());
    }
    if columns.is_empty() {
        return None;
    }
    let cell = |value: Option<&Value>| {
        let text = match value {
            None => String::new(),
            Some(Value::String(text)) => text.replace(['\n', '\t'], " "),
            Some(other) => other.to_string(),
        };
        match text.chars().count() > CELL {
            true => shortened(&text, Cut::Chars(CELL - 1)).into_owned(),
            false => text,
        }
    };
    let mut lines: Vec<Vec<String>> = vec![columns.iter().map(|name| name.to_string()).collect()];
    lines.extend(
        rows.iter().take(MOST_ROWS).map(|row| columns.iter().map(|key| cell(row.get(*key))).collect()),
    );
    let widths: Vec<usize> = (0..columns.len())
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text: String = lines
        .iter()
        .map(|line| {
            let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        })
        .collect();
    if rows.len() > MOST_ROWS {
        text.push_str(&format!("… and {} more rows\n", rows.len() - MOST_ROWS));
    }
    Some(text)
}
