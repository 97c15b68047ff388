//! Sends requests to one server with its configured headers and the token of its login; repeats a request that is
//! refused with 401 once, with a new token.

use super::refusal::HttpRefusal;
use crate::LoginNeed;
use crate::transport::ServerEvents;
use ptc_base::net::{
    HeaderName, Headers, HttpClient, Method, NetError, NetFault, Payload, Response, StatusCode, Url,
};
use ptc_base::oauth::{OAuthFault, ServerLogin};
use std::sync::Arc;

const AUTHORIZATION: HeaderName = HeaderName::from_static("authorization");

/// Where the server is, and what it is always sent.
#[derive(Clone)]
pub(super) struct HttpWire {
    pub(super) client: HttpClient,
    pub(super) url: Url,
    pub(super) headers: Headers,
    /// Gives the token of each request, unless a header does.
    pub(super) login: Option<ServerLogin>,
    /// What the server says unasked; knows its name and its clients.
    pub(super) events: Arc<ServerEvents>,
}

/// What stands between a request and a token.
pub(super) enum LoginTrouble {
    /// A person has to log in.
    Needed(LoginNeed),
    /// The server asks for scopes in vain.
    ScopeDenied(String),
    /// The token cannot be renewed; why.
    Other(String),
}

impl HttpWire {
    pub(super) async fn send(
        &self,
        method: Method,
        headers: &Headers,
        body: Option<Payload>,
    ) -> Result<Response, NetError> {
        let Some(login) = &self.login else {
            return self.client.send(method, &self.url, headers, body).await;
        };
        let mut token = login.token().await;
        let mut is_renewed = false;
        loop {
            let mut headers = headers.clone();
            if let Some(token) = &token {
                // A token that no header can carry is one that the server refuses.
                let _ = headers.set(AUTHORIZATION, token.header().expose());
            }
            let response = self.client.send(method.clone(), &self.url, &headers, body.clone()).await?;
            if response.status != StatusCode::UNAUTHORIZED {
                return Ok(response);
            }
            if is_renewed {
                login.refused_again(&response);
                return Ok(response);
            }
            // Nothing was executed: the server did not look at the request.
            match login.refused(token.as_ref(), &response).await {
                None => return Ok(response),
                newer => (token, is_renewed) = (newer, true),
            }
        }
    }

    /// Counts the logins by people, of which the next request uses the last one; 0 without logins.
    pub(super) async fn logins(&self) -> u64 {
        match &self.login {
            Some(login) => login.logins().await,
            None => 0,
        }
    }

    /// Reads a response of [`HttpWire::send`] whose status is no success.
    pub(super) async fn refusal(&self, response: Response) -> HttpRefusal {
        let (fault, scopes) = match (&self.login, response.status) {
            (Some(login), StatusCode::UNAUTHORIZED) => (login.verdict(), None),
            (Some(login), StatusCode::FORBIDDEN) => login.forbidden(&response).await.unzip(),
            (Some(_), _) | (None, _) => (None, None),
        };
        let trouble = self.login.as_ref().zip(fault).map(|(login, fault)| match fault {
            OAuthFault::LoginRequired(why) => {
                let (server, client) = (self.events.server().into(), self.events.client());
                LoginTrouble::Needed(LoginNeed::new(server, why, scopes, client, login.clone()))
            }
            OAuthFault::ScopeDenied(why) => LoginTrouble::ScopeDenied(why),
            OAuthFault::Unavailable(why) | OAuthFault::Unusable(why) => LoginTrouble::Other(why),
        });
        HttpRefusal::read(response, trouble).await
    }
}

/// True when the server is gone: what answers next at its address knows nothing of this connection.
pub(super) fn is_gone(error: &NetError) -> bool {
    matches!(error.fault, NetFault::Refused | NetFault::Dns | NetFault::Tls)
}
