//! Asks a service over HTTP to approve tool calls, and waits until it answers with the decision of a person.

use super::form::{Approver, Form};
use super::{ApprovalAnswer, Said, name_of};
use futures_util::future::BoxFuture;
use ptc_base::net::{ClientOptions, Headers, HttpClient, Method, NetError, Payload, Url};
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
    /// It approves calls with any arguments.
    #[serde(default)]
    any_arguments: bool,
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
    pub(super) fn ask(&self, form: &Form) -> BoxFuture<'static, Said> {
        let calls = form
            .calls
            .iter()
            .map(|call| json!({ "call": call.name, "arguments": call.arguments, "digest": call.digest }));
        let mut body = json!({
            "id": form.id, "call": form.subject, "rule": form.rule, "calls": calls.collect::<Vec<_>>(),
            "text": form.text,
        });
        if form.offers_any {
            body["any_arguments"] = true.into();
        }
        let offers_any = form.offers_any;
        let (hook, body) = (self.clone(), body.to_string());
        Box::pin(async move {
            match hook.answer(body, offers_any).await {
                Ok(said) => said,
                Err(error) => Err(ApprovalAnswer::Unavailable(format!("--approval-webhook: {error}").into())),
            }
        })
    }

    async fn answer(&self, body: String, offers_any: bool) -> Result<Said, NetError> {
        let mut headers = Headers::default();
        // The name and the value are constant.
        let _ = headers.plain("content-type", "application/json");
        let body = Some(Payload::from(body));
        let mut response = self.client.send(Method::POST, &self.url, &headers, body).await?;
        let status = response.status;
        let body = response.body.read(ANSWER_BYTES).await?;
        let host: Arc<str> = self.url.host_str().unwrap_or("webhook").into();
        let read = serde_json::from_slice::<HookAnswer>(&body).ok().filter(|_| status.is_success());
        Ok(match read {
            Some(HookAnswer { decision, by, any_arguments }) => {
                let by = by.map_or(host, |by| name_of(&by));
                let is_any = offers_any && any_arguments;
                if decision == "approve" {
                    Ok(Approver { by, is_any })
                } else {
                    Err(ApprovalAnswer::Denied(by))
                }
            }
            None => Err(ApprovalAnswer::Unavailable(
                format!("--approval-webhook: {host} answered {status} without a decision").into(),
            )),
        })
    }
}
