//! Random preludes and programs: attached, compared with the same definitions written into the program. Value,
//! prints, fault and fuel are the same, apart from the cost of defining.

use super::{prelude, run};
use proptest::prelude::*;
use ptc_engine::{Runtime, RuntimeConfig, StartPolicy};
use ptc_tests::properties::for_all;
use std::fmt::Write as _;

/// An expression. A definition is a number that selects an earlier one.
#[derive(Clone, Debug)]
enum Expr {
    Int(i64),
    Text(&'static str),
    Parameter(usize),
    Constant(usize),
    Call(usize, Vec<Expr>),
    /// The function itself as a value: `(map f [..])`.
    Mapped(usize, Vec<Expr>),
    Builtin(&'static str, Vec<Expr>),
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    Let(Box<Expr>, Box<Expr>),
    Closure(Box<Expr>, Vec<Expr>),
    Vector(Vec<Expr>),
    Print(Box<Expr>),
    End(bool, Box<Expr>),
}

const BUILTINS: &[(&str, usize)] = &[
    ("+", 2),
    ("-", 2),
    ("*", 2),
    ("quot", 2),
    ("/", 2),
    ("str", 2),
    ("vector", 2),
    ("inc", 1),
    ("count", 1),
    ("first", 1),
    ("=", 2),
    ("<", 2),
    ("conj", 2),
    ("not", 1),
    ("reverse", 1),
];

fn an_expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        (-3_i64..9).prop_map(Expr::Int),
        prop::sample::select(&["a", "b c", ""][..]).prop_map(Expr::Text),
        (0_usize..3).prop_map(Expr::Parameter),
        (0_usize..3).prop_map(Expr::Parameter),
        (0_usize..4).prop_map(Expr::Constant),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let some = || prop::collection::vec(inner.clone(), 1..3);
        let boxed = || inner.clone().prop_map(Box::new);
        prop_oneof![
            3 => ((0_usize..8), prop::collection::vec(inner.clone(), 3)).prop_map(|(f, args)| Expr::Call(f, args)),
            1 => ((0_usize..8), some()).prop_map(|(f, args)| Expr::Mapped(f, args)),
            4 => (prop::sample::select(BUILTINS), prop::collection::vec(inner.clone(), 2))
                .prop_map(|((name, arity), args)| Expr::Builtin(name, args.into_iter().take(arity).collect())),
            1 => (boxed(), boxed(), boxed()).prop_map(|(a, b, c)| Expr::If(a, b, c)),
            1 => (boxed(), boxed()).prop_map(|(a, b)| Expr::Let(a, b)),
            1 => (boxed(), some()).prop_map(|(a, b)| Expr::Closure(a, b)),
            1 => some().prop_map(Expr::Vector),
            1 => boxed().prop_map(Expr::Print),
            1 => (any::<bool>(), boxed()).prop_map(|(is_return, value)| Expr::End(is_return, value)),
        ]
    })
}

/// A definition: its namespace, whether it is private, its number of parameters (none for a constant), its value.
#[derive(Clone, Debug)]
struct Definition {
    namespace: usize,
    is_private: bool,
    parameters: Option<usize>,
    value: Expr,
}

fn a_definition() -> impl Strategy<Value = Definition> {
    let parameters = prop_oneof![1 => Just(None), 5 => (0_usize..4).prop_map(Some)];
    ((0_usize..2), any::<bool>(), parameters, an_expr()).prop_map(
        |(namespace, is_private, parameters, value)| Definition {
            namespace,
            is_private: is_private && parameters.is_some(),
            parameters,
            value,
        },
    )
}

const NAMESPACES: [&str; 2] = ["alpha", "beta"];

/// Context in which an expression is written.
struct Writer<'d> {
    definitions: &'d [Definition],
    /// Definitions before this one can be referred to.
    before: usize,
    /// Its namespace; `None` in the program.
    inside: Option<usize>,
    parameters: usize,
    /// All definitions are part of one text.
    is_inlined: bool,
    locals: usize,
}

impl Writer<'_> {
    /// A definition of a kind that can be referred to from here, selected by a number.
    fn choose(&self, number: usize, is_function: bool) -> Option<usize> {
        let visible = |at: &usize| {
            let definition = &self.definitions[*at];
            definition.parameters.is_some() == is_function
                && match self.inside {
                    Some(namespace) => definition.namespace == namespace,
                    None => !definition.is_private,
                }
        };
        let all: Vec<usize> = (0..self.before).filter(visible).collect();
        (!all.is_empty()).then(|| all[number % all.len()])
    }

    fn name(&self, at: usize) -> String {
        let namespace = NAMESPACES[self.definitions[at].namespace];
        match (self.is_inlined, self.inside) {
            (true, _) | (false, Some(_)) => format!("d{at}"),
            (false, None) => format!("{namespace}/d{at}"),
        }
    }

    fn all(&mut self, exprs: &[Expr]) -> String {
        exprs.iter().map(|expr| self.text(expr)).collect::<Vec<_>>().join(" ")
    }

    fn text(&mut self, expr: &Expr) -> String {
        match expr {
            Expr::Int(value) => value.to_string(),
            Expr::Text(text) => format!("{text:?}"),
            Expr::Parameter(number) if self.locals > 0 && number % 2 == 0 => format!("l{}", self.locals - 1),
            Expr::Parameter(number) if self.parameters > 0 => format!("p{}", number % self.parameters),
            Expr::Parameter(number) => number.to_string(),
            Expr::Constant(number) => match self.choose(*number, false) {
                Some(at) => self.name(at),
                None => ":none".to_owned(),
            },
            Expr::Call(number, arguments) => match self.choose(*number, true) {
                Some(at) => {
                    let count = self.definitions[at].parameters.unwrap_or(0);
                    let arguments = self.all(&arguments[..count]);
                    format!("({} {arguments})", self.name(at))
                }
                None => self.text(&Expr::Vector(arguments.clone())),
            },
            Expr::Mapped(number, items) => match self.choose(*number, true) {
                Some(at) => {
                    let items = self.all(items);
                    format!("(map {} [{items}])", self.name(at))
                }
                None => self.text(&Expr::Vector(items.clone())),
            },
            Expr::Builtin(name, arguments) => format!("({name} {})", self.all(arguments)),
            Expr::If(test, then, otherwise) => {
                format!("(if {} {} {})", self.text(test), self.text(then), self.text(otherwise))
            }
            Expr::Let(value, body) => {
                let value = self.text(value);
                let local = self.locals;
                self.locals += 1;
                let body = self.text(body);
                self.locals -= 1;
                format!("(let [l{local} {value}] {body})")
            }
            Expr::Closure(body, items) => {
                let items = self.all(items);
                let local = self.locals;
                self.locals += 1;
                let body = self.text(body);
                self.locals -= 1;
                format!("(mapv (fn [l{local}] {body}) [{items}])")
            }
            Expr::Vector(items) => format!("[{}]", self.all(items)),
            Expr::Print(value) => format!("(do (println {}) 1)", self.text(value)),
            Expr::End(is_return, value) => {
                format!("({} {})", if *is_return { "return" } else { "fail" }, self.text(value))
            }
        }
    }
}

