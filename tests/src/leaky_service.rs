//! A JSON service that repeats its secrets wherever it can, in every form that the tests know.
//!
//! Paths below `/N/` belong to the service with the N-th secret. Its OpenAPI document, answers, refusals and redirect
//! targets contain the secret. Bodies come in chunks of a few bytes.

use crate::leaks::forms;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// Bytes of a chunk: too few for a whole secret.
const CHUNK: usize = 3;

/// The operations of each service.
pub const OPERATIONS: [&str; 7] = ["give", "refuse", "fail", "ask", "say", "later", "away"];

/// The header that a service requires, and the secret that it then repeats.
#[derive(Clone)]
pub struct Planted {
    /// Name and value of the header.
    pub header: (String, String),
    /// The secret that must not leak.
    pub secret: String,
}

/// Base64, for `Authorization: Basic …`.
pub fn base64(text: &str) -> String {
    crate::leaks::base64(text, false, true)
}

/// Serves until the process ends. Gives the port.
pub fn start(planted: Vec<Planted>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let planted = Arc::new(planted);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let planted = planted.clone();
            // An error means that the client closed the connection.
            std::thread::spawn(move || serve(stream, &planted, port));
        }
    });
    port
}

fn serve(stream: TcpStream, planted: &[Planted], port: u16) -> Option<()> {
    let mut input = BufReader::new(stream.try_clone().ok()?);
    let mut output = stream;
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok().filter(|&bytes| bytes > 0)?;
        let target = line.split(' ').nth(1)?.to_owned();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            input.read_line(&mut line).ok()?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
                None => break,
            }
        }
        let (status, more, body) = answer(&target, &headers, planted, port)?;
        write!(output, "HTTP/1.1 {status} Some\r\ntransfer-encoding: chunked\r\n{more}\r\n").ok()?;
        for chunk in body.as_bytes().chunks(CHUNK) {
            write!(output, "{:x}\r\n", chunk.len()).ok()?;
            output.write_all(chunk).ok()?;
            output.write_all(b"\r\n").ok()?;
        }
        output.write_all(b"0\r\n\r\n").ok()?;
    }
}

/// Status, headers and body.
fn answer(
    target: &str,
    headers: &[(String, String)],
    planted: &[Planted],
    port: u16,
) -> Option<(u16, String, String)> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut steps = path.trim_start_matches('/').split('/');
    let at: usize = steps.next()?.parse().ok()?;
    let Planted { header, secret } = planted.get(at)?;
    let operation = steps.next().unwrap_or_default();
    let json = "content-type: application/json\r\n";
    if !headers.iter().any(|given| given.0 == header.0 && given.1 == header.1) {
        return Some((
            400,
            json.to_owned(),
            // Leaves out the operation: it may contain the beginning of a secret sent to it.
            json!({ "detail": format!("got {headers:?}") }).to_string(),
        ));
    }
    let texts: Vec<String> = forms(secret).into_iter().map(|form| form.planted).collect();
    let form: usize = query.split('=').nth(1).and_then(|form| form.parse().ok()).unwrap_or_default();
    let text = texts.get(form)?;
    // Headers have no line breaks.
    let line = text.replace(['\r', '\n'], " ");
    Some(match operation {
        "openapi.json" => (200, json.to_owned(), document(&texts).to_string()),
        "give" => (200, json.to_owned(), json!({ "plain": secret, "forms": texts }).to_string()),
        "refuse" => (
            422,
            json.to_owned(),
            json!({ "detail": format!("{} {text}", "word ".repeat(form * 4)), "key": text }).to_string(),
        ),
        "fail" => (500, String::new(), format!("{} {text}", "word ".repeat(95))),
        "ask" => (401, format!("www-authenticate: Bearer realm=\"{line}\"\r\n"), text.clone()),
        "say" => (200, "content-type: text/plain\r\n".to_owned(), text.clone()),
        "later" => (503, format!("retry-after: {line}\r\n"), text.clone()),
        _ => (
            302,
            format!("location: http://localhost:{port}/0/{}\r\n", line.replace(' ', "%20")),
            String::new(),
        ),
    })
}

/// An OpenAPI document with the secret in every text.
fn document(texts: &[String]) -> Value {
    let all = texts.join(" ; ");
    let mut paths = serde_json::Map::new();
    for (at, operation) in OPERATIONS.into_iter().enumerate() {
        let text = &texts[at % texts.len()];
        paths.insert(format!("/{operation}"), json!({ "get": {
            "operationId": operation,
            "summary": text,
            "description": format!("{} {all}", "word ".repeat(at * 12)),
            "parameters": [
                { "name": "form", "in": "query", "description": text, "schema": { "type": "integer" } },
                { "name": text, "in": "query", "schema": { "enum": texts } },
                { "name": "default", "in": "query", "schema": { "type": "string", "default": text, "description": all } }],
            "responses": { "200": { "description": text, "content": { "application/json": { "schema": {
                "type": "object", "properties": { text: { "const": text }, "of": { "$ref": "#/components/schemas/Of" } } } } } } } } }));
    }
    json!({ "openapi": "3.1.0", "info": { "title": texts[0], "version": all }, "paths": paths,
        "components": { "schemas": { "Of": { "description": all, "enum": texts } } } })
}
