//! An MCP server with its own authorization server: registration, codes with PKCE, rotated refresh tokens. It revokes a
//! login when a refresh token is used twice. A test may replace any answer.

#![allow(clippy::disallowed_methods, reason = "threads of a test end with it")]

mod reply;

pub use reply::Reply;

use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Asked {
    /// GET or POST.
    pub method: String,
    /// Without the query.
    pub path: String,
    /// The query.
    pub query: String,
    headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Asked {
    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A field of the form, or of the query.
    pub fn field(&self, name: &str) -> Option<String> {
        let text = if self.method == "POST" { &self.body } else { &self.query };
        pairs(text).into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// How the server behaves.
#[derive(Clone, Debug)]
pub struct Habits {
    /// Seconds that an access token lives.
    pub life: u64,
    /// `expires_in` is in the answer.
    pub says_life: bool,
    /// A refresh gives a new refresh token, and the old one is used up.
    pub rotates: bool,
    /// Members to replace in the metadata of the authorization server; `null` removes one.
    pub metadata: Value,
    /// No code is exchanged, and the error shows all secrets.
    pub refuses_codes: bool,
    /// How long a refresh takes.
    pub refresh_delay: Duration,
}

impl Default for Habits {
    fn default() -> Habits {
        Habits {
            life: 3600,
            says_life: true,
            rotates: true,
            metadata: json!({}),
            refuses_codes: false,
            refresh_delay: Duration::ZERO,
        }
    }
}

#[derive(Default)]
struct State {
    made: usize,
    clients: HashMap<String, Value>,
    codes: HashMap<String, HashMap<String, String>>,
    /// Codes of devices, and how often they are still pending.
    devices: HashMap<String, usize>,
    access: HashMap<String, Grant>,
    refresh: HashMap<String, Grant>,
    used: HashSet<String>,
    revoked: HashSet<usize>,
    asked: Vec<Asked>,
}

#[derive(Clone)]
struct Grant {
    family: usize,
    ends: Instant,
    scope: String,
    client: String,
}

type Answer = dyn Fn(&OAuthServer, &Asked) -> Option<Reply> + Send + Sync;

/// The server. Clones are the same one; it ends with the test's process.
#[derive(Clone)]
pub struct OAuthServer {
    port: u16,
    habits: Arc<Mutex<Habits>>,
    state: Arc<Mutex<State>>,
    /// The authorization server, if it is another one.
    authority: Option<String>,
    answer: Arc<Answer>,
}

impl OAuthServer {
    /// A server with these habits.
    pub fn start(habits: Habits) -> OAuthServer {
        OAuthServer::answering(habits, |_, _| None)
    }

    /// A server that asks `answer` first.
    pub fn answering(
        habits: Habits,
        answer: impl Fn(&OAuthServer, &Asked) -> Option<Reply> + Send + Sync + 'static,
    ) -> OAuthServer {
        OAuthServer::listening(habits, Arc::default(), None, Arc::new(answer))
    }

    /// Another server that accepts the tokens of this one, and names it as its authorization server.
    pub fn neighbour(&self) -> OAuthServer {
        let habits = self.habits.lock().unwrap().clone();
        OAuthServer::listening(habits, self.state.clone(), Some(self.url("")), self.answer.clone())
    }

    fn listening(
        habits: Habits,
        state: Arc<Mutex<State>>,
        authority: Option<String>,
        answer: Arc<Answer>,
    ) -> OAuthServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = OAuthServer {
            port: listener.local_addr().unwrap().port(),
            habits: Arc::new(Mutex::new(habits)),
            state,
            authority,
            answer,
        };
        let accepting = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let server = accepting.clone();
                std::thread::spawn(move || server.serve(stream));
            }
        });
        server
    }

    /// An address below this server.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Changes the habits.
    pub fn set(&self, change: impl FnOnce(&mut Habits)) {
        change(&mut self.habits.lock().unwrap());
    }

    /// The requests so far to paths that begin with this one.
    pub fn asked(&self, path: &str) -> Vec<Asked> {
        self.state
            .lock()
            .unwrap()
            .asked
            .iter()
            .filter(|asked| asked.path.starts_with(path))
            .cloned()
            .collect()
    }

    /// Number of requests for tokens with this grant.
    pub fn grants(&self, grant: &str) -> usize {
        let asked = self.asked("/token");
        asked.iter().filter(|asked| asked.field("grant_type").as_deref() == Some(grant)).count()
    }

    /// Number of logins that were revoked because a refresh token was used twice.
    pub fn revoked(&self) -> usize {
        self.state.lock().unwrap().revoked.len()
    }

    /// The client that has this access token; of one with an identity assertion, the claims of its subject.
    pub fn account(&self, token: &str) -> Option<String> {
        self.state.lock().unwrap().access.get(token).map(|grant| grant.client.clone())
    }

    /// Ends all access tokens.
    pub fn end_access(&self) {
        self.state.lock().unwrap().access.clear();
    }

    /// Ends all refresh tokens.
    pub fn end_refresh(&self) {
        self.state.lock().unwrap().refresh.clear();
    }

    /// All secrets that it has given out, and those that it was sent.
    pub fn secrets(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let mut all: Vec<String> =
            state.access.keys().chain(state.refresh.keys()).chain(&state.used).cloned().collect();
        all.extend(state.codes.keys().chain(state.devices.keys()).cloned());
        all.extend(
            state.clients.values().filter_map(|client| client["client_secret"].as_str().map(str::to_owned)),
        );
        for asked in &state.asked {
            let fields = ["code", "code_verifier", "refresh_token", "client_secret"];
            all.extend(fields.iter().filter_map(|field| asked.field(field)));
        }
        all.sort();
        all.dedup();
        all
    }

    /// The secrets that are still good for something: neither used codes and verifiers, nor refresh tokens that were
    /// replaced.
    pub fn live_secrets(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let tokens =
            state.access.keys().chain(state.refresh.keys().filter(|token| !state.used.contains(*token)));
        let clients = state.clients.values().filter_map(|client| client["client_secret"].as_str());
        tokens.map(String::as_str).chain(clients).map(str::to_owned).collect()
    }

    fn next(&self, what: &str) -> String {
        let mut state = self.state.lock().unwrap();
        state.made += 1;
        format!("{what}-{}-{}-Zq7Xw9Kd2Lm", self.port, state.made)
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while let Some(asked) = read(&mut reader) {
            self.state.lock().unwrap().asked.push(asked.clone());
            let reply = (self.answer)(self, &asked).unwrap_or_else(|| self.usual(&asked));
            let mut text = format!("HTTP/1.1 {} Some\r\n", reply.status);
            for (name, value) in &reply.headers {
                text += &format!("{name}: {value}\r\n");
            }
            match &reply.rest {
                None => text += &format!("content-length: {}\r\n\r\n{}", reply.body.len(), reply.body),
                Some(_) => text += &format!("connection: close\r\n\r\n{}", reply.body),
            }
            if stream.write_all(text.as_bytes()).is_err() {
                return;
            }
            if let Some(rest) = reply.rest {
                let rest = rest.lock().unwrap();
                while rest.recv().is_ok_and(|text| stream.write_all(text.as_bytes()).is_ok()) {}
                return;
            }
        }
    }

    /// The answer of a server that does everything right.
    pub fn usual(&self, asked: &Asked) -> Reply {
        match asked.path.as_str() {
            "/mcp" => self.mcp(asked),
            "/.well-known/oauth-protected-resource/mcp" => Reply::json(&self.resource()),
            "/.well-known/oauth-authorization-server" => Reply::json(&self.metadata()),
            "/register" => self.register(asked),
            "/authorize" => self.authorize(asked),
            "/token" => self.token(asked),
            "/revoke" => self.revoke(asked),
            "/device" => self.device(),
            _ => Reply::status(404),
        }
    }

    /// The metadata of the resource.
    pub fn resource(&self) -> Value {
        let authority = self.authority.clone().unwrap_or_else(|| self.url(""));
        json!({ "resource": self.url("/mcp"), "authorization_servers": [authority], "scopes_supported": ["read"] })
    }

    /// The metadata of the authorization server.
    pub fn metadata(&self) -> Value {
        let mut metadata = json!({
            "issuer": self.url(""),
            "authorization_endpoint": self.url("/authorize"),
            "token_endpoint": self.url("/token"),
            "registration_endpoint": self.url("/register"),
            "revocation_endpoint": self.url("/revoke"),
            "device_authorization_endpoint": self.url("/device"),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "authorization_response_iss_parameter_supported": true,
        });
        for (name, value) in self.habits.lock().unwrap().metadata.as_object().unwrap() {
            match value {
                Value::Null => drop(metadata.as_object_mut().unwrap().remove(name)),
                value => metadata[name] = value.clone(),
            }
        }
        metadata
    }

    fn register(&self, asked: &Asked) -> Reply {
        let mut client = asked.json();
        assert_eq!(client["application_type"], "native", "{asked:?}");
        let id = self.next("client");
        client["client_id"] = id.clone().into();
        if client["token_endpoint_auth_method"] != "none" {
            client["client_secret"] = self.next("client-secret").into();
        }
        self.state.lock().unwrap().clients.insert(id, client.clone());
        Reply::error(201, &client)
    }

    /// Registers a client by hand.
    pub fn add_client(&self, id: &str, secret: Option<&str>, redirect_uri: &str) {
        let client = json!({ "client_id": id, "client_secret": secret, "redirect_uris": [redirect_uri] });
        self.state.lock().unwrap().clients.insert(id.into(), client);
    }

    /// The person agrees at once.
    fn authorize(&self, asked: &Asked) -> Reply {
        let fields: HashMap<String, String> = pairs(&asked.query).into_iter().collect();
        let get = |name: &str| fields.get(name).cloned().unwrap_or_default();
        let clients = self.state.lock().unwrap().clients.clone();
        let known = clients.get(&get("client_id"));
        let redirects =
            known.and_then(|client| client["redirect_uris"].as_array().cloned()).unwrap_or_default();
        if !redirects.iter().any(|uri| *uri == get("redirect_uri")) {
            return Reply::error(400, &json!({ "error": "unknown client or redirect", "fields": fields }));
        }
        assert_eq!((get("code_challenge_method").as_str(), get("response_type").as_str()), ("S256", "code"));
        assert!(!get("resource").is_empty(), "{asked:?}");
        let code = self.next("code");
        self.state.lock().unwrap().codes.insert(code.clone(), fields.clone());
        let issuer = self.metadata()["issuer"].as_str().unwrap().to_owned();
        let answer = [("code", code), ("state", get("state")), ("iss", issuer)];
        let answer = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(answer).finish();
        Reply::status(302).header("location", &format!("{}?{answer}", get("redirect_uri")))
    }

    fn token(&self, asked: &Asked) -> Reply {
        let refuse = |error: &str| Reply::error(400, &json!({ "error": error, "error_description": "no" }));
        let get = |name: &str| asked.field(name).unwrap_or_default();
        if get("resource").is_empty() {
            return refuse("invalid_target");
        }
        match get("grant_type").as_str() {
            "authorization_code" if self.habits.lock().unwrap().refuses_codes => {
                let secrets = self.secrets().join(" ");
                Reply::error(400, &json!({ "error": "invalid_grant", "error_description": secrets }))
            }
            "authorization_code" => {
                let Some(fields) = self.state.lock().unwrap().codes.remove(&get("code")) else {
                    return refuse("invalid_grant");
                };
                let verifier = digest(&get("code_verifier"));
                if verifier != fields["code_challenge"] || get("redirect_uri") != fields["redirect_uri"] {
                    return refuse("invalid_grant");
                }
                let family = self.state.lock().unwrap().made;
                let scope = fields.get("scope").cloned().unwrap_or_default();
                Reply::json(&self.issue(family, &scope, &fields["client_id"], None))
            }
            "refresh_token" => {
                std::thread::sleep(self.habits.lock().unwrap().refresh_delay);
                let token = get("refresh_token");
                let mut state = self.state.lock().unwrap();
                let Some(grant) = state.refresh.get(&token).cloned() else { return refuse("invalid_grant") };
                if state.revoked.contains(&grant.family) {
                    return refuse("invalid_grant");
                }
                if self.habits.lock().unwrap().rotates && !state.used.insert(token.clone()) {
                    state.revoked.insert(grant.family);
                    state.access.retain(|_, access| access.family != grant.family);
                    return refuse("invalid_grant");
                }
                drop(state);
                Reply::json(&self.issue(grant.family, &grant.scope, &grant.client, Some(token)))
            }
            "urn:ietf:params:oauth:grant-type:device_code" => {
                let mut state = self.state.lock().unwrap();
                let Some(waits) = state.devices.get_mut(&get("device_code")) else {
                    return refuse("invalid_grant");
                };
                if *waits > 0 {
                    *waits -= 1;
                    return refuse("authorization_pending");
                }
                let family = state.made;
                drop(state);
                Reply::json(&self.issue(family, "read", &get("client_id"), None))
            }
            // As the identity provider of the company: the grant vouches for the subject of the token.
            "urn:ietf:params:oauth:grant-type:token-exchange" => Reply::json(&json!({
                "access_token": format!("jag.{}", get("subject_token")), "token_type": "N_A",
                "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            })),
            "urn:ietf:params:oauth:grant-type:jwt-bearer" => {
                let family = self.state.lock().unwrap().made;
                let claims = get("assertion").split('.').nth(2).unwrap_or_default().to_owned();
                let mut answer = self.issue(family, "read", &claims, None);
                answer.as_object_mut().unwrap().remove("refresh_token");
                Reply::json(&answer)
            }
            "client_credentials" => {
                let pair = asked.header("authorization").unwrap_or_default();
                let is_known = pair == "Basic bWFjaGluZTptYWNoaW5lLXNlY3JldC1acTdYdzk="
                    || !get("client_assertion").is_empty();
                if !is_known {
                    return Reply::error(401, &json!({ "error": "invalid_client" }));
                }
                let family = self.state.lock().unwrap().made;
                let mut answer = self.issue(family, &get("scope"), "machine", None);
                answer.as_object_mut().unwrap().remove("refresh_token");
                Reply::json(&answer)
            }
            _ => refuse("unsupported_grant_type"),
        }
    }

    /// A code that the second question for tokens finds typed.
    fn device(&self) -> Reply {
        let code = self.next("device-code");
        self.state.lock().unwrap().devices.insert(code.clone(), 1);
        Reply::json(&json!({
            "device_code": code, "user_code": "WDJB-MJHT", "verification_uri": self.url("/type"),
            "expires_in": 600, "interval": 0,
        }))
    }

    fn issue(&self, family: usize, scope: &str, client: &str, refreshed: Option<String>) -> Value {
        let (access, refresh) = (self.next("access"), self.next("refresh"));
        let habits = self.habits.lock().unwrap().clone();
        let ends = Instant::now() + Duration::from_secs(habits.life);
        let grant = Grant { family, ends, scope: scope.into(), client: client.into() };
        let mut state = self.state.lock().unwrap();
        state.access.insert(access.clone(), grant.clone());
        let mut answer = json!({ "access_token": access, "token_type": "Bearer", "scope": scope });
        if habits.says_life {
            answer["expires_in"] = habits.life.into();
        }
        if refreshed.is_none() || habits.rotates {
            state.refresh.insert(refresh.clone(), grant);
            answer["refresh_token"] = refresh.into();
        }
        answer
    }

    fn revoke(&self, asked: &Asked) -> Reply {
        let token = asked.field("token").unwrap_or_default();
        let mut state = self.state.lock().unwrap();
        state.access.remove(&token);
        state.refresh.remove(&token);
        Reply::status(200)
    }

    /// The challenge of a 401.
    pub fn challenge(&self) -> String {
        let metadata = self.url("/.well-known/oauth-protected-resource/mcp");
        format!("Bearer resource_metadata=\"{metadata}\"")
    }

    fn mcp(&self, asked: &Asked) -> Reply {
        let token =
            asked.header("authorization").and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        let grant = self.state.lock().unwrap().access.get(token).cloned();
        let Some(grant) = grant.filter(|grant| Instant::now() < grant.ends) else {
            return Reply::status(401).header("www-authenticate", &self.challenge());
        };
        let message = asked.json();
        if asked.method != "POST" {
            return Reply::status(405);
        }
        let tool = message["params"]["name"].as_str().unwrap_or_default();
        if tool == "admin" && !grant.scope.split(' ').any(|scope| scope == "admin") {
            let challenge = format!("{}, error=\"insufficient_scope\", scope=\"admin\"", self.challenge());
            return Reply::status(403).header("www-authenticate", &challenge);
        }
        if message["id"].is_null() {
            return Reply::status(202);
        }
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "hosted", "version": "1" },
            }),
            "tools/list" => {
                let tools = ["echo", "admin"].map(|name| json!({ "name": name, "inputSchema": {} }));
                json!({ "tools": tools })
            }
            "tools/call" => json!({ "content": [], "structuredContent": message["params"]["arguments"] }),
            "ping" => json!({}),
            _ => {
                let error = json!({ "code": -32601, "message": "Method not found" });
                return Reply::json(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }));
            }
        };
        Reply::json(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
    }
}

