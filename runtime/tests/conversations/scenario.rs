//! A scenario: the scripted model and the agent's outcome, with each provider and in both formats.

use crate::common;
use crate::common::http::{Got, HttpServer, Reply, Step};
use crate::common::provider::{BOTH, Provider, TextEnd, failing};
pub(crate) use crate::common::script::{runtime, tool};
use crate::conversations::record;
use futures_util::future::join_all;
use ptc_agent::{Agent, Llm};
use ptc_engine::{Runtime, RuntimeConfig, StartPolicy};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How the server answers a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// A text, and how it ends.
    Says(&'static str, TextEnd),
    /// A failure status, with the kind and the text of an error.
    Fails(u16, &'static str, &'static str),
    /// An error within an answer that began well.
    Breaks,
    /// Nothing, or only the beginning of a stream; the connection stays open.
    Never,
}

/// A reply that holds one program.
macro_rules! program {
    ($text:expr) => {
        $crate::conversations::scenario::Answer::Says(
            concat!("```clojure\n", $text, "\n```"),
            $crate::common::provider::TextEnd::Complete,
        )
    };
}
pub(crate) use program;

const BROKEN: (&str, &str) = ("overloaded_error", "too busy");

impl Answer {
    fn reply(self, provider: Provider, stream: bool) -> Reply {
        match self {
            Answer::Says(text, end) => provider.reply_that_ends(text, end, stream),
            Answer::Fails(status, kind, text) => {
                // No retry delay, if the provider has a field for it.
                failing(&provider.error(kind, text), status, &[("retry-after", "0")])
            }
            Answer::Breaks => {
                let error = provider.error(BROKEN.0, BROKEN.1);
                match stream {
                    false => Reply::json(&error),
                    true => {
                        let begun = provider.events("(return :half)").into_iter().take(4);
                        let event = format!("event: error\ndata: {error}\n\n");
                        begun.chain([event]).fold(Reply::events(), Reply::chunk).end()
                    }
                }
            }
            Answer::Never => match stream {
                false => Reply(vec![Step::Hang]),
                true => {
                    let begun = provider.events("(return :half)").into_iter().take(4);
                    begun.fold(Reply::events(), Reply::chunk).then(Step::Hang)
                }
            },
        }
    }

    /// The answer in the record, with texts replaced by names.
    pub(crate) fn label(self, name: impl FnOnce(&str) -> String) -> String {
        match self {
            Answer::Says(text, TextEnd::Complete) => name(text),
            Answer::Says(text, end) => format!("{}, {end:?}", name(text)),
            Answer::Fails(status, kind, text) => format!("{status} {kind}: {text}"),
            Answer::Breaks => format!("{}: {}, in an answer that began well", BROKEN.0, BROKEN.1),
            Answer::Never => "nothing".to_owned(),
        }
    }
}

/// One conversation: requests, each with its answer, and the outcome.
pub(crate) struct Conversation {
    pub(crate) provider: Provider,
    pub(crate) stream: bool,
    pub(crate) turns: Vec<(Got, Answer)>,
    pub(crate) outcome: String,
}

/// Runs the conversations of a scenario, and compares them with its file. The last answer repeats.
pub(crate) async fn check(
    name: &str,
    answers: &'static [Answer],
    agent: impl AsyncFn(&Runtime, Arc<dyn Llm>) -> String,
) {
    let ways = BOTH.into_iter().flat_map(|provider| [(provider, false), (provider, true)]);
    let conversations = join_all(ways.map(|(provider, stream)| {
        let agent = &agent;
        async move {
            let count = AtomicUsize::new(0);
            let nth = |number: usize| answers[number.min(answers.len() - 1)];
            let server =
                HttpServer::new(move |_| nth(count.fetch_add(1, Ordering::Relaxed)).reply(provider, stream));
            let server = server.await;
            let runtime = runtime().await;
            let outcome = agent(&runtime, provider.model(&server, stream, runtime.secrets())).await;
            let turns = server.got().into_iter().enumerate();
            let turns = turns.map(|(number, got)| (got, nth(number))).collect();
            Conversation { provider, stream, turns, outcome }
        }
    }));
    let text = record::render(&conversations.await, &record::systems().await);
    common::golden("conversations", &format!("{name}.txt"), &text);
}

/// A runtime with a server; its tools do not say whether they change data.
pub(crate) async fn with_server() -> Runtime {
    let servers = vec![common::entry("fake", &[])];
    let config = RuntimeConfig { servers, start: StartPolicy::All, workers: 1, ..RuntimeConfig::default() };
    Runtime::start(config).await.expect("a runtime")
}

pub(crate) fn products() -> Value {
    json!({"category": "garden", "products": [
        {"name": "rake", "price": 12.5}, {"name": "saw", "price": 30.0}, {"name": "hose", "price": 25}]})
}

/// Runs an agent with the products. Gives the outcome as text.
pub(crate) async fn told(agent: &Agent, runtime: &Runtime, llm: Arc<dyn Llm>) -> String {
    record::step(&agent.run(runtime, llm, &products()).await)
}
