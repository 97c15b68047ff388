//! Limits the resources that a program may use: memory in logical bytes, work in units of fuel, and time, by
//! interrupts. This module does not know values.

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
