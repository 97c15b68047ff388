//! A collector of OpenTelemetry that checks the JSON of the protocol (OTLP/HTTP 1.x) and gives it to tests.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A collector on a free port of this machine.
pub struct Collector {
    url: String,
    received: Receiver<Export>,
}

/// The body of one request.
#[derive(Debug)]
pub struct Export {
    /// The path: `/v1/traces` or `/v1/metrics`.
    pub path: String,
    /// The lines of the head.
    pub head: Vec<String>,
    /// The body, if it is JSON.
    pub body: Value,
    /// The body as it was sent.
    pub bytes: Vec<u8>,
}

impl Collector {
    /// Starts to listen.
    pub fn start() -> Collector {
        Collector::busy(0)
    }

    /// Starts to listen, and refuses the first requests for spans with 503.
    pub fn busy(refused: usize) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, received) = channel();
        let refused = Arc::new(AtomicUsize::new(refused));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (sender, refused) = (sender.clone(), refused.clone());
                std::thread::spawn(move || serve(stream, &sender, &refused));
            }
        });
        Collector { url, received }
    }

    /// Its address, without the path of a signal.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The next export of a signal; others are dropped.
    pub fn next(&self, path: &str) -> Export {
        loop {
            let export = self.received.recv_timeout(crate::PATIENCE).expect("an export");
            if export.path == path {
                return export;
            }
        }
    }

    /// Spans that have arrived, once there are `most`, all valid.
    pub fn spans(&self, most: usize) -> Vec<Value> {
        let mut spans = Vec::new();
        while spans.len() < most {
            spans.extend(spans_of(&self.next("/v1/traces").body));
        }
        spans
    }

    /// What has arrived and was not asked for.
    pub fn rest(&self) -> Vec<Export> {
        self.received.try_iter().collect()
    }
}

/// The spans of an export. Ids are hexadecimal and 64-bit numbers are texts, by the JSON mapping of the protocol.
fn spans_of(body: &Value) -> Vec<Value> {
    let resources = body["resourceSpans"].as_array().unwrap();
    let scopes = resources.iter().flat_map(|resource| resource["scopeSpans"].as_array().unwrap());
    let spans: Vec<Value> = scopes.flat_map(|scope| scope["spans"].as_array().unwrap()).cloned().collect();
    for span in &spans {
        let is_hex = |name: &str, digits: usize| {
            let text = span[name].as_str().unwrap_or_default();
            text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        assert!(is_hex("traceId", 32) && is_hex("spanId", 16), "{span}");
        let parent = span["parentSpanId"].as_str().unwrap_or_default();
        assert!(parent.is_empty() || is_hex("parentSpanId", 16), "{span}");
        let times =
            ["startTimeUnixNano", "endTimeUnixNano"].map(|name| span[name].as_str().unwrap().parse::<u64>());
        assert!(times[0].as_ref().unwrap() <= times[1].as_ref().unwrap(), "{span}");
        assert!((1..=5).contains(&span["kind"].as_u64().unwrap()), "{span}");
        for attribute in span["attributes"].as_array().unwrap() {
            let value = attribute["value"].as_object().unwrap();
            assert!(attribute["key"].is_string() && value.len() == 1, "{attribute}");
            assert!(value.get("intValue").is_none_or(Value::is_string), "{attribute}");
        }
    }
    spans
}

/// The value of an attribute.
pub fn attribute<'s>(span: &'s Value, name: &str) -> Option<&'s Value> {
    let attributes = span["attributes"].as_array()?;
    let found = attributes.iter().find(|attribute| attribute["key"] == name)?;
    found["value"].as_object()?.values().next()
}

fn serve(stream: TcpStream, sender: &Sender<Export>, refused: &AtomicUsize) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(read) if read > 0 => match line.trim_end() {
                    "" => break,
                    line => head.push(line.to_owned()),
                },
                _ => return,
            }
        }
        let length = head.iter().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
        });
        let mut bytes = vec![0; length.unwrap_or_default()];
        reader.read_exact(&mut bytes).unwrap();
        let path = head[0].split(' ').nth(1).unwrap().to_owned();
        let is_json = head.iter().any(|line| line.eq_ignore_ascii_case("content-type: application/json"));
        let is_plain = !head.iter().any(|line| line.to_ascii_lowercase().starts_with("content-encoding:"));
        let body = if is_json && is_plain { serde_json::from_slice(&bytes).unwrap() } else { Value::Null };
        let left = |left: usize| left.checked_sub(1).filter(|_| path == "/v1/traces");
        let is_refused = refused.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok();
        let _ = sender.send(Export { path, head, body, bytes });
        let status = if is_refused { "503 Service Unavailable\r\nRetry-After: 0" } else { "200 OK" };
        let answer =
            format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}");
        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
