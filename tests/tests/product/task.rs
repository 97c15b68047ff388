//! Tasks in words: `lisp_task` and `ptc task`, with a scripted model.

use ptc_tests::binary::{ptc, run};
use ptc_tests::model::ModelServer;
use ptc_tests::serve::Server;
use ptc_tests::tasks::{shop, started, task};
use ptc_tests::upstreams::Upstreams;
use serde_json::{Value, json};

const NAME: &str =
    "(return (:name (:value (tool/call {:server \"shop\" :tool \"get_customer\" :args {:id data/id}}))))";

#[test]
fn a_task_is_solved_over_the_servers() {
    let (config, model) = (shop(), ModelServer::with_programs(&[NAME]));
    let mut server = started(&config, &model, &["--aggregator-read-only"]);
    let tools = server.request("tools/list", json!({}))["result"]["tools"].clone();
    let tools = tools.as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["lisp_eval", "lisp_task"]);
    let description = tools[1]["description"].as_str().unwrap();
    assert!(
        description.contains("Available upstream capabilities:\n- shop: get_customer->:unknown_content"),
        "{description}"
    );
    let result = task(&mut server, json!({"task": "Who is the customer?", "context": {"id": "c-07"}}));
    assert_eq!(result["isError"], false, "{result}");
    let told = &result["structuredContent"];
    assert_eq!(told["status"], "ok");
    assert!(!told["answer"].as_str().unwrap().is_empty());
    assert!(told["program"].as_str().unwrap().contains("get_customer"));
    let call = &told["upstream_calls"][0];
    assert_eq!(
        (&call["server"], &call["effect"], &call["status"]),
        (&json!("shop"), &json!("read"), &json!("ok"))
    );
    let planner = &told["planner"];
    assert_eq!(
        (&planner["model"], &planner["calls"], &planner["tokens"]["input"]),
        (&json!("some-model"), &json!(1), &json!(40))
    );
    let llm = &told["ptc_metrics"]["server_side_llm"];
    assert_eq!(
        (&llm["provider_reported"], &llm["total_tokens"], &llm["planner_calls"]),
        (&json!(true), &json!(42), &json!(1))
    );
    assert!(told["ptc_metrics"]["efficiency_note"].as_str().unwrap().contains("excludes"));
    assert_eq!(
        (&told["execution"]["turn_count"], &told["execution"]["truncated"]),
        (&json!(1), &json!(false))
    );
    let prompt = &model.prompts()[0];
    assert!(prompt.contains("Who is the customer?") && prompt.contains("3 turns left"), "{prompt}");
    assert!(prompt.contains("shop/get_customer {:id string} - One customer"), "{prompt}");
}

#[test]
fn turns_retries_and_constraints_are_kept_to() {
    let (config, model) = (
        shop(),
        ModelServer::with_programs(&["(def n 1)", "(return {:rows [{:a 1 :b 2} {:a 3 :b 4}] :x n})"]),
    );
    let mut server = started(
        &config,
        &model,
        &["--aggregator-read-only", "--agentic-max-turns", "2", "--agentic-include-program", "false"],
    );
    let result = task(&mut server, json!({"task": "?", "constraints": {"max_items": 1, "tone": "kind"}}));
    let told = &result["structuredContent"];
    assert_eq!(told["structured_result"], json!({"rows": [{"a": 1, "b": 2}], "x": 1}));
    assert_eq!(told["warnings"], json!([{"code": "unsupported_constraint", "detail": "tone"}]));
    assert!(told.get("program").is_none());
    let one_turn = ModelServer::with_programs(&["(def n 1)"]);
    let mut server = started(&config, &one_turn, &["--aggregator-read-only", "--agentic-max-turns", "1"]);
    let result = task(&mut server, json!({"task": "?"}));
    assert_eq!(
        (&result["isError"], &result["structuredContent"]["reason"]),
        (&json!(true), &json!("ptc_max_turns_exceeded"))
    );
    for (arguments, want) in [
        (json!({}), "argument `task` must be a string, got null"),
        (json!({"task": ""}), "argument `task` must be a non-empty string"),
        (json!({"task": "t", "context": 1}), "argument `context` must be a JSON object, got number"),
    ] {
        let result = task(&mut server, arguments);
        let told = &result["structuredContent"];
        assert_eq!((&told["reason"], &told["message"]), (&json!("args_error"), &json!(want)));
    }
    assert_eq!(one_turn.prompts().len(), 1, "nobody asks a model what is wrong with arguments");
}

#[test]
fn nothing_goes_on_behind_a_call_that_may_have_written() {
    let call = "(tool/call {:server \"probe\" :tool \"echo\" :args {:v \"planted words\"}})";
    let (config, model) = (Upstreams::probe().write(), ModelServer::with_programs(&[call]));
    let mut server = started(&config, &model, &["--agentic-allow-writes", "--agentic-max-turns", "3"]);
    let result = task(&mut server, json!({"task": "?"}));
    let told = &result["structuredContent"];
    assert_eq!(told["reason"], "partial_side_effects", "{told}");
    assert_eq!(told["message"], "Continuation blocked after write or unknown upstream side effects");
    assert_eq!(told["matched_calls"], json!([{"server": "probe", "tool": "echo", "effect": "unknown"}]));
    assert_eq!(model.prompts().len(), 1);
}

