//! Compiles the chosen operations of an OpenAPI document to tools, each with a plan of its HTTP request. It reports
//! together all operations that cannot be called.

use super::choose::{choose, is_pattern};
use super::document::{
    BodyOrResponse, ListedOperation, MediaType, OpenApiDocument, Operation, PathItem, RawParameter, decoded,
};
use super::media::{JSON, accept, concrete, is_json};
use super::name::tool_name;
use super::parameter::{Parameter, ParameterLocation, ParameterStyle, STYLES};
use super::plan::{BODY, DefaultArgument, PathPart, RequestPlan};
use super::schema::{Direction, SchemaBuilder, short};
use super::spec::{OpenApiSpec, OperationOverride};
use ptc_base::net::{Method, Url, excerpt};
use ptc_base::secrets::names;
use ptc_calls::tools::{HIDDEN_ARGUMENTS, OWN_FACTS};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Limit of problems in one report.
const MOST_PROBLEMS: usize = 20;

/// Length limit of the report, in characters.
const LONGEST_PROBLEMS: usize = 8_000;

/// The beginning of a note about an operation that is left out.
pub(super) const LEFT_OUT: &str = "include_operations leaves out ";

/// Limit of notes about operations that are left out, each with its reason.
const MOST_LEFT_OUT: usize = 10;

/// Length limit of a list of operations in a note, in characters.
const LONGEST_IDS: usize = 300;

/// Size limits of the schemas that one refers to: usually, and where the tools would be too large together.
const MOST_REFERRED: usize = 48 << 10;
const LEAST_REFERRED: usize = MOST_REFERRED / 64;

/// Size limit of all tools together, beyond which their schemas are shortened. A tool list may take ten times as much in
/// memory.
const MOST_TOGETHER: usize = 2 << 20;

/// Header parameters that the specification ignores: other parts of the document describe these headers.
const IGNORED_HEADERS: [&str; 3] = ["accept", "content-type", "authorization"];

/// The chosen operations of a document.
#[derive(Default)]
pub(super) struct Compiled {
    /// How to call each tool.
    pub(super) plans: BTreeMap<String, RequestPlan>,
    /// The tools as an MCP server would list them. As JSON texts they take much less memory than parsed.
    pub(super) tools: Vec<String>,
    /// Bytes of these texts.
    bytes: usize,
    /// Notes to the operator.
    pub(super) notes: Vec<String>,
    /// The operations of the tools, by the tools' names.
    pub(super) names: BTreeMap<String, String>,
    /// Operations that only a pattern names, and why each of them is no tool.
    pub(super) left_out: Vec<String>,
    /// Those of them that may change something.
    with_effects: Vec<String>,
    /// Title and version in the document.
    pub(super) info: String,
    /// The version of the specification.
    pub(super) version: String,
}

/// Compiles the configured operations. The error names everything that is wrong with them.
pub(super) fn compile(text: &str, spec: &OpenApiSpec) -> Result<Compiled, String> {
    let document = OpenApiDocument::read(text)?;
    let listed = document.operations()?;
    let mut most = MOST_REFERRED;
    loop {
        document.allow_schemas(most);
        if let Some(compiled) = compile_once(&document, spec, &listed, most == LEAST_REFERRED)? {
            return Ok(compiled);
        }
        // All tools are worth more than every detail of some.
        most = (most / 4).max(LEAST_REFERRED);
    }
}

