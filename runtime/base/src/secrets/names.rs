//! Detects secrets that a configuration does not declare as such: by the names of the variables, headers and arguments
//! that hold them, and by their form (prefixes of keys, private keys, passwords in addresses).
//!
//! Configuration files of hosts are full of literal secrets.

use super::forms::{is_telling, password};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Parts of names that denote secrets.
const SECRET: [&str; 13] = [
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
    "WEBHOOK",
    "SIGNING",
];

/// Words that have such a part and denote no secret, unless `IZ` or `IS` follows (`AUTHORIZATION`).
const OTHER_WORDS: [&str; 6] = ["AUTHOR", "KEYWORD", "KEYBOARD", "MONKEY", "TURKEY", "COOKIECUTTER"];

/// Parts of names that denote an amount or a location instead.
const MEASURES: [&str; 12] =
    ["MAX", "MIN", "LIMIT", "COUNT", "SIZE", "LENGTH", "TTL", "TIMEOUT", "BUDGET", "FILE", "PATH", "DIR"];

/// Words that denote secrets, and are parts of other words as well (`PASSPORT`, `PATH`).
const SECRET_WORDS: [&str; 8] = ["PASS", "PAT", "CRED", "CREDS", "DSN", "SIG", "JWT", "SAS"];

/// Words that may denote secrets or other things: the value is a secret if it looks random.
const WEAK_WORDS: [&str; 6] = ["SESSION", "LICENSE", "LICENCE", "SALT", "ENCRYPTION", "SIGNATURE"];

/// Minimum length of such a value.
const SHORTEST_WEAK: usize = 8;

/// Prefixes of keys of well-known services.
const KEY_PREFIXES: [&str; 17] = [
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xox",
    "npm_",
    "hf_",
    "ntn_",
    "AIza",
    "AKIA",
    "eyJ",
];

/// Minimum length of a word with such a prefix.
const SHORTEST_KEY: usize = 16;

/// Minimum length of a key in the path of an address.
const SHORTEST_IN_PATH: usize = 20;

/// Characters of a UUID.
const UUID_LENGTH: usize = 36;

/// Limit of names before a value: `--header=Authorization: Bearer …` has two.
const MOST_NAMES: usize = 4;

/// True for names such as `GITHUB_TOKEN`, `apiKey`, `--access-token` or `Authorization`.
pub fn is_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let words = || upper.split(|c: char| !c.is_ascii_alphanumeric());
    let is_measure = words().any(|word| MEASURES.contains(&word) || word == "CWD");
    let mut without_folder = upper.strip_suffix("CWD").unwrap_or(&upper).to_owned();
    for word in OTHER_WORDS {
        let is_word = |(at, _): &(usize, &str)| {
            let (before, after) = (&without_folder[..*at], &without_folder[at + word.len()..]);
            let is_other = after.starts_with("IZ") || after.starts_with("IS");
            // In camel case a word begins with a capital letter: `bookAuthor`, but `commonKey` has a key.
            let begins = name[*at..].starts_with(|c: char| c.is_ascii_uppercase())
                && name[..*at].ends_with(|c: char| c.is_ascii_lowercase());
            (begins || !before.ends_with(|c: char| c.is_ascii_alphabetic())) && !is_other
        };
        let places: Vec<usize> =
            without_folder.match_indices(word).filter(is_word).map(|(at, _)| at).collect();
        for at in places.into_iter().rev() {
            without_folder.replace_range(at..at + word.len(), &"_".repeat(word.len()));
        }
    }
    let is_named = SECRET.iter().any(|part| without_folder.contains(part))
        || words().any(|word| SECRET_WORDS.contains(&word));
    without_folder != "PWD" && !is_measure && is_named
}

/// True for a secret: its name denotes one, or may do so and the value looks random.
fn is_secret_value(name: &str, value: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let is_weak = || upper.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| WEAK_WORDS.contains(&word));
    is_secret(name) || (value.len() >= SHORTEST_WEAK && is_telling(value.as_bytes()) && is_weak())
}

/// Digits that a number under the name `tokens` or `keys` has at least, if it is a secret and no amount.
const LONGEST_AMOUNT: usize = 6;

/// Parts of names that denote secrets, and amounts as well: `tokens`, `keys_per_page`.
const AMOUNTS: [&str; 3] = ["TOKEN", "KEY", "COOKIE"];

/// What a name says of the numbers under it.
#[derive(Clone, Copy, PartialEq)]
enum NumberKind {
    Public,
    /// An amount if it is short.
    MaybeAmount,
    Secret,
}

impl NumberKind {
    fn of(name: &str) -> NumberKind {
        let upper = name.to_ascii_uppercase();
        let is_plural = |word: &str| {
            word.strip_suffix('S').is_some_and(|one| AMOUNTS.iter().any(|part| one.ends_with(part)))
        };
        match upper.split(|c: char| !c.is_ascii_alphanumeric()).any(is_plural) {
            _ if !is_secret(name) => NumberKind::Public,
            true => NumberKind::MaybeAmount,
            false => NumberKind::Secret,
        }
    }
}

