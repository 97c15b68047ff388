//! The reasons for which no OAuth access token is available, and whether a login or another try can help.

use std::fmt;

/// What a step towards a token gives.
pub(super) type Result<T, E = OAuthFault> = std::result::Result<T, E>;

/// Why there is no access token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OAuthFault {
    /// A person has to log in; the reason.
    LoginRequired(String),
    /// The person has agreed to scopes that the server still does not accept; asking again does not help.
    ScopeDenied(String),
    /// An authorization server does not answer, or another process holds the lock for too long. Trying again may help.
    Unavailable(String),
    /// What a server says, or what is configured, cannot be used. Trying again does not help.
    Unusable(String),
}

impl OAuthFault {
    /// [`OAuthFault::Unusable`] with this text.
    pub(super) fn unusable(text: impl Into<String>) -> OAuthFault {
        OAuthFault::Unusable(text.into())
    }

    /// [`OAuthFault::Unavailable`] with this text.
    pub(super) fn unavailable(text: impl Into<String>) -> OAuthFault {
        OAuthFault::Unavailable(text.into())
    }
}

impl fmt::Display for OAuthFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OAuthFault::LoginRequired(text)
            | OAuthFault::ScopeDenied(text)
            | OAuthFault::Unavailable(text)
            | OAuthFault::Unusable(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for OAuthFault {}