/// Compiles the operations with schemas of the allowed size. `None` if the tools are too large together, unless it is
/// the last try.
fn compile_once<'a>(
    document: &OpenApiDocument<'a>,
    spec: &OpenApiSpec,
    (operations, unreadable): &(Vec<ListedOperation<'a>>, Vec<String>),
    is_last: bool,
) -> Result<Option<Compiled>, String> {
    let mut compiled = Compiled {
        info: document.info.clone(),
        version: document.version.name().to_owned(),
        ..Compiled::default()
    };
    let choice = choose(operations, spec);
    let is_too_much =
        |compiled: &Compiled| !is_last && (compiled.bytes > MOST_TOGETHER || document.schemas_are_used_up());
    let mut problems = Vec::new();
    if !choice.missing.is_empty() {
        problems.push(format!("OpenAPI include_operations not found: {}", choice.missing.join(", ")));
        problems.extend(unreadable.iter().cloned());
    }
    if spec.include.iter().any(|word| is_pattern(word)) {
        compiled.left_out.extend(unreadable.iter().cloned());
    }
    for entry in choice.by_id {
        let told = spec.overrides.get(&entry.id).cloned().unwrap_or_default();
        let compiler = Compiler { document, spec, entry, told };
        if let Err(problem) = compiled.add(&compiler, operations) {
            problems.push(format!("OpenAPI {problem}"));
        }
        if is_too_much(&compiled) {
            return Ok(None);
        }
    }
    for entry in choice.by_pattern {
        let told = spec.overrides.get(&entry.id).cloned().unwrap_or_default();
        let compiler = Compiler { document, spec, entry, told };
        let id = &entry.id;
        match entry.method {
            "get" => {
                if let Err(problem) = compiled.add(&compiler, operations) {
                    compiled.left_out.push(problem);
                }
                if is_too_much(&compiled) {
                    return Ok(None);
                }
            }
            method => {
                compiled.with_effects.push(id.clone());
                compiled.left_out.push(format!(
                    "operation {id} may change something ({}): allow_operations_with_effects takes it",
                    method.to_ascii_uppercase()
                ));
            }
        }
    }
    if problems.is_empty() {
        return Ok(Some(compiled));
    }
    let more = problems.len().saturating_sub(MOST_PROBLEMS);
    problems.truncate(MOST_PROBLEMS);
    if more > 0 {
        problems.push(format!("{more} more problems"));
    }
    // Names in them come from the document.
    Err(excerpt(&problems.join("; "), LONGEST_PROBLEMS))
}

impl Compiled {
    /// Adds the tool of an operation. The error says which operation has which problem.
    fn add(&mut self, compiler: &Compiler<'_, '_>, operations: &[ListedOperation<'_>]) -> Result<(), String> {
        let ListedOperation { id, path, .. } = compiler.entry;
        if let Some(second) = operations.iter().filter(|entry| entry.id == *id).nth(1) {
            return Err(format!("operation {id} is there twice, at {path} and at {}", second.path));
        }
        let made = compiler.tool().map_err(|problem| format!("operation {id} {problem}"))?;
        let name = made.name;
        if let Some(other) = self.names.get(&name) {
            return Err(format!(
                "tool name collision after normalization: {other} and {id} are both {name}; give one of them another name \
                 in operation_overrides"
            ));
        }
        self.names.insert(name.clone(), id.clone());
        self.notes.extend(made.notes);
        let tool = made.tool.to_string();
        self.bytes += tool.len();
        self.tools.push(tool);
        self.plans.insert(name, made.plan);
        Ok(())
    }

    /// Notes to the operator about the operations that are left out: the first ones with their reasons, and those that
    /// may change something in one note.
    pub(super) fn notes_of_left_out(&self) -> Vec<String> {
        let is_odd = |reason: &&String| !reason.contains("allow_operations_with_effects takes it");
        let odd: Vec<&String> = self.left_out.iter().filter(is_odd).collect();
        let mut notes: Vec<String> =
            odd.iter().take(MOST_LEFT_OUT).map(|why| format!("{LEFT_OUT}{why}")).collect();
        if odd.len() > MOST_LEFT_OUT {
            notes.push(format!("{LEFT_OUT}{} more operations", odd.len() - MOST_LEFT_OUT));
        }
        if !self.with_effects.is_empty() {
            let ids = excerpt(&self.with_effects.join(", "), LONGEST_IDS);
            let count = self.with_effects.len();
            notes.push(format!(
                "{LEFT_OUT}{count} operations that may change something, unless allow_operations_with_effects names them: {ids}"
            ));
        }
        notes
    }
}

/// Compiles one operation.
struct Compiler<'c, 'a> {
    document: &'c OpenApiDocument<'a>,
    spec: &'c OpenApiSpec,
    entry: &'c ListedOperation<'a>,
    told: OperationOverride,
}

struct Made {
    name: String,
    tool: Value,
    plan: RequestPlan,
    notes: Vec<String>,
}

/// The arguments of a tool that is being compiled.
struct ToolArguments<'c, 'a> {
    schemas: SchemaBuilder<'c, 'a>,
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl<'a> Compiler<'_, 'a> {
    fn tool(&self) -> Result<Made, String> {
        let ListedOperation { id, path, .. } = self.entry;
        let operation: Operation<'a> = decoded(self.entry.operation, "as it is written")?;
        let item: PathItem<'a> = decoded(self.entry.item, "its path")?;
        let method = self.method()?;
        let base_path = self.base_path(operation.servers.or(item.servers))?;
        let written = self.told.name.as_ref().or(operation.ptc_name.as_ref()).unwrap_or(id);
        let name = tool_name(written);
        if name.is_empty() {
            return Err(
                "has an id without a letter or digit; give it a name in operation_overrides".to_owned()
            );
        }
        let schemas = SchemaBuilder::new(self.document, Direction::Request);
        let mut input = ToolArguments { schemas, properties: Map::new(), required: Vec::new() };
        let (mut in_path, query) = self.parameters(&item, &operation, &mut input)?;
        let path = parts(path, &mut in_path)?;
        let body = self.body(&operation, &method, &mut input)?;
        let defaults = self.defaults(&operation, &mut input)?;
        let (secret, shown): (Map<String, Value>, Map<String, Value>) =
            defaults.clone().into_iter().partition(|(name, value)| is_secret(name, value));
        let hidden: Vec<&String> = secret.keys().collect();
        let (output, accept) = self.output(&operation)?;
        let writes = method != Method::GET || self.spec.with_effects.contains(id);
        let notes = operation.deprecated.then(|| format!("OpenAPI operation {id} is deprecated"));
        let description = self.told.description.clone().or(operation.description).or(operation.summary);
        let tool = json!({
            "name": name,
            "description": description.map(|text| short(text.trim())),
            "inputSchema": input.finish(),
            "outputSchema": output,
            "annotations": if writes {
                json!({ "readOnlyHint": false, "destructiveHint": true })
            } else {
                json!({ "readOnlyHint": true })
            },
            "_meta": { OWN_FACTS: { "transport": "openapi", "operationId": id, "method": method.as_str(),
                "path": self.entry.path, "defaultArgs": shown, HIDDEN_ARGUMENTS: hidden } },
        });
        let written = |(name, value): (String, Value)| {
            let (is_secret, value) = (secret.contains_key(&name), to_raw_value(&value)?);
            Ok(DefaultArgument { name, value, is_secret })
        };
        let defaults: Result<_, serde_json::Error> = defaults.into_iter().map(written).collect();
        let defaults = defaults.map_err(|error| error.to_string())?;
        let plan = RequestPlan { method, path, query, base_path, body, accept, defaults };
        Ok(Made { name, tool, plan, notes: notes.into_iter().collect() })
    }

