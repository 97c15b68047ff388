//! Kinds of logins: scopes and more of them, another device, the client itself, clients that are configured or described
//! by a document, hosts' blocks.

use super::{User, assert_echoed};
use ptc_tests::oauth::{Habits, OAuthServer, Reply};
use serde_json::{Value, json};

const ADMIN: &str =
    "(let [r (tool/call {:server \"hosted\" :tool \"admin\" :args {}})] [(:ok r) (:reason r)])";

#[test]
fn a_call_that_needs_more_scopes_gets_them_with_the_next_login() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    assert!(user.login(&[]).stdout.contains("scopes read\n"));
    let program = "(:message (tool/call {:server \"hosted\" :tool \"admin\" :args {}}))";
    let report = user.eval(program);
    assert!(report["value"].as_str().unwrap().contains("it needs the scopes admin"), "{report:#}");
    assert_eq!(user.eval(ADMIN)["value"], "[false :login_required]");
    // Other tools work meanwhile.
    assert_echoed(&user.echo());
    assert!(user.run(&["auth"]).stdout.contains("needs the scopes admin"));
    assert!(user.login(&[]).stdout.contains("scopes read admin"));
    assert_eq!(user.eval(ADMIN)["value"], "[true nil]");
}

#[test]
fn a_server_that_asks_again_for_what_was_granted_is_not_asked_again() {
    let server = OAuthServer::answering(Habits::default(), |server, asked| {
        let is_admin = asked.json()["params"]["name"] == "admin";
        let challenge = format!("{}, error=\"insufficient_scope\", scope=\"admin\"", server.challenge());
        is_admin.then(|| Reply::status(403).header("www-authenticate", &challenge))
    });
    let user = User::of(&server);
    assert_eq!(user.login(&[]).code, Some(0));
    assert_eq!(user.eval(ADMIN)["value"], "[false :login_required]");
    assert_eq!(user.login(&[]).code, Some(0));
    assert_eq!(user.eval(ADMIN)["value"], "[false :scope_denied]");
}

#[test]
fn scopes_of_the_command_win() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    assert!(user.login(&["--scopes", "read admin"]).stdout.contains("scopes read admin"));
    assert_eq!(user.eval(ADMIN)["value"], "[true nil]");
}

#[test]
fn offline_access_is_asked_for_where_the_authorization_server_knows_it() {
    for (supported, has_it) in [(json!(["read", "offline_access"]), true), (json!(["read"]), false)] {
        let server = OAuthServer::start(Habits {
            metadata: json!({ "scopes_supported": supported }),
            ..Habits::default()
        });
        let user = User::of(&server);
        let begun = user.begin_login(&[]);
        assert_eq!(begun.address.contains("offline_access"), has_it, "{}", begun.address);
        let answer = begun.consent();
        assert_eq!(begun.paste(&answer).code, Some(0));
        // A machine needs no refresh token.
        let machine = machine(
            &server,
            json!({ "id": "machine", "secret": "own" }),
            json!({ "source": "literal", "value": "machine-secret-Zq7Xw9" }),
        );
        assert_echoed(&machine.echo());
        let asked = server.asked("/token").pop().unwrap();
        assert_eq!(
            (asked.field("grant_type").as_deref(), asked.field("scope").as_deref()),
            (Some("client_credentials"), Some("read"))
        );
    }
}

#[test]
fn a_code_is_typed_on_another_device() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    let said = user.run(&["login", "hosted", "--device"]);
    assert!(said.code == Some(0) && said.stdout.contains("WDJB-MJHT"), "{said:?}");
    assert_eq!(server.grants("urn:ietf:params:oauth:grant-type:device_code"), 2);
    assert_echoed(&user.echo());
}

fn machine(server: &OAuthServer, client: Value, credential: Value) -> User {
    let auth = json!([{
        "scheme": "oauth", "grant": "client_credentials", "scopes": ["read"], "client": client,
        "issuer": server.url(""),
    }]);
    let entry = json!({ "transport": "mcp_http", "url": server.url("/mcp"), "auth": auth });
    User::with(json!({ "hosted": entry }), json!({ "own": credential }))
}

