//! An HTTP server that acts as a model provider with scripted replies.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// How the server answers one request.
#[derive(Clone, Debug)]
pub enum ModelAnswer {
    /// The model says this text; the answer counts 40 tokens read and 2 written.
    Says(String),
    /// The same, without token counts.
    Uncounted(String),
    /// A failure status, with this text as its error.
    Fails(u16, String),
    /// No answer.
    Silence,
}

impl ModelAnswer {
    /// A reply with this program.
    pub fn program(text: &str) -> ModelAnswer {
        ModelAnswer::Says(format!("```clojure\n{text}\n```"))
    }

    /// Status and body; `None` for silence.
    fn written(&self, is_anthropic: bool) -> Option<(u16, Value)> {
        let (text, is_counted) = match self {
            ModelAnswer::Says(text) => (text, true),
            ModelAnswer::Uncounted(text) => (text, false),
            ModelAnswer::Fails(status, text) => {
                let error = json!({ "type": "error", "error": { "type": "some_error", "message": text } });
                return Some((*status, error));
            }
            ModelAnswer::Silence => return None,
        };
        let (mut body, input, output) = match is_anthropic {
            true => (
                json!({ "content": [{ "type": "text", "text": text }], "stop_reason": "end_turn" }),
                "input_tokens",
                "output_tokens",
            ),
            false => (
                json!({ "choices": [{ "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }] }),
                "prompt_tokens",
                "completion_tokens",
            ),
        };
        if is_counted {
            body["usage"] = json!({ input: 40, output: 2 });
        }
        Some((200, body))
    }
}

/// Speaks the protocols of OpenAI and Anthropic. Each request gets the next answer; the last answer repeats.
pub struct ModelServer {
    url: String,
    /// Request bodies, each with its authorization.
    pub got: Arc<Mutex<Vec<Value>>>,
}

impl ModelServer {
    /// A server for a model that replies with these programs.
    pub fn with_programs(replies: &[&str]) -> ModelServer {
        ModelServer::answering(replies.iter().map(|reply| ModelAnswer::program(reply)).collect())
    }

    /// Starts a server with these answers.
    pub fn answering(answers: Vec<ModelAnswer>) -> ModelServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let (answers, got) = (Arc::new(answers), Arc::new(Mutex::new(Vec::new())));
        let kept = got.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answers, kept) = (answers.clone(), kept.clone());
                std::thread::spawn(move || answer(stream, &answers, &kept));
            }
        });
        ModelServer { url, got }
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The messages of each request.
    pub fn prompts(&self) -> Vec<String> {
        self.got.lock().expect("a whole list").iter().map(|body| body["messages"].to_string()).collect()
    }
}

/// Serves one connection.
fn answer(stream: TcpStream, answers: &[ModelAnswer], got: &Mutex<Vec<Value>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut length, mut authorization, mut is_anthropic) = (0, String::new(), false);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim().to_ascii_lowercase();
            is_anthropic |= line.starts_with("anthropic-version:");
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
        let Some((status, body)) = answers.get(number).or(answers.last())?.written(is_anthropic) else {
            // Waits until the client closes the connection.
            let _ = reader.read(&mut [0]);
            return None;
        };
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} Some\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        reader.get_mut().write_all((head + &body).as_bytes()).ok()?;
    }
}
