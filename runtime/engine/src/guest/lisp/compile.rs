//! Prepares the text of a program to run: compiles it or takes it from the cache, and asks the policy whether its
//! planned data flows are allowed.

use super::environment::CompileEnvironment;
use super::program_cache::{CachedProgram, CheckedLists, ProgramKey};
use super::tool_call::StaticCheck;
use super::{Lisp, rendering};
use crate::broker::names;
use ptc_calls::run::account::{Planner, ProgramPlan, RunAccount};
use ptc_calls::run::options::RunOptions;
use ptc_calls::run::outcome::{Failure, FailureKind};
use ptc_calls::tools::{Catalog, UpstreamTool};
use ptc_compiler::tool_catalog::ToolCatalog;
use ptc_compiler::{CompileBudget, Externals};
use ptc_vm::{Budget, Class, Interrupt, InterruptKind, Preemption, Reason};
use std::sync::Arc;

/// The budget of an isolate for a run with these options.
pub(super) fn run_budget(options: &RunOptions, interrupt: Interrupt) -> Budget {
    let limits = &options.limits;
    Budget {
        memory_bytes: limits.memory_bytes,
        fuel: limits.fuel,
        loop_limit: (limits.loop_limit > 0).then_some(limits.loop_limit),
        parallel_width: usize::try_from(limits.parallel_width).unwrap_or(usize::MAX).max(1),
        print_bytes: usize::try_from(limits.print_bytes).unwrap_or(usize::MAX),
        strict_data: options.strict_data,
        interrupt,
        ..Budget::default()
    }
}

/// A program is refused before it runs.
const DENIED: FailureKind = FailureKind::new("denied", Class::RuntimeError);

/// Looks tools up.
pub(super) fn tools_of(catalog: &Catalog) -> impl Fn(&str, &str) -> Option<Arc<UpstreamTool>> {
    |server, tool| catalog.server(server)?.tools.as_ref()?.get(tool).cloned()
}

/// Gives a run the plan of its program's data flows, and asks the policy about them.
///
/// # Errors
/// The policy refuses such programs before they run.
pub(super) fn plan_flows(
    lisp: &Lisp,
    program: &CachedProgram,
    account: &RunAccount,
    needs: Needs,
) -> Result<(), Failure> {
    let Some(plan) = &program.flows else { return Ok(()) };
    account.flows().set_plan(plan.clone());
    if needs == Needs::Met {
        return Ok(());
    }
    let catalog = lisp.broker.catalog().snapshot();
    match lisp.broker.policy().refuses_program(account, &tools_of(&catalog)) {
        Some(why) => Err(Failure::new(DENIED, why)),
        None => Ok(()),
    }
}

/// Finds the calls in a program that has been compiled.
pub(super) fn planner(lisp: &Arc<Lisp>, environment: &Arc<CompileEnvironment>, source: &Arc<str>) -> Planner {
    let (lisp, environment, source) = (lisp.clone(), environment.clone(), source.clone());
    Arc::new(move || {
        let upstreams = lisp.broker.upstreams();
        let servers = names(&upstreams);
        // Its size was accepted before.
        let options = ptc_compiler::CompileOptions { max_program_bytes: source.len(), ..Default::default() };
        ProgramPlan::recorded(&source, |catalog| {
            let compile = |externals: &Externals<'_>| ptc_compiler::compile(&source, externals, &options);
            environment.externals(&servers, Some(catalog), compile)
        })
        // It was compiled before, so it compiles.
        .unwrap_or_default()
    })
}

/// Whether what a program needs is there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// It is looked for: servers, their tools, and what the policy says of the program.
    Checked,
    /// It was there when the program ran. A session is restored, which calls nothing.
    Met,
}

/// Compiles a program, or takes it from the cache.
pub(super) fn compile(
    lisp: &Lisp,
    environment: &CompileEnvironment,
    source: &Arc<str>,
    options: &RunOptions,
    needs: Needs,
    interrupt: &Interrupt,
    preemption: Preemption,
) -> Result<Arc<CachedProgram>, Failure> {
    let limit = usize::try_from(options.limits.max_program_bytes).unwrap_or(usize::MAX);
    let max_symbols = usize::try_from(options.limits.max_symbols).unwrap_or(usize::MAX);
    let defaults = ptc_compiler::CompileOptions::default();
    let flows = lisp.broker.policy().plans_flows();
    let key = ProgramKey::new(environment, options, flows);
    if source.len() <= limit
        && let Some(program) = lisp.cache.get(key, source, lisp.broker.catalog())
    {
        return Ok(program);
    }
    let upstreams = lisp.broker.upstreams();
    let servers = names(&upstreams);
    let catalog = lisp.broker.catalog().snapshot();
    let check = StaticCheck { catalog: &catalog, broker: &lisp.broker };
    // Without servers there is nothing to check a call against; the call itself reports that when it is made.
    let is_checked = needs == Needs::Checked && !servers.is_empty();
    let check = is_checked.then_some(&check as &dyn ToolCatalog);
    let budget = CompileBudget {
        preemption,
        ..CompileBudget::for_memory(options.limits.memory_bytes, Some(interrupt.clone()))
    };
    let compile_options =
        ptc_compiler::CompileOptions { max_program_bytes: limit, max_symbols, budget, flows, ..defaults };
    let compiled = environment
        .externals(&servers, check, |externals| ptc_compiler::compile(source, externals, &compile_options));
    match compiled {
        Ok(compiled) => {
            let named = compiled.servers.named.iter().map(String::as_str);
            let checked = CheckedLists::from_catalog(&catalog, named);
            let needed = environment.needed_by(&compiled.program);
            let remarks = rendering::remarks(&compiled.warnings, source);
            let program = CachedProgram::new(compiled.program, needed, checked, compiled.flows, remarks);
            if needs == Needs::Checked {
                lisp.cache.insert(key, source.clone(), program.clone());
            }
            Ok(program)
        }
        Err(rejection) => {
            let is_stopped = rejection.first().is_some_and(|error| error.reason == Reason::CompileTimeout);
            Err(match interrupt.get() {
                Some(InterruptKind::Deadline) if is_stopped => {
                    rendering::compile_timeout(&rejection, source, options)
                }
                _ => rendering::rejection(&rejection, source),
            })
        }
    }
}
