//! Checks the Host and Origin headers of HTTP requests, so that a malicious web page in a user's browser cannot call
//! this server. Foreign host names (DNS rebinding) and origins that are not allowed do not pass.

use super::settings::HttpSettings;
use axum::http::{HeaderMap, HeaderName, Uri, header};
use std::fmt;
use std::net::IpAddr;

/// The origin of a web page: scheme, host in lower case, and a port unless it is the default one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    host: String,
    port: Option<u16>,
}

impl Origin {
    /// Reads `scheme://host[:port]`; `None` for anything else, such as `null`.
    pub fn parse(text: &str) -> Option<Origin> {
        let (scheme, authority) = text.trim().split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let (host, port) = host_and_port(authority)?;
        let usual = match &*scheme {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        };
        Some(Origin { scheme, host, port: port.filter(|port| Some(*port) != usual) })
    }

    fn is_local(&self) -> bool {
        matches!(&*self.scheme, "http" | "https") && is_local(&self.host)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}://{}", self.scheme, self.host)?;
        self.port.map_or(Ok(()), |port| write!(out, ":{port}"))
    }
}

/// Splits `host[:port]`. The host is in lower case; an IPv6 address must be in brackets.
fn host_and_port(text: &str) -> Option<(String, Option<u16>)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(inner) => {
            let end = inner.find(']')?;
            (&text[..end + 2], &inner[end + 1..])
        }
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match rest.strip_prefix(':') {
        Some(port) => Some(port.parse().ok()?),
        None if rest.is_empty() => None,
        None => return None,
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    let is_host = if host.starts_with('[') {
        host[1..host.len() - 1].parse::<std::net::Ipv6Addr>().is_ok()
    } else {
        !host.is_empty() && host.chars().all(is_name)
    };
    is_host.then(|| (host.to_ascii_lowercase(), port))
}

fn is_local(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// True when a request has an allowed host and origin.
pub(super) fn is_allowed(settings: &HttpSettings, headers: &HeaderMap) -> bool {
    host_is_ours(settings, headers) && origin_is_allowed(settings, headers)
}

/// True unless the target names another host than the `Host` header. Clients of a proxy send such targets.
pub(super) fn target_matches_host(target: &Uri, headers: &HeaderMap) -> bool {
    let Some(authority) = target.authority() else { return true };
    let named = host_and_port(authority.as_str());
    named.is_some() && single_header(headers, &header::HOST).flatten().and_then(host_and_port) == named
}

/// A server on a loopback address accepts only local host names.
fn host_is_ours(settings: &HttpSettings, headers: &HeaderMap) -> bool {
    !settings.is_local()
        || single_header(headers, &header::HOST)
            .flatten()
            .and_then(host_and_port)
            .is_some_and(|(host, _)| is_local(&host))
}

fn origin_is_allowed(settings: &HttpSettings, headers: &HeaderMap) -> bool {
    let text = match single_header(headers, &header::ORIGIN) {
        Some(None) => return true,
        Some(Some(text)) => text,
        None => return false,
    };
    let Some(origin) = Origin::parse(text) else { return false };
    if settings.origins.is_empty() {
        return settings.is_local() && origin.is_local();
    }
    settings.origins.contains(&origin)
}

/// True when a request to the page has a host of this server, and no other origin.
pub(super) fn is_page_of(settings: &HttpSettings, headers: &HeaderMap) -> bool {
    host_is_ours(settings, headers)
        && match single_header(headers, &header::ORIGIN) {
            Some(None) => true,
            Some(Some(origin)) => is_same_origin(headers, origin),
            None => false,
        }
}

/// True for a request that a view of the page has sent. Browsers name the origin of every form.
pub(super) fn comes_from_page(headers: &HeaderMap) -> bool {
    const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
    let origin = single_header(headers, &header::ORIGIN).flatten();
    let site = single_header(headers, &SITE);
    origin.is_some_and(|origin| is_same_origin(headers, origin))
        && matches!(site, Some(None | Some("same-origin")))
}

/// True when an origin has the host and port that a request is for. A proxy may have taken TLS off, so the scheme does
/// not count.
fn is_same_origin(headers: &HeaderMap, origin: &str) -> bool {
    let host = single_header(headers, &header::HOST).flatten();
    let Some((origin, host)) = Origin::parse(origin).zip(host) else { return false };
    Origin::parse(&format!("{}://{host}", origin.scheme)).is_some_and(|own| own == origin)
}

/// The single value of a header. `Some(None)` without one; `None` for several values, or one that is not text.
pub(super) fn single_header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<Option<&'h str>> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Some(None),
        (Some(value), None) => value.to_str().ok().map(Some),
        (Some(_), Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_compared_as_browsers_mean_them() {
        let same = |a: &str, b: &str| Origin::parse(a).is_some() && Origin::parse(a) == Origin::parse(b);
        assert!(same("https://Example.com", "HTTPS://example.com:443"));
        assert!(same("http://[::1]:80", "http://[::1]"));
        assert!(!same("http://example.com", "https://example.com"));
        assert!(!same("http://example.com:81", "http://example.com"));
        for wrong in ["null", "", "http://", "http://a b", "http://a/b", "http://[::1", "http://a:x", "//a"] {
            assert_eq!(Origin::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn names_of_this_machine_are_known() {
        let local = |text: &str| host_and_port(text).is_some_and(|(host, _)| is_local(&host));
        for ours in ["localhost", "LOCALHOST:80", "127.0.0.1", "127.1.2.3:7332", "[::1]:1", "[::1]"] {
            assert!(local(ours), "{ours}");
        }
        for foreign in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[::2]", ""]
        {
            assert!(!local(foreign), "{foreign}");
        }
    }
}
