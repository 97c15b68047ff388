//! The loop of an agent: the model replies, its program runs, and the model gets feedback.

use super::budget::SharedBudget;
use super::feedback::{self, AttemptsLeft};
use super::guard::Continuation;
use super::llm::{Llm, LlmError, LlmErrorKind, LlmMessage, LlmReply, LlmRequest};
use super::step::{AgentFailure, AgentReason, AgentTurn, AttemptKind, AttemptStatus, TracedCall};
use super::trace::AgentTrace;
use super::{Agent, AgentMode, check, prompt, reply};
use ptc_base::secrets::{Cut, shortened};
use ptc_calls::host::HostTool;
use ptc_calls::run::client::asker::CallOrigin;
use ptc_calls::run::client::{CallingClient, ProgressListener};
use ptc_calls::run::limits::Limits;
use ptc_calls::run::options::RunOptions;
use ptc_calls::run::outcome::{Completion, Failure, Outcome, RenderedValue};
use ptc_calls::run::trace::TraceContext;
use ptc_calls::tools::{UpstreamTool, typed};
use ptc_engine::scope::Scope;
use ptc_engine::session::{Accept, Session};
use ptc_vm::Reason;
use serde_json::{Map, Value as Json};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The environment in which an agent runs; shared by nested agents.
#[derive(Clone)]
pub(super) struct AgentEnvironment {
    /// Servers and namespaces of all programs.
    pub(super) base: Scope,
    /// The model of agents that have none of their own.
    pub(super) llm: Arc<dyn Llm>,
    pub(super) budget: Arc<SharedBudget>,
    /// How many agents are around this one.
    pub(super) depth: u32,
    /// How deeply agents may nest: the least limit of this agent and those around it.
    pub(super) max_depth: u32,
    /// The caller's trace.
    pub(super) trace: Option<TraceContext>,
    /// The client that upstreams may elicit from.
    pub(super) client: Option<CallingClient>,
    /// Receives the progress of tools that programs call.
    pub(super) progress: Option<Arc<dyn ProgressListener>>,
}

/// How the programs of a run are executed.
pub(super) enum ExecutionMode {
    /// In a session, so that later programs use what earlier ones defined.
    Session(Session, Option<String>),
    /// Alone, once for each of these contexts, for a program that will be stored.
    Samples(Vec<String>),
}

/// A run of an agent.
pub(super) struct AgentRun<'a> {
    agent: &'a Agent,
    environment: AgentEnvironment,
    scope: Scope,
    execution: ExecutionMode,
    system: String,
    messages: Vec<LlmMessage>,
    left: AttemptsLeft,
    /// Tool calls of all its programs so far; they share one budget.
    calls_made: u64,
    /// The failure of the last turn, if it failed.
    last_failure: Option<(AgentReason, String)>,
    trace: &'a AgentTrace,
}

/// The result of a program.
enum AttemptEnd {
    Answered(Json),
    GivenUp(String),
    Continued(String),
    Failed { feedback: String, reason: AgentReason, message: String },
    Stopped(AgentFailure),
}

impl Agent {
    /// Runs the agent in `environment` and records the result in the trace.
    pub(super) fn run_in<'a>(
        &'a self,
        environment: AgentEnvironment,
        context: Json,
        trace: &'a AgentTrace,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            match AgentRun::begin(self, environment, context, trace) {
                Ok(run) => run.finish().await,
                Err(failure) => trace.step().result = Err(failure),
            }
        })
    }
}

