//! Sessions of a runtime against a model: random sequences of programs with all endings, and of forgetting.
#![allow(clippy::unwrap_used, reason = "a broken runtime should be loud")]

use proptest::prelude::*;
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::{Failure, Outcome};
use ptc_engine::session::{Accept, Bindings, Forget, Session, SessionLimits};
use ptc_engine::{Runtime, RuntimeConfig};
use ptc_tests::properties::for_all;
use std::collections::BTreeMap;
use tokio::sync::oneshot;

/// How a program ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Value,
    Return,
    Fail,
    Fault,
    /// It does not compile.
    Rejected,
    /// Its time runs out.
    Endless,
    /// Its answer is refused.
    Refused,
    /// Its definitions are too large to retain.
    TooLarge,
    Cancelled,
}

#[derive(Clone, Debug)]
enum Step {
    Run(Vec<(u8, i8)>, i8, End),
    Forget(Vec<u8>, bool, bool),
}

fn a_step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![
        8 => Just(End::Value),
        2 => Just(End::Return),
        1 => Just(End::Fail),
        1 => Just(End::Fault),
        1 => Just(End::Rejected),
        1 => Just(End::Endless),
        1 => Just(End::Refused),
        1 => Just(End::TooLarge),
        1 => Just(End::Cancelled),
    ];
    let run = (prop::collection::vec((0..4_u8, any::<i8>()), 0..3), any::<i8>(), end);
    prop_oneof![
        5 => run.prop_map(|(defines, result, end)| Step::Run(defines, result, end)),
        1 => (prop::collection::vec(0..4_u8, 0..3), any::<bool>(), any::<bool>())
            .prop_map(|(names, history, prints)| Step::Forget(names, history, prints)),
    ]
}

/// The expected state of a session.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    turn: u64,
    attempts: u64,
    names: BTreeMap<String, String>,
    history: Vec<String>,
    prints: Vec<String>,
}

fn seen(session: &Session) -> Model {
    session.contents(|contents| Model {
        turn: contents.turn,
        attempts: contents.attempts,
        names: contents
            .bindings
            .iter()
            .map(|(name, held)| (name.clone(), held.preview.to_string()))
            .collect(),
        history: contents.history.iter().map(|entry| entry.preview.to_string()).collect(),
        prints: contents.prints.iter().map(ToString::to_string).collect(),
    })
}

async fn run(session: &Session, source: String, end: End) -> Outcome {
    let mut options = RunOptions::default();
    if matches!(end, End::Endless) {
        options.limits.timeout_ms = 20;
    }
    let accept =
        matches!(end, End::Refused).then(|| -> Accept { Box::new(|_| Err(Failure::defect("refused"))) });
    let (sender, outcome) = oneshot::channel();
    let submitted = session.submit(source, options, accept, Box::new(sender)).unwrap();
    if matches!(end, End::Cancelled) {
        submitted.cancel();
    }
    outcome.await.unwrap()
}

async fn step(session: &Session, model: &mut Model, step: &Step) {
    match step {
        Step::Run(defines, result, end) => {
            let mut after = model.clone();
            let mut source = String::from("(println \"at\" ");
            source.push_str(&format!("{})", model.turn));
            for (name, value) in defines {
                source.push_str(&format!("(def n{name} {value})"));
                after.names.insert(format!("n{name}"), value.to_string());
            }
            source.push_str(&match end {
                End::Value | End::Refused => result.to_string(),
                End::Return => format!("(return {result})"),
                End::Fail => format!("(fail {result})"),
                End::Fault => "(/ 1 0)".to_owned(),
                End::Rejected => "(unknown-name)".to_owned(),
                End::Endless | End::Cancelled => "(loop [] (recur))".to_owned(),
                End::TooLarge => "(def n0 (vec (range 2000)))".to_owned(),
            });
            let outcome = run(session, source, *end).await;
            after.attempts += 1;
            model.attempts += 1;
            let is_kept = matches!(end, End::Value | End::Return);
            assert_eq!(outcome.result.is_ok(), is_kept, "{end:?}: {:?}", outcome.result);
            if is_kept {
                after.turn += 1;
                after.prints.push(format!("at {}", model.turn));
                after.history.insert(0, result.to_string());
                after.history.truncate(3);
                *model = after;
            }
        }
        Step::Forget(names, history, prints) => {
            let names: Vec<String> = names.iter().map(|name| format!("n{name}")).collect();
            let forget = Forget {
                bindings: Bindings::Named(names.clone()),
                history: *history,
                prints: *prints,
                calls: false,
            };
            let (sender, gone) = oneshot::channel();
            session.acquire().unwrap().forget(forget, move |names| sender.send(names).unwrap());
            gone.await.unwrap();
            names.iter().for_each(|name| {
                model.names.remove(name);
            });
            if *history {
                model.history.clear();
            }
            if *prints {
                model.prints.clear();
            }
        }
    }
}

#[test]
fn a_session_holds_what_ended_well_and_was_not_forgotten() {
    let io = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let runtime = {
        let _guard = io.enter();
        Runtime::launch(RuntimeConfig { workers: 2, ..RuntimeConfig::default() }).unwrap()
    };
    let limits = SessionLimits { binding_bytes: 1_000, print_entries: 1_000, ..SessionLimits::default() };
    for_all(60, prop::collection::vec(a_step(), 1..14), |steps| {
        let session = runtime.session(limits);
        let mut model = Model::default();
        for each in &steps {
            io.block_on(step(&session, &mut model, each));
            assert_eq!(seen(&session), model, "after {each:?}");
        }
        // Programs see the same.
        let names: Vec<&String> = model.names.keys().collect();
        let all = names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ");
        let outcome = io.block_on(run(&session, format!("[[{all}] *1 *2 *3]"), End::Value));
        let values = model.names.values().cloned().collect::<Vec<_>>().join(" ");
        let history: Vec<&str> =
            (0..3).map(|at| model.history.get(at).map_or("nil", String::as_str)).collect();
        assert_eq!(outcome.result.unwrap().text, format!("[[{values}] {}]", history.join(" ")));
        // After forgetting everything, nothing is left.
        let everything = Forget { bindings: Bindings::All, history: true, prints: true, calls: true };
        let (sender, gone) = oneshot::channel();
        session.acquire().unwrap().forget(everything, move |names| sender.send(names).unwrap());
        io.block_on(gone).unwrap();
        let left = session.contents(|contents| contents.memory_bytes);
        assert_eq!(left, 0, "bytes");
    });
    io.block_on(runtime.shutdown());
}
