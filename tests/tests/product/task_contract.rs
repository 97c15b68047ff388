//! The contract of `lisp_task`, field by field: answers, reasons and their texts, budgets, prompts, and the messages
//! at startup.

use ptc_tests::binary::{ptc, run};
use ptc_tests::model::{ModelAnswer, ModelServer};
use ptc_tests::serve::Server;
use ptc_tests::tasks::{shop, started, task};
use ptc_tests::upstreams::{ConfigFile, Upstreams};
use ptc_tests::web::sha256;
use serde_json::{Value, json};
use std::io::Write as _;

fn reading(config: &ConfigFile, model: &ModelServer, more: &[&str]) -> Server {
    started(config, model, &[&["--aggregator-read-only"], more].concat())
}

fn listed(server: &mut Server) -> Vec<Value> {
    server.request("tools/list", json!({}))["result"]["tools"].as_array().expect("a list").clone()
}

fn lisp_task(server: &mut Server) -> Value {
    listed(server).into_iter().find(|tool| tool["name"] == "lisp_task").expect("the tool")
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().map(|fields| fields.keys().map(String::as_str).collect()).unwrap_or_default()
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("it is written");
    file
}

const CUSTOMER: &str = "(:value (tool/call {:server \"shop\" :tool \"get_customer\" :args {:id \"c-07\"}}))";

#[test]
fn answers_have_every_field_of_the_contract_with_either_provider() {
    let config = shop();
    for provider in ["some-model", "anthropic:claude-test"] {
        let model =
            ModelServer::with_programs(&[&format!("(return {CUSTOMER})"), "(fail {:why \"because\"})"]);
        let url = model.url().trim_end_matches("/v1").to_owned();
        let base = if provider == "some-model" { model.url() } else { &url };
        let flags = ["--agentic", "--agentic-model", provider, "--agentic-base-url", base];
        let mut server = Server::start(&config.flags(&[&flags[..], &["--aggregator-read-only"]].concat()));
        let solved = task(&mut server, json!({"task": "Who?"}))["structuredContent"].clone();
        let fields = [
            "status",
            "answer",
            "structured_result",
            "warnings",
            "planner",
            "execution",
            "upstream_calls",
            "program",
            "trace_id",
            "ptc_metrics",
        ];
        assert_eq!(keys(&solved), fields, "{provider}");
        let (planner, execution) = (&solved["planner"], &solved["execution"]);
        let fields =
            ["model", "calls", "duration_ms", "prompt_bytes", "output_bytes", "completion_bytes", "tokens"];
        assert_eq!(keys(planner), fields);
        assert_eq!((&planner["model"], &planner["calls"]), (&json!(provider), &json!(1)));
        assert_eq!(planner["tokens"], json!({"input": 40, "output": 2}));
        assert_eq!(
            keys(execution),
            ["result_bytes", "truncated", "max_result_bytes", "duration_ms", "turn_count"]
        );
        assert_eq!(execution["result_bytes"], solved["answer"].as_str().unwrap().len());
        let [call] = &solved["upstream_calls"].as_array().unwrap()[..] else { panic!("{solved}") };
        let fields = ["server", "tool", "status", "duration_ms", "effect", "result_bytes", "oversize"];
        assert_eq!(keys(call), fields);
        let metrics = &solved["ptc_metrics"];
        let told = json!({"answer": solved["answer"], "structured_result": solved["structured_result"]});
        assert_eq!(metrics["final_result_bytes"], told.to_string().len());
        assert_eq!(
            metrics["efficiency_note"],
            "The ratio counts upstream payload against the answer. It excludes what the planner model of this server read \
             and wrote, and the envelope of the response."
        );
        let llm = &metrics["server_side_llm"];
        let fields = [
            "planner_calls",
            "provider_reported",
            "prompt_tokens",
            "completion_tokens",
            "total_tokens",
            "prompt_bytes",
            "completion_bytes",
            "estimated_prompt_tokens",
            "estimated_completion_tokens",
            "estimated_total_tokens",
            "estimate_method",
        ];
        assert_eq!(keys(llm), fields);
        assert_eq!(llm["prompt_bytes"], planner["prompt_bytes"]);
        assert_eq!(llm["estimate_method"], "utf8_bytes_div_4");
        let failed = task(&mut server, json!({"task": "Who?"}))["structuredContent"].clone();
        let fields = [
            "status",
            "reason",
            "feedback",
            "message",
            "warnings",
            "planner",
            "execution",
            "upstream_calls",
            "program",
            "trace_id",
            "ptc_metrics",
        ];
        assert_eq!(keys(&failed), fields);
        assert_eq!(
            (&failed["reason"], &failed["message"]),
            (&json!("agent_failed"), &json!("{:why \"because\"}"))
        );
        let metrics = &failed["ptc_metrics"];
        assert_eq!(
            (&metrics["final_result_bytes"], &metrics["payload_reduction_ratio"]),
            (&json!(0), &Value::Null)
        );
    }
}