impl<'a> AgentRun<'a> {
    fn begin(
        agent: &'a Agent,
        environment: AgentEnvironment,
        context: Json,
        trace: &'a AgentTrace,
    ) -> Result<AgentRun<'a>, AgentFailure> {
        let Json::Object(context) = context else {
            let text = "a context is an object, whose keys are the names of data";
            return Err(AgentFailure::new(AgentReason::InvalidAgent, text));
        };
        let mission = prompt::mission(agent, &context)?;
        let text = (!context.is_empty()).then(|| Json::Object(context.clone()).to_string());
        AgentRun::on(agent, environment, &mission, &context, trace, |scope| {
            ExecutionMode::Session(scope.session(agent.session_limits), text)
        })
    }

    /// Prepares a run; its mission is filled in from this context.
    pub(super) fn on(
        agent: &'a Agent,
        environment: AgentEnvironment,
        mission: &str,
        context: &Map<String, Json>,
        trace: &'a AgentTrace,
        execution: impl FnOnce(&Scope) -> ExecutionMode,
    ) -> Result<AgentRun<'a>, AgentFailure> {
        if environment.depth > environment.max_depth {
            let text = format!("agents inside agents, more than {} deep", environment.max_depth);
            return Err(AgentFailure::new(AgentReason::MaxDepthExceeded, text));
        }
        let (tools, scope) = agent.scope_in(&environment, trace)?;
        trace.step().prelude_trace = scope.prelude_trace();
        let listed: Vec<&UpstreamTool> = tools.iter().map(HostTool::listing).collect();
        let catalog = scope.has_servers().then(|| scope.catalog());
        let secrets = scope.secrets().clone();
        let mut first = prompt::first_message(
            agent,
            &listed,
            &scope.inventory(),
            catalog.as_deref(),
            mission,
            context,
            &secrets,
        );
        let left = AttemptsLeft { work: agent.limits.max_turns, retry: agent.limits.retry_turns };
        if agent.mode == AgentMode::Loop {
            first.push_str(&feedback::turns(left, false));
        }
        if first.len() > agent.limits.prompt_bytes {
            let why = format!(
                "mission and data take {} bytes, prompt_bytes is {}",
                first.len(),
                agent.limits.prompt_bytes
            );
            return Err(AgentFailure::new(AgentReason::InvalidAgent, why));
        }
        let system = prompt::system(agent, scope.has_servers());
        Ok(AgentRun {
            agent,
            execution: execution(&scope),
            system: secrets.scrub(&system).into_owned(),
            messages: vec![LlmMessage::user(secrets.scrub(&first).into_owned())],
            environment,
            scope,
            left,
            calls_made: 0,
            last_failure: None,
            trace,
        })
    }

    /// Takes turns until the run is over.
    pub(super) async fn finish(mut self) {
        let result = loop {
            match self.turn().await {
                Ok(None) => {}
                Ok(Some(answer)) => break Ok(answer),
                Err(failure) => break Err(failure),
            }
        };
        self.trace.step().result = result;
    }

    /// Takes one turn; returns the answer if this was the last.
    async fn turn(&mut self) -> Result<Option<Json>, AgentFailure> {
        let kind = self.take_turn()?;
        // Checked before the model is asked: a server that a namespace needs may have gone since the last
        // turn.
        self.scope.check().map_err(|failure| failure_of(&failure))?;
        feedback::fit(&mut self.messages, self.agent.limits.prompt_bytes);
        let (reply, prompt_bytes, model_time) = self.ask().await?;
        let most = self.agent.limits.prompt_bytes / 2;
        let told = shortened(&self.scope.secrets().scrub(&reply.text), Cut::Bytes(most)).into_owned();
        let mut turn = AgentTurn {
            number: u32::try_from(self.trace.step().turns.len()).unwrap_or(u32::MAX).saturating_add(1),
            kind,
            prompt_bytes: prompt_bytes as u64,
            program: reply::program(&told).map(str::to_owned),
            reply: told,
            status: AttemptStatus::NoProgram,
            feedback: String::new(),
            prints: Vec::new(),
            calls: Vec::new(),
            tokens: reply.usage,
            model_time,
            program_time: Duration::ZERO,
        };
        let (verdict, calls) = match reply::program(&reply.text) {
            // The beginning of a program can be a valid program, and do half of what was meant.
            Some(_) if reply.is_cut => (unusable(feedback::CUT.to_owned(), "the reply was cut"), Vec::new()),
            // The reply would be part of each later request.
            Some(_) if reply.text.len() > most => {
                (unusable(feedback::too_long(reply.text.len(), most), "the reply was too long"), Vec::new())
            }
            None => {
                let told = feedback::NO_PROGRAM.to_owned();
                (unusable(told, "there was no program in the reply"), Vec::new())
            }
            Some(program) => {
                turn.status = AttemptStatus::Failed;
                self.trace.step().program.clone_from(&turn.program);
                let begun = Instant::now();
                let (verdict, outcomes) = self.execute(program).await;
                turn.program_time = begun.elapsed();
                let mut calls = Vec::new();
                for outcome in outcomes {
                    self.calls_made += u64::from(outcome.usage.upstream_calls);
                    turn.prints.extend(outcome.prints);
                    self.trace.step().call_totals.merge(&outcome.call_totals);
                    calls.extend(outcome.upstream_calls);
                }
                turn.calls = calls.iter().map(TracedCall::from).collect();
                (verdict, calls)
            }
        };
        // Any other end leaves open what the calls of this turn have done.
        let is_over = matches!(verdict, AttemptEnd::Answered(_) | AttemptEnd::GivenUp(_));
        let guarded = match is_over {
            true => Continuation::Continue,
            false => self.agent.guard.decide(&calls),
        };
        self.trace.step().calls.extend(calls);
        self.last_failure = None;
        let result = match verdict {
            AttemptEnd::Answered(answer) => {
                turn.status = AttemptStatus::Answered;
                turn.feedback = feedback::cut(&answer.to_string(), self.agent.limits.feedback_bytes);
                Ok(Some(answer))
            }
            AttemptEnd::GivenUp(message) => {
                turn.status = AttemptStatus::GivenUp;
                turn.feedback.clone_from(&message);
                Err(AgentFailure::new(AgentReason::Failed, message))
            }
            AttemptEnd::Stopped(failure) => {
                turn.feedback.clone_from(&failure.message);
                Err(failure)
            }
            AttemptEnd::Continued(text) => {
                turn.status = AttemptStatus::Continued;
                turn.feedback = text;
                Ok(None)
            }
            AttemptEnd::Failed { feedback, reason, message } => {
                turn.feedback = feedback;
                self.last_failure = Some((reason, message));
                Ok(None)
            }
        };
        if let (Ok(None), Continuation::Continue) = (&result, &guarded) {
            turn.feedback.push_str(&feedback::turns(self.left, self.last_failure.is_some()));
            let told = self.scope.secrets().scrub(&turn.feedback).into_owned();
            // Models refuse a conversation that holds an empty message.
            let said = if turn.reply.trim().is_empty() { "(nothing)" } else { &*turn.reply };
            self.messages.push(LlmMessage::assistant(said));
            self.messages.push(LlmMessage::user(told));
        }
        self.trace.step().turns.push(turn);
        match guarded {
            Continuation::Continue => result,
            Continuation::Stop { matched_calls } => {
                let text = "Continuation blocked after write or unknown upstream side effects";
                Err(AgentFailure {
                    matched_calls,
                    ..AgentFailure::new(AgentReason::PartialSideEffects, text)
                })
            }
        }
    }

    /// Takes a turn from the agent's allowance and from the shared budget.
    fn take_turn(&mut self) -> Result<AttemptKind, AgentFailure> {
        let kind = if self.left.work > 0 {
            self.left.work -= 1;
            AttemptKind::Work
        } else if self.left.retry > 0 && self.last_failure.is_some() {
            self.left.retry -= 1;
            AttemptKind::Retry
        } else {
            return Err(self.exhausted());
        };
        self.environment.budget.take_turn()?;
        Ok(kind)
    }

    /// The failure when no turn is left.
    fn exhausted(&self) -> AgentFailure {
        let turns = self.trace.step().turns.len();
        match &self.last_failure {
            Some((AgentReason::ValidationFailed, message)) => {
                AgentFailure::new(AgentReason::ValidationFailed, message.clone())
            }
            Some((_, message)) if self.agent.mode == AgentMode::SingleShot => {
                AgentFailure::new(AgentReason::ProgramFailed, message.clone())
            }
            Some((_, message)) => {
                let text = format!("no answer in {turns} turns; the last failed: {message}");
                AgentFailure::new(AgentReason::MaxTurnsExceeded, text)
            }
            None => {
                let text = format!("no answer in {turns} turns: no program said (return v)");
                AgentFailure::new(AgentReason::MaxTurnsExceeded, text)
            }
        }
    }

    /// Asks the model.
    async fn ask(&mut self) -> Result<(LlmReply, usize, Duration), AgentFailure> {
        let limits = &self.agent.limits;
        let timeout = limits.model_timeout.min(self.environment.budget.left());
        let llm = self.agent.llm.as_ref().unwrap_or(&self.environment.llm);
        let request = LlmRequest {
            system: &self.system,
            messages: &self.messages,
            max_output_tokens: limits.max_output_tokens,
            timeout,
        };
        let prompt_bytes =
            self.system.len() + self.messages.iter().map(|message| message.text.len()).sum::<usize>();
        {
            let usage = &mut self.trace.step().usage;
            usage.requests += 1;
            usage.prompt_bytes += prompt_bytes as u64;
        }
        let begun = Instant::now();
        let reply = tokio::time::timeout(timeout, llm.complete(request)).await;
        let took = begun.elapsed();
        self.trace.step().usage.model_time += took;
        // The client of the model and this loop each watch the deadline; either may notice first.
        let late = || {
            let text = format!("planner exceeded {}ms timeout", timeout.as_millis());
            LlmError::new(LlmErrorKind::Timeout, text)
        };
        let reply = match reply {
            Ok(Err(error)) if error.kind == LlmErrorKind::Timeout => Err(late()),
            Ok(reply) => reply,
            Err(_) => Err(late()),
        };
        match reply {
            Ok(reply) => {
                let usage = &mut self.trace.step().usage;
                usage.reply_bytes += reply.text.len() as u64;
                usage.tokens.add(reply.usage);
                self.environment.budget.spend(&reply, prompt_bytes);
                Ok((reply, prompt_bytes, took))
            }
            Err(_) if self.environment.budget.left().is_zero() => Err(self.environment.budget.timed_out()),
            Err(error) => {
                let message = self.scope.secrets().scrub(&error.message).into_owned();
                let failure = AgentFailure::new(AgentReason::LlmError, message);
                Err(AgentFailure { model_error: Some(error.kind), ..failure })
            }
        }
    }

    /// Runs a program and judges its result.
    async fn execute(&self, program: &str) -> (AttemptEnd, Vec<Outcome>) {
        match &self.execution {
            ExecutionMode::Session(session, context) => {
                let options = self.options(context.clone());
                let outcome = match session.run(program, options, Some(self.accept())) {
                    Ok(run) => run.await,
                    // Unreachable: the loop waits for each program, and nothing else uses this session.
                    Err(_) => {
                        let failure = AgentFailure::new(AgentReason::InvalidAgent, "its session is busy");
                        return (AttemptEnd::Stopped(failure), Vec::new());
                    }
                };
                let stored = session.contents(|contents| {
                    let is_new = outcome.result.is_ok() && contents.committed;
                    if is_new {
                        contents.changed.iter().map(ToString::to_string).collect()
                    } else {
                        Vec::new()
                    }
                });
                (self.judge(&outcome, &stored), vec![outcome])
            }
            ExecutionMode::Samples(samples) => {
                let (mut outcomes, mut answers) = (Vec::new(), Vec::new());
                for (at, sample) in samples.iter().enumerate() {
                    let outcome = self.scope.run(program, self.options(Some(sample.clone()))).await;
                    let verdict = self.judge_end(&outcome);
                    outcomes.push(outcome);
                    match verdict {
                        AttemptEnd::Answered(answer) => answers.push(answer),
                        // The model saw the data of the first sample only.
                        AttemptEnd::Failed { feedback, reason, message } if at > 0 => {
                            let feedback = format!("With other data of the same shape: {feedback}");
                            return (AttemptEnd::Failed { feedback, reason, message }, outcomes);
                        }
                        other => return (other, outcomes),
                    }
                }
                (AttemptEnd::Answered(Json::Array(answers)), outcomes)
            }
        }
    }

    fn options(&self, context: Option<String>) -> RunOptions {
        // Rounded up: a program that this limit ended then leaves no time, and its failure is not reported as
        // repairable.
        let left =
            u64::try_from(self.environment.budget.left().as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let limits = self.agent.limits_of_programs();
        // A program that will be stored runs alone later, and runs once for each sample now.
        let calls_made =
            if matches!(self.execution, ExecutionMode::Samples(_)) { 0 } else { self.calls_made };
        let limits = Limits {
            timeout_ms: limits.timeout_ms.min(left.max(1)),
            max_upstream_calls: limits.max_upstream_calls.saturating_sub(calls_made),
            ..limits
        };
        RunOptions {
            context,
            strict_data: true,
            limits,
            result_bytes: self.agent.limits.feedback_bytes,
            want_json: true,
            source_name: "program".into(),
            trace: self.environment.trace.clone(),
            client: self.environment.client.clone(),
            progress: self.environment.progress.clone(),
            origin: CallOrigin::Agent,
            ..RunOptions::default()
        }
    }

    /// Refuses an answer that does not match the schema, before the session stores anything of its program.
    fn accept(&self) -> Accept {
        let (schema, mode) = (self.agent.output_schema.clone(), self.agent.mode);
        Box::new(move |rendered| {
            if !is_final(mode, rendered) {
                return Ok(());
            }
            check::answer(rendered, schema.as_ref())
                .map(drop)
                .map_err(|why| Failure::new(Reason::ValidationError.into(), why))
        })
    }

    /// Judges the result of a program that ran in a session.
    fn judge(&self, outcome: &Outcome, stored: &[String]) -> AttemptEnd {
        match &outcome.result {
            Ok(rendered) if !is_final(self.agent.mode, rendered) => {
                let most = self.agent.limits.feedback_bytes;
                AttemptEnd::Continued(feedback::continued(&rendered.text, outcome, stored, most))
            }
            _ => self.judge_end(outcome),
        }
    }

    /// Judges a program that ran alone or ended the mission: its value is the answer.
    fn judge_end(&self, outcome: &Outcome) -> AttemptEnd {
        let failure = match &outcome.result {
            Ok(rendered) => {
                return match check::answer(rendered, self.agent.output_schema.as_ref()) {
                    Ok(answer) => AttemptEnd::Answered(answer),
                    Err(why) => self.refused(&why),
                };
            }
            Err(failure) => failure,
        };
        let ended = failure_of(failure);
        match ended.reason {
            AgentReason::Failed => AttemptEnd::GivenUp(ended.message),
            AgentReason::ValidationFailed => self.refused(&ended.message),
            AgentReason::PreludeAttachFailed => AttemptEnd::Stopped(ended),
            _ if self.environment.budget.left().is_zero() => {
                AttemptEnd::Stopped(self.environment.budget.timed_out())
            }
            reason => AttemptEnd::Failed {
                feedback: feedback::failed(failure, outcome, self.agent.limits.feedback_bytes),
                reason,
                message: ended.message,
            },
        }
    }

    fn refused(&self, why: &str) -> AttemptEnd {
        let shape =
            self.agent.output_schema.as_ref().map(|schema| typed::typed(schema, schema).on_one_line());
        AttemptEnd::Failed {
            feedback: feedback::refused(
                why,
                shape.as_deref().unwrap_or("data with a JSON form"),
                self.agent.limits.feedback_bytes,
            ),
            reason: AgentReason::ValidationFailed,
            message: why.to_owned(),
        }
    }
}

