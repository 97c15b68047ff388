//! Tests of limits, and one that counts child processes of the whole process, in a binary of their own.

#[path = "../common/mod.rs"]
mod common;
mod fault_matrix;
mod limits;