/// The texts and numbers that stand under names of secrets in the value of this name, at any depth, without amounts.
pub fn secrets_below<'v>(name: &str, value: &'v Value) -> Vec<&'v Value> {
    let (mut open, mut found) = (vec![(NumberKind::of(name), value)], Vec::new());
    while let Some((kind, value)) = open.pop() {
        match (value, kind) {
            (Value::Object(members), NumberKind::Public) => {
                open.extend(members.iter().map(|(name, value)| (NumberKind::of(name), value)));
            }
            (Value::Object(members), _) => open.extend(members.values().map(|value| (kind, value))),
            (Value::Array(items), _) => open.extend(items.iter().map(|item| (kind, item))),
            (Value::Number(number), NumberKind::MaybeAmount) if number.to_string().len() < LONGEST_AMOUNT => {
            }
            (_, NumberKind::Public) | (Value::Bool(_) | Value::Null, _) => {}
            (Value::String(_) | Value::Number(_), _) => found.push(value),
        }
    }
    found
}

/// The literal secrets of one entry of a configuration file: in its variables, headers, arguments and
/// address.
pub fn in_entry(entry: &Map<String, Value>) -> Vec<Cow<'_, str>> {
    let named = |key: &str| entry.get(key).and_then(Value::as_object).into_iter().flatten();
    let mut found: Vec<Cow<'_, str>> = Vec::new();
    for (name, value) in named("env").chain(named("headers")) {
        let Some(value) = value.as_str() else { continue };
        if is_secret_value(name, value) {
            found.push(value.into());
        }
        found.extend(in_text(value));
    }
    let arguments = entry.get("args").and_then(Value::as_array);
    let arguments: Vec<&str> = arguments.into_iter().flatten().filter_map(Value::as_str).collect();
    found.extend(in_arguments(&arguments));
    found.extend(entry.get("url").and_then(Value::as_str).into_iter().flat_map(in_text));
    // A reference holds no secret, and its name is none; its default may be one.
    let (references, mut literal): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|value| value.contains("${"));
    literal
        .extend(references.iter().flat_map(|value| defaults(value)).map(|default| default.to_owned().into()));
    literal
}

/// The secrets among the arguments of a command: `--api-key=VALUE`, `--access-token VALUE`, `-e TOKEN=VALUE`,
/// `--header "Authorization: VALUE"`, and those that [`in_text`] finds.
pub fn in_arguments<'a>(arguments: &[&'a str]) -> Vec<Cow<'a, str>> {
    let mut found = Vec::new();
    let mut flag: Option<&str> = None;
    for &argument in arguments {
        let is_flag = argument.starts_with('-');
        // A single dash with many letters is rarely a flag, and keys may begin with a dash.
        let may_be_key = !argument.starts_with("--") && argument.len() > 8;
        if flag.is_some_and(|flag| is_secret_value(flag, argument)) && (!is_flag || may_be_key) {
            found.push(argument.into());
        }
        flag = (is_flag && !argument.contains(['=', ':'])).then_some(argument);
        found.extend(in_text(argument));
    }
    found
}

/// The secrets in a text: values with a secret's name (`NAME=VALUE`, `Name: VALUE`, members of JSON), the
/// password, query and path of an address, private keys, and words with prefixes of well-known keys.
pub fn in_text(text: &str) -> Vec<Cow<'_, str>> {
    if text.trim_start().starts_with('{')
        && let Ok(Value::Object(members)) = serde_json::from_str(text)
    {
        let mut found = Vec::new();
        for (name, value) in &members {
            in_member(name, value, &mut found);
        }
        return found.into_iter().map(Cow::Owned).collect();
    }
    if text.contains("-----BEGIN") && text.contains("PRIVATE KEY") {
        return vec![text.trim().into()];
    }
    let segments = text.split([';', ',', '&', '#', '?', '\n']);
    let named = segments.clone().chain(text.split_ascii_whitespace()).filter_map(named_value);
    let words = text.split(|c: char| c.is_ascii_whitespace() || "\"',;=".contains(c));
    let keys = words.filter(|word| {
        word.len() >= SHORTEST_KEY && KEY_PREFIXES.iter().any(|prefix| word.starts_with(prefix))
    });
    password(text).into_iter().chain(named).chain(keys).chain(in_path(text)).map(Cow::Borrowed).collect()
}

