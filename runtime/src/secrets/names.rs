//! Which variables and arguments hold secrets that nobody declared as such.
//!
//! Configuration files of hosts are full of literal secrets. They are recognised by what they are called.

use super::forms::password;
use serde_json::{Map, Value};

/// Parts of names of secrets.
const SECRET: [&str; 11] = [
    "TOKEN",
    "KEY",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PWD",
    "CREDENTIAL",
    "AUTH",
    "BEARER",
    "COOKIE",
];

/// Parts of names that say how much or where, not what.
const MEASURES: [&str; 12] =
    ["MAX", "MIN", "LIMIT", "COUNT", "SIZE", "LENGTH", "TTL", "TIMEOUT", "BUDGET", "FILE", "PATH", "DIR"];

/// True for names such as `GITHUB_TOKEN`, `apiKey`, `--access-token` or `Authorization`.
pub fn is_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let is_measure = upper
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| MEASURES.contains(&word) || word == "CWD");
    let without_folder = upper.strip_suffix("CWD").unwrap_or(&upper);
    without_folder != "PWD" && !is_measure && SECRET.iter().any(|part| without_folder.contains(part))
}

/// The literal secrets of one entry of a configuration file: in its variables, headers and arguments.
pub fn in_entry(entry: &Map<String, Value>) -> Vec<&str> {
    let named = |key: &str| entry.get(key).and_then(Value::as_object).into_iter().flatten();
    let mut found: Vec<&str> = Vec::new();
    for (name, value) in named("env").chain(named("headers")) {
        let Some(value) = value.as_str() else { continue };
        if is_secret(name) {
            found.push(value);
        }
        found.extend(in_text(value));
    }
    let arguments = entry.get("args").and_then(Value::as_array);
    let arguments: Vec<&str> = arguments.into_iter().flatten().filter_map(Value::as_str).collect();
    found.extend(in_arguments(&arguments));
    // A reference holds no secret, and its name is none.
    found.retain(|value| !value.contains("${"));
    found
}

/// The secrets among the arguments of a command: `--api-key=VALUE`, `--access-token VALUE`, `-e TOKEN=VALUE`,
/// `--header "Authorization: VALUE"`, passwords in addresses.
pub fn in_arguments<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut after_flag = false;
    for &argument in arguments {
        let is_flag = argument.starts_with('-');
        if after_flag && !is_flag {
            found.push(argument);
        }
        after_flag = is_flag && !argument.contains(['=', ':']) && is_secret(argument);
        found.extend(named_value(argument));
        found.extend(in_text(argument));
    }
    found
}

/// The secrets in an address: its password, and what its query calls one.
pub fn in_text(text: &str) -> impl Iterator<Item = &str> {
    password(text).into_iter().chain(query(text))
}

/// The value of `NAME=VALUE` or `Name: VALUE` when the name is one of a secret.
fn named_value(text: &str) -> Option<&str> {
    let end = text.find(['=', ':'])?;
    let (name, value) = (&text[..end], text[end + 1..].trim());
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    (is_name && is_secret(name) && !value.is_empty()).then_some(value)
}

/// The secrets in the query of an address.
fn query(text: &str) -> impl Iterator<Item = &str> {
    let query = text.split_once("://").and_then(|(_, rest)| rest.split_once('?')).map(|(_, query)| query);
    query.into_iter().flat_map(|query| query.split(['&', '#'])).filter_map(named_value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_secret() {
        for name in [
            "GITHUB_TOKEN",
            "apiKey",
            "--access-token",
            "Authorization",
            "DB_PASSWORD",
            "X-Api-Key",
            "MYSQL_PWD",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["MODE", "MAX_TOKENS", "TOKEN_LIMIT", "PWD", "KEY_FILE", "SSL_CERT_DIR", "OLDCWD"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn arguments_hold_secrets_in_four_ways() {
        let arguments = [
            "-y",
            "--api-key=k-1",
            "--access-token",
            "t-2",
            "--verbose",
            "x",
            "-e",
            "A_TOKEN=t-3",
            "--header",
            "Authorization: Bearer t-4",
            "postgres://me:p-5@h/db",
            "https://h/mcp?api_key=k-6&x=1",
            "--token",
            "--other",
        ];
        assert_eq!(in_arguments(&arguments), ["k-1", "t-2", "t-3", "Bearer t-4", "p-5", "k-6"]);
    }
}
