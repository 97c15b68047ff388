//! A model whose replies are written down.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// An OpenAI-compatible server: each request gets the next of these programs, and the last one again and again.
pub struct ModelServer {
    url: String,
    /// Bodies of requests, with what they are authorized by.
    pub got: Arc<Mutex<Vec<Value>>>,
}

impl ModelServer {
    /// Starts it.
    pub fn of(replies: &[&str]) -> ModelServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let replies: Vec<String> = replies.iter().map(|reply| format!("```clojure\n{reply}\n```")).collect();
        let got = Arc::new(Mutex::new(Vec::new()));
        let kept = got.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (replies, kept) = (replies.clone(), kept.clone());
                std::thread::spawn(move || answer(stream, &replies, &kept));
            }
        });
        ModelServer { url, got }
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The messages of each request.
    pub fn prompts(&self) -> Vec<String> {
        self.got.lock().expect("a whole list").iter().map(|body| body["messages"].to_string()).collect()
    }
}

/// Serves one connection.
fn answer(stream: TcpStream, replies: &[String], got: &Mutex<Vec<Value>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut length, mut authorization) = (0, String::new());
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim().to_ascii_lowercase();
            if let Some(text) = line.strip_prefix("content-length:") {
                length = text.trim().parse().ok()?;
            }
            if let Some(text) = line.strip_prefix("authorization:") {
                text.trim().clone_into(&mut authorization);
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let number = {
            let mut got = got.lock().expect("a whole list");
            let mut body: Value = serde_json::from_slice(&body).ok()?;
            body["authorization"] = authorization.into();
            got.push(body);
            got.len() - 1
        };
        let reply = replies.get(number).or(replies.last())?;
        let body = json!({"choices": [{"message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 40, "completion_tokens": 2}})
        .to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        reader.get_mut().write_all((head + &body).as_bytes()).ok()?;
    }
}
