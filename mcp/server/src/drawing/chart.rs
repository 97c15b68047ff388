//! Draws the calls that a run made to other servers as an SVG chart: one row a call, and three columns that never
//! overlap (names, bars, numbers).

use super::html::escaped;
use super::trace::{Trace, TraceCall, numbers};
use super::units::{bytes, time};
use ptc_base::secrets::{Cut, shortened};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Colours for light and dark, shared by pages and pictures.
pub const STYLE: &str = include_str!("chart.css");

/// Sizes of the drawing in its own units.
const WIDTH: f64 = 960.0;
const ROW: f64 = 22.0;
const AXIS: f64 = 26.0;
const GAP: f64 = 10.0;
/// A column of text of the rows, and of the numbers. Fonts are monospaced, and none of the usual ones is wider.
const NAME_CHAR: f64 = 7.4;
const NUMBER_CHAR: f64 = 6.8;
/// Most columns of a name, and of a size or reason.
const MOST_NAME: usize = 40;
const MOST_SAID: usize = 22;
/// Columns of a time.
const TIME: usize = 8;

/// Number of intervals of the axis.
const TICKS: u64 = 5;

/// The picture as a file of its own: a title, the costs, and the calls.
pub fn picture(trace: &Trace) -> String {
    const MARGIN: f64 = 16.0;
    const HEAD: f64 = 58.0;
    let layout = Layout::of_trace(trace);
    let (width, height) = (WIDTH + 2.0 * MARGIN, layout.height + HEAD + 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\">\n<style>\n{STYLE}</style>\n\
         <rect class=\"back\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n\
         <g transform=\"translate({MARGIN} {MARGIN})\">\n",
        width - 1.0,
        height - 1.0
    );
    let status = trace.reason.as_deref().unwrap_or(if trace.is_error { "error" } else { "ok" });
    let title = format!("{} · {status} · {}", trace.tool, time(trace.micros));
    let _ = writeln!(
        out,
        "<title>{0}</title>\n<text class=\"title\" x=\"0\" y=\"16\">{0}</text>\n\
         <text x=\"0\" y=\"40\">{1}</text>\n<g transform=\"translate(0 {HEAD})\">",
        escaped(&title),
        escaped(&numbers(trace).join(" · "))
    );
    layout.draw(&mut out, trace);
    if let Some(ratio) = trace.reduction().filter(|ratio| *ratio >= 2.0) {
        let _ = writeln!(
            out,
            "<text class=\"title\" x=\"{WIDTH}\" y=\"{}\" text-anchor=\"end\">{ratio:.0} times less to read</text>",
            16.0 - HEAD
        );
    }
    out.push_str("</g>\n</g>\n</svg>\n");
    out
}

/// The calls as a part of a page.
pub fn embedded(out: &mut String, trace: &Trace) {
    let layout = Layout::of_trace(trace);
    let _ = writeln!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"When each upstream call ran\">",
        layout.height
    );
    layout.draw(out, trace);
    out.push_str("</svg>\n");
}

/// Where the columns stand.
struct Layout {
    /// Where the bars begin and end.
    bars: (f64, f64),
    /// Where the times end.
    times: f64,
    height: f64,
    /// Microseconds of the axis.
    all: u64,
    /// From the start of the axis to the start of the run.
    offset: u64,
}

