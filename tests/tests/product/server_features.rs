//! Server features other than tools: resources, prompts, and server information.

use ptc_tests::binary::{eval, value};
use ptc_tests::remote::RemoteProcess;
use ptc_tests::serve::Server;
use ptc_tests::third_party::everything;
use ptc_tests::upstreams::{Upstreams, probe_server, table_server};
use serde_json::{Value, json};

/// A server with tools and nothing else.
fn bare() -> Value {
    table_server("tests/first_try/data.json", "files")
}

#[test]
fn resources_and_prompts_come_as_results_of_calls() {
    let config = Upstreams::probe().add("bare", bare()).write();
    let program = r#"
        [(resource/list {:server "probe"})
         (resource/templates {:server "probe"})
         (resource/read {:server "probe" :uri "memo://notes"})
         (resource/read {:server "probe" :uri "memo://numbers/7"})
         (resource/read {:server "probe" :uri "memo://dot"})
         (resource/read {:server "probe" :uri "memo://absent"})
         (prompt/list {:server "probe"})
         (prompt/get {:server "probe" :name "greet" :args {:who "Ada"}})
         (prompt/get {:server "probe" :name "greet" :args {:who 7 :nobody nil}})
         (resource/list {:server "bare"})
         (prompt/get {:server "bare" :name "greet"})]"#;
    let report = eval(program, &config.flags(&[]));
    let greeting = |who: &str| {
        json!({ "ok": true, "value_kind": "json", "value": { "description": "A greeting", "messages": [
            { "role": "user", "content": { "type": "text", "text": format!("Greet {who}.") } } ] } })
    };
    let dot = json!([{ "uri": "memo://dot", "mimeType": "image/png", "blob": "iVBORw0KGgo=" }]);
    let want = json!([
        { "ok": true, "value_kind": "json", "value": [
            { "uri": "memo://notes", "name": "notes", "mimeType": "text/plain" },
            { "uri": "memo://dot", "name": "dot", "mimeType": "image/png" } ] },
        { "ok": true, "value_kind": "json", "value": [{ "uriTemplate": "memo://numbers/{n}", "name": "numbers" }] },
        { "ok": true, "value_kind": "text", "value": "Buy milk." },
        { "ok": true, "value_kind": "json", "value": { "n": 7 } },
        { "ok": true, "value_kind": "none", "value": null, "content": dot },
        { "ok": false, "reason": "upstream_error", "message": "Resource not found" },
        { "ok": true, "value_kind": "json", "value": [
            { "name": "greet", "arguments": [{ "name": "who", "required": true }] } ] },
        greeting("Ada"),
        greeting("7"),
        { "ok": true, "value_kind": "json", "value": [] },
        { "ok": false, "reason": "upstream_error", "message": "unknown method" },
    ]);
    for (at, (got, want)) in
        report["json"].as_array().into_iter().flatten().zip(want.as_array().unwrap()).enumerate()
    {
        assert_eq!(got, want, "{at}");
    }
    assert_eq!(report["json"], want, "{report:#}");
    let calls = report["upstream_calls"].as_array().expect("the ledger");
    let labels: Vec<_> = calls.iter().map(|call| call["tool"].as_str().unwrap()).collect();
    assert_eq!(
        labels[..7],
        [
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "resources/read",
            "resources/read",
            "resources/read",
            "prompts/list"
        ]
    );
}

#[test]
fn a_form_that_is_wrong_says_what_is() {
    let config = Upstreams::probe().write();
    for (program, said) in [
        (
            "(resource/read {:server \"probe\"})",
            "resource/read on upstream 'probe' requires :uri (string), got nil",
        ),
        (
            "(resource/list {})",
            "resource/list requires :server (string), got nil. Configured upstreams: probe",
        ),
        ("(resource/list {:server \"prob\"})", "no upstream 'prob' configured"),
        ("(resource/list \"probe\")", "resource/list requires a map, got \"probe\""),
        ("(prompt/get {:server \"probe\" :name \"greet\" :arg {}})", "Did you mean :args?"),
        ("(prompt/get {:server \"probe\" :name \"greet\" :args 7})", ":args must be a map, got 7"),
        ("(resource/get {:server \"probe\"})", "Available: resource/list, resource/read, resource/templates"),
    ] {
        let report = eval(program, &config.flags(&[]));
        assert_eq!(report["ok"], false, "{program}");
        assert!(report.to_string().contains(&said.replace('"', "\\\"")), "{program}: {report:#}");
    }
}

