//! Asks a service over HTTP, which answers when a person has decided.

use super::question::{Question, text};
use super::{ApprovalAnswer, Said};
use crate::net::{ClientOptions, Headers, HttpClient, Method, NetError, Payload, Request, Url};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// Size limit of an answer.
const ANSWER_BYTES: usize = 16 << 10;

/// A service that answers questions.
#[derive(Clone)]
pub struct ApprovalWebhook {
    url: Url,
    client: HttpClient,
}

#[derive(Deserialize)]
struct HookAnswer {
    decision: String,
    #[serde(default)]
    by: Option<String>,
}

impl ApprovalWebhook {
    /// The service at this address. It has to be https, or on this machine.
    ///
    /// # Errors
    /// The address, or the settings of the network, cannot be used.
    pub fn new(url: &str) -> Result<ApprovalWebhook, String> {
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        if url.scheme() != "https" && !(url.scheme() == "http" && is_local) {
            return Err("it has to begin with https://, unless it is on this machine".to_owned());
        }
        let client = HttpClient::new(&ClientOptions::default()).map_err(|error| error.to_string())?;
        Ok(ApprovalWebhook { url, client })
    }

    /// Asks, and waits for the answer. Dropping the future closes the request.
    pub(super) fn ask(&self, questions: &[&Question]) -> BoxFuture<'static, Said> {
        let calls: Vec<_> = questions
            .iter()
            .map(|question| json!({ "arguments": question.shown_arguments(usize::MAX), "digest": question.digest() }))
            .collect();
        let first = questions.first();
        let body = json!({
            "id": first.map(|question| &*question.id), "call": first.map(|question| question.name()),
            "rule": first.map(|question| &*question.rule), "calls": calls, "text": text(questions),
        });
        let (hook, body) = (self.clone(), body.to_string());
        Box::pin(async move {
            match hook.answer(body).await {
                Ok(said) => said,
                Err(error) => Err(ApprovalAnswer::Unavailable(format!("--approval-webhook: {error}").into())),
            }
        })
    }

    async fn answer(&self, body: String) -> Result<Said, NetError> {
        let mut headers = Headers::default();
        // The name and the value are constant.
        let _ = headers.plain("content-type", "application/json");
        let request = Request {
            method: Method::POST,
            url: self.url.clone(),
            headers: &headers,
            body: Some(Payload::from(body)),
        };
        let mut response = self.client.send(request).await?;
        let status = response.status;
        let body = response.body.read(ANSWER_BYTES).await?;
        let host: Arc<str> = self.url.host_str().unwrap_or("webhook").into();
        let read = serde_json::from_slice::<HookAnswer>(&body).ok().filter(|_| status.is_success());
        Ok(match read {
            Some(HookAnswer { decision, by }) => {
                let by = by.map_or(host, Arc::from);
                if decision == "approve" { Ok(by) } else { Err(ApprovalAnswer::Denied(by)) }
            }
            None => Err(ApprovalAnswer::Unavailable(
                format!("--approval-webhook: {host} answered {status} without a decision").into(),
            )),
        })
    }
}
