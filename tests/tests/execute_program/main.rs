//! Promises of `execute_program`, the tool that runs Python scripts.

mod content_table;
mod python;
mod python_content;
mod python_document;
#[cfg(feature = "monty")]
mod python_monty;
mod python_sessions;
mod python_spilled;
