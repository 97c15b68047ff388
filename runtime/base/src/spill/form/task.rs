//! Takes the result of a task out of the message with the state of the task, which is too large for memory.

use super::cursor::Cursor;
use crate::spill::store::{RawSpill, SpillError};
use crate::tasks::StopFlag;
use std::ops::Range;

/// The state of a task that a message in a file reports, as the text of a JSON object without `result`; and that result,
/// as a message in another file.
///
/// # Errors
/// A text: the message is no such state, the rest of it has more than `most` bytes, or there is no room.
pub fn task_result(raw: &RawSpill, most: usize, stop: &StopFlag) -> Result<(Vec<u8>, RawSpill), String> {
    let mut cursor = Cursor::stopped_by(&raw.file, stop);
    let (mut members, mut result): (Vec<(String, Range<u64>)>, _) = (Vec::new(), None);
    let mut bytes = 0;
    let read = cursor.object(|cursor, name| match name {
        "result" if cursor.token()? == b'{' => cursor.object(|cursor, name| {
            let name = name.to_owned();
            let place = cursor.value()?;
            if name == "result" {
                result = Some(place);
                return Some(());
            }
            bytes += name.len() as u64 + (place.end - place.start);
            if bytes <= most as u64 {
                members.push((name, place));
            }
            Some(())
        }),
        _ => cursor.value().map(drop),
    });
    if let Some(error) = cursor.fault.take() {
        return Err(format!("the state of a task cannot be read again: {error}"));
    }
    let Some(result) = result.filter(|_| read.is_some()) else {
        return Err("the state of a task is too large and has no result".to_owned());
    };
    if bytes > most as u64 {
        return Err(format!("the state of a task has {bytes} bytes without its result"));
    }
    let state = state_of(&mut cursor, members).map_err(|error| error.to_string())?;
    let message = message_of(&mut cursor, result, raw).map_err(|error| error.to_string())?;
    Ok((state, message))
}

fn state_of(cursor: &mut Cursor<'_>, members: Vec<(String, Range<u64>)>) -> Result<Vec<u8>, SpillError> {
    let mut state = b"{".to_vec();
    for (name, place) in members {
        if state.len() > 1 {
            state.push(b',');
        }
        state.extend(serde_json::Value::from(name).to_string().bytes());
        state.push(b':');
        cursor.copy(place, |part| {
            state.extend_from_slice(part);
            Ok::<(), SpillError>(())
        })?;
    }
    state.push(b'}');
    Ok(state)
}

fn message_of(cursor: &mut Cursor<'_>, result: Range<u64>, raw: &RawSpill) -> Result<RawSpill, SpillError> {
    let mut message = raw.store().raw()?;
    message.push(b"{\"result\":")?;
    cursor.copy(result, |part| message.push(part))?;
    message.push(b"}")?;
    Ok(message)
}
