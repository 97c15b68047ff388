//! What a program may use up: logical bytes, fuel and time, and how it is told to stop. Nothing here knows a value.

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