impl Layout {
    fn of_trace(trace: &Trace) -> Layout {
        let calls = trace.calls();
        let widest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0) as f64;
        let names = widest(&mut calls.iter().enumerate().map(|(at, call)| columns(&name(at, call))));
        let said = widest(&mut calls.iter().map(|call| columns(&said(call))));
        let times = WIDTH - said * NUMBER_CHAR - GAP;
        Layout {
            bars: (names * NAME_CHAR + GAP, times - TIME as f64 * NUMBER_CHAR - GAP),
            times,
            height: AXIS + ROW * calls.len() as f64 + 6.0,
            all: trace.micros.max(1),
            offset: trace.run.as_ref().map_or(0, |run| run.begun),
        }
    }

    fn draw(&self, out: &mut String, trace: &Trace) {
        for tick in 0..=TICKS {
            let moment = self.all * tick / TICKS;
            let x = self.position(moment);
            let (anchor, label) = match tick {
                0 => ("start", "0".to_owned()),
                TICKS => ("end", time(moment)),
                _ => ("middle", time(moment)),
            };
            let _ = writeln!(
                out,
                "<line class=\"tick\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{AXIS}\" y2=\"{}\"/>\
                 <text class=\"quiet\" x=\"{x:.1}\" y=\"16\" text-anchor=\"{anchor}\">{label}</text>",
                self.height
            );
        }
        for (at, call) in trace.calls().iter().enumerate() {
            self.row(out, at, call);
        }
    }

    fn row(&self, out: &mut String, at: usize, call: &TraceCall) {
        let y = AXIS + ROW * at as f64;
        let begun = self.offset + call.begun;
        let (begin, end) = (self.position(begun), self.position(begun + call.micros));
        let width = (end - begin).max(2.0);
        let (bar, text, full) = match &call.fault {
            Some((reason, error)) => ("bad", "fault", format!("{} {reason}: {error}", call.name)),
            None => ("good", "quiet", format!("{} from {} on", call.name, time(call.begun))),
        };
        let base = y + ROW * 0.7;
        let _ = writeln!(
            out,
            "<g><title>{}</title><text x=\"0\" y=\"{base:.1}\">{}</text>\
             <rect class=\"{bar}\" x=\"{begin:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" rx=\"3\"/>\
             <text class=\"quiet\" x=\"{:.1}\" y=\"{base:.1}\" text-anchor=\"end\">{}</text>\
             <text class=\"{text}\" x=\"{WIDTH}\" y=\"{base:.1}\" text-anchor=\"end\">{}</text></g>",
            escaped(&full),
            escaped(&name(at, call)),
            y + 4.0,
            ROW - 8.0,
            self.times,
            time(call.micros),
            escaped(&said(call))
        );
    }

    /// The horizontal position of a moment.
    fn position(&self, micros: u64) -> f64 {
        let (begin, end) = self.bars;
        begin + (end - begin) * (micros as f64 / self.all as f64).min(1.0)
    }
}

fn name(at: usize, call: &TraceCall) -> String {
    within(&format!("{} {}", at + 1, call.name), MOST_NAME).into_owned()
}

/// The size of a result, or why there is none.
fn said(call: &TraceCall) -> Cow<'_, str> {
    match (&call.fault, call.bytes) {
        (Some((reason, _)), _) => within(reason, MOST_SAID),
        (None, Some(size)) => bytes(size).into(),
        (None, None) => "".into(),
    }
}

/// Columns of a text. Other letters than ASCII are counted as wide ones.
fn columns(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum()
}

/// Cuts a text to this many columns.
fn within(text: &str, most: usize) -> Cow<'_, str> {
    let mut used = 0;
    let fits = text.chars().take_while(|c| {
        used += if c.is_ascii() { 1 } else { 2 };
        used <= most
    });
    match fits.count() {
        all if all == text.chars().count() => Cow::Borrowed(text),
        fewer => shortened(text, Cut::Chars(fewer.saturating_sub(2))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::trace::TraceRun;
    use super::*;

    #[test]
    fn columns_do_not_overlap() {
        let call = |name: &str, bytes, fault: Option<&str>| TraceCall {
            name: name.to_owned(),
            micros: 900_000,
            bytes,
            fault: fault.map(|reason| (reason.to_owned(), String::new())),
            ..TraceCall::default()
        };
        for calls in [
            vec![call("a/b", Some(3), None)],
            vec![call(&"n".repeat(200), Some(12_000), None), call("é/名前", None, Some(&"r".repeat(99)))],
        ] {
            let names: Vec<String> = calls.iter().enumerate().map(|(at, call)| name(at, call)).collect();
            let saids: Vec<String> = calls.iter().map(|call| said(call).into_owned()).collect();
            let run = TraceRun { calls, micros: 900_000, ..TraceRun::default() };
            let layout = Layout::of_trace(&Trace { micros: 900_000, run: Some(run), ..Trace::default() });
            let (begin, end) = layout.bars;
            // Intervals of the axis hold their labels.
            assert!((end - begin) / TICKS as f64 > TIME as f64 * NUMBER_CHAR, "{begin} {end}");
            for (name, said) in names.iter().zip(&saids) {
                assert!(columns(name) as f64 * NAME_CHAR < begin && columns(name) <= MOST_NAME, "{name}");
                assert!(layout.times + GAP <= WIDTH - columns(said) as f64 * NUMBER_CHAR, "{said}");
            }
            assert!(end + GAP <= layout.times - TIME as f64 * NUMBER_CHAR);
        }
    }
}