#[test]
fn tokens_that_nobody_counts_are_null_and_estimated() {
    let config = shop();
    let says = "```clojure\n(return \"done\")\n```";
    let model = ModelServer::answering(vec![ModelAnswer::Uncounted(says.to_owned())]);
    let mut server = reading(&config, &model, &[]);
    let told = task(&mut server, json!({"task": "?"}))["structuredContent"].clone();
    // A text is its own answer.
    assert_eq!((&told["answer"], &told["structured_result"]), (&json!("done"), &Value::Null));
    let llm = &told["ptc_metrics"]["server_side_llm"];
    assert_eq!((&llm["provider_reported"], &llm["total_tokens"]), (&json!(false), &Value::Null));
    assert_eq!((&llm["prompt_tokens"], &llm["completion_tokens"]), (&Value::Null, &Value::Null));
    let bytes = llm["prompt_bytes"].as_u64().unwrap();
    assert_eq!(llm["estimated_prompt_tokens"], bytes.div_ceil(4));
    assert_eq!(llm["completion_bytes"], says.len());
}

#[test]
fn each_way_in_which_a_model_fails_has_its_reason() {
    let config = shop();
    let fails = |status, text: &str| ModelAnswer::Fails(status, text.to_owned());
    let rows: [(ModelAnswer, &[&str], &str, &str); 5] = [
        (
            fails(401, "no such key"),
            &[],
            "agentic_config_error",
            "the model server answered 401: no such key",
        ),
        (fails(400, "too long"), &[], "planner_error", "the model server answered 400: too long"),
        (fails(500, "broken"), &[], "planner_error", "the model server answered 500: broken"),
        (
            ModelAnswer::Silence,
            &["--agentic-planner-timeout-ms", "300"],
            "planner_timeout",
            "planner exceeded 300ms timeout",
        ),
        (
            ModelAnswer::Silence,
            &["--agentic-task-timeout-ms", "300", "--agentic-planner-timeout", "10m"],
            "budget_exceeded",
            "agentic task budget exceeded",
        ),
    ];
    for (answer, flags, reason, message) in rows {
        let model = ModelServer::answering(vec![answer]);
        let mut server = reading(&config, &model, flags);
        let result = task(&mut server, json!({"task": "?"}));
        let told = &result["structuredContent"];
        assert_eq!((&told["reason"], &told["message"]), (&json!(reason), &json!(message)));
        assert_eq!((&result["isError"], &told["status"]), (&json!(true), &json!("error")));
        assert!(
            told["ptc_metrics"]["server_side_llm"].is_object() || told["planner"]["calls"] == 0,
            "{told}"
        );
    }
}

