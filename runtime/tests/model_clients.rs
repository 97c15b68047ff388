//! Models over HTTP against servers that behave like real providers: whole answers and streams, with errors, limits
//! and pauses. An agent runs with each.
#![cfg(feature = "agent")]
#![allow(clippy::disallowed_methods, reason = "tasks of a test end with it")]

use crate::common;
use common::http::{Got, HttpServer, Reply, Step, chunk, free_port};
use common::provider::{BOTH, KEY, Provider, TextEnd, failing};
use ptc_agent::{
    Agent, AgentLimits, AgentReason, Llm, LlmError, LlmErrorKind, LlmMessage, LlmReply, LlmRequest,
    ModelOptions, TokenUsage, model,
};
use ptc_base::secrets::{Credential, SecretRegistry};
use ptc_engine::Runtime;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

async fn ask(llm: &Arc<dyn Llm>) -> Result<LlmReply, LlmError> {
    let messages = [LlmMessage::user("one"), LlmMessage::assistant("two"), LlmMessage::user("three")];
    let timeout = Duration::from_secs(60);
    llm.complete(LlmRequest { system: "be short", messages: &messages, max_output_tokens: Some(99), timeout })
        .await
}

#[tokio::test]
async fn requests_are_written_and_answers_read_as_each_provider_does() {
    for provider in BOTH {
        for stream in [false, true] {
            let server = HttpServer::new(move |_| provider.reply("(return 1) é", stream)).await;
            let reply =
                ask(&provider.model(&server, stream, &SecretRegistry::new())).await.expect("an answer");
            let usage = TokenUsage { input: Some(21), output: Some(7) };
            assert_eq!(reply, LlmReply { text: "(return 1) é".into(), usage, is_cut: false }, "{provider:?}");
            let got = &server.got()[0];
            let body = got.json();
            let messages = json!([{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"},
                {"role": "user", "content": "three"}]);
            match provider {
                Provider::OpenAi => {
                    assert_eq!(
                        (&*got.path, got.header("authorization")),
                        ("/v1/chat/completions", Some(&*format!("Bearer {KEY}")))
                    );
                    let mut all = vec![json!({"role": "system", "content": "be short"})];
                    all.extend(messages.as_array().expect("messages").clone());
                    assert_eq!((&body["messages"], &body["max_tokens"]), (&Value::from(all), &json!(99)));
                }
                Provider::Anthropic => {
                    assert_eq!((&*got.path, got.header("x-api-key")), ("/v1/messages", Some(KEY)));
                    assert_eq!(got.header("anthropic-version"), Some("2023-06-01"));
                    assert_eq!((&body["messages"], &body["system"]), (&messages, &json!("be short")));
                    assert_eq!(body["max_tokens"], 99);
                }
            }
            assert_eq!(body.get("stream"), stream.then_some(&json!(true)));
        }
    }
}

#[tokio::test]
async fn what_may_be_answered_later_is_asked_again() {
    for provider in BOTH {
        let count = AtomicUsize::new(0);
        let server = HttpServer::new(move |_: &Got| match count.fetch_add(1, Ordering::Relaxed) {
            0 => failing(&provider.error("rate_limit_error", "slow down"), 429, &[("retry-after", "0")]),
            1 => failing(&provider.error("overloaded_error", "busy"), 529, &[]),
            _ => provider.reply("ok", false),
        });
        let server = server.await;
        let reply =
            ask(&provider.model(&server, false, &SecretRegistry::new())).await.expect("the third try");
        assert_eq!((&*reply.text, server.got().len()), ("ok", 3));
    }
}

#[tokio::test]
async fn faults_are_told_apart_by_what_to_do_about_them() {
    use LlmErrorKind::{Configuration, Malformed, RateLimited, Refused, Unavailable};
    let rows: [(u16, &str, LlmErrorKind, usize); 8] = [
        (401, "invalid_api_key", Configuration, 1),
        (403, "permission_error", Configuration, 1),
        (404, "model_not_found", Configuration, 1),
        (400, "context_length_exceeded", Refused, 1),
        (429, "rate_limit_exceeded", RateLimited, 3),
        (500, "server_error", Unavailable, 3),
        (503, "overloaded", Unavailable, 3),
        (429, "insufficient_quota", Configuration, 1),
    ];
    for provider in BOTH {
        for (status, code, kind, tries) in rows {
            if provider == Provider::Anthropic && code == "insufficient_quota" {
                continue;
            }
            let answer = provider.error(code, "the reason");
            let server = HttpServer::new(move |_| failing(&answer, status, &[])).await;
            let error =
                ask(&provider.model(&server, false, &SecretRegistry::new())).await.expect_err("a failure");
            assert_eq!((error.kind, server.got().len()), (kind, tries), "{provider:?} {status}: {error}");
            assert!(error.message.contains(&format!("answered {status}: the reason")), "{error}");
            if status == 401 {
                assert!(error.message.contains("; check ") && !error.message.contains(KEY), "{error}");
            }
        }
    }
    type Make = fn() -> Reply;
    let odd: [(Make, LlmErrorKind, &str); 5] = [
        (|| Reply::new(200, &[("content-type", "application/json")], "<html>"), Malformed, "no JSON"),
        (|| Reply::json(&json!({"hello": 1})), Malformed, "without a message"),
        (|| Reply::json(&json!({"error": {"message": "upstream died"}})), Unavailable, "upstream died"),
        (|| Reply(vec![Step::Close]), Unavailable, ""),
        (
            || Reply::events().chunk("data: {\"choices\": [{\"delta\": {\"content\": \"ha\"}}]}\n\n").end(),
            Unavailable,
            "ended too early",
        ),
    ];
    for (make, kind, part) in odd {
        let server = HttpServer::new(move |_| make()).await;
        let error =
            ask(&Provider::OpenAi.model(&server, true, &SecretRegistry::new())).await.expect_err("a failure");
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(part), "{error}");
    }
    let url = format!("http://127.0.0.1:{}/v1", free_port().await);
    let pause = Duration::from_millis(1);
    let options = ModelOptions { base_url: Some(url), pause, ..ModelOptions::new("some-model") };
    let nobody = model(options, &SecretRegistry::new()).expect("a client");
    assert_eq!(ask(&nobody).await.expect_err("nobody listens").kind, Unavailable);
}

