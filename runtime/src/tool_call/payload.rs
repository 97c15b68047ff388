//! What a raw `tools/call` result holds, found out on the I/O side so that a worker does metered work only:
//! `isError` first, then `structuredContent`, then the first text block.

use crate::upstream::RawAnswer;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::ops::Range;

/// Longest message of a tool error.
const LONGEST_MESSAGE: usize = 500;

/// Results above this size are read off the I/O threads.
const READ_INLINE: usize = 64 * 1024;

/// A result, taken apart. Plain data.
#[derive(Debug)]
pub(crate) struct Payload {
    pub(crate) content: Content,
    /// Payload bytes as received, counted once: structuredContent if present, else the content text.
    pub(crate) bytes: u64,
}

/// The part of a result that programs see.
#[derive(Debug)]
pub(crate) enum Content {
    /// JSON text: a part of the answer it came in.
    Structured(RawAnswer, Range<usize>),
    /// The first text block.
    Text(String),
    /// Neither.
    Nothing,
    /// `isError: true`, with its message.
    ToolError(String),
    /// Not a tool result.
    Malformed(&'static str),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    structured_content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: Option<bool>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    text: Option<String>,
}

impl Payload {
    /// Takes a result apart; large ones on a thread for blocking work.
    pub(crate) async fn read(answer: RawAnswer) -> Payload {
        if answer.bytes().len() <= READ_INLINE {
            return Payload::from(answer);
        }
        let read = tokio::task::spawn_blocking(move || Payload::from(answer)).await;
        read.unwrap_or_else(|_| malformed("the result could not be read"))
    }

    /// Bytes that the payload keeps alive.
    pub(crate) fn held_bytes(&self) -> usize {
        match &self.content {
            Content::Structured(answer, _) => answer.held_bytes(),
            Content::Text(text) | Content::ToolError(text) => text.capacity(),
            Content::Nothing | Content::Malformed(_) => 0,
        }
    }
}

impl From<RawAnswer> for Payload {
    fn from(answer: RawAnswer) -> Payload {
        let Some(result) = parse_object::<ToolResult<'_>>(answer.bytes()) else {
            return malformed("the result is not an object");
        };
        let structured = result.structured_content.map(|raw| place_of(answer.bytes(), raw.get()));
        let is_error = result.is_error == Some(true);
        if let Some(place) = structured.clone().filter(|_| !is_error) {
            return Payload { bytes: place.len() as u64, content: Content::Structured(answer, place) };
        }
        let texts = match result.content.map(|raw| serde_json::from_str::<Vec<Block>>(raw.get())) {
            None => Vec::new(),
            Some(Ok(blocks)) => text_blocks(blocks),
            Some(Err(_)) => return malformed("the result's content is not a list of blocks"),
        };
        let bytes = match structured {
            Some(place) => place.len() as u64,
            None => texts.iter().map(|text| text.len() as u64).sum(),
        };
        let content = if is_error {
            let said = texts.into_iter().find(|text| !text.is_empty());
            Content::ToolError(shorten(
                said.unwrap_or_else(|| String::from_utf8_lossy(answer.bytes()).into_owned()),
            ))
        } else {
            texts.into_iter().next().map_or(Content::Nothing, Content::Text)
        };
        Payload { content, bytes }
    }
}

fn malformed(why: &'static str) -> Payload {
    Payload { content: Content::Malformed(why), bytes: 0 }
}

fn text_blocks(blocks: Vec<Block>) -> Vec<String> {
    let texts = blocks.into_iter().filter(|block| block.kind == "text" || block.kind.is_empty());
    texts.filter_map(|block| block.text).collect()
}

/// The derived reader would take an array for the members in order.
fn parse_object<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{') { serde_json::from_slice(bytes).ok() } else { None }
}

/// Where `part`, a slice of `whole`, sits in it.
fn place_of(whole: &[u8], part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    start..start + part.len()
}

fn shorten(text: String) -> String {
    match text.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