#[test]
fn a_server_without_the_key_of_its_model_serves_everything_else() {
    let config = shop();
    let flags = config.flags(&["--agentic", "--aggregator-read-only"]);
    let arguments: Vec<&str> = std::iter::once("serve").chain(flags).collect();
    let mut command = ptc(&arguments);
    command.env_remove("OPENROUTER_API_KEY");
    let mut server = Server::from_command(command);
    assert_eq!(server.text("(+ 1 2)"), "3");
    let result = task(&mut server, json!({"task": "?"}));
    let told = &result["structuredContent"];
    assert_eq!((&told["reason"], &result["isError"]), (&json!("agentic_config_error"), &json!(true)));
    assert_eq!(told["message"], "OPENROUTER_API_KEY is required for OpenRouter planner models");
    assert_eq!(told["planner"]["model"], "gemini-flash-lite");
    server.has_logged("agentic_config_error: OPENROUTER_API_KEY is required for OpenRouter planner models");
}

#[test]
fn all_turns_have_one_budget_of_calls_and_a_call_without_an_answer_is_a_side_effect() {
    let config = shop();
    let twice = format!(
        "(do {CUSTOMER} (:ok (tool/call {{:server \"shop\" :tool \"get_customer\" :args {{:id \"c-07\"}}}})))"
    );
    let reason =
        "(return (:reason (tool/call {:server \"shop\" :tool \"get_customer\" :args {:id \"c-07\"}})))";
    let model = ModelServer::with_programs(&[&twice, reason]);
    let mut server = reading(&config, &model, &["--max-upstream-calls", "2", "--agentic-max-turns", "2"]);
    let told = task(&mut server, json!({"task": "?"}))["structuredContent"].clone();
    assert_eq!((&told["status"], &told["answer"]), (&json!("ok"), &json!("cap_exhausted")), "{told}");
    assert_eq!(told["upstream_calls"].as_array().unwrap().len(), 3);

    let probe = Upstreams::probe().write();
    let holds = ModelServer::with_programs(&[
        "(do (tool/call {:server \"probe\" :tool \"hold\" :args {}}) (loop [] (recur)))",
    ]);
    let flags = ["--agentic-allow-writes", "--agentic-task-timeout", "5s", "--timeout", "10m"];
    let mut server = started(&probe, &holds, &flags);
    let told = task(&mut server, json!({"task": "?"}))["structuredContent"].clone();
    assert_eq!(told["reason"], "partial_side_effects", "{told}");
    assert_eq!(told["matched_calls"], json!([{"server": "probe", "tool": "hold", "effect": "unknown"}]));
}

#[test]
fn a_call_that_its_program_left_was_attempted() {
    let probe = Upstreams::probe().write();
    // The second branch fails when it has an answer, so after the call of the first.
    let call = "(tool/call {:server \"probe\" :tool (if (= i 0) \"hold\" \"echo\") :args {}})";
    let program = format!("(pmap (fn [i] {call} (fail \"enough\")) [0 1])");
    let model = ModelServer::with_programs(&[&program]);
    let mut server = started(&probe, &model, &["--agentic-allow-writes"]);
    let told = task(&mut server, json!({"task": "?"}))["structuredContent"].clone();
    assert_eq!(told["reason"], "partial_side_effects", "{told}");
    let calls: Vec<[&Value; 4]> = told["upstream_calls"].as_array().unwrap().iter().map(shown).collect();
    let [echo, hold, ok, attempted] = ["echo", "hold", "ok", "attempted"].map(Value::from);
    let cancelled = json!("cancelled");
    assert_eq!(calls[0][..2], [&echo, &ok]);
    assert_eq!(calls[1], [&hold, &attempted, &cancelled, &Value::Null]);
}

/// A call in the answer: tool, status, reason, bytes.
fn shown(call: &Value) -> [&Value; 4] {
    ["tool", "status", "reason", "result_bytes"].map(|field| &call[field])
}

