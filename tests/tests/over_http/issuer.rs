//! An issuer of signed tokens: its metadata and keys over HTTP, and tokens of every kind, right and wrong.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]
#![allow(clippy::disallowed_methods, reason = "threads of a test end with it")]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ptc_tests::upstreams::ConfigFile;
use ptc_tests::web::{Answer, WebServer, program, stateless_body, stateless_headers};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// The resource of the tests.
pub(super) const RESOURCE: &str = "https://ptc.example/mcp";

/// An RSA key, PKCS #8.
const RSA_KEY: &[u8] = include_bytes!("issuer_key.der");

/// An issuer that listens.
pub(super) struct Issuer {
    pub(super) url: String,
    served: Arc<Mutex<Served>>,
    elliptic: EcdsaKeyPair,
    rsa: RsaKeyPair,
}

#[derive(Default)]
struct Served {
    asked: Vec<String>,
    keys: Value,
    is_down: bool,
    metadata_issuer: Option<String>,
    jwks_uri: Option<String>,
    /// A path, and where it redirects to.
    redirect: Option<(String, String)>,
    /// Paths with documents of their own.
    documents: Vec<(String, Value)>,
}

impl Issuer {
    pub(super) fn start() -> Issuer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = Arc::new(Mutex::new(Served::default()));
        let (shared, own) = (served.clone(), url.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut reader = BufReader::new(stream);
                let mut line = String::new();
                let _ = reader.read_line(&mut line);
                let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
                let mut rest = String::new();
                while reader.read_line(&mut rest).is_ok_and(|read| read > 2) {
                    rest.clear();
                }
                let (status, body, location) = {
                    let mut served = shared.lock().unwrap();
                    let (status, body) = served.answer(&path, &own);
                    let redirect = served.redirect.as_ref().filter(|(from, _)| *from == path);
                    match redirect {
                        Some((_, to)) => (302, String::new(), format!("location: {to}\r\n")),
                        None => (status, body, String::new()),
                    }
                };
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\n{location}content-length: {}\r\n\r\n",
                    body.len()
                );
                let _ = reader.get_mut().write_all((head + &body).as_bytes());
            }
        });
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let elliptic =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap();
        let rsa = RsaKeyPair::from_pkcs8(RSA_KEY).unwrap();
        let issuer = Issuer { url, served, elliptic, rsa };
        issuer.served.lock().unwrap().keys =
            json!({ "keys": [issuer.elliptic_key("e1"), issuer.rsa_key("r1")] });
        issuer
    }

    /// Its elliptic key as it is published.
    pub(super) fn elliptic_key(&self, id: &str) -> Value {
        let point = self.elliptic.public_key().as_ref();
        json!({ "kty": "EC", "crv": "P-256", "kid": id, "use": "sig", "x": encoded(&point[1..33]), "y": encoded(&point[33..]) })
    }

    pub(super) fn rsa_key(&self, id: &str) -> Value {
        let public: ring::rsa::PublicKeyComponents<Vec<u8>> = self.rsa.public().into();
        json!({ "kty": "RSA", "kid": id, "use": "sig", "n": encoded(&public.n), "e": encoded(&public.e) })
    }

    /// The RSA key as a text that a careless server might take for a shared secret.
    pub(super) fn rsa_public_bytes(&self) -> Vec<u8> {
        self.rsa.public().as_ref().to_vec()
    }

    /// How often a path was asked for.
    pub(super) fn asked(&self, path: &str) -> usize {
        self.served.lock().unwrap().asked.iter().filter(|asked| *asked == path).count()
    }

    /// Answers nothing but errors from now on.
    pub(super) fn fail(&self) {
        self.served.lock().unwrap().is_down = true;
    }

    /// Names another issuer in its metadata.
    pub(super) fn pretend(&self, issuer: &str) {
        self.served.lock().unwrap().metadata_issuer = Some(issuer.to_owned());
    }

    /// Says that its keys are there.
    pub(super) fn point_to(&self, jwks_uri: &str) {
        self.served.lock().unwrap().jwks_uri = Some(jwks_uri.to_owned());
    }

    /// Redirects from a path of its own to this address.
    pub(super) fn redirect(&self, path: &str, to: &str) {
        self.served.lock().unwrap().redirect = Some((path.to_owned(), to.to_owned()));
    }

    /// Answers a path with this document.
    pub(super) fn publish(&self, path: &str, document: Value) {
        self.served.lock().unwrap().documents.push((path.to_owned(), document));
    }

    /// Claims of a good token for this subject, valid for ten minutes.
    pub(super) fn claims(&self, subject: &str, scope: &str) -> Value {
        let now = now();
        json!({ "iss": self.url, "aud": RESOURCE, "sub": subject, "scope": scope, "iat": now, "exp": now + 600 })
    }

    /// A good token with these claims.
    pub(super) fn token(&self, claims: &Value) -> String {
        self.signed(&json!({ "alg": "ES256", "typ": "at+jwt", "kid": "e1" }), claims)
    }

    /// A token with this header, signed with the elliptic key whatever the header says.
    pub(super) fn signed(&self, header: &Value, claims: &Value) -> String {
        self.signed_text(&header.to_string(), &claims.to_string())
    }

    /// The same with these JSON texts.
    pub(super) fn signed_text(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", encoded(header.as_bytes()), encoded(claims.as_bytes()));
        let signature = self.elliptic.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", encoded(signature.as_ref()))
    }

    /// A token that is signed with the RSA key.
    pub(super) fn signed_by_rsa(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let mut signature = vec![0; self.rsa.public().modulus_len()];
        self.rsa.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature).unwrap();
        format!("{message}.{}", encoded(&signature))
    }
}