/// The challenge of a verifier, by Python: not by the code under test.
fn digest(verifier: &str) -> String {
    let script = "import base64,hashlib,sys;print(base64.urlsafe_b64encode(hashlib.sha256(sys.argv[1].encode())\
        .digest()).decode().rstrip('='))";
    let output = std::process::Command::new("python3").args(["-c", script, verifier]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The pairs of a form.
pub fn pairs(text: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let line = |reader: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0).map(|_| line.trim_end().to_owned())
    };
    let first = line(reader)?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let header = line(reader)?;
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':')?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map(|(_, value)| value.parse().unwrap());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (path, query) = (path.to_owned(), query.to_owned());
    Some(Asked { method, path, query, headers, body: String::from_utf8(body).ok()? })
}

/// Fetches an address without following redirects: status and Location.
pub fn visit(address: &str) -> (u16, Option<String>) {
    let url = url::Url::parse(address).unwrap();
    let mut stream = TcpStream::connect((url.host_str().unwrap(), url.port().unwrap())).unwrap();
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let (path, host, port) = (url.path(), url.host_str().unwrap(), url.port().unwrap());
    let request = format!("GET {path}{query} HTTP/1.1\r\nhost: {host}:{port}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap() == 0 || line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
    let location = lines.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    });
    (status, location)
}
