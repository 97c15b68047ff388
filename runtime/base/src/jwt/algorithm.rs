//! The algorithms with which signatures of JSON Web Tokens are verified (RFC 7518, section 3.1; RFC 8037).

use crate::named_enum;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, EcdsaVerificationAlgorithm,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters,
};
use std::fmt;

named_enum! {
    /// An algorithm with a public key.
    pub enum Algorithm, ALL {
        /// RSASSA-PKCS1-v1_5 with SHA-256.
        Rs256 = "RS256",
        /// RSASSA-PKCS1-v1_5 with SHA-384.
        Rs384 = "RS384",
        /// RSASSA-PKCS1-v1_5 with SHA-512.
        Rs512 = "RS512",
        /// RSASSA-PSS with SHA-256.
        Ps256 = "PS256",
        /// RSASSA-PSS with SHA-384.
        Ps384 = "PS384",
        /// RSASSA-PSS with SHA-512.
        Ps512 = "PS512",
        /// ECDSA with P-256 and SHA-256.
        Es256 = "ES256",
        /// ECDSA with P-384 and SHA-384.
        Es384 = "ES384",
        /// Ed25519.
        EdDsa = "EdDSA",
    }
}

/// How an algorithm verifies.
pub(super) enum Verification {
    Rsa(&'static RsaParameters),
    /// The curve's name in a key, and the bytes of a coordinate.
    Ecdsa(&'static EcdsaVerificationAlgorithm, &'static str, usize),
    Ed25519(&'static ring::signature::EdDSAParameters),
}

impl Algorithm {
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
