//! Defines the byte stream of a client's HTTP connection: one type for plain TCP and for TLS. Also detects that a
//! client has closed its connection.

use std::os::fd::RawFd;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

/// A plain or TLS stream.
pub(super) type ClientStream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// The socket below a stream.
pub(super) fn tcp(stream: &ClientStream) -> &TcpStream {
    match stream {
        Either::Left(plain) => plain,
        Either::Right(tls) => tls.get_ref().0,
    }
}

/// True when the peer has closed its end, even if data is left to read.
pub(super) fn is_disconnected(socket: RawFd) -> bool {
    #[cfg(target_os = "linux")]
    const GONE: i16 = libc::POLLHUP | libc::POLLRDHUP | libc::POLLERR;
    #[cfg(not(target_os = "linux"))]
    const GONE: i16 = libc::POLLHUP | libc::POLLERR;
    let mut socket = libc::pollfd { fd: socket, events: GONE, revents: 0 };
    // SAFETY: `socket` is one valid pollfd that outlives the call, and a timeout of 0 does not block.
    unsafe { libc::poll(&raw mut socket, 1, 0) > 0 && socket.revents & GONE != 0 }
}
