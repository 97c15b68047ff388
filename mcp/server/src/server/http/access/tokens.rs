//! Reads the file of `--http-tokens`: for each token its name, hash, expiry, limits, and the servers that it may use.
//!
//! ```toml
//! [ci]
//! sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"   # of the token
//! expires = 2027-01-01T00:00:00Z
//! max_concurrent = 8
//! evals_per_minute = 600
//! servers = ["github", "search"]
//! ```

use super::TokenHash;
use jiff::Timestamp;
use ptc_calls::tools::ServerNames;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;

/// What one token allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenGrant {
    /// Its name in the file.
    pub name: String,
    /// Its hash.
    pub hash: TokenHash,
    /// When it expires.
    pub expires: Option<Timestamp>,
    /// Its calls that may run at once, if not the general limit.
    pub max_concurrent: Option<NonZeroU32>,
    /// Tool calls a minute.
    pub evals_per_minute: Option<NonZeroU32>,
    /// Upstream servers that it may use; `None`: all. The set may be empty.
    pub servers: Option<ServerNames>,
}

impl TokenGrant {
    /// A token without expiry and limits.
    pub fn unlimited(name: &str, hash: TokenHash) -> TokenGrant {
        TokenGrant {
            name: name.into(),
            hash,
            expires: None,
            max_concurrent: None,
            evals_per_minute: None,
            servers: None,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenTable {
    sha256: String,
    expires: Option<toml::Value>,
    max_concurrent: Option<NonZeroU32>,
    evals_per_minute: Option<NonZeroU32>,
    servers: Option<Vec<String>>,
}

/// Reads a file of tokens.
///
/// # Errors
/// What is wrong with it, in a line.
pub fn read(path: &Path) -> Result<Vec<TokenGrant>, String> {
    let named = |wrong: String| format!("{}: {wrong}", path.display());
    let text = ptc_base::files::read_text(path).map_err(|error| named(error.to_string()))?;
    parse(&text).map_err(named)
}

/// Reads a file of tokens when the server starts: then all that is stored for other tokens is removed. So a file without any
/// text, which is more likely a damaged one, is refused.
///
/// # Errors
/// As [`read`]; it is empty.
pub fn read_first(path: &Path) -> Result<Vec<TokenGrant>, String> {
    let grants = read(path)?;
    let is_empty =
        grants.is_empty() && std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0);
    match is_empty {
        true => Err(format!(
            "{}: it is empty, and what is stored for its tokens would be removed; put a copy of it in its place, or \
             write a comment in it if there are no tokens",
            path.display()
        )),
        false => Ok(grants),
    }
}

fn parse(text: &str) -> Result<Vec<TokenGrant>, String> {
    let tables: BTreeMap<String, TokenTable> = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut grants: Vec<TokenGrant> = Vec::new();
    for (name, table) in tables {
        let wrong = |what: &str| format!("token {name:?}: {what}");
        let hash = from_hex(&table.sha256).ok_or_else(|| wrong("`sha256` must be 64 hexadecimal digits"))?;
        if let Some(twin) = grants.iter().find(|grant| grant.hash == hash) {
            return Err(wrong(&format!("it is the same token as {:?}", twin.name)));
        }
        let expires = table
            .expires
            .map(|value| {
                date(&value).ok_or_else(|| wrong("`expires` must be a date, or a time with its zone"))
            })
            .transpose()?;
        let TokenTable { max_concurrent, evals_per_minute, servers, .. } = table;
        let servers = servers.map(ServerNames::from_iter);
        grants.push(TokenGrant { name, hash, expires, max_concurrent, evals_per_minute, servers });
    }
    Ok(grants)
}

/// A timestamp, or the start of a day in UTC.
fn date(value: &toml::Value) -> Option<Timestamp> {
    let text = match value {
        toml::Value::Datetime(date) => date.to_string(),
        toml::Value::String(text) => text.clone(),
        _ => return None,
    };
    text.parse().or_else(|_| format!("{text}T00:00:00Z").parse()).ok()
}

fn from_hex(text: &str) -> Option<TokenHash> {
    let mut hash = TokenHash::default();
    let digits = text.as_bytes();
    if digits.len() != 2 * hash.len() {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(digits.chunks(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_and_what_is_wrong_is_said() {
        let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        let grants = parse(&format!(
            "[ci]\nsha256 = \"{hash}\"\nexpires = 2027-01-01T00:00:00Z\nevals_per_minute = 600\nmax_concurrent = 2"
        ))
        .expect("a file");
        assert_eq!((&*grants[0].name, grants[0].hash), ("ci", super::super::hash("test")));
        assert_eq!(grants[0].expires, "2027-01-01T00:00:00Z".parse().ok());
        let day = parse(&format!("[a]\nsha256 = \"{hash}\"\nexpires = 2027-01-01")).expect("a file");
        assert_eq!(day[0].expires, grants[0].expires);
        assert!(day[0].servers.is_none());
        let some = parse(&format!("[a]\nsha256 = \"{hash}\"\nservers = [\"x\"]")).expect("a file");
        assert!(some[0].servers.as_ref().is_some_and(|some| some.contains("x") && !some.contains("y")));
        let wrong = |text: &str| parse(text).expect_err("a wrong file");
        assert!(wrong("[a]\nsha256 = \"12\"").contains("64 hexadecimal digits"));
        assert!(
            wrong(&format!("[a]\nsha256 = \"{hash}\"\nexpires = 7")).contains("`expires` must be a date")
        );
        assert!(
            wrong(&format!("[a]\nsha256 = \"{hash}\"\n[b]\nsha256 = \"{hash}\""))
                .contains("the same token as \"a\"")
        );
        assert!(wrong(&format!("[a]\nsha256 = \"{hash}\"\nmax_concurent = 1")).contains("max_concurent"));
        assert!(wrong(&format!("[a]\nsha256 = \"{hash}\"\nservers = \"x\"")).contains("servers"));
        assert!(wrong(&format!("[a]\nsha256 = \"{hash}\"\nmax_concurrent = 0")).contains("nonzero"));
    }

    /// All tasks of tokens that are gone are removed at the start.
    #[test]
    fn a_server_does_not_start_with_an_empty_file() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert!(read_first(file.path()).expect_err("empty").contains("write a comment in it"));
        std::io::Write::write_all(&mut file.as_file(), b"# none\n").expect("written");
        assert_eq!(read_first(file.path()), Ok(Vec::new()));
    }
}