/// The secrets in a member of a JSON text. The JSON parser has bounded its depth.
fn in_member(name: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if is_secret_value(name, text) => found.push(text.clone()),
        Value::String(text) => found.extend(in_text(text).into_iter().map(Cow::into_owned)),
        Value::Object(members) => members.iter().for_each(|(name, value)| in_member(name, value, found)),
        Value::Array(items) => items.iter().for_each(|value| in_member(name, value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The value of `NAME=VALUE` or `Name: VALUE` when the name, or the last of several, denotes a secret.
fn named_value(text: &str) -> Option<&str> {
    let mut rest = text.trim();
    for _ in 0..MOST_NAMES {
        let end = rest.find(['=', ':'])?;
        let (name, value) =
            (rest[..end].trim_matches(['"', '\'', ' ']), rest[end + 1..].trim_matches(['"', '\'', ' ']));
        let name = name.rsplit(' ').next().unwrap_or(name);
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if is_name && is_secret_value(name, value) {
            return (!value.is_empty()).then_some(value);
        }
        rest = value;
    }
    None
}

/// Parts of an address' path that look random: some services put the key there.
fn in_path(text: &str) -> impl Iterator<Item = &str> {
    let path = text.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map(|(_, path)| path);
    let parts = path.into_iter().flat_map(|path| path.split(['?', '#']).next().unwrap_or(path).split('/'));
    parts.filter(|part| {
        let is_alphanumeric = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let words = part.split(['-', '_']).count();
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        // A title has more words; a UUID has five of fixed lengths.
        let is_one = words <= 2 || part.len() == UUID_LENGTH && words == 5;
        part.len() >= SHORTEST_IN_PATH
            && is_alphanumeric
            && is_one
            && digits >= 3
            && is_telling(part.as_bytes())
    })
}

/// The defaults of unset variables: `${VAR:-default}`.
pub fn defaults(text: &str) -> impl Iterator<Item = &str> {
    let references = text.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
    references.filter_map(|(inside, _)| inside.split_once(":-")).map(|(_, default)| default)
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
            "DB_PASS",
            "GITHUB_PAT",
            "SENTRY_DSN",
            "SLACK_WEBHOOK",
            "JWT",
            "sig",
            "SIGNING",
            "commonKey",
            "daemonKey",
            "AUTHOR_TOKEN",
            "AUTHORIZATION_KEYWORD",
            "authorisation",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["SESSION_ID", "LICENSE", "APP_SALT", "ENCRYPTION"] {
            assert!(is_secret_value(name, "a8F3k2Lq9Z") && !is_secret_value(name, "standard-one"), "{name}");
        }
        for name in [
            "MODE",
            "MAX_TOKENS",
            "TOKEN_LIMIT",
            "PWD",
            "KEY_FILE",
            "SSL_CERT_DIR",
            "OLDCWD",
            "PATH",
            "BYPASS",
            "PATTERN",
            "author",
            "author_id",
            "authorId",
            "bookAuthor",
            "sortKeywords",
            "KEYWORDS",
            "monkey",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn numbers_under_names_of_secrets_are_secrets_unless_they_are_amounts() {
        let found = |name: &str, value: Value| secrets_below(name, &value).len();
        for name in ["password", "apiKey", "token", "client_secret"] {
            assert_eq!(found(name, 12345.into()), 1, "{name}");
        }
        for name in ["tokens", "max_tokens", "page"] {
            assert_eq!(found(name, 500.into()), 0, "{name}");
        }
        assert_eq!(found("tokens", 98_765_432.into()), 1);
        let nested = serde_json::json!({"page": 1, "login": {"pin_password": 12}, "keys": ["a", 3]});
        assert_eq!(found("body", nested), 2);
    }

    #[test]
    fn texts_hold_secrets_under_names_and_by_their_form() {
        let found = |text: &str| in_text(text).into_iter().map(Cow::into_owned).collect::<Vec<_>>();
        for (text, secret) in [
            (r#"{"Authorization":"Bearer ntn_1234"}"#, "Bearer ntn_1234"),
            (r#"{"a":[{"apiKey":"k\n1"}]}"#, "k\n1"),
            ("Server=h;AccountKey=abc==;x=1", "abc=="),
            ("API_KEY=k-1 node server.js", "k-1"),
            ("--header=Authorization:Bearer k-2", "Bearer k-2"),
            ("X-Api-Key: k-3", "k-3"),
            (
                "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n",
                "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----",
            ),
            ("ghp_0123456789abcdef", "ghp_0123456789abcdef"),
            ("https://h/s/a1b2c3d4e5f6a7b8c9d0e1/mcp", "a1b2c3d4e5f6a7b8c9d0e1"),
        ] {
            assert!(found(text).iter().any(|found| found == secret), "{text}: {:?}", found(text));
        }
        for text in [
            "https://h/modelcontextprotocol/petstore-2024-05-report-of-all/openapi-3.0-petstore.yaml",
            "a=b; c: d",
            "{}",
            "text/html; charset=utf-8",
            "skill-set-of-a-server",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn entries_hold_secrets_where_a_variable_is_not_set() {
        let entry = serde_json::json!({"env": {"A_TOKEN": "${T:-fallback}", "N": "${PORT:-8080}"}, "args": ["--token", "-k12345678"]});
        assert_eq!(in_entry(entry.as_object().unwrap()), ["-k12345678", "fallback"]);
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
            "--sas",
            "https://h/x?sig=k-7&se=1",
            "--webhook",
            "https://hooks.example/services/T0/B0/x",
            "--token",
            "--other",
        ];
        let mut found = in_arguments(&arguments);
        found.dedup();
        let last = ["https://h/x?sig=k-7&se=1", "k-7", "https://hooks.example/services/T0/B0/x"];
        assert_eq!(found[..6], ["k-1", "t-2", "t-3", "Bearer t-4", "p-5", "k-6"]);
        assert_eq!(found[6..], last);
    }
}
