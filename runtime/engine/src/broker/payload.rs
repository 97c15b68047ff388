//! Takes the result of a call apart: finds the part that becomes the program's value, the content blocks, and whether
//! the tool failed.
//!
//! It does so on the I/O runtime, so that a worker does metered work only. Of a `tools/call` of MCP it takes `isError`
//! first, then `structuredContent`, then the first text block. Whatever that choice leaves out (further texts, images,
//! audio, resources) stays reachable as `:content`. Plain JSON and plain text are the value themselves.

use ptc_base::spill::{RawSpill, Spilled, form_raw};
use ptc_base::tasks::{self, StopFlag, TaskOwner};
use ptc_calls::run::account::Held;
use ptc_calls::run::outcome::CallFault;
use ptc_calls::tools::ServerText;
use ptc_calls::tools::shape::Given;
use ptc_upstream::{CallResult, RawAnswer, shorten};
use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Results above this size are read off the I/O threads.
const READ_INLINE: usize = 64 * 1024;

const NOT_UTF8: &str = "the result is not UTF-8";

/// A result, taken apart. Plain data.
pub struct CallPayload {
    pub(crate) content: PayloadContent,
    bytes: u64,
    kept: PayloadSource,
    /// Its bytes on the account of a run.
    _held: Option<Held>,
}

/// The bytes behind the content.
pub(super) enum PayloadSource {
    Nothing,
    /// The answer, when a part of it is needed.
    Raw(RawAnswer),
    /// The result in a file; there is no other value then.
    Spilled(Arc<Spilled>),
}

/// What a tool gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadValue<'p> {
    /// JSON text as the upstream sent it, not looked at.
    Json(&'p [u8]),
    /// A text.
    Text(&'p str),
    /// Neither.
    Nothing,
}

/// The part of a result that programs see. Ranges are JSON text inside the answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PayloadContent {
    /// The tool did its work.
    Success {
        /// The value.
        value: Chosen,
        /// All content blocks, when the value does not say everything.
        blocks: Option<Range<usize>>,
    },
    /// `isError: true`.
    ToolError {
        /// Its texts.
        message: String,
        /// All content blocks, when there are others than texts.
        blocks: Option<Range<usize>>,
        /// structuredContent, when the message does not say the same.
        structured: Option<Range<usize>>,
    },
    /// Not a tool result that can be used.
    Malformed(Cow<'static, str>),
}

/// Large results that are taken apart at once.
const READ_AT_ONCE: usize = 2;

/// What became the value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// structuredContent, or a result that is JSON.
    Structured(Range<usize>),
    /// The first text block: servers write JSON there too.
    Text(String),
    /// A result that is text, whatever it looks like.
    Verbatim(Range<usize>),
    /// Neither.
    Nothing,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct McpResult<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    /// Of a resource, in the place of the content.
    #[serde(borrow, default)]
    contents: Option<&'a RawValue>,
    #[serde(borrow, default)]
    structured_content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(borrow, default)]
    result_type: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Cow<'a, str>,
    #[serde(default)]
    text: Option<String>,
}

/// The content blocks of a result.
#[derive(Default)]
struct Blocks {
    place: Option<Range<usize>>,
    texts: Vec<String>,
    /// There are blocks other than texts.
    others: bool,
}

impl CallPayload {
    /// Whether a result is taken apart in little time.
    pub(super) fn is_quick(result: &CallResult) -> bool {
        result.answer().spilled().is_none() && result.answer().bytes().len() <= READ_INLINE
    }

