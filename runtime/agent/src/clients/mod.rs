//! Makes HTTP clients for language models from names such as `provider:model`, for the API formats of OpenAI (which
//! most providers speak) and Anthropic.
//!
//! # Layout
//! - this file: names of models, providers and where their keys are
//! - `http`: one request with retries, deadlines, streams and errors; `openai`, `anthropic`: the two shapes
//!   of bodies

mod anthropic;
mod http;
mod openai;

use super::llm::{Llm, LlmError, LlmErrorKind};
use http::{HttpModel, ModelProtocol};
use ptc_base::net::{ClientOptions, Headers, HttpClient, Url};
use ptc_base::secrets::{Credential, SecretRegistry};
use std::sync::Arc;
use std::time::Duration;

/// Which model to use, and how to reach it.
#[derive(Clone)]
pub struct ModelOptions {
    /// `provider:model`, for example `anthropic:claude-haiku-4-5` or `openrouter:google/gemini-3.1-flash-lite`, or an
    /// alias. With a base address, a model without a provider is one of an OpenAI-compatible server.
    pub model: String,
    /// Base address instead of the provider's own: everything before `/chat/completions` or `/v1/messages`.
    pub base_url: Option<String>,
    /// The API key; `None` reads the provider's usual environment variable.
    pub key: Option<Credential>,
    /// Streams replies, so that a long reply is known to be under way.
    pub stream: bool,
    /// Retries of a request that failed temporarily.
    pub retries: u32,
    /// The pause before the first retry, unless the provider names one; it doubles.
    pub pause: Duration,
}

impl ModelOptions {
    /// A model with two retries, without a stream.
    pub fn new(model: impl Into<String>) -> ModelOptions {
        ModelOptions {
            model: model.into(),
            base_url: None,
            key: None,
            stream: false,
            retries: 2,
            pause: Duration::from_millis(500),
        }
    }
}

/// A provider of models.
struct ModelProvider {
    /// The part of a model's name before the colon.
    name: &'static str,
    /// Name in messages.
    title: &'static str,
    base_url: &'static str,
    /// The environment variable of its key; `None` if it needs none.
    key: Option<&'static str>,
    protocol: ModelProtocol,
}

const fn openai(
    name: &'static str,
    title: &'static str,
    base_url: &'static str,
    key: Option<&'static str>,
) -> ModelProvider {
    ModelProvider { name, title, base_url, key, protocol: ModelProtocol::OpenAi }
}

const PROVIDERS: [ModelProvider; 8] = [
    ModelProvider {
        name: "anthropic",
        title: "Anthropic",
        base_url: "https://api.anthropic.com",
        key: Some("ANTHROPIC_API_KEY"),
        protocol: ModelProtocol::Anthropic,
    },
    openai("openai", "OpenAI", "https://api.openai.com/v1", Some("OPENAI_API_KEY")),
    openai("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", Some("OPENROUTER_API_KEY")),
    openai(
        "gemini",
        "Gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        Some("GEMINI_API_KEY"),
    ),
    openai("groq", "Groq", "https://api.groq.com/openai/v1", Some("GROQ_API_KEY")),
    openai("mistral", "Mistral", "https://api.mistral.ai/v1", Some("MISTRAL_API_KEY")),
    openai("deepseek", "DeepSeek", "https://api.deepseek.com/v1", Some("DEEPSEEK_API_KEY")),
    openai("ollama", "Ollama", "http://localhost:11434/v1", None),
];

/// An OpenAI-compatible server that is not in the table.
const OTHER: ModelProvider = openai("", "the model server", "", None);

/// Short names of models.
const ALIASES: [(&str, &str); 1] = [("gemini-flash-lite", "openrouter:google/gemini-3.1-flash-lite")];

/// A model over HTTP. Its key is registered as a secret.
///
/// # Errors
/// [`LlmErrorKind::KeyMissing`]; [`LlmErrorKind::Configuration`]: the provider is unknown, or the address is
/// invalid or would send the key unencrypted.
pub fn model(options: ModelOptions, secrets: &SecretRegistry) -> Result<Arc<dyn Llm>, LlmError> {
    model_with(options, secrets, &|variable| std::env::var(variable).ok())
}