#[test]
fn wrong_settings_end_the_start() {
    let config = Upstreams::probe().write();
    let cases: [(&[&str], &str); 3] = [
        (
            &["--agentic-allow-writes"],
            "agentic configuration invalid: --agentic-allow-writes requires --agentic.",
        ),
        (
            &["--agentic"],
            "agentic configuration invalid: configured upstream access is not asserted read-only.",
        ),
        (
            &["--agentic", "--aggregator-read-only", "--agentic-model", "gpt"],
            "agentic configuration invalid: unknown model \"gpt\"",
        ),
    ];
    for (flags, want) in cases {
        let arguments: Vec<&str> = std::iter::once("serve").chain(config.flags(flags)).collect();
        let mut command = ptc(&arguments);
        command.env_remove("OPENROUTER_API_KEY");
        let finished = run(command, "");
        assert_eq!(finished.code, Some(2), "{}", finished.stderr);
        assert!(finished.stderr.contains(want), "{}", finished.stderr);
    }
}

#[test]
fn the_command_prints_the_answer() {
    let (config, model) = (shop(), ModelServer::with_programs(&[NAME]));
    let context = json!({"id": "c-07"}).to_string();
    let flags = [
        "task",
        "Who is it?",
        "--context",
        &context,
        "--agentic-model",
        "some-model",
        "--agentic-base-url",
        model.url(),
        "--aggregator-read-only",
    ];
    let flags: Vec<&str> = flags.into_iter().chain(config.flags(&[])).collect();
    let finished = run(ptc(&flags), "");
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let printed = finished.stdout.trim().to_owned();
    assert!(!printed.is_empty());
    let json: Vec<&str> = flags.iter().copied().chain(["--output", "json"]).collect();
    let finished = run(ptc(&json), "");
    let told: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&told["status"], &told["answer"]), (&json!("ok"), &json!(printed)));
    let gives_up = ModelServer::with_programs(&["(fail \"no such customer\")"]);
    let flags =
        ["task", "?", "--agentic-model", "m", "--agentic-base-url", gives_up.url(), "--aggregator-read-only"];
    let finished = run(ptc(&flags.into_iter().chain(config.flags(&[])).collect::<Vec<_>>()), "");
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains("agent_failed: \"no such customer\""), "{}", finished.stderr);
}

#[test]
fn records_say_what_the_model_did() {
    let folder = tempfile::tempdir().unwrap();
    let config = shop();
    let model = ModelServer::with_programs(&["no program at all (", NAME, "(return (:name nobody))"]);
    let flags =
        ["--aggregator-read-only", "--agentic-max-turns", "1", "--agentic-retry-turns", "1", "--debug-tool"];
    let traces = ["--trace-dir", folder.path().to_str().unwrap(), "--trace-payloads", "full"];
    let mut server = started(&config, &model, &[&flags[..], &traces[..]].concat());
    let solved = task(&mut server, json!({"task": "Who is the customer?", "context": {"id": "c-07"}}));
    assert_eq!(solved["isError"], false, "{solved}");
    let failed = task(&mut server, json!({"task": "?"}));
    assert_eq!(failed["isError"], true);
    task(&mut server, json!({"task": ""}));
    let mut ask = |question: Value| {
        let asked = json!({ "name": "lisp_debug", "arguments": question });
        server.request("tools/call", asked)["result"]["structuredContent"].clone()
    };
    let stats = ask(json!({"op": "stats"}));
    assert_eq!(stats["by_tool"]["lisp_task"]["calls"], 3);
    assert_eq!(
        stats["agentic"],
        json!({"tasks": 2, "planner_calls": 4, "planner_errors": 0, "planner_rejects": 3, "retries": 2})
    );
    assert_eq!(stats["upstream_calls"]["by_server"]["shop"]["ok"], 1);
    let planner = &stats["payload_reduction"]["agentic_planner"];
    assert_eq!(
        (&planner["tasks"], &planner["provider_reported_tasks"], &planner["total_prompt_tokens"]),
        (&json!(2), &json!(2), &json!(160))
    );
    assert_eq!(planner["total_completion_tokens"], 8);
    assert!(
        planner["total_prompt_bytes"].as_u64().unwrap() > 1_000 && planner["estimated_total_tokens"].is_u64()
    );
    let recent = ask(json!({"op": "recent"}));
    let [refused, failed, solved] = recent["calls"].as_array().unwrap().as_slice() else {
        panic!("{recent}")
    };
    assert_eq!((&refused["reason"], refused.get("agentic")), (&json!("args_error"), None));
    assert_eq!(
        (&failed["reason"], &failed["agentic"]["planner_rejects"]),
        (&json!("ptc_max_turns_exceeded"), &json!(2))
    );
    assert_eq!((&solved["agentic"]["planner_calls"], &solved["agentic"]["retries"]), (&json!(2), &json!(1)));
    assert_eq!(solved["agentic"]["model"], "some-model");
    assert_eq!(solved["ptc_metrics"]["server_side_llm"]["total_tokens"], 84);
    // The trace has each request and its reply.
    let mut traces: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    traces.sort();
    let text = std::fs::read_to_string(&traces[0]).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    let planned = ["ptc_lisp.agentic_planner.start", "ptc_lisp.agentic_planner.stop"];
    assert_eq!(
        names,
        [
            &["trace.start", "ptc_lisp.call.start", "ptc_lisp.agentic_task.start"][..],
            &planned,
            &["ptc_lisp.agentic_validation_reject"],
            &planned,
            &["ptc_lisp.upstream_call", "ptc_lisp.agentic_task.stop", "ptc_lisp.call.stop", "trace.stop"],
        ]
        .concat()
    );
    assert_eq!(events[7]["program"], NAME);
    let (asked, called) = (&events[7]["measurements"], &events[8]["measurements"]);
    let at = |event: &Value, key: &str| event[key].as_u64().unwrap();
    assert!(at(called, "offset") >= at(asked, "offset") + at(asked, "duration"), "{text}");
    let drawn = run(ptc(&["trace", "show", traces[0].to_str().unwrap()]), "");
    assert!(drawn.stdout.contains("shop/get_customer") && drawn.stdout.contains('█'), "{}", drawn.stdout);
}