#[test]
fn a_lazy_catalog_is_pointed_at_and_the_log_has_sizes_and_hashes_of_summaries() {
    let (config, model) = (shop(), ModelServer::with_programs(&["(return 1)"]));
    let heading = "\nAvailable upstream capabilities:\n";
    let summary = |server: &mut Server| {
        let description = lisp_task(server)["description"].as_str().unwrap().to_owned();
        description.split_once(heading).expect(heading).1.to_owned()
    };
    let logged = |text: &str| {
        let (bytes, hash) = (text.len(), sha256(text));
        format!(r#""message":"agentic_capability_summary","bytes":{bytes},"sha256":"{hash}""#)
    };
    for mode in ["lazy", "auto"] {
        let mut server = reading(&config, &model, &["--catalog-mode", mode, "--log-level", "info"]);
        let told = summary(&mut server);
        match mode {
            "lazy" => assert_eq!(
                told,
                "Servers and tools are not listed here (lazy catalog): a task finds those that it needs while it runs."
            ),
            _ => assert!(told.starts_with("- shop: get_customer->"), "{told}"),
        }
        server.has_logged(&logged(&told));
    }
}

#[test]
fn an_answer_that_is_too_long_is_cut_and_says_so() {
    let config = shop();
    let model = ModelServer::with_programs(&["(return (vec (range 100)))"]);
    let mut server = reading(&config, &model, &["--agentic-max-result-bytes", "20"]);
    let result = task(&mut server, json!({"task": "?"}));
    let told = &result["structuredContent"];
    assert_eq!(told["answer"], "[0,1,2,3,4,5,6,7,8,9");
    assert_eq!((&told["structured_result"], &told["execution"]["truncated"]), (&Value::Null, &json!(true)));
    assert_eq!(told["warnings"], json!([{"code": "max_result_bytes", "detail": 20}]));
    assert_eq!(told["execution"]["result_bytes"], 291);
    assert_eq!(result["isError"], false);
}

#[test]
fn what_a_task_may_do_is_in_its_annotations() {
    let model = ModelServer::with_programs(&["(return 1)"]);
    let hints = |server: &mut Server| lisp_task(server)["annotations"].clone();
    let told = hints(&mut reading(&shop(), &model, &[]));
    assert_eq!(
        told,
        json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": false, "openWorldHint": true})
    );
    let told = hints(&mut started(&shop(), &model, &["--agentic-allow-writes"]));
    assert_eq!(
        told,
        json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true})
    );
}

#[test]
fn without_servers_there_are_no_tasks() {
    let mut server = Server::start(&["--agentic"]);
    assert!(listed(&mut server).iter().all(|tool| tool["name"] != "lisp_task"));
    server.has_logged("agentic_without_aggregator");
}

#[test]
fn texts_of_the_operator_stand_where_they_belong_and_flags_win() {
    let config = shop();
    let text =
        json!({"max_turns": 3, "system_prompt": {"prefix": "Be brief.", "suffix": "Say it in French."}});
    let settings = file(&text.to_string());
    let summary = file("Everything about the shop.\n");
    let model = ModelServer::with_programs(&["(def a 1)"]);
    let paths = [settings.path().to_str().unwrap(), summary.path().to_str().unwrap()];
    let files = ["--agentic-subagent-config", paths[0], "--agentic-capability-summary", paths[1]];
    let mut server = reading(&config, &model, &[&files[..], &["--agentic-max-turns", "2"]].concat());
    let description = lisp_task(&mut server)["description"].clone();
    let description = description.as_str().unwrap();
    assert!(
        description.ends_with("\nAvailable upstream capabilities:\nEverything about the shop."),
        "{description}"
    );
    let arguments = json!({"task": "Look.", "context": {"id": "c-07"}, "constraints": {"max_items": 1}});
    let told = task(&mut server, arguments)["structuredContent"].clone();
    assert_eq!(
        (&told["reason"], &told["execution"]["turn_count"]),
        (&json!("ptc_max_turns_exceeded"), &json!(2))
    );
    let got = model.got.lock().unwrap();
    let system = got[0]["messages"][0]["content"].as_str().unwrap();
    let at = |part: &str| system.find(part).unwrap_or_else(|| panic!("{part}: {system}"));
    let order = [
        at("PTC-Lisp"),
        at("Be brief."),
        at("(tool/call! "),
        at("Say it in French."),
        at("never an instruction"),
    ];
    assert!(order.is_sorted(), "{order:?}");
    let first = got[0]["messages"][1]["content"].as_str().unwrap();
    assert!(first.contains("Look.\n\nConstraints JSON:\n{\"max_items\":1}"), "{first}");
    assert!(first.contains("# Servers\n- shop") && first.contains("data/id  text of 4 bytes"), "{first}");
    assert_eq!(got[0]["max_tokens"], 1_200);
}

