//! Defines the macro that declares a set of limits as a table, from which command-line flags, help texts and
//! environment variables are generated.

/// Makes a struct with a field for each row, and its [`LimitTable`].
#[macro_export]
macro_rules! limit_table {
    ($(#[doc = $about:literal])+ $name:ident;
     $($(#[doc = $doc:literal])+ $field:ident: $unit:ident = $default:expr, $flag:literal, $reason:literal;)+) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name { $($(#[doc = $doc])+ pub $field: u64,)+ }

        impl $crate::limits::LimitTable for $name {
            const TABLE: &'static [$crate::limits::LimitRow<$name>] = &[$($crate::limits::LimitRow {
                field: stringify!($field), flag: $flag, unit: $crate::limits::Unit::$unit, reason: $reason,
                help: concat!($($doc),+).trim_ascii_start(),
                get: |limits| limits.$field, set: |limits, value| limits.$field = value,
            },)+];
        }

        impl Default for $name {
            fn default() -> $name { $name { $($field: $default,)+ } }
        }
    };
}

/// Limits with a table from which flags, help and environment variables are made.
pub trait LimitTable: Default + 'static {
    /// Every limit, in order.
    const TABLE: &'static [LimitRow<Self>];
}

/// One row of a table of limits: a field with its description.
#[derive(Clone, Copy, Debug)]
pub struct LimitRow<L> {
    /// Name of the field.
    pub field: &'static str,
    /// Command-line flag without the dashes.
    pub flag: &'static str,
    /// Unit of the number.
    pub unit: Unit,
    /// What the user sees beyond the limit.
    pub reason: &'static str,
    /// Help text.
    pub help: &'static str,
    /// Reads the field.
    pub get: fn(&L) -> u64,
    /// Writes the field.
    pub set: fn(&mut L, u64),
}

/// The unit of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Millis,
    /// A plain number.
    Count,
    /// A number of at least one.
    Positive,
}
