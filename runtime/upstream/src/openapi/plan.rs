//! Builds the HTTP request of an OpenAPI operation, its URL and JSON body, from the arguments of a tool call.

use super::argument::ArgumentMap;
use super::parameter::Parameter;
use percent_encoding::percent_decode_str;
use ptc_base::net::{Method, Url};
use serde_json::value::RawValue;

/// The argument that holds the body of a request.
pub(super) const BODY: &str = "body";

/// The parameters of an operation, and how to send them.
#[derive(Debug)]
pub(super) struct RequestPlan {
    pub(super) method: Method,
    pub(super) path: Vec<PathPart>,
    pub(super) query: Vec<Parameter>,
    /// The path that the operation's path is below, if it is not that of the configured address.
    pub(super) base_path: Option<String>,
    /// The media type of its JSON body, if it takes one.
    pub(super) body: Option<String>,
    /// The media types of its result, for the header `Accept`.
    pub(super) accept: String,
    pub(super) defaults: Vec<DefaultArgument>,
}

/// An argument that is sent with each call that does not give it.
#[derive(Debug)]
pub(super) struct DefaultArgument {
    pub(super) name: String,
    pub(super) value: Box<RawValue>,
    /// A call cannot give it.
    pub(super) is_secret: bool,
}

/// A part of a path.
#[derive(Debug)]
pub(super) enum PathPart {
    Text(String),
    Parameter(Parameter),
}

/// A request to the service.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ServiceRequest {
    pub(super) url: Url,
    /// JSON text.
    pub(super) body: Option<String>,
}

impl RequestPlan {
    /// The request of a call with these arguments (text of a JSON object) to the service at `base`. The error
    /// names the argument that cannot be sent.
    pub(super) fn message(&self, base: &Url, arguments: &str) -> Result<ServiceRequest, String> {
        let mut given: ArgumentMap<'_> = serde_json::from_str(arguments)
            .map_err(|error| format!("the arguments are no JSON object: {error}"))?;
        let is_null = |value: &RawValue| value.get() == "null";
        for DefaultArgument { name, value, is_secret } in &self.defaults {
            match given.get(name) {
                Some(_) if *is_secret => return Err(format!("there is no argument {name}")),
                Some(given) if !is_null(given) => {}
                Some(_) | None => given.set(name, value),
            }
        }
        // A null argument counts as omitted; in a body null is a value.
        given.retain(|name, value| !is_null(value) || (self.body.is_some() && name == BODY));
        let base_path = self.base_path.as_deref().unwrap_or(base.path());
        let mut path = base_path.trim_end_matches('/').to_owned();
        for part in &self.path {
            match part {
                PathPart::Text(text) => path.push_str(text),
                PathPart::Parameter(parameter) => {
                    let Some(value) = given.remove(&parameter.name) else {
                        return Err(format!("missing path args: {}", parameter.name));
                    };
                    path.push_str(&parameter.in_path(value)?);
                }
            }
        }
        // URL parsers remove dot segments, which would change the path; many services do so even where
        // slashes are encoded.
        let decoded = percent_decode_str(&path).decode_utf8_lossy();
        if decoded.split(['/', '\\']).any(|step| matches!(step, "." | "..")) {
            return Err(format!(
                "the arguments make {path} of the path, and no part of a path may be . or .."
            ));
        }
        let query = self.query_of(&mut given)?;
        // As it was given, so that each number keeps its digits.
        let body =
            self.body.is_some().then(|| given.remove(BODY)).flatten().map(|body| body.get().to_owned());
        if let Some((name, _)) = given.iter().next() {
            return Err(format!("there is no argument {name}"));
        }
        let mut url = base.clone();
        url.set_path(&path);
        url.set_query((!query.is_empty()).then(|| query.join("&")).as_deref());
        Ok(ServiceRequest { url, body })
    }

