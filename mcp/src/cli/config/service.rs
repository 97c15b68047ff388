//! Makes the configuration entry of a JSON service for `ptc add --openapi`: reads its OpenAPI document, and reports
//! which operations become tools.

use ptc_base::net::{ClientOptions, Headers, Url, is_loopback};
use ptc_base::secrets::Credential;
use ptc_calls::tools::text::{count, one_line};
use ptc_server::console::exit::Abort;
use ptc_server::redact;
use ptc_upstream::{OpenApiInspection, OpenApiSpec, SchemaSource, inspect_openapi};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Bytes of the largest document.
const DOCUMENT_BYTES: usize = 16 << 20;

/// Operations that are named one by one.
const NAMED: usize = 20;

/// Characters of a line about operations.
const LINE: usize = 600;

/// What the command line says about a service.
pub(super) struct ServiceToAdd<'a> {
    pub(super) document: String,
    pub(super) base_url: Option<String>,
    pub(super) include: Vec<String>,
    pub(super) headers: &'a [String],
}

impl ServiceToAdd<'_> {
    /// Writes the members of the entry. Returns lines about what becomes a tool and what does not.
    pub(super) async fn describe(self, entry: &mut Map<String, Value>) -> Result<Vec<String>, Abort> {
        let ServiceToAdd { document, base_url, mut include, headers } = self;
        if include.is_empty() {
            include.push("*".into());
        }
        let address =
            |text: &str| Url::parse(text).map_err(|why| Abort::usage(format!("{text} is no address: {why}")));
        let schema = match document.contains("://") {
            true => SchemaSource::Url(address(&document)?),
            false => SchemaSource::File(std::path::absolute(&document)?),
        };
        let given = base_url.as_deref().map(address).transpose()?;
        let origin = match (&given, &schema) {
            (Some(given), _) => given.clone(),
            (None, SchemaSource::Url(url)) => url.join("/").map_err(|why| Abort::usage(why.to_string()))?,
            (None, SchemaSource::File(_)) => {
                return Err(Abort::usage("a document in a file needs --base-url"));
            }
        };
        let spec = OpenApiSpec {
            base_url: origin.clone(),
            schema: schema.clone(),
            schema_max_bytes: DOCUMENT_BYTES,
            headers: filled(headers)?,
            client: ClientOptions::default(),
            include: include.clone(),
            with_effects: Vec::new(),
            overrides: BTreeMap::new(),
        };
        let inspected =
            inspect_openapi(spec).await.map_err(|why| Abort::usage(format!("{document}: {why}")))?;
        let base = given.or(inspected.base_url.clone()).unwrap_or(origin);
        entry.insert("type".into(), "openapi".into());
        entry.insert("base_url".into(), base.as_str().into());
        match &schema {
            SchemaSource::Url(url) => entry.insert("schema_url".into(), url.as_str().into()),
            SchemaSource::File(path) => entry.insert("schema_file".into(), path.display().to_string().into()),
        };
        if [Some(&base), schema_url(&schema)]
            .into_iter()
            .flatten()
            .any(|url| url.scheme() == "http" && !is_loopback(url))
        {
            entry.insert("allow_insecure_http".into(), true.into());
        }
        entry.insert("schema_max_bytes".into(), DOCUMENT_BYTES.into());
        entry.insert("include_operations".into(), json!(include));
        let mut lines = lines(&inspected);
        if let (None, Some(server)) = (&base_url, &inspected.elsewhere) {
            let server = one_line(server, LINE);
            lines.push(format!(
                "the document names the server {server}, which is not at {base}; --base-url takes another address"
            ));
        }
        Ok(lines)
    }
}

fn schema_url(schema: &SchemaSource) -> Option<&Url> {
    match schema {
        SchemaSource::Url(url) => Some(url),
        SchemaSource::File(_) => None,
    }
}

fn lines(inspected: &OpenApiInspection) -> Vec<String> {
    let OpenApiInspection { info, tools, left_out, .. } = inspected;
    let shown = one_line(&tools.join(", "), LINE);
    let mut lines = vec![format!("{}: {}: {shown}", one_line(info, LINE), count(tools.len()))];
    if !left_out.is_empty() {
        lines.push(format!("left out: {}", left_out.len()));
    }
    lines.extend(left_out.iter().take(NAMED).map(|why| format!("  {}", one_line(why, LINE))));
    if left_out.len() > NAMED {
        lines.push(format!("  and {} more", left_out.len() - NAMED));
    }
    lines
}

/// The headers with `${VAR}` filled from the environment.
fn filled(headers: &[String]) -> Result<Headers, Abort> {
    let mut filled = Headers::default();
    for header in headers {
        let Some((name, value)) = header.split_once(':') else { continue };
        let (mut text, mut rest) = (String::new(), value.trim());
        while let Some((before, named)) = rest.split_once("${") {
            let (variable, after) =
                named.split_once('}').ok_or_else(|| Abort::usage(format!("{name}: a ${{ without its }}")))?;
            let set = std::env::var(variable)
                .map_err(|_| Abort::usage(format!("{name}: {variable} is not set")))?;
            text = text + before + &set;
            rest = after;
        }
        let (secret, _) = Credential::secret(&(text + rest), redact::secrets());
        filled.secret(name.trim(), &secret).map_err(|error| Abort::usage(error.to_string()))?;
    }
    Ok(filled)
}
