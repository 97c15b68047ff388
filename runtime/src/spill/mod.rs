//! Results that are too large to carry: kept in private files, and looked at in parts.
//!
//! A result streams to a nameless file as it comes ([`RawSpill`]), is brought into a form in which lines mean something
//! (`form`), and is then a [`Spilled`], which is there as long as somebody holds it. All files together are bounded: for
//! a new one the oldest go, whoever holds them. The folder is this process's, and goes with it; what a process leaves that was killed is removed
//! by the next one.
//!
//! # Layout
//! - `place`: a store that is made when it is needed; `owned`: the results of one program or session
//! - `folder`: the private folder, and what dead processes left; `store`: files and their bound
//! - `form`: from what a server sent to lines; `look`: parts of a file; `grep`: lines that
//!   match

mod folder;
mod form;
mod grep;
mod look;
mod owned;
mod place;
mod store;

pub(crate) use form::form_raw;
pub use form::{JsonPath, TopLevel};
pub use grep::{Grep, GrepMatches, linear_matcher};
pub use look::{DEFAULT_LINES, KeptPart, LONGEST_PATTERN, Look, LookError, Looked, MOST_CONTEXT, Stat};
pub use owned::OwnedSpills;
pub use place::SpillPlace;
pub use store::{RawSpill, SpillError, SpillOptions, SpillStore, Spilled, names_in};
