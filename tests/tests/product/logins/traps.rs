//! What authorization servers get wrong, and what attackers try.

use super::{User, assert_echoed};
use ptc_tests::oauth::{Habits, OAuthServer, Reply};
use serde_json::{Value, json};

/// A login that must fail: its error.
#[track_caller]
fn refused(server: &OAuthServer) -> String {
    let user = User::of(server);
    let said = user.run(&["login", "hosted", "--paste"]);
    assert!(said.code == Some(2) && user.stored().is_empty(), "{said:?}");
    said.stderr
}

fn with_metadata(metadata: Value) -> OAuthServer {
    OAuthServer::start(Habits { metadata, ..Habits::default() })
}

#[test]
fn an_issuer_that_differs_by_a_slash_is_another_one() {
    let server = OAuthServer::answering(Habits::default(), |server, asked| {
        let mut metadata = server.metadata();
        metadata["issuer"] = server.url("/").into();
        (asked.path == "/.well-known/oauth-authorization-server").then(|| Reply::json(&metadata))
    });
    assert!(refused(&server).contains("says that its issuer is"));
}

#[test]
fn without_pkce_there_is_no_login() {
    for methods in [Value::Null, json!(["plain"]), json!([])] {
        let server = with_metadata(json!({ "code_challenge_methods_supported": methods }));
        assert!(refused(&server).contains("PKCE"));
        assert!(server.asked("/register").is_empty());
    }
}

#[test]
fn metadata_of_another_resource_is_not_used() {
    let other = OAuthServer::start(Habits::default());
    let elsewhere = other.url("/.well-known/oauth-protected-resource/mcp");
    // Named by the challenge, and at another origin.
    let server = OAuthServer::answering(Habits::default(), move |_, asked| {
        let challenge = format!("Bearer resource_metadata=\"{elsewhere}\"");
        (asked.path == "/mcp").then(|| Reply::status(401).header("www-authenticate", &challenge))
    });
    assert!(refused(&server).contains("is about the resource"));
    assert!(
        other.asked("/register").is_empty() && other.asked("/.well-known/oauth-authorization").is_empty()
    );
}

#[test]
fn metadata_is_not_followed_to_another_origin() {
    let other = OAuthServer::start(Habits::default());
    for path in
        ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/register"]
    {
        let target = other.url(path);
        let server = OAuthServer::answering(Habits::default(), move |_, asked| {
            (asked.path == path).then(|| Reply::status(307).header("location", &target))
        });
        let user = User::of(&server);
        let said = user.run(&["login", "hosted", "--paste"]);
        assert!(said.code != Some(0) && said.stderr.contains("redirected"), "{path} {said:?}");
        assert!(other.asked("").is_empty(), "{path}");
    }
}

#[test]
fn endpoints_without_encryption_are_not_used() {
    for endpoint in ["authorization_endpoint", "registration_endpoint", "token_endpoint"] {
        let server = with_metadata(json!({ endpoint: "http://as.example/x" }));
        assert!(refused(&server).contains("https"), "{endpoint}");
    }
}

#[test]
fn endpoints_that_a_server_may_not_name_are_found_before_a_person_is_asked() {
    for endpoint in ["token_endpoint", "registration_endpoint", "revocation_endpoint"] {
        let server = with_metadata(json!({ endpoint: "https://169.254.169.254/x" }));
        let said = refused(&server);
        assert!(said.contains("a link-local address"), "{endpoint} {said}");
        assert!(server.asked("/register").is_empty() && server.asked("/authorize").is_empty());
    }
}

#[test]
fn two_schemes_and_quoted_commas_in_a_challenge() {
    let server = OAuthServer::answering(Habits::default(), |server, asked| {
        let has_token = asked.header("authorization").is_some();
        let challenge = format!("Basic realm=\"a, b\", {}, scope=\"read write\"", server.challenge());
        (asked.path == "/mcp" && !has_token)
            .then(|| Reply::status(401).header("www-authenticate", &challenge))
    });
    let user = User::of(&server);
    let said = user.login(&[]);
    assert!(said.code == Some(0) && said.stdout.contains("scopes read write"), "{said:?}");
    assert_echoed(&user.echo());
}

