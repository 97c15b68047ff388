//! Reads the OAuth settings of the server (`--http-oauth FILE`): its name as a resource, the issuers that it trusts,
//! and what their tokens allow.
//!
//! ```toml
//! resource = "https://ptc.corp.example/mcp"      # the audience of its tokens
//! required_scopes = ["mcp"]                       # each token has to have them
//!
//! [[issuer]]
//! issuer = "https://login.corp.example/realms/x"  # keys by discovery, or jwks_uri, or jwks_file
//! algorithms = ["RS256", "ES256"]
//!
//! [[grant]]                                       # all that fit a token count together
//! scope = "mcp:github"                            # or claim = "/groups" and has = "devs"
//! servers = ["github", "search"]
//! evals_per_minute = 600
//! max_concurrent = 8
//! ```

use super::rules::{self, Allowed, Condition, Rule};
use ptc_base::jwt::{Algorithm, Claims, IssuerKeys, KeySource};
use ptc_base::net::{HttpClient, Url, is_loopback};
use ptc_base::oauth::Scopes;
use ptc_calls::tools::ServerNames;
use serde::Deserialize;
use std::collections::HashSet;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The settings of a file.
pub(super) struct OAuthSettings {
    written: WrittenFile,
    /// The identifier of this resource, which tokens must name as their audience.
    pub(super) resource: String,
    pub(super) resource_url: Url,
    required: Scopes,
    issuers: Vec<Issuer>,
    rules: Vec<Rule>,
}

