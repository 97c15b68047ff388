//! Runs PTC-Lisp programs next to MCP tools, inside an application: the stable interface, re-exported from the crates
//! that do the work.
//!
//! A [`Runtime`] holds servers, tools of the application ([`HostTool`]) and worker threads. [`Runtime::run`] runs a
//! program within [`Limits`] and returns an [`Outcome`]: the answer or the failure, printed lines, calls, cost.
//!
//! ```
//! use ptc_runtime::{Effect, HostTool, RunOptions, Runtime};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct User {
//!     id: u32,
//! }
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let user = HostTool::new("user", |User { id }: User| async move {
//!     ["Ada", "Grace"].get(id as usize).copied().ok_or("no such user")
//! });
//! let runtime = Runtime::builder().tool(user.effect(Effect::Read)).start().await?;
//! let names: Vec<String> = runtime.run("(map tool/user [0 1])", RunOptions::typed()).await.value()?;
//! assert_eq!(names, ["Ada", "Grace"]);
//! runtime.shutdown().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layout
//!
//! This crate is the interface that stays stable. It re-exports from the crates that do the work, whose other items
//! may change with any release:
//!
//! - `ptc-agent`: agents and clients of models. It is above `ptc-engine`.
//! - `ptc-engine`: workers, guests, sessions, the broker of tool calls.
//! - `ptc-upstream`: connections to MCP servers, OpenAPI services and local commands; their configuration.
//! - `ptc-calls`: runs and their calls as data: limits, accounts, catalogs, policies, journals.
//! - `ptc-base`: files, tasks, secrets, stores, the HTTP client, logins.
//!
//! Fields and methods that these crates hide in their documentation are for the server `ptc`.

#[doc(inline)]
pub use ptc_base::secrets::{Credential, SecretRegistry};
#[doc(inline)]
pub use ptc_calls::outcome::{
    CallFault, CallRecord, CallStatus, Effect, Failure, FailureKind, Outcome, RenderedValue, Usage,
};
#[doc(inline)]
pub use ptc_calls::policy::{Policy, PolicyError};
#[cfg(feature = "schemars")]
#[doc(no_inline)]
pub use ptc_calls::schemars;
#[doc(inline)]
pub use ptc_calls::{CallTotals, HostTool, Limits, NoArguments, RunOptions, ValueError};
#[doc(inline)]
pub use ptc_engine::{
    Prelude, PreludeError, Run, RunEvent, RunStream, Runtime, RuntimeBuilder, RuntimeConfig, Scope,
    ServerStatus, StartError,
};
#[doc(inline)]
pub use ptc_upstream::{UpstreamState, config::ConfigError};

/// Programs that build on each other: definitions of one are there for the next.
pub mod session {
    #[doc(inline)]
    pub use ptc_engine::session::{Session, SessionBusy, SessionLimits};
}

/// Records of earlier programs, and the namespace `log/` over them.
pub mod history {
    #[doc(inline)]
    pub use ptc_engine::history::{TurnHistory, introspection};
}

/// Agents: a model writes programs until one of them returns the answer.
#[cfg(feature = "agent")]
pub mod agent {
    #[doc(inline)]
    pub use ptc_agent::{
        Agent, AgentFailure, AgentLimits, AgentReason, AgentStep, AgentTurn, AgentUsage, AttemptKind,
        AttemptStatus, CompiledAgent, Continuation, ContinuationGuard, Llm, LlmError, LlmErrorKind,
        LlmMessage, LlmReply, LlmRequest, LlmRole, MatchedCall, ModelOptions, ReadsOnly, TokenUsage,
        TracedCall, async_trait, model,
    };
}
