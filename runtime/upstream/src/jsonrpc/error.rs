//! Reads JSON-RPC errors, including malformed ones.

use super::scan;
use ptc_base::secrets::{Cut, shortened};
use ptc_calls::run::client::ClientError;
use std::borrow::Cow;

/// JSON-RPC code: the server does not have the method.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;

/// Length limit of a server's message, in bytes.
const LONGEST_MESSAGE: usize = 16 << 10;

/// Size limit of `data`.
const LONGEST_DATA: usize = 64 << 10;

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorObject {
    /// The code; 0 when none is given.
    pub code: i64,
    /// Never empty.
    pub message: String,
    /// JSON text.
    pub data: Option<String>,
}

impl From<ErrorObject> for ClientError {
    fn from(error: ErrorObject) -> ClientError {
        ClientError { code: error.code, message: error.message }
    }
}

impl ErrorObject {
    /// An error of this client about a response.
    pub fn about(message: impl Into<String>) -> ErrorObject {
        ErrorObject { code: 0, message: message.into(), data: None }
    }

    /// Reads the text of an `error` member. The specification demands an object; of anything else the text is
    /// kept as the message.
    pub fn read(text: &[u8]) -> ErrorObject {
        if text.first() != Some(&b'{') {
            return ErrorObject::about(or_unknown(spoken(text)));
        }
        let (mut code, mut message, mut data) = (None, None, None);
        for part in scan::members(text) {
            match part.key {
                b"code" => code = Some(part.value),
                b"message" => message = Some(part.value),
                b"data" => data = Some(part.value),
                _ => {}
            }
        }
        let number = code.and_then(integer).unwrap_or_default();
        let said = message.map(spoken).filter(|said| !said.is_empty());
        let said = said.or_else(|| data.filter(|data| data.starts_with(b"\"")).map(spoken));
        let message = said.filter(|said| !said.is_empty()).unwrap_or_else(|| match (number, code) {
            (METHOD_NOT_FOUND, _) => "Method not found".to_owned(),
            (_, Some(code)) => format!("JSON-RPC error {}", spoken(code)),
            (_, None) => or_unknown(String::new()),
        });
        let data = data.filter(|data| data.len() <= LONGEST_DATA);
        let data = data.and_then(|data| std::str::from_utf8(data).ok()).map(str::to_owned);
        ErrorObject { code: number, message, data }
    }
}

/// A whole number, also if written as `7.0` or as a string.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?.trim_matches('"').trim();
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let number: f64 = text.parse().ok()?;
    // Beyond 2^53 a float cannot distinguish adjacent integers.
    let is_exact = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "a whole number within 2^53")]
    is_exact.then_some(number as i64)
}

/// The text of a JSON string, or the JSON text of any other value, cut to the length limit.
pub(crate) fn spoken(text: &[u8]) -> String {
    let said = match serde_json::from_slice::<String>(text) {
        Ok(said) => said,
        // A string that is not valid JSON counts, too.
        Err(_) => String::from_utf8_lossy(text).trim_matches('"').to_owned(),
    };
    if said == "null" { String::new() } else { shorten(said) }
}

fn or_unknown(said: String) -> String {
    if said.is_empty() { "the server answered with an error that says nothing".to_owned() } else { said }
}

/// Cuts a server's text to the length limit.
pub fn shorten(text: String) -> String {
    match shortened(&text, Cut::Bytes(LONGEST_MESSAGE)) {
        Cow::Owned(short) => short,
        Cow::Borrowed(_) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (i64, String) {
        let error = ErrorObject::read(text.as_bytes());
        (error.code, error.message)
    }

    #[test]
    fn every_error_keeps_what_it_says() {
        let table: &[(&str, i64, &str)] = &[
            (r#"{"code":-32000,"message":"down"}"#, -32000, "down"),
            (r#"{"code":-32601,"message":"no tool of this name"}"#, -32601, "no tool of this name"),
            (r#"{"code":-32601}"#, -32601, "Method not found"),
            (r#"{"code":-32000.0,"message":""}"#, -32000, "JSON-RPC error -32000.0"),
            (r#"{"code":99999999999999999999999,"message":"big"}"#, 0, "big"),
            (r#"{"code":99999999999999999999999}"#, 0, "JSON-RPC error 99999999999999999999999"),
            (r#"{"code":"E_DOWN","message":null}"#, 0, "JSON-RPC error E_DOWN"),
            (r#"{"code":1e400,"message":"x"}"#, 0, "x"),
            (r#"{"code":5,"message":{"text":"x"}}"#, 5, r#"{"text":"x"}"#),
            (r#"{"code":5,"data":"the cause"}"#, 5, "the cause"),
            (r#"{"message":"half \ud800 a pair"}"#, 0, r"half \ud800 a pair"),
            (r#""plain text""#, 0, "plain text"),
            ("[1, 2]", 0, "[1, 2]"),
            ("false", 0, "false"),
            ("{}", 0, "the server answered with an error that says nothing"),
        ];
        for (text, code, message) in table {
            assert_eq!(read(text), (*code, (*message).to_owned()), "{text}");
        }
    }

    #[test]
    fn messages_end_somewhere() {
        let (_, message) = read(&format!("{{\"message\":\"{}\"}}", "é".repeat(1 << 20)));
        assert!(message.len() < LONGEST_MESSAGE + 4 && message.ends_with("é…"));
    }
}
