//! Draws a trace as one self-contained page of HTML, without scripts, other files or fonts.

use super::read::{Trace, TraceCall};
use super::timeline::numbers;
use super::units::{bytes, time};
use crate::redact::visible;
use std::fmt::Write as _;

/// Sizes of the drawing in its own units.
const WIDTH: f64 = 960.0;
const NAMES: f64 = 190.0;
const ROW: f64 = 22.0;
const TOP: f64 = 26.0;

/// Number of intervals of the axis.
const TICKS: u64 = 5;

const STYLE: &str = include_str!("page.css");

/// The page of a trace.
pub(super) fn render(trace: &Trace) -> String {
    let title = format!("{} · {}", trace.tool, trace.request_id);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n",
        escaped(&title)
    );
    head(&mut out, trace);
    section(&mut out, "Program", trace.program.text());
    section(&mut out, "Context", trace.context.text());
    if !trace.calls().is_empty() {
        out.push_str("<h2>Upstream calls</h2>\n");
        chart(&mut out, trace);
    }
    section(&mut out, "Prints", Some(trace.prints.join("\n")).filter(|lines| !lines.is_empty()));
    section(&mut out, "Answer", trace.answer.text());
    let _ = writeln!(out, "<footer>{}</footer>\n</body>\n</html>", escaped(&trace.file));
    out
}

fn head(out: &mut String, trace: &Trace) {
    let (class, word) = match (trace.is_error, trace.reason.as_deref()) {
        (false, _) => ("ok", "ok"),
        (true, reason) => ("error", reason.unwrap_or("error")),
    };
    let _ = writeln!(
        out,
        "<header><h1>{}</h1><span class=\"{class}\">{}</span><strong>{}</strong>\
         <time>{}</time><span class=\"quiet\">request {}</span></header>",
        escaped(&trace.tool),
        escaped(word),
        time(trace.micros),
        escaped(&trace.begun),
        escaped(&trace.request_id)
    );
    let items: String = numbers(trace).iter().map(|number| format!("<li>{}</li>", escaped(number))).collect();
    let _ = writeln!(out, "<ul class=\"numbers\">{items}</ul>");
    if let Some(message) = &trace.message {
        let _ = writeln!(out, "<p class=\"message\">{}</p>", escaped(message));
    }
}

fn section(out: &mut String, title: &str, text: Option<String>) {
    if let Some(text) = text {
        let _ = writeln!(out, "<h2>{title}</h2>\n<pre>{}</pre>", escaped(&text));
    }
}

fn chart(out: &mut String, trace: &Trace) {
    let calls = trace.calls();
    let all = trace.micros.max(1);
    let offset = trace.run.as_ref().map_or(0, |run| run.begun);
    let height = TOP + ROW * calls.len() as f64 + 6.0;
    let _ = writeln!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"When each upstream call ran\">"
    );
    for tick in 0..=TICKS {
        let x = place(all * tick / TICKS, all);
        let anchor = if tick == TICKS { "end" } else { "middle" };
        let _ = writeln!(
            out,
            "<line class=\"tick\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{height}\"/>\
             <text class=\"axis\" x=\"{x:.1}\" y=\"16\" text-anchor=\"{anchor}\">{}</text>",
            if tick == 0 { "0".to_owned() } else { time(all * tick / TICKS) }
        );
    }
    for (at, call) in calls.iter().enumerate() {
        row(out, at, call, offset, all);
    }
    out.push_str("</svg>\n");
}

fn row(out: &mut String, at: usize, call: &TraceCall, offset: u64, all: u64) {
    let y = TOP + ROW * at as f64;
    let (begin, end) = (place(offset + call.begun, all), place(offset + call.begun + call.micros, all));
    let width = (end - begin).max(2.0);
    let (class, said) = match (&call.fault, call.bytes) {
        (Some((reason, _)), _) => ("bad", reason.clone()),
        (None, Some(size)) => ("good", bytes(size)),
        (None, None) => ("good", String::new()),
    };
    let note = format!("{} · {said}", time(call.micros));
    // To the right of the bar if there is room, otherwise to the left.
    let (x, anchor) = match begin + width + 130.0 < WIDTH {
        true => (begin + width + 6.0, "start"),
        false => (begin - 6.0, "end"),
    };
    let full = match &call.fault {
        Some((reason, error)) => format!("{} {reason}: {error}", call.name),
        None => format!("{} from {} on, {note}", call.name, time(call.begun)),
    };
    let base = y + ROW * 0.7;
    let _ = writeln!(
        out,
        "<g><title>{}</title><text x=\"0\" y=\"{base:.1}\">{} {}</text>\
         <rect class=\"{class}\" x=\"{begin:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" rx=\"3\"/>\
         <text class=\"note\" x=\"{x:.1}\" y=\"{base:.1}\" text-anchor=\"{anchor}\">{}</text></g>",
        escaped(&full),
        at + 1,
        escaped(&call.name),
        y + 4.0,
        ROW - 8.0,
        escaped(&note)
    );
}

/// The horizontal position of a moment.
fn place(micros: u64, all: u64) -> f64 {
    NAMES + (WIDTH - NAMES) * (micros as f64 / all as f64).min(1.0)
}

/// Escapes text for HTML.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}
