//! The page for people (`--ui`): who gets in, what they see, and what changes something.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::binary::{build_dir, ptc, run};
use ptc_tests::processes::eventually;
use ptc_tests::upstreams::{ConfigFile, Upstreams, stdio};
use ptc_tests::web::{Answer, Browser, WebServer, program, sha256, stateless_body, stateless_headers};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use tempfile::{NamedTempFile, TempDir};

/// Markup, characters that turn and end lines, and quotes.
const HOSTILE: &str =
    "<script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}\u{2028}\"'&\u{1b}[1m\n</pre>";

/// What a policy says that asks about `probe/echo`.
const ASKS: &str = "default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }
[[rule]]
do = \"ask\"
tools = [\"probe/echo\"]
";

/// A server with a page, and its state folder.
struct Site {
    server: WebServer,
    said: Vec<String>,
    _files: (ConfigFile, TempDir, NamedTempFile),
}

impl Site {
    /// With further flags; `PROBE` in the policy is asked about.
    fn start(flags: &[&str]) -> Site {
        let (config, state) = (Upstreams::probe().write(), tempfile::tempdir().unwrap());
        let mut policy = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        write!(policy, "{ASKS}").unwrap();
        let policy_path = policy.path().to_str().unwrap();
        let own = ["--ui", "--sessions", "--policy", policy_path, "--approvals", "wait", "--timeout", "600s"];
        let flags = config.flags(&[&own[..], flags].concat());
        let mut command = ptc(&[&["serve", "--http", "127.0.0.1:0"][..], &flags].concat());
        command.env("XDG_STATE_HOME", state.path());
        let server = WebServer::from_command(command);
        Site { server, said: Vec::new(), _files: (config, state, policy) }
    }

    /// With these tokens by name, each with further lines of its entry.
    fn with_tokens(tokens: &[(&str, &str)]) -> (Site, NamedTempFile) {
        let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        for (name, more) in tokens {
            let hash = sha256(&token(name));
            writeln!(file, "[{name}]\nsha256 = \"{hash}\"\n{more}").unwrap();
        }
        (Site::start(&["--http-tokens", file.path().to_str().unwrap()]), file)
    }

    /// The link that the server has written last.
    fn link(&mut self) -> String {
        eventually("the server writes a link", || {
            self.said.extend(self.server.log());
            self.said.iter().any(|line| line.contains("/ui/open?link="))
        });
        let at = self.said.iter().rposition(|line| line.contains("/ui/open?link=")).unwrap();
        let line = self.said.split_off(at).remove(0);
        format!("/ui/{}", line.split_once("/ui/").unwrap().1)
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.server.connect().at(path).ask("GET", headers, "")
    }

    fn post(&self, path: &str, headers: &[(&str, &str)], form: &str) -> Answer {
        let kind = ("Content-Type", "application/x-www-form-urlencoded");
        let has_kind = headers.iter().any(|(name, _)| *name == "Content-Type");
        let headers = if has_kind { headers.to_vec() } else { [headers, &[kind]].concat() };
        self.server.connect().at(path).ask("POST", &headers, form)
    }

    fn origin(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// A person with a link.
    fn visitor(&mut self) -> Visitor {
        let link = self.link();
        let entered = self.get(&link, &[]);
        assert_eq!(entered.status, 200, "{entered:?}");
        Visitor::new(self, &entered)
    }

    /// A person with a token.
    fn holder(&self, name: &str) -> Visitor {
        let origin = self.origin();
        let entered = self.post("/ui/enter", &[("Origin", &origin)], &format!("token={}", token(name)));
        assert_eq!((entered.status, entered.header("location")), (303, Some("/ui")), "{entered:?}");
        Visitor::new(self, &entered)
    }

    /// Begins a program whose answer is not read yet.
    fn begin(&self, text: &str, headers: &[(&str, &str)]) -> Browser {
        let mut browser = self.server.connect();
        let body = stateless_body(1, "tools/call", program(text));
        browser.send("POST", &[&stateless_headers("tools/call", "lisp_eval")[..], headers].concat(), &body);
        browser
    }
}

fn token(name: &str) -> String {
    format!("{name:x<40}")
}

/// A person who is in.
struct Visitor {
    cookie: String,
    csrf: String,
}

impl Visitor {
    fn new(site: &Site, entered: &Answer) -> Visitor {
        let cookie = entered.header("set-cookie").unwrap();
        for part in ["; Path=/ui", "; HttpOnly", "; SameSite=Strict"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let mut visitor = Visitor { cookie, csrf: String::new() };
        let view = visitor.see(site, "/ui");
        visitor.csrf = between(&view, "name=\"csrf\" value=\"", "\"").to_owned();
        visitor
    }

    fn get(&self, site: &Site, path: &str) -> Answer {
        site.get(path, &[("Cookie", &self.cookie)])
    }

    fn see(&self, site: &Site, path: &str) -> String {
        let answer = self.get(site, path);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }

    /// Waits until a view shows this.
    fn sees(&self, site: &Site, path: &str, text: &str) -> String {
        let mut shown = String::new();
        eventually(text, || {
            shown = self.see(site, path);
            shown.contains(text)
        });
        shown
    }

    fn post(&self, site: &Site, path: &str, form: &str) -> Answer {
        let (origin, form) = (site.origin(), format!("csrf={}&{form}", self.csrf));
        site.post(path, &[("Origin", &origin), ("Cookie", &self.cookie)], &form)
    }

    /// The events of a view.
    fn listen(&self, site: &Site, query: &str) -> (Browser, Answer) {
        let mut browser = site.server.connect();
        browser.at(&format!("/ui/events?{query}")).send("GET", &[("Cookie", &self.cookie)], "");
        let head = browser.head().unwrap();
        (browser, head)
    }
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("no {before:?} in {text}")).1;
    rest.split_once(after).unwrap().0
}

/// The id and digest of the only question.
fn question(view: &str) -> (String, String) {
    let id = between(view, "action=\"/ui/approvals/", "\"").to_owned();
    (id, between(view, "name=\"digest\" value=\"", "\"").to_owned())
}

#[test]
fn a_link_works_once_and_a_visit_can_be_left() {
    let mut site = Site::start(&[]);
    let link = site.link();
    for path in ["/ui", "/ui/runs/1", "/ui/approvals", "/ui/servers", "/ui/sessions", "/ui/events?view=runs"]
    {
        let answer = site.get(path, &[]);
        assert!(answer.status == 401 && !answer.body.contains("probe"), "{path}: {answer:?}");
    }
    assert_eq!(site.get(&link[..link.len() - 1], &[]).status, 403);
    let entered = site.get(&link, &[]);
    assert_eq!(entered.status, 200);
    for _ in 0..2 {
        let again = site.get(&link, &[]);
        assert_eq!((again.status, again.header("set-cookie")), (403, None));
    }
    let visitor = Visitor::new(&site, &entered);
    assert!(visitor.see(&site, "/ui/servers").contains("probe"));
    // Another link is written for those who read the log, and not more than one at a time.
    let origin = site.origin();
    assert_eq!(site.post("/ui/link", &[], "").status, 403);
    assert_eq!(site.post("/ui/link", &[("Origin", &origin)], "").status, 200);
    assert_eq!(site.post("/ui/link", &[("Origin", &origin)], "").status, 429);
    let other = site.visitor();
    assert_ne!(other.cookie, visitor.cookie);
    let (mut events, head) = visitor.listen(&site, "view=runs");
    assert!(events.event(&head).is_some());
    assert_eq!(visitor.post(&site, "/ui/leave", "").status, 200);
    assert_eq!(visitor.get(&site, "/ui").status, 401);
    while events.piece(&head).is_some() {}
    assert_eq!(other.get(&site, "/ui").status, 200);
}

#[test]
fn views_come_with_headers_that_keep_others_out() {
    let mut site = Site::start(&[]);
    let visitor = site.visitor();
    const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
        img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
    for path in
        ["/ui", "/ui/approvals", "/ui/servers", "/ui/sessions", "/ui/page.js", "/ui/page.css", "/ui/open"]
    {
        let answer = visitor.get(&site, path);
        let headers = [
            ("content-security-policy", POLICY),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "same-origin"),
            ("cache-control", "no-store"),
            ("cross-origin-resource-policy", "same-origin"),
        ];
        for (name, value) in headers {
            assert_eq!(answer.header(name), Some(value), "{path}");
        }
        // The policy forbids them, so that they would do nothing.
        assert!(!answer.body.contains("<style") && !answer.body.contains(" style="), "{path}");
        assert!(!answer.body.contains("<script>") && !answer.body.contains(" onclick="), "{path}");
    }
    let foreign = [
        ("Host", "evil.example"),
        ("Origin", "http://evil.example"),
        ("Origin", "http://127.0.0.1:1"),
        ("Origin", "null"),
    ];
    for header in foreign {
        for path in ["/ui", "/ui/approvals", "/ui/events?view=runs", "/ui/open?link=x"] {
            let answer = site.get(path, &[header, ("Cookie", &visitor.cookie)]);
            assert_eq!(answer.status, 403, "{header:?} {path}");
        }
    }
}

#[test]
fn only_a_form_of_the_page_decides() {
    let mut site = Site::start(&[]);
    let visitor = site.visitor();
    let mut run = site.begin("(:reason (tool/call 'probe/echo {:v \"</pre><b>\"}))", &[]);
    let view = visitor.sees(&site, "/ui/approvals", "/ui/approvals/");
    assert!(view.contains("&lt;/pre&gt;&lt;b&gt;") && !view.contains("</pre><b>"), "{view}");
    let (id, digest) = question(&view);
    let path = format!("/ui/approvals/{id}");
    let form = format!("csrf={}&digest={digest}&choice=approve", visitor.csrf);
    let (own, cookie) = (site.origin(), ("Cookie", &*visitor.cookie));
    let origin = ("Origin", &*own);
    type Headers<'h> = &'h [(&'h str, &'h str)];
    let refused: [(&str, Headers<'_>, &str, u16); 12] = [
        ("no cookie", &[origin], &form, 401),
        ("a wrong cookie", &[origin, ("Cookie", "ptc_ui=1")], &form, 401),
        ("no origin", &[cookie], &form, 403),
        ("another port", &[cookie, ("Origin", "http://127.0.0.1:1")], &form, 403),
        ("another host", &[cookie, ("Origin", "http://localhost:1")], &form, 403),
        ("no page", &[cookie, ("Origin", "null")], &form, 403),
        ("another site", &[cookie, origin, ("Sec-Fetch-Site", "cross-site")], &form, 403),
        ("another port of the site", &[cookie, origin, ("Sec-Fetch-Site", "same-site")], &form, 403),
        ("another kind", &[cookie, origin, ("Content-Type", "text/plain")], &form, 415),
        ("no form value", &[cookie, origin], "choice=approve", 403),
        ("a wrong form value", &[cookie, origin], "csrf=x&choice=approve", 403),
        ("a long form", &[cookie, origin], &"x".repeat(20_000), 400),
    ];
    for (what, headers, form, status) in refused {
        let answer = site.post(&path, headers, form);
        assert_eq!(answer.status, status, "{what}: {answer:?}");
    }
    // A GET decides nothing.
    let asked = format!("{path}?{form}");
    assert_eq!(visitor.get(&site, &asked).status, 405);
    let wrong = [
        (format!("digest={digest}"), "no such choice"),
        (format!("digest={digest}&choice=any"), "It is not answered"),
        ("digest=00&choice=approve".to_owned(), "not the one that was shown"),
    ];
    for (form, why) in wrong {
        let answer = visitor.post(&site, &path, &form);
        assert!(answer.status == 409 && answer.body.contains(why), "{answer:?}");
    }
    assert_eq!(visitor.post(&site, "/ui/approvals/0123", "choice=deny").status, 409);
    let done = visitor.post(&site, &path, &format!("digest={digest}&choice=approve"));
    assert!(done.status == 200 && done.body.contains("Approved: probe/echo"), "{done:?}");
    let answer = run.answer();
    assert_eq!(answer.json()["result"]["content"][0]["text"], "nil", "{answer:?}");
    // Once.
    assert_eq!(visitor.post(&site, &path, &format!("digest={digest}&choice=approve")).status, 409);
    let mut run = site.begin("(:reason (tool/call 'probe/echo {:v 2}))", &[]);
    let (id, digest) = question(&visitor.sees(&site, "/ui/approvals", "/ui/approvals/"));
    let denied = visitor.post(&site, &format!("/ui/approvals/{id}"), &format!("digest={digest}&choice=deny"));
    assert!(denied.body.contains("Denied: probe/echo"), "{denied:?}");
    assert_eq!(run.answer().json()["result"]["content"][0]["text"], ":denied");
}

#[test]
fn a_run_grows_with_the_lines_of_its_calls() {
    let mut site = Site::start(&[]);
    let visitor = site.visitor();
    let (mut events, head) = visitor.listen(&site, "view=runs");
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    let first = events.event(&head).unwrap();
    assert_eq!((&first["runs"], &first["waiting"]), (&json!([]), &json!(0)));
    let mut run = site.begin("[(tool/call! 'probe/stats {})\n  (tool/call! 'probe/gather {:n 2})]", &[]);
    let mut calls: Vec<Value> = Vec::new();
    let live = loop {
        let event = events.event(&head).unwrap();
        let Some(live) = event["runs"].get(0) else { continue };
        calls.extend(live["calls"].as_array().cloned().unwrap_or_default());
        if calls.iter().any(|call| call[2] == "probe/gather") {
            break live.clone();
        }
    };
    let of = |calls: &[Value], name: &str| {
        let all = calls.iter().filter(|call| call[2] == name);
        all.map(|call| (call[1].as_u64().unwrap(), call[5].as_u64().unwrap())).next_back().unwrap()
    };
    assert_eq!(of(&calls, "probe/stats"), (1, 1), "{calls:?}");
    assert_eq!(of(&calls, "probe/gather"), (0, 2), "{calls:?}");
    assert!(live["doing"].as_str().unwrap().starts_with("1 in flight"), "{live}");
    let path = format!("/ui/runs/{}", live["n"]);
    let shown = visitor.see(&site, &path);
    assert!(shown.contains("<li class=\"lit\" data-line=\"1\">"), "{shown}");
    assert!(shown.contains("<li class=\"lit open\" data-line=\"2\">"), "{shown}");
    let (mut own, own_head) = visitor.listen(&site, &format!("run={}", live["n"]));
    let event = own.event(&own_head).unwrap();
    assert_eq!((&event["mark"], event["runs"][0]["calls"].as_array().unwrap().len()), (&json!("live"), 2));
    assert_eq!(site.server.eval("(:ok (tool/call 'probe/gather {:n 2}))"), "true");
    assert_eq!(run.answer().status, 200);
    while own.event(&own_head).unwrap()["mark"] != "over" {}
    let over = visitor.see(&site, &path);
    assert!(
        over.contains("<li class=\"lit\" data-line=\"2\">") && over.contains("<h2>Answer</h2>"),
        "{over}"
    );
    assert!(visitor.see(&site, "/ui").contains(&format!("href=\"{path}\"")));
    for none in ["/ui/runs/999", "/ui/runs/x", "/ui/runs/01", "/ui/runs/-1", "/ui/nothing"] {
        assert_eq!(visitor.get(&site, none).status, 404, "{none}");
    }
    for query in ["", "view=x", "run=x", "view=runs&run=1"] {
        assert_eq!(visitor.listen(&site, query).1.status, 404, "{query}");
    }
}

#[test]
fn a_viewer_sees_what_is_of_their_token() {
    let (mut site, _file) = Site::with_tokens(&[("alice", ""), ("bob", "servers = []\n")]);
    site.said.extend(site.server.log());
    assert!(site.said.iter().all(|line| !line.contains("?link=")), "{:?}", site.said);
    let origin = site.origin();
    assert_eq!(site.post("/ui/enter", &[("Origin", &origin)], "token=wrong").status, 401);
    assert_eq!(site.post("/ui/enter", &[("Origin", "http://evil.example")], "token=x").status, 403);
    let (alice, bob) = (site.holder("alice"), site.holder("bob"));
    let bearer = format!("Bearer {}", token("alice"));
    let held = ("Authorization", &*bearer);
    let mut run = site.begin("(str \"of\" \"-alice\" (:ok (tool/call 'probe/echo {:v 1})))", &[held]);
    let view = alice.sees(&site, "/ui/approvals", "/ui/approvals/");
    let (id, digest) = question(&view);
    assert!(alice.see(&site, "/ui").contains("#1"));
    let (mut events, head) = bob.listen(&site, "view=runs");
    let event = events.event(&head).unwrap();
    assert_eq!((&event["runs"], &event["waiting"]), (&json!([]), &json!(0)));
    assert!(!bob.see(&site, "/ui").contains("#1") && !bob.see(&site, "/ui/approvals").contains(&id));
    assert!(alice.see(&site, "/ui/servers").contains("probe"));
    assert!(!bob.see(&site, "/ui/servers").contains("probe"));
    assert_eq!(bob.get(&site, "/ui/runs/1").status, 404);
    let (mut events, head) = bob.listen(&site, "run=1");
    assert_eq!(events.event(&head).unwrap()["runs"], json!([]));
    let path = format!("/ui/approvals/{id}");
    let form = format!("digest={digest}&choice=approve");
    assert_eq!(bob.post(&site, &path, &form).status, 409);
    // The form of one person is of no use to another.
    let mixed = Visitor { cookie: bob.cookie.clone(), csrf: alice.csrf.clone() };
    assert_eq!(mixed.post(&site, &path, &form).status, 403);
    assert_eq!(alice.post(&site, &path, &form).status, 200);
    assert_eq!(run.answer().status, 200);
    assert!(alice.sees(&site, "/ui/runs/1", "Answer").contains("of-alicetrue"));
    assert_eq!(bob.get(&site, "/ui/runs/1").status, 404);
    let body = stateless_body(
        1,
        "tools/call",
        json!({ "name": "lisp_session_start", "arguments": { "title": "hers" } }),
    );
    let headers = [&stateless_headers("tools/call", "lisp_session_start")[..], &[held]].concat();
    assert_eq!(site.server.ask("POST", &headers, &body).status, 200);
    assert!(alice.see(&site, "/ui/sessions").contains("hers"));
    assert!(!bob.see(&site, "/ui/sessions").contains("hers"));
}

#[test]
fn a_client_with_the_only_token_cannot_enter() {
    let token = token("client");
    let mut site = Site::start(&["--http-auth-token", &token]);
    let origin = site.origin();
    let entered = site.post("/ui/enter", &[("Origin", &origin)], &format!("token={token}"));
    assert_eq!(entered.status, 404, "{entered:?}");
    // A person with a link can.
    site.visitor();
}

#[test]
fn a_visit_ends_with_its_token() {
    let (site, mut file) = Site::with_tokens(&[("alice", ""), ("bob", "")]);
    let alice = site.holder("alice");
    let (mut events, head) = alice.listen(&site, "view=runs");
    assert!(events.event(&head).is_some());
    file.as_file_mut().set_len(0).unwrap();
    std::io::Seek::rewind(file.as_file_mut()).unwrap();
    writeln!(file, "[bob]\nsha256 = \"{}\"", sha256(&token("bob"))).unwrap();
    eventually("the visit ends", || alice.get(&site, "/ui").status == 401);
    while events.piece(&head).is_some() {}
    assert_eq!(alice.post(&site, "/ui/leave", "").status, 401);
}

#[test]
fn texts_of_servers_and_programs_are_text_in_every_view() {
    let mut file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    let tool = json!({ "description": HOSTILE, "args": { "a": "string" }, "rows": "t",
        "annotations": { "title": HOSTILE } });
    let named = format!("tool{HOSTILE}");
    let refusing =
        json!({ "description": "", "args": { "a": "string" }, "one": "t", "refuse": ["a", "x", HOSTILE] });
    let tables = json!({ HOSTILE: { "tables": { "t": [{ "a": "x", "b": HOSTILE }] },
        "tools": { named: tool, "fails": refusing, "gives": { "description": "", "args": {}, "rows": "t" } } } });
    write!(file, "{tables}").unwrap();
    let table_server = build_dir().join("table-server");
    let mut entry = stdio(table_server.to_str().unwrap(), &[file.path().to_str().unwrap(), HOSTILE]);
    entry["description"] = HOSTILE.into();
    let config = Upstreams::default().add("bad", entry).write();
    let flags = config.flags(&["--ui", "--sessions"]);
    let server = WebServer::start(&flags);
    let mut site = Site {
        server,
        said: Vec::new(),
        _files: (Upstreams::default().write(), tempfile::tempdir().unwrap(), NamedTempFile::new().unwrap()),
    };
    let visitor = site.visitor();
    let quoted = serde_json::to_string(&format!("{HOSTILE}</code></li>")).unwrap();
    let program = format!(
        "; {}\n(do (println {quoted}) [(tool/call 'bad/fails {{:a \"x\"}}) (tool/call 'bad/gives {{}})])",
        HOSTILE.replace(['\n', '\u{2028}'], " ")
    );
    let _ = site.server.eval(&program);
    let start = json!({ "name": "lisp_session_start", "arguments": { "title": HOSTILE } });
    let body = stateless_body(1, "tools/call", start);
    let answer = site.server.ask("POST", &stateless_headers("tools/call", "lisp_session_start"), &body);
    let session = answer.json()["result"]["structuredContent"]["session_id"].as_str().unwrap().to_owned();
    let define = json!({ "name": "lisp_session_eval", "arguments": { "session_id": session,
        "program": format!("(def x {quoted})") } });
    let body = stateless_body(1, "tools/call", define);
    assert_eq!(
        site.server.ask("POST", &stateless_headers("tools/call", "lisp_session_eval"), &body).status,
        200
    );
    let (mut events, head) = visitor.listen(&site, "view=runs");
    let event = events.event(&head).unwrap().to_string();
    let mut shown = 0;
    let views =
        ["/ui", "/ui/runs/1", "/ui/runs/2", "/ui/runs/3", "/ui/servers", "/ui/sessions", "/ui/approvals"];
    for (path, view) in
        views.map(|path| (path, visitor.see(&site, path))).into_iter().chain([("events", event)])
    {
        assert!(!view.contains("<script>") && !view.contains("<img"), "{path}: {view}");
        assert!(!view.contains(['\u{202e}', '\u{2028}', '\u{1b}']), "{path}: {view}");
        shown += view.matches("&lt;script&gt;").count();
    }
    assert!(shown > 10, "the texts are shown: {shown}");
    let run = visitor.see(&site, "/ui/runs/1");
    assert!(run.contains("Failures") && run.contains("\\u202e"), "{run}");
}

#[test]
fn streams_are_bounded() {
    let mut site = Site::start(&[]);
    let visitor = site.visitor();
    let open: Vec<_> = (0..8).map(|_| visitor.listen(&site, "view=servers")).collect();
    assert!(open.iter().all(|(_, head)| head.status == 200));
    assert_eq!(visitor.listen(&site, "view=servers").1.status, 429);
    drop(open);
    eventually("a stream is free again", || visitor.listen(&site, "view=servers").1.status == 200);
}

#[test]
fn the_page_is_for_this_machine_unless_issuers_are_known() {
    let refused = |flags: &[&str]| run(ptc(&[&["serve", "--ui"][..], flags].concat()), "");
    let token = "x".repeat(40);
    let far = refused(&["--http", "0.0.0.0:0", "--http-auth-token", &token]);
    assert!(
        far.code == Some(2) && far.stderr.contains("--ui beyond this machine needs --http-oauth"),
        "{far:?}"
    );
    for flags in [["--http-path", "/ui"], ["--http-path", "/ui/x"]] {
        let same = refused(&[&["--http", "127.0.0.1:0"], &flags[..]].concat());
        assert!(same.code == Some(2) && same.stderr.contains("(/ui)"), "{same:?}");
    }
    // Without the flag there is no page.
    let server = WebServer::start(&[]);
    assert_eq!(server.get("/ui").status, 404);
}

#[test]
fn ptc_ui_prints_a_link_to_a_server_that_it_starts() {
    let config = Upstreams::probe().write();
    let mut child = ptc(&[&["ui"][..], &config.flags(&[])].concat()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().split_once("http://").unwrap().1.to_owned();
    let (address, path) = url.split_once('/').unwrap();
    let ask = |path: &str, cookie: &str| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nCookie: {cookie}\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
        answer
    };
    let entered = ask(path, "");
    let cookie = between(&entered, "set-cookie: ", ";").to_owned();
    assert!(ask("ui/servers", &cookie).contains("probe"));
    assert!(ask(path, "").starts_with("HTTP/1.1 403"));
    // Its MCP endpoint is closed.
    assert!(ask("mcp", &cookie).starts_with("HTTP/1.1 401"));
    ptc_tests::processes::signal(child.id(), "TERM");
    assert!(child.wait().unwrap().success());
}
