//! Measures a large JSON text in an MCP text block, from the frame to values, against serde_json.
//!
//! serde_json unescapes the text and parses it into its `Value`.

use super::clock;
use ptc_engine::probe;
use ptc_vm::json::{Keys, encode};
use ptc_vm::{Budget, Isolate, Value};
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

/// Median CPU times of both sides; their results were equal.
#[derive(Clone, Copy, Debug)]
pub struct ReadTimes {
    /// Bytes of the frame.
    pub frame_bytes: usize,
    /// Bytes of the JSON text in it.
    pub text_bytes: usize,
    /// CPU time of our decoder.
    pub ours: Duration,
    /// CPU time of serde_json.
    pub serde: Duration,
}

#[derive(Deserialize)]
struct ResultFrame {
    result: BlockResult,
}

#[derive(Deserialize)]
struct BlockResult {
    content: Vec<TextBlock>,
}

#[derive(Deserialize)]
struct TextBlock {
    text: String,
}

/// Measures both sides in turn on a text of about `bytes` bytes.
///
/// # Errors
/// Results that differ.
pub fn measure(bytes: usize, rounds: usize) -> Result<ReadTimes, String> {
    let text = rows(bytes);
    let result = json!({ "content": [{ "type": "text", "text": text }] });
    let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    let expected = by_serde(&frame)?;
    if ours(&frame, |cx, value| encoded(cx, &value))?.1? != expected {
        return Err("the values differ".into());
    }
    drop(expected);
    let (mut our_times, mut serde_times) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        let (took, ()) = ours(&frame, |_, _| ())?;
        our_times.push(took);
        let begun = clock::cpu();
        let value = by_serde(&frame)?;
        serde_times.push(clock::cpu() - begun);
        drop(value);
    }
    our_times.sort_unstable();
    serde_times.sort_unstable();
    let middle = our_times.len() / 2;
    Ok(ReadTimes {
        frame_bytes: frame.len(),
        text_bytes: text.len(),
        ours: our_times[middle],
        serde: serde_times[middle],
    })
}

fn by_serde(frame: &str) -> Result<serde_json::Value, String> {
    let frame: ResultFrame = serde_json::from_slice(frame.as_bytes()).map_err(|error| error.to_string())?;
    let block = frame.result.content.first().ok_or("no block")?;
    serde_json::from_str(&block.text).map_err(|error| error.to_string())
}

/// Decodes the frame in a buffer of its own, as a connection does. The time of `look` is not counted.
fn ours<T>(
    frame: &str,
    look: impl FnOnce(&mut ptc_vm::Context, Value) -> T,
) -> Result<(Duration, T), String> {
    let options = Budget { memory_bytes: u64::MAX, fuel: u64::MAX, ..Budget::default() };
    let mut isolate = Isolate::new(options);
    let line = frame.as_bytes().to_vec();
    isolate.with(|cx| {
        let begun = clock::cpu();
        let value = probe::answer_to_value(cx, line)?;
        let took = clock::cpu() - begun;
        Ok((took, look(cx, value)))
    })
}

/// The value of `:value` in the program, as JSON.
fn encoded(cx: &mut ptc_vm::Context, value: &Value) -> Result<serde_json::Value, String> {
    let text = encode(cx, value, Keys::Names, usize::MAX).map_err(|fault| fault.message)?;
    let text = text.map_err(|failure| format!("{failure:?}"))?;
    let mut all: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    Ok(all["value"].take())
}

/// Rows as tools give them, about `bytes` bytes of JSON: short strings, numbers, nested records and lists.
fn rows(bytes: usize) -> String {
    const WORDS: [&str; 8] = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"];
    const LABELS: [&str; 6] = ["bug", "docs", "good first issue", "perf", "question", "wontfix"];
    // A Lehmer generator: the same rows every time.
    let mut state: u64 = 48_271;
    let mut below = |most: usize| {
        state = state * 48_271 % 0x7FFF_FFFF;
        state as usize % most
    };
    let mut text = String::with_capacity(bytes + 512);
    text.push('[');
    let mut number = 0;
    while text.len() < bytes {
        let title: Vec<&str> = (0..5).map(|_| WORDS[below(WORDS.len())]).collect();
        let user = below(500);
        let labels: Vec<serde_json::Value> = (0..below(4))
            .map(|_| below(LABELS.len()))
            .map(|label| json!({ "id": 1_000 + label, "name": LABELS[label], "color": format!("{label:06x}") }))
            .collect();
        let row = json!({
            "id": 100_000 + number, "number": number, "title": title.join(" "),
            "state": if below(2) == 0 { "open" } else { "closed" },
            "user": { "login": format!("user{user}"), "id": user, "site_admin": false },
            "labels": labels, "comments": below(40), "score": below(800) as f64 / 8.0, "milestone": null,
        });
        if number > 0 {
            text.push(',');
        }
        text.push_str(&row.to_string());
        number += 1;
    }
    text.push(']');
    text
}