fn model_with(
    options: ModelOptions,
    secrets: &SecretRegistry,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Arc<dyn Llm>, LlmError> {
    let ModelOptions { model, base_url, key, stream, retries, pause } = options;
    let wrong = |text: String| LlmError::new(LlmErrorKind::Configuration, text);
    let named = ALIASES.iter().find(|(alias, _)| *alias == model).map_or(&*model, |(_, model)| model);
    let known = named.split_once(':').and_then(|(provider, model)| {
        PROVIDERS.iter().find(|known| known.name == provider).map(|known| (known, model))
    });
    let (provider, name) = match (known, &base_url) {
        (Some(known), _) => known,
        (None, Some(_)) => (&OTHER, named),
        (None, None) => {
            let providers: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
            return Err(wrong(format!(
                "unknown model {model:?}: write provider:model with one of {}, or give a base address",
                providers.join(", ")
            )));
        }
    };
    let base = base_url.as_deref().unwrap_or(provider.base_url).trim_end_matches('/');
    let url = Url::parse(base).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some(mut url) = url else {
        return Err(wrong(format!("the base address {base:?} is no address of HTTP")));
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("a base address holds neither name nor password: give a key".to_owned()));
    }
    url.set_path(&format!("{}{}", url.path().trim_end_matches('/'), provider.protocol.path()));
    let key = match (key, provider.key) {
        (Some(key), _) => {
            // The key may have been read with another registry.
            let _ = secrets.register(key.expose());
            Some(key)
        }
        (None, None) => None,
        (None, Some(name)) => match variable(name).filter(|value| !value.trim().is_empty()) {
            Some(value) => Some(Credential::secret(value.trim(), secrets).0),
            None if base_url.is_some() => None,
            None => {
                let text = format!("{name} is required for {} planner models", provider.title);
                return Err(LlmError::new(LlmErrorKind::KeyMissing, text));
            }
        },
    };
    let is_near = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    if key.is_some() && url.scheme() == "http" && !is_near {
        return Err(wrong(format!("{base}: a key is not sent over http to another machine")));
    }
    let mut headers = Headers::default();
    let set = provider.protocol.set_headers(&mut headers, key.as_ref());
    set.map_err(|error| wrong(format!("the key of {} {error}", provider.title)))?;
    let idle_timeout = stream.then_some(http::SILENCE);
    let client = HttpClient::new(&ClientOptions { idle_timeout, ..ClientOptions::default() });
    let client = client.map_err(|error| wrong(error.to_string()))?;
    Ok(Arc::new(HttpModel {
        client,
        secrets: secrets.clone(),
        url,
        headers,
        title: provider.title,
        key_name: provider.key,
        model: named.to_owned(),
        id: name.to_owned(),
        protocol: provider.protocol,
        stream,
        retries,
        pause,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_found_by_provider_alias_or_address() {
        let secrets = SecretRegistry::new();
        let made = |name: &str, base: Option<&str>| {
            let options = ModelOptions { base_url: base.map(str::to_owned), ..ModelOptions::new(name) };
            let variable = |name: &str| (name == "OPENAI_API_KEY").then(|| "sk-test-key-123456".to_owned());
            match model_with(options, &secrets, &variable) {
                Ok(model) => model.model().to_owned(),
                Err(error) => format!("! {error}"),
            }
        };
        assert_eq!(made("openai:gpt-x", None), "openai:gpt-x");
        assert!(secrets.scrub("sk-test-key-123456").contains("[REDACTED]"));
        assert_eq!(
            made("gemini-flash-lite", None),
            "! OPENROUTER_API_KEY is required for OpenRouter planner models"
        );
        assert_eq!(made("ollama:qwen", None), "ollama:qwen");
        assert_eq!(made("some-model", Some("http://127.0.0.1:1/v1/")), "some-model");
        assert!(made("some-model", None).starts_with("! unknown model \"some-model\": write provider:model"));
        assert!(
            made("openai:x", Some("http://example.com")).contains("not sent over http to another machine")
        );
        assert!(made("openai:x", Some("nonsense")).contains("is no address of HTTP"));
        let told = made("openai:x", Some("https://me:hunter2@example.com/v1"));
        assert!(told.contains("neither name nor password") && !told.contains("hunter2"), "{told}");
    }

    #[test]
    fn a_key_from_elsewhere_is_a_secret_here_too() {
        let (elsewhere, here) = (SecretRegistry::new(), SecretRegistry::new());
        let key = Some(Credential::secret("sk-test-key-123456", &elsewhere).0);
        assert!(model(ModelOptions { key, ..ModelOptions::new("openai:gpt-x") }, &here).is_ok());
        assert!(here.scrub("sk-test-key-123456").contains("[REDACTED]"));
    }
}
