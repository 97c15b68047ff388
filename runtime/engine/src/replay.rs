//! Runs recorded programs again with their recorded answers: to replay them, to resume interrupted runs, and to restore
//! sessions.

use crate::broker::header::{self, list_from};
use crate::broker::{ToolBroker, Upstreams, output_bytes};
use crate::exec::handle::Submitted;
use crate::guest::AsyncRun;
use crate::guest::lisp::Lisp;
use crate::guest::lisp::prelude::{Prelude, PreludeSource};
use crate::runtime::Runtime;
use crate::scope::Scope;
use crate::session::Session;
use ptc_calls::journal::{
    Difference, Header, InDoubt, Language, Matching, OutcomeRecord, Record, Recording, RecordingError,
    RunJournal, Script, TakenRun, differences,
};
use ptc_calls::run::client::asker::ClientIdentity;
use ptc_calls::run::client::{CallingClient, ClientTag, Offered};
use ptc_calls::run::limits::Limits;
use ptc_calls::run::options::RunOptions;
use ptc_calls::run::outcome::Outcome;
use ptc_calls::run::watcher::RunWatcher;
use ptc_calls::tools::{ServerNames, SharedCatalog, SnapshotMode};
use ptc_upstream::{RecordedUpstream, Upstream};
use std::sync::Arc;

/// The least time that a replayed program has: it may run on a slower machine.
const LEAST_TIMEOUT_MS: u64 = 60_000;

/// How a recording is replayed.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// How calls find their answers.
    pub matching: Matching,
    /// Another program in the place of the recorded one.
    pub program: Option<Arc<str>>,
    /// Another prelude in the place of the recorded ones.
    pub prelude: Option<Arc<Prelude>>,
}

/// A script that is replayed.
pub struct ReplayedScript {
    /// Its text.
    pub program: Arc<str>,
    /// Its name in diagnostics.
    pub source_name: Arc<str>,
    /// Limit of its output.
    pub output_bytes: Option<usize>,
    /// The recorded servers.
    pub broker: Arc<ToolBroker>,
    /// The journal, which has the answers.
    pub journal: Arc<RunJournal>,
}

/// The result of a replay.
#[derive(Debug)]
pub struct Replayed {
    /// The outcome now.
    pub outcome: Outcome,
    /// The outcome now, as a recording has it: nothing is redacted.
    pub record: OutcomeRecord,
    /// How it differs from the recorded one.
    pub differences: Vec<Difference>,
    /// Where and how the run has left the recording.
    pub divergence: Option<String>,
    /// Calls that were answered from the recording.
    pub answered: u64,
    /// Calls that the recording does not have.
    pub unknown: Vec<String>,
    /// Recorded calls that were not made.
    pub unused: Vec<String>,
}

impl Replayed {
    /// True if the recording had all answers.
    pub fn is_answered(&self) -> bool {
        self.divergence.is_none() && self.unknown.is_empty()
    }

    /// True if nothing differs.
    pub fn is_same(&self) -> bool {
        self.differences.is_empty()
            && self.divergence.is_none()
            && self.unknown.is_empty()
            && self.unused.is_empty()
    }
}

impl Runtime {
    /// Runs a recorded program again. Its calls get the recorded answers. Functions of the application are those of this
    /// runtime, and are not called either.
    ///
    /// # Errors
    /// A part of the recording is missing, or it is not a recording of a program.
    #[doc(hidden)]
    pub async fn replay(
        &self,
        recording: &Arc<Recording>,
        options: &ReplayOptions,
    ) -> Result<Replayed, RecordingError> {
        let header = recording.header();
        if header.language != Language::Lisp {
            let text = format!("{} is the recording of a script", recording.path().display());
            return Err(RecordingError::new(text));
        }
        let scope = match options.matching {
            Matching::LiveReads => self.base(),
            Matching::Strict | Matching::Arguments => self.recorded_scope(recording, options)?,
        };
        let script = Script::new(recording.clone(), options.matching);
        let journal = Arc::new(RunJournal::replayed(script));
        let program = options.program.clone().unwrap_or_else(|| header.program.as_str().into());
        let outcome = scope.run(program, run_options(header, Some(journal.clone()))).await;
        replayed(recording, options, &journal, outcome)
    }

    /// [`Runtime::replay`] for a script: `run` makes its run.
    ///
    /// # Errors
    /// As for [`Runtime::replay`].
    #[doc(hidden)]
    pub async fn replay_script(
        &self,
        recording: &Arc<Recording>,
        options: &ReplayOptions,
        run: impl FnOnce(ReplayedScript) -> AsyncRun,
    ) -> Result<Replayed, RecordingError> {
        let header = recording.header();
        let broker = match options.matching {
            Matching::LiveReads => self.broker().clone(),
            Matching::Strict | Matching::Arguments => self.recorded_broker(recording, options)?,
        };
        let journal = Arc::new(RunJournal::replayed(Script::new(recording.clone(), options.matching)));
        let script = ReplayedScript {
            program: options.program.clone().unwrap_or_else(|| header.program.as_str().into()),
            source_name: header.source_name.as_str().into(),
            output_bytes: output_bytes(header),
            broker,
            journal: journal.clone(),
        };
        let outcome = self.run_async(limits_of(header), run(script)).await;
        replayed(recording, options, &journal, outcome)
    }

