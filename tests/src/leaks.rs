//! Lists test secrets and the forms in which they may leak, and searches texts for them.
//!
//! Written independently of the product's redaction: what must be hidden is decided here.

use serde_json::Value;

/// Secrets of many kinds.
pub const SECRETS: [&str; 12] = [
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "q\"uote'd\\back\\nslash\\\"end",
    "line one is long\nline two, too\tand a tab\r\nline three é",
    "pässwörd-😀-日本語",
    "100%41+b/c d%2Fe&f=g",
    "QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw\nggSjAgEAAoIBAQC7VJTUt9Us8cKjMzEfYyji\nWA4R4/M2bS1GB4t7NXp98C3S\n-----END PRIVATE KEY-----\n",
    "vixen",
    "90210734",
    "ghp_16C7e42F",
    "postgres://me:hunter-p4ss@db.local/x",
    "root:p4ss-of-basic-pair",
];

/// Characters of a secret that count as a leak. Escaped forms need more characters for the same content.
const HEAD: usize = 8;
const ESCAPED_HEAD: usize = 14;

/// One way in which a secret may come back.
pub struct Form {
    /// What it is called.
    pub name: &'static str,
    /// The text that the server plants.
    pub planted: String,
    /// The part of it that must not be seen.
    pub needle: String,
}

/// The forms of a secret.
pub fn forms(secret: &str) -> Vec<Form> {
    let mut forms = Vec::new();
    let mut add = |name, planted: String| add_to(&mut forms, name, planted);
    let json = Value::from(secret).to_string();
    let json = json[1..json.len() - 1].to_owned();
    add("plain", secret.to_owned());
    add("JSON", json.clone());
    add("JSON twice", inside(&Value::from(json.as_str())));
    add("\\u, lower case", unicode(secret, |unit| format!("\\u{unit:04x}")));
    add("\\u, upper case", unicode(secret, |unit| format!("\\u{unit:04X}")));
    add("slashes escaped", json.replace('/', "\\/"));
    add("blank-joined", secret.split_whitespace().collect::<Vec<_>>().join(" "));
    add("lines joined", secret.lines().collect::<Vec<_>>().join(" "));
    add("percent, upper case", percent(secret, |byte| format!("%{byte:02X}")));
    add("percent, lower case", percent(secret, |byte| format!("%{byte:02x}")));
    add("form", percent(secret, |byte| if byte == b' ' { "+".into() } else { format!("%{byte:02X}") }));
    add(
        "percent twice",
        percent(&percent(secret, |byte| format!("%{byte:02X}")), |byte| format!("%{byte:02X}")),
    );
    add(
        "HTML, by name",
        html(secret, |c| ENTITIES.iter().find(|(known, _)| *known == c).map(|(_, name)| (*name).to_owned())),
    );
    add(
        "HTML, decimal",
        html(secret, |c| (!c.is_ascii_alphanumeric()).then(|| format!("&#{};", u32::from(c)))),
    );
    add(
        "HTML, hexadecimal",
        html(secret, |c| (!c.is_ascii_alphanumeric()).then(|| format!("&#x{:x};", u32::from(c)))),
    );
    add(
        "HTML, all names",
        html(secret, |c| names().find(|(known, _)| *known == c).map(|(_, name)| format!("&{name};"))),
    );
    add("%u", unicode(secret, |unit| format!("%u{unit:04X}")));
    add("%u twice", unicode(secret, |unit| format!("%25u{unit:04x}")));
    add(
        "\\u{}",
        html(secret, |c| (!c.is_ascii_alphanumeric()).then(|| format!("\\u{{{:x}}}", u32::from(c)))),
    );
    add("\\U", html(secret, |c| (!c.is_ascii_alphanumeric()).then(|| format!("\\U{:08x}", u32::from(c)))));
    add("bytes of Python", bytes(secret, |byte| format!("\\x{byte:02x}")));
    add("octal bytes", bytes(secret, |byte| format!("\\{byte:03o}")));
    add("wholly percent", secret.bytes().map(|byte| format!("%{byte:02X}")).collect());
    add("wholly \\u", secret.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect());
    add("wholly \\x", secret.bytes().map(|byte| format!("\\x{byte:02x}")).collect());
    add("hexadecimal", secret.bytes().map(|byte| format!("{byte:02x}")).collect());
    add("Hexadecimal", secret.bytes().map(|byte| format!("{byte:02X}")).collect());
    let trimmed = secret.trim();
    let claims = inside(&Value::from(trimmed));
    let ascii = unicode_only(&claims);
    let page = html(trimmed, |c| match c {
        '\'' => Some("&#39;".to_owned()),
        c => ENTITIES.iter().find(|(known, _)| *known == c).map(|(_, name)| (*name).to_owned()),
    });
    let query = percent(trimmed, |byte| format!("%{byte:02X}"));
    for (name, text, before) in [
        ("base64 of JSON", &claims, "{\"a\":\""),
        ("base64 of JSON, one more before", &claims, "{\"ab\":\""),
        ("base64 of ASCII JSON", &ascii, "{\"a\":\""),
        ("base64 of HTML", &page, "<a href=\""),
        ("base64 of a query", &query, "?a="),
    ] {
        let whole = base64(&format!("{before}{text}\"}}"), true, false);
        let (first, last) = ((before.len() * 8).div_ceil(6), (before.len() + text.len()) * 8 / 6);
        forms.push(Form { name, needle: whole[first..last].to_owned(), planted: whole });
    }
    for (name, text) in [
        ("hexadecimal of JSON", &claims),
        ("hexadecimal of ASCII JSON", &ascii),
        ("hexadecimal of HTML", &page),
        ("hexadecimal of a query", &query),
    ] {
        add_to(&mut forms, name, text.bytes().map(|byte| format!("{byte:02x}")).collect());
    }
    for (name, before, url, padded) in [
        ("base64", "", false, true),
        ("base64, one before", "a", false, false),
        ("base64, two before", "ab", false, true),
        ("base64url", "", true, false),
        ("base64url, one before", "x", true, true),
        ("base64url, two before", "xy", true, false),
        ("basic pair", "user:", false, true),
    ] {
        let whole = base64(&format!("{before}{trimmed}"), url, padded);
        // The first and last base64 digits mix bits of the secret with its surroundings and are left out.
        let first = (before.len() * 8).div_ceil(6);
        let last = (before.len() + trimmed.len()) * 8 / 6;
        forms.push(Form { name, needle: whole[first..last].to_owned(), planted: whole });
    }
    forms
}

