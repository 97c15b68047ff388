//! Reads an OpenAPI document: lists its operations, follows `$ref` references, and decodes only the parts that are
//! needed to call the operations.
//!
//! All other parts stay text.

use ptc_base::named_enum;
use ptc_base::net::excerpt;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Limit of references that are followed: they may point in a circle.
const MOST_REFERENCES: usize = 16;

/// Length limit of title and version, in characters.
const LONGEST_INFO: usize = 200;

/// References up to this depth have their members cached: `#/components/schemas` is needed again and again.
const KEPT_LEVELS: usize = 2;

/// Limit of bytes read for following references: a multiple of the document's size, and a minimum.
const MOST_WALKED: (usize, usize) = (32, 16 << 20);

/// Limit of bytes of schemas that are read for all tools together.
const MOST_SCHEMAS: usize = 32 << 20;

/// The members of an object.
type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// Methods that a path item has, in the order of the specification.
const METHODS: [&str; 9] = ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"];

/// A document.
pub(super) struct OpenApiDocument<'a> {
    root: Rc<Members<'a>>,
    /// Cached members of objects, by reference.
    kept: RefCell<HashMap<String, Rc<Members<'a>>>>,
    /// Bytes that may still be read for following references: many references may read the same part.
    walk: Cell<usize>,
    /// Bytes of schemas that may still be read.
    pub(super) schemas: Cell<usize>,
    /// Size limit of the schemas that one refers to.
    pub(super) referred: Cell<usize>,
    pub(super) version: OpenApiVersion,
    /// Title and version of the document.
    pub(super) info: String,
}

named_enum! {
    /// The version of the specification.
    pub(super) enum OpenApiVersion {
        /// 3.0: has its own dialect of JSON Schema.
        V30 = "OpenAPI 3.0",
        /// 3.1 and 3.2: JSON Schema 2020-12.
        V31 = "OpenAPI 3.1",
    }
}

/// An operation that is not parsed yet.
pub(super) struct ListedOperation<'a> {
    /// Its `operationId`, or `GET /path`.
    pub(super) id: String,
    /// The method in lower case, as in the document.
    pub(super) method: &'static str,
    pub(super) path: String,
    /// A [`PathItem`].
    pub(super) item: &'a RawValue,
    /// An [`Operation`].
    pub(super) operation: &'a RawValue,
}

/// What all operations of a path share.
#[derive(Clone, Deserialize, Default)]
#[serde(default)]
pub(super) struct PathItem<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    pub(super) parameters: Vec<&'a RawValue>,
    #[serde(borrow)]
    pub(super) servers: Option<&'a RawValue>,
}

/// An operation.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Operation<'a> {
    #[serde(deserialize_with = "or_default")]
    pub(super) tags: Vec<String>,
    pub(super) summary: Option<String>,
    pub(super) description: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) deprecated: bool,
    #[serde(borrow, deserialize_with = "or_default")]
    pub(super) parameters: Vec<&'a RawValue>,
    #[serde(borrow)]
    pub(super) request_body: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "or_default")]
    pub(super) responses: Members<'a>,
    #[serde(borrow)]
    pub(super) servers: Option<&'a RawValue>,
    #[serde(rename = "x-ptc-name")]
    pub(super) ptc_name: Option<String>,
    #[serde(rename = "x-ptc-default-args")]
    pub(super) ptc_default_args: Option<serde_json::Map<String, serde_json::Value>>,
}

/// A parameter.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RawParameter<'a> {
    pub(super) name: String,
    #[serde(rename = "in")]
    pub(super) place: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) required: bool,
    pub(super) description: Option<String>,
    pub(super) style: Option<String>,
    pub(super) explode: Option<bool>,
    #[serde(deserialize_with = "or_default")]
    pub(super) allow_reserved: bool,
    #[serde(borrow)]
    pub(super) schema: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) content: Option<Members<'a>>,
}

/// A request body or a response.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct BodyOrResponse<'a> {
    pub(super) description: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) required: bool,
    #[serde(borrow, deserialize_with = "or_default")]
    pub(super) content: Members<'a>,
}

