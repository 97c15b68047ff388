//! What a request to a service says: digits, media types, redirects, the members of its body; and which operations of a
//! document become tools although others are odd.

use super::*;

/// The service of these paths with all of them chosen, whether they write or not.
fn service(base_url: &str, paths: Value, writing: &[&str]) -> Service {
    let members = json!({ "include_operations": ["*"], "allow_operations_with_effects": writing });
    Service::new(base_url, &document(paths), members)
}

fn body(media: &str, schema: Value) -> Value {
    json!({ "requestBody": { "required": true, "content": { media: { "schema": schema } } } })
}

#[tokio::test]
async fn numbers_keep_their_digits() {
    let server = HttpServer::new(|got| Reply::json(&json!([got.path, got.body]))).await;
    let list = parameter("ids", "query", json!({ "explode": false, "schema": { "type": "array" } }));
    let number = parameter("n", "query", json!({ "schema": { "type": "integer" } }));
    let id = parameter("id", "path", json!({ "schema": { "type": "integer" } }));
    let json = json!({ "name": "j", "in": "query", "content": { "application/json": { "schema": {} } } });
    let paths = json!({ "/a/{id}": { "post": operation("send", json!({ "parameters": [id, number, list, json],
        "requestBody": { "content": { "application/json": { "schema": {} } } } })) } });
    let runtime = service(&server.url(""), paths, &["send"]).runtime().await;
    let call = "(tool/call! 'obs/send {:id 12345678901234567890123 :n -98765432109876543210 :ids [18446744073709551616 2.0]
        :j {:k 36893488147419103232} :body {:n [123456789012345678901234567890 1.5]}})";
    let told = value(&runtime, call).await;
    let path = "/a/12345678901234567890123?n=-98765432109876543210&ids=18446744073709551616,2&j=%7B%22k%22%3A36893488147419103232%7D";
    assert!(told.contains(path), "{told}");
    assert!(told.contains(r#"{\"n\":[123456789012345678901234567890,1.5]}"#), "{told}");
    runtime.shutdown().await;
}

#[tokio::test]
async fn requests_name_the_media_types_of_the_document() {
    let server =
        HttpServer::new(|got| Reply::json(&json!([got.header("content-type"), got.header("accept")]))).await;
    let answers = |media: &[&str]| {
        let content: serde_json::Map<String, Value> =
            media.iter().map(|media| ((*media).to_owned(), json!({}))).collect();
        json!({ "responses": { "200": { "content": content } } })
    };
    let with = |id: &str, media: &str, answered: &[&str]| {
        let mut operation = operation(id, body(media, json!({})));
        operation["responses"] = answers(answered)["responses"].clone();
        operation
    };
    let paths = json!({
        "/a": { "patch": with("patch", "application/merge-patch+json", &["application/json"]) },
        "/b": { "post": with("create", "application/vnd.api+json", &["text/csv", "application/vnd.api+json"]) },
        "/c": { "put": with("put", "*/*", &["*/*"]) } });
    let runtime = service(&server.url(""), paths, &["patch", "create", "put"]).runtime().await;
    for (tool, media, accept) in [
        ("patch", "application/merge-patch+json", "application/json"),
        ("create", "application/vnd.api+json", "application/vnd.api+json, application/json;q=0.9"),
        ("put", "application/json", "application/json"),
    ] {
        let told = value(&runtime, &format!("(tool/call! 'obs/{tool} {{:body {{}}}})")).await;
        assert_eq!(told, json!([media, accept]).to_string().replace(',', " ").replace("  ", ", "), "{tool}");
    }
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_body_need_not_have_what_the_service_sets() {
    let server = HttpServer::new(echo).await;
    let thing = json!({ "type": "object", "required": ["id", "name"], "properties": {
        "id": { "type": "integer", "readOnly": true }, "name": { "type": "string" } } });
    let paths = json!({ "/a": { "post": operation("create", body("application/json", thing)) } });
    let runtime = service(&server.url(""), paths, &["create"]).runtime().await;
    let told = value(&runtime, "(get-in (tool/call! 'obs/create {:body {:name \"x\"}}) [0 \"body\"])").await;
    assert_eq!(told, r#"{"name" "x"}"#);
    let failure = failure(&runtime, "(tool/call! 'obs/create {:body {:id 1}})").await.compact();
    assert!(failure.contains("name"), "{failure}");
    runtime.shutdown().await;
}

#[tokio::test]
async fn choices_with_the_same_members_are_all_shown() {
    let server = HttpServer::new(echo).await;
    let of = |member: &str| {
        json!({ "type": "object", "required": ["kind"], "properties": {
            "kind": { "type": "string" }, member: { "type": "string" } } })
    };
    let pet = json!({ "oneOf": [of("hunts"), of("pack")], "discriminator": { "propertyName": "kind" } });
    let plain = json!({ "oneOf": [of("hunts"), of("pack")] });
    let paths = json!({ "/a": { "post": operation("told", body("application/json", pet)) },
        "/b": { "post": operation("untold", body("application/json", plain)) } });
    let runtime = service(&server.url(""), paths, &["told", "untold"]).runtime().await;
    for tool in ["told", "untold"] {
        let outcome = run(&runtime, &format!("(println (doc 'obs/{tool}))")).await;
        let doc = outcome.prints.join("\n");
        assert!(doc.contains("hunts") && doc.contains("pack") && doc.contains(":kind string"), "{doc}");
        let call = format!("(:ok (tool/call 'obs/{tool} {{:body {{:kind \"dog\" :pack \"p\"}}}}))");
        assert_eq!(value(&runtime, &call).await, "true");
    }
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_redirect_does_nothing_twice() {
    let server = HttpServer::new(|got| match got.path.as_str() {
        "/moved" => Reply::new(301, &[("location", "/here")], ""),
        "/found" => Reply::new(302, &[("location", "/result")], ""),
        "/other" => Reply::new(303, &[("location", "/result")], ""),
        "/kept" => Reply::new(307, &[("location", "/here")], ""),
        _ => Reply::json(&json!([got.method, got.path, got.header("content-type"), got.body.len()])),
    })
    .await;
    let post = |id: &str| json!({ "post": operation(id, body("application/json", json!({}))) });
    let mut paths = json!({});
    for path in ["moved", "found", "other", "kept"] {
        paths[format!("/{path}")] = post(path);
    }
    paths["/other"]["delete"] = operation("drop", json!({}));
    let writing = ["moved", "found", "other", "kept", "drop"];
    let runtime = service(&server.url(""), paths, &writing).runtime().await;
    for (tool, arguments, told) in [
        ("found", "{:body {:x 1}}", r#"["GET" "/result" nil 0]"#),
        ("other", "{:body {:x 1}}", r#"["GET" "/result" nil 0]"#),
        ("drop", "{}", r#"["GET" "/result" nil 0]"#),
        // The address is another one, and nothing was done.
        ("moved", "{:body {:x 1}}", r#"["POST" "/here" "application/json" 7]"#),
        ("kept", "{:body {:x 1}}", r#"["POST" "/here" "application/json" 7]"#),
    ] {
        assert_eq!(value(&runtime, &format!("(tool/call! 'obs/{tool} {arguments})")).await, told, "{tool}");
    }
    runtime.shutdown().await;
}

#[tokio::test]
async fn operations_that_are_left_out_are_noted_and_an_odd_one_costs_only_itself() {
    let server = HttpServer::new(echo).await;
    let mut all = document(json!({
        "/good": { "get": operation("good", json!({ "tags": null, "parameters": null, "deprecated": null })), "put": null },
        "/header": { "get": operation("header", json!({ "parameters": [parameter("X-Trace", "header", json!({}))] })) },
        "/write": { "post": operation("write", json!({})) },
        "/number": 5,
        "/text": { "get": "x" } }));
    all["openapi"] = json!(3.0);
    let service = Service::new(&server.url(""), &all, json!({ "include_operations": ["*"] }));
    let runtime = service.runtime().await;
    assert_eq!(value(&runtime, "(:ok (tool/call 'obs/good {}))").await, "true");
    let notes = runtime.servers()[0].notes.join("\n");
    for part in [
        "include_operations leaves out operation header has unsupported header parameter X-Trace",
        "include_operations leaves out the operations of /number: ",
        "include_operations leaves out operation GET /text as it is written cannot be read",
        "include_operations leaves out 1 operations that may change something, unless allow_operations_with_effects names them: write",
    ] {
        assert!(notes.contains(part), "{part} in {notes}");
    }
    runtime.shutdown().await;
    // One that is named by its id is an error.
    let named = Service::new(&server.url(""), &all, json!({ "include_operations": ["GET /text"] }));
    let refusal = named.refusal().await;
    assert!(refusal.contains("operation GET /text as it is written cannot be read"), "{refusal}");
}

#[tokio::test]
async fn an_operation_is_called_at_its_own_server() {
    let server = HttpServer::new(|got| Reply::json(&json!(got.path))).await;
    let origin = server.url("");
    let scheme =
        json!({ "url": "{scheme}://other.example/v2", "variables": { "scheme": { "default": "https" } } });
    let paths = json!({
        "/a": { "get": operation("plain", json!({})) },
        "/b": { "get": operation("relative", json!({ "servers": [{ "url": "/v2/" }] })) },
        "/c": { "get": operation("whole", json!({ "servers": [{ "url": "https://x.example" },
            { "url": format!("{origin}{{base}}"), "variables": { "base": { "default": "/v3" } } }] })) },
        "/d": { "servers": [scheme], "get": operation("elsewhere", json!({})) } });
    let runtime = service(&server.url("/base"), paths, &[]).runtime().await;
    for (tool, path) in [("plain", "/base/a"), ("relative", "/v2/b"), ("whole", "/v3/c")] {
        assert_eq!(value(&runtime, &format!("(tool/call! 'obs/{tool} {{}})")).await, format!("{path:?}"));
    }
    let listed = value(&runtime, "(dir 'obs)").await;
    assert!(!listed.contains("elsewhere"), "{listed}");
    runtime.shutdown().await;
}

#[tokio::test]
async fn words_of_a_yaml_document_are_texts() {
    let server = HttpServer::new(echo).await;
    let folder = tempfile::tempdir().unwrap();
    let yaml = "openapi: 3.1\ninfo: {title: T, version: 1.0}\npaths:\n  /a:\n    get:\n      operationId: on\n      parameters:\n\
                \x20     - {name: country, in: query, schema: {type: string, enum: [NO, SE, off, 010]}}\n\
                \x20     responses: {200: {content: {application/json: {}}}}\n";
    std::fs::write(folder.path().join("schema.yaml"), yaml).unwrap();
    let schema = folder.path().join("schema.yaml");
    let members = json!({ "schema_file": schema, "include_operations": ["on"] });
    let runtime = Service::new(&server.url(""), &json!({}), members).runtime().await;
    for country in ["NO", "off", "010"] {
        let call = format!("(get-in (tool/call! 'obs/on {{:country {country:?}}}) [0 \"id\"])");
        assert_eq!(value(&runtime, &call).await, format!("\"/a?country={country}\""));
    }
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_secret_among_the_default_arguments_is_sent_and_not_shown() {
    let server = HttpServer::new(|got| Reply::json(&json!(got.path))).await;
    let key = parameter("api_key", "query", json!({ "required": true }));
    let paths = json!({ "/a": { "get": operation("list", json!({ "parameters": [key, parameter("q", "query", json!({}))] })) } });
    let members = json!({ "include_operations": ["list"], "operation_overrides": { "list": {
        "default_args": { "api_key": "k3y-of-the-service", "q": "all" } } } });
    let secrets = SecretRegistry::new();
    let service = Service::new(&server.url(""), &document(paths), members);
    let runtime = runtime_of(vec![service.entry(&secrets)], StartPolicy::All, 1).await;
    assert_eq!(value(&runtime, "(:ok (tool/call 'obs/list {}))").await, "true");
    assert_eq!(server.got()[0].path, "/a?api_key=k3y-of-the-service&q=all");
    let shown = run(&runtime, "(do (println (doc 'obs/list)) [(meta 'obs/list) (dir 'obs)])").await;
    let shown = format!("{}{}", shown.prints.join(""), shown.result.unwrap().text);
    assert!(!shown.contains("k3y") && !shown.contains("api_key") && shown.contains("all"), "{shown}");
    assert_eq!(secrets.scrub("k3y-of-the-service"), "[REDACTED]");
    let failure = failure(&runtime, "(tool/call 'obs/list {:api_key \"other\"})").await.compact();
    assert!(failure.contains("api_key"), "{failure}");
    runtime.shutdown().await;
}

#[tokio::test]
async fn all_operations_are_tools_though_each_refers_to_a_large_part_of_the_document() {
    const SCHEMAS: usize = 120;
    const OPERATIONS: usize = 80;
    let server = HttpServer::new(echo).await;
    let reference = |at: usize| json!({ "$ref": format!("#/components/schemas/S{}", at % SCHEMAS) });
    let schema = |at: usize| {
        let mut properties: serde_json::Map<String, Value> = (0..12)
            .map(|n| (format!("p{n}"), json!({ "type": "string", "description": "d".repeat(30) })))
            .collect();
        properties.insert("next".to_owned(), reference(at + 1));
        properties.insert("other".to_owned(), reference(at * 7 + 3));
        json!({ "type": "object", "properties": properties })
    };
    let one = |at: usize| {
        let parameter = parameter("state", "query", json!({ "schema": { "enum": ["open", "closed"] } }));
        let mut operation = operation(&format!("op{at}"), json!({ "parameters": [parameter] }));
        operation["responses"]["200"]["content"]["application/json"]["schema"] = reference(0);
        (format!("/p{at}"), json!({ "get": operation }))
    };
    let mut all = document(Value::Object((0..OPERATIONS).map(one).collect()));
    for at in 0..SCHEMAS {
        all["components"]["schemas"][format!("S{at}")] = schema(at);
    }
    let service = Service::new(&server.url(""), &all, json!({ "include_operations": ["*"] }));
    let runtime = service.runtime().await;
    let tools = runtime.servers()[0].tools.clone();
    assert_eq!(tools.len(), OPERATIONS);
    assert!(tools.iter().all(|tool| tool.input_schema.to_string().contains("closed")));
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_constraint_that_is_not_understood_refuses_nothing() {
    let server = HttpServer::new(echo).await;
    let schema = json!({ "type": "object", "not": { "propertyNames": { "maxLength": 1 } } });
    let paths = json!({ "/a": { "post": operation("create", body("application/json", schema)) } });
    let runtime = service(&server.url(""), paths, &["create"]).runtime().await;
    let outcome =
        run(&runtime, "(do (println (doc 'obs/create)) (:ok (tool/call 'obs/create {:body {:ab 1}})))").await;
    assert!(!outcome.prints.join("").contains("nothing"), "{:?}", outcome.prints);
    assert_eq!(outcome.result.unwrap().text, "true");
    runtime.shutdown().await;
}

#[tokio::test]
async fn members_that_the_service_sets_are_found_behind_references() {
    let server = HttpServer::new(echo).await;
    let own = json!({ "type": "integer", "readOnly": true });
    let mut document = document(json!({
        "/a": { "post": operation("referred", body("application/json", json!({ "type": "object", "required": ["id", "name"],
            "properties": { "id": { "$ref": "#/components/schemas/Id" }, "name": { "type": "string" } } }))) },
        "/b": { "post": operation("combined", body("application/json", json!({ "type": "object", "required": ["id", "name"],
            "properties": { "id": { "allOf": [{ "$ref": "#/components/schemas/Id" }] }, "name": { "type": "string" } } }))) },
        "/c": { "post": operation("beside", body("application/json", json!({ "required": ["id", "name"],
            "properties": { "name": { "type": "string" } },
            "allOf": [{ "$ref": "#/components/schemas/Base" }, { "oneOf": [{ "type": "object" }] }] }))) } }));
    document["components"]["schemas"]["Id"] = own;
    document["components"]["schemas"]["Base"] = json!({ "type": "object", "required": ["id"], "properties": { "id": { "$ref": "#/components/schemas/Id" } } });
    let writing = ["referred", "combined", "beside"];
    let members = json!({ "include_operations": writing, "allow_operations_with_effects": writing });
    let runtime = Service::new(&server.url(""), &document, members).runtime().await;
    for name in writing {
        let call = format!("(get-in (tool/call! 'obs/{name} {{:body {{:name \"x\"}}}}) [0 \"body\"])");
        assert_eq!(value(&runtime, &call).await, r#"{"name" "x"}"#, "{name}");
        let call = format!("(tool/call! 'obs/{name} {{:body {{:id 1}}}})");
        let failure = failure(&runtime, &call).await.compact();
        assert!(failure.contains("name"), "{name}: {failure}");
    }
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_value_stays_where_its_parameter_is() {
    let server = HttpServer::new(echo).await;
    let id = parameter("id", "path", json!({ "allowReserved": true }));
    let list = |name: &str, style: &str| {
        parameter(name, "query", json!({ "style": style, "explode": false, "schema": { "type": "array" } }))
    };
    let parameters = json!([
        id,
        list("bars", "pipeDelimited"),
        list("blanks", "spaceDelimited"),
        parameter("free", "query", json!({ "allowReserved": true }))
    ]);
    let paths = json!({ "/items/{id}": { "get": operation("item", json!({ "parameters": parameters })) } });
    let runtime = service(&server.url(""), paths, &[]).runtime().await;
    let path = |arguments: &str| format!("(get-in (tool/call! 'obs/item {{:id \"{arguments}}}) [0 \"id\"])");
    assert_eq!(value(&runtime, &path("1/x;y\" :free \"a/b\"")).await, r#""/items/1%2Fx%3By?free=a/b""#);
    assert_eq!(
        value(&runtime, &path("1\" :bars [\"x y\" \"z\"] :blanks [\"a|b\" \"c\"]")).await,
        r#""/items/1?bars=x%20y%7Cz&blanks=a%7Cb%20c""#
    );
    for (arguments, told) in
        [(":bars [\"x|y\" \"z\"]", "bars has a bar"), (":blanks [\"a b\" \"c\"]", "blanks has a blank")]
    {
        let answer =
            value(&runtime, &format!("(:message (tool/call 'obs/item {{:id \"1\" {arguments}}}))")).await;
        assert!(answer.contains(told), "{answer}");
    }
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_request_without_a_body_says_so() {
    let server = HttpServer::new(|got| match got.path.as_str() {
        "/moved" => Reply::new(303, &[("location", "/result")], ""),
        _ => Reply::json(&json!([got.method, got.header("content-length")])),
    })
    .await;
    let paths = json!({ "/a": { "post": operation("post", json!({})), "put": operation("put", json!({})),
            "get": operation("get", json!({})), "delete": operation("delete", json!({})) },
        "/moved": { "post": operation("moved", json!({})) } });
    let runtime = service(&server.url(""), paths, &["post", "put", "delete", "moved"]).runtime().await;
    for (name, told) in [
        ("post", r#"["POST" "0"]"#),
        ("put", r#"["PUT" "0"]"#),
        ("get", r#"["GET" nil]"#),
        ("delete", r#"["DELETE" nil]"#),
        ("moved", r#"["GET" nil]"#),
    ] {
        assert_eq!(value(&runtime, &format!("(tool/call! 'obs/{name} {{}})")).await, told, "{name}");
    }
    runtime.shutdown().await;
}

#[tokio::test]
async fn servers_of_an_operation_are_read_or_refused() {
    let server = HttpServer::new(echo).await;
    let at = |servers: Value| json!({ "/b": { "get": operation("get", json!({ "servers": servers })) } });
    let versioned = json!([{ "url": "/{version}", "variables": { "version": { "default": 8443 } } }]);
    let runtime = service(&server.url(""), at(versioned), &[]).runtime().await;
    assert_eq!(value(&runtime, "(get-in (tool/call! 'obs/get {}) [0 \"id\"])").await, r#""/8443/b""#);
    runtime.shutdown().await;
    for servers in [
        json!([{ "address": "/v2" }]),
        json!([{ "url": "/{version}", "variables": { "version": { "enum": ["1"] } } }]),
        json!([{ "url": "/{version}", "variables": { "version": { "default": ["1"] } } }]),
        json!({ "url": "/v2" }),
    ] {
        let members = json!({ "include_operations": ["get"] });
        let refusal = Service::new(&server.url(""), &document(at(servers.clone())), members).refusal().await;
        assert!(refusal.contains("operation get has servers that cannot be read"), "{servers}: {refusal}");
    }
    assert_eq!(server.got().len(), 1);
}
