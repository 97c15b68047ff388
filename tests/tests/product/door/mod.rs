//! What a new user meets: names, help, exit codes, the first commands.

mod background;
mod checkout;
mod errors;
mod help;
mod names;
mod setup;
mod typing;
