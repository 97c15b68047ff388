//! JSON Web Tokens that others have signed (RFC 7519): reads them strictly, checks their claims, and verifies their
//! signatures with the public keys of an issuer.
//!
//! # Layout
//!
//! - [`UnverifiedToken`] (`token`): the parts of a token.
//! - [`KeySet`] (`keys`): public keys (RFC 7517), and verification. [`Algorithm`] (`algorithm`): what they verify.
//! - [`ClaimRules`] (`claims`): who must have issued a token, for whom, and when it is valid.
//! - [`IssuerKeys`] (`issuer_keys`): fetches the keys of an issuer.
//! - [`TokenFault`] (`fault`): why a token is refused.
//!
//! A token is checked in this order: its form, the algorithm, the signature, the claims. The algorithms are those of the
//! configuration, never what a token or a key says (RFC 8725, section 3.1). There is no algorithm with a shared secret,
//! so a public key cannot be taken for one.

mod algorithm;
mod claims;
mod fault;
mod issuer_keys;
mod keys;
mod token;

pub use algorithm::Algorithm;
pub use claims::{ClaimRules, Claims};
pub use fault::TokenFault;
pub use issuer_keys::{IssuerKeys, KeySource};
pub use keys::KeySet;
pub use token::{LONGEST_TOKEN, UnverifiedToken};
