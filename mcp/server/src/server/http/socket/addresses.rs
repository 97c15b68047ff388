//! Limits the number of open connections from one IP address to the HTTP server.

use ptc_base::sync::Locked;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

/// Open connections by address. Loopback addresses are not limited: a reverse proxy on this machine opens
/// connections for all clients.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    most: usize,
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// Permit for one connection from an address.
#[derive(Debug)]
pub(super) struct AddressPermit(Option<(Addresses, IpAddr)>);

impl Addresses {
    /// At most `most` connections from one address.
    pub(super) fn new(most: usize) -> Addresses {
        Addresses { most, open: Arc::default() }
    }

    /// Counts a connection as long as the permit is held; `None` when there are too many.
    pub(super) fn enter(&self, address: IpAddr) -> Option<AddressPermit> {
        // An IPv4 address may be written as an IPv6 one.
        let address = address.to_canonical();
        if address.is_loopback() {
            return Some(AddressPermit(None));
        }
        let mut open = self.open.locked();
        let count = open.entry(address).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(AddressPermit(Some((self.clone(), address))))
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let Some((addresses, address)) = &self.0 else { return };
        let mut open = addresses.open.locked();
        if let Some(count) = open.get_mut(address) {
            *count -= 1;
            if *count == 0 {
                open.remove(address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn an_address_has_so_many_connections_and_no_more() {
        let addresses = Addresses::new(2);
        let there: IpAddr = Ipv4Addr::new(10, 0, 0, 1).into();
        let mapped: IpAddr = Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped().into();
        let first = addresses.enter(there).expect("a place");
        let _second = addresses.enter(mapped).expect("a place");
        assert!(addresses.enter(there).is_none());
        assert!(addresses.enter(Ipv4Addr::new(10, 0, 0, 2).into()).is_some());
        drop(first);
        assert!(addresses.enter(there).is_some());
        let here: Vec<_> = (0..3).map(|_| addresses.enter(Ipv4Addr::LOCALHOST.into())).collect();
        assert!(here.iter().all(Option::is_some));
    }
}
