//! Finds the OAuth authorization server of an upstream server by the upstream's metadata (RFC 9728), then reads that
//! server's own metadata (RFC 8414, OpenID Connect Discovery).

use crate::net::{Url, shown};
use crate::oauth::server::http::NamedHttp;
use crate::oauth::server::metadata::{AuthorizationServer, ProtectedResource};
use crate::oauth::{OAuthFault, Result};

const RESOURCE_PATH: &str = "/.well-known/oauth-protected-resource";
const SERVER_PATH: &str = "/.well-known/oauth-authorization-server";
const OPENID_PATH: &str = "/.well-known/openid-configuration";

/// What is known about the resource and its authorization server.
#[derive(Clone, Debug)]
pub(in crate::oauth) struct Discovered {
    /// The value of `resource` in requests (RFC 8707).
    pub(in crate::oauth) resource: String,
    /// Scopes of the resource.
    pub(in crate::oauth) scopes_supported: Vec<String>,
    /// The authorization server.
    pub(in crate::oauth) server: AuthorizationServer,
}

/// The value of `resource` for a server whose metadata names none: its address without a fragment, and without the
/// slash of an empty path.
pub(in crate::oauth) fn canonical(server: &Url) -> String {
    let mut url = server.clone();
    url.set_fragment(None);
    let text = url.as_str();
    match url.path() == "/" && url.query().is_none() {
        true => text.trim_end_matches('/').to_owned(),
        false => text.to_owned(),
    }
}

/// Reads the metadata of a resource: at the address of the challenge, else below the path of the server, else at its
/// root. `None` without such metadata.
pub(in crate::oauth) async fn resource(
    http: &NamedHttp,
    server: &Url,
    named: Option<&str>,
) -> Result<Option<ProtectedResource>> {
    let addresses = match named {
        Some(text) => vec![http.address(text, "the metadata of the resource")?],
        None => {
            let path = server.path().trim_end_matches('/');
            let below = (!path.is_empty()).then(|| at_path(server, &format!("{RESOURCE_PATH}{path}")));
            below.into_iter().chain([at_path(server, RESOURCE_PATH)]).collect()
        }
    };
    for address in &addresses {
        let Some(document) = http.document(address).await? else { continue };
        let Some(found) = document.json::<ProtectedResource>() else { continue };
        if !covers(&found.resource, server) {
            return Err(OAuthFault::unusable(format!(
                "{} is about the resource \"{}\", not about {}",
                shown(address),
                found.resource,
                canonical(server)
            )));
        }
        if found.authorization_servers.is_empty() {
            return Err(OAuthFault::unusable(format!("{} names no authorization server", shown(address))));
        }
        return Ok(Some(found));
    }
    match named {
        Some(_) => Err(OAuthFault::unusable("the metadata of the resource is not where the server says")),
        None => Ok(None),
    }
}

/// Reads the metadata of the authorization server: of `wanted`, which must then be one of those that the resource
/// names; else of the first one.
pub(in crate::oauth) async fn authorization_server(
    http: &NamedHttp,
    server: &Url,
    found: Option<ProtectedResource>,
    wanted: Option<&str>,
) -> Result<Discovered> {
    let Some(ProtectedResource { resource, authorization_servers: issuers, scopes_supported }) = found else {
        return own_server(http, server).await;
    };
    let issuer = match wanted {
        Some(wanted) => issuers.iter().find(|issuer| *issuer == wanted).ok_or_else(|| {
            OAuthFault::unusable(format!(
                "the resource does not name the issuer {wanted} that is configured; it names {}",
                issuers.join(", ")
            ))
        })?,
        None => issuers.first().ok_or_else(|| OAuthFault::unusable("no authorization server is named"))?,
    };
    let server = self::issuer(http, issuer).await?;
    Ok(Discovered { resource, scopes_supported, server })
}

/// Reads the metadata of an issuer.
pub(in crate::oauth) async fn issuer(http: &NamedHttp, issuer: &str) -> Result<AuthorizationServer> {
    let address = http.address(issuer, "the issuer")?;
    for address in metadata_addresses(&address) {
        let Some(document) = http.document(&address).await? else { continue };
        let Some(server) = document.json::<AuthorizationServer>() else { continue };
        // RFC 8414, section 3.3: identical, or not to be used.
        if server.issuer != issuer {
            return Err(OAuthFault::unusable(format!(
                "{} says that its issuer is \"{}\", not \"{issuer}\"",
                shown(&address),
                server.issuer
            )));
        }
        return Ok(server);
    }
    Err(OAuthFault::unusable(format!("the authorization server {issuer} has no metadata")))
}

