//! Keeps results that are too large to return, for a script or its session, and implements the methods with which
//! scripts read parts of them.
//!
//! A call returns an object for such a result. Reading costs fuel, as it does in a PTC-Lisp program.

use ptc_base::spill::{
    DEFAULT_LINES, JsonPath, LONGEST_PATTERN, Look, Looked, MOST_CONTEXT, OwnedSpills, Spilled, TopLevel,
};
use ptc_base::sync::Locked;
use ptc_calls::run::account::RunAccount;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Appended to the message about a result that was too large.
pub const ADVICE: &str = "; with on_large=\"spill\" it is kept, and looked at in parts";

/// Bytes of a preview.
const PREVIEW: usize = 200;

/// Longest name of a result in requests and messages.
const LONGEST_NAME: usize = 64;

/// Longest arguments of a method in bytes: a few numbers and a pattern.
const LONGEST_ARGUMENTS: usize = 64 << 10;

/// The methods of a spilled result, with their parameters.
const METHODS: [(&str, &[&str]); 7] = [
    ("stat", &[]),
    ("head", &["lines"]),
    ("tail", &["lines"]),
    ("slice", &["from_line", "to_line"]),
    ("grep", &["pattern", "context"]),
    ("read", &["max_bytes"]),
    ("json_path", &["path"]),
];

/// The retained results of a script, and the fuel that reading them may still use.
pub struct RetainedResults {
    own: Mutex<OwnedSpills>,
    fuel: AtomicU64,
}

impl RetainedResults {
    /// Makes a set of the session's earlier results, with fuel for reading.
    pub(crate) fn new(own: OwnedSpills, fuel: u64) -> RetainedResults {
        RetainedResults { own: Mutex::new(own), fuel: AtomicU64::new(fuel) }
    }

    /// Takes all results.
    pub(crate) fn take(&self) -> OwnedSpills {
        std::mem::take(&mut *self.own.locked())
    }

    /// Retains a result. Returns its description as JSON text.
    pub(crate) fn retain(&self, spilled: Arc<Spilled>) -> String {
        let stat = spilled.stat();
        let preview = spilled.read(PREVIEW).map(|part| part.text).unwrap_or_default();
        let name = self.own.locked().keep(spilled);
        json!({ "spill": name, "bytes": stat.bytes, "lines": stat.lines, "preview": preview }).to_string()
    }

    /// Calls a method of a retained result with `[[positional …], {named …}]`. Returns JSON text on one line.
    ///
    /// # Errors
    /// The message of the script's `ToolError`.
    pub(crate) async fn look(
        &self,
        account: &Arc<RunAccount>,
        name: &str,
        method: &str,
        arguments: &str,
    ) -> Result<String, String> {
        let failed = |why: String| format!("'{}.{}' failed: {why}", shown(name), shown(method));
        let look = plan(method, arguments).map_err(failed)?;
        let found = self.own.locked().find(name);
        let spilled = found.ok_or_else(|| failed(format!("there is no kept result {}", shown(name))))?;
        let limits = account.limits();
        let most = usize::try_from(limits.max_upstream_response_bytes).unwrap_or(usize::MAX);
        let fuel = look.fuel(spilled.bytes(), most);
        let pay = |left: u64| left.checked_sub(fuel);
        if self.fuel.fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay).is_err() {
            let most = limits.fuel;
            return Err(failed(format!(
                "looks of this script have used up its fuel of {most}: read less, or narrower"
            )));
        }
        let room = usize::try_from(spilled.bytes()).unwrap_or(usize::MAX).min(most);
        let Some(_held) = account.hold(room) else {
            return Err(failed(format!(
                "its {room} bytes do not fit into the memory of the script beside other looks"
            )));
        };
        let looked = spilled.read_blocking(look, most).await.map_err(|error| failed(error.to_string()))?;
        text(looked).ok_or_else(|| failed("what it finds is not JSON".to_owned()))
    }
}