    fn method(&self) -> Result<Method, String> {
        let may_write = self.spec.with_effects.contains(&self.entry.id);
        match self.entry.method {
            "get" => Ok(Method::GET),
            "post" if may_write => Ok(Method::POST),
            "put" if may_write => Ok(Method::PUT),
            "patch" if may_write => Ok(Method::PATCH),
            "delete" if may_write => Ok(Method::DELETE),
            method @ ("post" | "put" | "patch" | "delete") => Err(format!(
                "uses unsupported method {}; v1 supports GET only, unless allow_operations_with_effects names it",
                method.to_ascii_uppercase()
            )),
            method => Err(format!("uses unsupported method {}", method.to_ascii_uppercase())),
        }
    }

    /// An operation may name servers of its own: the first one at the origin of the configured address has its path.
    fn base_path(&self, servers: Option<&'a RawValue>) -> Result<Option<String>, String> {
        let base = &self.spec.base_url;
        let servers = servers.map(OpenApiDocument::servers).transpose()?.unwrap_or_default();
        let Some(first) = servers.first() else { return Ok(None) };
        let is_here = |url: &Url| url.origin() == base.origin() && url.query().is_none();
        let here = servers.iter().filter_map(|server| base.join(server).ok()).find(is_here);
        match here {
            Some(url) => Ok(Some(url.path().to_owned())),
            None => Err(format!("is served at {first}, which is another origin than base_url")),
        }
    }

    /// Parameters of the path by name, and those of the query. Parameters of an operation override those of
    /// its path.
    fn parameters(
        &self,
        item: &PathItem<'a>,
        operation: &Operation<'a>,
        input: &mut ToolArguments<'_, 'a>,
    ) -> Result<(BTreeMap<String, Parameter>, Vec<Parameter>), String> {
        let mut parameters: Vec<RawParameter<'a>> = Vec::new();
        for raw in item.parameters.iter().chain(&operation.parameters) {
            let parameter: RawParameter<'a> = decoded(self.document.resolve(raw)?, "a parameter of it")?;
            parameters.retain(|known| known.name != parameter.name || known.place != parameter.place);
            parameters.push(parameter);
        }
        let (mut in_path, mut query) = (BTreeMap::new(), Vec::new());
        for parameter in parameters {
            let RawParameter { name, place, .. } = &parameter;
            if place == "header" && IGNORED_HEADERS.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                continue;
            }
            let known = match place.as_str() {
                "path" => ParameterLocation::Path,
                "query" => ParameterLocation::Query,
                "header" | "cookie" => {
                    return Err(format!(
                        "has unsupported {place} parameter {name}; only path and query can be set"
                    ));
                }
                _ => return Err(format!("has unsupported {place} parameter {name}")),
            };
            if name.is_empty() {
                return Err(format!("has a {place} parameter without a name"));
            }
            if input.properties.contains_key(name) {
                return Err(format!("has two parameters {name}"));
            }
            let made = self.parameter(&parameter, known)?;
            input.add(&parameter, known)?;
            match known {
                ParameterLocation::Path => {
                    in_path.insert(name.clone(), made);
                }
                ParameterLocation::Query => query.push(made),
            }
        }
        Ok((in_path, query))
    }

