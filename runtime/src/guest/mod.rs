//! What runs on the workers.

pub mod lisp;
