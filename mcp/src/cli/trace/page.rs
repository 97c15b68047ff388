//! Renders the trace of one tool call (its program, upstream calls and answer) as a self-contained HTML page, without
//! scripts, other files or fonts.

use ptc_server::drawing::chart;
use ptc_server::drawing::html::escaped;
use ptc_server::drawing::trace::{Trace, numbers};
use ptc_server::drawing::units::time;
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");

/// The page of a trace.
pub(super) fn render(trace: &Trace) -> String {
    let title = format!("{} · {}", trace.tool, trace.request_id);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
         <style>\n{}{STYLE}</style>\n</head>\n<body>\n",
        escaped(&title),
        chart::STYLE
    );
    head(&mut out, trace);
    section(&mut out, "Program", trace.program.text());
    section(&mut out, "Context", trace.context.text());
    if !trace.calls().is_empty() {
        out.push_str("<h2>Upstream calls</h2>\n");
        chart::embedded(&mut out, trace);
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
