//! Enforces the resource limits of a running program: how much memory its values occupy, how much work it does, and how
//! long it runs. Memory counts in logical bytes (sizes that are the same on every platform), work in units of fuel, and
//! interrupts end a program at its deadline. This module does not know values.

pub(crate) mod account;
mod copy;
mod fuel;
mod interrupt;
mod list;
mod meter;

pub(crate) use copy::STEP;
pub use fuel::Fuel;
pub use interrupt::{Interrupt, InterruptKind, Preempt, Preemption};
pub(crate) use list::items;
pub use list::{Dropped, Item, List};
pub use meter::Meter;
pub(crate) use meter::Run;
