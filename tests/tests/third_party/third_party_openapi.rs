//! Third-party OpenAPI documents and services: documents from npm packages, and a FastAPI service with its generated
//! document.

use ptc_tests::binary::{eval, run_ptc, value};
use ptc_tests::remote::RemoteProcess;
use ptc_tests::third_party::{JsonService, document, everything};
use ptc_tests::upstreams::Upstreams;
use serde_json::{Value, json};

/// An entry for some operations of a packaged document, for a service that does not exist.
fn described(file: &str, operations: &[&str]) -> Value {
    json!({ "transport": "openapi", "base_url": "https://service.invalid", "schema_file": document(file),
        "include_operations": operations, "handshake_timeout_ms": 120_000 })
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn operations_of_real_documents_become_tools() {
    let config = Upstreams::default()
        .add("galaxy", described("@scalar/galaxy/dist/latest.json", &["getAllData", "getPlanet", "getMe"]))
        .add(
            "trains",
            described(
                "@readme/oas-examples/3.1/yaml/train-travel.yaml",
                &["get-stations", "get-trips", "get-bookings", "get-booking"],
            ),
        )
        .add(
            "pets",
            described(
                "@readme/oas-examples/3.0/json/petstore.json",
                &["findPetsByStatus", "getPetById", "getInventory", "getOrderById"],
            ),
        )
        // YAML of half a megabyte, without operationIds.
        .add(
            "chain",
            described(
                "@blockfrost/openapi/openapi.yaml",
                &[
                    "GET /blocks/latest",
                    "GET /blocks/{hash_or_number}",
                    "GET /accounts/{stake_address}/rewards",
                ],
            ),
        )
        .write();
    let finished = run_ptc(&[&["doctor"][..], &config.flags(&[])].concat(), "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let cases = [
        ("galaxy/get-planet", "{:planetId integer}", ":name string"),
        ("trains/get-trips", ":origin string", ":data"),
        ("trains/get-booking", "{:bookingId string<uuid>}", "Result<"),
        ("pets/find-pets-by-status", "{:status", "[{:name string"),
        ("chain/get-blocks-hash-or-number", "{:hash_or_number string…}", ":height integer"),
        ("chain/get-accounts-stake-address-rewards", ":count integer<1..100>? = 100", ":epoch integer"),
    ];
    for (tool, arguments, result) in cases {
        let report = eval(&format!("(doc '{tool})"), &config.flags(&[]));
        let text = report.to_string();
        assert!(text.contains(arguments) && text.contains(result), "{tool}: {report:#}");
    }
    // Arguments that the schema rules out are refused before any request.
    let report = eval("(tool/call 'galaxy/get-planet {:planetId \"earth\"})", &config.flags(&[]));
    assert!(report["ok"] == false && report.to_string().contains("planetId must be integer"), "{report:#}");
    // The service does not exist.
    let fault = value("(:reason (tool/call 'pets/get-inventory {}))", &config.flags(&[]));
    assert_eq!(fault, ":upstream_unavailable");
}

/// The service behind `items`, and an MCP server over stdio.
fn mixed(service: &JsonService, token: &str) -> Upstreams {
    let entry = json!({ "transport": "openapi", "base_url": service.url(""), "schema_url": service.url("/openapi.json"),
        "allow_insecure_http": true, "allow_insecure_auth": true, "handshake_timeout_ms": 120_000,
        "include_operations": ["list_items_items_get", "read_item_items__item_id__get", "nothing_nothing_get"],
        "allow_operations_with_effects": ["add_item_items_post"],
        "operation_overrides": {
            "list_items_items_get": { "name": "list_items", "default_args": { "limit": 3 } },
            "read_item_items__item_id__get": { "name": "readItem" },
        },
        "auth": [{ "scheme": "bearer", "binding": "items" }] });
    Upstreams::default()
        .credential("items", json!({ "source": "literal", "value": token }))
        .add("items", entry)
        .add("everything", everything())
}

/// Rows of a JSON service, each passed to a server over another transport.
#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn one_program_joins_all_four_transports() {
    let service = JsonService::start("t0ken-of-items");
    let (remote, old) = (RemoteProcess::everything("streamableHttp"), RemoteProcess::everything("sse"));
    let config = mixed(&service, "t0ken-of-items")
        .add("remote", remote.entry("mcp_http", "/mcp"))
        .add("old", old.entry("sse", "/sse"))
        .write();
    let program = r#"
        (pmap (fn [row server]
                (:value (tool/call {:server server :tool "echo" :args {:message (str server " " (:id row) " " (:kind row))}})))
          (:value (tool/call 'items/list-items {:limit 3})) ["everything" "remote" "old"])"#;
    assert_eq!(
        value(program, &config.flags(&[])),
        "[\"Echo: everything 1 tool\" \"Echo: remote 2 part\" \"Echo: old 3 tool\"]"
    );
}

#[test]
#[cfg_attr(not(third_party), ignore = "PTC_SKIP_THIRD_PARTY=1")]
fn a_service_is_called_by_the_document_that_it_generates() {
    let service = JsonService::start("t0ken-of-items");
    let config = mixed(&service, "t0ken-of-items").write();
    let flags = config.flags(&[]);
    let cases = [
        ("(map :id (:value (tool/call 'items/list-items {})))", "[1 2 3]"),
        ("(map :id (:value (tool/call 'items/list-items {:kind \"part\" :limit 100})))", "[2 4 6 8 10]"),
        ("(map :id (:value (tool/call 'items/list-items {:tag [\"odd\"] :limit 2})))", "[1 3]"),
        ("(get-in (tool/call 'items/read-item {:item_id 4}) [:value :kind])", "\"part\""),
        ("(select-keys (tool/call 'items/read-item {:item_id 77}) [:reason :message])", "{:message \"http 404 Not Found: no item 77\" :reason :tool_error}"),
        ("(:value_kind (tool/call 'items/nothing-nothing-get {}))", ":none"),
        ("(get-in (tool/call 'items/add-item-items-post {:body {:id 40 :kind \"tool\" :parts [{:id 41 :kind \"part\"}]}}) [:value :parts 0 :id])", "41"),
        // One program, one join: rows of the service, texts of the MCP server.
        (
            "(pmap (fn [row] (:value (tool/call 'everything/echo {:message (str (:id row) \" \" (:kind row))})))
               (:value (tool/call 'items/list-items {:limit 2})))",
            "[\"Echo: 1 tool\" \"Echo: 2 part\"]",
        ),
    ];
    for (program, wanted) in cases {
        assert_eq!(value(program, &flags), wanted, "{program}");
    }
    let wrong = eval("(tool/call 'items/list-items {:kind \"tol\"})", &flags);
    assert!(wrong["ok"] == false && wrong.to_string().contains("must be enum<string>"), "{wrong:#}");
    // A client without the right token learns what the service wants.
    let config = mixed(&service, "another-token").write();
    let finished = run_ptc(&[&["doctor"][..], &config.flags(&[])].concat(), "");
    assert!(finished.stdout.contains("http 401") && finished.stdout.contains("Bearer"), "{finished:?}");
    assert!(!finished.stdout.contains("another-token"));
}
