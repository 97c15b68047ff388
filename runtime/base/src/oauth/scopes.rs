//! Sets of OAuth scopes: parses, compares and unites them, and keeps the order in which scopes were first named.

use std::fmt;

/// Scopes without duplicates (RFC 6749, section 3.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scopes(Vec<String>);

impl Scopes {
    /// The scopes of a text, which are separated by blanks.
    pub fn parse(text: &str) -> Scopes {
        text.split_ascii_whitespace().map(str::to_owned).collect()
    }

    /// True without any scope.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True with this scope.
    pub fn contains(&self, scope: &str) -> bool {
        self.0.iter().any(|known| known == scope)
    }

    /// True when each of the other scopes is here.
    pub fn covers(&self, other: &Scopes) -> bool {
        other.0.iter().all(|scope| self.contains(scope))
    }

    /// These scopes, then those of the other set that are not here.
    #[must_use]
    pub fn union(&self, other: &Scopes) -> Scopes {
        self.0.iter().chain(&other.0).cloned().collect()
    }

    /// The scopes in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl FromIterator<String> for Scopes {
    fn from_iter<I: IntoIterator<Item = String>>(scopes: I) -> Scopes {
        let mut all = Scopes::default();
        for scope in scopes {
            if !scope.is_empty() && !all.contains(&scope) {
                all.0.push(scope);
            }
        }
        all
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}
