//! The keys of the indexes of texts.

use domain::ids::{EnvironmentId, InternalSubscriberId};

use super::{EMAIL_INDEX, NAME_INDEX, Table};
use crate::key::{Bytes, Key, Prefix, TableOf, parts};

const HEAD: u8 = 0;
const ROW: u8 = 1;
const TRIGRAMS: u8 = 2;
const PLACES: u8 = 3;

// The kind of a part, and two numbers.
type PartKey = parts![u8, u32, u32];

// The kind of a part, and a subscriber.
type PlacesKey = parts![u8, InternalSubscriberId];

/// A field of subscribers that is searched for parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SearchedField {
    /// The e-mail address.
    Email,
    /// The given name and the family name, with a space between them.
    Name,
}

/// The index of a field of the subscribers of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextIndex {
    /// The field.
    pub field: SearchedField,
    /// The environment.
    pub environment: EnvironmentId,
}

/// A part of an index of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPart {
    /// The place of the last row.
    Head,
    /// A row of texts.
    Row {
        /// The number of its group.
        group: u32,
        /// Its number in the group.
        row: u8,
    },
    /// A page of the trigrams of a group.
    Trigrams {
        /// The number of the page.
        page: u8,
        /// The number of the group.
        group: u32,
    },
    /// The places of the text of a subscriber.
    Places(InternalSubscriberId),
}

impl SearchedField {
    /// Every field.
    pub const ALL: [Self; 2] = [Self::Email, Self::Name];

    /// The table of the indexes of the field.
    pub const fn table(self) -> Table {
        match self {
            Self::Email => Table::EmailIndex,
            Self::Name => Table::NameIndex,
        }
    }

    const fn keys(self) -> TableOf<Bytes, (EnvironmentId, PartKey)> {
        match self {
            Self::Email => EMAIL_INDEX,
            Self::Name => NAME_INDEX,
        }
    }

    const fn places(self) -> TableOf<Bytes, (EnvironmentId, PlacesKey)> {
        TableOf::new(self.table())
    }

    /// The part in a key of an index of the field, with its environment.
    pub fn read(self, key: &[u8]) -> Option<(EnvironmentId, IndexPart)> {
        if let Some((environment, (PLACES, (subscriber, ())))) = self.places().read(key) {
            return Some((environment, IndexPart::Places(subscriber)));
        }
        let (environment, (kind, (one, (other, ())))) = self.keys().read(key)?;
        let part = match kind {
            HEAD if (one, other) == (0, 0) => IndexPart::Head,
            ROW => IndexPart::Row { group: one, row: u8::try_from(other).ok()? },
            TRIGRAMS => IndexPart::Trigrams { page: u8::try_from(one).ok()?, group: other },
            _ => return None,
        };
        Some((environment, part))
    }
}

impl TextIndex {
    /// The key of a part of the index.
    pub fn part(self, part: IndexPart) -> Key<Bytes> {
        let (kind, one, other) = match part {
            IndexPart::Head => (HEAD, 0, 0),
            IndexPart::Row { group, row } => (ROW, group, row.into()),
            IndexPart::Trigrams { page, group } => (TRIGRAMS, page.into(), group),
            IndexPart::Places(subscriber) => {
                let places = self.field.places().within(self.environment).then(PLACES);
                return places.then(subscriber).end();
            }
        };
        self.within().then(kind).then(one).then(other).end()
    }

    /// All parts.
    pub fn all(self) -> Prefix<Bytes> {
        self.within().open()
    }

    /// The rows.
    pub fn rows(self) -> Prefix<Bytes> {
        self.within().then(ROW).open()
    }

    /// The rows of a group.
    pub fn group(self, group: u32) -> Prefix<Bytes> {
        self.within().then(ROW).then(group).open()
    }

    /// The pages of trigrams of that number, of every group.
    pub fn page(self, page: u8) -> Prefix<Bytes> {
        self.within().then(TRIGRAMS).then(u32::from(page)).open()
    }

    /// The part in a key of the index. Returns `None` if it is a key of another index.
    pub fn read(self, key: &[u8]) -> Option<IndexPart> {
        let (environment, part) = self.field.read(key)?;
        (environment == self.environment).then_some(part)
    }

    fn within(self) -> Prefix<Bytes, PartKey> {
        self.field.keys().within(self.environment)
    }
}