/// The description of content of one media type.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct MediaType<'a> {
    #[serde(borrow)]
    pub(super) schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Reference<'a> {
    #[serde(rename = "$ref", borrow)]
    target: Cow<'a, str>,
}

/// A member that may be null, which means that it is absent.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(member: D) -> Result<T, D::Error> {
    Option::deserialize(member).map(Option::unwrap_or_default)
}

/// The text of a scalar. Numbers are texts, too: YAML has `1.0` without quotes.
fn scalar<'a>(raw: &'a RawValue) -> Option<Cow<'a, str>> {
    match raw.get().as_bytes().first()? {
        b'"' => serde_json::from_str(raw.get()).ok(),
        b'-' | b'0'..=b'9' => Some(raw.get().into()),
        _ => None,
    }
}

impl<'a> OpenApiDocument<'a> {
    /// Reads the outermost level.
    pub(super) fn read(text: &'a str) -> Result<OpenApiDocument<'a>, String> {
        let root: Members<'a> =
            serde_json::from_str(text).map_err(|error| format!("schema JSON decode failed: {error}"))?;
        let text_of = |key: &str| root.get(key).and_then(|raw| scalar(raw)).unwrap_or_default();
        let version = match &*text_of("openapi") {
            version if version.starts_with("3.0") => OpenApiVersion::V30,
            version if version.starts_with("3.") => OpenApiVersion::V31,
            "" if root.contains_key("swagger") => {
                let version = text_of("swagger");
                return Err(format!("the document is Swagger {version}; convert it to OpenAPI 3"));
            }
            "" => {
                return Err("the document says no OpenAPI version; it must be OpenAPI 3.0 or 3.1".to_owned());
            }
            version => {
                return Err(format!("the document is OpenAPI {version}; only 3.0 and 3.1 are understood"));
            }
        };
        let info: Option<Members<'a>> = root.get("info").and_then(|raw| serde_json::from_str(raw.get()).ok());
        let of_info = |key: &str| info.as_ref().and_then(|info| info.get(key)).and_then(|raw| scalar(raw));
        let (title, own) = (of_info("title").unwrap_or_default(), of_info("version").unwrap_or_default());
        let info = excerpt(format!("{title} {own}").trim(), LONGEST_INFO);
        let walk = text.len().saturating_mul(MOST_WALKED.0).max(MOST_WALKED.1).into();
        let (kept, schemas, referred) = (RefCell::default(), Cell::default(), Cell::default());
        Ok(OpenApiDocument { root: Rc::new(root), kept, walk, schemas, referred, version, info })
    }

    /// Allows schemas to be read anew, each with this many bytes of schemas that it refers to.
    pub(super) fn allow_schemas(&self, referred: usize) {
        self.schemas.set(MOST_SCHEMAS);
        self.referred.set(referred);
    }

    /// Whether later schemas accept anything, because so many were read.
    pub(super) fn schemas_are_used_up(&self) -> bool {
        self.schemas.get() == 0
    }

    /// Every operation, and why others cannot be read.
    pub(super) fn operations(&self) -> Result<(Vec<ListedOperation<'a>>, Vec<String>), String> {
        let Some(paths) = self.root.get("paths") else { return Ok((Vec::new(), Vec::new())) };
        let paths: Members<'a> = decoded(paths, "paths")?;
        let (mut operations, mut unreadable) = (Vec::new(), Vec::new());
        // Other keys are extensions: every path begins with a slash.
        for (path, item) in paths.into_iter().filter(|(path, _)| path.starts_with('/')) {
            let read = self.resolve(item).and_then(|item| Ok((item, decoded::<Members<'a>>(item, "they")?)));
            let (item, members) = match read {
                Ok(read) => read,
                Err(problem) => {
                    unreadable.push(format!("the operations of {path}: {problem}"));
                    continue;
                }
            };
            for method in METHODS {
                let Some(&operation) = members.get(method).filter(|raw| raw.get() != "null") else {
                    continue;
                };
                let by_path = || format!("{} {path}", method.to_ascii_uppercase());
                let members: Members<'a> = match decoded(operation, "as it is written") {
                    Ok(members) => members,
                    Err(problem) => {
                        unreadable.push(format!("operation {} {problem}", by_path()));
                        continue;
                    }
                };
                let id = members.get("operationId").and_then(|raw| scalar(raw));
                let id = id.filter(|id| !id.is_empty()).map_or_else(by_path, Cow::into_owned);
                let path = path.clone().into_owned();
                operations.push(ListedOperation { id, method, path, item, operation });
            }
        }
        Ok((operations, unreadable))
    }

    /// Follows `$ref`s to the end.
    pub(super) fn resolve(&self, mut raw: &'a RawValue) -> Result<&'a RawValue, String> {
        for _ in 0..MOST_REFERENCES {
            let Ok(Reference { target }) = serde_json::from_str(raw.get()) else { return Ok(raw) };
            raw = self.at(&target)?;
        }
        Err("references point in a circle".to_owned())
    }

    /// The target of a reference within the document.
    pub(super) fn at(&self, reference: &str) -> Result<&'a RawValue, String> {
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err(format!(
                "reference {reference} leads to another document; only local ones are followed"
            ));
        };
        let nowhere = || format!("reference {reference} leads nowhere");
        let mut members = self.root.clone();
        let mut found = None;
        let mut so_far = String::new();
        // A step into an array is its index.
        for (level, step) in pointer.strip_prefix('/').ok_or_else(nowhere)?.split('/').enumerate() {
            if let Some(raw) = found {
                members = self.members(raw, &so_far, level)?.ok_or_else(nowhere)?;
            }
            so_far = format!("{so_far}/{step}");
            let step = percent_encoding::percent_decode_str(step).decode_utf8_lossy();
            let step = step.replace("~1", "/").replace("~0", "~");
            found = Some(*members.get(step.as_str()).ok_or_else(nowhere)?);
        }
        found.ok_or_else(nowhere)
    }

    fn members(
        &self,
        raw: &'a RawValue,
        reference: &str,
        level: usize,
    ) -> Result<Option<Rc<Members<'a>>>, String> {
        if let Some(kept) = self.kept.borrow().get(reference) {
            return Ok(Some(kept.clone()));
        }
        let left = self.walk.get().checked_sub(raw.get().len());
        self.walk.set(left.ok_or("references in the document are too costly to follow")?);
        let members: Members<'a> = match serde_json::from_str(raw.get()) {
            Ok(members) => members,
            Err(_) => match serde_json::from_str::<Vec<&'a RawValue>>(raw.get()) {
                Ok(items) => {
                    items.into_iter().enumerate().map(|(at, item)| (at.to_string().into(), item)).collect()
                }
                Err(_) => return Ok(None),
            },
        };
        let members = Rc::new(members);
        if level <= KEPT_LEVELS {
            self.kept.borrow_mut().insert(reference.to_owned(), members.clone());
        }
        Ok(Some(members))
    }

    /// The servers of the whole document.
    pub(super) fn named_servers(&self) -> Result<Vec<String>, String> {
        self.root.get("servers").map_or(Ok(Vec::new()), |raw| OpenApiDocument::servers(raw))
    }

    /// Addresses in a `servers` member of an operation, a path or the document, with the defaults of their variables.
    pub(super) fn servers(raw: &'a RawValue) -> Result<Vec<String>, String> {
        #[derive(Deserialize)]
        struct Server {
            url: String,
            #[serde(default, deserialize_with = "or_default")]
            variables: BTreeMap<String, Variable>,
        }
        #[derive(Deserialize)]
        struct Variable {
            #[serde(deserialize_with = "text_of_scalar")]
            default: String,
        }
        let servers: Option<Vec<Server>> = decoded(raw, "has servers that")?;
        let filled = |Server { url, variables }: Server| {
            variables
                .iter()
                .fold(url, |url, (name, Variable { default })| url.replace(&format!("{{{name}}}"), default))
        };
        Ok(servers.unwrap_or_default().into_iter().map(filled).collect())
    }
}

