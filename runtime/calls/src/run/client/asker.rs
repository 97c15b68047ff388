//! Identifies the caller of a tool (front end, token, scopes), and matches it against the patterns by which policy
//! rules name callers.

use ptc_base::named_enum;
use std::fmt;
use std::sync::Arc;

named_enum! {
    /// The front end that a call comes from.
    #[derive(Default)]
    pub enum CallOrigin, ALL {
        /// A program.
        #[default]
        Program = "program",
        /// A program of a session.
        Session = "session",
        /// A Python script.
        Script = "script",
        /// A program that an agent wrote.
        Agent = "agent",
        /// A client that calls the tool itself, without a program.
        Direct = "direct",
    }
}

/// The client behind a run, as its access token names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientIdentity {
    /// Name of the token.
    pub token: Option<Arc<str>>,
    /// Scopes of the token.
    pub scopes: Arc<[String]>,
}

/// Who makes a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallAsker<'a> {
    /// Where it comes from.
    pub origin: CallOrigin,
    /// The client it is for; `None`: the only client of this process.
    pub identity: Option<&'a ClientIdentity>,
}

impl<'a> CallAsker<'a> {
    /// Name of the token.
    pub fn token(&self) -> Option<&'a str> {
        self.identity?.token.as_deref()
    }
}

/// One entry of `who` in a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskerPattern {
    /// `token:NAME`.
    Token(String),
    /// `scope:S`.
    Scope(String),
    /// `session`, `agent`, `script`, `program`, `direct`.
    Origin(CallOrigin),
}

impl AskerPattern {
    /// Reads an entry.
    ///
    /// # Errors
    /// What an entry may be.
    pub fn parse(text: &str) -> Result<AskerPattern, String> {
        match text.split_once(':') {
            Some(("token", name)) if !name.is_empty() => Ok(AskerPattern::Token(name.to_owned())),
            Some(("scope", name)) if !name.is_empty() => Ok(AskerPattern::Scope(name.to_owned())),
            _ => CallOrigin::parse(text).map(AskerPattern::Origin).ok_or_else(|| {
                format!(
                    "{text:?} names no one who asks: use token:NAME, scope:NAME, program, session, agent, script or direct"
                )
            }),
        }
    }

    /// True when this asker is meant.
    pub fn matches(&self, asker: &CallAsker<'_>) -> bool {
        match self {
            AskerPattern::Token(name) => asker.token() == Some(name),
            AskerPattern::Scope(name) => asker.identity.is_some_and(|known| known.scopes.contains(name)),
            AskerPattern::Origin(origin) => asker.origin == *origin,
        }
    }
}

impl fmt::Display for CallAsker<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.token() {
            Some(token) => write!(out, "{} of token {token}", self.origin.name()),
            None => out.write_str(self.origin.name()),
        }
    }
}
