//! Defines the range of argument counts that a builtin accepts, such as 2 to 3, and the error message for calls with
//! another count.

use std::fmt;

/// A range of argument counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    /// Fewest.
    pub min: u8,
    /// Most; `None` for any number.
    pub max: Option<u8>,
}

impl Arity {
    /// Reads the table's notation: `2` exactly two, `2-3` two or three, `1+` one or more.
    ///
    /// # Panics
    /// On any other text: tables are constants, so that is a compile error.
    pub const fn parse(text: &str) -> Arity {
        let bytes = text.as_bytes();
        assert!(!bytes.is_empty() && bytes[0].is_ascii_digit(), "arity starts with a digit");
        let min = bytes[0] - b'0';
        match bytes.len() {
            1 => Arity { min, max: Some(min) },
            2 if bytes[1] == b'+' => Arity { min, max: None },
            3 if bytes[1] == b'-' && bytes[2].is_ascii_digit() => Arity { min, max: Some(bytes[2] - b'0') },
            _ => panic!("arity is N, N-M or N+"),
        }
    }

    /// True when a call with `count` arguments fits.
    pub const fn accepts(self, count: usize) -> bool {
        count >= self.min as usize
            && match self.max {
                Some(max) => count <= max as usize,
                None => true,
            }
    }

    /// The error message for a call with a wrong number of arguments. Programs write the name of an internal builtin as
    /// in its usage.
    pub fn message<'n>(self, name: &'n str, usage: &'n str, got: usize) -> impl fmt::Display + 'n {
        let written = usage.trim_start_matches('(').split([' ', ')']).next().unwrap_or_default();
        let name = if name.starts_with('%') && !written.is_empty() { written } else { name };
        fmt::from_fn(move |f| write!(f, "{name} {self}, got {got}"))
    }
}

impl fmt::Display for Arity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max {
            None if self.min == 1 => f.write_str("requires at least 1 argument"),
            None => write!(f, "requires at least {} arguments", self.min),
            Some(max) => {
                f.write_str("expects ")?;
                for count in self.min..=max {
                    write!(f, "{}{count}", if count > self.min { ", " } else { "" })?;
                }
                f.write_str(" argument(s)")
            }
        }
    }
}