/// The texts of a prelude, and of its definitions in a program.
fn texts(definitions: &[Definition]) -> (String, String) {
    let (mut inlined, mut namespaces) = (String::new(), NAMESPACES.map(|name| format!("(ns {name})\n")));
    for (at, definition) in definitions.iter().enumerate() {
        for is_inlined in [true, false] {
            let mut writer = Writer {
                definitions,
                before: at,
                inside: Some(definition.namespace),
                parameters: definition.parameters.unwrap_or(0),
                is_inlined,
                locals: 0,
            };
            let (name, value) = (writer.name(at), writer.text(&definition.value));
            let text = match definition.parameters {
                None => format!("(def {name} {value})\n"),
                Some(count) => {
                    let parameters: Vec<String> = (0..count).map(|number| format!("p{number}")).collect();
                    let form = if definition.is_private && !is_inlined { "defn-" } else { "defn" };
                    format!("({form} {name} [{}] {value})\n", parameters.join(" "))
                }
            };
            let out = if is_inlined { &mut inlined } else { &mut namespaces[definition.namespace] };
            let _ = out.write_str(&text);
        }
    }
    (namespaces.concat(), inlined)
}

/// How a program ended: its value, or the reason and the message of its failure; its prints; its fuel.
type Seen = (Result<String, (String, String)>, Vec<String>, Option<u64>);

async fn seen(runtime: &Runtime, program: &str) -> Seen {
    let outcome = run(runtime, program).await;
    let result = outcome.result.map(|answer| answer.text);
    // Numbers make definitions unique, so only the namespaces differ.
    let plain =
        |message: String| message.replace("alpha/", "").replace("beta/", "").replace("expects", "expected");
    let result = result.map_err(|failure| (failure.reason.raw().to_owned(), plain(failure.message)));
    (result, outcome.prints, outcome.usage.fuel)
}

async fn check(definitions: &[Definition], program: &Expr) {
    let (text, inlined) = texts(definitions);
    // A prelude with a faulting constant does not compile; the program faults before its own expression.
    let compiled = ptc_engine::Prelude::compile("p.clj", &text);
    let has_constants = definitions.iter().any(|definition| definition.parameters.is_none());
    if compiled.is_err() && has_constants {
        return;
    }
    let config = |preludes| RuntimeConfig {
        preludes,
        start: StartPolicy::Lazy,
        workers: 1,
        ..RuntimeConfig::default()
    };
    let attached = Runtime::start(config(vec![prelude(&text)])).await.expect("no servers");
    let bare = Runtime::start(config(Vec::new())).await.expect("no servers");
    let written = |is_inlined| {
        let before = definitions.len();
        Writer { definitions, before, inside: None, parameters: 0, is_inlined, locals: 0 }.text(program)
    };
    let (outside, inside) = (written(false), format!("{inlined}{}", written(true)));
    let (there, here) = (seen(&attached, &outside).await, seen(&bare, &inside).await);
    let (nothing_there, nothing_here) =
        (seen(&attached, "nil").await, seen(&bare, &format!("{inlined}nil")).await);
    assert_eq!(there.0, here.0, "{text}\n{outside}");
    // Constants print when they are computed.
    let printed = here.1.get(nothing_here.1.len()..).unwrap_or_default();
    assert_eq!(there.1, printed, "{text}\n{outside}");
    // A rejected program has no fuel.
    let beyond = |whole: Option<u64>, nothing: Option<u64>| Some(whole? as i64 - nothing? as i64);
    let spent = (beyond(there.2, nothing_there.2), beyond(here.2, nothing_here.2));
    assert_eq!(spent.0, spent.1, "{text}\n{outside}");
}

#[test]
fn a_prelude_behaves_as_the_same_definitions_in_the_program() {
    let io = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let program = prop_oneof![
        5 => an_expr(),
        1 => (any::<bool>(), an_expr()).prop_map(|(is_return, value)| Expr::End(is_return, Box::new(value))),
    ];
    let strategy = (prop::collection::vec(a_definition(), 1..8), program);
    for_all(150, strategy, |(definitions, program)| io.block_on(check(&definitions, &program)));
}
