//! Runs one script in the Monty interpreter, and handles what it asks for meanwhile: tool calls and output, which go to
//! the parent process, and the current time.

use super::failure;
use super::rounding;
use super::values::{json_of, now, spilled_name, spilled_object, value_of};
use super::worker::{Answer, Channel, FunctionSet};
use crate::requests;
use monty::{
    MontyRepl, ReplFunctionCall, ReplNameLookup, ReplOsCall, ReplProgress, ReplResolveFutures, ReplStartError,
};
use monty_types::{
    ExcType, ExtFunctionResult, MontyDate, MontyDateTime, MontyException, MontyObject, MontyUuid,
    NameLookupResult, OsFunctionCall, PrintWriter, PrintWriterCallback,
};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

/// The exception that represents `ToolError`. Monty cannot raise classes of its host, and scripts have no
/// other use for this one.
pub(super) const TOOL_ERROR: ExcType = ExcType::RePatternError;

/// Defines the name `ToolError`. A class that the host passes in cannot be caught.
pub(super) const NAME_TOOL_ERROR: &str = "from re import PatternError as ToolError";

type Step = Result<ReplProgress, Box<ReplStartError>>;

/// Number of lines that are sent at once. Later ones are sent at this interval.
const LINES_AT_ONCE: u32 = 200;
const PAUSE: Duration = Duration::from_millis(50);

/// `sys.stdout`: retains what fits, and sends it during the run, so that output of a killed script is not
/// lost. There is no other stream.
pub(super) struct Output<'a> {
    channel: &'a Channel,
    text: String,
    limit: usize,
    cut: bool,
    /// Bytes that were sent, the number of sends, and the time of the last one.
    sent_bytes: usize,
    times: u32,
    last: Instant,
}

impl<'a> Output<'a> {
    fn new(channel: &'a Channel, limit: usize) -> Output<'a> {
        let (text, last) = (String::new(), Instant::now());
        Output { channel, text, limit, cut: false, sent_bytes: 0, times: 0, last }
    }

    /// Sends the new output.
    fn tell(&mut self) {
        let new = &self.text[self.sent_bytes..];
        if !new.is_empty() {
            self.channel.send(&json!({ "printed": new }));
            (self.sent_bytes, self.times, self.last) = (self.text.len(), self.times + 1, Instant::now());
        }
    }

    fn take(&mut self, text: &str) {
        if self.cut {
            return;
        }
        let room = self.limit - self.text.len();
        let fits = &text[..text.floor_char_boundary(room)];
        self.cut = fits.len() < text.len();
        self.text.push_str(fits);
        if text.ends_with('\n') && (self.times < LINES_AT_ONCE || self.last.elapsed() > PAUSE) {
            self.tell();
        }
    }
}

impl PrintWriterCallback for Output<'_> {
    fn stdout_write(&mut self, output: Cow<'_, str>) -> Result<(), MontyException> {
        self.take(&output);
        Ok(())
    }

    fn stdout_push(&mut self, end: char) -> Result<(), MontyException> {
        self.take(end.encode_utf8(&mut [0; 4]));
        Ok(())
    }
}

/// A call that was made but not sent. It is sent when the script waits.
struct Made {
    name: String,
    /// Its line, without the number.
    line: Value,
}

/// A running script.
pub(super) struct Script<'a> {
    channel: &'a Channel,
    functions: &'a FunctionSet,
    output: Output<'a>,
    made: BTreeMap<u32, Made>,
    sent: HashSet<u32>,
    /// Answers to calls, by number.
    answers: HashMap<u64, Result<Answer, String>>,
    looks: u64,
    /// Messages of failed tool calls.
    tool_errors: HashSet<String>,
}

/// The first number of discovery requests, above all numbers of calls.
const LOOKS: u64 = 1 << 40;