#[test]
fn an_answer_with_another_state_or_issuer_is_refused() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    let replaced = |answer: &str, name: &str, value: &str| {
        let (address, query) = answer.split_once('?').unwrap();
        let pairs = ptc_tests::oauth::pairs(query).into_iter();
        let pairs: Vec<String> = pairs
            .filter(|(key, _)| key != name || !value.is_empty())
            .map(|(key, old)| if key == name { format!("{key}={value}") } else { format!("{key}={old}") })
            .collect();
        format!("{address}?{}", pairs.join("&"))
    };
    for (name, value, said) in [
        ("state", "another", "its state differs"),
        ("state", "", "its state differs"),
        ("iss", "http://evil.example", "another authorization server"),
        ("iss", "", "does not say which authorization server"),
        ("code", "", "no code"),
    ] {
        let begun = user.begin_login(&[]);
        let answer = replaced(&begun.consent(), name, value);
        // An error of another server is not shown.
        let answer = format!("{answer}&error_description=SECRETLY");
        let ended = begun.paste(&answer);
        assert!(ended.code == Some(2) && ended.stderr.contains(said), "{name}={value} {ended:?}");
        assert!(!ended.stderr.contains("SECRETLY"), "{ended:?}");
    }
    assert!(user.stored().is_empty() && server.asked("/token").is_empty());
    let begun = user.begin_login(&[]);
    let denied = replaced(&begun.consent(), "code", "").replace("&iss", "&error=access_denied&iss");
    let ended = begun.paste(&denied);
    assert!(ended.stderr.contains("access_denied"), "{ended:?}");
}

#[test]
fn two_logins_at_once_do_not_take_each_others_answers() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    let (one, other) = (user.begin_login(&[]), user.begin_login(&[]));
    let (first, second) = (one.consent(), other.consent());
    assert!(one.paste(&second).stderr.contains("its state differs"));
    assert_eq!(other.paste(&second).code, Some(0));
    assert_echoed(&user.echo());
    assert!(!first.is_empty());
}

#[test]
fn a_client_is_not_used_at_another_authorization_server() {
    let (old, new) = (OAuthServer::start(Habits::default()), OAuthServer::start(Habits::default()));
    let authority = std::sync::Arc::new(std::sync::Mutex::new(old.url("")));
    let named = authority.clone();
    let server = OAuthServer::answering(Habits::default(), move |server, asked| {
        let mut resource = server.resource();
        resource["authorization_servers"] = json!([*named.lock().unwrap()]);
        (asked.path == "/.well-known/oauth-protected-resource/mcp").then(|| Reply::json(&resource))
    });
    let user = User::of(&server);
    assert_eq!(user.login(&[]).code, Some(0));
    let id = user.stored()[0].1["client"]["id"].clone();
    *authority.lock().unwrap() = new.url("");
    assert_eq!(user.login(&[]).code, Some(0));
    let login = &user.stored()[0].1;
    assert_eq!(login["issuer"], new.url(""));
    assert_eq!(new.asked("/register").len(), 1);
    let sent =
        new.asked("").iter().any(|asked| (asked.query.clone() + &asked.body).contains(id.as_str().unwrap()));
    assert!(!sent, "the old client was named to the new server");
    // A client that is configured belongs to the old server.
    let client = json!([{ "scheme": "oauth", "client": { "id": "by-hand" } }]);
    let entry = json!({ "transport": "mcp_http", "url": server.url("/mcp"), "auth": client });
    let user = User::with(json!({ "hosted": entry }), json!({}));
    *authority.lock().unwrap() = old.url("");
    let begun = user.begin_login(&[]);
    let redirect = ptc_tests::oauth::pairs(begun.address.split_once('?').unwrap().1);
    let redirect = redirect.iter().find(|(name, _)| name == "redirect_uri").unwrap().1.clone();
    old.add_client("by-hand", None, &redirect);
    let answer = begun.consent();
    assert_eq!(begun.paste(&answer).code, Some(0));
    *authority.lock().unwrap() = new.url("");
    let said = user.run(&["login", "hosted", "--paste"]);
    assert!(said.code == Some(2) && said.stderr.contains("another authorization server now"), "{said:?}");
}

