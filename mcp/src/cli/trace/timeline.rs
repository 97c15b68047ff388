//! Draws a trace as text with a timeline of its upstream calls.

use ptc_base::secrets::{Cut, shortened};
use ptc_server::console::Style;
use ptc_server::drawing::trace::{Trace, TraceCall, numbers};
use ptc_server::drawing::units::{bytes, time};
use ptc_server::redact::visible_line;
use std::borrow::Cow;
use std::fmt::Write as _;

/// Columns of names and numbers around the bars.
const NAME: usize = 26;
const NUMBERS: usize = 21;

/// Fewest columns of the bars.
const FEWEST: usize = 20;

/// Most lines of a shown text.
const MOST_LINES: usize = 12;

/// Draws a trace in `width` columns.
pub(super) fn render(trace: &Trace, width: usize, style: Style) -> String {
    let mut out = String::new();
    let status = match (trace.is_error, &trace.reason) {
        (false, _) => style.green("ok"),
        (true, Some(reason)) => style.red(reason),
        (true, None) => style.red("error"),
    };
    let head = format!("{}  {status}  {}", style.bold(&visible_line(&trace.tool)), time(trace.micros));
    let of_request = match trace.request_id.as_str() {
        "" => String::new(),
        id => style.dim(&format!("   {}  request {}", trace.begun, visible_line(id))),
    };
    let _ = writeln!(out, "{head}{of_request}");
    let _ = writeln!(out, "{}", numbers(trace).join("   "));
    if let Some(message) = &trace.message {
        let _ = writeln!(out, "{}", style.red(&visible_line(message)));
    }
    section(&mut out, "program", trace.program.text(), style);
    section(&mut out, "context", trace.context.text(), style);
    if !trace.calls().is_empty() {
        chart(&mut out, trace, width, style);
    }
    section(&mut out, "prints", Some(trace.prints.join("\n")).filter(|lines| !lines.is_empty()), style);
    section(&mut out, "answer", trace.answer.text(), style);
    out
}

fn section(out: &mut String, title: &str, text: Option<String>, style: Style) {
    let Some(text) = text else { return };
    let _ = writeln!(out, "\n{}", style.bold(title));
    let lines: Vec<&str> = text.lines().collect();
    for line in lines.iter().take(MOST_LINES) {
        let _ = writeln!(out, "  {}", visible_line(line));
    }
    if lines.len() > MOST_LINES {
        let _ = writeln!(out, "  {}", style.dim(&format!("… {} more lines", lines.len() - MOST_LINES)));
    }
}

fn chart(out: &mut String, trace: &Trace, width: usize, style: Style) {
    let columns = width.saturating_sub(NAME + NUMBERS + 2).max(FEWEST);
    let all = trace.micros.max(1);
    let offset = trace.run.as_ref().map_or(0, |run| run.begun);
    let (middle, end) = (time(all / 2), time(all));
    let half = columns / 2;
    let _ = writeln!(
        out,
        "\n{}{}",
        style.bold(&format!("{:<NAME$}", "upstream calls")),
        style.dim(&format!("{:<half$}{middle:<rest$}{end}", "0", rest = columns - half))
    );
    for (at, call) in trace.calls().iter().enumerate() {
        let (first, last) = cells(call, offset, all, columns);
        let bar: String = (0..columns)
            .map(|cell| match (cell >= first && cell < last, &call.fault) {
                (false, _) => '·',
                (true, None) => '█',
                (true, Some(_)) => '▒',
            })
            .collect();
        let (before, rest) = split_at_char(&bar, first);
        let (bar, after) = split_at_char(rest, last - first);
        let bar = match &call.fault {
            None => style.cyan(bar),
            Some(_) => style.red(bar),
        };
        let said = match (&call.fault, call.bytes) {
            (Some((reason, _)), _) => style.red(&visible_line(reason)),
            (None, Some(size)) => format!("{:>9}", bytes(size)),
            (None, None) => String::new(),
        };
        let name = format!("{:>3} {}", at + 1, visible_line(&call.name));
        let name = within(&name, NAME - 1);
        let line = format!(
            "{name:<NAME$}{}{bar}{} {:>8}  {said}",
            style.dim(before),
            style.dim(after),
            time(call.micros)
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// The columns of a call's bar, at least one: the first, and the one after the last.
fn cells(call: &TraceCall, offset: u64, all: u64, columns: usize) -> (usize, usize) {
    let place = |micros: u64| (micros as f64 / all as f64 * columns as f64).min(columns as f64);
    let begun = offset + call.begun;
    let first = (place(begun).floor() as usize).min(columns - 1);
    let last = (place(begun + call.micros).ceil() as usize).clamp(first + 1, columns);
    (first, last)
}

fn split_at_char(text: &str, count: usize) -> (&str, &str) {
    let end = text.char_indices().nth(count).map_or(text.len(), |(end, _)| end);
    text.split_at(end)
}

/// Cuts a text to this many columns.
fn within(text: &str, most: usize) -> Cow<'_, str> {
    match text.chars().count() > most {
        true => shortened(text, Cut::Chars(most - 1)),
        false => Cow::Borrowed(text),
    }
}
