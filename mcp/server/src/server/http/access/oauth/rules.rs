//! Determines what an OAuth token allows, by combining all `[[grant]]` rules of the `--http-oauth` file that match the
//! token's scopes and claims.

use crate::server::http::access::tokens::TokenGrant;
use ptc_base::jwt::Claims;
use ptc_base::oauth::Scopes;
use ptc_calls::tools::ServerNames;
use std::num::NonZeroU32;

/// One `[[grant]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// The only issuer that it is for.
    pub(super) issuer: Option<String>,
    pub(super) condition: Condition,
    /// The servers that it adds; `None`: all.
    pub(super) servers: Option<ServerNames>,
    pub(super) evals_per_minute: Option<NonZeroU32>,
    pub(super) max_concurrent: Option<NonZeroU32>,
}

/// Which tokens a rule fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// Each token of the issuers.
    Any,
    /// Tokens with this scope.
    Scope(String),
    /// Tokens with this text in the claim at a JSON pointer.
    Claim { pointer: String, has: String },
}

/// What a token allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Allowed {
    /// `None`: all.
    pub(super) servers: Option<ServerNames>,
    /// `None`: any number.
    pub(super) evals_per_minute: Option<NonZeroU32>,
    /// `None`: the general limit.
    pub(super) max_concurrent: Option<NonZeroU32>,
}

impl Allowed {
    fn of_rule(rule: &Rule) -> Allowed {
        let Rule { servers, evals_per_minute, max_concurrent, .. } = rule.clone();
        Allowed { servers, evals_per_minute, max_concurrent }
    }

    /// What both allow together. A rule without a limit lifts it.
    fn with(self, rule: &Rule) -> Allowed {
        let most = |one: Option<NonZeroU32>, other: Option<NonZeroU32>| Some(one?.max(other?));
        Allowed {
            servers: self.servers.zip(rule.servers.as_ref()).map(|(one, other)| one.union(other)),
            evals_per_minute: most(self.evals_per_minute, rule.evals_per_minute),
            max_concurrent: most(self.max_concurrent, rule.max_concurrent),
        }
    }

    /// Whether a token with this grant has it already.
    pub(super) fn is_that_of(&self, grant: Option<&TokenGrant>) -> bool {
        grant.is_some_and(|grant| {
            (&grant.servers, grant.evals_per_minute, grant.max_concurrent)
                == (&self.servers, self.evals_per_minute, self.max_concurrent)
        })
    }
}

impl Rule {
    fn fits(&self, issuer: &str, claims: &Claims, scopes: &Scopes) -> bool {
        self.issuer.as_deref().is_none_or(|only| only == issuer)
            && match &self.condition {
                Condition::Any => true,
                Condition::Scope(scope) => scopes.contains(scope),
                Condition::Claim { pointer, has } => claims.has(pointer, has),
            }
    }
}

/// What a token allows by these rules. `required`: scopes that every token must have.
///
/// # Errors
/// All scopes that it lacks: the required ones, and those of rules if no rule fits.
pub(super) fn allowed(
    rules: &[Rule],
    required: &Scopes,
    issuer: &str,
    claims: &Claims,
) -> Result<Allowed, Scopes> {
    let scopes: Scopes = claims.scopes().into_iter().collect();
    let mut fitting = rules.iter().filter(|rule| rule.fits(issuer, claims, &scopes));
    let first = fitting.next().map(Allowed::of_rule);
    let is_complete = scopes.covers(required);
    match first {
        Some(first) if is_complete => Ok(fitting.fold(first, Allowed::with)),
        first => {
            let of_rules = named(rules).filter(|_| first.is_none());
            let wanted = required.iter().map(str::to_owned).chain(of_rules);
            Err(wanted.filter(|scope| !scopes.contains(scope)).collect())
        }
    }
}

/// The scopes that rules name.
pub(super) fn named(rules: &[Rule]) -> impl Iterator<Item = String> {
    rules.iter().filter_map(|rule| match &rule.condition {
        Condition::Scope(scope) => Some(scope.clone()),
        Condition::Any | Condition::Claim { .. } => None,
    })
}
