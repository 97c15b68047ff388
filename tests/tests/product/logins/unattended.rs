//! Logins without a person and the sessions of servers: a session goes on with the next token of the same account, and no
//! request names it with the token of another.

use super::User;
use ptc_tests::oauth::{Asked, Habits, OAuthServer, Reply};
use ptc_tests::serve::Server;
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const CALL: &str =
    "(let [r (tool/call {:server \"hosted\" :tool \"echo\" :args {:a 1}})] [(:ok r) (:reason r)])";

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// A server with a session for each account, which has `initialize` answered for everyone.
struct Accounts {
    server: OAuthServer,
    /// The accounts for which sessions began.
    begun: Arc<Mutex<Vec<String>>>,
    /// Requests that name a session with a token of another account.
    foreign: Arc<AtomicUsize>,
    /// No token is good.
    refuses: Arc<AtomicBool>,
}

impl Accounts {
    fn start() -> Accounts {
        let begun: Arc<Mutex<Vec<String>>> = Arc::default();
        let (foreign, refuses): (Arc<AtomicUsize>, Arc<AtomicBool>) = (Arc::default(), Arc::default());
        let (list, count, refusing) = (begun.clone(), foreign.clone(), refuses.clone());
        let server = OAuthServer::answering(Habits::default(), move |server, asked: &Asked| {
            let token = asked.header("authorization").unwrap_or_default().replace("Bearer ", "");
            let account = server.account(&token);
            match (asked.json()["method"].as_str(), asked.header("mcp-session-id"), account) {
                (Some("initialize"), _, Some(account)) => {
                    list.lock().unwrap().push(account.clone());
                    Some(server.usual(asked).header("mcp-session-id", &account))
                }
                (_, Some(session), Some(account)) if session != account => {
                    count.fetch_add(1, Ordering::Relaxed);
                    Some(Reply::status(403))
                }
                (Some("tools/call"), _, Some(_)) if refusing.load(Ordering::Relaxed) => {
                    Some(Reply::status(401).header("www-authenticate", &server.challenge()))
                }
                _ => None,
            }
        });
        Accounts { server, begun, foreign, refuses }
    }

    fn user(&self, mut auth: Value) -> User {
        auth["scheme"] = "oauth".into();
        auth["issuer"] = self.server.url("").into();
        auth["client"] = json!({ "id": "machine", "secret": "own" });
        let entry = json!({ "transport": "mcp_http", "url": self.server.url("/mcp"), "auth": [auth] });
        let secret = json!({ "source": "literal", "value": "machine-secret-Zq7Xw9" });
        User::with(json!({ "hosted": entry }), json!({ "own": secret }))
    }

    fn begun(&self) -> usize {
        assert_eq!(self.foreign.load(Ordering::Relaxed), 0, "no session with a token of another account");
        self.begun.lock().unwrap().len()
    }
}

fn serve(user: &User) -> Server {
    Server::offering(user.command(&["serve", "--timeout", "20s"]), json!({}))
}

#[test]
fn a_session_of_the_client_itself_goes_on_with_its_next_token() {
    let accounts = Accounts::start();
    let user = accounts.user(json!({ "grant": "client_credentials", "scopes": ["read"] }));
    let mut serve = serve(&user);
    for round in 1..=3 {
        assert_eq!(serve.text(CALL), "[true nil]");
        assert_eq!((accounts.begun(), accounts.server.grants("client_credentials")), (1, round));
        accounts.server.end_access();
    }
    assert_eq!(serve.end(), Some(0));
}

/// An ID token of this person, the `number`th.
fn id_token(person: &str, number: u32) -> String {
    use base64::Engine as _;
    let claims = json!({ "iss": "https://idp.example", "sub": person }).to_string();
    format!("e30.{}.c2lnbmF0dXJl{number}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims))
}

#[test]
fn a_session_of_a_vouched_person_goes_on_until_another_person_is_vouched_for() {
    let accounts = Accounts::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("id-token");
    fs::write(&file, id_token("ann", 1)).unwrap();
    let idp = json!({
        "issuer": accounts.server.url(""), "id_token_file": file, "client": { "id": "machine", "secret": "own" },
    });
    let user = accounts.user(json!({ "grant": "id_jag", "idp": idp }));
    let mut serve = serve(&user);
    for (person, number, sessions) in
        [("ann", 1, 1), ("ann", 2, 1), ("bob", 3, 2), ("bob", 4, 2), ("ann", 5, 3)]
    {
        fs::write(&file, id_token(person, number)).unwrap();
        accounts.server.end_access();
        assert_eq!(serve.text(CALL), "[true nil]", "{person} {number}");
        assert_eq!(accounts.begun(), sessions, "{person} {number}");
    }
    // A server that takes no token of the person is asked twice, and begins no sessions for that.
    let exchanges = accounts.server.grants(EXCHANGE);
    accounts.refuses.store(true, Ordering::Relaxed);
    assert_eq!(serve.text(CALL), "[false :login_required]");
    assert!(
        accounts.server.grants(EXCHANGE) <= exchanges + 2,
        "{}",
        accounts.server.grants(EXCHANGE) - exchanges
    );
    assert_eq!((accounts.begun(), serve.end()), (3, Some(0)));
}