    /// Goes on with a stored run that was interrupted, at the servers of this runtime: its calls get the answers that it
    /// had, and then go on. A call that may have been made is not made again, unless it changes nothing.
    ///
    /// # Errors
    /// There is no such run; it is one of another language; it is under way; a policy decided about its calls, and this
    /// runtime has none.
    #[doc(hidden)]
    pub async fn resume(&self, run: &str, in_doubt: InDoubt) -> Result<Outcome, RecordingError> {
        let (scope, program, options) = self.resumable(run, in_doubt, RunOptions::default()).await?;
        let outcome = scope.run(program, options).await;
        // What is listed afterwards is as the run has left it.
        if let Some(durable) = self.broker().durable() {
            durable.settled().await;
        }
        Ok(outcome)
    }

    /// [`Runtime::resume`] for a client: `options` has it, and what keeps the run. The watcher is notified of the
    /// progress and the end of the run.
    ///
    /// # Errors
    /// As for [`Runtime::resume`].
    #[doc(hidden)]
    pub async fn resume_for(
        &self,
        run: &str,
        in_doubt: InDoubt,
        options: RunOptions,
        watcher: Box<dyn RunWatcher>,
    ) -> Result<Submitted, RecordingError> {
        let (scope, program, options) = self.resumable(run, in_doubt, options).await?;
        Ok(scope.submit(program, options, watcher))
    }

    /// Restores what a program has defined in a session: it runs again with its recorded answers, in the session as the
    /// programs before it have left it.
    ///
    /// # Errors
    /// The session is busy; the program does something else than it did.
    #[doc(hidden)]
    pub async fn restore(&self, session: &Session, recording: Recording) -> Result<(), RecordingError> {
        let recording = Arc::new(recording);
        let header = recording.header();
        if let Some(name) = session.changed_prelude(&header.preludes) {
            let text = format!("the prelude {name} is not the one that its programs ran with");
            return Err(RecordingError::new(text));
        }
        let journal = Arc::new(RunJournal::replayed(Script::restoring(recording.clone())));
        let options = run_options(header, Some(journal.clone()));
        let run = session.run(header.program.as_str(), options, None);
        let outcome = run.map_err(|busy| RecordingError::new(busy.to_string()))?.await;
        let Some((script, record)) = journal.replay_ended() else {
            return Err(RecordingError::new("the program was stopped"));
        };
        let differences = recording.outcome().map_or_else(Vec::new, |then| differences(then, &record, false));
        // Not as texts: they are not redacted.
        let difference = differences
            .first()
            .map(|Difference { what, .. }| format!("the {what} of a program would be another"));
        let unused = || script.unused().first().map(|call| format!("the program does not call {call} again"));
        let failure = outcome.result.err().map(|failure| failure.message);
        match script.divergence().map(str::to_owned).or(failure).or_else(unused).or(difference) {
            Some(why) => Err(RecordingError::new(why)),
            None => Ok(()),
        }
    }

    /// The scope, the program and the options with which a run goes on.
    async fn resumable(
        &self,
        run: &str,
        in_doubt: InDoubt,
        options: RunOptions,
    ) -> Result<(Scope, Arc<str>, RunOptions), RecordingError> {
        let Some(durable) = self.broker().durable() else {
            return Err(RecordingError::new("this runtime has no stored runs"));
        };
        let TakenRun { journal, mut log } = durable.take(run).await?;
        if options.keep.is_some() {
            // It may end before it is asked for.
            log.retain();
        }
        let recording = Arc::new(journal);
        let header = recording.header();
        if header.language != Language::Lisp {
            return Err(RecordingError::new(format!("{run}: scripts do not go on")));
        }
        if header.under_policy && self.broker().policy().current().is_none() {
            return Err(RecordingError::new(format!(
                "{run}: a policy decided about its calls, and there is none now: give it with --policy, or a file that \
                 allows everything"
            )));
        }
        let script = Script::restoring(recording.clone());
        let scope = self.scope_of(&recording)?;
        let journal = Arc::new(RunJournal::resumed(script, log, in_doubt));
        let RunOptions { client, keep, trace, .. } = options;
        let client = client_of(header, client);
        let limits = header::limits(header);
        let options = RunOptions { client, keep, trace, limits, ..run_options(header, Some(journal)) };
        Ok((scope, header.program.as_str().into(), options))
    }

    /// The scope in which a run goes on: the servers that it could call, and the preludes that it had.
    fn scope_of(&self, recording: &Recording) -> Result<Scope, RecordingError> {
        let (base, header) = (self.base(), recording.header());
        let known: ServerNames = header.servers.iter().map(|server| server.server.clone()).collect();
        let lisp = base.lisp.with_recorded(known, recorded_prelude(recording)?);
        Ok(Scope::new(lisp, base.queue.clone()))
    }

