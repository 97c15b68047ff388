//! Splits messages between processes into PostgreSQL notifications, which are limited in size, and joins them again on
//! arrival. A notification holds less than 8,000 bytes. All of a message are sent by one statement: they arrive in
//! order, with no other ones of their sender in between.

use std::collections::HashMap;

/// Channel of the notifications.
pub(super) const CHANNEL: &str = "ptc_messages";

/// Sends the parts of a message, $1.
pub(super) const SEND: &str = "SELECT pg_notify('ptc_messages', part.text)
    FROM unnest($1) WITH ORDINALITY AS part (text, number) ORDER BY part.number";

/// Most bytes of a message in one notification.
const PART: usize = 7_900;

/// Most bytes of a message, and of all together of which parts are still to come: every role may send parts.
const MOST_BYTES: usize = 64 << 20;

/// What a message counts beyond its text.
const OVERHEAD: usize = 256;

/// The notifications of a message: its number, how many parts follow, and the part. The numbers also tell them apart:
/// equal ones of a statement would be sent once.
pub(super) fn parts(message: &str) -> Vec<String> {
    let (mut parts, mut rest) = (Vec::new(), message);
    loop {
        let (part, after) = rest.split_at(rest.floor_char_boundary(PART));
        parts.push(part);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    let last = parts.len() - 1;
    let numbered = parts.iter().enumerate();
    numbered.map(|(number, part)| format!("{number} {} {part}", last - number)).collect()
}

/// Messages of which parts are still to come.
#[derive(Default)]
pub(super) struct Assembly {
    /// By the process of the database that sends them: the number of the next part, and the text so far.
    begun: HashMap<i32, (u32, String)>,
    bytes: usize,
}

impl Assembly {
    /// Adds a notification of a process. Returns the message whose last part it is.
    pub(super) fn add(&mut self, process: i32, notification: &str) -> Option<String> {
        let (number, rest) = notification.split_once(' ')?;
        let (following, part) = rest.split_once(' ')?;
        let number: u32 = number.parse().ok()?;
        // The connection may have been made in the middle of a message.
        let begun = self.take(process).filter(|(next, _)| *next == number).map(|(_, text)| text);
        let mut message = if number == 0 { String::new() } else { begun? };
        if message.len() + part.len() > MOST_BYTES {
            return None;
        }
        message.push_str(part);
        if following == "0" {
            return Some(message);
        }
        self.bytes += message.len() + OVERHEAD;
        self.begun.insert(process, (number.saturating_add(1), message));
        while self.bytes > MOST_BYTES {
            // Those of nodes are short, or soon whole.
            let longest =
                self.begun.iter().max_by_key(|(_, (_, text))| text.len()).map(|(process, _)| *process);
            self.take(longest?);
        }
        None
    }

    fn take(&mut self, process: i32) -> Option<(u32, String)> {
        let taken = self.begun.remove(&process);
        if let Some((_, text)) = &taken {
            self.bytes -= text.len() + OVERHEAD;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_put_together_again() {
        let long = "\u{20ac}".repeat(10_000);
        let mut assembly = Assembly::default();
        for message in ["", "short", &long] {
            let parts = parts(message);
            assert!(parts.iter().all(|part| part.len() < 8_000));
            let (last, first) = parts.split_last().unwrap();
            for part in first {
                assert_eq!(assembly.add(1, part), None);
                // Another sender does not disturb.
                assert_eq!(assembly.add(2, "0 0 other").as_deref(), Some("other"));
            }
            assert_eq!(assembly.add(1, last).as_deref(), Some(message));
            // The rest of a message whose beginning is not known.
            assert!(first.is_empty() || assembly.add(1, last).is_none());
        }
        assert!(assembly.begun.is_empty() && assembly.bytes == 0);
    }

    #[test]
    fn messages_that_never_end_do_not_fill_the_memory() {
        let mut assembly = Assembly::default();
        let part = "x".repeat(MOST_BYTES / 3);
        for process in 0..9 {
            assert_eq!(assembly.add(process, &format!("0 1 {part}")), None);
        }
        assert_eq!(assembly.begun.len(), 2);
        // A short one stays.
        assert_eq!(assembly.add(9, "0 1 a"), None);
        assert_eq!(assembly.add(10, &format!("0 1 {part}")), None);
        assert_eq!(assembly.add(9, "1 0 b").as_deref(), Some("ab"));
    }
}
