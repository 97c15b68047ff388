//! Where logins are: the file, the keyring behind a helper, and what `ptc auth` and `ptc logout` do with them.

use super::{User, assert_echoed};
use ptc_tests::oauth::{Habits, OAuthServer, Reply};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

#[test]
fn auth_shows_logins_without_a_token_and_logout_forgets_them() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    assert!(user.run(&["auth"]).stdout.contains("hosted: no login"));
    assert_eq!(user.login(&[]).code, Some(0));
    let text = user.run(&["auth"]).stdout;
    assert!(text.contains(&server.url("")) && text.contains("renewed by itself, scopes read"), "{text}");
    let said = user.run(&["auth", "--json"]);
    let json: Value = serde_json::from_str(&said.stdout).unwrap();
    let login = &json["logins"][0];
    assert!(
        login["server"] == "hosted" && login["logged_in"] == true && login["renewable"] == true,
        "{json:#}"
    );
    assert!(login["expires_in"].as_i64().unwrap() > 3000, "{json:#}");
    let secrets = server.secrets();
    assert!(
        secrets.len() > 3 && !secrets.iter().any(|secret| (text.clone() + &said.stdout).contains(secret))
    );
    assert_eq!(user.run(&["logout", "hosted"]).code, Some(0));
    assert!(user.stored().is_empty() && server.asked("/revoke").is_empty());
    assert!(user.run(&["logout", "hosted"]).stdout.contains("there was no login"));
}

/// A file that was copied there is the login of another server or caller, whose tokens are for them alone.
#[test]
fn the_login_of_another_is_not_used() {
    let server = OAuthServer::start(Habits::default());
    for (key, value) in [("server", "https://other.example/mcp"), ("owner", "a caller")] {
        let user = User::of(&server);
        assert_eq!(user.login(&[]).code, Some(0));
        assert_echoed(&user.echo());
        user.change(|login| login[key] = value.into());
        assert!(user.run(&["auth"]).stdout.contains("hosted: no login"), "{key}");
        assert!(!user.echo().to_string().contains(":ok true"), "{key}");
    }
}

#[test]
fn logout_revokes_or_keeps() {
    let works = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let answers = works.clone();
    let server = OAuthServer::answering(Habits::default(), move |_, asked| {
        let is_down = asked.path == "/revoke" && !answers.load(std::sync::atomic::Ordering::SeqCst);
        is_down.then(|| Reply::status(503))
    });
    let user = User::of(&server);
    assert_eq!(user.login(&[]).code, Some(0));
    assert_eq!(user.run(&["logout", "hosted", "--revoke"]).code, Some(3));
    assert_echoed(&user.echo());
    works.store(true, std::sync::atomic::Ordering::SeqCst);
    let login = user.stored()[0].1.clone();
    assert_eq!(user.run(&["logout", "hosted", "--revoke"]).code, Some(0));
    let revoked: Vec<_> = server.asked("/revoke").iter().filter_map(|asked| asked.field("token")).collect();
    for token in ["refresh_token", "access_token"] {
        assert!(revoked.iter().any(|known| login[token] == **known), "{token}");
    }
    assert!(user.stored().is_empty());
}

