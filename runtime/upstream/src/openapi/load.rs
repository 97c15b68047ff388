//! Loads an OpenAPI document from a file or an address, and converts YAML to JSON.

use super::media::JSON;
use super::service::{Exchange, OpenApiService};
use super::spec::SchemaSource;
use crate::UpstreamFault;
use ptc_base::net::Method;
use ptc_base::tasks::{self, TaskOwner};
use ptc_base::yaml;
use std::io::Read;
use std::path::Path;

/// Loads the document as JSON text.
pub(super) async fn load(service: &OpenApiService) -> Result<String, UpstreamFault> {
    let cap = service.spec.schema_max_bytes;
    let bytes = match &service.spec.schema {
        SchemaSource::File(path) => {
            let path = path.clone();
            let work = move || read(&path, cap);
            let read = tasks::blocking(TaskOwner::Connection, move |_| work()).await;
            read.unwrap_or_else(|| Err("schema_file could not be read".to_owned()))
                .map_err(UpstreamFault::Protocol)?
        }
        SchemaSource::Url(url) => {
            let accept = JSON.to_owned();
            let message = Exchange { method: Method::GET, url: url.clone(), accept, body: None, trace: None };
            let mut response = service.send(message).await?;
            if !response.status.is_success() {
                let text = format!("schema_url returned http {}", response.status.as_u16());
                return Err(UpstreamFault::Unavailable(text + &service.advice(&response)));
            }
            match response.body.read(cap).await.map_err(UpstreamFault::from) {
                Err(UpstreamFault::TooLarge { .. }) => return Err(too_large("schema_url", cap)),
                read => read?,
            }
        }
    };
    let decode = move || text(bytes);
    let text = tasks::blocking(TaskOwner::Connection, move |_| decode()).await;
    text.unwrap_or_else(|| Err("the document could not be read".to_owned())).map_err(UpstreamFault::Protocol)
}

fn too_large(what: &str, cap: usize) -> UpstreamFault {
    UpstreamFault::Protocol(larger(what, cap))
}

fn larger(what: &str, cap: usize) -> String {
    format!("{what}: schema exceeds byte cap: it has more than {cap} bytes; raise schema_max_bytes")
}

/// Reads at most the limit, whatever size the file is reported to have.
fn read(path: &Path, cap: usize) -> Result<Vec<u8>, String> {
    let wrong = |error: std::io::Error| format!("schema_file: {}: {error}", path.display());
    let file = ptc_base::files::open(path).map_err(wrong)?;
    let mut bytes = Vec::new();
    file.take(cap as u64 + 1).read_to_end(&mut bytes).map_err(wrong)?;
    if bytes.len() > cap { Err(larger("schema_file", cap)) } else { Ok(bytes) }
}

/// The document as JSON; YAML is converted.
fn text(bytes: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(bytes).map_err(|_| "the document is not UTF-8".to_owned())?;
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    };
    if text.trim_start().starts_with(['{', '[']) {
        return Ok(text);
    }
    let value: serde_json::Value =
        yaml::read(&text).map_err(|error| format!("schema YAML decode failed: {error}"))?;
    match value.is_object() {
        true => Ok(value.to_string()),
        false => Err("the document is neither a JSON nor a YAML object".to_owned()),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests write files as they need them")]
mod tests {
    use super::*;

    #[test]
    fn yaml_is_json_with_its_own_scalars() {
        let yaml = "openapi: 3.0.0\npaths:\n  /a:\n    get: &one\n      responses:\n        200: {description: 'no'}\n        404: {}\n      x: [yes, No, on, off, y, 010, 1_000, true, 12]\n    put: *one\n";
        let value: serde_json::Value = serde_json::from_str(&text(yaml.into()).unwrap()).unwrap();
        assert_eq!(value["openapi"], "3.0.0");
        let words = serde_json::json!(["yes", "No", "on", "off", "y", "010", "1_000", true, 12]);
        assert_eq!(value["paths"]["/a"]["get"]["x"], words);
        assert_eq!(value["paths"]["/a"]["put"]["responses"]["200"]["description"], "no");
        assert_eq!(text("\u{feff}{\"a\": 1}".into()).unwrap(), "{\"a\": 1}");
        assert!(text("just words".into()).unwrap_err().contains("neither"));
        assert!(text("a: [".into()).unwrap_err().contains("YAML decode failed"));
        assert!(text(vec![0xff]).unwrap_err().contains("UTF-8"));
        // Nested aliases: the result must not grow without limit.
        let bomb: String = (0..30).fold("a0: &a0 [x, x]\n".to_owned(), |text, at| {
            format!("{text}a{}: &a{} [{}]\n", at + 1, at + 1, vec![format!("*a{at}"); 9].join(", "))
        });
        assert!(text(bomb.into_bytes()).is_err());
    }

    #[test]
    fn a_file_is_read_up_to_the_cap() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "x".repeat(100)).unwrap();
        assert_eq!(read(file.path(), 100).unwrap().len(), 100);
        assert!(read(file.path(), 99).unwrap_err().contains("more than 99 bytes"));
        assert!(read(Path::new("/nope"), 99).unwrap_err().starts_with("schema_file: /nope: "));
    }
}