#[test]
fn a_client_with_a_secret_needs_no_person() {
    let server = OAuthServer::start(Habits::default());
    let secret = json!({ "source": "literal", "value": "machine-secret-Zq7Xw9" });
    let user = machine(&server, json!({ "id": "machine", "secret": "own" }), secret);
    assert_echoed(&user.echo());
    assert_echoed(&user.echo());
    assert_eq!(server.grants("client_credentials"), 1, "the second process uses the token of the first");
    // It cannot agree to more: the call says which scopes are missing.
    let report = user.eval("(tool/call {:server \"hosted\" :tool \"admin\" :args {}})");
    let value = report["value"].as_str().unwrap();
    assert!(value.contains(":scope_denied") && value.contains("admin"), "{report:#}");
    server.end_access();
    assert_echoed(&user.echo());
    assert_eq!(server.grants("client_credentials"), 2);
    // A wrong secret is an error of the configuration, and not a login that is missing.
    let wrong = json!({ "source": "literal", "value": "another-secret-Zq7Xw9" });
    let user = machine(&server, json!({ "id": "machine", "secret": "own" }), wrong);
    let said = user.run(&["call", "hosted/echo"]);
    assert!(said.stderr.contains("invalid_client") && !said.stderr.contains("ptc login"), "{said:?}");
}

#[test]
fn a_secret_goes_to_no_issuer_that_the_server_alone_names() {
    let other = OAuthServer::start(Habits::default());
    let issuer = other.url("");
    let server = OAuthServer::answering(Habits::default(), move |server, asked| {
        let mut resource = server.resource();
        resource["authorization_servers"] = json!([issuer]);
        (asked.path == "/.well-known/oauth-protected-resource/mcp")
            .then(|| ptc_tests::oauth::Reply::json(&resource))
    });
    let secret = json!({ "source": "literal", "value": "machine-secret-Zq7Xw9" });
    // With an issuer that is named, another one is not asked; without one, none is.
    let named = machine(&server, json!({ "id": "machine", "secret": "own" }), secret.clone());
    assert!(named.run(&["call", "hosted/echo"]).stderr.contains("does not name the issuer"));
    let auth = json!([{
        "scheme": "oauth", "grant": "client_credentials", "client": { "id": "machine", "secret": "own" },
    }]);
    let entry = json!({ "transport": "mcp_http", "url": server.url("/mcp"), "auth": auth });
    let unnamed = User::with(json!({ "hosted": entry }), json!({ "own": secret }));
    let said = unnamed.run(&["call", "hosted/echo"]);
    assert!(said.stderr.contains(&format!("--issuer {}", other.url(""))), "{said:?}");
    assert!(other.asked("/token").is_empty());
}

#[test]
fn a_client_with_a_key_signs_its_requests() {
    let server = OAuthServer::start(Habits::default());
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let client = json!({ "id": "machine", "key": "own", "key_id": "k1" });
    let user = machine(&server, client, json!({ "source": "literal", "value": key }));
    assert_echoed(&user.echo());
    let asked = server.asked("/token").pop().unwrap();
    let assertion = asked.field("client_assertion").unwrap();
    assert_eq!(assertion.split('.').count(), 3);
    let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    assert_eq!(asked.field("client_assertion_type").as_deref(), Some(kind));
}

