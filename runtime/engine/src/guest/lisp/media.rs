//! Finds images and sounds in the result of a program, so that the client receives them as such. They are maps as in
//! MCP, `{"type": "image", "data": BASE64, "mimeType": …}`, from a tool or written by the program with keywords.

use ptc_calls::run::outcome::{Media, MediaKind};
use ptc_vm::{Context, Fault, Value};

/// How deep to search: a list of results, the `:content` of each, its blocks.
const DEEPEST: usize = 6;

/// How many values to search. The number is small, so the search is not charged.
const LOOKED_AT: usize = 10_000;

/// Such a map has at most this many entries; annotations are among them.
const ENTRIES: usize = 8;

/// Limit of images and sounds in one answer.
const MOST: usize = 16;

/// The result of a search.
#[derive(Default)]
pub(super) struct FoundMedia {
    /// In order, as many as fit.
    pub(super) shown: Vec<Media>,
    /// A remark about each that does not fit.
    pub(super) left_out: Vec<String>,
}

/// Searches for images and sounds; takes those that fit into `room` bytes together.
pub(super) fn find(cx: &mut Context, value: &Value, room: usize) -> Result<FoundMedia, Box<Fault>> {
    let (mut found, mut left) = (FoundMedia::default(), room);
    let mut open = vec![(value, 0)];
    for _ in 0..LOOKED_AT {
        let Some((value, depth)) = open.pop() else { break };
        if let Some((kind, mime_type, data)) = block(cx, value) {
            if data.len() <= left && found.shown.len() < MOST {
                left -= data.len();
                cx.reserve(room - left)?;
                found.shown.push(Media { kind, data: data.to_owned(), mime_type: mime_type.to_owned() });
            } else {
                found.left_out.push(format!(
                    "{mime_type} of {} bytes is left out: an answer holds {room} bytes of images and sounds, and {MOST} \
                     of them; return fewer or smaller ones",
                    data.len()
                ));
            }
        } else if depth < DEEPEST {
            let room = LOOKED_AT.saturating_sub(open.len());
            let first = open.len();
            match value {
                Value::Vector(items) => {
                    open.extend(
                        items.as_slice().unwrap_or_default().iter().take(room).map(|item| (item, depth + 1)),
                    );
                }
                Value::Map(map) => {
                    open.extend(map.entries().take(room).map(|entry| (entry.value, depth + 1)))
                }
                _ => {}
            }
            // The stack is searched from its end.
            open[first..].reverse();
        }
    }
    Ok(found)
}

/// Kind, data and MIME type if the value is an image or a sound.
fn block<'v>(cx: &Context, value: &'v Value) -> Option<(MediaKind, &'v str, &'v str)> {
    let Value::Map(map) = value else { return None };
    if map.len() > ENTRIES {
        return None;
    }
    let part =
        |name: &str| map.entries().find(|entry| cx.name(entry.key) == Some(name)).map(|entry| entry.value);
    let kind = match cx.name(part("type")?)? {
        "image" => MediaKind::Image,
        "audio" => MediaKind::Audio,
        _ => return None,
    };
    let (mime_type, data) = (part("mimeType")?.as_str()?, part("data")?.as_str()?);
    let is_letter =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
    let fits = mime_type.starts_with(kind.prefix()) && !data.is_empty() && data.bytes().all(is_letter);
    fits.then_some((kind, mime_type, data))
}
