//! Finds out whether another user of this machine has opened a connection on loopback, so that it can be refused.

use crate::files;
use crate::tasks::{self, TaskOwner};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;

/// True if the system knows that another user has opened this connection to the port of loopback.
pub(crate) async fn is_of_another_user(peer: SocketAddr, port: u16) -> bool {
    let SocketAddr::V4(peer) = peer else { return true };
    let looked = tasks::blocking(TaskOwner::Process, move |_| {
        ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|table| {
            let text = files::read_text(Path::new(table)).ok()?;
            user_of(&text, peer, SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))
        })
    });
    let sudo = || std::env::var("SUDO_UID").ok().and_then(|user| user.parse().ok());
    // The superuser can read everything anyway.
    let is_allowed = |user: u32| user == files::user() || user == 0 || sudo() == Some(user);
    looked.await.flatten().is_some_and(|user| !is_allowed(user))
}

/// The user of a connection in a table of Linux (`/proc/net/tcp`, `/proc/net/tcp6`).
fn user_of(table: &str, from: SocketAddrV4, to: SocketAddrV4) -> Option<u32> {
    let written = |address: SocketAddrV4| {
        // The address is in the order of the machine, the port is not.
        format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port())
    };
    let (from, to) = (written(from), written(to));
    // An address of IPv4 stands at the end of one of IPv6.
    let mut rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row.len() > 7 && row[1].ends_with(&from) && row[2].ends_with(&to))?;
    row[7].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::{TcpListener, TcpStream};

    #[test]
    fn the_user_of_a_connection_stands_in_the_tables_of_the_system() {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        let address = |ip: [u8; 4]| u32::from_ne_bytes(ip);
        let loopback = address([127, 0, 0, 1]);
        let row = format!(
            "   0: {loopback:08X}:BCDE {loopback:08X}:1F90 01 00000000:00000000 00:00000000 00000000  1001 0 1"
        );
        let mapped =
            row.replace(&format!("{loopback:08X}"), &format!("0000000000000000FFFF0000{loopback:08X}"));
        let at = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        for row in [row, mapped] {
            let table = format!("{head}{row}\n");
            assert_eq!(user_of(&table, at(0xBCDE), at(0x1F90)), Some(1001));
            assert_eq!(user_of(&table, at(0xBCDF), at(0x1F90)), None);
            assert_eq!(user_of(&table, at(0x1F90), at(0xBCDE)), None);
        }
    }

    #[tokio::test]
    async fn the_own_connection_is_of_no_other_user() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        let (_accepted, peer) = listener.accept().await.unwrap();
        assert!(!is_of_another_user(peer, port).await);
        drop(stream);
    }
}
