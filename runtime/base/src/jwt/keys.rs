//! Parses the public keys of a token issuer (JSON Web Key Set, RFC 7517), and verifies signatures of tokens with them.

use super::algorithm::{Algorithm, Verification};
use super::fault::TokenFault;
use super::token::UnverifiedToken;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Most keys of a set. Further ones are not read.
const MOST_KEYS: usize = 100;

/// Most keys that are tried for a token that names none.
const MOST_TRIED: usize = 8;

/// The keys of one issuer that can verify a signature.
#[derive(Clone, Debug, Default)]
pub struct KeySet {
    keys: Vec<Key>,
}

#[derive(Clone, Debug)]
struct Key {
    id: Option<String>,
    /// The only algorithm that it may be used with.
    algorithm: Option<String>,
    material: Material,
}

#[derive(Clone, Debug)]
enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// A point of this curve, not compressed.
    Elliptic {
        curve: String,
        point: Vec<u8>,
    },
    Ed25519(Vec<u8>),
}

#[derive(Deserialize)]
struct WrittenSet {
    keys: Vec<Map<String, Value>>,
}

impl KeySet {
    /// Reads a set. Keys that verify no signature, or are of an unknown kind, are left out.
    ///
    /// # Errors
    /// The text is no set of keys.
    pub fn parse(text: &[u8]) -> Result<KeySet, serde_json::Error> {
        let set: WrittenSet = serde_json::from_slice(text)?;
        Ok(KeySet { keys: set.keys.iter().take(MOST_KEYS).filter_map(Key::read).collect() })
    }

    /// True without a usable key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether a key that could verify the token is here.
    pub fn may_verify(&self, token: &UnverifiedToken<'_>) -> bool {
        self.keys.iter().any(|key| key.is_named_by(token))
    }

    /// Verifies the signature of a token with one of these algorithms, and returns that one.
    ///
    /// # Errors
    /// The algorithm is not among them, no key fits, or the signature is wrong.
    pub fn verify(
        &self,
        token: &UnverifiedToken<'_>,
        accepted: &[Algorithm],
    ) -> Result<Algorithm, TokenFault> {
        let algorithm = Algorithm::parse(&token.algorithm).filter(|algorithm| accepted.contains(algorithm));
        let algorithm = algorithm.ok_or(TokenFault::Algorithm)?;
        let fits = |key: &&Key| key.is_named_by(token) && key.is_for(algorithm);
        let mut keys = self.keys.iter().filter(fits).take(MOST_TRIED).peekable();
        if keys.peek().is_none() {
            return Err(TokenFault::UnknownKey);
        }
        match keys.any(|key| key.has_signed(token, algorithm)) {
            true => Ok(algorithm),
            false => Err(TokenFault::Signature),
        }
    }
}

impl Key {
    fn read(written: &Map<String, Value>) -> Option<Key> {
        let text = |name: &str| written.get(name).and_then(Value::as_str);
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        if text("use").is_some_and(|usage| usage != "sig") {
            return None;
        }
        if let Some(operations) = written.get("key_ops").and_then(Value::as_array)
            && !operations.iter().any(|operation| operation == "verify")
        {
            return None;
        }
        let material = match text("kty")? {
            "RSA" => Material::Rsa { modulus: bytes("n")?, exponent: bytes("e")? },
            "EC" => {
                let (x, y) = (bytes("x")?, bytes("y")?);
                Material::Elliptic { curve: text("crv")?.to_owned(), point: [&[4][..], &x, &y].concat() }
            }
            "OKP" if text("crv") == Some("Ed25519") => Material::Ed25519(bytes("x")?),
            _ => return None,
        };
        Some(Key { id: text("kid").map(str::to_owned), algorithm: text("alg").map(str::to_owned), material })
    }

    /// A token that names a key means that one; one that names none may be signed with any.
    fn is_named_by(&self, token: &UnverifiedToken<'_>) -> bool {
        token.key_id.is_none() || self.id == token.key_id
    }

    fn is_for(&self, algorithm: Algorithm) -> bool {
        let kind = match (algorithm.verification(), &self.material) {
            (Verification::Rsa(_), Material::Rsa { .. })
            | (Verification::Ed25519(_), Material::Ed25519(_)) => true,
            (Verification::Ecdsa(_, name, bytes), Material::Elliptic { curve, point }) => {
                name == curve && point.len() == 1 + 2 * bytes
            }
            _ => false,
        };
        kind && self.algorithm.as_deref().is_none_or(|only| only == algorithm.name())
    }

    fn has_signed(&self, token: &UnverifiedToken<'_>, algorithm: Algorithm) -> bool {
        let (message, signature) = (token.signed.as_bytes(), &token.signature);
        match (algorithm.verification(), &self.material) {
            (Verification::Rsa(parameters), Material::Rsa { modulus, exponent }) => {
                let key = RsaPublicKeyComponents { n: without_zeros(modulus), e: without_zeros(exponent) };
                key.verify(parameters, message, signature).is_ok()
            }
            (Verification::Ecdsa(parameters, ..), Material::Elliptic { point, .. }) => {
                UnparsedPublicKey::new(parameters, point).verify(message, signature).is_ok()
            }
            (Verification::Ed25519(parameters), Material::Ed25519(key)) => {
                UnparsedPublicKey::new(parameters, key).verify(message, signature).is_ok()
            }
            _ => false,
        }
    }
}

/// A number without the leading zeros that some issuers write and `ring` refuses.
fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}