/// A Docker credential helper with a folder as its keyring. `before` and `after` are run around `store`.
fn helper(user: &User, before: &str, after: &str) {
    let script = format!(
        "#!/usr/bin/env python3\nimport hashlib, json, os, signal, sys\ntext = sys.stdin.read()\n\
        url = json.loads(text)['ServerURL'] if sys.argv[1] == 'store' else text.strip()\n\
        path = os.path.join({:?}, hashlib.sha256(url.encode()).hexdigest())\n\
        if sys.argv[1] == 'store':\n    {before}\n    open(path, 'w').write(text)\n    {after}\n\
        elif not os.path.exists(path):\n    print('credentials not found in native keychain')\n    sys.exit(1)\n\
        elif sys.argv[1] == 'get':\n    print(open(path).read())\n\
        else:\n    os.remove(path)\n",
        user.folder.path().to_str().unwrap()
    );
    let path = user.path("docker-credential-tests");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn with_helper(user: &User, arguments: &[&str]) -> std::process::Command {
    let mut command = user.command(arguments);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", user.folder.path().display()));
    command.env("PTC_TOKEN_STORE", "helper:tests");
    command
}

fn login_with_helper(user: &User) {
    let mut command = with_helper(user, &["login", "hosted"]);
    let browser = user.path("browser");
    let script =
        "#!/usr/bin/env python3\nimport sys, urllib.request\nurllib.request.urlopen(sys.argv[1]).read()\n";
    std::fs::write(&browser, script).unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    command.env("BROWSER", &browser);
    let said = ptc_tests::binary::run(command, "");
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn a_helper_has_the_login_and_no_file_does() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    helper(&user, "pass", "pass");
    login_with_helper(&user);
    assert!(user.stored().is_empty());
    let call = ["call", "hosted/echo", "a=1"];
    let run = |arguments: &[&str]| ptc_tests::binary::run(with_helper(&user, arguments), "");
    assert_eq!(run(&call).code, Some(0));
    server.end_access();
    assert_eq!(run(&call).code, Some(0));
    assert_eq!(server.grants("refresh_token"), 1);
    assert!(run(&["auth"]).stdout.contains("stored in helper:tests"));
    assert_eq!(run(&["logout", "hosted"]).code, Some(0));
    assert!(run(&call).stderr.contains("ptc login hosted"));
    let mut command = user.command(&call);
    command.env("PTC_TOKEN_STORE", "helper:nothing");
    let said = ptc_tests::binary::run(command, "");
    assert!(said.code != Some(0) && said.stderr.contains("docker-credential-nothing"), "{said:?}");
}

#[test]
fn a_process_that_is_killed_while_it_stores_loses_what_it_must_and_no_more() {
    // Before the new tokens are stored they are in that process alone: nothing can bring them back.
    // After that, they are the login.
    for (before, after, works) in [
        ("os.kill(os.getppid(), signal.SIGKILL); sys.exit(0)", "pass", false),
        ("pass", "os.kill(os.getppid(), signal.SIGKILL)", true),
    ] {
        let server = OAuthServer::start(Habits::default());
        let user = User::of(&server);
        helper(&user, "pass", "pass");
        login_with_helper(&user);
        server.end_access();
        helper(&user, before, after);
        let call = ["call", "hosted/echo", "a=1"];
        let said = ptc_tests::binary::run(with_helper(&user, &call), "");
        assert_eq!(said.code, None, "it was killed: {said:?}");
        helper(&user, "pass", "pass");
        let said = ptc_tests::binary::run(with_helper(&user, &call), "");
        match works {
            true => assert_eq!((said.code, server.grants("refresh_token")), (Some(0), 1), "{said:?}"),
            false => assert!(said.stderr.contains("ptc login hosted"), "{said:?}"),
        }
        login_with_helper(&user);
        assert_eq!(ptc_tests::binary::run(with_helper(&user, &call), "").code, Some(0));
    }
}

#[test]
fn tokens_that_cannot_be_stored_are_not_used_until_they_are() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    helper(&user, "pass", "pass");
    login_with_helper(&user);
    let mut serve = ptc_tests::serve::Server::from_command(with_helper(&user, &["serve"]));
    let program = "(:reason (tool/call {:server \"hosted\" :tool \"echo\" :args {:a 1}}))";
    assert!(serve.text(program).contains("nil"));
    server.end_access();
    helper(&user, "sys.exit(1)", "pass");
    assert!(serve.text(program).contains(":upstream_unavailable"));
    helper(&user, "pass", "pass");
    // The recovery window of the server may still be open.
    ptc_tests::processes::eventually("it works again", || serve.text(program).contains("nil"));
    assert_eq!((server.grants("refresh_token"), server.revoked()), (1, 0));
}

#[test]
fn tokens_that_could_not_be_stored_do_not_replace_another_login() {
    let server = OAuthServer::start(Habits::default());
    let user = User::of(&server);
    helper(&user, "pass", "pass");
    login_with_helper(&user);
    let mut serve = ptc_tests::serve::Server::from_command(with_helper(&user, &["serve"]));
    let program = "(:reason (tool/call {:server \"hosted\" :tool \"echo\" :args {:a 1}}))";
    assert!(serve.text(program).contains("nil"));
    server.end_access();
    helper(&user, "sys.exit(1)", "pass");
    assert!(serve.text(program).contains(":upstream_unavailable"));
    helper(&user, "pass", "pass");
    // A person logs in anew before the server can store the tokens of its renewal.
    login_with_helper(&user);
    let stored = |user: &User| -> Vec<String> {
        let files = std::fs::read_dir(user.folder.path()).unwrap().map(|entry| entry.unwrap());
        // The files of the helper are named by digests.
        let logins = files.filter(|file| file.file_name().len() == 64);
        logins.map(|file| std::fs::read_to_string(file.path()).unwrap()).collect()
    };
    let anew = stored(&user);
    assert_eq!(anew.len(), 1);
    ptc_tests::processes::eventually("it works again", || serve.text(program).contains("nil"));
    // Once more, when the token of the new login has ended: the older tokens are not taken instead.
    assert_eq!((stored(&user), server.grants("refresh_token")), (anew, 1));
    server.end_access();
    ptc_tests::processes::eventually("it is renewed", || serve.text(program).contains("nil"));
    assert_eq!((server.grants("refresh_token"), server.revoked()), (2, 0));
}
