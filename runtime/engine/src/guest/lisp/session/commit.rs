//! Stores what a successful program leaves to the next one of its session, within limits: its definitions, and its
//! result as `*1`. Of a large result it stores a preview. It also makes the environment of the next program. Failures
//! become `*e`.

use super::state::{
    CommitNote, HistoryEntry, PrintedSize, SessionBinding, SessionContents, SessionLimits, SessionState,
};
use crate::guest::lisp::build::{count, record};
use crate::guest::lisp::environment::{CompileEnvironment, DefinedName};
use ptc_base::secrets::{CleanText, Cut, SecretRegistry, shortened};
use ptc_calls::run::options::RunOptions;
use ptc_calls::run::outcome::{Failure, FailureKind, RenderedValue};
use ptc_compiler::CallArity;
use ptc_vm::print::{TextLimit, pr_str};
use ptc_vm::{Class, Context, Fault, Isolate, OverLimit, Value};
use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;

/// Names of the last results, newest first (language.md, "sessions").
pub(super) const HISTORY: [&str; 3] = ["*1", "*2", "*3"];

/// The name that holds the last failure, if the host wants that.
pub(super) const FAILURE: &str = "*e";

fn is_history(name: &str) -> bool {
    name == FAILURE || HISTORY.contains(&name)
}

/// Size limit of the preview in the description of a result that is too large.
const DESCRIBED: usize = 200;

/// A value that is too large is measured up to this many times its limit.
const COUNTED: usize = 16;

/// The state of the session would exceed its limits.
const OVER_LIMIT: FailureKind = FailureKind::new("session_limit_exceeded", Class::RuntimeError);

/// The facts that a commit will record.
pub(in crate::guest::lisp) struct PreparedCommit {
    entry: HistoryEntry,
    note: Option<CommitNote>,
    changed: Vec<(String, SessionBinding)>,
}

/// Why a commit is refused.
pub(in crate::guest::lisp) enum CommitRefusal {
    /// A limit of the session.
    OverLimit(Failure),
    /// A limit of the run, reached while the commit was prepared.
    Fault(Box<Fault>),
}

impl From<Box<Fault>> for CommitRefusal {
    fn from(fault: Box<Fault>) -> CommitRefusal {
        CommitRefusal::Fault(fault)
    }
}

/// Adds the result to the history and examines the definitions of the program. The cost depends on these, not
/// on what the session already stores.
pub(in crate::guest::lisp) fn prepare(
    isolate: &mut Isolate,
    session: &SessionState,
    answer: &RenderedValue,
    options: &RunOptions,
    secrets: &SecretRegistry,
) -> Result<PreparedCommit, CommitRefusal> {
    let limits = &session.limits;
    let (mut result, mut note) = (PrintedForm::from_answer(answer, options, limits), None);
    isolate.push_history(&HISTORY, |cx, value| {
        let form = match &mut result {
            Some(form) => form,
            none => none.insert(PrintedForm::print(cx, value, limits.history_entry_bytes, limits)?),
        };
        if form.bytes <= limits.history_entry_bytes {
            return Ok(value.clone());
        }
        note = Some(CommitNote { size: form.size(), most: limits.history_entry_bytes });
        description(cx, form, limits)
    })?;
    // Printed by the closure above, if not before.
    let result = result.unwrap_or_default();
    let entry = HistoryEntry { bytes: result.bytes, preview: result.preview(limits, secrets) };
    let mut names = Vec::new();
    isolate.definitions(|definition| {
        if definition.is_new && definition.namespace.is_none() && !is_history(definition.name) {
            names.push(definition.name.to_owned());
        }
    });
    let count = {
        let contents = session.contents();
        let added = names.iter().filter(|name| !contents.bindings.contains_key(*name)).count();
        contents.bindings.len() + added
    };
    if count as u64 > limits.bindings {
        return Err(over("memory", count, "max_bindings", limits.bindings));
    }
    let mut changed = Vec::with_capacity(names.len());
    for name in names {
        let most = limits.binding_bytes;
        let (size, preview) = match result.is_exact && isolate.is_result(&name) {
            true => (result.size(), entry.preview.clone()),
            false => {
                let Some(form) =
                    isolate.definition(&name, |cx, value| PrintedForm::print(cx, value, most, limits))
                else {
                    continue;
                };
                let form = form?;
                (form.size(), form.preview(limits, secrets))
            }
        };
        if size.bytes > most {
            return Err(over(&format!("binding `{name}`"), size, "max_binding_bytes", most));
        }
        changed.push((name, SessionBinding { bytes: size.bytes, preview }));
    }
    Ok(PreparedCommit { entry, note, changed })
}

/// Commits within the memory limit of the session.
pub(in crate::guest::lisp) fn commit(
    isolate: &mut Isolate,
    empty_bytes: u64,
    limits: &SessionLimits,
) -> Result<(), CommitRefusal> {
    let most = empty_bytes.saturating_add(limits.memory_bytes);
    isolate.commit(most).map_err(|OverLimit { needed, .. }| {
        let needed = needed.saturating_sub(empty_bytes);
        over("memory", needed, "max_session_memory_bytes", limits.memory_bytes)
    })
}

