//! The algorithms with which signatures of JSON Web Tokens are verified (RFC 7518, section 3.1; RFC 8037).

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, EcdsaVerificationAlgorithm,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters,
};
use std::fmt;

/// An algorithm with a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// ECDSA with P-384 and SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

/// How an algorithm verifies.
pub(super) enum Verification {
    Rsa(&'static RsaParameters),
    /// The curve's name in a key, and the bytes of a coordinate.
    Ecdsa(&'static EcdsaVerificationAlgorithm, &'static str, usize),
    Ed25519(&'static ring::signature::EdDSAParameters),
}

impl Algorithm {
    /// All of them with their names.
    pub const NAMES: [(Algorithm, &'static str); 9] = [
        (Algorithm::Rs256, "RS256"),
        (Algorithm::Rs384, "RS384"),
        (Algorithm::Rs512, "RS512"),
        (Algorithm::Ps256, "PS256"),
        (Algorithm::Ps384, "PS384"),
        (Algorithm::Ps512, "PS512"),
        (Algorithm::Es256, "ES256"),
        (Algorithm::Es384, "ES384"),
        (Algorithm::EdDsa, "EdDSA"),
    ];

    /// The algorithm of this name, which has a case.
    pub fn parse(name: &str) -> Option<Algorithm> {
        Algorithm::NAMES.iter().find(|(_, known)| *known == name).map(|(algorithm, _)| *algorithm)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Algorithm::NAMES.iter().find(|(known, _)| *known == self).map_or("", |(_, name)| name)
    }

    pub(super) fn verification(self) -> Verification {
        match self {
            Algorithm::Rs256 => Verification::Rsa(&RSA_PKCS1_2048_8192_SHA256),
            Algorithm::Rs384 => Verification::Rsa(&RSA_PKCS1_2048_8192_SHA384),
            Algorithm::Rs512 => Verification::Rsa(&RSA_PKCS1_2048_8192_SHA512),
            Algorithm::Ps256 => Verification::Rsa(&RSA_PSS_2048_8192_SHA256),
            Algorithm::Ps384 => Verification::Rsa(&RSA_PSS_2048_8192_SHA384),
            Algorithm::Ps512 => Verification::Rsa(&RSA_PSS_2048_8192_SHA512),
            Algorithm::Es256 => Verification::Ecdsa(&ECDSA_P256_SHA256_FIXED, "P-256", 32),
            Algorithm::Es384 => Verification::Ecdsa(&ECDSA_P384_SHA384_FIXED, "P-384", 48),
            Algorithm::EdDsa => Verification::Ed25519(&ED25519),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
