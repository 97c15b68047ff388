//! Lists the reasons for which a JSON Web Token is refused, and describes each in words.

use std::fmt;

/// Why a token is refused. No text of the token is part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFault {
    /// It is longer than any token may be.
    Oversize,
    /// It is no signed token: not three parts, not base64url, not JSON, or with a member twice.
    Malformed,
    /// It needs an extension that is not understood (`crit`).
    Critical,
    /// Its `typ` is another kind of token.
    WrongType,
    /// Its algorithm is not one of those that are configured for its issuer.
    Algorithm,
    /// No key of its issuer fits.
    UnknownKey,
    /// The signature is not that of the key.
    Signature,
    /// It is from another issuer.
    Issuer,
    /// It is for another audience, or for none.
    Audience,
    /// It is an ID token, which is for a client and not for a server.
    IdToken,
    /// It has expired.
    Expired,
    /// It is not valid yet.
    NotYet,
    /// A claim that is needed is absent, or of another type.
    Claims,
}

impl TokenFault {
    /// What is wrong, in words without a quote or a backslash.
    pub const fn words(self) -> &'static str {
        match self {
            TokenFault::Oversize => "the token is too long",
            TokenFault::Malformed => "the token is malformed",
            TokenFault::Critical => "the token needs an extension that is not understood",
            TokenFault::WrongType => "the token is of another type",
            TokenFault::Algorithm => "the algorithm of the token is not accepted",
            TokenFault::UnknownKey => "the key of the token is not known",
            TokenFault::Signature => "the signature of the token is wrong",
            TokenFault::Issuer => "the issuer of the token is not accepted",
            TokenFault::Audience => "the token is not for this server",
            TokenFault::IdToken => "this is an ID token, not an access token",
            TokenFault::Expired => "the token has expired",
            TokenFault::NotYet => "the token is not valid yet",
            TokenFault::Claims => "a claim of the token is absent or malformed",
        }
    }
}

impl fmt::Display for TokenFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl std::error::Error for TokenFault {}
