//! Prevents server-side request forgery: no redirect, and no address that a server names, may lead from the internet to
//! this machine or its private network.
//!
//! A configured address may be anywhere. The target of a redirect may not: the server could make this process call
//! services that trust callers on this machine (metadata of a cloud, administration on loopback). The rule is applied to
//! the addresses that a name has when the connection is made, and the connection goes to one of these.

use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use tower_service::Service;
use url::Url;

/// What can reach an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressClass {
    /// Everything on the internet.
    Public,
    /// Machines of one network: private, unique-local, and those behind the NAT of a provider.
    Private,
    /// This machine.
    Loopback,
    /// Machines on one link; the metadata services of clouds.
    LinkLocal,
    /// No single machine: unspecified, multicast, broadcast, reserved.
    Special,
}

use AddressClass::{LinkLocal, Loopback, Private, Public, Special};

/// Ranges of IPv4 that are not public, by their first bits.
const V4: &[(Ipv4Addr, u32, AddressClass)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8, Special),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Private),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Special),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Private),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Special),
    (Ipv4Addr::new(240, 0, 0, 0), 4, Special),
];

/// Ranges of IPv6 that are not public.
const V6: &[(Ipv6Addr, u32, AddressClass)] = &[
    (Ipv6Addr::LOCALHOST, 128, Loopback),
    (Ipv6Addr::UNSPECIFIED, 128, Special),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Private),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, Private),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, LinkLocal),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, Special),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64, Special),
];

/// Ranges of IPv6 in which an address of IPv4 stands, and the bit it begins at: mapped, compatible, translated (well-known
/// and local-use prefix), 6to4.
const EMBEDDING: &[(Ipv6Addr, u32, u32)] = &[
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, 96),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, 0), 96, 96),
    (Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96, 96),
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96, 96),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, 96),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, 16),
];

impl AddressClass {
    pub(super) fn of(address: IpAddr) -> AddressClass {
        match address {
            IpAddr::V4(address) => {
                let bits = u32::from(address);
                let row =
                    V4.iter().find(|(range, length, _)| (bits ^ u32::from(*range)) >> (32 - length) == 0);
                row.map_or(Public, |row| row.2)
            }
            IpAddr::V6(address) => {
                let bits = u128::from(address);
                let is_in =
                    |range: &Ipv6Addr, length: u32| (bits ^ u128::from(*range)) >> (128 - length) == 0;
                if let Some(row) = V6.iter().find(|(range, length, _)| is_in(range, *length)) {
                    return row.2;
                }
                let Some((_, _, at)) = EMBEDDING.iter().find(|(range, length, _)| is_in(range, *length))
                else {
                    return Public;
                };
                // The bits from that place on, of which the first 32 are meant.
                AddressClass::of(Ipv4Addr::from((bits << at >> 96) as u32).into())
            }
        }
    }

    /// Whether a server of this class may redirect to the other one.
    pub(super) const fn may_lead_to(self, next: AddressClass) -> bool {
        match (self, next) {
            (_, Public) | (Loopback, Loopback | Private) | (Private, Private) | (LinkLocal, LinkLocal) => {
                true
            }
            (_, Private | Loopback | LinkLocal | Special) => false,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Public => "a public address",
            Private => "an address of a private network",
            Loopback => "an address of this machine",
            LinkLocal => "a link-local address",
            Special => "an address of no single machine",
        }
    }
}

/// True for an address that never leaves this machine.
pub fn is_loopback(url: &Url) -> bool {
    url.host_str().and_then(class_of_literal) == Some(Loopback)
}

/// The host of an address (`Url`, `Uri`), if it is an IP address or a name that always means this machine.
pub(super) fn class_of_literal(host: &str) -> Option<AddressClass> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some(AddressClass::of(address));
    }
    let name = bare.trim_end_matches('.').to_ascii_lowercase();
    (name == "localhost" || name.ends_with(".localhost")).then_some(Loopback)
}

/// A redirect leads to a forbidden address.
#[derive(Debug)]
pub(super) struct ForbiddenAddress {
    from: AddressClass,
    to: AddressClass,
}

impl ForbiddenAddress {
    /// An error unless one may lead to the other.
    pub(super) fn check(from: AddressClass, to: AddressClass) -> Result<(), ForbiddenAddress> {
        if from.may_lead_to(to) { Ok(()) } else { Err(ForbiddenAddress { from, to }) }
    }
}

impl fmt::Display for ForbiddenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "from {} to {}, which is not followed", self.from.name(), self.to.name())
    }
}

impl Error for ForbiddenAddress {}

/// Finds the addresses of names; for a redirect or an address that a server named, only those that it may lead to.
#[derive(Clone)]
pub(super) struct RuledResolver {
    names: GaiResolver,
    /// The server that leads there; `None` for a configured address.
    pub(super) from: Option<AddressClass>,
}

impl RuledResolver {
    pub(super) fn new(from: Option<AddressClass>) -> RuledResolver {
        RuledResolver { names: GaiResolver::new(), from }
    }
}

impl Service<Name> for RuledResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.names.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (found, from) = (self.names.call(name), self.from);
        Box::pin(async move { Ok(allowed(from, found.await?.collect())?.into_iter()) })
    }
}