#[test]
fn budgets_and_caps_hold_for_them() {
    let config = Upstreams::probe().write();
    let program =
        "(map (fn [_] (:reason (resource/read {:server \"probe\" :uri \"memo://notes\"}))) (range 4))";
    assert_eq!(
        value(program, &config.flags(&["--max-upstream-calls", "2"])),
        "[nil nil :cap_exhausted :cap_exhausted]"
    );
    let program = "(map :reason [(resource/list {:server \"probe\"}) (resource/read {:server \"probe\" :uri \"memo://notes\"})])";
    assert_eq!(
        value(program, &config.flags(&["--max-upstream-response-bytes", "100"])),
        "[:response_too_large :response_too_large]"
    );
}

#[test]
fn lists_of_the_configuration_name_them_by_their_methods() {
    let shut = |tools: Value| {
        let mut entry = probe_server(&[]);
        entry["tools"] = tools;
        let config = Upstreams::default().add("probe", entry).write();
        eval("(:ok (resource/read {:server \"probe\" :uri \"memo://notes\"}))", &config.flags(&[]))
    };
    for tools in [json!({ "allow": ["echo"] }), json!({ "block": ["resources/*"] })] {
        let report = shut(tools);
        assert!(
            report.to_string().contains("upstream 'probe' may not be sent resources/read: "),
            "{report:#}"
        );
    }
    for tools in [json!({ "allow": ["echo", "resources/read"] }), json!({ "block": ["prompts/*"] })] {
        assert_eq!(shut(tools)["value"], "true");
    }
}

