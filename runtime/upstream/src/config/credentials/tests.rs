//! Tests the errors about credentials and headers: they name location and remedy, and never a secret.

use crate::config::{Config, ConfigError};
use ptc_base::secrets::SecretRegistry;

fn variable(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some("t0ken-of-env".to_owned()),
        "PAIR" => Some("me:p4ssw0rd:x".to_owned()),
        "BREAK" => Some("two\nlines".to_owned()),
        _ => None,
    }
}

fn parse(text: &str, secrets: &SecretRegistry) -> Result<Config, ConfigError> {
    Config::parse_with(text, "u.json", secrets, &variable)
}

fn error(text: &str) -> String {
    match parse(text, &SecretRegistry::new()) {
        Ok(_) => panic!("no error for {text}"),
        Err(error) => error.to_string(),
    }
}

/// The error about a credential `c`.
fn of_credential(binding: &str) -> String {
    error(&format!("{{\"credentials\":\n {{\"c\": {binding}}}, \"upstreams\": {{}}}}"))
}

/// The error about an entry that uses the credentials `t`, `p` and `b`.
fn of_entry(members: &str) -> String {
    error(&format!(
        r#"{{"credentials": {{"t": {{"source": "env", "var": "TOKEN"}}, "p": {{"source": "env", "var": "PAIR"}},
            "b": {{"source": "env", "var": "BREAK"}}}}, "upstreams": {{
            "s": {{"transport": "openapi", "base_url": "https://h", "schema_file": "s", "include_operations": ["a"],
            {members}}}}}}}"#
    ))
}

#[test]
fn wrong_credentials_are_told_with_place_and_remedy() {
    let cases = [
        (
            "5",
            "u.json:2:3: invalid credential binding \"c\": it must be an object; write {\"source\": \"env\"",
        ),
        ("{}", "u.json:2:3: invalid credential binding \"c\": it has no source; write"),
        (r#"{"source": 1}"#, "u.json:2:9: invalid credential binding \"c\": source must be a string"),
        (r#"{"source": "exec", "command": "x"}"#, "u.json:2:9: credential c: source \"exec\" is reserved"),
        (
            r#"{"source": "vault"}"#,
            "u.json:2:9: invalid credential binding \"c\": there is no source \"vault\"",
        ),
        (r#"{"source": "env"}"#, "u.json:2:3: invalid credential binding \"c\": source env needs \"var\""),
        (
            r#"{"source": "env", "var": ""}"#,
            "u.json:2:26: invalid credential binding \"c\": var must be a string",
        ),
        (
            r#"{"source": "env", "var": "A", "value": "x"}"#,
            "u.json:2:38: invalid credential binding \"c\": source env takes no \"value\"",
        ),
        (
            r#"{"source": "env", "var": "NOPE"}"#,
            "u.json:2:26: credential c env NOPE is not set; set it before",
        ),
        (r#"{"source": "file", "path": "/nope"}"#, "u.json:2:27: credential c: /nope: No such file"),
        (r#"{"source": "literal", "value": " "}"#, "u.json:2:30: credential c: its value is empty"),
        (r#"{"source": "literal", "value": "x", "scheme_hint": 1}"#, "u.json:2:44: invalid credential"),
    ];
    for (binding, told) in cases {
        let error = of_credential(binding);
        assert!(error.starts_with(told), "{binding}: {error}");
    }
    assert_eq!(error(r#"{"credentials": [], "upstreams": {}}"#), "u.json:1:2: credentials must be an object");
}

#[test]
fn wrong_headers_are_told_with_place_and_remedy() {
    let cases = [
        (r#""auth": {}"#, "auth must be a list; write"),
        (r#""auth": ["t"]"#, "has invalid auth emitter: it must be an object; write"),
        (r#""auth": [{"binding": "t"}]"#, "has invalid auth emitter: it has no scheme; write"),
        (
            r#""auth": [{"scheme": "digest", "binding": "t"}]"#,
            "has invalid auth emitter: there is no scheme \"digest\"",
        ),
        (r#""auth": [{"scheme": "bearer"}]"#, "has invalid auth emitter: it has no binding; write"),
        (
            r#""auth": [{"scheme": "bearer", "binding": "t", "header": "X"}]"#,
            "has invalid auth emitter: bearer takes no \"header\"",
        ),
        (
            r#""auth": [{"scheme": "bearer", "binding": "x"}]"#,
            "references unknown credential binding x; add it",
        ),
        (
            r#""auth": [{"scheme": "bearer", "binding": "b"}]"#,
            "cannot send credential b: it holds a line break",
        ),
        (
            r#""auth": [{"scheme": "basic", "binding": "t"}]"#,
            "uses credential t: basic credential must be user:pass; write",
        ),
        (
            r#""auth": [{"scheme": "custom_header", "binding": "t"}]"#,
            "has invalid auth emitter: it has no header",
        ),
        (
            r#""auth": [{"scheme": "custom_header", "binding": "t", "header": "a b"}]"#,
            "auth header \"a b\" is invalid",
        ),
        (
            r#""auth": [{"scheme": "custom_header", "binding": "t", "header": "authorization"}]"#,
            "auth header \"Authorization\" is reserved; use scheme bearer",
        ),
        (
            r#""auth": [{"scheme": "custom_header", "binding": "t", "header": "Mcp-Session-Id"}]"#,
            "auth header \"Mcp-Session-Id\" is reserved: ptc sets it",
        ),
        (
            r#""auth": [{"scheme": "bearer", "binding": "t"}, {"scheme": "basic", "binding": "p"}]"#,
            "auth sets header \"authorization\" twice",
        ),
        (
            r#""auth": [{"scheme": "custom_header", "binding": "t", "header": "X-A"}], "static_headers": {"x-a": "1"}"#,
            "configures header \"x-a\" in both auth and static_headers",
        ),
        (r#""static_headers": []"#, "static_headers must be an object"),
        (r#""static_headers": {"X": 1}"#, "static_headers \"X\" value must be a string"),
        (r#""static_headers": {"X": "1", "x": "2"}"#, "static_headers duplicate header \"x\""),
        (r#""static_headers": {"X": "a\nb"}"#, "static_headers \"X\" holds a line break"),
        (
            r#""static_headers": {"X-API-Key": "k"}"#,
            "static_headers header \"X-API-Key\" is reserved: secrets belong into credentials",
        ),
        (
            r#""static_headers": {"X-Access-Token": "k"}"#,
            "static_headers header \"X-Access-Token\" is reserved, because",
        ),
        (
            r#""static_headers": {"User-Agent": "k"}"#,
            "static_headers header \"User-Agent\" is reserved: ptc sets it",
        ),
    ];
    for (members, told) in cases {
        let error = of_entry(members);
        let (place, text) = error.split_once(": upstream s ").unwrap_or_else(|| panic!("{members}: {error}"));
        assert!(place.starts_with("u.json:4:") && text.starts_with(told), "{members}: {error}");
    }
}

#[test]
fn nobody_is_told_a_value() {
    for binding in ["t", "p", "b"] {
        for scheme in ["bearer", "basic"] {
            let entry = format!(r#""auth": [{{"scheme": "{scheme}", "binding": "{binding}"}}, 1]"#);
            let error = of_entry(&entry);
            assert!(!["t0ken", "p4ss", "two", "lines"].iter().any(|part| error.contains(part)), "{error}");
        }
    }
}