impl PreparedCommit {
    /// Records what was committed. True when names are new or hold something else.
    pub(in crate::guest::lisp) fn enter(
        self,
        contents: &mut SessionContents,
        limits: &SessionLimits,
        prints: &[String],
        memory_bytes: u64,
        secrets: &SecretRegistry,
    ) -> bool {
        let PreparedCommit { entry, note, changed } = self;
        contents.turn += 1;
        contents.committed = true;
        contents.note = note;
        contents.memory_bytes = memory_bytes;
        let is_longer = contents.history.len() < HISTORY.len();
        contents.history.push_front(entry);
        contents.history.truncate(HISTORY.len());
        contents.prints.extend(prints.iter().map(|line| secrets.clean(line)));
        contents.changed = changed.iter().map(|(name, _)| name.clone()).collect();
        let has_changed = !changed.is_empty() || is_longer;
        contents.bindings.extend(changed);
        contents.trim(limits);
        has_changed
    }
}

/// The environment of the next program of this isolate.
pub(in crate::guest::lisp) fn describe(
    isolate: &mut Isolate,
    before: &CompileEnvironment,
) -> Arc<CompileEnvironment> {
    let mut names = Vec::new();
    isolate.definitions(|definition| {
        if definition.namespace.is_none() {
            let arity = definition.arity.map(|arity| CallArity { min: arity.min, max: arity.max });
            names.push(DefinedName { name: definition.name.into(), arity });
        }
    });
    Arc::new(before.with_session(names))
}

fn over(field: &str, actual: impl Display, limit: &str, most: u64) -> CommitRefusal {
    let message = format!(
        "session persisted-state limit exceeded; eval was not committed: {field} needs {actual}, {limit} is {most}"
    );
    CommitRefusal::OverLimit(Failure::new(OVER_LIMIT, message))
}

/// A map that replaces a result too large to be stored.
fn description(
    cx: &mut Context,
    form: &PrintedForm<'_>,
    limits: &SessionLimits,
) -> Result<Value, Box<Fault>> {
    let reason = cx.keyword("max_history_entry_bytes");
    let room = Cut::Bytes(DESCRIBED.min(to_usize(limits.history_entry_bytes / 4)));
    let shown = cx.host_text(&shortened(&form.begins, room))?;
    let entries = [
        ("lisp_session_preview", Value::Bool(true)),
        ("reason", reason),
        (if form.size().is_more { "more_than_bytes" } else { "bytes" }, count(form.size().bytes)),
        ("max_bytes", count(limits.history_entry_bytes)),
        ("preview", shown),
    ];
    record(cx, entries)
}

/// A failure as a value for programs.
pub(super) fn failed(cx: &mut Context, failure: &Failure) -> Result<Value, Box<Fault>> {
    let mut entries = vec![
        ("reason", cx.keyword(failure.reason.raw())),
        ("message", cx.host_text(failure.value.as_ref().unwrap_or(&failure.message))?),
    ];
    if let Some(position) = failure.position() {
        entries.push(("line", Value::Int(position.line.into())));
        entries.push(("column", Value::Int(position.column.into())));
    }
    record(cx, entries)
}

/// The printed form of a value: its length and its beginning.
#[derive(Default)]
struct PrintedForm<'t> {
    /// Bytes of the whole form; where that is not exact, as many as were counted.
    bytes: u64,
    is_exact: bool,
    begins: Cow<'t, str>,
}

impl<'t> PrintedForm<'t> {
    /// The printed form of the result if its answer suffices: a large result is printed once.
    fn from_answer(
        answer: &'t RenderedValue,
        options: &RunOptions,
        limits: &SessionLimits,
    ) -> Option<PrintedForm<'t>> {
        let is_counted = answer.text_bytes <= options.counted_bytes.max(options.result_bytes) as u64;
        let is_enough = !answer.truncated || answer.text.len() >= shown_bytes(limits);
        (is_counted && is_enough).then(|| PrintedForm {
            bytes: answer.text_bytes + answer.saved_bytes,
            is_exact: true,
            begins: Cow::Borrowed(&answer.text),
        })
    }

    /// Its size.
    fn size(&self) -> PrintedSize {
        PrintedSize { bytes: self.bytes, is_more: !self.is_exact }
    }

    /// Prints a value up to `most` bytes; a longer one is measured, up to a bound.
    fn print(
        cx: &mut Context,
        value: &Value,
        most: u64,
        limits: &SessionLimits,
    ) -> Result<PrintedForm<'static>, Box<Fault>> {
        let counted = to_usize(most).saturating_mul(COUNTED);
        let limit = TextLimit { bytes: shown_bytes(limits).min(to_usize(most)), counted, brief: false };
        let printed = pr_str(cx, value, limit)?;
        let is_exact = printed.bytes <= counted;
        let bytes = printed.bytes.min(counted) as u64;
        Ok(PrintedForm { bytes, is_exact, begins: Cow::Owned(printed.text) })
    }

    /// Its first characters.
    fn preview(&self, limits: &SessionLimits, secrets: &SecretRegistry) -> CleanText {
        let clean = match self.begins.len() as u64 == self.bytes {
            true => secrets.clean(&self.begins),
            false => secrets.clean_cut(&self.begins),
        };
        clean.into_first(Cut::Chars(to_usize(limits.preview_chars)))
    }
}

/// Byte limit of a preview.
fn shown_bytes(limits: &SessionLimits) -> usize {
    const CHAR: usize = 4;
    DESCRIBED.max(to_usize(limits.preview_chars).saturating_mul(CHAR))
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
