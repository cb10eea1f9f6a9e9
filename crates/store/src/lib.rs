//! Where records live.

use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

#[doc(hidden)]
pub mod check;
#[cfg(feature = "conformance")]
pub mod conformance;
mod decoded;
pub mod encoding;
mod error;
#[cfg(feature = "redb")]
mod group_commit;
mod key;
pub mod layout;
pub mod memory;
#[cfg(feature = "redb")]
mod overlay;
mod pages;
mod range;
mod record;
mod records;
#[cfg(feature = "redb")]
pub mod redb;

pub use decoded::Decoded;
pub use error::{Error, Result};
pub use key::{Bytes, Key, Prefix, Range};
pub use layout::Table;
pub use pages::List;
pub use record::{Entries, Record};
pub use records::{ReadRecords, WriteRecords, read, write};

/// An ordered, transactional set of tables of byte keys and byte values.
///
/// # Contract
///
/// * Keys and values are any bytes, also none, also many. Keys sort by their bytes.
/// * A snapshot shows what was committed before it was taken, whatever is committed after.
/// * Transactions run one after the other. Each sees its own changes and those of every
///   transaction before it. Nobody else sees its changes until it commits, and who does sees all
///   of them.
/// * A body that decides to abort, fails or panics leaves nothing behind but its error or panic.
/// * Once [`write`](Self::write) has returned `Ok`, the changes of its body, and whatever that
///   body has seen, are there for as long as the backend keeps anything. When it has returned an
///   error, its changes are there as a whole or not at all, and nobody was promised either.
/// * A body may read from the same store, but a `write` inside a `write` waits for itself.
///
/// The `conformance` feature turns this contract into tests.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Shows `body` one fixed view of every table.
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()>;

    /// Runs `body` in a transaction, alone, and makes its changes durable if it decides so.
    fn write(&self, body: &mut WriteBody<'_>) -> Result<()>;
}

// So that a host can keep hold of a store that it gives to an engine.
impl<S: Store + ?Sized> Store for Arc<S> {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        self.as_ref().read(body)
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        self.as_ref().write(body)
    }
}

/// A fixed view of every table.
pub trait Snapshot {
    /// Calls `visit` with the value under `key`, and returns whether there is one.
    fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Calls `visit` once for each of `keys`, in the order of `keys`: with the value under that
    /// key, or with `None`. A key that occurs twice is visited twice.
    ///
    /// A remote backend gets all of the values in one round trip.
    fn get_many(&self, table: Table, keys: &[&[u8]], visit: &mut VisitValue<'_>) -> Result<()>;

    /// Calls `visit` with the first `limit` entries within `range`, in `order`, until `visit`
    /// breaks. `None` means all entries.
    ///
    /// A range whose start lies behind its end is empty. A remote backend fetches `limit` entries
    /// and no more.
    fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        order: Order,
        limit: Option<usize>,
        visit: &mut Visit<'_>,
    ) -> Result<()>;
}

/// A change in the making. It sees its own changes.
pub trait Transaction: Snapshot {
    /// Puts `value` under `key`, in place of whatever was there.
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()>;

    /// Leaves nothing under `key`.
    fn delete(&mut self, table: Table, key: &[u8]) -> Result<()>;
}

/// What [`Store::read`] runs.
pub type ReadBody<'b> = dyn FnMut(&dyn Snapshot) -> Result<()> + 'b;

/// What [`Store::write`] runs. It may be run again, so it has no effect outside the transaction.
pub type WriteBody<'b> = dyn FnMut(&mut dyn Transaction) -> Result<Decision> + 'b;

/// What [`Snapshot::get_many`] calls for each key: with its value, or with `None`.
pub type VisitValue<'v> = dyn FnMut(Option<&[u8]>) + 'v;

/// What [`Snapshot::scan`] calls for each entry, with its key and its value.
pub type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'v;

/// A run of keys.
pub type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// What becomes of a transaction whose body has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Its changes are made.
    Commit,
    /// It leaves nothing behind.
    Abort,
}

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Smallest key first.
    Ascending,
    /// Largest key first.
    Descending,
}
