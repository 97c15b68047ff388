//! Verifies the guide to writing and deploying preludes: every code block and every row of its tables.
//!
//! | section | what stands there | test |
//! |---|---|---|
//! | 1 | compile a text, attach it to an agent | `agents::an_agent_calls_and_discovers_the_export` |
//! | 1 | call it, discover it | the same; `writing::the_quick_start_works_in_a_program_too` |
//! | 2 | anatomy of a file | `writing::the_parts_of_a_file_are_what_they_are_called` |
//! | 2 | reserved namespaces | `writing::namespaces_of_the_host_cannot_be_declared` |
//! | 3 | branch on the result; `:ok`, `:value`, `:reason` | `writing::results_are_recoverable` |
//! | 3 | `get-user!`, siblings by bare names | `writing::helpers_may_abort_and_siblings_have_bare_names` |
//! | 4 | `:prompt`, `:discoverable`; a default and an override | `writing::visibility_decides_about_prompts_alone` |
//! | 4 | a host narrows, never broadens | `writing::a_host_narrows_visibility` |
//! | 5 | ids of literal calls, of tools, through helpers; computed ones | `writing::backing_operations_are_inferred`, `attach::requirements_are_inferred_from_literal_calls` |
//! | 5 | explicit metadata, what is wrong with it | `writing::explicit_metadata_adds_and_overrides` |
//! | 5, 7 | attached before user code, on every surface, at each turn | `agents::what_is_missing_stops_an_agent_before_its_model_is_asked`, `agents::each_turn_looks_again`, `agents::children_do_not_inherit_servers`, `attach::*` |
//! | 5, 7 | the guard of side effects, and a host's own | `agents::writes_stop_before_the_next_turn_and_reads_do_not` |
//! | 6 | all forms of discovery; `source` | `writing::every_form_of_discovery_works`, `discovery::*` |
//! | 7 | a program: artifact or text, with servers and without | `writing::a_program_has_a_prelude_with_and_without_servers` |
//! | 7 | an agent: loop, single shot, compiled; with servers | `agents::every_kind_of_agent_has_it`, `agents::an_agent_calls_and_discovers_the_export` |
//! | 8 | three commands of the REPL, `--help` | `store::the_commands_of_the_repl` |
//! | 8 | several sources | `store::sources_are_composed` |
//! | 8 | write twice, read a version; default; list and history | `store::the_store_of_the_guide` |
//! | 8 | references and retention | `store::references_and_retention` |
//! | 8 | what models see | `super::store::models_see_what_is_documented` |
//! | 8 | `prelude/`, with and without a checksum | `store::the_editing_namespace` |
//! | 8 | sessions freeze references | `store::a_session_keeps_its_versions`, `super::store::the_command_line_edits_a_store_…` |
//! | 9 | each part of the trace | `trouble::a_trace_says_which_prelude_it_was` |
//! | 10 | conventions | those of them that are checked stand in sections 2, 4 and 5 |
//! | 11 | every symptom, with its text | `trouble::every_symptom_has_the_text_of_the_guide` |

mod agents;
mod store;
mod trouble;
mod writing;

/// The file of the first section.
const QUICK_START: &str = r#"
(ns crm
  "CRM helpers."
  {:visibility :prompt})

(defn get-user
  "Return a CRM user by id."
  [id]
  (tool/call {:server "crm" :tool "get_user" :args {:id id}}))
"#;
