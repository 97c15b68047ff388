//! Files of the machine that callers may name: those in folders that the command line gives.
//!
//! No path leads out of the folders, whatever links they hold and whatever is changed meanwhile: each step of a path is
//! taken from the folder before it, by handle. Only plain files and folders are opened; the folder of kept results is
//! hidden, so nobody finds the results of others in it, and none is kept again by being read.
//!
//! # Layout
//! - `roots`: from a path to something that is open. `folders`: what is in a folder, and below.
//! - `query`: reading, listing, searching. `modify`: writing. `text`: texts as JSON, piece by piece.
//! - `tools`: both as tools; `server`: the tools as a server in memory.

mod folders;
mod modify;
mod query;
mod roots;
mod server;
mod text;
mod tools;

pub use roots::FileRoots;
pub use server::FileUtilities;