    /// [`CallPayload::of`], on a thread for blocking work.
    pub(super) async fn read(result: CallResult, wrapped_in: Option<&'static str>) -> CallPayload {
        if let Some(raw) = result.answer().spilled() {
            let (raw, is_mcp) = (raw.clone(), matches!(result, CallResult::Mcp(_)));
            let formed = tasks::blocking(TaskOwner::Run, move |stop| {
                CallPayload::formed(&raw, is_mcp, wrapped_in, stop)
            });
            return formed.await.unwrap_or_else(|| malformed("the result could not be read"));
        }
        // Parsing needs memory for a moment that is not on the account of the run.
        static PERMITS: Semaphore = Semaphore::const_new(READ_AT_ONCE);
        let read =
            tasks::blocking_in_turn(TaskOwner::Run, &PERMITS, move |_| CallPayload::of(result, wrapped_in));
        let read = read.await;
        read.unwrap_or_else(|| malformed("the result could not be read"))
    }

    /// A result that went to a file.
    fn formed(raw: &RawSpill, is_mcp: bool, wrapped_in: Option<&str>, stop: &StopFlag) -> CallPayload {
        let (spilled, located) = match form_raw(raw, is_mcp, wrapped_in, stop) {
            Ok(formed) => formed,
            Err(message) => {
                let content = PayloadContent::ToolError { message, blocks: None, structured: None };
                return CallPayload { content, ..malformed("") };
            }
        };
        let content = match located.is_error {
            true => {
                let message = "the tool failed, and says more than can be carried".to_owned();
                PayloadContent::ToolError { message, blocks: None, structured: None }
            }
            false => PayloadContent::Success { value: Chosen::Nothing, blocks: None },
        };
        CallPayload { content, bytes: spilled.bytes(), kept: PayloadSource::Spilled(spilled), _held: None }
    }

    /// A payload with this content; its ranges are in these bytes.
    pub(super) fn from_parts(content: PayloadContent, bytes: u64, kept: PayloadSource) -> CallPayload {
        CallPayload { content, bytes, kept, _held: None }
    }

    /// The result, when it was too large to be carried: there is no other value then.
    pub fn spilled(&self) -> Option<&Arc<Spilled>> {
        match &self.kept {
            PayloadSource::Spilled(spilled) => Some(spilled),
            PayloadSource::Raw(_) | PayloadSource::Nothing => None,
        }
    }

    /// Payload bytes as received, counted once: structuredContent if present, else the content.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What the tool gave.
    pub fn value(&self) -> PayloadValue<'_> {
        match &self.content {
            PayloadContent::Success { value: Chosen::Structured(place), .. } => {
                PayloadValue::Json(self.part(place))
            }
            PayloadContent::Success { value: Chosen::Text(text), .. } => PayloadValue::Text(text),
            PayloadContent::Success { value: Chosen::Verbatim(place), .. } => {
                // Looked at when it was read.
                PayloadValue::Text(std::str::from_utf8(self.part(place)).unwrap_or_default())
            }
            PayloadContent::Success { value: Chosen::Nothing, .. } | PayloadContent::Malformed(_) => {
                PayloadValue::Nothing
            }
            PayloadContent::ToolError { structured: Some(place), .. } => PayloadValue::Json(self.part(place)),
            PayloadContent::ToolError { message, structured: None, .. } => PayloadValue::Text(message),
        }
    }

    /// All content blocks, a JSON array, when the value does not say everything.
    pub fn blocks(&self) -> Option<&[u8]> {
        match &self.content {
            PayloadContent::Success { blocks, .. } | PayloadContent::ToolError { blocks, .. } => {
                blocks.as_ref().map(|place| self.part(place))
            }
            PayloadContent::Malformed(_) => None,
        }
    }

    /// The value, for learning its shape.
    pub(crate) fn given(&self) -> Given<'_> {
        match self.value() {
            PayloadValue::Json(json) => Given::Json(json),
            PayloadValue::Text(text) if looks_like_json(text) => Given::JsonOrText(text),
            PayloadValue::Text(text) => Given::Text(text),
            PayloadValue::Nothing => Given::Json(b"null"),
        }
    }

    /// Why the call counts as failed: the tool says so, or gave what is no result.
    pub fn failure(&self) -> Option<(CallFault, &str)> {
        match &self.content {
            PayloadContent::Success { .. } => None,
            PayloadContent::ToolError { message, .. } => Some((CallFault::ToolError, message)),
            PayloadContent::Malformed(why) => Some((CallFault::UpstreamError, why)),
        }
    }

    /// The same on the account of a run.
    pub(super) fn held(self, held: Held) -> CallPayload {
        CallPayload { _held: Some(held), ..self }
    }

    /// Bytes that the payload keeps alive.
    pub(crate) fn held_bytes(&self) -> usize {
        let own = match &self.content {
            PayloadContent::Success { value: Chosen::Text(text), .. }
            | PayloadContent::ToolError { message: text, .. } => text.capacity(),
            PayloadContent::Success { .. } | PayloadContent::Malformed(_) => 0,
        };
        own + self.raw().map_or(0, RawAnswer::held_bytes)
    }

    fn raw(&self) -> Option<&RawAnswer> {
        match &self.kept {
            PayloadSource::Raw(raw) => Some(raw),
            PayloadSource::Spilled(_) | PayloadSource::Nothing => None,
        }
    }

    /// The JSON text at a place in the answer.
    pub(crate) fn part(&self, place: &Range<usize>) -> &[u8] {
        self.raw().and_then(|raw| raw.bytes().get(place.clone())).unwrap_or_default()
    }
}

