//! The severity levels of log messages, of which a client chooses the lowest that it wants to receive.

/// The levels of RFC 5424, the least severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Details.
    Debug,
    /// Normal events.
    Info,
    /// Normal but significant.
    Notice,
    /// Needs attention.
    Warning,
    /// An operation failed.
    Error,
    /// A component failed.
    Critical,
    /// Action must be taken.
    Alert,
    /// Nothing works.
    Emergency,
}

const NAMES: [(LogLevel, &str); 8] = [
    (LogLevel::Debug, "debug"),
    (LogLevel::Info, "info"),
    (LogLevel::Notice, "notice"),
    (LogLevel::Warning, "warning"),
    (LogLevel::Error, "error"),
    (LogLevel::Critical, "critical"),
    (LogLevel::Alert, "alert"),
    (LogLevel::Emergency, "emergency"),
];

impl LogLevel {
    /// The level of this name.
    pub fn from_name(name: &str) -> Option<LogLevel> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(level, _)| *level)
    }

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_has_its_own_row() {
        for (index, (level, name)) in NAMES.into_iter().enumerate() {
            assert_eq!((level as usize, level.name(), LogLevel::from_name(name)), (index, name, Some(level)));
        }
    }
}
