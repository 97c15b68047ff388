//! Reads the private key of an OAuth client, and signs with it the JSON Web Tokens that authenticate the client at an
//! authorization server (RFC 7523).

use crate::oauth::{OAuthFault, Result, random};
use crate::secrets::{Credential, SecretRegistry};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    RSA_PKCS1_SHA256, RsaKeyPair,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;
use std::sync::Arc;

/// Seconds for which an assertion is good.
const LIFE: u64 = 120;

/// A private key. It is a secret, so it implements neither `Debug` nor `Serialize`.
#[derive(Clone)]
pub struct SigningKey {
    pair: Arc<KeyPair>,
    /// Its name at the server (`kid`).
    id: Option<String>,
}

enum KeyPair {
    Es256(EcdsaKeyPair),
    Es384(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
    Rs256(RsaKeyPair),
}

impl SigningKey {
    /// Reads a key in PEM: EC P-256 or P-384, Ed25519, or RSA.
    ///
    /// # Errors
    /// It is none of these; why.
    pub fn from_pem(pem: &Credential, id: Option<String>) -> Result<SigningKey, String> {
        let key = PrivateKeyDer::from_pem_slice(pem.expose().as_bytes())
            .map_err(|_| "is no private key in PEM".to_owned())?;
        let pair = match &key {
            PrivateKeyDer::Pkcs8(key) => from_pkcs8(key.secret_pkcs8_der()),
            PrivateKeyDer::Pkcs1(key) => {
                RsaKeyPair::from_der(key.secret_pkcs1_der()).ok().map(KeyPair::Rs256)
            }
            _ => None,
        };
        let pair = pair.ok_or_else(|| {
            "is of no kind that can be used: EC P-256 or P-384, Ed25519, or RSA, as PKCS #8".to_owned()
        })?;
        Ok(SigningKey { pair: Arc::new(pair), id })
    }

    fn algorithm(&self) -> &'static str {
        match &*self.pair {
            KeyPair::Es256(_) => "ES256",
            KeyPair::Es384(_) => "ES384",
            KeyPair::EdDsa(_) => "EdDSA",
            KeyPair::Rs256(_) => "RS256",
        }
    }

    fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match &*self.pair {
            KeyPair::Es256(pair) | KeyPair::Es384(pair) => {
                pair.sign(&random, message).ok().map(|signature| signature.as_ref().to_vec())
            }
            KeyPair::EdDsa(pair) => Some(pair.sign(message).as_ref().to_vec()),
            KeyPair::Rs256(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).ok()?;
                Some(signature)
            }
        }
    }

    /// The assertion with which a client authenticates at this issuer (RFC 7523, section 3). It is a registered secret.
    pub(in crate::oauth) fn assertion(
        &self,
        client: &str,
        issuer: &str,
        secrets: &SecretRegistry,
    ) -> Result<Credential> {
        let now = crate::oauth::store::stored::now();
        let mut header = json!({ "alg": self.algorithm(), "typ": "JWT" });
        if let Some(id) = &self.id {
            header["kid"] = id.as_str().into();
        }
        let claims = json!({
            "iss": client, "sub": client, "aud": issuer, "jti": random::unregistered()?.expose(),
            "iat": now, "exp": now + LIFE,
        });
        let encoded = |json: &serde_json::Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let text = format!("{}.{}", encoded(&header), encoded(&claims));
        let signature = self.sign(text.as_bytes());
        let signature =
            signature.ok_or_else(|| OAuthFault::unusable("the key of the client does not sign"))?;
        let assertion = format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature));
        Ok(Credential::token(assertion, secrets))
    }
}

fn from_pkcs8(der: &[u8]) -> Option<KeyPair> {
    let random = SystemRandom::new();
    let es256 =
        || EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random).ok().map(KeyPair::Es256);
    let es384 =
        || EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, der, &random).ok().map(KeyPair::Es384);
    // Keys of OpenSSL come without their public part.
    let eddsa = || Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).ok().map(KeyPair::EdDsa);
    let rs256 = || RsaKeyPair::from_pkcs8(der).ok().map(KeyPair::Rs256);
    es256().or_else(es384).or_else(eddsa).or_else(rs256)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, KeyPair as _, UnparsedPublicKey};

    #[test]
    fn an_assertion_is_signed_and_says_who_and_for_whom() {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let public =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.as_ref(), &random).unwrap();
        let body = base64::engine::general_purpose::STANDARD.encode(der.as_ref());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n");
        let key = SigningKey::from_pem(&Credential::composed(pem), Some("k1".into())).ok().unwrap();
        let secrets = SecretRegistry::new();
        let assertion = key.assertion("me", "https://as", &secrets).ok().unwrap();
        let parts: Vec<&str> = assertion.expose().split('.').collect();
        let json = |part: &str| -> serde_json::Value {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
        };
        assert_eq!(json(parts[0]), json!({ "alg": "ES256", "typ": "JWT", "kid": "k1" }));
        let claims = json(parts[1]);
        assert!(claims["iss"] == "me" && claims["sub"] == "me" && claims["aud"] == "https://as", "{claims}");
        let message = format!("{}.{}", parts[0], parts[1]);
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public.public_key().as_ref());
        assert!(public.verify(message.as_bytes(), &URL_SAFE_NO_PAD.decode(parts[2]).unwrap()).is_ok());
        assert_eq!(secrets.scrub(assertion.expose()), crate::secrets::REDACTED);
        assert!(SigningKey::from_pem(&Credential::composed("x"), None).is_err());
    }
}
