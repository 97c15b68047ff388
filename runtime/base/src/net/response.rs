//! An HTTP response with a body that is read in chunks, and that fails after too many decoded bytes or too long a
//! silence. Only requested bytes are held.

use super::client::Answer;
use super::{AddressClass, NetError, NetFault};
use bytes::Bytes;
use http_body::Body as _;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::timeout;
use tower_http::decompression::DecompressionBody;
use url::Url;

/// A response; its body is not read yet.
pub struct Response {
    /// Status line.
    pub status: StatusCode,
    /// Where it came from, after redirects.
    pub url: Url,
    /// What can reach the host that answered.
    pub class: AddressClass,
    headers: HeaderMap,
    /// The body.
    pub body: Body,
}

impl Response {
    pub(super) fn new(
        answer: Answer,
        url: Url,
        class: AddressClass,
        place: String,
        idle: Option<Duration>,
    ) -> Response {
        let (head, body) = answer.into_parts();
        let body = Body { body: Box::pin(body), place, idle };
        Response { status: head.status, url, class, headers: head.headers, body }
    }

    /// A header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// All headers of a name that are text.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.get_all(name).iter().filter_map(|value| value.to_str().ok())
    }

    /// The media type without its parameters, in lower case; empty when there is none.
    pub fn media_type(&self) -> String {
        let value = self.header("content-type").unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }
}

/// A body being read. Dropping it before its end closes the connection, or resets the stream of one.
pub struct Body {
    body: Pin<Box<DecompressionBody<Incoming>>>,
    place: String,
    idle: Option<Duration>,
}

impl Body {
    /// The next decoded bytes, at most some ten thousand; `None` at the end. Cancel safe.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, NetError> {
        let Body { body, place, idle } = self;
        let next = async {
            while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
                // What follows the last bytes is left out.
                if let Ok(data) = frame.map_err(|error| NetError::of_body(&*error, place))?.into_data() {
                    return Ok(Some(data));
                }
            }
            Ok(None)
        };
        let Some(idle) = *idle else { return next.await };
        timeout(idle, next).await.unwrap_or_else(|_| {
            let text = format!("nothing came for {} ms ({place})", idle.as_millis());
            Err(NetError::new(NetFault::Idle, text))
        })
    }

    /// Reads to the end, but not more than `cap` decoded bytes.
    pub async fn read(&mut self, cap: usize) -> Result<Vec<u8>, NetError> {
        let mut text = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            let seen = text.len() + chunk.len();
            if seen > cap {
                return Err(NetError::too_large(seen as u64, cap as u64));
            }
            text.extend_from_slice(&chunk);
        }
        Ok(text)
    }

    /// The beginning of a body that is only shown: at most `cap` bytes. Any failure ends it.
    pub async fn beginning(&mut self, cap: usize) -> Vec<u8> {
        let mut text = Vec::new();
        while let Ok(Some(chunk)) = self.chunk().await {
            let room = cap - text.len();
            text.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if text.len() == cap {
                break;
            }
        }
        text
    }
}