impl<'a> Script<'a> {
    /// A script with at most `limit` bytes of output.
    pub(super) fn new(channel: &'a Channel, functions: &'a FunctionSet, limit: usize) -> Script<'a> {
        Script {
            channel,
            functions,
            output: Output::new(channel, limit),
            made: BTreeMap::new(),
            sent: HashSet::new(),
            answers: HashMap::new(),
            looks: 0,
            tool_errors: HashSet::new(),
        }
    }

    /// Runs this code. Returns the namespace afterwards, and the script's last line.
    pub(super) fn run(mut self, repl: MontyRepl, code: &str) -> (MontyRepl, Value) {
        if let Some(missing) = failure::ignored(code) {
            return (repl, json!({ "error": missing }));
        }
        let round = MontyObject::Function { name: rounding::NAME.to_owned(), docstring: None };
        let inputs = vec![(rounding::NAME.to_owned(), round)];
        let mut step = repl.feed_start(code, inputs, PrintWriter::Callback(&mut self.output));
        loop {
            step = match step {
                Ok(ReplProgress::Complete { repl, .. }) => return (repl, self.printed()),
                Err(ended) => {
                    let ReplStartError { repl, error } = *ended;
                    let text = failure::traceback(&error, &self.tool_errors, self.functions);
                    self.output.tell();
                    return (repl, json!({ "error": text, "cut": self.output.cut }));
                }
                Ok(ReplProgress::NameLookup(lookup)) => self.look_up(lookup),
                Ok(ReplProgress::FunctionCall(call)) => self.call(call),
                Ok(ReplProgress::OsCall(call)) => self.ask_system(call),
                Ok(ReplProgress::ResolveFutures(waiting)) => self.wait(waiting),
            };
        }
    }

    fn printed(self) -> Value {
        let never: HashSet<&str> = self.made.values().map(|made| &*made.name).collect();
        let mut never: Vec<&str> = never.into_iter().collect();
        never.sort_unstable();
        let note = |name: &&str| {
            format!(
                "RuntimeWarning: {name}(…) was never awaited, so it was not called: write `await {name}(…)`"
            )
        };
        let notes: Vec<String> = never.iter().map(note).collect();
        json!({ "output": self.output.text, "cut": self.output.cut, "notes": notes })
    }

    fn look_up(&mut self, lookup: ReplNameLookup) -> Step {
        let is_function = |name: &str| {
            matches!(name, "tools" | "help")
                || requests::is_function(name)
                || self.functions.knows(name)
                || self.functions.is_unavailable(name)
        };
        let answer = match &*lookup.name {
            "value_kind" if lookup.object_id().and_then(spilled_name).is_some() => {
                MontyObject::String("spilled".to_owned()).into()
            }
            _ if lookup.object_id().is_some() => NameLookupResult::Undefined,
            name if is_function(name) => {
                MontyObject::Function { name: name.to_owned(), docstring: self.functions.docstring(name) }
                    .into()
            }
            _ => NameLookupResult::Undefined,
        };
        lookup.resume(answer, PrintWriter::Callback(&mut self.output))
    }

    fn call(&mut self, call: ReplFunctionCall) -> Step {
        let name = call.function_name.clone();
        let answer = match &*name {
            _ if let Some(id) = call.object_id => self.made(&call, spilled_call(id, &call)),
            _ if requests::is_function(&name) => {
                let line = |arguments| json!({ "request": name, "arguments": arguments });
                let made =
                    raw_arguments(&call).map(|arguments| Made { line: line(arguments), name: name.clone() });
                self.made(&call, made)
            }
            "tools" => self.tools(&call).map(Some),
            "help" => self.help(&call).map(Some),
            rounding::NAME => rounding::round(&call.args, &call.kwargs).map(Some),
            _ if self.functions.is_unavailable(&name) => {
                Err(self.tool_error(format!("'{name}' is not available in execute_program")))
            }
            _ => match self.functions.arguments(&name, &call.args, &call.kwargs) {
                None => Err(raise(ExcType::NameError, format!("name '{name}' is not defined"))),
                Some(line) => self.made(&call, line.map(|line| Made { name: name.clone(), line })),
            },
        };
        let answer = match answer {
            Ok(None) => return call.resume_pending(PrintWriter::Callback(&mut self.output)),
            Ok(Some(value)) => ExtFunctionResult::Return(value),
            Err(error) => ExtFunctionResult::Error(error),
        };
        call.resume(answer, PrintWriter::Callback(&mut self.output))
    }

    /// Keeps a call of the host until the script waits: it has no value yet.
    fn made(
        &mut self,
        call: &ReplFunctionCall,
        made: Result<Made, String>,
    ) -> Result<Option<MontyObject>, MontyException> {
        let made = made.map_err(|why| raise(ExcType::TypeError, why))?;
        self.made.insert(call.call_id, made);
        Ok(None)
    }

    fn tools(&mut self, call: &ReplFunctionCall) -> Result<MontyObject, MontyException> {
        let words = call.args.first().or(call.kwargs.first().map(|(_, value)| value));
        let words = words.map(MontyObject::to_string).unwrap_or_default();
        let found = self.look(&json!({ "tools": words }))?;
        value_of(&found.to_string()).map_err(MontyException::runtime_error)
    }

    fn help(&mut self, call: &ReplFunctionCall) -> Result<MontyObject, MontyException> {
        let text = match call.args.first() {
            None => failure::HELP.to_owned(),
            Some(MontyObject::Function { name, .. } | MontyObject::String(name))
                if self.functions.knows(name) =>
            {
                let found = self.look(&json!({ "help": name }))?;
                found.as_str().unwrap_or_default().to_owned()
            }
            Some(other) => format!("{other}: help() explains tool functions. {}", failure::WORKAROUND),
        };
        self.output.take(&text);
        self.output.take("\n");
        Ok(MontyObject::None)
    }

    fn look(&mut self, at: &Value) -> Result<Value, MontyException> {
        self.looks += 1;
        let number = LOOKS + self.looks;
        self.channel.send(&json!({ "call": number, "look": at }));
        loop {
            if let Some(answer) = self.answers.remove(&number) {
                return match answer {
                    Ok(Answer::Value(value) | Answer::Spilled(value)) => Ok(value),
                    Err(why) => Err(self.tool_error(why)),
                };
            }
            self.receive();
        }
    }

    /// Receives the next answer to any call.
    fn receive(&mut self) {
        let (number, answer) = self.channel.reply();
        self.answers.insert(number, answer);
    }

    fn tool_error(&mut self, text: String) -> MontyException {
        self.tool_errors.insert(text.clone());
        raise(TOOL_ERROR, text)
    }

    /// Sends the calls that were made, and continues with the first answers.
    fn wait(&mut self, waiting: ReplResolveFutures) -> Step {
        self.output.tell();
        for (number, Made { mut line, .. }) in std::mem::take(&mut self.made) {
            line["call"] = number.into();
            self.channel.send(&line);
            self.sent.insert(number);
        }
        let mut results = Vec::new();
        while results.is_empty() {
            for &number in waiting.pending_call_ids() {
                match self.answers.remove(&u64::from(number)) {
                    Some(answer) => results.push((number, self.result(answer))),
                    None if self.sent.contains(&number) => {}
                    None => {
                        // The future is no call of the host, so its result would never arrive.
                        let error = raise(ExcType::RuntimeError, "this cannot be awaited here".to_owned());
                        results.push((number, ExtFunctionResult::Error(error)));
                    }
                }
            }
            if results.is_empty() {
                self.receive();
            }
        }
        waiting.resume(results, PrintWriter::Callback(&mut self.output))
    }

    fn result(&mut self, answer: Result<Answer, String>) -> ExtFunctionResult {
        let value = answer.and_then(|answer| match answer {
            Answer::Value(value) => {
                value_of(&value.to_string()).map_err(|why| format!("the result cannot be read: {why}"))
            }
            Answer::Spilled(known) => {
                spilled_object(&known).ok_or_else(|| "the kept result cannot be read".to_owned())
            }
        });
        match value {
            Ok(value) => ExtFunctionResult::Return(value),
            Err(why) => ExtFunctionResult::Error(self.tool_error(why)),
        }
    }

    /// Answers requests to the system: there is a clock in UTC, and nothing else.
    fn ask_system(&mut self, call: ReplOsCall) -> Step {
        let answer = |call: OsFunctionCall| match call {
            OsFunctionCall::DateToday => {
                let date = now(None).date();
                ExtFunctionResult::Return(MontyObject::Date(MontyDate {
                    year: date.year().into(),
                    month: date.month().unsigned_abs(),
                    day: date.day().unsigned_abs(),
                }))
            }
            OsFunctionCall::DateTimeNow(zone) => {
                let at = now(zone.as_ref());
                ExtFunctionResult::Return(MontyObject::DateTime(MontyDateTime {
                    year: at.year().into(),
                    month: at.month().unsigned_abs(),
                    day: at.day().unsigned_abs(),
                    hour: at.hour().unsigned_abs(),
                    minute: at.minute().unsigned_abs(),
                    second: at.second().unsigned_abs(),
                    microsecond: u32::try_from(at.subsec_nanosecond() / 1_000).unwrap_or_default(),
                    offset_seconds: zone.as_ref().map(|zone| zone.offset_seconds),
                    timezone_name: zone.and_then(|zone| zone.name),
                }))
            }
            OsFunctionCall::Getenv(wanted) => ExtFunctionResult::Return(wanted.default),
            OsFunctionCall::GetEnviron => ExtFunctionResult::Return(MontyObject::dict(Vec::new())),
            refused => ExtFunctionResult::Error(refused.on_no_handler()),
        };
        call.resume_with(PrintWriter::Callback(&mut self.output), answer)
    }
}

