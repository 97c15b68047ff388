//! Classifies failures of HTTP requests, and says for each what a user can do about it.

use super::address::ForbiddenAddress;
use hyper_util::client::legacy;
use std::error::Error;
use std::fmt;
use std::io;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetFault {
    /// A file or an option of the client is wrong.
    Setup,
    /// The name of the host has no address.
    Dns,
    /// Nothing listens there.
    Refused,
    /// No way to the host, or through the proxy.
    Unreachable,
    /// No connection within its time.
    ConnectTimeout,
    /// A certificate was rejected, by us or by the server, or the server speaks no TLS.
    Tls,
    /// The connection broke.
    Reset,
    /// Silent for too long.
    Idle,
    /// The response is not HTTP, or not what its headers announce.
    Garbage,
    /// A redirect that is not followed.
    Redirect,
    /// More decoded bytes than the cap.
    TooLarge {
        /// Bytes seen; there may be more.
        bytes: u64,
        /// The cap.
        cap: u64,
    },
}

/// How a message about each fault begins, and what to do about it.
#[rustfmt::skip]
pub const FAULTS: [(NetFault, &str, &str); 10] = [
    (NetFault::Setup, "HTTP client: ", "correct the files and options that the entry names"),
    (NetFault::Dns, "host not found: ", "check the host name in url, and that this machine can resolve names"),
    (NetFault::Refused, "connection refused: ", "start the server, or check host and port in url; nothing listens there"),
    (NetFault::Unreachable, "cannot connect: ", "check the network, the proxy, and the address in url"),
    (NetFault::ConnectTimeout, "connecting timed out: ", "check the address and the firewall, or raise connect_timeout_ms"),
    (NetFault::Tls, "TLS: ", "check that url names the host of its certificate; for a private authority set ca_file to its PEM file"),
    (NetFault::Reset, "connection lost: ", "the server or something before it closed the connection; look at its log"),
    (NetFault::Idle, "no data: ", "look at the log of the server, or raise request_timeout_ms"),
    (NetFault::Garbage, "not understood: ", "check that an HTTP server of the right kind answers at url (https:// for http://, or the port, is often wrong)"),
    (NetFault::Redirect, "redirected: ", "put the address that the server names into url, if you trust it"),
];

/// How a message names the proxy that could not be reached.
pub(super) const THROUGH_PROXY: &str = ", through the proxy ";

/// What to do about an error with this text, if it is one of [`NetError`].
pub fn remedy(text: &str) -> Option<&'static str> {
    if text.contains(THROUGH_PROXY) {
        return Some(
            "the proxy does not answer: start it, or correct HTTPS_PROXY, HTTP_PROXY or the proxy of the entry",
        );
    }
    FAULTS.iter().find(|(_, phrase, _)| text.contains(phrase)).map(|(_, _, remedy)| *remedy)
}

/// A failure, in words for people. Holds no address with a query, where secrets may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetError {
    /// What went wrong.
    pub fault: NetFault,
    text: String,
}

impl NetError {
    pub(super) fn new(fault: NetFault, text: impl Into<String>) -> NetError {
        NetError { fault, text: text.into() }
    }

    pub(super) fn too_large(bytes: u64, cap: u64) -> NetError {
        NetError::new(NetFault::TooLarge { bytes, cap }, String::new())
    }

    /// A request that was not answered; `place` is `host:port`.
    pub(super) fn of_request(error: &legacy::Error, place: &str) -> NetError {
        NetError::classify(error, error.is_connect(), NetFault::Reset, place)
    }

    /// An answer that broke off.
    pub(super) fn of_body(error: &(dyn Error + 'static), place: &str) -> NetError {
        NetError::classify(error, false, NetFault::Garbage, place)
    }

    /// Finds the root cause of a failure; `otherwise` is the fault if none is found.
    fn classify(
        error: &(dyn Error + 'static),
        is_connect: bool,
        otherwise: NetFault,
        place: &str,
    ) -> NetError {
        let mut fault = if is_connect { NetFault::Unreachable } else { otherwise };
        let mut innermost = error.to_string();
        let mut source = Some(error);
        while let Some(cause) = source {
            innermost = cause.to_string();
            if innermost == "dns error" {
                fault = NetFault::Dns;
            } else if cause.is::<ForbiddenAddress>() {
                fault = NetFault::Redirect;
                break;
            } else if cause.is::<rustls::Error>() {
                fault = NetFault::Tls;
                break;
            } else if let Some(mut io) = cause.downcast_ref::<io::Error>() {
                // The error inside an I/O error is no source of it.
                while let Some(inner) = io.get_ref().and_then(|inner| inner.downcast_ref::<io::Error>()) {
                    io = inner;
                }
                match io.kind() {
                    io::ErrorKind::ConnectionRefused => fault = NetFault::Refused,
                    io::ErrorKind::TimedOut if is_connect => fault = NetFault::ConnectTimeout,
                    io::ErrorKind::TimedOut => fault = NetFault::Idle,
                    io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
                        if !is_connect && fault != NetFault::Tls =>
                    {
                        fault = NetFault::Garbage;
                    }
                    // While connecting only TLS expects anything.
                    io::ErrorKind::UnexpectedEof if is_connect => fault = NetFault::Tls,
                    io::ErrorKind::UnexpectedEof => fault = NetFault::Reset,
                    _ => {}
                }
                if io.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
                    fault = NetFault::Tls;
                    break;
                }
            } else if let Some(http) = cause.downcast_ref::<hyper::Error>()
                && http.is_parse()
            {
                fault = NetFault::Garbage;
            }
            source = cause.source();
        }
        NetError::new(fault, format!("{innermost} ({place})"))
    }
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let NetFault::TooLarge { bytes, cap } = self.fault {
            return write!(f, "response of more than {cap} bytes ({bytes} seen)");
        }
        let phrase = FAULTS.iter().find(|(fault, _, _)| *fault == self.fault).map_or("", |row| row.1);
        write!(f, "{phrase}{}", self.text)
    }
}

impl Error for NetError {}
