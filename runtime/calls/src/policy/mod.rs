//! Decides whether a tool call may be sent: rules of policy files, limits, data flows, allow and block lists, reviewed
//! tools (pins), approval by a person.
//!
//! Tools, resources and prompts are treated alike. The broker asks here before every call (`SharedPolicy::clear`). Only
//! this module makes [`Permitted`], and nothing leaves without one, so a new front end cannot forget to ask.
//!
//! A policy is one or more files. Each file decides for itself: a `deny` rule that applies, else an `ask` rule, else
//! an `allow` rule, else the default for the effect of the tool. The strictest file wins, so no file can widen another
//! one.
//!
//! # Layout
//! - `file`: reads a file, with the line and column of each error; `pattern`: names of tools; `condition`: conditions
//!   on arguments; `effects`: what a tool may change
//! - `subject`: a call to decide about
//! - `rules`: the rules of a file, and what they say of a call; `decide`: all files together; `gate`: the policy in
//!   effect
//! - `flows`: which data may go where
//! - `approvals`: asks a person
//! - `limits`: limits over many calls; `lists`: allow and block lists of a server's entry; `pins`: servers as they were
//!   reviewed
//! - `look_alikes`: names that are read as other names; `program`: the calls that stand in the text of a program
//! - `check`: rules that can match nothing; `permitted`: the right to leave

mod approvals;
mod check;
mod condition;
mod decide;
mod effects;
mod file;
mod flows;
mod gate;
mod limits;
mod lists;
mod look_alikes;
mod pattern;
mod permitted;
mod pins;
mod program;
mod rules;
mod subject;

pub use crate::run::account::{PlannedCall, ProgramPlan};
pub use approvals::{Approval, ApprovalAnswer};
pub use approvals::{ApprovalChoice, ApprovalList, ApprovalSettings, ApprovalWebhook, WaitingQuestion};
pub use check::{KnownServer, PolicyFinding};
pub use decide::Policy;
pub use effects::ToolEffect;
pub use file::PolicyError;
pub use flows::{CallOrigins, Origin, STATUS_PARTS, SessionAnswers, ShownAnswer};
pub use gate::{AskedOf, Clearance, CountedCall};
pub use gate::{PolicyState, SharedPolicy};
pub use lists::{NameRule, ToolPattern, ToolPolicy};
pub use look_alikes::look_alike;
pub use permitted::Permitted;
pub use pins::PinReview;
pub use pins::{LOCK_FILE, NOT_AS_PINNED, PinDifference, PinLock, PinMode, Pins};
pub use program::PlannedFlow;
pub use subject::Subject;
