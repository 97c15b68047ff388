//! Determines whether a large result in a file is a JSON object or list, and its first keys, to describe the file to a
//! program or client.

use super::cursor::Cursor;

/// The outermost value of a spilled result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopLevel {
    /// An object.
    Object {
        /// Its first keys.
        keys: Vec<String>,
        /// It has more keys, or may have.
        more: bool,
    },
    /// A list.
    List,
    /// Anything else.
    Other,
}

impl TopLevel {
    /// How many keys are listed.
    const KEYS: usize = 20;

    /// How far keys are searched for.
    const BYTES: u64 = 32 << 20;

    pub(super) fn read(cursor: &mut Cursor<'_>) -> TopLevel {
        match cursor.token() {
            Some(b'[') => TopLevel::List,
            Some(b'{') => {
                let mut keys = Vec::new();
                let read = cursor.object(|cursor, name| {
                    if keys.len() == TopLevel::KEYS || cursor.place() > TopLevel::BYTES {
                        return None;
                    }
                    keys.push(name.to_owned());
                    cursor.value_within(TopLevel::BYTES).map(drop)
                });
                // A text that begins with a brace need not be JSON.
                if keys.is_empty() && read.is_none() {
                    TopLevel::Other
                } else {
                    TopLevel::Object { keys, more: read.is_none() }
                }
            }
            _ => TopLevel::Other,
        }
    }
}
