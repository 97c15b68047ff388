//! Promises of the compiler. What compiling costs is measured in `hostile`, with an allocator that counts.

mod diagnostics;
mod golden;
mod limits;
mod properties;