impl Served {
    fn answer(&mut self, path: &str, url: &str) -> (u16, String) {
        self.asked.push(path.to_owned());
        if let Some((_, document)) = self.documents.iter().find(|(own, _)| own == path) {
            return (200, document.to_string());
        }
        match path {
            _ if self.is_down => (503, "{}".to_owned()),
            "/.well-known/openid-configuration" => {
                let issuer = self.metadata_issuer.as_deref().unwrap_or(url);
                let keys = self.jwks_uri.clone().unwrap_or(format!("{url}/keys"));
                (200, json!({ "issuer": issuer, "jwks_uri": keys }).to_string())
            }
            "/keys" => (200, self.keys.to_string()),
            _ => (404, "{}".to_owned()),
        }
    }
}

/// A token that is signed with a shared secret.
pub(super) fn signed_by_secret(header: &Value, claims: &Value, secret: &[u8]) -> String {
    let message = message(header, claims);
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message.as_bytes());
    format!("{message}.{}", encoded(tag.as_ref()))
}

fn message(header: &Value, claims: &Value) -> String {
    format!("{}.{}", encoded(header.to_string().as_bytes()), encoded(claims.to_string().as_bytes()))
}

pub(super) fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A server that accepts the tokens of an issuer.
pub(super) struct Guarded {
    pub(super) server: WebServer,
    pub(super) file: PathBuf,
    _folder: TempDir,
    _config: ConfigFile,
}

/// The grants of the tests.
pub(super) const GRANTS: &str = "[[grant]]\nscope = \"mcp:open\"\nservers = [\"open\"]\n\
    [[grant]]\nscope = \"mcp:shut\"\nservers = [\"shut\"]\n\
    [[grant]]\nclaim = \"/realm/roles\"\nhas = \"admin\"\n";

impl Guarded {
    pub(super) fn start(issuer: &Issuer, config: ConfigFile, more: &[&str]) -> Guarded {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("oauth.toml");
        std::fs::write(&file, written(&issuer.url, GRANTS)).unwrap();
        let flags = [&["--http-oauth", file.to_str().unwrap(), "--timeout", "120s"], more].concat();
        let server = WebServer::start(&config.flags(&flags));
        Guarded { server, file, _folder: folder, _config: config }
    }

    /// The answer to a program with this token.
    pub(super) fn answer(&self, token: &str, text: &str) -> Answer {
        let authorization = format!("Bearer {token}");
        let mut headers = stateless_headers("tools/call", "lisp_eval");
        headers.push(("Authorization", &authorization));
        self.server.ask("POST", &headers, &stateless_body(1, "tools/call", program(text)))
    }

    /// The text of the answer, which is 200.
    pub(super) fn text(&self, token: &str, text: &str) -> String {
        let answer = self.answer(token, text);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The names of the servers that a token may use.
    pub(super) fn servers(&self, token: &str) -> String {
        self.text(token, "(map :name (tool/servers))")
    }
}

/// A file of `--http-oauth`.
pub(super) fn written(issuer: &str, grants: &str) -> String {
    format!(
        "resource = \"{RESOURCE}\"\n[[issuer]]\nissuer = \"{issuer}\"\nalgorithms = [\"ES256\", \"RS256\"]\n{grants}"
    )
}
