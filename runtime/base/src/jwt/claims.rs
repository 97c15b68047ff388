//! Verifies an access token: its signature, then its claims about issuer, audience, subject and validity (RFC 9068).

use super::fault::TokenFault;
use super::token::UnverifiedToken;
use crate::jwt::{Algorithm, KeySet};
use serde_json::{Map, Value};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// By how much clocks may differ.
const SKEW: i64 = 60;

/// The latest end of a token, 9999-12-30T22:00:00Z. A later one counts as this, so that no sum of times overflows.
const LATEST: i64 = 253_402_207_200;

/// Longest subject, in bytes.
const LONGEST_SUBJECT: usize = 1_024;

/// Claims that only ID tokens have (OpenID Connect Core, sections 2 and 3.3.2.11).
const OF_ID_TOKENS: [&str; 3] = ["nonce", "at_hash", "c_hash"];

/// What a token has to say.
#[derive(Clone, Copy, Debug)]
pub struct ClaimRules<'r> {
    /// The issuer, compared byte by byte.
    pub issuer: &'r str,
    /// The audience that must be named, compared byte by byte.
    pub audience: &'r str,
}

/// The claims of a token that was verified.
#[derive(Clone, Debug)]
pub struct Claims {
    /// The subject: the person or program that it stands for.
    pub subject: String,
    /// When it expires.
    pub expires: SystemTime,
    /// The algorithm that verified it.
    pub algorithm: Algorithm,
    all: Map<String, Value>,
}

impl Claims {
    /// Verifies a token: its signature by the keys, then its claims.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn verify(
        token: UnverifiedToken<'_>,
        keys: &KeySet,
        accepted: &[Algorithm],
        rules: &ClaimRules<'_>,
    ) -> Result<Claims, TokenFault> {
        let algorithm = keys.verify(&token, accepted)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        Claims::check(token.claims, algorithm, rules, now)
    }

    fn check(
        all: Map<String, Value>,
        algorithm: Algorithm,
        rules: &ClaimRules<'_>,
        now: i64,
    ) -> Result<Claims, TokenFault> {
        if all.get("iss").and_then(Value::as_str) != Some(rules.issuer) {
            return Err(TokenFault::Issuer);
        }
        if !names(all.get("aud"), rules.audience) {
            return Err(TokenFault::Audience);
        }
        if OF_ID_TOKENS.iter().any(|name| all.contains_key(*name)) {
            return Err(TokenFault::IdToken);
        }
        let expires = time(&all, "exp")?.ok_or(TokenFault::Claims)?;
        if now >= expires.saturating_add(SKEW) {
            return Err(TokenFault::Expired);
        }
        for name in ["nbf", "iat"] {
            if time(&all, name)?.is_some_and(|from| now < from.saturating_sub(SKEW)) {
                return Err(TokenFault::NotYet);
            }
        }
        let subject = all.get("sub").and_then(Value::as_str).filter(|subject| !subject.is_empty());
        let subject = subject.filter(|subject| subject.len() <= LONGEST_SUBJECT).ok_or(TokenFault::Claims)?;
        let expires = u64::try_from(expires.min(LATEST)).unwrap_or_default();
        let expires = UNIX_EPOCH + Duration::from_secs(expires);
        Ok(Claims { subject: subject.to_owned(), expires, algorithm, all })
    }

    /// Whether it names this audience.
    pub fn is_for(&self, audience: &str) -> bool {
        names(self.all.get("aud"), audience)
    }

    /// Its scopes: `scope` with blanks (RFC 8693, section 4.2), or `scp` as other issuers write it.
    pub fn scopes(&self) -> Vec<String> {
        let words = |text: &str| text.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let read = |claim: &Value| match claim {
            Value::String(text) => words(text),
            Value::Array(items) => items.iter().filter_map(Value::as_str).flat_map(words).collect(),
            _ => Vec::new(),
        };
        ["scope", "scp"].iter().filter_map(|name| self.all.get(*name)).flat_map(read).collect()
    }

    /// Whether the claim at a JSON pointer is this text, or a list with it.
    pub fn has(&self, pointer: &str, text: &str) -> bool {
        let mut steps = pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~"));
        let found = steps.next().and_then(|first| {
            steps.try_fold(self.all.get(&first)?, |value, name| match value {
                Value::Object(members) => members.get(&name),
                Value::Array(items) => items.get(name.parse::<usize>().ok()?),
                _ => None,
            })
        });
        names(found, text)
    }
}