#[test]
fn the_key_of_the_model_is_a_credential_and_shows_nowhere() {
    const KEY: &str = "sk-planted-0123456789abcdef";
    let (key_file, folder) = (tempfile::NamedTempFile::new().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(key_file.path(), KEY).unwrap();
    let mut file: Value = serde_json::from_str(&std::fs::read_to_string(shop().path()).unwrap()).unwrap();
    file["credentials"] = json!({"planner": {"source": "file", "path": key_file.path()}});
    let config = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    std::fs::write(config.path(), file.to_string()).unwrap();
    // A model that knows or guesses its key puts it into text, program and answer.
    let reply = format!("; I am {KEY}\n(println \"{KEY}\")\n(return {{:key \"{KEY}\" \"{KEY}\" 1}})");
    let echo = format!("(fail \"bad key {KEY}\")");
    let model = ModelServer::with_programs(&[&reply, &echo]);
    let traces = folder.path().to_str().unwrap();
    let flags = [
        ["--upstreams-config", config.path().to_str().unwrap()],
        ["--agentic", "--aggregator-read-only"],
        ["--agentic-model", "some-model"],
        ["--agentic-base-url", model.url()],
        ["--agentic-credential", "planner"],
        ["--debug-tool", "--sessions"],
        ["--trace-dir", traces],
        ["--trace-payloads", "full"],
    ];
    let mut server = Server::start(&flags.concat());
    let task_of = json!({"task": format!("Say {KEY}."), "context": {"k": KEY}});
    let mut seen: Vec<Value> = vec![task(&mut server, task_of.clone()), task(&mut server, task_of)];
    assert_eq!((&seen[0]["isError"], &seen[1]["isError"]), (&json!(false), &json!(true)), "{seen:?}");
    let mut ask = |question: Value| {
        let asked = json!({ "name": "lisp_debug", "arguments": question });
        server.request("tools/call", asked)["result"].clone()
    };
    let recent = ask(json!({"op": "recent"}));
    for call in recent["structuredContent"]["calls"].as_array().unwrap() {
        seen.push(ask(json!({"op": "get", "request_id": call["request_id"]})));
    }
    seen.push(recent);
    let ids: Vec<&Value> = seen[..2].iter().map(|told| &told["structuredContent"]["trace_id"]).collect();
    assert!(ids.iter().all(|id| id.as_str().is_some_and(|id| id.len() == 32)) && ids[0] != ids[1]);
    // A background thread writes traces; the server waits for it at exit.
    let ids: Vec<String> = ids.into_iter().map(|id| id.as_str().unwrap().to_owned()).collect();
    assert_eq!(server.end(), Some(0));
    let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let texts: Vec<String> = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    for id in &ids {
        assert_eq!(texts.iter().filter(|text| text.contains(id)).count(), 1, "each answer names its trace");
    }
    let all = format!("{} {}", Value::from(seen), texts.concat());
    assert!(!all.contains(KEY) && !all.contains("planted") && all.contains("[REDACTED]"), "{all}");
    let got = model.got.lock().unwrap();
    assert_eq!(got[0]["authorization"], format!("bearer {KEY}"));
    assert!(
        !got.iter().any(|body| body["messages"].to_string().contains("planted")),
        "nor is it prompted with it"
    );
}

#[test]
fn a_credential_that_is_not_there_ends_the_start() {
    let config = shop();
    let flags = ["--agentic", "--aggregator-read-only", "--agentic-credential", "planner"];
    let arguments: Vec<&str> = std::iter::once("serve").chain(config.flags(&flags)).collect();
    let finished = run(ptc(&arguments), "");
    assert_eq!(finished.code, Some(2));
    let want = "there is no credential \"planner\" in the configuration: there are none";
    assert!(finished.stderr.contains(want), "{}", finished.stderr);
}
