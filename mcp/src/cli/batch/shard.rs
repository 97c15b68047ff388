//! Splits the input of `ptc batch` among several processes: parses `--shard I/N`, and decides by a hash of the id of a
//! line whether this process handles the line.

use ptc_base::digest::sha256;
use serde_json::value::RawValue;
use std::str::FromStr;

/// One of many equal parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shard {
    /// From 0.
    index: u64,
    of: u64,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parts =
            text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((index @ 1.., of)) if index <= of => Ok(Shard { index: index - 1, of }),
            _ => Err(format!("{text} is no part: 1/4, 2/4, 3/4 and 4/4 are the parts of a whole")),
        }
    }
}

impl Shard {
    /// True for the part that answers lines that cannot be read.
    pub(super) fn is_first(self) -> bool {
        self.index == 0
    }

    /// True if a line belongs to this part: it depends on its id, or on all of the line if it has none. So each line
    /// belongs to one part, wherever it stands in the input.
    pub(super) fn has(self, id: &RawValue, line: &[u8]) -> bool {
        let text = match id.get() {
            "null" => line.trim_ascii(),
            id => id.as_bytes(),
        };
        let first = sha256(text).iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        first % self.of == self.index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_belongs_to_one_part() {
        let parts: Vec<Shard> = (1..=4).map(|part| format!("{part}/4").parse().unwrap()).collect();
        let mut counts = [0; 4];
        for id in 0..1_000 {
            let id = RawValue::from_string(format!("\"task-{id}\"")).unwrap();
            let mine: Vec<usize> = (0..4).filter(|part| parts[*part].has(&id, b"")).collect();
            assert_eq!(mine.len(), 1);
            counts[mine[0]] += 1;
        }
        assert!(counts.iter().all(|count| (200..300).contains(count)), "{counts:?}");
    }

    #[test]
    fn what_is_no_part_is_refused() {
        for text in ["", "0/4", "5/4", "1", "1/0", "a/b", "-1/4", "1/4/2"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