    /// The query, in `name=value` pairs. The members of an object may become pairs of their own; none of them may have
    /// the name of a secret.
    fn query_of(&self, given: &mut ArgumentMap<'_>) -> Result<Vec<String>, String> {
        let is_secret = |parameter: &Parameter| {
            self.defaults.iter().any(|default| default.is_secret && default.name == parameter.name)
        };
        let mut written = Vec::new();
        for parameter in &self.query {
            let mut pairs = Vec::new();
            if let Some(value) = given.remove(&parameter.name) {
                parameter.in_query(value, &mut pairs)?;
            }
            written.push((parameter, pairs));
        }
        let secret = written.iter().filter(|(parameter, _)| is_secret(parameter));
        let secret: Vec<String> = secret.flat_map(|(_, pairs)| pairs).map(|pair| name_of(pair)).collect();
        for (parameter, pairs) in written.iter().filter(|(parameter, _)| !is_secret(parameter)) {
            let mut names = pairs.iter().map(|pair| name_of(pair)).filter(|name| *name != parameter.name);
            if let Some(name) =
                names.find(|name| secret.iter().any(|secret| secret.eq_ignore_ascii_case(name)))
            {
                return Err(format!("{} cannot have a member {name}", parameter.name));
            }
        }
        Ok(written.into_iter().flat_map(|(_, pairs)| pairs).collect())
    }
}

/// The name in a pair of a query.
fn name_of(pair: &str) -> String {
    let name = pair.split_once('=').map_or(pair, |(name, _)| name);
    percent_decode_str(name).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::parameter::ParameterStyle;
    use super::*;
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    fn parameter(name: &str, style: ParameterStyle) -> Parameter {
        Parameter {
            name: name.to_owned(),
            style,
            explode: style == ParameterStyle::Form,
            allow_reserved: false,
        }
    }

    fn plan() -> RequestPlan {
        let id = PathPart::Parameter(parameter("id", ParameterStyle::Simple));
        let path = vec![PathPart::Text("/items/".to_owned()), id, PathPart::Text("/x".to_owned())];
        let query = vec![parameter("q", ParameterStyle::Form), parameter("tags", ParameterStyle::Form)];
        let value = to_raw_value("all").unwrap();
        let defaults = vec![DefaultArgument { name: "q".to_owned(), value, is_secret: false }];
        let accept = "application/json".to_owned();
        RequestPlan { method: Method::GET, path, query, base_path: None, body: None, accept, defaults }
    }

    #[test]
    fn arguments_become_an_address() {
        let plan = plan();
        let url = |arguments: Value| {
            let base = Url::parse("https://h:8443/api/v1/").unwrap();
            plan.message(&base, &arguments.to_string()).map(|message| message.url.to_string())
        };
        assert_eq!(url(json!({"id": "a/b?#"})).unwrap(), "https://h:8443/api/v1/items/a%2Fb%3F%23/x?q=all");
        assert_eq!(
            url(json!({"id": 1, "q": "é &", "tags": ["a", "b"]})).unwrap(),
            "https://h:8443/api/v1/items/1/x?q=%C3%A9%20%26&tags=a&tags=b"
        );
        assert_eq!(
            url(json!({"id": 1, "q": null, "tags": null})).unwrap(),
            "https://h:8443/api/v1/items/1/x?q=all"
        );
        assert_eq!(url(json!({"q": 1})).unwrap_err(), "missing path args: id");
        assert_eq!(url(json!({"id": 1, "z": 1})).unwrap_err(), "there is no argument z");
        assert_eq!(url(json!({"id": 1, "body": 1})).unwrap_err(), "there is no argument body");
        for dots in ["..", ".", "../..", "a/../../b", "..\\b", "a/.", "x\\..\\.."] {
            assert!(url(json!({"id": dots})).unwrap_err().contains("may be . or .."));
        }
        // Encoded, so it stays one segment.
        assert_eq!(url(json!({"id": "%2e%2e"})).unwrap(), "https://h:8443/api/v1/items/%252e%252e/x?q=all");
        assert!(url(json!([])).is_err());
    }

    #[test]
    fn a_body_is_json() {
        let plan = RequestPlan { body: Some("application/json".to_owned()), ..plan() };
        let base = Url::parse("https://h").unwrap();
        let body = |arguments: Value| plan.message(&base, &arguments.to_string()).unwrap().body;
        assert_eq!(body(json!({"id": 1, "body": {"a": [null]}})).as_deref(), Some(r#"{"a":[null]}"#));
        assert_eq!(body(json!({"id": 1, "body": null})).as_deref(), Some("null"));
        assert_eq!(body(json!({"id": 1})), None);
        let text = r#"{"id": 1, "body": {"n": [123456789012345678901234567890, 1.10]}}"#;
        let body = plan.message(&base, text).unwrap().body;
        assert_eq!(body.as_deref(), Some(r#"{"n": [123456789012345678901234567890, 1.10]}"#));
    }
}
