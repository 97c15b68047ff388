//! Tokens restricted to some servers: all other servers are invisible, whatever tool is called and however it names
//! them.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::model::ModelServer;
use ptc_tests::processes::{descendants, eventually};
use ptc_tests::scripts::engine;
use ptc_tests::upstreams::{Upstreams, probe_server};
use ptc_tests::web::{Answer, Browser, SessionClient, WebServer, sha256, stateless_body, stateless_headers};
use serde_json::{Value, json};

/// Programs that name a server in every possible way, and the text that reveals it. `SERVER` stands for its name. The
/// text does not occur in the program, which errors quote.
const PROGRAMS: [(&str, &str); 16] = [
    ("(tool/call {:server \"SERVER\" :tool \"stats\" :args {}})", "most_in_flight"),
    ("(let [s (subs \"-SERVER\" 1)] (tool/call {:server s :tool \"stats\" :args {}}))", "most_in_flight"),
    ("(mapv (fn [s] (tool/call {:server s :tool \"stats\" :args {}})) [\"SERVER\"])", "most_in_flight"),
    ("(pmap (fn [s] (tool/call {:server s :tool \"stats\" :args {}})) [\"SERVER\"])", "most_in_flight"),
    ("(tool/call (assoc {:tool \"stats\" :args {}} :server \"SERVER\"))", "most_in_flight"),
    ("(tool/servers)", "about-SERVER"),
    ("(dir 'SERVER)", "The stats"),
    ("(doc SERVER/stats)", "The stats tool"),
    ("(doc 'SERVER)", "about-SERVER"),
    ("(meta 'SERVER/stats)", "The stats tool"),
    ("(apropos \"stats\")", "SERVER/stats"),
    ("(resource/list {:server \"SERVER\"})", "memo://notes"),
    ("(resource/templates {:server \"SERVER\"})", "memo://numbers"),
    ("(resource/read {:server \"SERVER\" :uri (str \"memo\" \"://notes\")})", "Buy milk"),
    ("(prompt/list {:server \"SERVER\"})", "greet"),
    ("(prompt/get {:server \"SERVER\" :name (str \"gr\" \"eet\") :args {:who \"me\"}})", "Greet me"),
];

/// The same for scripts and for calls of one tool.
const SCRIPTS: [(&str, &str); 3] = [
    ("print(await mcp__SERVER__stats())", "most_in_flight"),
    ("print(tools())", "mcp__SERVER__stats"),
    ("print(tools('gather'))", "mcp__SERVER__gather"),
];

fn dispatches() -> Vec<(Value, &'static str)> {
    vec![
        (json!({ "action": "list" }), "about-SERVER"),
        (json!({ "action": "list", "connection": "SERVER" }), "The stats tool"),
        (json!({ "action": "search", "query": "stats" }), "SERVER"),
        (
            json!({ "action": "call", "connection": "SERVER", "tool": "stats", "arguments": {} }),
            "most_in_flight",
        ),
        // The id of the second connection, for a token that sees both.
        (json!({ "action": "call", "connection": "c2", "tool": "stats", "arguments": {} }), "most_in_flight"),
    ]
}

struct Tokens {
    server: WebServer,
    file: std::path::PathBuf,
    _folder: tempfile::TempDir,
    config: ptc_tests::upstreams::ConfigFile,
}

impl Tokens {
    fn start(model: &ModelServer) -> Tokens {
        Tokens::with(model, engine(), &[])
    }

    /// With this engine for scripts, and further flags.
    fn with(model: &ModelServer, engine: &str, more: &[&str]) -> Tokens {
        let described = |name: &str| {
            let mut entry = probe_server(&[]);
            entry["description"] = format!("about-{name}").into();
            entry
        };
        let config =
            Upstreams::default().add("open", described("open")).add("shut", described("shut")).write();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens.toml");
        write(&file, "servers = [\"open\", \"absent\"]");
        let mut flags = vec![
            "--http-tokens",
            file.to_str().unwrap(),
            "--http-metrics",
            "--tools",
            "lisp_eval,execute_program,proxy-dispatch",
            "--python-engine",
            engine,
            "--sessions",
            "--agentic",
            "--agentic-allow-writes",
            "--agentic-model",
            "some-model",
            "--agentic-base-url",
            model.url(),
            "--timeout",
            "120s",
            "--python-timeout",
            "120s",
            "--config-reload",
            "sighup",
        ];
        flags.extend(more);
        let server = WebServer::start(&config.flags(&flags));
        Tokens { server, file, _folder: folder, config }
    }