/// A call of a method of a spilled result.
fn spilled_call(id: MontyUuid, call: &ReplFunctionCall) -> Result<Made, String> {
    let kept = spilled_name(id).ok_or("no such method")?;
    let method = &call.function_name;
    let line = json!({ "kept": kept, "method": method, "arguments": raw_arguments(call)? });
    Ok(Made { name: format!("{kept}.{method}"), line })
}

/// The arguments of a call as `[[positional …], {named …}]`.
fn raw_arguments(call: &ReplFunctionCall) -> Result<Value, String> {
    let positional = call.args.iter().map(json_of).collect::<Result<Vec<Value>, String>>()?;
    let mut named = serde_json::Map::new();
    for (key, value) in &call.kwargs {
        named.insert(key.to_string(), json_of(value)?);
    }
    Ok(json!([positional, named]))
}

fn raise(kind: ExcType, text: String) -> MontyException {
    MontyException::new(kind, Some(text))
}

impl FunctionSet {
    /// The line of a call, with its arguments by name. Positional ones take the names of the schema in order.
    /// `None` when there is no such function.
    fn arguments(
        &self,
        name: &str,
        positional: &[MontyObject],
        named: &[(MontyObject, MontyObject)],
    ) -> Option<Result<Value, String>> {
        let params = self.params(name)?;
        let gathered = || {
            if positional.len() > params.len() {
                let (most, given) = (params.len(), positional.len());
                let names = params.join(", ");
                return Err(format!(
                    "{name}() takes {most} positional arguments ({names}) but {given} were given"
                ));
            }
            let mut arguments = serde_json::Map::new();
            let mut keeps = false;
            for (key, value) in named {
                match (&*key.to_string(), json_of(value)?) {
                    ("on_large", wanted) if !params.iter().any(|param| param == "on_large") => match wanted {
                        Value::Null => {}
                        Value::String(wanted) if wanted == "spill" => keeps = true,
                        other => {
                            return Err(format!("{name}() takes on_large=\"spill\" or nothing, not {other}"));
                        }
                    },
                    (key, value) => {
                        arguments.insert(key.to_owned(), value);
                    }
                }
            }
            for (param, value) in params.iter().zip(positional) {
                if arguments.insert(param.clone(), json_of(value)?).is_some() {
                    return Err(format!("{name}() got multiple values for argument '{param}'"));
                }
            }
            Ok(json!({ "tool": name, "arguments": arguments, "keep": keeps }))
        };
        Some(gathered())
    }
}
