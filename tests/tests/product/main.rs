//! Promises of the `ptc` binary: its commands, its server over stdio, its upstream servers and what it keeps secret.

mod batch;
mod call_results;
mod client_features;
mod client_features_rounds;
mod demo;
mod deployment;
mod description_is_proved;
mod documentation_suffices;
mod door;
mod hostile;
mod lists_of_the_last_run;
mod local_handlers;
mod orphans;
mod programs_from_the_description;
mod proxy;
mod records;
mod reload;
mod repl;
mod secrets;
mod server_features;
mod spilled;
mod task;
mod task_contract;
mod terminal_text;
mod text_values;
mod tool_list;