/// An issuer whose tokens are accepted.
pub(super) struct Issuer {
    /// Its identifier, byte by byte.
    pub(super) name: String,
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) keys: Arc<IssuerKeys>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct WrittenFile {
    resource: String,
    #[serde(default)]
    required_scopes: Vec<String>,
    #[serde(default, rename = "issuer")]
    issuers: Vec<WrittenIssuer>,
    #[serde(default, rename = "grant")]
    grants: Vec<WrittenGrant>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct WrittenIssuer {
    issuer: String,
    algorithms: Vec<String>,
    jwks_uri: Option<String>,
    jwks_file: Option<PathBuf>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct WrittenGrant {
    issuer: Option<String>,
    scope: Option<String>,
    claim: Option<String>,
    has: Option<String>,
    servers: Option<Vec<String>>,
    evals_per_minute: Option<NonZeroU32>,
    max_concurrent: Option<NonZeroU32>,
}

impl OAuthSettings {
    /// Reads the file. Keys are fetched when the first token is shown.
    ///
    /// # Errors
    /// What is wrong with it, in a line.
    pub(super) fn read(path: &Path, client: &HttpClient) -> Result<OAuthSettings, String> {
        let text = ptc_base::files::read_text(path);
        let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        OAuthSettings::parse(&text, folder, client).map_err(|wrong| format!("{}: {wrong}", path.display()))
    }

    fn parse(text: &str, folder: &Path, client: &HttpClient) -> Result<OAuthSettings, String> {
        let written: WrittenFile = toml::from_str(text).map_err(|error| error.to_string())?;
        let resource_url = address(&written.resource, "resource")?;
        if resource_url.fragment().is_some() || resource_url.query().is_some() {
            return Err("`resource` has neither a query nor a fragment".to_owned());
        }
        written.required_scopes.iter().try_for_each(|scope| check_scope(scope))?;
        if written.issuers.is_empty() {
            return Err("there is no [[issuer]]".to_owned());
        }
        if written.grants.is_empty() {
            return Err("there is no [[grant]], so no token would allow anything".to_owned());
        }
        let issuer = |written: &WrittenIssuer| written.read(folder, client);
        let issuers = written.issuers.iter().map(issuer).collect::<Result<Vec<_>, _>>()?;
        let mut names = HashSet::new();
        if let Some(twin) = issuers.iter().find(|issuer| !names.insert(&*issuer.name)) {
            return Err(format!("issuer {:?} stands twice", twin.name));
        }
        let rule = |written: &WrittenGrant| written.read(&names);
        let rules = written.grants.iter().map(rule).collect::<Result<Vec<_>, _>>()?;
        Ok(OAuthSettings {
            resource: written.resource.clone(),
            resource_url,
            required: written.required_scopes.iter().cloned().collect(),
            issuers,
            rules,
            written,
        })
    }

    /// True when both files say the same.
    pub(super) fn is_same(&self, other: &OAuthSettings) -> bool {
        self.written == other.written
    }

    /// Takes over the cached keys of each issuer with the same block in `old`, which was read from the same file. An
    /// edit so causes no requests, and an issuer that does not answer meanwhile goes on with the keys that it had.
    pub(super) fn take_over_keys(&mut self, old: &OAuthSettings) {
        for (issuer, written) in self.issuers.iter_mut().zip(&self.written.issuers) {
            if old.written.issuers.contains(written)
                && let Some(same) = old.issuer(&issuer.name)
            {
                issuer.keys = same.keys.clone();
            }
        }
    }

    /// The issuer of this name.
    pub(super) fn issuer(&self, name: &str) -> Option<&Issuer> {
        self.issuers.iter().find(|issuer| issuer.name == name)
    }

    /// The names of all issuers.
    pub(super) fn issuers(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().map(|issuer| &*issuer.name)
    }

    /// All scopes that mean something here.
    pub(super) fn scopes(&self) -> Scopes {
        self.required.iter().map(str::to_owned).chain(rules::named(&self.rules)).collect()
    }

    /// What a token of this issuer allows.
    ///
    /// # Errors
    /// The scopes that it lacks.
    pub(super) fn allowed(&self, issuer: &str, claims: &Claims) -> Result<Allowed, Scopes> {
        rules::allowed(&self.rules, &self.required, issuer, claims)
    }

    /// What a token that was verified under other settings allows under these; `None` if it is refused.
    pub(super) fn accepted(&self, issuer: &str, claims: &Claims) -> Option<Allowed> {
        let issuer = self.issuer(issuer)?;
        let is_accepted = issuer.algorithms.contains(&claims.algorithm) && claims.is_for(&self.resource);
        self.allowed(&issuer.name, claims).ok().filter(|_| is_accepted)
    }
}

impl WrittenIssuer {
    fn read(&self, folder: &Path, client: &HttpClient) -> Result<Issuer, String> {
        let name = self.issuer.clone();
        let wrong = |what: String| format!("issuer {name:?}: {what}");
        address(&name, "issuer").map_err(&wrong)?;
        let algorithm = |text: &String| {
            let known = Algorithm::ALL.map(Algorithm::name);
            Algorithm::parse(text).ok_or_else(|| {
                wrong(format!("{text:?} is no algorithm that is accepted: {}", known.join(", ")))
            })
        };
        let algorithms = self.algorithms.iter().map(algorithm).collect::<Result<Vec<_>, _>>()?;
        if algorithms.is_empty() {
            return Err(wrong("`algorithms` is empty".to_owned()));
        }
        let source = match (&self.jwks_uri, &self.jwks_file) {
            (None, None) => KeySource::Discovery,
            (Some(uri), None) => KeySource::Address(address(uri, "jwks_uri").map_err(&wrong)?),
            (None, Some(file)) => KeySource::File(folder.join(file)),
            (Some(_), Some(_)) => {
                return Err(wrong("`jwks_uri` and `jwks_file` exclude each other".to_owned()));
            }
        };
        let keys = Arc::new(IssuerKeys::new(&name, source, client.clone()));
        Ok(Issuer { name, algorithms, keys })
    }
}

impl WrittenGrant {
    fn read(&self, issuers: &HashSet<&str>) -> Result<Rule, String> {
        let condition = match (&self.scope, &self.claim, &self.has) {
            (None, None, None) => Condition::Any,
            (Some(scope), None, None) => {
                check_scope(scope)?;
                Condition::Scope(scope.clone())
            }
            (None, Some(pointer), Some(has)) if pointer.starts_with('/') => {
                Condition::Claim { pointer: pointer.clone(), has: has.clone() }
            }
            (None, Some(pointer), Some(_)) => {
                return Err(format!("`claim` is a JSON pointer as \"/groups\", not {pointer:?}"));
            }
            _ => return Err("a [[grant]] has either `scope`, or `claim` and `has`".to_owned()),
        };
        if let Some(issuer) = self.issuer.as_ref().filter(|issuer| !issuers.contains(issuer.as_str())) {
            return Err(format!("a [[grant]] names the issuer {issuer:?}, which is none of the [[issuer]]"));
        }
        Ok(Rule {
            issuer: self.issuer.clone(),
            condition,
            servers: self.servers.clone().map(ServerNames::from_iter),
            evals_per_minute: self.evals_per_minute,
            max_concurrent: self.max_concurrent,
        })
    }
}

/// An address over https, or on this machine.
fn address(text: &str, what: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|why| format!("`{what}` is no address: {why}"))?;
    let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url));
    match is_safe && url.username().is_empty() && url.password().is_none() {
        true => Ok(url),
        false => Err(format!("`{what}` has to begin with https://, or be on this machine: {text:?}")),
    }
}

