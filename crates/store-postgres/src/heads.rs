//! Heads: the rows that writers lock. Each counts the commits that have changed its keys.
//!
//! A key belongs to the head of its environment, or to the first head. Environments share heads, so
//! that a reader looks at a few rows only. A writer locks the heads of what it may change, in their
//! order. So writers never wait for each other in a circle, except in transactions of a host, which may
//! hold one head and ask for others (`PostgresStore::join`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use domain::fnv;
use domain::ids::EnvironmentId;
use store::overlay::Changes;
use store::{Table, WriteScope, layout};
use uuid::Uuid;

use crate::failure::Failure;

/// Number of heads. Two environments share one with a probability of 1 in 64.
pub(crate) const HEADS: usize = 64;

/// The number of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Head(u8);

impl Head {
    /// All heads, in their order.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0_u8..).take(HEADS).map(Self)
    }

    /// The head of a key.
    pub(crate) fn of(table: Table, key: &[u8]) -> Self {
        layout::environment_of(table, key).map_or(Self(0), Self::of_environment)
    }

    fn of_environment(environment: EnvironmentId) -> Self {
        // All processes and versions agree on it.
        let hash = fnv::hash32(Uuid::from(environment).as_bytes());
        let [first, ..] = hash.to_be_bytes();
        // The upper 6 of 8 bits.
        Self(first >> 2)
    }

    /// The head with the number of a row. Returns `None` if there is no such head.
    pub(crate) fn read(number: i16) -> Option<Self> {
        u8::try_from(number).ok().filter(|number| usize::from(*number) < HEADS).map(Self)
    }

    /// The number, as rows have it.
    pub(crate) fn number(self) -> i16 {
        self.0.into()
    }
}

/// Heads that a writer locks, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lock(u64);

impl Lock {
    /// The heads of what is in `scope`.
    pub(crate) fn of(scope: WriteScope) -> Self {
        match scope {
            WriteScope::Everything => Self(u64::MAX),
            WriteScope::Environment(id) => Self::of_one(Head::of_environment(id)),
        }
    }

    /// A lock of one head.
    pub(crate) fn of_one(head: Head) -> Self {
        Self(1 << head.0)
    }

    /// The head of a lock of one head.
    pub(crate) fn one(self) -> Option<Head> {
        let number = u8::try_from(self.0.trailing_zeros()).ok()?;
        self.0.is_power_of_two().then_some(Head(number))
    }

    /// Returns `true` if a head is locked.
    pub(crate) fn has(self, head: Head) -> bool {
        self.0 & (1 << head.0) != 0
    }

    /// Numbers of the heads, in their order.
    pub(crate) fn numbers(self) -> Vec<i16> {
        Head::all().filter(|head| self.has(*head)).map(Head::number).collect()
    }
}

/// A time in which counts only grow. A server that takes over from another one, or gets back an earlier
/// state, may have lost commits, and give their numbers to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Era {
    /// When the server was started.
    pub(crate) start: SystemTime,
    number: u64,
}

impl Era {
    /// The first era that a process sees.
    pub(crate) fn first(start: SystemTime) -> Self {
        Self { start, number: 0 }
    }

    /// Number of the eras before it that this process has seen.
    pub(crate) fn number(self) -> u64 {
        self.number
    }

    /// The era behind this one, of a server that was started then.
    pub(crate) fn next(self, start: SystemTime) -> Self {
        Self { start, number: self.number + 1 }
    }
}

/// Numbers of commits of heads, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) era: Era,
    of_heads: [Option<u64>; HEADS],
}

impl Counts {
    /// No counts.
    pub(crate) fn of(era: Era) -> Self {
        Self { era, of_heads: [None; HEADS] }
    }

    /// The counts of the heads in rows: numbers, and numbers of commits.
    pub(crate) fn read(era: Era, rows: &[(i16, i64)]) -> Self {
        let mut counts = Self::of(era);
        for (number, count) in rows {
            if let Some(head) = Head::read(*number) {
                counts.set(head, count.cast_unsigned());
            }
        }
        counts
    }

    /// The count of a head. Returns `None` if it is not known.
    pub(crate) fn get(&self, head: Head) -> Option<u64> {
        self.of_heads.get(usize::from(head.0)).copied().flatten()
    }

    /// The counts of what is locked.
    pub(crate) fn within(mut self, lock: Lock) -> Self {
        let slots = Head::all().zip(&mut self.of_heads);
        slots.filter(|(head, _)| !lock.has(*head)).for_each(|(_, count)| *count = None);
        self
    }

    /// These counts, with those that are known in place of older ones.
    pub(crate) fn with(mut self, newer: &[(Head, u64)]) -> Self {
        for (head, count) in newer {
            self.set(*head, *count);
        }
        self
    }

    /// Number of the next commit of a head. An error if the head is not locked.
    pub(crate) fn next(&self, head: Head) -> Result<u64, Failure> {
        Ok(self.get(head).ok_or_else(Failure::not_locked)? + 1)
    }

    pub(crate) fn set(&mut self, head: Head, count: u64) {
        if let Some(slot) = self.of_heads.get_mut(usize::from(head.0)) {
            *slot = Some(count);
        }
    }

    /// One count for each head, as far as it is known.
    pub(crate) fn to_row(&self) -> Vec<Option<i64>> {
        self.of_heads.iter().map(|count| count.map(u64::cast_signed)).collect()
    }
}

/// A changed key, with its new value if there is one.
pub(crate) type Changed<'c> = (Table, &'c [u8], Option<&'c [u8]>);

/// Changes of a commit, by the heads of their keys.
pub(crate) fn by_head(changes: &Changes) -> BTreeMap<Head, Vec<Changed<'_>>> {
    let mut heads: BTreeMap<Head, Vec<_>> = BTreeMap::new();
    for changed in changes.iter() {
        heads.entry(Head::of(changed.0, changed.1)).or_default().push(changed);
    }
    heads
}

/// The changes of a commit whose keys belong to a head.
pub(crate) fn changed_in(changes: &Changes, head: Head) -> impl Iterator<Item = Changed<'_>> {
    changes.iter().filter(move |(table, key, _)| Head::of(*table, key) == head)
}

/// The heads of all keys of a commit.
pub(crate) fn heads_of(changes: &Changes) -> BTreeSet<Head> {
    changes.iter().map(|(table, key, _)| Head::of(table, key)).collect()
}
