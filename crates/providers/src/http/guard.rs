//! The guard: a resolver that hands out public addresses only.
//!
//! The addresses that it returns are those that are dialled, so that a name that resolves differently
//! a moment later changes nothing.

use std::io::{Error, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use super::AddressScope;
use super::connecting::NotConnected;
use crate::look_up;

#[derive(Debug)]
pub(super) struct Guard {
    scope: AddressScope,
}

impl Guard {
    pub(super) fn new(scope: AddressScope) -> Self {
        Self { scope }
    }
}

impl Resolver for Guard {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = resolved(uri, config, timeout)?;
        let is_reached = |address: IpAddr| match self.scope {
            AddressScope::Public => is_public(address),
            AddressScope::Private => true,
        };
        if found.iter().all(|address| is_reached(address.ip())) {
            return Ok(found);
        }
        let refusal = Error::new(ErrorKind::PermissionDenied, "the host has a private address");
        Err(ureq::Error::Io(refusal))
    }
}

// Returns the addresses of a host. ureq would start a thread of its own, and panics if there is none.
fn resolved(
    uri: &Uri,
    config: &Config,
    timeout: NextTimeout,
) -> Result<ResolvedSocketAddrs, ureq::Error> {
    let (uri, config) = (uri.clone(), config.clone());
    let found = look_up::within(*timeout.after, move || {
        // Without an end, ureq starts no thread of its own.
        DefaultResolver::default().resolve(&uri, &config, NextTimeout::default())
    });
    match found {
        Ok(Err(ureq::Error::Io(_))) => Err(ureq::Error::HostNotFound),
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::TimedOut => {
            Err(ureq::Error::Timeout(timeout.reason))
        }
        Err(error) => Err(ureq::Error::Other(Box::new(NotConnected(error)))),
    }
}

/// Returns `true` if the address is one of the public internet, by the registries of IANA for
/// special purposes.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = match address.octets() {
        [0 | 10 | 127 | 240.., ..]
        | [169, 254, ..]
        | [192, 168, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => true,
        [100, second, ..] => (64..128).contains(&second),
        [172, second, ..] => (16..32).contains(&second),
        [first, ..] => (224..240).contains(&first),
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // Addresses of IPv4: mapped, behind NAT64, in 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            embedded(high, low)
        }
        [0x2002, high, low, ..] => embedded(high, low),
        // Protocols, Teredo among them, and documentation.
        [0x2001, 0..0x0200 | 0x0db8, ..] | [0x3fff, 0..0x1000, ..] => false,
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::is_public;

    /// One row per block of addresses.
    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "3fff::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "100.63.0.1",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "223.255.255.255",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::1",
            "2001:200::1",
            "2606:4700::1111",
            "3ffe::1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