    /// The servers of a recording.
    fn recorded_broker(
        &self,
        recording: &Recording,
        options: &ReplayOptions,
    ) -> Result<Arc<ToolBroker>, RecordingError> {
        let header = recording.header();
        let servers = || header.servers.iter();
        let name = |name: &str| Arc::<str>::from(name);
        let catalog = SharedCatalog::new(
            servers().map(|server| (name(&server.server), server.description.as_deref().map(name))),
        );
        let mut upstreams = Upstreams::new();
        // An edited program may need any list before its place in the recording.
        let later = recording.records().iter().filter_map(|record| match record {
            Record::Tools(server) if options.matching != Matching::Strict => Some(server),
            _ => None,
        });
        for server in servers().chain(later) {
            if let Some(digest) = &server.tools {
                let list = list_from(&recording.shared(digest)?);
                let list = list.ok_or_else(|| RecordingError::new(format!("{digest} is no tool list")))?;
                catalog.publish(&server.server, list, SnapshotMode::Live);
            }
        }
        for server in servers() {
            let (name, description) = (name(&server.server), server.description.clone());
            let upstream = RecordedUpstream::new(name.clone(), description, catalog.clone());
            upstreams.insert(name, Arc::new(upstream) as Arc<dyn Upstream>);
        }
        Ok(Arc::new(ToolBroker::new(upstreams, catalog, self.secrets().clone())))
    }

    /// A scope with the servers and namespaces of a recording.
    fn recorded_scope(
        &self,
        recording: &Recording,
        options: &ReplayOptions,
    ) -> Result<Scope, RecordingError> {
        let prelude = match &options.prelude {
            Some(prelude) => Some(prelude.clone()),
            None => recorded_prelude(recording)?,
        };
        let broker = self.recorded_broker(recording, options)?;
        let base = self.base();
        let lisp = Lisp::new(broker, 0, prelude, base.lisp.host_tools(), false);
        Ok(Scope::new(lisp, base.queue.clone()))
    }
}

/// The client of a run that goes on, for which the rules and limits of the token hold that the run began with.
fn client_of(header: &Header, client: Option<CallingClient>) -> Option<CallingClient> {
    let Some(token) = &header.owner else { return client };
    let identity =
        ClientIdentity { token: Some(token.as_str().into()), scopes: header.scopes.as_slice().into() };
    let absent = || CallingClient {
        tag: ClientTag::unique(),
        owner: 0,
        identity: ClientIdentity::default(),
        offered: Offered::default(),
        asked: None,
    };
    Some(CallingClient { identity, ..client.unwrap_or_else(absent) })
}

fn recorded_prelude(recording: &Recording) -> Result<Option<Arc<Prelude>>, RecordingError> {
    let preludes = &recording.header().preludes;
    let source = |record: &ptc_calls::journal::PreludeRecord| {
        let source = PreludeSource::new(record.name.clone(), recording.shared(&record.text)?);
        Ok(PreludeSource { origin: record.origin.clone(), ..source })
    };
    let sources = preludes.iter().map(source).collect::<Result<Vec<_>, RecordingError>>()?;
    if sources.is_empty() {
        return Ok(None);
    }
    let prelude = Prelude::compose(sources);
    prelude.map(|prelude| Some(Arc::new(prelude))).map_err(|error| RecordingError::new(error.to_string()))
}

/// The limits of a recorded run, with more time.
fn limits_of(header: &Header) -> Limits {
    let mut limits = header::limits(header);
    limits.timeout_ms = limits.timeout_ms.max(LEAST_TIMEOUT_MS);
    limits
}

/// The result of a replay that has ended.
fn replayed(
    recording: &Recording,
    options: &ReplayOptions,
    journal: &RunJournal,
    outcome: Outcome,
) -> Result<Replayed, RecordingError> {
    let Some((script, record)) = journal.replay_ended() else {
        return Err(RecordingError::new("the replay was stopped"));
    };
    let is_strict = options.matching == Matching::Strict;
    let differences = match script.divergence() {
        Some(_) => Vec::new(),
        None => recording.outcome().map_or_else(Vec::new, |then| differences(then, &record, is_strict)),
    };
    Ok(Replayed {
        outcome,
        record,
        differences,
        divergence: script.divergence().map(str::to_owned),
        answered: script.answered(),
        unknown: script.unknown().to_vec(),
        unused: script.unused(),
    })
}

fn run_options(header: &Header, journal: Option<Arc<RunJournal>>) -> RunOptions {
    let options = RunOptions {
        context: header.context.as_ref().map(|context| context.get().to_owned()),
        strict_data: header.strict_data,
        limits: limits_of(header),
        source_name: header.source_name.clone().into(),
        now_ms: header.now_ms,
        journal,
        ..RunOptions::default()
    };
    options.rendered_as(&header.rendering)
}