/// Addresses of metadata in the order of the specification of MCP.
pub(crate) fn metadata_addresses(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let with_path =
        [format!("{SERVER_PATH}{path}"), format!("{OPENID_PATH}{path}"), format!("{path}{OPENID_PATH}")];
    let count = if path.is_empty() { 2 } else { 3 };
    with_path.iter().take(count).map(|path| at_path(issuer, path)).collect()
}

/// The authorization server of a resource without metadata: the origin of the resource (MCP 2025-03-26), whose
/// endpoints have fixed paths when it has no metadata either.
async fn own_server(http: &NamedHttp, server: &Url) -> Result<Discovered> {
    let origin = server.origin().ascii_serialization();
    let metadata = match own_metadata(http, server).await? {
        Some(metadata) if metadata.issuer.trim_end_matches('/') == origin => metadata,
        Some(metadata) => {
            return Err(OAuthFault::unusable(format!(
                "{} says that its issuer is \"{}\", not \"{origin}\"",
                shown(&at_path(server, SERVER_PATH)),
                metadata.issuer
            )));
        }
        None => {
            let at = |path: &str| Some(format!("{origin}{path}"));
            AuthorizationServer {
                issuer: origin.clone(),
                authorization_endpoint: at("/authorize"),
                token_endpoint: at("/token"),
                registration_endpoint: at("/register"),
                // That revision requires PKCE of every server.
                code_challenge_methods_supported: vec!["S256".to_owned()],
                ..AuthorizationServer::default()
            }
        }
    };
    Ok(Discovered { resource: canonical(server), scopes_supported: Vec::new(), server: metadata })
}

/// The metadata of an authorization server at the origin of the resource.
pub(in crate::oauth) async fn own_metadata(
    http: &NamedHttp,
    server: &Url,
) -> Result<Option<AuthorizationServer>> {
    let document = http.document(&at_path(server, SERVER_PATH)).await?;
    Ok(document.and_then(|document| document.json()))
}

/// Whether metadata about `resource` is about the server: the same origin, and the same path or one above it.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let above = resource.path().trim_end_matches('/');
    let is_above =
        server.path().strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let same_query = resource.query().is_none() || resource.query() == server.query();
    resource.origin() == server.origin() && is_above && same_query && resource.fragment().is_none()
}

fn at_path(server: &Url, path: &str) -> Url {
    let mut url = server.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn resources_have_no_fragment_and_no_needless_slash() {
        for (server, resource) in [
            ("https://h", "https://h"),
            ("https://h/", "https://h"),
            ("https://h/mcp", "https://h/mcp"),
            ("https://h/mcp/", "https://h/mcp/"),
            ("https://H:443/mcp#x", "https://h/mcp"),
            ("https://h/?a=1", "https://h/?a=1"),
        ] {
            assert_eq!(canonical(&url(server)), resource, "{server}");
        }
    }

    #[test]
    fn metadata_is_about_the_server_or_not_used() {
        let server = url("https://h/a/b");
        for resource in ["https://h/a/b", "https://h/a", "https://h", "https://h/", "https://h/a/"] {
            assert!(covers(resource, &server), "{resource}");
        }
        for resource in
            ["https://h/a/b/c", "https://h/aa", "http://h/a", "https://other/a/b", "https://h:1/a", "x", ""]
        {
            assert!(!covers(resource, &server), "{resource}");
        }
    }

    #[test]
    fn metadata_of_an_issuer_is_looked_for_in_order() {
        let of =
            |issuer: &str| metadata_addresses(&url(issuer)).iter().map(Url::to_string).collect::<Vec<_>>();
        assert_eq!(
            of("https://h/t"),
            [
                "https://h/.well-known/oauth-authorization-server/t",
                "https://h/.well-known/openid-configuration/t",
                "https://h/t/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            of("https://h"),
            [
                "https://h/.well-known/oauth-authorization-server",
                "https://h/.well-known/openid-configuration"
            ]
        );
    }
}