impl CallPayload {
    /// Takes a result apart; `wrapped_in` is the member that its tool wraps results in, if it does.
    pub(crate) fn of(result: CallResult, wrapped_in: Option<&str>) -> CallPayload {
        match result {
            result if result.answer().spilled().is_some() => malformed("the result is in a file"),
            CallResult::Mcp(answer) => {
                let result = match parse_object::<McpResult<'_>>(answer.bytes()) {
                    Ok(result) => result,
                    Err(why) => return malformed(why),
                };
                match result.result_type.as_deref() {
                    None | Some("complete") => {}
                    Some("input_required") => {
                        return malformed("the tool asks for more input, which a program cannot give");
                    }
                    Some(other) => {
                        let other = ServerText::new(other);
                        return malformed(format!(
                            "the tool answered with the resultType {other}, not a result"
                        ));
                    }
                }
                let structured = result.structured_content.map(|raw| place_of(answer.bytes(), raw.get()));
                let Some(blocks) = Blocks::read(result.content.or(result.contents), answer.bytes()) else {
                    return malformed("the result's content is not a list of blocks");
                };
                let bytes = match (&structured, &blocks) {
                    (Some(place), _) => place.len(),
                    (None, Blocks { place: Some(place), others: true, .. }) => place.len(),
                    (None, Blocks { texts, .. }) => texts.iter().map(String::len).sum(),
                } as u64;
                let content = if result.is_error == Some(true) {
                    tool_error(&answer, blocks, structured)
                } else {
                    success(&answer, blocks, structured, wrapped_in)
                };
                // Places are in the answer.
                let kept = match &content {
                    PayloadContent::Success { value: Chosen::Structured(_), .. }
                    | PayloadContent::Success { blocks: Some(_), .. }
                    | PayloadContent::ToolError { blocks: Some(_), .. }
                    | PayloadContent::ToolError { structured: Some(_), .. } => PayloadSource::Raw(answer),
                    _ => PayloadSource::Nothing,
                };
                CallPayload { content, bytes, kept, _held: None }
            }
            CallResult::Json(answer) => match answer.bytes().trim_ascii() {
                b"" => CallPayload::whole(answer, |_| Chosen::Nothing),
                _ => CallPayload::whole(answer, Chosen::Structured),
            },
            CallResult::Failed { message, body: answer } => {
                let bytes = answer.bytes().len();
                let structured = (bytes > 0).then_some(0..bytes);
                let content = PayloadContent::ToolError { message, blocks: None, structured };
                Self { content, bytes: bytes as u64, kept: PayloadSource::Raw(answer), _held: None }
            }
            CallResult::Text(answer) if std::str::from_utf8(answer.bytes()).is_err() => malformed(NOT_UTF8),
            CallResult::Text(answer) => CallPayload::whole(answer, Chosen::Verbatim),
        }
    }
}