#[test]
fn the_block_of_a_host_names_the_client_and_its_port() {
    let server = OAuthServer::start(Habits::default());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let redirect = format!("http://localhost:{port}/callback");
    server.add_client("by-hand", Some("by-hand-secret-Zq7Xw9"), &redirect);
    let user = User::with(json!({}), json!({}));
    let block = json!({ "clientId": "by-hand", "clientSecret": "${HAND}", "callbackPort": port });
    let file =
        json!({ "mcpServers": { "hosted": { "type": "http", "url": server.url("/mcp"), "oauth": block } } });
    std::fs::write(user.path("c.json"), file.to_string()).unwrap();
    let user_command = |arguments: &[&str]| {
        let mut command = user.command(arguments);
        command.env("HAND", "by-hand-secret-Zq7Xw9");
        command
    };
    // The server alone must not say where the secret goes.
    let said = ptc_tests::binary::run(user_command(&["login", "hosted", "--paste"]), "");
    let named = format!("log in with --issuer {}", server.url(""));
    assert!(said.code == Some(2) && said.stderr.contains(&named), "{said:?}");
    let issuer = server.url("");
    let mut child = user_command(&["login", "hosted", "--paste", "--issuer", &issuer]).spawn().unwrap();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let address = loop {
        let mut line = String::new();
        assert!(std::io::BufRead::read_line(&mut output, &mut line).unwrap() > 0);
        if line.trim().starts_with("http") {
            break line.trim().to_owned();
        }
    };
    let begun = super::BegunLogin { child, output, address };
    let answer = begun.consent();
    assert!(answer.starts_with(&redirect), "{answer}");
    let said = begun.paste(&answer);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(server.asked("/register").is_empty());
    assert!(server.asked("/token")[0].header("authorization").unwrap().starts_with("Basic "));
    // The secret of the configuration is not stored.
    assert!(!user.stored()[0].1.to_string().contains("by-hand-secret"));
    server.end_access();
    let said = ptc_tests::binary::run(user_command(&["call", "hosted/echo", "a=1"]), "");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(server.grants("refresh_token"), 1);
}

#[test]
fn a_document_describes_the_client_where_the_server_reads_it() {
    let server = OAuthServer::start(Habits {
        metadata: json!({ "client_id_metadata_document_supported": true }),
        ..Habits::default()
    });
    let user = User::of(&server);
    let document = "https://ptc.example/client.json";
    let begun = user.begin_login(&["--client-metadata-url", document]);
    let fields = ptc_tests::oauth::pairs(begun.address.split_once('?').unwrap().1);
    let field = |name: &str| fields.iter().find(|(known, _)| known == name).unwrap().1.clone();
    assert_eq!(field("client_id"), document);
    server.add_client(document, None, &field("redirect_uri"));
    let answer = begun.consent();
    assert_eq!(begun.paste(&answer).code, Some(0));
    assert!(server.asked("/register").is_empty());
    assert_echoed(&user.echo());
}

#[test]
fn what_the_configuration_says_of_logins_is_checked() {
    let server = OAuthServer::start(Habits::default());
    for (auth, said) in [
        (json!([{ "scheme": "oauth", "grant": "password" }]), "no grant \"password\""),
        (json!([{ "scheme": "oauth", "scope": ["a"] }]), "did you mean scopes?"),
        (
            json!([{ "scheme": "oauth", "grant": "client_credentials" }]),
            "needs client with a secret or a key",
        ),
        (
            json!([{ "scheme": "oauth", "client": { "id": "x", "secret": "none" } }]),
            "unknown credential binding",
        ),
        (json!([{ "scheme": "oauth", "client": { "id": "x", "key": "own" } }]), "no private key in PEM"),
        (json!([{ "scheme": "oauth" }, { "scheme": "oauth" }]), "two oauth schemes"),
        (json!([{ "scheme": "oauth" }, { "scheme": "bearer", "binding": "own" }]), "keep one of them"),
        (json!([{ "scheme": "oauth", "identity": "robot" }]), "identity \"robot\""),
        (
            json!([{ "scheme": "oauth", "grant": "id_jag", "client": { "id": "x", "secret": "own" } }]),
            "needs idp",
        ),
    ] {
        let entry = json!({ "transport": "mcp_http", "url": server.url("/mcp"), "auth": auth });
        let own = json!({ "own": { "source": "literal", "value": "some-text-Zq7Xw9" } });
        let user = User::with(json!({ "hosted": entry }), own);
        let ended = user.run(&["tools"]);
        assert!(ended.code == Some(2) && ended.stderr.contains(said), "{auth} {ended:?}");
    }
}
