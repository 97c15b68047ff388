//! Parses a JSON Web Token and checks its form, before its signature and claims are verified elsewhere.

use super::fault::TokenFault;
use crate::strict_json;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

/// Longest token, in bytes. Servers limit the headers of a request to less.
pub const LONGEST_TOKEN: usize = 16 << 10;

/// Longest name of a key.
const LONGEST_KEY_ID: usize = 512;

/// Values of `typ` of access tokens (RFC 9068, section 4; RFC 7519, section 5.1), without the prefix `application/`.
const TYPES: [&str; 2] = ["at+jwt", "jwt"];

/// A token in compact form (RFC 7515, section 7.1) whose signature is not verified.
pub struct UnverifiedToken<'t> {
    /// Header and claims as they are signed.
    pub(super) signed: &'t str,
    pub(super) signature: Vec<u8>,
    /// The algorithm that it names.
    pub(super) algorithm: String,
    /// The key that it names.
    pub(super) key_id: Option<String>,
    pub(super) claims: Map<String, Value>,
}

impl<'t> UnverifiedToken<'t> {
    /// Takes a token apart.
    ///
    /// # Errors
    /// It is no signed token that can be understood.
    pub fn parse(text: &'t str) -> Result<UnverifiedToken<'t>, TokenFault> {
        if text.len() > LONGEST_TOKEN {
            return Err(TokenFault::Oversize);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(TokenFault::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenFault::Malformed)?;
        let header = strict_json::object(&decoded(header)?).ok_or(TokenFault::Malformed)?;
        if header.contains_key("crit") {
            return Err(TokenFault::Critical);
        }
        let text = |name: &str| match header.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(TokenFault::Malformed),
        };
        let algorithm = text("alg")?.ok_or(TokenFault::Malformed)?.to_owned();
        let key_id = text("kid")?.map(str::to_owned);
        if key_id.as_ref().is_some_and(|key_id| key_id.len() > LONGEST_KEY_ID) {
            return Err(TokenFault::Malformed);
        }
        if let Some(kind) = text("typ")? {
            let kind = kind.to_ascii_lowercase();
            if !TYPES.contains(&kind.strip_prefix("application/").unwrap_or(&kind)) {
                return Err(TokenFault::WrongType);
            }
        }
        let claims = strict_json::object(&decoded(claims)?).ok_or(TokenFault::Malformed)?;
        let signature = decoded(signature)?;
        Ok(UnverifiedToken { signed, signature, algorithm, key_id, claims })
    }

    /// The issuer that it names. It selects keys, and is believed only when one of them has signed the token.
    pub fn issuer(&self) -> Option<&str> {
        self.claims.get("iss")?.as_str()
    }
}

fn decoded(part: &str) -> Result<Vec<u8>, TokenFault> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenFault::Malformed)
}
