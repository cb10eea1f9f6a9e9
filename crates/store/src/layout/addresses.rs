//! The keys of the index of addresses.

use domain::ids::EnvironmentId;

use super::ADDRESSES;
use crate::key::{Bytes, Key, Prefix};

const HEAD: u8 = 0;
const ROW: u8 = 1;
const TRIGRAMS: u8 = 2;

/// A part of the index of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressPart {
    /// The place of the last row.
    Head,
    /// A row of addresses.
    Row {
        /// The number of its group.
        group: u32,
        /// Its number in the group.
        row: u32,
    },
    /// A page of the trigrams of a group.
    Trigrams {
        /// The number of the page.
        page: u32,
        /// The number of the group.
        group: u32,
    },
}

/// The key of a part of the index of addresses.
pub fn address_part(environment: EnvironmentId, part: AddressPart) -> Key<Bytes> {
    let (kind, one, other) = match part {
        AddressPart::Head => (HEAD, 0, 0),
        AddressPart::Row { group, row } => (ROW, group, row),
        AddressPart::Trigrams { page, group } => (TRIGRAMS, page, group),
    };
    ADDRESSES.within(environment).then(kind).then(one).then(other).end()
}

/// The part in a key of the index of addresses, with its environment.
pub fn read_address_part(key: &[u8]) -> Option<(EnvironmentId, AddressPart)> {
    let (environment, (kind, (one, (other, ())))) = ADDRESSES.read(key)?;
    let part = match kind {
        HEAD if (one, other) == (0, 0) => AddressPart::Head,
        ROW => AddressPart::Row { group: one, row: other },
        TRIGRAMS => AddressPart::Trigrams { page: one, group: other },
        _ => return None,
    };
    Some((environment, part))
}

/// The index of addresses of an environment.
pub fn addresses(environment: EnvironmentId) -> Prefix<Bytes> {
    ADDRESSES.within(environment).open()
}

/// The rows of addresses of an environment.
pub fn address_rows(environment: EnvironmentId) -> Prefix<Bytes> {
    ADDRESSES.within(environment).then(ROW).open()
}

/// The rows of a group of addresses.
pub fn address_group(environment: EnvironmentId, group: u32) -> Prefix<Bytes> {
    ADDRESSES.within(environment).then(ROW).then(group).open()
}

/// The pages of trigrams of that number, of every group.
pub fn address_page(environment: EnvironmentId, page: u32) -> Prefix<Bytes> {
    ADDRESSES.within(environment).then(TRIGRAMS).then(page).open()
}