/// Whether a claim is this text, compared byte by byte, or a list with it.
fn names(claim: Option<&Value>, wanted: &str) -> bool {
    match claim {
        Some(Value::String(text)) => text == wanted,
        Some(Value::Array(items)) => items.iter().any(|item| item == wanted),
        _ => false,
    }
}

/// A time in seconds since 1970; a part of a second does not count.
fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<i64>, TokenFault> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let whole = value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        // Beyond this, not every whole number is a float.
        (number.abs() < 9e15).then_some(number.floor() as i64)
    });
    whole.map(Some).ok_or(TokenFault::Claims)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const RULES: ClaimRules<'_> = ClaimRules { issuer: "https://i", audience: "https://s/mcp" };

    fn check(claims: &Value) -> Result<Claims, TokenFault> {
        Claims::check(claims.as_object().unwrap().clone(), Algorithm::Es256, &RULES, 1_000)
    }

    fn good() -> Value {
        json!({ "iss": "https://i", "aud": "https://s/mcp", "sub": "u", "exp": 1_100 })
    }

    #[test]
    fn each_claim_is_needed_and_exact() {
        assert_eq!(check(&good()).unwrap().subject, "u");
        let table = [
            ("iss", json!("https://i/"), TokenFault::Issuer),
            ("iss", json!(["https://i"]), TokenFault::Issuer),
            ("aud", json!("https://s/mcp/"), TokenFault::Audience),
            ("aud", json!("https://s"), TokenFault::Audience),
            ("aud", json!(["x"]), TokenFault::Audience),
            ("aud", json!([]), TokenFault::Audience),
            ("aud", Value::Null, TokenFault::Audience),
            ("exp", json!(940), TokenFault::Expired),
            ("exp", json!("1100"), TokenFault::Claims),
            ("exp", json!(1e300), TokenFault::Claims),
            ("exp", Value::Null, TokenFault::Claims),
            ("nbf", json!(1_061), TokenFault::NotYet),
            ("nbf", json!("0"), TokenFault::Claims),
            ("iat", json!(2_000), TokenFault::NotYet),
            ("sub", json!(""), TokenFault::Claims),
            ("sub", json!(7), TokenFault::Claims),
            ("sub", json!("u".repeat(2_000)), TokenFault::Claims),
            ("nonce", json!("n"), TokenFault::IdToken),
            ("at_hash", json!("n"), TokenFault::IdToken),
        ];
        for (name, value, fault) in table {
            let mut claims = good();
            claims[name] = value.clone();
            assert_eq!(check(&claims).unwrap_err(), fault, "{name}: {value}");
        }
        for name in ["iss", "aud", "sub", "exp"] {
            let mut claims = good();
            claims.as_object_mut().unwrap().remove(name);
            assert!(check(&claims).is_err(), "{name}");
        }
        for (name, value) in [
            ("aud", json!(["x", "https://s/mcp"])),
            ("exp", json!(941)),
            ("nbf", json!(1_060.9)),
            ("iat", json!(0)),
        ] {
            let mut claims = good();
            claims[name] = value;
            assert!(check(&claims).is_ok(), "{claims}");
        }
    }

    #[test]
    fn an_end_that_is_never_reached_is_a_date() {
        for end in [json!(i64::MAX), json!(LATEST + 1), json!(8e15)] {
            let mut claims = good();
            claims["exp"] = end;
            assert_eq!(check(&claims).unwrap().expires, UNIX_EPOCH + Duration::from_secs(LATEST as u64));
        }
    }

    #[test]
    fn scopes_and_claims_are_found_where_issuers_write_them() {
        let mut claims = good();
        claims["scope"] = json!("a b");
        claims["scp"] = json!(["c", "d e"]);
        claims["groups"] = json!(["devs", 5]);
        claims["realm"] = json!({ "a/b": { "roles": ["x"] }, "name": "n" });
        let claims = check(&claims).unwrap();
        assert_eq!(claims.scopes(), ["a", "b", "c", "d", "e"]);
        assert!(claims.has("/groups", "devs") && claims.has("/realm/a~1b/roles", "x"));
        assert!(claims.has("/groups/0", "devs") && claims.has("/realm/name", "n"));
        for (pointer, text) in
            [("/groups", "5"), ("/groups", "dev"), ("", "u"), ("sub", "u"), ("/none/x", "y")]
        {
            assert!(!claims.has(pointer, text), "{pointer}");
        }
    }
}