#[test]
fn an_answer_without_an_end_or_a_new_refresh_token_is_good() {
    let server = OAuthServer::start(Habits { says_life: false, rotates: false, ..Habits::default() });
    let user = User::of(&server);
    assert_eq!(user.login(&[]).code, Some(0));
    let before = user.stored()[0].1.clone();
    assert!(before["expires_at"].is_null());
    for round in 1..3 {
        server.end_access();
        assert_echoed(&user.echo());
        let after = user.stored()[0].1.clone();
        assert_eq!(
            (server.grants("refresh_token"), &after["refresh_token"]),
            (round, &before["refresh_token"])
        );
    }
}

#[test]
fn a_clock_that_was_set_back_or_forward_costs_one_renewal_at_most() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    assert_eq!(user.login(&[]).code, Some(0));
    for (obtained, renewals) in [(4_000_000_000_u64, 0), (1_000, 1)] {
        user.change(|login| {
            login["obtained_at"] = json!(obtained);
            login["expires_at"] = json!(obtained + 3600);
        });
        assert_echoed(&user.echo());
        assert_echoed(&user.echo());
        assert_eq!(server.grants("refresh_token"), renewals, "{obtained}");
    }
}

#[test]
fn two_servers_of_one_issuer_have_logins_of_their_own() {
    let server = OAuthServer::start(Habits::default());
    let second = server.neighbour();
    let entry = |server: &OAuthServer| json!({ "transport": "mcp_http", "url": server.url("/mcp") });
    let user = User::with(json!({ "hosted": entry(&server), "second": entry(&second) }), json!({}));
    assert_eq!(user.login(&[]).code, Some(0));
    let program = "[(:ok (tool/call {:server \"hosted\" :tool \"echo\" :args {}})) \
        (:reason (tool/call {:server \"second\" :tool \"echo\" :args {}}))]";
    assert_eq!(user.eval(program)["value"], "[true :login_required]");
    assert!(second.asked("/mcp").iter().all(|asked| asked.query.is_empty()));
    assert_eq!(user.stored().len(), 1);
}

#[test]
fn a_server_without_metadata_is_its_own_authorization_server() {
    for has_metadata in [true, false] {
        let server = OAuthServer::answering(Habits::default(), move |_, asked| match asked.path.as_str() {
            "/mcp" if asked.header("authorization").is_none() => {
                Some(Reply::status(401).header("www-authenticate", "Bearer"))
            }
            path if path.starts_with("/.well-known/oauth-protected") => Some(Reply::status(404)),
            path if path.starts_with("/.well-known/") && !has_metadata => Some(Reply::status(404)),
            _ => None,
        });
        let user = User::of(&server);
        let begun = user.begin_login(&[]);
        // Without metadata the server does not promise `iss`.
        let answer = begun.consent();
        assert_eq!(begun.paste(&answer).code, Some(0));
        assert_echoed(&user.echo());
    }
}

#[test]
fn a_401_without_oauth_stays_what_it_was() {
    let server = OAuthServer::answering(Habits::default(), |_, asked| {
        Some(if asked.path == "/mcp" { Reply::status(401) } else { Reply::status(404) })
    });
    let user = User::of(&server);
    let said = user.run(&["call", "hosted/echo"]);
    assert!(!said.stderr.contains("ptc login") && said.stderr.contains("401"), "{said:?}");
}