/// The secret of the examples in `docs/design/secrets.md`.
const EXAMPLE: &str = r#"Zoë's "k\y" <a&b>/😀 %41=+"#;

/// The table of that document: each form that is promised, and the example in it.
pub fn table() -> String {
    let mut table = String::from("| form | example |\n|---|---|\n");
    for form in forms(EXAMPLE) {
        table += &format!("| {} | `{}` |\n", form.name, form.planted);
    }
    table
}

fn add_to(forms: &mut Vec<Form>, name: &'static str, planted: String) {
    forms.push(Form { name, needle: planted.clone(), planted });
}

/// JSON without characters beyond ASCII.
fn unicode_only(json: &str) -> String {
    let escaped = |c: char| c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect();
    json.chars().map(|c| if c.is_ascii() { c.to_string() } else { escaped(c) }).collect()
}

/// Characters that have an HTML entity.
const ENTITIES: [(char, &str); 4] = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;")];

/// Each printable ASCII character that has a name in HTML, and the name.
fn names() -> impl Iterator<Item = (char, &'static str)> {
    let characters = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}";
    let names = "excl quot num dollar percnt amp apos lpar rpar ast plus comma hyphen period sol colon semi lt equals \
                 gt quest commat lsqb bsol rsqb Hat lowbar grave lcub verbar rcub";
    characters.chars().zip(names.split_whitespace())
}

