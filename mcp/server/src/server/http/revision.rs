//! Determines the era of MCP that an HTTP request follows (with an `initialize` handshake, or stateless) from the
//! request's headers and body, which must agree.

use super::guard::single_header;
use super::reply::REVISION;
use crate::protocol::params::Params;
use crate::protocol::version::{META_VERSION, Version};
use crate::protocol::{Era, ErrorCode, RpcError};
use axum::http::{HeaderMap, HeaderName};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::borrow::Cow;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The era of a request. In the stateless era the required headers must be present and equal the body.
pub(super) fn era(headers: &HeaderMap, method: &str, params: &Params<'_>) -> Result<Era, RpcError> {
    let revision = single_header(headers, &REVISION)
        .ok_or_else(|| mismatch("MCP-Protocol-Version is no single text"))?;
    let said = params.meta.as_ref().and_then(|meta| meta.protocol_version.as_deref());
    match (revision, said) {
        (None, None) => Ok(Era::Handshake),
        // `initialize` itself negotiates the version.
        (Some(_), None) if method == "initialize" => Ok(Era::Handshake),
        // An unknown version without `_meta` may be of either era; the error lists our versions either way.
        (Some(revision), None) => match Version::named(revision) {
            Some(version) if version.era() == Era::Handshake => Ok(Era::Handshake),
            Some(_) => Err(RpcError::invalid_params(&format!("_meta must have \"{META_VERSION}\""))),
            None => Err(RpcError::unsupported_version(revision)),
        },
        (None, Some(_)) => Err(mismatch("MCP-Protocol-Version is missing")),
        (Some(revision), Some(said)) if revision != said => Err(mismatch(&format!(
            "MCP-Protocol-Version header value '{revision}' does not match body value '{said}'"
        ))),
        (Some(_), Some(_)) => {
            matches(headers, &METHOD, "Mcp-Method", method)?;
            let name = match method {
                "tools/call" | "prompts/get" => params.name.as_deref().map(Cow::Borrowed),
                "tasks/get" | "tasks/update" | "tasks/cancel" => {
                    params.task_id.and_then(|id| serde_json::from_str(id.get()).ok())
                }
                "resources/read" => params.uri.and_then(|uri| serde_json::from_str(uri.get()).ok()),
                _ => None,
            };
            if let Some(name) = name {
                matches(headers, &NAME, "Mcp-Name", &name)?;
            }
            Ok(Era::Stateless)
        }
    }
}

fn matches(headers: &HeaderMap, header: &HeaderName, shown: &str, said: &str) -> Result<(), RpcError> {
    match single_header(headers, header) {
        Some(Some(value)) if decoded(value).as_deref() == Some(said) => Ok(()),
        Some(Some(value)) => {
            Err(mismatch(&format!("{shown} header value '{value}' does not match body value '{said}'")))
        }
        Some(None) => Err(mismatch(&format!("{shown} is missing"))),
        None => Err(mismatch(&format!("{shown} is no single text"))),
    }
}

/// Decodes a header value: literal, or base64 for text that no header can hold.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(value.into()),
        Some(text) => Some(String::from_utf8(BASE64_STANDARD.decode(text).ok()?).ok()?.into()),
    }
}

fn mismatch(what: &str) -> RpcError {
    RpcError::new(ErrorCode::HeaderMismatch, format!("Header mismatch: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_may_be_base64() {
        assert_eq!(decoded("plain").as_deref(), Some("plain"));
        assert_eq!(decoded("=?base64?SGVsbG8sIOS4lueVjA==?=").as_deref(), Some("Hello, 世界"));
        assert_eq!(decoded("=?base64?SGVsbG8?="), None);
        assert_eq!(decoded("=?base64?%%%%?="), None);
        assert_eq!(decoded("=?BASE64?SGVsbG8=?=").as_deref(), Some("=?BASE64?SGVsbG8=?="));
    }
}
