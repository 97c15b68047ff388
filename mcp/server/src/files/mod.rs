//! Provides the tools that read, search and write local files, only in the folders that the command line names.
//!
//! No path leads out of the folders, whatever links they hold and whatever changes meanwhile: each step of a
//! path is opened relative to the handle of the folder before it. Only regular files and folders are opened.
//! The folder of spilled results is hidden: callers must not find the results of others there, and reading must
//! not spill a result again.
//!
//! # Layout
//! - `roots`: opens the file or folder at a path. `folders`: walks folders.
//! - `query`: reading, listing, searching. `modify`: writing. `text`: writes text as a JSON string, piece by
//!   piece.
//! - `tools`: definitions of the tools, and their dispatch. `server`: the tools as an in-memory MCP server.

mod folders;
mod modify;
mod query;
mod roots;
mod server;
mod text;
mod tools;

pub use roots::FileRoots;
pub use server::FileUtilities;