/// Checks the characters of a scope (RFC 6749, section 3.3). It stands in quotes in challenges.
fn check_scope(scope: &str) -> Result<(), String> {
    let is_plain = |byte: u8| (0x21..=0x7e).contains(&byte) && byte != b'"' && byte != b'\\';
    match !scope.is_empty() && scope.bytes().all(is_plain) {
        true => Ok(()),
        false => Err(format!("{scope:?} is no scope: it has no blanks, quotes or backslashes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<OAuthSettings, String> {
        let client = HttpClient::new(&Default::default()).unwrap();
        OAuthSettings::parse(text, Path::new("/etc/ptc"), &client)
    }

    const HEAD: &str = "resource = \"https://s/mcp\"\n";
    const ISSUER: &str = "[[issuer]]\nissuer = \"https://i\"\nalgorithms = [\"ES256\"]\n";

    #[test]
    fn keys_of_an_issuer_stay_until_its_block_is_edited() {
        let other = ISSUER.replace("https://i", "https://j");
        let old =
            parse(&format!("{HEAD}{ISSUER}{other}[[grant]]\n")).unwrap_or_else(|wrong| panic!("{wrong}"));
        let edited = other.replace("ES256", "RS256");
        let mut new = parse(&format!("{HEAD}{edited}{ISSUER}[[grant]]\nscope = \"a\"\n"))
            .unwrap_or_else(|wrong| panic!("{wrong}"));
        new.take_over_keys(&old);
        let is_same = |name| match (old.issuer(name), new.issuer(name)) {
            (Some(old), Some(new)) => Arc::ptr_eq(&old.keys, &new.keys),
            _ => false,
        };
        assert!(is_same("https://i") && !is_same("https://j"));
    }

    #[test]
    fn files_are_read_and_what_is_wrong_is_said() {
        let good = format!(
            "{HEAD}required_scopes = [\"mcp\"]\n{ISSUER}[[grant]]\nscope = \"a\"\nservers = [\"x\"]\n"
        );
        let settings = parse(&good).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(settings.scopes().to_string(), "mcp a");
        assert!(settings.issuer("https://i").is_some() && settings.issuer("https://i/").is_none());
        assert!(settings.is_same(&parse(&good).unwrap_or_else(|wrong| panic!("{wrong}"))));
        let grant = "[[grant]]\n";
        for (text, part) in [
            (format!("{HEAD}{ISSUER}"), "no [[grant]]"),
            (format!("{HEAD}{grant}"), "no [[issuer]]"),
            (format!("resource = \"http://s/mcp\"\n{ISSUER}{grant}"), "https://"),
            (format!("resource = \"https://s/mcp#x\"\n{ISSUER}{grant}"), "fragment"),
            (format!("{HEAD}{}{grant}", ISSUER.replace("ES256", "HS256")), "\"HS256\" is no algorithm"),
            (format!("{HEAD}{}{grant}", ISSUER.replace("ES256", "none")), "\"none\" is no algorithm"),
            (format!("{HEAD}{}{grant}", ISSUER.replace("[\"ES256\"]", "[]")), "`algorithms` is empty"),
            (format!("{HEAD}{}{grant}", ISSUER.replace("https://i", "http://i")), "https://"),
            (format!("{HEAD}{ISSUER}{ISSUER}{grant}"), "stands twice"),
            (format!("{HEAD}{ISSUER}jwks_uri = \"https://i/k\"\njwks_file = \"k\"\n{grant}"), "exclude"),
            (format!("{HEAD}{ISSUER}{grant}scope = \"a b\"\n"), "no scope"),
            (format!("{HEAD}{ISSUER}{grant}claim = \"/groups\"\n"), "either `scope`"),
            (format!("{HEAD}{ISSUER}{grant}claim = \"groups\"\nhas = \"x\"\n"), "JSON pointer"),
            (format!("{HEAD}{ISSUER}{grant}issuer = \"https://j\"\n"), "none of the [[issuer]]"),
            (format!("{HEAD}{ISSUER}{grant}server = [\"x\"]\n"), "unknown field `server`"),
            (format!("{HEAD}{ISSUER}{grant}max_concurrent = 0\n"), "nonzero"),
        ] {
            let wrong = parse(&text).err().unwrap_or_default();
            assert!(wrong.contains(part), "{text}: {wrong}");
        }
    }
}
