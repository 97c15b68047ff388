//! Upstream requests over stdio: forwarded only to a client that declared the feature, and declared upstream only
//! then.

use ptc_tests::binary::ptc;
use ptc_tests::remote::RemoteProcess;
use ptc_tests::serve::{Server, text_of};
use ptc_tests::third_party::everything;
use ptc_tests::upstreams::{ConfigFile, Upstreams, probe_server};
use serde_json::{Value, json};

fn serve(config: &ConfigFile, capabilities: Value) -> Server {
    let flags = config.flags(&[
        "--timeout",
        "120s",
        "--upstream-call-timeout",
        "120s",
        "--catalog-snapshot-mode",
        "live",
    ]);
    Server::offering(ptc(&[&["serve"][..], &flags].concat()), capabilities)
}

/// The next request of the server; notifications are left out.
fn next_request(server: &mut Server) -> Value {
    loop {
        let message = server.receive();
        if message.get("id").is_some() {
            return message;
        }
    }
}

fn answer(server: &mut Server, request: &Value, answer: Value) {
    let mut message = json!({ "jsonrpc": "2.0", "id": request["id"] });
    message.as_object_mut().expect("an object").extend(answer.as_object().expect("an object").clone());
    server.send(&message);
}

const FORM: &str = r#"(tool/call 'probe/ask {:message "Delete it?"
    :requestedSchema {:type "object" :properties {:sure {:type "boolean"}}} :secret 1})"#;

#[test]
fn a_form_reaches_the_client_and_its_answer_the_server() {
    let config = Upstreams::probe().write();
    let mut server = serve(&config, json!({ "elicitation": {} }));
    for (said, want) in [
        (
            json!({ "result": { "action": "accept", "content": { "sure": true } } }),
            r#"[{"action" "accept" "content" {"sure" true}} nil]"#,
        ),
        (json!({ "result": { "action": "decline" } }), r#"[{"action" "decline"} nil]"#),
        (json!({ "error": { "code": -1, "message": "no person is here" } }), r#"[nil "no person is here"]"#),
    ] {
        let id = server.begin_program(&format!("(:value {FORM})"));
        let request = next_request(&mut server);
        assert_eq!(request["method"], "elicitation/create", "{request}");
        let form = json!({ "message": "probe: Delete it?",
            "requestedSchema": { "type": "object", "properties": { "sure": { "type": "boolean" } } } });
        assert_eq!(request["params"], form);
        answer(&mut server, &request, said);
        let result = next_request(&mut server);
        assert_eq!((&result["id"], text_of(&result["result"]).as_str()), (&id.into(), want));
    }
    assert_eq!(server.end(), Some(0));
}

#[test]
fn roots_reach_the_server() {
    let config = Upstreams::probe().write();
    let mut server = serve(&config, json!({ "roots": { "listChanged": true } }));
    server.begin_program("[(:value (tool/call 'probe/roots {})) (count (dir 'probe))]");
    let request = next_request(&mut server);
    assert_eq!(request["method"], "roots/list", "{request}");
    answer(
        &mut server,
        &request,
        json!({ "result": { "roots": [{ "uri": "file:///work", "name": "work" }] } }),
    );
    let result = next_request(&mut server);
    assert!(
        text_of(&result["result"])
            .starts_with(r#"[[{"roots" [{"name" "work" "uri" "file:///work"}]} nil] 7]"#),
        "{result}"
    );
    assert_eq!(server.end(), Some(0));
}

#[test]
fn what_a_client_does_not_offer_is_not_declared() {
    let config = Upstreams::probe().write();
    for capabilities in [json!({}), json!({ "elicitation": { "url": {} } }), json!({ "sampling": {} })] {
        let mut server = serve(&config, capabilities);
        assert_eq!(server.text("(count (:value (tool/call 'probe/echo {:v [1]})))"), "1");
        assert!(server.text("(count (dir 'probe))").starts_with('6'));
        assert_eq!(server.end(), Some(0));
    }
}

#[test]
fn a_question_ends_with_the_call_that_asked_it() {
    let config = Upstreams::probe().write();
    let mut server = serve(&config, json!({ "elicitation": { "form": {} } }));
    let id = server.begin_program(FORM);
    let request = next_request(&mut server);
    server.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
    );
    let withdrawn = loop {
        let message = server.receive();
        if message["method"] == "notifications/cancelled" {
            break message;
        }
    };
    assert_eq!(withdrawn["params"]["requestId"], request["id"]);
    // A response after the deadline is ignored.
    answer(&mut server, &request, json!({ "result": { "action": "accept" } }));
    assert_eq!(server.text("(+ 1 2)"), "3");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn questions_of_ended_calls_are_withdrawn_from_the_client_and_make_room() {
    let server = probe_server(&["--keeps-requests"]);
    let config = Upstreams::default().add("probe", server).write();
    let mut server = serve(&config, json!({ "elicitation": {} }));
    // More than may wait at a time.
    for _ in 0..20 {
        let id = server.begin_program(FORM);
        let request = next_request(&mut server);
        assert_eq!(request["method"], "elicitation/create", "{request}");
        let params = json!({ "requestId": id });
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
        let withdrawn = loop {
            let message = server.receive();
            if message["method"] == "notifications/cancelled" {
                break message;
            }
        };
        assert_eq!(withdrawn["params"]["requestId"], request["id"]);
    }
    assert_eq!(server.end(), Some(0));
}

/// A third-party server elicits from the client, over each transport.
#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn a_server_that_we_did_not_write_asks_the_client() {
    let (streamable, sse) = (RemoteProcess::everything("streamableHttp"), RemoteProcess::everything("sse"));
    for entry in [everything(), streamable.entry("mcp_http", "/mcp"), sse.entry("sse", "/sse")] {
        let config = Upstreams::default().add("everything", entry).write();
        let mut server = serve(&config, json!({ "elicitation": {}, "roots": {} }));
        // The server adds its tools that ask some time after the handshake, and requests roots by itself.
        let mut asked = Vec::new();
        let mut run = |server: &mut Server, program: &str| {
            let id = server.begin_program(program);
            loop {
                let message = next_request(server);
                match message["method"].as_str() {
                    Some("roots/list") => {
                        asked.push("roots");
                        answer(
                            server,
                            &message,
                            json!({ "result": { "roots": [{ "uri": "file:///work", "name": "work" }] } }),
                        );
                    }
                    Some("elicitation/create") => {
                        asked.push("form");
                        let text = message["params"]["message"].as_str().unwrap();
                        assert!(text.starts_with("everything: Please provide inputs"), "{message}");
                        answer(
                            server,
                            &message,
                            json!({ "result": { "action": "accept", "content": { "name": "Ada" } } }),
                        );
                    }
                    _ if message["id"] == id => return text_of(&message["result"]),
                    _ => panic!("{message}"),
                }
            }
        };
        let listed = "(count (filter #(re-find #\"trigger-elicitation-request|get-roots-list\" %) (dir 'everything {:limit 200})))";
        while run(&mut server, listed).starts_with('0') {}
        let text =
            run(&mut server, "(map :text (:content (tool/call 'everything/trigger-elicitation-request {})))");
        assert!(text.contains("- Name: Ada"), "{text}");
        let text = run(&mut server, "(:value (tool/call 'everything/get-roots-list {}))");
        assert!(text.contains("file:///work"), "{text}");
        assert!(asked.contains(&"roots") && asked.contains(&"form"), "{asked:?}");
        assert_eq!(server.end(), Some(0));
    }
}
