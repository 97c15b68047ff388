//! What a new user meets: names, help, exit codes, the first commands.

mod adding;
mod background;
mod checkout;
mod clients;
mod errors;
mod help;
mod install;
mod names;
mod output;
mod setup;
mod typing;