    fn parameter(&self, raw: &RawParameter<'a>, location: ParameterLocation) -> Result<Parameter, String> {
        let name = &raw.name;
        let default = match location {
            ParameterLocation::Path => "simple",
            ParameterLocation::Query => "form",
        };
        let style = match (&raw.content, raw.style.as_deref().unwrap_or(default)) {
            (Some(content), _) => {
                let is_json = content.keys().next().is_some_and(|media| is_json(media));
                is_json
                    .then_some(ParameterStyle::Json)
                    .ok_or_else(|| format!("has parameter {name} of a media type that is not JSON"))?
            }
            (None, wanted) => {
                let found = STYLES.into_iter().find(|(known, _, at)| *known == wanted && *at == location);
                found.ok_or_else(|| format!("has parameter {name} of unsupported style {wanted}"))?.1
            }
        };
        let explode = raw.explode.unwrap_or(style == ParameterStyle::Form);
        // A slash of a value in the path would lead to another operation.
        let allow_reserved = raw.allow_reserved && location == ParameterLocation::Query;
        Ok(Parameter { name: name.clone(), style, explode, allow_reserved })
    }

    /// The media type of the JSON body, if the operation takes one.
    fn body(
        &self,
        operation: &Operation<'a>,
        method: &Method,
        input: &mut ToolArguments<'_, 'a>,
    ) -> Result<Option<String>, String> {
        let Some(raw) = operation.request_body else { return Ok(None) };
        if *method == Method::GET {
            return Err("has a request body, which GET cannot have here".to_owned());
        }
        let body: BodyOrResponse<'a> = decoded(self.document.resolve(raw)?, "its request body")?;
        let plain = body.content.iter().find(|(media, _)| media.as_ref() == JSON);
        let Some((kind, media)) = plain.or_else(|| body.content.iter().find(|(media, _)| is_json(media)))
        else {
            let media: Vec<&str> = body.content.keys().map(|media| &**media).collect();
            return Err(format!("has a request body of {}; only JSON can be sent", media.join(", ")));
        };
        if input.properties.contains_key(BODY) {
            return Err(format!("has a parameter {BODY} beside its request body"));
        }
        let MediaType { schema } = decoded(media, "its request body")?;
        let schema = schema.map_or(json!({}), |raw| input.schemas.schema(raw));
        input.properties.insert(BODY.to_owned(), described(schema, body.description.as_deref()));
        if body.required {
            input.required.push(BODY.to_owned());
        }
        Ok(Some(concrete(kind).to_owned()))
    }

    /// Default arguments. One that is a secret, or has one in it, is no argument of the tool: callers neither see nor set it.
    fn defaults(
        &self,
        operation: &Operation<'a>,
        input: &mut ToolArguments<'_, 'a>,
    ) -> Result<Map<String, Value>, String> {
        let told = &self.told.default_args;
        let defaults = if told.is_empty() {
            operation.ptc_default_args.clone().unwrap_or_default()
        } else {
            told.clone()
        };
        for (name, value) in &defaults {
            let Some(property) = input.properties.get_mut(name) else {
                let known: Vec<&str> = input.properties.keys().map(String::as_str).collect();
                return Err(format!(
                    "has no argument {name}, which default_args names; it has {}",
                    known.join(", ")
                ));
            };
            if is_secret(name, value) {
                input.properties.shift_remove(name);
            } else if let Value::Object(property) = property {
                property.insert("default".to_owned(), value.clone());
            }
            input.required.retain(|required| required != name);
        }
        Ok(defaults)
    }