    fn ask(&self, token: &str, method: &str, name: &str, params: Value) -> String {
        let authorization = authorization(token);
        let mut headers = stateless_headers(method, name);
        headers.push(("Authorization", &authorization));
        let answer = self.server.ask("POST", &headers, &stateless_body(1, method, params));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }

    fn call(&self, token: &str, tool: &str, arguments: &Value) -> String {
        self.ask(token, "tools/call", tool, json!({ "name": tool, "arguments": arguments }))
    }

    /// A new session of this token; gives its id.
    fn session(&self, token: &str) -> Value {
        let answer: Value =
            serde_json::from_str(&self.call(token, "lisp_session_start", &json!({}))).unwrap();
        answer["result"]["structuredContent"]["session_id"].clone()
    }
}

fn write(file: &std::path::Path, some: &str) {
    let entry =
        |name: &str, more: &str| format!("[{name}]\nsha256 = \"{}\"\n{more}\n", sha256(&name.repeat(32)));
    let text = [entry("all", ""), entry("some", some), entry("none", "servers = []")].concat();
    std::fs::write(file, text).unwrap();
}

fn authorization(token: &str) -> String {
    format!("Bearer {}", token.repeat(32))
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn a_token_reaches_no_server_but_its_own_by_any_tool_and_name() {
    let model = ModelServer::with_programs(&[
        "(return (tool/call {:server (subs \"-shut\" 1) :tool \"stats\" :args {}}))",
    ]);
    let tokens = Tokens::start(&model);
    let sessions = ["all", "some", "none"].map(|token| (token, tokens.session(token)));
    let session = |token: &str| sessions.iter().find(|(name, _)| *name == token).unwrap().1.clone();
    // Tool, arguments for a token and a server, and what shows that the server was reached.
    type Arguments<'a> = Box<dyn Fn(&str, &str) -> Value + 'a>;
    let mut ways: Vec<(&str, Arguments<'_>, &str)> = Vec::new();
    for (program, shows) in PROGRAMS {
        let text = move |server: &str| program.replace("SERVER", server);
        ways.push(("lisp_eval", Box::new(move |_, server| json!({ "program": text(server) })), shows));
        ways.push((
            "lisp_session_eval",
            Box::new(move |token, server| json!({ "program": text(server), "session_id": session(token) })),
            shows,
        ));
    }
    for (code, shows) in SCRIPTS {
        let arguments = move |_: &str, server: &str| json!({ "code": code.replace("SERVER", server) });
        ways.push(("execute_program", Box::new(arguments), shows));
    }
    for (arguments, shows) in dispatches() {
        let text = arguments.to_string();
        let arguments =
            move |_: &str, server: &str| serde_json::from_str(&text.replace("SERVER", server)).unwrap();
        ways.push(("proxy-dispatch", Box::new(arguments), shows));
    }
    // Only operators see the command of a server.
    let listed = tokens.call("all", "proxy-dispatch", &json!({ "action": "list" }));
    assert!(listed.contains("command") && !listed.contains("args"), "{listed}");
    ways.push(("lisp_task", Box::new(|_, _| json!({ "task": "Look." })), "most_in_flight"));
    for (tool, arguments, shows) in ways {
        let shown = |token: &str, server: &str| {
            let answer = tokens.call(token, tool, &arguments(token, server));
            (answer.contains(&shows.replace("SERVER", server)), answer)
        };
        let (reached, answer) = shown("all", "shut");
        assert!(reached, "{tool} {}: {answer}", arguments("all", "shut"));
        for token in ["some", "none"] {
            let (reached, answer) = shown(token, "shut");
            assert!(!reached, "{token} {tool} {}: {answer}", arguments(token, "shut"));
            assert!(!answer.contains("about-shut"), "{token} {tool}: {answer}");
        }
        // A result that was cached for one token is not given to another, in either order.
        let again = |server: &str| match arguments("some", server)["program"].as_str() {
            Some(text) => json!({ "program": format!("{text} ") }),
            None => arguments("all", server),
        };
        if tool == "lisp_eval" {
            assert!(
                !tokens.call("some", tool, &again("shut")).contains(shows.replace("SERVER", "shut").as_str())
            );
            assert!(
                tokens.call("all", tool, &again("shut")).contains(shows.replace("SERVER", "shut").as_str())
            );
        }
        // A program that names an allowed server works.
        let says = arguments("some", "open");
        if says != arguments("some", "shut") || says["action"] == "list" {
            let (reached, answer) = shown("some", "open");
            assert!(reached, "{tool} {says}: {answer}");
        }
    }
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn what_is_offered_names_no_other_server() {
    let model = ModelServer::with_programs(&["(return 1)"]);
    let tokens = Tokens::start(&model);
    // Lists mention tools once these are loaded.
    tokens.call("all", "proxy-dispatch", &json!({ "action": "list" }));
    let list = |token: &str| tokens.ask(token, "tools/list", "", json!({}));
    eventually("the list names both", || {
        list("all").contains("about-open") && list("all").contains("about-shut")
    });
    eventually("the list of the part is there", || list("some").contains("about-open"));
    for token in ["some", "none"] {
        let text = list(token);
        assert!(!text.contains("shut") && text.contains("\"private\""), "{text}");
    }
    assert!(!list("none").contains("about-open"));
    // Also for clients with a handshake.
    let authorization = authorization("some");
    let mut client =
        SessionClient::begin(&tokens.server, "2025-11-25", &[("Authorization", authorization.as_str())]);
    let text = client.ask(&tokens.server, "tools/list", json!({})).body;
    assert!(text.contains("about-open") && !text.contains("shut"), "{text}");
    let program = json!({ "name": "lisp_eval", "arguments": { "program": "(tool/servers)" } });
    let text = client.ask(&tokens.server, "tools/call", program).body;
    assert!(text.contains("about-open") && !text.contains("shut"), "{text}");
    let metrics = |token: &str| {
        let authorization = self::authorization(token);
        let mut browser = tokens.server.connect();
        browser.at("/metrics").ask("GET", &[("Authorization", &authorization)], "").status
    };
    assert_eq!((metrics("all"), metrics("some")), (200, 403), "numbers name servers");
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn a_token_that_loses_a_server_loses_it_in_what_it_has_begun() {
    let model = ModelServer::with_programs(&["(return 1)"]);
    let tokens = Tokens::start(&model);
    let session = tokens.session("some");
    let program = "(tool/call {:server \"open\" :tool \"stats\" :args {}})";
    let in_session =
        || tokens.call("some", "lisp_session_eval", &json!({ "program": program, "session_id": session }));
    let alone = || tokens.call("some", "lisp_eval", &json!({ "program": program }));
    assert!(in_session().contains("most_in_flight") && alone().contains("most_in_flight"));
    write(&tokens.file, "servers = []");
    eventually("the file is read again", || !alone().contains("most_in_flight"));
    let answer = in_session();
    assert!(!answer.contains("most_in_flight") && answer.contains("session_not_found"), "{answer}");
}

/// A script that searches all memory of its process for functions of the server `shut`.
const SEARCH: &str = r#"
import gc, sys
gc.unfreeze()
name, found = "mcp__" + "shut", set()
todo, seen = gc.get_objects() + [sys._getframe()], set()
while todo:
    thing = todo.pop()
    if id(thing) in seen or thing is todo or thing is seen:
        continue
    seen.add(id(thing))
    if isinstance(thing, str) and len(thing) < 100 and name in thing and thing != name:
        found.add(thing)
    todo.extend(gc.get_referents(thing))
print("looked", "found" if found else "nothing")
"#;

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn what_scripts_of_others_are_told_is_not_in_the_memory_of_a_script() {
    let model = ModelServer::with_programs(&["(return 1)"]);
    let tokens = Tokens::with(&model, "cpython", &[]);
    let script = |token: &str, code: &str| tokens.call(token, "execute_program", &json!({ "code": code }));
    // Functions exist once tools are listed.
    for server in ["open", "shut"] {
        let stats = format!("print(await mcp__{server}__stats())");
        tokens.call("all", "proxy-dispatch", &json!({ "action": "list", "connection": server }));
        assert!(script("all", &stats).contains("most_in_flight"));
    }
    assert!(script("all", SEARCH).contains("looked found"), "the search finds what is there");
    assert!(script("some", "print(await mcp__open__stats())").contains("most_in_flight"));
    assert!(script("some", "print(await mcp__shut__stats())").contains("NameError"));
    // Also while scripts of both tokens begin at the same time.
    let theirs = authorization("all");
    let mut headers = stateless_headers("tools/call", "execute_program");
    headers.push(("Authorization", &theirs));
    let params = json!({ "name": "execute_program", "arguments": { "code": "print(tools())" } });
    let body = stateless_body(1, "tools/call", params);
    for _ in 0..4 {
        let mut others: Vec<Browser> = (0..4).map(|_| tokens.server.connect()).collect();
        others.iter_mut().for_each(|other| other.send("POST", &headers, &body));
        let answer = script("some", SEARCH);
        assert!(answer.contains("looked nothing"), "{answer}");
        for mut other in others {
            assert!(other.answer().body.contains("mcp__shut__stats"));
        }
    }
}

/// Scripts of two tokens fork from two warm processes, so a script can harm only its own token.
#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn scripts_of_two_tokens_come_from_two_warm_processes() {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    let entry = |name: &str| format!("[{name}]\nsha256 = \"{}\"\n", sha256(&name.repeat(32)));
    std::fs::write(file.path(), entry("one") + &entry("two")).unwrap();
    let path = file.path().to_str().unwrap();
    let flags = ["--http-tokens", path, "--tools", "execute_program", "--python-engine", "cpython"];
    let server = WebServer::start(&flags);
    let params = json!({ "name": "execute_program", "arguments": { "code": "print(1)" } });
    // Each warm process has two halves.
    for (token, processes) in [("one", 2), ("one", 2), ("two", 4), ("one", 4), ("two", 4)] {
        let authorization = authorization(token);
        let mut headers = stateless_headers("tools/call", "execute_program");
        headers.push(("Authorization", &authorization));
        let answer = server.ask("POST", &headers, &stateless_body(1, "tools/call", params.clone()));
        assert!(answer.body.contains("executed successfully"), "{answer:?}");
        eventually("the script has ended", || descendants(server.id()).len() == processes);
    }
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn exports_that_need_another_server_are_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let prelude = folder.path().join("stats.clj");
    let text = r#"(ns stats)
(defn- numbers [] (tool/call {:server "shut" :tool "stats" :args {}}))
(defn closed "Numbers" [] (:value (numbers)))
(defn near "More" {:requires ["upstream:shut/stats"]} [] 1)
(defn open "Others" [] (:calls (:value (tool/call {:server "open" :tool "stats" :args {}}))))
(defn pure "Nothing" [] 7)
(ns shutter "All of it." {:visibility :prompt})
(defn near "Far" [] (:value (tool/call 'shut/stats {})))"#;
    std::fs::write(&prelude, text).unwrap();
    let model = ModelServer::with_programs(&["(return (stats/pure))"]);
    let tokens = Tokens::with(&model, engine(), &["--prelude", prelude.to_str().unwrap()]);
    let text_of = |answer: String| {
        let answer: Value = serde_json::from_str(&answer).unwrap();
        ptc_tests::serve::text_of(&answer["result"])
    };
    let eval =
        |token: &str, text: &str| text_of(tokens.call(token, "lisp_eval", &json!({ "program": text })));
    assert!(eval("all", "(stats/closed)").contains("most_in_flight"));
    assert!(eval("all", "(shutter/near)").contains("most_in_flight"));
    let names = "[(keys (ns-publics 'stats)) (keys (ns-publics 'shutter))]";
    for (token, stats, shutter) in [
        ("all", r#"["closed" "near" "open" "pure"]"#, r#"["near"]"#),
        ("some", r#"["open" "pure"]"#, "nil"),
        ("none", r#"["pure"]"#, "nil"),
    ] {
        assert_eq!(eval(token, names).replace("[]", "nil"), format!("[{stats} {shutter}]"), "{token}");
        assert_eq!(eval(token, "(stats/pure)"), "7", "{token}");
        let listed = tokens.ask(token, "tools/list", "", json!({}));
        assert_eq!(listed.contains("stats/closed"), token == "all", "{token}");
        assert!(listed.contains("stats/pure"), "{token}");
        if token != "all" {
            for gone in ["(stats/closed)", "stats/near", "(map shutter/near [1])", "(doc 'stats/closed)"] {
                let told = eval(token, gone);
                assert!(
                    !told.contains("most_in_flight")
                        && !told.contains("\"shut\"")
                        && !told.contains("Numbers"),
                    "{told}"
                );
            }
            assert!(eval(token, "(stats/closed)").contains("not a public export"));
            for source in ["(source 'stats/closed)", "(source 'stats/numbers)"] {
                assert!(!eval(token, source).contains("tool/call"), "{token} {source}");
            }
        }
    }
    assert!(eval("some", "(stats/open)").parse::<u64>().is_ok());
    let solved = tokens.call("some", "lisp_task", &json!({ "task": "?" }));
    assert!(solved.contains("\"answer\":\"7\""), "{solved}");
    let session = tokens.session("some");
    let params = json!({ "session_id": session, "program": "(stats/pure)" });
    assert!(text_of(tokens.call("some", "lisp_session_eval", &params)).starts_with('7'));
}

/// A stream of change notifications for this token, in a session of its own.
fn listener(tokens: &Tokens, token: &str) -> (Browser, Answer) {
    let authorization = authorization(token);
    let client = SessionClient::begin(&tokens.server, "2025-11-25", &[("Authorization", &authorization)]);
    let mut stream = tokens.server.connect();
    stream.send("GET", &client.headers(), "");
    let head = stream.head().unwrap();
    stream.until(&head, "id: ");
    (stream, head)
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn a_stream_tells_of_the_list_of_its_token_and_ends_with_it() {
    let model = ModelServer::with_programs(&["(return 1)"]);
    let tokens = Tokens::start(&model);
    for server in ["open", "shut"] {
        tokens.call("all", "proxy-dispatch", &json!({ "action": "list", "connection": server }));
    }
    let list = |token: &str| tokens.ask(token, "tools/list", "", json!({}));
    eventually("both are described", || {
        list("all").contains("about-shut") && list("some").contains("about-open")
    });
    let (mut all, all_head) = listener(&tokens, "all");
    let (mut some, some_head) = listener(&tokens, "some");
    // A server goes that one of the tokens cannot see.
    let text = std::fs::read_to_string(tokens.config.path()).unwrap();
    let mut servers: Value = serde_json::from_str(&text).unwrap();
    servers["upstreams"].as_object_mut().unwrap().remove("shut");
    std::fs::write(tokens.config.path(), servers.to_string()).unwrap();
    tokens.server.signal("HUP");
    const CHANGED: &str = "notifications/tools/list_changed";
    all.until(&all_head, CHANGED);
    // Then the token's own list changes: that is the first notification it receives.
    write(&tokens.file, "servers = []");
    some.until(&some_head, CHANGED);
    assert!(!list("some").contains("about-open"));
    // The stream ends with its token, and brought nothing before.
    std::fs::write(&tokens.file, format!("[all]\nsha256 = \"{}\"\n", sha256(&"all".repeat(32)))).unwrap();
    let mut rest = String::new();
    while let Some(piece) = some.piece(&some_head) {
        rest.push_str(&piece);
    }
    assert!(!rest.contains(CHANGED), "one change was told twice: {rest}");
}
