//! Images and sounds in the value of a program: maps as MCP has them, `{"type": "image", "data": BASE64, "mimeType": …}`,
//! whether a tool gave them or the program wrote them with keywords.

use crate::run::outcome::{Media, MediaKind};
use ptc_vm::{Context, Fault, Value};

/// How deep they are looked for: a list of results, the `:content` of each, its blocks.
const DEEPEST: usize = 6;

/// Values that are looked at. Their number is bounded and small, so that nobody pays for them.
const LOOKED_AT: usize = 10_000;

/// Entries that such a map has at most: annotations are among them.
const ENTRIES: usize = 8;

/// Images and sounds of one answer.
const MOST: usize = 16;

/// What was found.
#[derive(Default)]
pub(super) struct FoundMedia {
    /// In their order, as many as there is room for.
    pub(super) shown: Vec<Media>,
    /// A remark about each that there is no room for.
    pub(super) left_out: Vec<String>,
}

/// Looks for images and sounds, of which those are taken that fit into so many bytes together.
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
            // The last one is looked at first.
            open[first..].reverse();
        }
    }
    Ok(found)
}

/// The parts of a value that is an image or a sound.
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