    /// The schema of a call's result, and its media types for the header `Accept`.
    fn output(&self, operation: &Operation<'a>) -> Result<(Value, String), String> {
        // Sorted: `200` before `201` before `2XX` before `default`.
        let is_success = |status: &str| status.starts_with('2') || status == "default";
        let mut responses: Vec<(&Cow<'a, str>, &'a RawValue)> =
            operation.responses.iter().map(|(status, raw)| (status, *raw)).collect();
        responses.retain(|(status, _)| is_success(status));
        if responses.iter().any(|(status, _)| *status != "default") {
            responses.retain(|(status, _)| *status != "default");
        }
        if responses.is_empty() {
            return Err("has no 2xx response".to_owned());
        }
        let (mut accepted, mut others): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        let mut found = None;
        for (status, raw) in responses {
            let response: BodyOrResponse<'a> = decoded(self.document.resolve(raw)?, status)?;
            for (kind, media) in response.content {
                if !is_json(&kind) {
                    others.push(kind.into_owned());
                    continue;
                }
                if !accepted.iter().any(|known| known == concrete(&kind)) {
                    accepted.push(concrete(&kind).to_owned());
                }
                if found.is_none() {
                    found = Some(decoded::<MediaType<'a>>(media, status)?.schema);
                }
            }
        }
        let accept = accept(accepted);
        match found {
            Some(None) => Ok((json!({}), accept)),
            Some(Some(schema)) => {
                let mut schemas = SchemaBuilder::new(self.document, Direction::Response);
                let made = schemas.schema(schema);
                Ok((with_definitions(made, schemas.definitions()), accept))
            }
            None if others.is_empty() => Ok((json!({ "type": "null" }), accept)),
            None => Err(format!(
                "has no JSON 2xx response; v1 supports JSON responses only, and it gives {}",
                others.join(", ")
            )),
        }
    }
}

impl<'a> ToolArguments<'_, 'a> {
    fn add(&mut self, raw: &RawParameter<'a>, location: ParameterLocation) -> Result<(), String> {
        let schema = match &raw.content {
            None => raw.schema,
            Some(content) => match content.values().next() {
                Some(media) => decoded::<MediaType<'a>>(media, &raw.name)?.schema,
                None => None,
            },
        };
        let schema = match schema {
            Some(schema) => self.schemas.schema(schema),
            None => json!({ "type": "string" }),
        };
        self.properties.insert(raw.name.clone(), described(schema, raw.description.as_deref()));
        if raw.required || location == ParameterLocation::Path {
            self.required.push(raw.name.clone());
        }
        Ok(())
    }

    fn finish(self) -> Value {
        let ToolArguments { schemas, properties, required } = self;
        let schema = json!({ "type": "object", "properties": properties, "required": required,
            "additionalProperties": false });
        with_definitions(schema, schemas.definitions())
    }
}

/// True if something in the value stands under the name of a secret.
fn is_secret(name: &str, value: &Value) -> bool {
    !names::secrets_below(name, value).is_empty()
}

/// The path with its parameters in place.
fn parts(path: &str, parameters: &mut BTreeMap<String, Parameter>) -> Result<Vec<PathPart>, String> {
    if path.contains(['?', '#']) {
        return Err(format!("has a path with a query: {path}"));
    }
    // URL parsers take these for slashes, or remove them.
    if path.contains(|letter: char| letter == '\\' || letter.is_control()) {
        return Err(format!("has a path with a backslash or control character: {path:?}"));
    }
    let mut parts = Vec::new();
    let mut missing = Vec::new();
    let mut rest = path;
    while let Some((text, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        parts.push(PathPart::Text(text.to_owned()));
        match parameters.remove(name) {
            Some(parameter) => parts.push(PathPart::Parameter(parameter)),
            None => missing.push(name),
        }
        rest = after;
    }
    parts.push(PathPart::Text(rest.to_owned()));
    if !missing.is_empty() {
        return Err(format!("path template is missing declared path parameter(s): {}", missing.join(", ")));
    }
    match parameters.keys().next() {
        Some(name) => Err(format!("has path parameter {name}, which its path {path} does not have")),
        None => Ok(parts),
    }
}

fn with_definitions(schema: Value, definitions: Map<String, Value>) -> Value {
    match schema {
        Value::Object(mut schema) if !definitions.is_empty() => {
            schema.insert("$defs".to_owned(), definitions.into());
            schema.into()
        }
        schema => schema,
    }
}

/// A schema with this description, unless it has one.
fn described(schema: Value, description: Option<&str>) -> Value {
    match (schema, description) {
        (Value::Object(mut schema), Some(text)) if !text.is_empty() => {
            schema.entry("description").or_insert_with(|| short(text).into());
            schema.into()
        }
        (schema, _) => schema,
    }
}