#[tokio::test]
async fn a_pause_that_does_not_fit_into_the_time_is_not_waited_for() {
    let answer = Provider::OpenAi.error("rate_limit_exceeded", "tomorrow");
    let server = HttpServer::new(move |_| failing(&answer, 429, &[("retry-after", "86400")])).await;
    let error =
        ask(&Provider::OpenAi.model(&server, false, &SecretRegistry::new())).await.expect_err("a failure");
    assert_eq!((error.kind, server.got().len()), (LlmErrorKind::RateLimited, 1));
    let hangs = HttpServer::new(|_| Reply(vec![Step::Hang])).await;
    let llm = Provider::OpenAi.model(&hangs, false, &SecretRegistry::new());
    let messages = [LlmMessage::user("?")];
    let timeout = Duration::from_millis(20);
    let request = LlmRequest { system: "", messages: &messages, max_output_tokens: None, timeout };
    let error = llm.complete(request).await.expect_err("no answer");
    assert_eq!((error.kind, &*error.message), (LlmErrorKind::Timeout, "OpenAI: no answer within 20 ms"));
}

#[tokio::test]
async fn an_agent_is_driven_by_each_provider_and_repairs_its_program() {
    let runtime = Runtime::builder().workers(1).start().await.expect("a runtime");
    for provider in BOTH {
        for stream in [false, true] {
            let count = AtomicUsize::new(0);
            let server = HttpServer::new(move |_: &Got| {
                let text = match count.fetch_add(1, Ordering::Relaxed) {
                    0 => "```clojure\n(def total (reduce + data/number))\n```",
                    1 => "```clojure\n(def total (reduce + data/numbers))\n```",
                    _ => "```clojure\n(return {:total total})\n```",
                };
                provider.reply(text, stream)
            });
            let server = server.await;
            let llm = provider.model(&server, stream, &SecretRegistry::new());
            let step = Agent::new("Add up.").run(&runtime, llm, &json!({"numbers": [1, 2, 3]})).await;
            assert_eq!(step.result, Ok(json!({"total": 6})), "{provider:?}");
            assert_eq!((step.turns.len(), step.usage.tokens.total()), (3, Some(84)));
            let got = server.got();
            let told =
                got[1].json()["messages"].as_array().and_then(|all| all.last().cloned()).expect("a message");
            assert!(told["content"].as_str().expect("a text").contains("data/number is not bound"), "{told}");
        }
    }
}

