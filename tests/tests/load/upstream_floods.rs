//! Endless or nearly endless answers of a remote server cost the calling process hardly any memory.

mod host_forms;

use ptc_tests::processes::peak_resident;
use ptc_tests::serve::Server;
use ptc_tests::upstreams::Upstreams;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

/// Bytes of the piece that is sent repeatedly.
const PIECE: usize = 64 << 10;

/// Most that one flood may add to the peak of the process: the cap on one answer, 2 MB, and the memory of allocator
/// and connection, in a dev build too.
const GROWTH: u64 = 24 << 20;

/// The beginning of an answer, and the piece that is sent repeatedly.
type Flood = fn() -> (Vec<u8>, Vec<u8>);

/// Tools, the reason that a program sees, and the answer.
const FLOODS: [(&str, &str, Flood); 6] = [
    ("hundred-megabytes", ":response_too_large", || {
        (head("content-type: application/json\r\ncontent-length: 104857600"), vec![b'1'; PIECE])
    }),
    ("endless-chunks", ":response_too_large", || {
        (chunked("content-type: application/json"), chunk(&[b'1'; PIECE]))
    }),
    ("endless-event", ":response_too_large", || {
        let begun = [chunked("content-type: text/event-stream"), chunk(b"data: ")].concat();
        (begun, chunk(&[b'x'; PIECE]))
    }),
    ("endless-events", ":timeout", || {
        let told = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "data": "x".repeat(4_000) } });
        (chunked("content-type: text/event-stream"), chunk(format!("data: {told}\n\n").as_bytes()))
    }),
    ("gzip-bomb", ":response_too_large", || {
        let begun = chunked("content-type: application/json\r\ncontent-encoding: gzip");
        // Back references to one byte: each byte expands to about a thousand zeros.
        (begun, chunk(&bomb()))
    }),
    ("interim-answers", ":timeout", || {
        (Vec::new(), b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".repeat(1_000))
    }),
];

fn head(headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n").into_bytes()
}

fn chunked(headers: &str) -> Vec<u8> {
    head(&format!("{headers}\r\ntransfer-encoding: chunked"))
}

fn chunk(data: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat()
}

/// A complete gzip file: 4 MB of zeros in about 26 KB. Such files may be concatenated.
fn bomb() -> Vec<u8> {
    let mut bits = Bits::default();
    // One block of fixed codes: a zero, then copies of length 258 from distance 1, 13 bits each.
    bits.push(0b011, 3);
    bits.push_code(0x30, 8);
    const COPIES: usize = 16_000;
    for _ in 0..COPIES {
        // Length 258 is code 285, distance 1 code 0.
        bits.push_code(0b1100_0101, 8);
        bits.push_code(0, 5);
    }
    bits.push_code(0, 7);
    let zeros = 1 + COPIES * 258;
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    file.extend(bits.bytes());
    file.extend(crc32_of_zeros(zeros).to_le_bytes());
    file.extend((zeros as u32).to_le_bytes());
    file
}

#[derive(Default)]
struct Bits {
    done: Vec<u8>,
    open: u32,
    count: u32,
}

impl Bits {
    fn push(&mut self, value: u32, bits: u32) {
        self.open |= value << self.count;
        self.count += bits;
        while self.count >= 8 {
            self.done.push(self.open as u8);
            self.open >>= 8;
            self.count -= 8;
        }
    }

    /// Codes are written with their highest bit first.
    fn push_code(&mut self, code: u32, bits: u32) {
        self.push(code.reverse_bits() >> (32 - bits), bits);
    }

    fn bytes(mut self) -> Vec<u8> {
        self.push(0, 7);
        self.done
    }
}

fn crc32_of_zeros(count: usize) -> u32 {
    let mut crc = u32::MAX;
    for _ in 0..count {
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

/// Serves until the process ends. Gives the port.
fn start() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // An error means that the client closed the connection.
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

fn serve(mut output: TcpStream) -> Option<()> {
    let mut input = BufReader::new(output.try_clone().ok()?);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            input.read_line(&mut line).ok().filter(|&bytes| bytes > 0)?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().ok()?
                }
                None if line == "\r\n" => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body).ok()?;
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let tool = message["params"]["name"].as_str().unwrap_or_default();
        let result = match message["method"].as_str() {
            Some("initialize") => json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "flood", "version": "1" } }),
            Some("tools/list") => {
                let names = FLOODS.iter().map(|(name, ..)| *name).chain(["echo"]);
                let tools = names.map(|name| json!({ "name": name, "inputSchema": {} })).collect::<Vec<_>>();
                json!({ "tools": tools })
            }
            Some("tools/call") => match FLOODS.iter().find(|(name, ..)| *name == tool) {
                Some((.., flood)) => {
                    let (begun, piece) = flood();
                    output.write_all(&begun).ok()?;
                    loop {
                        output.write_all(&piece).ok()?;
                    }
                }
                None => json!({ "content": [{ "type": "text", "text": "well" }] }),
            },
            Some("ping") => json!({}),
            // There is no stream of server messages and no stateless era; notifications are accepted.
            method => {
                let status =
                    if method.is_some() && message["id"].is_null() { "202 Accepted" } else { "405 No" };
                write!(output, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").ok()?;
                continue;
            }
        };
        let text = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
        let length = text.len();
        write!(
            output,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{text}"
        )
        .ok()?;
    }
}

#[test]
fn floods_cost_no_memory() {
    let _alone = crate::alone();
    let port = start();
    let entry = json!({ "transport": "mcp_http", "url": format!("http://127.0.0.1:{port}/mcp"),
        "allow_insecure_http": true });
    let config = Upstreams::default().add("flood", entry).write();
    let mut server = Server::start(&config.flags(&["--timeout", "120s", "--upstream-call-timeout", "3s"]));
    assert_eq!(server.text("(:value (tool/call 'flood/echo {}))"), "\"well\"");
    for (tool, reason, _) in FLOODS {
        let before = peak_resident(server.id());
        let program = format!("(:reason (tool/call 'flood/{tool} {{}}))");
        let told = server.text(&program);
        assert!(told.starts_with(reason), "{tool}: {told}");
        // Concurrent answers share the limit of a single one.
        let after = peak_resident(server.id());
        println!("{tool}: {} KB", (after.saturating_sub(before)) >> 10);
        assert!(after.saturating_sub(before) < GROWTH, "{tool}: {before} -> {after}");
        assert_eq!(server.text("(:value (tool/call 'flood/echo {}))"), "\"well\"", "{tool}");
    }
    assert_eq!(server.end(), Some(0));
}