impl CallPayload {
    /// An answer that is the value as a whole.
    fn whole(answer: RawAnswer, choose: impl FnOnce(Range<usize>) -> Chosen) -> CallPayload {
        let bytes = answer.bytes().len();
        let content = PayloadContent::Success { value: choose(0..bytes), blocks: None };
        CallPayload { content, bytes: bytes as u64, kept: PayloadSource::Raw(answer), _held: None }
    }
}

fn success(
    answer: &RawAnswer,
    blocks: Blocks,
    structured: Option<Range<usize>>,
    wrapped_in: Option<&str>,
) -> PayloadContent {
    let Blocks { place, mut texts, others } = blocks;
    let Some(whole) = structured else {
        let value = match texts.len() {
            0 => Chosen::Nothing,
            _ => Chosen::Text(texts.swap_remove(0)),
        };
        return PayloadContent::Success { value, blocks: place.filter(|_| others || !texts.is_empty()) };
    };
    let (inner, text) = unwrap(answer.bytes(), &whole, wrapped_in, texts.first());
    let is_new = match &texts[..] {
        [] => false,
        // A single JSON text together with structuredContent is its serialised form, by the specification.
        [only] if looks_like_json(only) => false,
        texts => !repeats(answer.bytes(), &inner, texts),
    };
    // Some servers give their blocks twice; a picture is large.
    let others = others && !holds_blocks(answer.bytes(), &whole, place.as_ref());
    // JSON inside a text is decoded as in any text.
    let value = text.map_or(Chosen::Structured(inner), Chosen::Text);
    PayloadContent::Success { value, blocks: place.filter(|_| others || is_new) }
}

/// Whether structuredContent is the list of blocks once more, in a member of its own.
fn holds_blocks(answer: &[u8], whole: &Range<usize>, blocks: Option<&Range<usize>>) -> bool {
    let json = |place: &Range<usize>| answer.get(place.clone()).unwrap_or_default();
    let only = serde_json::from_slice::<OnlyContent<'_>>(json(whole)).ok();
    let Some((only, blocks)) = only.filter(|_| json(whole).starts_with(b"{")).zip(blocks.map(json)) else {
        return false;
    };
    let only = only.content.get().as_bytes();
    let read = |json: &[u8]| serde_json::from_slice::<Json>(json).ok();
    only.starts_with(b"[") && (only == blocks || read(only) == read(blocks))
}

/// What is in structuredContent that wraps a result in one member, and its text if it is one. The `content` of a text
/// is known without a schema too, because the same text is a block.
fn unwrap(
    answer: &[u8],
    whole: &Range<usize>,
    wrapped_in: Option<&str>,
    beside: Option<&String>,
) -> (Range<usize>, Option<String>) {
    let json = answer.get(whole.clone()).unwrap_or_default();
    // The derived readers would take an array, too.
    let is_object = json.first() == Some(&b'{');
    let result = serde_json::from_slice::<OnlyResult<'_>>(json).map(|only| ("result", only.result));
    let only = result
        .or_else(|_| serde_json::from_slice::<OnlyContent<'_>>(json).map(|only| ("content", only.content)));
    let Some((name, inner)) = only.ok().filter(|_| is_object) else { return (whole.clone(), None) };
    let text = serde_json::from_str::<String>(inner.get()).ok();
    let is_content = name == "content" && text.is_some() && text.as_ref() == beside;
    if wrapped_in == Some(name) || is_content {
        (place_of(answer, inner.get()), text)
    } else {
        (whole.clone(), None)
    }
}

/// An object with this member and no other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OnlyResult<'a> {
    #[serde(borrow)]
    result: &'a RawValue,
}

