//! Offers functions of preludes (Lisp libraries loaded before programs) as MCP tools of their own (`--expose`); each
//! call runs a program that calls the function.

mod arguments;

use super::lisp_eval::{Evaluator, Shape, program_job};
use super::{Begun, CallContext, Definition, Facts, Job, Responder, TaskSupport, Tool, ToolAnnotations};
use crate::answer::caps::Profile;
use crate::answer::record::run_options;
use crate::answer::{RefusalReason, refused};
use crate::protocol::Raw;
use crate::protocol::params::Params;
use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_calls::schema::output::Schema;
use ptc_engine::{ExportHints, ExposedExport, Prelude};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

/// Exports that are offered: `ns/name`, or `ns/*`.
#[derive(Clone, Debug, Default)]
pub struct ExposedNames(Vec<String>);

impl ExposedNames {
    /// Of these patterns.
    pub fn new(patterns: Vec<String>) -> ExposedNames {
        ExposedNames(patterns)
    }

    fn has(&self, reference: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern, reference))
    }

    /// The tools of a prelude. Exports that it does not have any more, because a client may not use their servers, are
    /// left out.
    pub fn tools(
        &self,
        prelude: &Prelude,
        evaluator: &Arc<dyn Evaluator>,
        limits: Limits,
    ) -> Vec<ExposedTool> {
        let exports = prelude.exposed().filter(|export| self.has(&export.reference));
        exports.filter_map(|export| ExposedTool::new(export, evaluator.clone(), limits).ok()).collect()
    }

    /// Checks that each pattern names exports that can be offered, under names that no other tool has.
    ///
    /// # Errors
    /// What is wrong, as one line.
    pub fn check(
        &self,
        prelude: Option<&Prelude>,
        evaluator: &Arc<dyn Evaluator>,
        taken: &[&str],
    ) -> Result<(), String> {
        let exports: Vec<ExposedExport> = prelude.into_iter().flat_map(Prelude::exposed).collect();
        if let Some(unknown) =
            self.0.iter().find(|pattern| !exports.iter().any(|export| matches(pattern, &export.reference)))
        {
            return Err(format!("{unknown}: no prelude has such an export with :tool in its metadata"));
        }
        let mut names: HashSet<String> = taken.iter().map(|name| (*name).to_owned()).collect();
        for export in exports.into_iter().filter(|export| self.has(&export.reference)) {
            let reference = export.reference.clone();
            let tool = ExposedTool::new(export, evaluator.clone(), Limits::default())
                .map_err(|why| format!("{reference}: {why}"))?;
            if !names.insert(tool.name.clone()) {
                return Err(format!("{reference}: there is another tool with the name {}", tool.name));
            }
        }
        Ok(())
    }
}

fn matches(pattern: &str, reference: &str) -> bool {
    match pattern.strip_suffix("/*") {
        Some(namespace) => reference.split_once('/').is_some_and(|(known, _)| known == namespace),
        None => pattern == reference,
    }
}

/// The name of the tool of an export.
fn tool_name(reference: &str) -> String {
    let allowed = |char: char| if char.is_ascii_alphanumeric() || "_-".contains(char) { char } else { '_' };
    reference.chars().map(allowed).collect()
}

/// One export as a tool.
pub struct ExposedTool {
    name: String,
    export: ExposedExport,
    input: Value,
    /// What the result has to match.
    output: Option<(Value, Schema)>,
    evaluator: Arc<dyn Evaluator>,
    limits: Limits,
}

impl ExposedTool {
    fn new(
        export: ExposedExport,
        evaluator: Arc<dyn Evaluator>,
        limits: Limits,
    ) -> Result<ExposedTool, String> {
        let is_rest = |names: &Vec<String>| names.iter().any(|name| name == "&");
        if export.parameters.iter().all(is_rest) {
            return Err("a function with any number of arguments has no names for them".to_owned());
        }
        let input = match &export.input {
            Some(schema) => arguments::checked_schema(schema, &export.parameters)?,
            None => arguments::schema_of(&export.parameters),
        };
        let output = match &export.output {
            Some(schema) => {
                let parsed = Schema::parse(schema).map_err(|why| format!(":output: {why}"))?;
                if !matches!(parsed, Schema::Object(_)) {
                    return Err(":output has to be an object, as MCP requires".to_owned());
                }
                Some((schema.clone(), parsed))
            }
            None => None,
        };
        let name = tool_name(&export.reference);
        Ok(ExposedTool { name, export, input, output, evaluator, limits })
    }

    fn memo(&self) -> String {
        self.output.as_ref().map_or_else(|| "null".to_owned(), |(schema, _)| schema.to_string())
    }
}

impl Tool for ExposedTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn task_support(&self) -> TaskSupport {
        TaskSupport::Optional
    }

    fn definition(&self, facts: &Facts) -> Definition {
        let hints = facts.hints.get(&self.export.reference).copied().unwrap_or(ExportHints::UNKNOWN);
        Definition {
            title: self.export.reference.clone(),
            description: self.export.description.clone(),
            input_schema: self.input.clone(),
            annotations: ToolAnnotations {
                read_only_hint: hints.read_only,
                destructive_hint: hints.destructive,
                idempotent_hint: hints.idempotent,
                open_world_hint: hints.open_world,
            },
            output_schema: self.output.as_ref().map(|(schema, _)| schema.clone()),
        }
    }

    fn begin(&self, params: &Params<'_>, call: &CallContext, reply: Responder<'_>) -> Begun {
        let text = params.arguments.map_or("{}", Raw::get);
        let (program, context) = match arguments::program(&self.export, &self.input, &self.name, text) {
            Ok(parts) => parts,
            Err(message) => return reply.with(&refused(call.profile, RefusalReason::ArgsError, message)),
        };
        if context.len() as u64 > self.limits.max_context_bytes {
            let message =
                format!("the arguments exceed max_context_bytes ({})", self.limits.max_context_bytes);
            return reply.with(&refused(call.profile, RefusalReason::ArgsError, message));
        }
        // Its result is that of its schema, not a report about a run.
        let call = CallContext { profile: Profile::Slim, ..call.clone() };
        let schema = self.output.as_ref().map(|(_, schema)| schema.clone());
        let mut options = RunOptions {
            context: Some(context),
            limits: self.limits,
            timed: call.log.is_some(),
            since: Some(Instant::now()),
            trace: call.trace.clone(),
            ..RunOptions::default()
        };
        run_options(Profile::Slim, schema.as_ref(), &mut options);
        let job =
            program_job(self.evaluator.clone(), program, options, schema, self.memo(), (call, Shape::Value));
        Begun::Run(job)
    }

    fn resume(&self, run: &str, memo: &str, call: &CallContext) -> Option<Job> {
        let call = CallContext { profile: Profile::Slim, ..call.clone() };
        super::lisp_eval::resumed_job(self.evaluator.clone(), run, memo, (call, Shape::Value))
    }
}

/// A schema of an object with these properties, all of them required.
fn object_of(names: &[String]) -> Value {
    let properties: serde_json::Map<String, Value> =
        names.iter().map(|name| (name.clone(), json!({}))).collect();
    json!({ "type": "object", "properties": properties, "required": names })
}