#[tokio::test]
async fn an_agent_whose_model_fails_says_so_without_its_key() {
    let runtime = Runtime::builder().workers(1).start().await.expect("a runtime");
    let _ = Credential::secret(KEY, runtime.secrets());
    let answer = Provider::OpenAi.error("invalid_api_key", &format!("Incorrect API key provided: {KEY}"));
    let server = HttpServer::new(move |_| failing(&answer, 401, &[])).await;
    let llm = Provider::OpenAi.model(&server, false, &SecretRegistry::new());
    let step = Agent::new("?").limits(AgentLimits::default()).run(&runtime, llm, &json!({})).await;
    let failure = step.result.expect_err("no answer");
    assert_eq!(
        (failure.reason, failure.model_error),
        (AgentReason::LlmError, Some(LlmErrorKind::Configuration))
    );
    assert!(!failure.message.contains(KEY) && failure.message.contains("[REDACTED]"), "{failure}");
}

#[tokio::test]
async fn no_part_of_a_key_is_left_where_an_error_is_cut() {
    // The excerpt in the error ends inside the key, at each possible position.
    for before in 480..500 {
        let said = format!("{}{KEY} was not accepted", "x".repeat(before));
        for answer in [Provider::OpenAi.error("invalid_request", &said), json!(said)] {
            let server = HttpServer::new(move |_| failing(&answer, 400, &[])).await;
            let secrets = SecretRegistry::new();
            let key = Some(Credential::secret(KEY, &secrets).0);
            let base_url = Some(server.url("/v1"));
            let options = ModelOptions { base_url, key, ..ModelOptions::new("openai:gpt-test") };
            let error = ask(&model(options, &secrets).expect("a client")).await.expect_err("a failure");
            assert!(!error.message.contains("sk-"), "{error}");
        }
    }
}

/// The beginning of an answer, and one piece of it repeated without end.
fn endless(status: u16, kind: &str, piece: String) -> Reply {
    Reply::chunked(status, &[("content-type", kind)]).then(Step::Forever(chunk(piece)))
}

#[tokio::test]
async fn what_has_no_end_is_cut_off() {
    use LlmErrorKind::{Malformed, Refused};
    type Make = fn(Provider) -> Reply;
    const EVENTS: &str = "text/event-stream";
    const LONG: usize = 64 << 10;
    let rows: [(&str, Make, LlmErrorKind, &str); 6] = [
        (
            "deltas",
            |provider| endless(200, EVENTS, provider.events(&"x".repeat(LONG))[3].clone()),
            Malformed,
            "more than",
        ),
        ("comments", |_| endless(200, EVENTS, format!(": {}\n\n", "x".repeat(LONG))), Malformed, "more than"),
        ("an event", |_| endless(200, EVENTS, "data: x".repeat(LONG)), Malformed, ""),
        ("an answer", |_| endless(200, "application/json", "[".repeat(LONG)), Malformed, ""),
        (
            "a gigabyte",
            |_| {
                let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1073741824\r\n\r\n";
                Reply(vec![Step::Send(head.to_vec()), Step::Forever(vec![b' '; LONG])])
            },
            Malformed,
            "",
        ),
        ("an error", |_| endless(400, "text/plain", "x".repeat(LONG)), Refused, "answered 400: xxx"),
    ];
    for provider in BOTH {
        for (name, make, kind, part) in rows {
            let server = HttpServer::new(move |_| make(provider)).await;
            let error = ask(&provider.model(&server, true, &SecretRegistry::new())).await.expect_err(name);
            assert_eq!((error.kind, server.got().len()), (kind, 1), "{provider:?} {name}: {error}");
            assert!(error.message.contains(part) && error.message.len() < 700, "{name}: {error}");
        }
    }
}

