//! Finds the byte range of a tool's result in a JSON-RPC message that was too large for memory and is stored in a file.

use super::cursor::Cursor;
use std::ops::Range;

/// Range and kind of a result's value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// JSON text.
    Json(Range<u64>),
    /// The content of a JSON string.
    Text(Range<u64>),
    Nothing,
}

/// A result that was located in a file.
#[derive(Debug)]
pub struct Located {
    pub(super) value: Extent,
    /// The tool reports that it failed.
    pub is_error: bool,
}

impl Located {
    /// The whole file is the value.
    pub(super) fn whole(bytes: u64) -> Located {
        Located { value: Extent::Json(0..bytes), is_error: false }
    }

    /// The result of a tool in a JSON-RPC message: structuredContent, else the text of its only content block, else the
    /// list of all its blocks.
    pub(super) fn of_message(cursor: &mut Cursor<'_>, wrapped_in: Option<&str>) -> Result<Located, String> {
        let mut found = FoundResult::default();
        let mut has_result = false;
        let read = cursor.object(|cursor, name| match name {
            "result" if cursor.token()? == b'{' => {
                has_result = true;
                found.result(cursor, wrapped_in)
            }
            _ => cursor.value().map(drop),
        });
        match (read, cursor.fault.take()) {
            (_, Some(error)) => Err(format!("the result cannot be read again: {error}")),
            (None, None) => Err("the result is not JSON".to_owned()),
            (Some(()), None) if !has_result => Err("the answer has no result of a tool".to_owned()),
            (Some(()), None) => Ok(found.located()),
        }
    }
}

#[derive(Default)]
struct FoundResult {
    structured: Option<Extent>,
    /// The list of content blocks, how many they are, and the last text among them.
    content: Option<Range<u64>>,
    blocks: usize,
    text: Option<Range<u64>>,
    is_error: bool,
}

impl FoundResult {
    fn result(&mut self, cursor: &mut Cursor<'_>, wrapped_in: Option<&str>) -> Option<()> {
        cursor.object(|cursor, name| match name {
            "structuredContent" => {
                if cursor.token()? == b'n' {
                    return cursor.value().map(drop);
                }
                self.structured = Some(structured(cursor, wrapped_in)?);
                Some(())
            }
            "content" if cursor.token()? == b'[' => {
                let start = cursor.place();
                cursor.list(|cursor| self.block(cursor))?;
                self.content = Some(start..cursor.place());
                Some(())
            }
            "isError" => {
                self.is_error = cursor.token()? == b't';
                cursor.value().map(drop)
            }
            _ => cursor.value().map(drop),
        })
    }

    fn block(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        self.blocks += 1;
        let (mut kind, mut text) = (None, None);
        cursor.object(|cursor, name| {
            match (name, cursor.token()?) {
                ("type", b'"') => kind = Some(cursor.name()?),
                ("text", b'"') => text = Some(cursor.string()?),
                _ => {
                    cursor.value()?;
                }
            }
            Some(())
        })?;
        if let Some(text) = text.filter(|_| kind.as_deref().is_none_or(|kind| kind == "text")) {
            self.text = Some(text);
        }
        Some(())
    }

    fn located(self) -> Located {
        let content = match (self.blocks, self.text, self.content) {
            (1, Some(text), _) => Extent::Text(text),
            (1.., _, Some(blocks)) => Extent::Json(blocks),
            _ => Extent::Nothing,
        };
        let value = self.structured.unwrap_or(content);
        Located { value, is_error: self.is_error }
    }
}

/// The value of structuredContent, without the member that its tool wraps it in.
fn structured(cursor: &mut Cursor<'_>, wrapped_in: Option<&str>) -> Option<Extent> {
    if wrapped_in.is_none() || cursor.token()? != b'{' {
        return Some(Extent::Json(cursor.value()?));
    }
    let (start, mut members, mut inner) = (cursor.place(), 0, None);
    cursor.object(|cursor, name| {
        members += 1;
        let is_text = cursor.token()? == b'"';
        let place = cursor.value()?;
        if Some(name) == wrapped_in {
            inner = Some(if is_text {
                Extent::Text(place.start + 1..place.end - 1)
            } else {
                Extent::Json(place)
            });
        }
        Some(())
    })?;
    let whole = Extent::Json(start..cursor.place());
    Some(inner.filter(|_| members == 1).unwrap_or(whole))
}