/// Shortens a name for messages. The name may be invalid.
fn shown(name: &str) -> &str {
    &name[..name.floor_char_boundary(LONGEST_NAME)]
}

/// Parses a method call.
fn plan(method: &str, arguments: &str) -> Result<Look, String> {
    let names: Vec<&str> = METHODS.iter().map(|(name, _)| *name).collect();
    let known = METHODS.iter().find(|(name, _)| *name == method);
    let (_, parameters) =
        known.ok_or_else(|| format!("there is no such method; there are {}", names.join(", ")))?;
    if arguments.len() > LONGEST_ARGUMENTS {
        let got = arguments.len();
        return Err(format!("its arguments take at most {LONGEST_ARGUMENTS} bytes, got {got}"));
    }
    let (positional, named): (Vec<Value>, Map<String, Value>) =
        serde_json::from_str(arguments).map_err(|error| format!("its arguments cannot be read: {error}"))?;
    if positional.len() > parameters.len() {
        let (most, given) = (parameters.len(), positional.len());
        return Err(format!("it takes {most} arguments ({}), got {given}", parameters.join(", ")));
    }
    if let Some(unknown) = named.keys().find(|name| !parameters.contains(&name.as_str())) {
        return Err(format!("it has no parameter {}; it takes ({})", shown(unknown), parameters.join(", ")));
    }
    let given = |at: usize| {
        let name = parameters.get(at)?;
        positional.get(at).or_else(|| named.get(*name)).filter(|value| !value.is_null())
    };
    let wrong = |at: usize, takes: &str, got: &Value| {
        let name = parameters.get(at).unwrap_or(&"it");
        format!("{name} is {takes}, got {}", shown(&got.to_string()))
    };
    let number = |at: usize, default: u64| match given(at) {
        None => Ok(default),
        Some(value) => value.as_u64().ok_or_else(|| wrong(at, "a whole number from 0", value)),
    };
    let text = |at: usize| match given(at) {
        Some(Value::String(text)) if text.len() <= LONGEST_PATTERN => Ok(text.clone()),
        other => {
            let takes = format!("a text of at most {LONGEST_PATTERN} bytes");
            Err(wrong(at, &takes, other.unwrap_or(&Value::Null)))
        }
    };
    let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Ok(match method {
        "stat" => Look::Stat,
        "head" => Look::Head(number(0, DEFAULT_LINES)?),
        "tail" => Look::Tail(number(0, DEFAULT_LINES)?),
        "slice" => Look::Slice(number(0, 1)?, number(1, u64::MAX)?),
        "grep" => Look::Grep { pattern: text(0)?, context: whole(number(1, 0)?.min(MOST_CONTEXT)) },
        "read" => Look::Read(whole(number(0, u64::MAX)?)),
        _ => Look::Path(JsonPath::read(&text(0)?)?),
    })
}

/// Formats the result of a method as JSON text on one line; `None` when it is no JSON.
fn text(looked: Looked) -> Option<String> {
    let value = match looked {
        Looked::Size(stat, top) => {
            let mut size = json!({ "bytes": stat.bytes, "lines": stat.lines });
            if let TopLevel::Object { keys, .. } = top {
                size["keys"] = keys.into();
            }
            size
        }
        Looked::Lines(part) => {
            let lines: Vec<&str> = part.text.lines().collect();
            json!({ "lines": lines, "from_line": part.from_line, "truncated": part.truncated })
        }
        Looked::Beginning(part) => json!({ "text": part.text, "truncated": part.truncated }),
        Looked::Matches(found) => {
            json!({ "text": found.text, "matches": found.matches, "truncated": found.truncated })
        }
        Looked::Json(None) => Value::Null,
        Looked::Json(Some(found)) => {
            let found: &RawValue = serde_json::from_slice(&found).ok()?;
            return Some(found.get().replace(['\n', '\r'], " "));
        }
    };
    Some(value.to_string())
}