#[test]
fn discovery_shows_resources_and_prompts_where_they_exist() {
    let config = Upstreams::probe().add("bare", bare()).write();
    let flags = config.flags(&[]);
    let program = "[(apropos \"dot\" {:load true}) (apropos \"prompt greet\" {:load true :limit 1})
                    (count (dir 'probe)) (doc 'bare) (count (dir 'bare))]";
    let report = eval(program, &flags);
    let [notes, greet, _, bare, _] = report["json"].as_array().expect("a list").as_slice() else {
        panic!("{report:#}")
    };
    assert_eq!(notes, &json!(["(resource/read {:server \"probe\" :uri \"memo://dot\"}) - dot"]));
    assert_eq!(greet, &json!(["(prompt/get {:server \"probe\" :name \"greet\" :args {:who string}})"]));
    let said = report["notes"].to_string();
    assert!(
        said.contains("dir: probe also has 2 resources: memo://notes, memo://dot; 1 resource template: ")
            && !said.contains("dir: bare also has"),
        "{said}"
    );
    assert!(!bare.as_str().expect("a text").contains("Also"), "{bare}");
    // The line of the server.
    let mut server = Server::start(&flags);
    server.run("(map (fn [s] (count (dir (:name s)))) (tool/servers))");
    let tools = server.request("tools/list", json!({})).to_string();
    assert!(tools.contains("6 tools, 2 resources, 1 resource template, 1 prompt."), "{tools}");
    // What may not be requested is not there.
    let mut entry = probe_server(&[]);
    entry["tools"] = json!({ "block": ["resources/*"] });
    let config = Upstreams::default().add("probe", entry).write();
    let doc = eval("(doc 'probe)", &config.flags(&[]))["json"].to_string();
    assert!(doc.contains("Also 1 prompt") && !doc.contains("resource"), "{doc}");
}

#[test]
fn a_server_cannot_state_what_ptc_states_about_its_own_tools() {
    let config = Upstreams::probe().write();
    let program =
        "[(get (meta 'probe/echo) \"kind\") (get (meta 'probe/echo) \"_ptc\") (tool/call! 'probe/echo {})]";
    assert_eq!(eval(program, &config.flags(&[]))["json"], json!(["mcp-tool", null, null]));
}

#[test]
fn what_a_server_says_about_itself_is_shown() {
    let config = Upstreams::probe().write();
    let report =
        eval("[(doc 'probe) (:description (first (tool/servers))) (count (dir 'probe))]", &config.flags(&[]));
    let [doc, line, tools] = report["json"].as_array().expect("a list").as_slice() else {
        panic!("{report:#}")
    };
    assert_eq!(
        doc,
        "probe\nInstructions: Ask it for\n  echoes.\nTools: 6, listed by (dir \"probe\")\n\
         Also 2 resources: (resource/list {:server \"probe\"}), \
         (resource/read {:server \"probe\" :uri \"memo://notes\"})\n  memo://notes - notes\n  memo://dot - dot\n\
         Also 1 resource template: (resource/templates {:server \"probe\"}), \
         (resource/read {:server \"probe\" :uri \"memo://numbers/{n}\"})\n  memo://numbers/{n} - numbers\n\
         Also 1 prompt: (prompt/list {:server \"probe\"}), \
         (prompt/get {:server \"probe\" :name \"greet\" :args {:who string}})\n  greet {:who string}"
    );
    assert_eq!((line, tools), (&json!("Ask it for echoes."), &json!(6)));
    assert!(report["notes"].to_string().contains("dir: probe says: Ask it for echoes."), "{report:#}");
    let mut server = Server::start(&config.flags(&[]));
    let tools = server.request("tools/list", json!({}));
    let description = tools["result"]["tools"][0]["description"].as_str().expect("a description");
    assert!(description.contains("- probe: Ask it for echoes. 6 tools"), "{description}");
    assert_eq!(server.end(), Some(0));
}

/// The same for a third-party server, over each transport.
#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn resources_and_prompts_of_a_server_that_we_did_not_write() {
    let (streamable, sse) = (RemoteProcess::everything("streamableHttp"), RemoteProcess::everything("sse"));
    let entries = [everything(), streamable.entry("mcp_http", "/mcp"), sse.entry("sse", "/sse")];
    let program = r#"
        (let [resources (:value (resource/list {:server "everything"}))
              prompts (:value (prompt/list {:server "everything"}))]
          {:resources (count resources)
           :first (:mimeType (first (sort-by :name resources)))
           :templates (count (:value (resource/templates {:server "everything"})))
           :text (re-find #"Resource 3: This is a plaintext resource"
                   (:value (resource/read {:server "everything" :uri "demo://resource/dynamic/text/3"})))
           :blob (:mimeType (first (:content (resource/read {:server "everything" :uri "demo://resource/dynamic/blob/3"}))))
           :absent (:reason (resource/read {:server "everything" :uri "demo://absent"}))
           :prompts (set (map :name prompts))
           :weather (-> (prompt/get {:server "everything" :name "args-prompt" :args {:city "Oslo"}})
                        :value :messages first :content :text)
           :missing (:reason (prompt/get {:server "everything" :name "args-prompt" :args {}}))
           :says (some? (str/index-of (doc 'everything) "Instructions:"))})"#;
    let answers = entries.map(|entry| {
        let config = Upstreams::default().add("everything", entry).write();
        eval(program, &config.flags(&[]))["json"].take()
    });
    println!("{:#}", answers[0]);
    let [first, rest @ ..] = &answers;
    assert!(first["resources"].as_u64() > Some(0) && first["templates"].as_u64() > Some(0), "{first:#}");
    assert_eq!(first["text"], "Resource 3: This is a plaintext resource");
    assert_eq!(first["blob"], "text/plain");
    assert_eq!((&first["absent"], &first["missing"]), (&json!("upstream_error"), &json!("upstream_error")));
    assert!(first["weather"].as_str().is_some_and(|text| text.contains("Oslo")), "{first:#}");
    assert_eq!(first["says"], true);
    assert!(rest.iter().all(|other| other == first), "{answers:#?}");
}
