//! Writes results that are too large for memory to private files, from which programs and clients read parts.
//!
//! A result streams to an unnamed file as it arrives ([`RawSpill`]) and is then converted to readable lines
//! (`form`). The resulting [`Spilled`] exists while a value refers to it. The size of all files is limited:
//! for a new one the oldest are evicted, even if values still refer to them. The folder belongs to this
//! process and is removed with it; the folder of a killed process is removed by the next one.
//!
//! # Layout
//! - `lazy`: a store that is opened on first use; `owned`: the results of one program or session
//! - `folder`: the private folder, and removal of abandoned ones; `store`: files and their size limit
//! - `form`: converts a server's message to readable lines; `look`: parts of a file; `grep`: lines that match

mod folder;
mod form;
mod grep;
mod lazy;
mod look;
mod owned;
mod store;

pub use form::form_raw;
pub use form::{JsonPath, TopLevel, task_result};
pub use grep::{Grep, GrepMatches, linear_matcher};
pub use lazy::LazySpillStore;
pub use look::{DEFAULT_LINES, LONGEST_PATTERN, Look, LookError, Looked, MOST_CONTEXT, SpillPart, Stat};
pub use owned::OwnedSpills;
pub use store::{RawSpill, SpillError, SpillOptions, SpillStore, Spilled, names_in};