/// The addresses that may be connected to; the error says of the first why it may not, if none may.
fn allowed(from: Option<AddressClass>, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, ForbiddenAddress> {
    let Some(from) = from else { return Ok(found) };
    let class = |address: &SocketAddr| AddressClass::of(address.ip());
    let (well, not): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|address| from.may_lead_to(class(address)));
    match not.first() {
        Some(first) if well.is_empty() => Err(ForbiddenAddress { from, to: class(first) }),
        _ => Ok(well),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSES: [AddressClass; 5] = [Public, Private, Loopback, LinkLocal, Special];

    /// Addresses as they may be written in a redirect, the first and last ones of ranges among them.
    const ADDRESSES: &[(&str, AddressClass)] = &[
        ("1.1.1.1", Public),
        ("9.255.255.255", Public),
        ("10.0.0.0", Private),
        ("10.255.255.255", Private),
        ("11.0.0.0", Public),
        ("100.63.255.255", Public),
        ("100.64.0.0", Private),
        ("100.127.255.255", Private),
        ("100.128.0.0", Public),
        ("126.255.255.255", Public),
        ("127.0.0.1", Loopback),
        ("127.255.255.255", Loopback),
        ("128.0.0.0", Public),
        ("169.253.255.255", Public),
        ("169.254.0.0", LinkLocal),
        ("169.254.169.254", LinkLocal),
        ("169.255.0.0", Public),
        ("172.15.255.255", Public),
        ("172.16.0.1", Private),
        ("172.31.255.255", Private),
        ("172.32.0.0", Public),
        ("192.0.0.192", Special),
        ("192.0.1.0", Public),
        ("192.168.0.1", Private),
        ("192.169.0.0", Public),
        ("198.18.0.1", Private),
        ("198.20.0.0", Public),
        ("223.255.255.255", Public),
        ("224.0.0.1", Special),
        ("255.255.255.255", Special),
        ("0.0.0.0", Special),
        ("0.1.2.3", Special),
        ("::", Special),
        ("::1", Loopback),
        ("::2", Special),
        ("::127.0.0.1", Loopback),
        ("::ffff:127.0.0.1", Loopback),
        ("::ffff:10.1.2.3", Private),
        ("::ffff:169.254.169.254", LinkLocal),
        ("::ffff:8.8.8.8", Public),
        ("::ffff:0:10.0.0.1", Private),
        ("64:ff9b::7f00:1", Loopback),
        ("64:ff9b::808:808", Public),
        ("64:ff9b:1::a9fe:a9fe", LinkLocal),
        ("2002:7f00:1::", Loopback),
        ("2002:808:808::1", Public),
        ("2001:4860:4860::8888", Public),
        ("fbff::1", Public),
        ("fc00::1", Private),
        ("fd00:ec2::254", Private),
        ("fe00::1", Public),
        ("fe80::1", LinkLocal),
        ("febf::1", LinkLocal),
        ("fec0::1", Private),
        ("ff02::1", Special),
        ("100::1", Special),
    ];

    #[test]
    fn each_address_has_its_class_and_each_class_its_rule() {
        for (text, class) in ADDRESSES {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(AddressClass::of(address), *class, "{text}");
            assert_eq!(class_of_literal(&text.to_uppercase()), Some(*class), "{text}");
            for from in CLASSES {
                let may = *class == Public
                    || (from, *class) == (Loopback, Private)
                    || (from == *class && from != Special);
                assert_eq!(from.may_lead_to(*class), may, "{from:?} {text}");
                assert_eq!(allowed(Some(from), vec![(address, 80).into()]).is_ok(), may, "{from:?} {text}");
            }
            assert!(allowed(None, vec![(address, 80).into()]).is_ok(), "what is configured may be anywhere");
        }
        // As `Url` reads them, other ways to write an address are the same.
        for (text, class) in [
            ("0x7f.1", Loopback),
            ("2130706433", Loopback),
            ("0251.0376.0251.0376", LinkLocal),
            ("[::FFFF:7F00:1]", Loopback),
        ] {
            let url: url::Url = format!("http://{text}/").parse().unwrap();
            assert_eq!(url.host_str().and_then(class_of_literal), Some(class), "{text}");
        }
        for (name, class) in
            [("localhost", true), ("a.LOCALHOST.", true), ("localhost.example", false), ("example", false)]
        {
            assert_eq!(class_of_literal(name).is_some(), class, "{name}");
        }
    }

    #[test]
    fn of_several_addresses_only_those_are_left_that_may_be_led_to() {
        let both: Vec<SocketAddr> =
            ["127.0.0.1:80", "1.1.1.1:80"].iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(allowed(Some(Public), both.clone()).unwrap(), both[1..]);
        assert_eq!(allowed(Some(Loopback), both.clone()).unwrap(), both);
        assert!(allowed(Some(Public), Vec::new()).unwrap().is_empty());
        let error = allowed(Some(Public), both[..1].to_vec()).unwrap_err().to_string();
        assert_eq!(error, "from a public address to an address of this machine, which is not followed");
    }
}