/// An object with this member and no other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OnlyContent<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
}

/// Whether the texts say again what the value says: all of it in one, or an item each.
fn repeats(answer: &[u8], value: &Range<usize>, texts: &[String]) -> bool {
    let json = answer.get(value.clone()).unwrap_or_default();
    let Ok(value) = serde_json::from_slice::<Json>(json) else { return false };
    let says = |text: &String, value: &Json| match value {
        Json::String(same) if same == text => true,
        value => serde_json::from_str::<Json>(text).is_ok_and(|said| said == *value),
    };
    match (texts, &value) {
        ([only], value) if says(only, value) => true,
        (texts, Json::Array(items)) => {
            texts.len() == items.len() && texts.iter().zip(items).all(|(text, item)| says(text, item))
        }
        _ => false,
    }
}

fn tool_error(answer: &RawAnswer, blocks: Blocks, structured: Option<Range<usize>>) -> PayloadContent {
    let Blocks { place, mut texts, others } = blocks;
    texts.retain(|text| !text.is_empty());
    let text_says_it = texts.iter().any(|text| looks_like_json(text));
    let (said, structured) = match structured {
        Some(place) if texts.is_empty() => {
            let json = answer.bytes().get(place.clone()).unwrap_or_default();
            (String::from_utf8_lossy(json).into_owned(), Some(place))
        }
        structured if !texts.is_empty() => (texts.join("\n"), structured.filter(|_| !text_says_it)),
        _ if others => ("the tool failed without a text; its :content says what it gave".to_owned(), None),
        _ => ("the tool failed and does not say why".to_owned(), None),
    };
    PayloadContent::ToolError { message: shorten(said), blocks: place.filter(|_| others), structured }
}

impl Blocks {
    /// `None` when that is no list of blocks.
    fn read(content: Option<&RawValue>, answer: &[u8]) -> Option<Blocks> {
        let Some(raw) = content else { return Some(Blocks::default()) };
        let mut blocks = Blocks { place: Some(place_of(answer, raw.get())), ..Blocks::default() };
        let mut reader = serde_json::Deserializer::from_str(raw.get());
        blocks.deserialize(&mut reader).ok()?;
        Some(blocks)
    }
}

/// Adds a list of blocks one by one: a list of half a million blocks would need many times its text.
impl<'de> DeserializeSeed<'de> for &mut Blocks {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for &mut Blocks {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of content blocks")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(block) = list.next_element()? {
            match block {
                Block { kind, text: Some(text) } if kind == "text" || kind.is_empty() => {
                    self.texts.push(text)
                }
                _ => self.others = true,
            }
        }
        Ok(())
    }
}

pub(super) fn malformed(why: impl Into<Cow<'static, str>>) -> CallPayload {
    CallPayload {
        content: PayloadContent::Malformed(why.into()),
        bytes: 0,
        kept: PayloadSource::Nothing,
        _held: None,
    }
}

/// The derived reader would take an array for the members in order.
fn parse_object<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, &'static str> {
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err("the result is not an object");
    }
    serde_json::from_slice(bytes).map_err(|error| match std::str::from_utf8(bytes) {
        Err(_) => NOT_UTF8,
        Ok(_) if error.is_data() => "the result is not that of a tool",
        Ok(_) => "the result is not JSON",
    })
}

/// Where `part`, a slice of `whole`, sits in it.
fn place_of(whole: &[u8], part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    start..start + part.len()
}

/// Whether a text of a tool may be JSON, and is decoded if it is: a cheap look that saves most texts the attempt.
pub fn looks_like_json(text: &str) -> bool {
    let text = text.trim();
    match (text.bytes().next(), text.bytes().last()) {
        (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')) => true,
        (Some(b'"'), Some(b'"')) => text.len() > 1,
        (Some(b'0'..=b'9' | b'-'), Some(b'0'..=b'9')) => true,
        _ => matches!(text, "true" | "false" | "null"),
    }
}
