//! Sends HTTP requests to one server with the access token of its login, and retries once with a new token when the
//! server answers 401. No request that belongs to the session of one login carries the token of another.

use super::metadata::MessageHeaders;
use super::refusal::HttpRefusal;
use crate::transport::ServerEvents;
use crate::{LoginNeed, UpstreamFault};
use ptc_base::net::{
    HeaderName, Headers, HttpClient, Method, NetError, NetFault, Payload, Response, StatusCode, Url,
};
use ptc_base::oauth::{AccessToken, LoginId, OAuthFault, ServerLogin};
use std::fmt;
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

/// Why there is no response.
pub(super) enum SendFault {
    /// The network failed.
    Net(NetError),
    /// A person has logged in anew since the session of the request began. Nothing was sent, or the server has refused
    /// the token of the earlier login.
    OtherLogin,
}

impl From<SendFault> for UpstreamFault {
    fn from(fault: SendFault) -> UpstreamFault {
        match fault {
            SendFault::Net(error) => error.into(),
            SendFault::OtherLogin => UpstreamFault::Unavailable(fault.to_string()),
        }
    }
}

impl fmt::Display for SendFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendFault::Net(error) => error.fmt(f),
            SendFault::OtherLogin => f.write_str("the session belongs to an earlier login"),
        }
    }
}

impl HttpWire {
    /// Sends a request. Returns the response of any status, and the login whose token the request carried.
    pub(super) async fn send(
        &self,
        method: Method,
        metadata: MessageHeaders,
        body: Option<Payload>,
    ) -> Result<(Response, Option<LoginId>), SendFault> {
        let MessageHeaders { headers, token: limit } = metadata;
        let Some(login) = &self.login else {
            let sent = self.client.send(method, &self.url, &headers, body).await;
            return sent.map(|response| (response, None)).map_err(SendFault::Net);
        };
        let mut token = login.token().await;
        let mut is_renewed = false;
        loop {
            let mut headers = headers.clone();
            let login_id = token.as_ref().map(AccessToken::login).cloned();
            if login_id.as_ref().is_some_and(|login| !limit.allows(login)) {
                return Err(SendFault::OtherLogin);
            }
            if let Some(token) = &token {
                // A token that no header can carry is one that the server refuses.
                let _ = headers.set(AUTHORIZATION, token.header().expose());
            }
            let sent = self.client.send(method.clone(), &self.url, &headers, body.clone()).await;
            let response = sent.map_err(SendFault::Net)?;
            let answered = |response| Ok((response, login_id));
            if response.status != StatusCode::UNAUTHORIZED {
                return answered(response);
            }
            if is_renewed {
                login.refused_again(token.as_ref(), &response);
                return answered(response);
            }
            // Nothing was executed: the server did not look at the request.
            match login.refused(token.as_ref(), &response).await {
                None => return answered(response),
                newer => (token, is_renewed) = (newer, true),
            }
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