/// The end of a turn without running its reply.
fn unusable(feedback: String, message: &str) -> AttemptEnd {
    AttemptEnd::Failed { feedback, reason: AgentReason::ProgramFailed, message: message.to_owned() }
}

/// The failure of an agent that follows from the failure of a program.
pub(super) fn failure_of(failure: &Failure) -> AgentFailure {
    let reason = match failure.reason {
        reason if reason == Reason::Fail => {
            let value = failure.value.clone().unwrap_or_else(|| failure.message.clone());
            return AgentFailure::new(AgentReason::Failed, value);
        }
        reason if reason == Reason::ValidationError => {
            return AgentFailure::new(AgentReason::ValidationFailed, failure.message.clone());
        }
        reason if reason == Reason::PreludeAttachFailed => {
            return AgentFailure::new(AgentReason::PreludeAttachFailed, failure.message.clone());
        }
        _ => AgentReason::ProgramFailed,
    };
    AgentFailure::new(reason, format!("{}: {}", failure.reason.raw(), failure.message))
}

/// Whether the value ends the mission.
fn is_final(mode: AgentMode, rendered: &RenderedValue) -> bool {
    mode == AgentMode::SingleShot || rendered.completion == Completion::Return
}

impl Agent {
    /// The scope of the agent's programs: its tools in the given environment.
    fn scope_in(
        &self,
        environment: &AgentEnvironment,
        trace: &AgentTrace,
    ) -> Result<(Vec<HostTool>, Scope), AgentFailure> {
        let as_tools = self.children.iter().map(|(name, child)| child.as_tool(name, environment, trace));
        let tools = self.tools.iter().cloned().chain(as_tools);
        let tools: Vec<HostTool> = tools.filter(|tool| environment.base.admits(tool)).collect();
        let scope = environment.base.with(tools.clone(), &self.preludes);
        let scope = scope.map_err(|error| AgentFailure::new(AgentReason::InvalidAgent, error.to_string()))?;
        Ok((tools, scope))
    }
}
