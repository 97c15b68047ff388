//! Promises of `execute_program`, the tool that runs Python scripts.

mod python;
mod python_document;
mod python_monty;
mod python_sessions;
mod python_spilled;