fn html(secret: &str, write: impl Fn(char) -> Option<String>) -> String {
    secret.chars().map(|c| write(c).unwrap_or_else(|| c.to_string())).collect()
}

fn bytes(secret: &str, write: impl Fn(u8) -> String) -> String {
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'\\';
    let one = |byte: u8| match byte {
        b'\\' => "\\\\".to_owned(),
        b'\n' => "\\n".to_owned(),
        b'\t' => "\\t".to_owned(),
        b'\r' => "\\r".to_owned(),
        byte if is_plain(byte) => char::from(byte).to_string(),
        byte => write(byte),
    };
    secret.bytes().map(one).collect()
}

/// The content of a JSON string.
fn inside(value: &Value) -> String {
    let text = value.to_string();
    text[1..text.len() - 1].to_owned()
}

fn unicode(secret: &str, write: impl Fn(u16) -> String) -> String {
    secret
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' => c.to_string(),
            _ => c.encode_utf16(&mut [0; 2]).iter().map(|unit| write(*unit)).collect(),
        })
        .collect()
}

fn percent(secret: &str, write: impl Fn(u8) -> String) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    secret
        .bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { write(byte) })
        .collect()
}

pub(crate) fn base64(text: &str, url: bool, padded: bool) -> String {
    let alphabet: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').collect();
    let digit = |value: u32| match value {
        62 => {
            if url {
                '-'
            } else {
                '+'
            }
        }
        63 => {
            if url {
                '_'
            } else {
                '/'
            }
        }
        value => alphabet[value as usize],
    };
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(chunk.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            if at <= chunk.len() {
                out.push(digit(bits >> (18 - 6 * at) & 63));
            } else if padded {
                out.push('=');
            }
        }
    }
    out
}

/// Every secret that a text holds, with its form. The text is searched as it is; each JSON string in it is searched
/// in decoded form as well, to any depth.
pub fn found(text: &str) -> Vec<String> {
    let mut texts = vec![text.to_owned()];
    for line in text.lines() {
        if let Ok(value) = serde_json::from_str(line) {
            strings(&value, &mut texts);
        }
    }
    let text = texts.join("\n");
    let mut found = Vec::new();
    for secret in SECRETS {
        for Form { name, needle, .. } in forms(secret) {
            // If the text was cut, the beginning of a secret is enough.
            let is_escaped = needle.contains(['\\', '%', '&']);
            // In a form that escapes every character, a character takes more bytes.
            let each = needle.chars().count() / secret.chars().count().max(1);
            let most = if is_escaped { ESCAPED_HEAD.max(HEAD * each) } else { HEAD };
            let most = if name.starts_with("HTML") { entities(&needle, HEAD).max(most) } else { most };
            let head: String = needle.chars().take(most).collect();
            if let Some(at) = text.find(&head) {
                let from = text.floor_char_boundary(at.saturating_sub(60));
                let shown: String = text[from..].chars().take(200).collect();
                found.push(format!("{secret:?} as {name} in …{shown}"));
            }
        }
    }
    found
}

/// Characters of the first so many characters of an HTML text, each of which may be an entity.
fn entities(html: &str, count: usize) -> usize {
    let mut rest = html;
    for _ in 0..count {
        let length = if rest.starts_with('&') { rest.find(';').map_or(1, |end| end + 1) } else { 0 };
        let first = rest.chars().next().map_or(0, char::len_utf8);
        rest = &rest[length.max(first)..];
    }
    html[..html.len() - rest.len()].chars().count()
}

fn strings(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            texts.push(text.clone());
            if let Ok(inner @ (Value::Object(_) | Value::Array(_) | Value::String(_))) =
                serde_json::from_str(text)
            {
                strings(&inner, texts);
            }
        }
        Value::Number(number) => texts.push(number.to_string()),
        Value::Array(values) => values.iter().for_each(|value| strings(value, texts)),
        Value::Object(map) => {
            for (key, value) in map {
                texts.push(key.clone());
                strings(value, texts);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}