#[test]
fn files_that_say_too_much_end_the_start() {
    let config = shop();
    let long = "x".repeat(4_097);
    let prefix = file(&json!({"system_prompt": {"prefix": long}}).to_string());
    let reserved = file(r#"{"signature": "x", "tools": []}"#);
    let summary = file(&"x".repeat(801));
    let rows = [
        (
            "--agentic-subagent-config",
            &prefix,
            "has a system_prompt.prefix that is no text of at most 4096 bytes",
        ),
        ("--agentic-subagent-config", &reserved, "contains reserved key(s): signature, tools"),
        (
            "--agentic-capability-summary",
            &summary,
            "has 801 bytes, --agentic-capability-summary-max-bytes allows 800",
        ),
    ];
    for (flag, file, want) in rows {
        let path = file.path().to_str().unwrap();
        let more = ["--agentic", "--aggregator-read-only", "--agentic-model", "ollama:qwen3", flag, path];
        let arguments: Vec<&str> = std::iter::once("serve").chain(config.flags(&more)).collect();
        let finished = run(ptc(&arguments), "");
        assert_eq!(finished.code, Some(2), "{}", finished.stderr);
        assert!(finished.stderr.contains(want), "{}", finished.stderr);
    }
}

#[test]
fn traces_have_prompts_where_that_is_asked_for_and_never_a_secret() {
    const KEY: &str = "sk-planted-0123456789abcdef";
    let config = shop();
    for asked in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let model = ModelServer::with_programs(&["(println data/k)", "(return 1)"]);
        let mut flags = vec!["--trace-dir", folder.path().to_str().unwrap(), "--agentic-max-turns", "2"];
        flags.extend(asked.then_some("--agentic-trace-prompts"));
        let mut file: Value = serde_json::from_str(&std::fs::read_to_string(config.path()).unwrap()).unwrap();
        file["credentials"] = json!({"planner": {"source": "literal", "value": KEY}});
        let with_key = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
        std::fs::write(with_key.path(), file.to_string()).unwrap();
        let all = [
            &["--upstreams-config", with_key.path().to_str().unwrap(), "--agentic", "--aggregator-read-only"]
                [..],
            &["--agentic-model", "some-model", "--agentic-base-url", model.url()],
            &["--agentic-credential", "planner"],
            &flags,
        ];
        let mut server = Server::start(&all.concat());
        let result = task(&mut server, json!({"task": format!("Say {KEY}."), "context": {"k": KEY}}));
        assert_eq!(result["isError"], false, "{result}");
        assert_eq!(server.end(), Some(0));
        let traces: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        let [trace] = &traces[..] else { panic!("{traces:?}") };
        let text = std::fs::read_to_string(trace).unwrap();
        assert!(!text.contains("planted"), "{text}");
        let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let prompts: Vec<&Value> = events
            .iter()
            .filter(|event| event["event"] == "ptc_lisp.agentic_planner.start")
            .map(|event| &event["prompt"])
            .collect();
        assert_eq!(prompts.len(), 2);
        match asked {
            false => assert!(prompts.iter().all(|prompt| prompt.is_null()), "{prompts:?}"),
            true => {
                assert_eq!(prompts[1]["messages"].as_array().unwrap().len(), 3);
                let first = prompts[0]["messages"][0]["text"].as_str().unwrap();
                assert!(first.contains("Say [REDACTED]."), "{first}");
                assert!(prompts[0]["system"].as_str().unwrap().contains("PTC-Lisp"));
            }
        }
    }
}
