//! Parses and checks the arguments of `apropos`, `dir`, `doc` and similar forms, with which programs find tools and
//! documentation. Errors have the documented texts.

use crate::guest::lisp::tool_call::{LONGEST_NAME, shown};
use ptc_vm::builtins::DiscoveryForm;
use ptc_vm::value::string::StringNode;
use ptc_vm::{Context, Fault, Reason, Value};

/// Options of `apropos`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Apropos {
    pub(crate) query: String,
    pub(crate) limit: usize,
    /// Load the tools of servers that are not loaded, and return only tools.
    pub(crate) load: bool,
}

/// Options of `dir`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dir {
    pub(crate) reference: String,
    pub(crate) limit: usize,
    pub(crate) offset: usize,
    /// The program sets the limit itself, so it gets exactly as many lines.
    pub(crate) is_limited: bool,
}

/// The range of an option's values.
struct Bounds {
    form: DiscoveryForm,
    name: &'static str,
    default: i64,
    least: i64,
    most: i64,
    /// The range in the text of the fault.
    words: &'static str,
}

const APROPOS_LIMIT: Bounds = Bounds {
    form: DiscoveryForm::Apropos,
    name: "limit",
    default: 8,
    least: 1,
    most: 50,
    words: "an integer 1..50",
};

const DIR_LIMIT: Bounds = Bounds {
    form: DiscoveryForm::Dir,
    name: "limit",
    default: 50,
    least: 1,
    most: 200,
    words: "an integer 1..200",
};

const DIR_OFFSET: Bounds = Bounds {
    form: DiscoveryForm::Dir,
    name: "offset",
    default: 0,
    least: 0,
    most: i64::MAX,
    words: "a non-negative integer",
};

fn fault(message: String) -> Box<Fault> {
    Fault::new(Reason::RuntimeError, message)
}

/// A trimmed text that names something. Names are compared with many others, so their length is limited.
fn named(form: DiscoveryForm, text: &StringNode) -> Result<&str, Box<Fault>> {
    match text.short(LONGEST_NAME) {
        Some(text) => Ok(text.trim()),
        None => Err(fault(format!(
            "{} takes at most {LONGEST_NAME} bytes of text, got {}",
            form.name(),
            text.len()
        ))),
    }
}

/// Reads `(apropos query opts?)`.
pub(crate) fn apropos(cx: &mut Context, arguments: &[Value]) -> Result<Apropos, Box<Fault>> {
    let (query, options) = (arguments.first().unwrap_or(&Value::Nil), arguments.get(1));
    let query = match query {
        Value::Str(text) if !named(DiscoveryForm::Apropos, text)?.is_empty() => text.as_str().to_owned(),
        _ => {
            let text = shown(cx, query)?;
            return Err(fault(format!("apropos requires query (non-empty string), got {text}"))
                .hint("(apropos \"words of a task\" {:limit 8 :load false})"));
        }
    };
    let options = Options::read(cx, DiscoveryForm::Apropos, options, &["limit", "load"])?;
    let load = match options.get("load") {
        None | Some(Value::Nil) => false,
        Some(Value::Bool(load)) => *load,
        Some(other) => {
            let text = shown(cx, &other.clone())?;
            return Err(fault(format!("apropos :load must be a boolean, got {text}")));
        }
    };
    Ok(Apropos { query, limit: options.number(cx, &APROPOS_LIMIT)?, load })
}

/// Reads `(dir ref opts?)`.
pub(crate) fn dir(cx: &mut Context, arguments: &[Value]) -> Result<Dir, Box<Fault>> {
    let reference = reference(cx, DiscoveryForm::Dir, arguments)?;
    let options = Options::read(cx, DiscoveryForm::Dir, arguments.get(1), &["limit", "offset"])?;
    let is_limited = matches!(options.get("limit"), Some(limit) if !matches!(limit, Value::Nil));
    let (limit, offset) = (options.number(cx, &DIR_LIMIT)?, options.number(cx, &DIR_OFFSET)?);
    Ok(Dir { reference, limit, offset, is_limited })
}

/// Reads the first argument of a form, the reference: a symbol, a string, or a function of the language.
pub(crate) fn reference(
    cx: &mut Context,
    form: DiscoveryForm,
    arguments: &[Value],
) -> Result<String, Box<Fault>> {
    let value = arguments.first().unwrap_or(&Value::Nil);
    match value {
        Value::Symbol(symbol) => return Ok(cx.text(*symbol).to_owned()),
        Value::Str(text) if !named(form, text)?.is_empty() => return Ok(text.as_str().trim().to_owned()),
        Value::Tool(name) => return Ok(format!("tool/{}", cx.text(*name))),
        Value::Builtin(builtin) => return Ok(builtin.info().name.to_owned()),
        _ => {}
    }
    let text = shown(cx, value)?;
    let name = form.name();
    Err(fault(format!("{name} requires a quoted symbol or string ref, got {text}"))
        .hint(format!("({name} 'name) or ({name} \"server/tool\")")))
}

/// The option map of a form.
struct Options {
    rows: Vec<(String, Value)>,
}

impl Options {
    fn read(
        cx: &mut Context,
        form: DiscoveryForm,
        value: Option<&Value>,
        known: &[&str],
    ) -> Result<Options, Box<Fault>> {
        let map = match value {
            None | Some(Value::Nil) => return Ok(Options { rows: Vec::new() }),
            Some(Value::Map(map)) => map,
            Some(other) => {
                let text = shown(cx, other)?;
                return Err(fault(format!("discovery options must be a map, got {text}")));
            }
        };
        let mut rows = Vec::with_capacity(known.len());
        for entry in map.entries() {
            let name = cx.name(entry.key).filter(|name| known.contains(name)).map(str::to_owned);
            match name {
                Some(name) => rows.push((name, entry.value.clone())),
                None => {
                    let text = shown(cx, entry.key)?;
                    let list: Vec<String> = known.iter().map(|name| format!(":{name}")).collect();
                    return Err(fault(format!("{} got unknown option {text}", form.name()))
                        .hint(format!("The options are {}.", list.join(" and "))));
                }
            }
        }
        Ok(Options { rows })
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.rows.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn number(&self, cx: &mut Context, bounds: &Bounds) -> Result<usize, Box<Fault>> {
        let value = match self.get(bounds.name) {
            None | Some(Value::Nil) => Some(bounds.default),
            Some(Value::Int(number)) if (bounds.least..=bounds.most).contains(number) => Some(*number),
            Some(_) => None,
        };
        match value.map(usize::try_from) {
            Some(Ok(number)) => Ok(number),
            _ => {
                let given = self.get(bounds.name).cloned().unwrap_or_default();
                let text = shown(cx, &given)?;
                let Bounds { form, name, words, .. } = bounds;
                Err(fault(format!("{} :{name} must be {words}, got {text}", form.name())))
            }
        }
    }
}