/// Reads a text. A number or a truth value is one that its author has not quoted.
fn text_of_scalar<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    match serde_json::Value::deserialize(value)? {
        serde_json::Value::String(text) => Ok(text),
        value @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_)) => Ok(value.to_string()),
        _ => Err(D::Error::custom("the default of a variable is no text")),
    }
}

/// Parses a part of the document; the error names it.
pub(super) fn decoded<'a, T: Deserialize<'a>>(raw: &'a RawValue, what: &str) -> Result<T, String> {
    serde_json::from_str(raw.get()).map_err(|error| format!("{what} cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_followed_to_wherever_they_point() {
        let text = r##"{"openapi": "3.1.0", "info": {"title": "T", "version": "2"}, "paths": {
            "x-note": 1,
            "/a": {"$ref": "#/components/pathItems/a"},
            "/b/{c}": {"parameters": [{"name": "c"}], "get": {"operationId": "b"}, "post": {}}},
          "components": {"pathItems": {"a": {"get": {"operationId": "a"}}},
            "schemas": {"x/y ~z": {"type": "string"}, "loop": {"$ref": "#/components/schemas/loop"}}}}"##;
        let document = OpenApiDocument::read(text).unwrap();
        assert_eq!((document.version, &*document.info), (OpenApiVersion::V31, "T 2"));
        let ids: Vec<String> = document.operations().unwrap().0.into_iter().map(|entry| entry.id).collect();
        assert_eq!(ids, ["a", "b", "POST /b/{c}"]);
        let at = |reference: &str| document.at(reference).map(RawValue::get);
        assert_eq!(at("#/components/schemas/x~1y%20~0z"), Ok(r#"{"type": "string"}"#));
        assert_eq!(at("#/paths/~1b~1{c}/parameters/0/name"), Ok("\"c\""));
        assert!(at("#/components/nope").unwrap_err().contains("leads nowhere"));
        assert!(at("other.json#/x").unwrap_err().contains("another document"));
        let circle = document.at("#/components/schemas/loop").unwrap();
        assert!(document.resolve(circle).unwrap_err().contains("circle"));
    }

    /// Each reference reads a part that is too deep to be cached.
    #[test]
    fn references_that_read_the_document_again_and_again_are_given_up() {
        let bulk = "x".repeat(400 << 10);
        let paths: Vec<String> =
            (0..100).map(|at| format!(r##""/{at}": {{"$ref": "#/x-a/b/c/d"}}"##)).collect();
        let text = format!(
            r#"{{"openapi": "3.1.0", "paths": {{{}}}, "x-a": {{"b": {{"c": {{"bulk": "{bulk}", "d": {{"get": {{}}}}}}}}}}}}"#,
            paths.join(",")
        );
        let (operations, unreadable) = OpenApiDocument::read(&text).unwrap().operations().unwrap();
        assert!(operations.len() + unreadable.len() == 100 && operations.len() < 60, "{unreadable:?}");
        assert!(unreadable[0].contains("too costly to follow"), "{unreadable:?}");
    }

    #[test]
    fn an_odd_part_costs_only_its_own_operation() {
        let text = r##"{"openapi": 3.1, "info": {"title": "T", "version": 1.0}, "paths": {
            "/a": {"get": {"operationId": 7, "parameters": null, "tags": null, "responses": null}, "post": null},
            "/b": 5, "/c": {"get": "x"}, "/d": {"$ref": "#/nope"}}}"##;
        let document = OpenApiDocument::read(text).unwrap();
        assert_eq!((document.version, &*document.info), (OpenApiVersion::V31, "T 1.0"));
        let (operations, unreadable) = document.operations().unwrap();
        let ids: Vec<&str> = operations.iter().map(|entry| &*entry.id).collect();
        assert_eq!((ids, unreadable.len()), (vec!["7"], 3));
        assert!(decoded::<Operation<'_>>(operations[0].operation, "").is_ok());
        assert!(
            unreadable[1].starts_with("operation GET /c as it is written cannot be read"),
            "{unreadable:?}"
        );
    }

    #[test]
    fn other_documents_are_refused_by_name() {
        let error = |text: &str| OpenApiDocument::read(text).err().unwrap();
        assert!(error("[]").contains("decode failed"));
        assert!(error("{}").contains("no OpenAPI version"));
        assert!(error(r#"{"swagger": "2.0"}"#).contains("Swagger 2.0"));
        assert!(error(r#"{"openapi": "4.0.0"}"#).contains("4.0.0"));
    }
}