#[tokio::test]
async fn answers_without_a_text_are_empty_and_what_is_no_text_is_refused() {
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "run", "arguments": "{\"text\": \"(return 1)\"}"}});
    let tool_calls = json!({"choices": [{"index": 0, "finish_reason": "tool_calls",
        "message": {"role": "assistant", "content": null, "tool_calls": [call]}}]});
    let tool_use = json!({"type": "message", "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "run", "input": {"text": "(return 1)"}}]});
    let parts = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "(return 1)"}});
    let streamed = format!("data: {parts}\n\ndata: {}\n\n", json!({"type": "message_stop"}));
    let silent = [
        (Provider::OpenAi, tool_calls.to_string(), "application/json"),
        (Provider::OpenAi, Provider::OpenAi.answer("").to_string(), "application/json"),
        (Provider::OpenAi, "data: [DONE]\n\n".to_owned(), "text/event-stream"),
        (Provider::Anthropic, tool_use.to_string(), "application/json"),
        (Provider::Anthropic, Provider::Anthropic.answer("").to_string(), "application/json"),
        (Provider::Anthropic, streamed, "text/event-stream"),
    ];
    for (provider, body, kind) in silent {
        let server = HttpServer::new(move |_| Reply::new(200, &[("content-type", kind)], &body)).await;
        let reply = ask(&provider.model(&server, true, &SecretRegistry::new()))
            .await
            .expect("an answer without a text");
        assert_eq!(reply.text, "", "{provider:?} {kind}");
    }
    let odd: [(&[u8], &str); 6] = [
        (b"", "application/json"),
        (b"null", "application/json"),
        (b"{\"choices\": [], \"content\": 1}", "application/json"),
        (b"{\"choices\": [{\"message\": {\"content\": \"\xff\xfe\"}}]}", "application/json"),
        (b"{\"content\": [{\"type\": \"text\", \"text\": \"\xc3\"}]}", "application/json"),
        (b"data: {\"choices\": [{\"delta\": {\"content\": \"\xff\"}}]}\n\n", "text/event-stream"),
    ];
    for provider in BOTH {
        for (body, kind) in odd {
            let server = HttpServer::new(move |_| Reply::new(200, &[("content-type", kind)], body)).await;
            let error =
                ask(&provider.model(&server, true, &SecretRegistry::new())).await.expect_err("no answer");
            assert_eq!(
                (error.kind, server.got().len()),
                (LlmErrorKind::Malformed, 1),
                "{provider:?}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn pauses_are_taken_as_seconds_or_not_at_all() {
    let rows: [(Option<&str>, usize); 7] = [
        (None, 3),
        (Some("0"), 3),
        (Some("31536000"), 1),
        (Some("18446744073709551615"), 1),
        (Some("99999999999999999999999"), 3),
        (Some("-1"), 3),
        (Some("Wed, 21 Oct 2099 07:28:00 GMT"), 3),
    ];
    for provider in BOTH {
        for (pause, tries) in rows {
            let answer = provider.error("rate_limit_error", "slow down");
            let headers: Vec<_> = pause.into_iter().map(|pause| ("retry-after", pause)).collect();
            let server = HttpServer::new(move |_| failing(&answer, 429, &headers)).await;
            let error =
                ask(&provider.model(&server, false, &SecretRegistry::new())).await.expect_err("no answer");
            assert_eq!((error.kind, server.got().len()), (LlmErrorKind::RateLimited, tries), "{pause:?}");
        }
    }
}

#[tokio::test]
async fn a_redirect_takes_neither_key_nor_prompt_to_another_host() {
    for provider in BOTH {
        for status in [301, 302, 303, 307, 308] {
            let elsewhere = Arc::new(HttpServer::new(move |_| provider.reply("mine", false)).await);
            let to = format!("{}/{KEY}", elsewhere.url(""));
            let server = HttpServer::new(move |_| Reply::new(status, &[("location", &to)], "")).await;
            let secrets = SecretRegistry::new();
            let (name, base) = match provider {
                Provider::OpenAi => ("openai:gpt-test", server.url("/v1")),
                Provider::Anthropic => ("anthropic:claude-test", server.url("")),
            };
            let key = Some(Credential::secret(KEY, &secrets).0);
            let options = ModelOptions { base_url: Some(base), key, ..ModelOptions::new(name) };
            let error = ask(&model(options, &secrets).expect("a client")).await.expect_err("no answer");
            assert_eq!(error.kind, LlmErrorKind::Configuration, "{status}: {error}");
            assert!(elsewhere.got().is_empty() && !error.message.contains(KEY), "{status}: {error}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_stays_open_behind_the_last_word_is_a_whole_reply() {
    // The events before the stream stalls or breaks, and the tokens counted by then.
    let counted = TokenUsage { input: Some(21), output: Some(7) };
    let begun = TokenUsage { input: Some(21), output: Some(7) };
    let rows = [
        // Without `[DONE]`: the counts are the last event.
        (Provider::OpenAi, 6, counted),
        // Without the counts: the stream stalls.
        (Provider::OpenAi, 5, TokenUsage::default()),
        // Without `message_stop`.
        (Provider::Anthropic, 7, begun),
    ];
    for (provider, count, usage) in rows {
        for end in [|| Step::Hang, || Step::Close] {
            let server = HttpServer::new(move |_| {
                let events = provider.events("(return 1) é");
                events[..count].iter().fold(Reply::events(), Reply::chunk).then(end())
            });
            let server = server.await;
            let llm = provider.model(&server, true, &SecretRegistry::new());
            let reply = ask(&llm).await.expect("a reply");
            assert_eq!(reply, LlmReply { text: "(return 1) é".into(), usage, is_cut: false }, "{provider:?}");
            assert_eq!(server.got().len(), 1, "it is not asked again");
        }
    }
}

#[tokio::test]
async fn words_keep_a_stream_open_and_nothing_else_does() {
    let server = HttpServer::new(move |_| {
        let events = Provider::OpenAi.events("(return 1)");
        let (say, said) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            // Until the client disconnects.
            while say.send(Some(b": keep-alive\n\ndata: {}\n\n".to_vec())).is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        events[..5].iter().fold(Reply::events(), Reply::chunk).then(Step::Said(said))
    });
    let llm = Provider::OpenAi.model(&server.await, true, &SecretRegistry::new());
    assert_eq!(ask(&llm).await.expect("a reply").text, "(return 1)");
    // Each piece has a finish reason and counts: all pieces are read.
    let piece = |text: &str| {
        let choice = json!([{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]);
        format!(
            "data: {}\n\n",
            json!({"choices": choice, "usage": {"prompt_tokens": 1, "completion_tokens": 2}})
        )
    };
    let pieces = [piece("(return "), piece("1"), piece(")"), "data: [DONE]\n\n".to_owned()];
    let server =
        HttpServer::new(move |_| pieces.iter().fold(Reply::events(), Reply::chunk).then(Step::Hang)).await;
    let llm = Provider::OpenAi.model(&server, true, &SecretRegistry::new());
    assert_eq!(ask(&llm).await.expect("a reply").text, "(return 1)");
}

#[tokio::test]
async fn what_a_filter_or_a_limit_has_cut_is_not_run() {
    let runtime = Runtime::builder().workers(1).start().await.expect("a runtime");
    for provider in BOTH {
        for stream in [false, true] {
            for end in [TextEnd::Complete, TextEnd::Filtered, TextEnd::Cut] {
                let server =
                    HttpServer::new(move |_| provider.reply_that_ends("(return :all-of-it)", end, stream))
                        .await;
                let llm = provider.model(&server, stream, &SecretRegistry::new());
                let reply = ask(&llm).await.expect("a reply");
                assert_eq!(reply.is_cut, end != TextEnd::Complete, "{provider:?} {stream} {end:?}");
                let limits = AgentLimits { max_turns: 1, ..AgentLimits::default() };
                let step = Agent::new("?").limits(limits).run(&runtime, llm, &json!({})).await;
                match end {
                    TextEnd::Complete => assert_eq!(step.result, Ok(json!("all-of-it"))),
                    _ => {
                        let failure = step.result.expect_err("no program");
                        assert_eq!(failure.reason, AgentReason::MaxTurnsExceeded, "{failure}");
                        assert!(failure.message.contains("the reply was cut"), "{failure}");
                        assert!(step.turns[0].program_time.is_zero(), "it was not run");
                    }
                }
            }
        }
    }
}
