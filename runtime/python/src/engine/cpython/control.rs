//! Queues and sends orders to the warm Python process that forks a child for each script: to run, stop, continue or
//! kill a script, kills first.

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;

/// An order to the warm process.
pub(super) enum Order {
    /// Sets the functions of later scripts; a whole line.
    Functions(String),
    /// Forks a process for the script of this number, with its end of the channel.
    Run(u64, OwnedFd),
    /// Stops the script of this number, or continues it.
    SetPaused(u64, bool),
    /// Kills the script of this number.
    Kill(u64),
}

/// Orders that were not sent yet. Kills go first: their scripts were ordered earlier, and tasks wait for
/// their end.
#[derive(Default)]
pub(super) struct Orders {
    kills: VecDeque<u64>,
    others: VecDeque<Order>,
}

impl Orders {
    pub(super) fn put(&mut self, order: Order) {
        match order {
            Order::Kill(number) => self.kills.push_back(number),
            other => self.others.push_back(other),
        }
    }

    pub(super) fn take(&mut self) -> Option<Order> {
        self.kills.pop_front().map(Order::Kill).or_else(|| self.others.pop_front())
    }

    /// Withdraws the order to run a script. Returns false when it was sent already.
    pub(super) fn withdraw(&mut self, number: u64) -> bool {
        let before = self.others.len();
        self.others.retain(|order| !matches!(order, Order::Run(its_number, _) if *its_number == number));
        self.others.len() < before
    }
}

impl Order {
    /// Sends the order once the socket has room.
    pub(super) async fn send(&self, writer: &OwnedWriteHalf) -> io::Result<()> {
        let socket: &UnixStream = writer.as_ref();
        let (line, mut descriptor) = match self {
            Order::Functions(line) => (line.clone(), None),
            Order::Run(number, channel) => (format!("run {number}\n"), Some(channel)),
            Order::SetPaused(number, true) => (format!("pause {number}\n"), None),
            Order::SetPaused(number, false) => (format!("resume {number}\n"), None),
            Order::Kill(number) => (format!("kill {number}\n"), None),
        };
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            socket.writable().await?;
            let sent = socket.try_io(Interest::WRITABLE, || {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
                let mut ancillary = SendAncillaryBuffer::new(&mut space);
                let descriptors = descriptor.map(AsFd::as_fd);
                if let Some(descriptor) = &descriptors {
                    ancillary.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(descriptor)));
                }
                let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                Ok(sendmsg(socket, &[IoSlice::new(rest)], &mut ancillary, flags)?)
            });
            match sent {
                Ok(bytes) => {
                    rest = &rest[bytes..];
                    // The descriptor goes with the first byte only.
                    descriptor = None;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_go_first_and_runs_can_be_taken_back() {
        let channel = || OwnedFd::from(std::os::unix::net::UnixStream::pair().unwrap().0);
        let mut orders = Orders::default();
        orders.put(Order::Run(1, channel()));
        orders.put(Order::Functions("functions {}\n".to_owned()));
        orders.put(Order::Run(2, channel()));
        assert!(matches!(orders.take(), Some(Order::Run(1, _))));
        assert!(!orders.withdraw(1));
        orders.put(Order::Kill(1));
        assert!(orders.withdraw(2) && !orders.withdraw(2));
        assert!(matches!(orders.take(), Some(Order::Kill(1))));
        assert!(matches!(orders.take(), Some(Order::Functions(_))));
        assert!(orders.take().is_none());
    }
}
