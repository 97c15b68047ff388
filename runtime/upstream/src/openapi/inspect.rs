//! Inspects an OpenAPI service before it is configured: whether its address serves an OpenAPI document, which
//! operations become tools, and why the others do not.

use super::compile::{Compiled, compile};
use super::document::OpenApiDocument;
use super::load::load;
use super::service::OpenApiService;
use super::spec::{OpenApiSpec, SchemaSource};
use crate::ClientFeatures;
use crate::transport::ServerEvents;
use ptc_base::net::{ClientOptions, Headers, HttpClient, Method, Url};
use ptc_base::tasks::{self, TaskOwner};
use std::sync::Arc;
use std::time::Duration;

/// Bytes at the beginning of an answer that show whether it is a document.
const BEGINNING: usize = 64 << 10;

/// How long a server may take to show whether its answer is a document.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a document offers.
#[derive(Clone, Debug)]
pub struct OpenApiInspection {
    /// The address of the service, as the document names it. It has the origin of the configured address.
    pub base_url: Option<Url>,
    /// The first server that the document names, if it is elsewhere.
    pub elsewhere: Option<String>,
    /// Title and version.
    pub info: String,
    /// Names of the tools.
    pub tools: Vec<String>,
    /// Operations that patterns name and that do not become tools, each with the reason.
    pub left_out: Vec<String>,
}

/// Loads a document and compiles the chosen operations.
///
/// # Errors
/// The document cannot be loaded, or an operation that is named by its id cannot be called.
pub async fn inspect_openapi(spec: OpenApiSpec) -> Result<OpenApiInspection, String> {
    let client = HttpClient::new(&spec.client).map_err(|error| error.to_string())?;
    let events = Arc::new(ServerEvents::new("openapi".into(), ClientFeatures::default()));
    let text =
        load(&OpenApiService::new(spec.clone(), client, events)).await.map_err(|fault| fault.to_string())?;
    let compiled = tasks::blocking(TaskOwner::Connection, move |_| {
        let (base_url, elsewhere) = base(&text, &spec)?;
        let Compiled { names, info, left_out, .. } = compile(&text, &spec)?;
        let tools = names.into_keys().collect();
        Ok(OpenApiInspection { base_url, elsewhere, info, tools, left_out })
    });
    compiled.await.unwrap_or_else(|| Err("the document could not be compiled".to_owned()))
}

/// The first server that the document names: its address if it is at the origin where the document is, else its text.
fn base(text: &str, spec: &OpenApiSpec) -> Result<(Option<Url>, Option<String>), String> {
    let document = OpenApiDocument::read(text)?;
    let from = match &spec.schema {
        SchemaSource::Url(url) => url,
        SchemaSource::File(_) => &spec.base_url,
    };
    let Some(first) = document.named_servers()?.into_iter().next() else { return Ok((None, None)) };
    let is_here = |url: &Url| url.origin() == from.origin() && url.query().is_none();
    let here = from.join(&first).ok().filter(is_here);
    let elsewhere = here.is_none().then_some(first);
    Ok((here, elsewhere))
}

/// True if a GET of this address gives an OpenAPI document.
pub async fn is_openapi_document(url: &Url) -> bool {
    let Ok(client) = HttpClient::new(&ClientOptions::default()) else { return false };
    let headers = Headers::default();
    let look = async {
        let mut response = client.send(Method::GET, url, &headers, None).await.ok()?;
        let text = String::from_utf8_lossy(&response.body.beginning(BEGINNING).await).into_owned();
        let text = text.trim_start_matches('\u{feff}').trim_start().to_owned();
        let is_json = text.starts_with('{') && text.contains("\"openapi\"");
        (response.status.is_success() && (is_json || text.starts_with("openapi:"))).then_some(())
    };
    tokio::time::timeout(PATIENCE, look).await.is_ok_and(|found| found.is_some())
}
