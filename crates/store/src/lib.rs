//! The store of the Tidings notification engine: the contract of a backend, and the backends.
//!
//! A backend implements [`Store`], [`Snapshot`] and [`Transaction`] on tables of bytes. The
//! `conformance` feature has tests of the contract. [`memory::MemoryStore`] and
//! [`redb::RedbStore`](crate::redb) implement it.
//!
//! Hidden items serve the other crates of the engine. They may change with any version.
#![cfg_attr(
    test,
    expect(clippy::duplicate_mod, reason = "the group commit is tested with other locks")
)]

mod backend;
#[doc(hidden)]
pub mod backfill;
mod batch;
mod change;
#[doc(hidden)]
pub mod check;
mod codec;
#[cfg(feature = "conformance")]
pub mod conformance;
#[doc(hidden)]
pub mod counters;
#[cfg(test)]
mod damaged;
mod decoded;
#[doc(hidden)]
pub mod encoding;
mod error;
mod fork;
#[cfg(feature = "redb")]
mod group_commit;
mod index_entries;
#[cfg(test)]
mod interleaved;
mod kept;
mod key;
#[doc(hidden)]
pub mod lanes;
#[doc(hidden)]
pub mod layout;
#[doc(hidden)]
pub mod letters;
#[doc(hidden)]
pub mod list_counts;
pub mod memory;
#[cfg(feature = "redb")]
mod memtable;
mod once;
pub mod outcomes;
#[doc(hidden)]
pub mod overlay;
mod pages;
mod progress;
mod range;
mod record;
mod records;
#[cfg(feature = "redb")]
pub mod redb;
#[doc(hidden)]
pub mod removal;
mod run;
#[cfg(test)]
mod sample;
mod scope;
#[doc(hidden)]
pub mod sealing;
mod step;
mod stored;
#[cfg(feature = "redb")]
mod sync;
#[doc(hidden)]
pub mod text_index;
pub mod transfer;
mod witness;
mod write_records;

pub use backend::{
    Decision, HostTransaction, KeyRange, Listener, Order, ReadBody, Snapshot, Store, Transaction,
    Visit, VisitValue, WriteBody,
};
pub use error::{Error, Result};
pub use layout::Table;
pub use progress::Progress;
pub use scope::WriteScope;

#[doc(hidden)]
pub use self::{
    batch::Limit,
    change::{Change, ChangeKind, LaneChange},
    codec::Codec,
    decoded::Decoded,
    fork::Fork,
    index_entries::{
        DamageScan, Entry, FirstEntries, Referent, dependents, first_entries, index_entries,
    },
    kept::{Kept, ReadKept},
    key::{
        Any, Bytes, Key, KeyPart, Open, Parts, Prefix, Range, Sorted, SortedPlace, TableOf, Text,
    },
    once::Once,
    pages::{Bounds, List, Selection, WalkLimit},
    progress::{OnProgress, OnRows},
    record::{Entries, Excerpt, Record, excerpts, if_readable},
    records::ReadRecords,
    run::{not_run, read, write, write_by, write_in, write_within},
    scope::Scoped,
    step::Step,
    witness::Witness,
    write_records::WriteRecords,
};
