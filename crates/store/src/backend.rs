//! The contract of a backend: tables of byte keys and byte values.

use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::SystemTime;

use crate::{Change, Codec, Result, Table, WriteScope};

/// An ordered, transactional set of tables of byte keys and byte values.
///
/// # Contract
///
/// * Keys and values are any bytes: empty ones, and long ones. Keys sort by their bytes.
/// * A snapshot shows the changes that were committed before it was taken, and no later ones.
/// * Transactions are serializable. Each sees its own changes and those of every transaction before it.
///   Other readers see all of its changes after its commit, and none before.
/// * A body that aborts, fails or panics leaves no changes. Its error or panic reaches the caller.
/// * The changes of a body are durable once [`write`](Self::write) returns `Ok`, and so is
///   everything that the body has seen. If `write` returns an error, all of the changes are there
///   or none.
/// * A body may read from the same store. A `write` inside a `write` deadlocks.
///
/// The `conformance` feature turns this contract into tests.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Runs `body` on a snapshot.
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()>;

    /// Runs a body without effects on a snapshot. Only the result of its last run counts. A store may
    /// run it several times, or run it on cached values and validate these afterwards. All that the last run
    /// has seen is one snapshot. The default runs the body once.
    fn read_pure(&self, body: &mut ReadBody<'_>) -> Result<()> {
        self.read(body)
    }

    /// Runs `body` in a transaction, and makes the changes durable if `body` decides to commit.
    fn write(&self, body: &mut WriteBody<'_>) -> Result<()>;

    /// Runs a body that touches only what is in `scope` in a transaction. A store may run bodies side by
    /// side that touch nothing in common. This is not visible to other readers and writers.
    ///
    /// A body that touches anything else is run again, as in a [`write`](Self::write). The default
    /// ignores `scope`.
    fn write_within(&self, _scope: WriteScope, body: &mut WriteBody<'_>) -> Result<()> {
        self.write(body)
    }

    /// Returns `true` if [`write_within`](Self::write_within) runs bodies of different environments
    /// side by side, and several processes may share the store. An engine then claims tasks
    /// environment by environment, so that a claim holds up no other environment, and puts off a task whose
    /// provider or handler it does not have. The default is `false`: one transaction is less work than several.
    fn runs_side_by_side(&self) -> bool {
        false
    }

    /// Time on which all processes that share the store agree. The call needs no round trip. Returns
    /// `None` if the store has no such time, as by default.
    fn now(&self) -> Option<SystemTime> {
        None
    }

    /// Calls `listener` on a thread of the store, soon after each commit of another process, until it
    /// breaks. It may be called for commits of this process, too. A store of one process, which is the
    /// default, never calls it.
    fn listen(&self, _listener: Listener) {}

    /// Removes the keys of what was changed within `scope`, if the store notes them beside the entries, for
    /// other processes. An engine calls it when it has erased a person or an environment, since keys may
    /// have ids and addresses. The default does nothing.
    fn forget_history(&self, _scope: WriteScope) -> Result<()> {
        Ok(())
    }
}

// With these a host can keep a store that it gives to an engine, or choose one at run time. Each function is
// forwarded, since the trait has defaults.
macro_rules! store_behind {
    ($($pointer:ident),+) => {$(
        #[deny(clippy::missing_trait_methods)]
        impl<S: Store + ?Sized> Store for $pointer<S> {
            fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
                (**self).read(body)
            }

            fn read_pure(&self, body: &mut ReadBody<'_>) -> Result<()> {
                (**self).read_pure(body)
            }

            fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
                (**self).write(body)
            }

            fn write_within(&self, scope: WriteScope, body: &mut WriteBody<'_>) -> Result<()> {
                (**self).write_within(scope, body)
            }

            fn runs_side_by_side(&self) -> bool {
                (**self).runs_side_by_side()
            }

            fn now(&self) -> Option<SystemTime> {
                (**self).now()
            }

            fn listen(&self, listener: Listener) {
                (**self).listen(listener);
            }

            fn forget_history(&self, scope: WriteScope) -> Result<()> {
                (**self).forget_history(scope)
            }
        }
    )+};
}

store_behind!(Arc, Box);

/// A transaction of a host that takes the changes of a store, such as that of a database which has
/// rows of the host as well. The host commits it, or rolls it back.
pub trait HostTransaction {
    /// Runs `body`, and makes its changes a part of the transaction if it decides to commit.
    fn write_within(&mut self, scope: WriteScope, body: &mut WriteBody<'_>) -> Result<()>;
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

    /// Tells which keys are going to be read one after the other. A remote backend reads the
    /// values together, in the round trip of its next read. Other backends do nothing, and do not ask
    /// for the keys.
    fn prefetch(&self, _keys: &mut dyn Iterator<Item = (Table, Vec<u8>)>) -> Result<()> {
        Ok(())
    }

    /// Number of losses of commits before this view that this process knows of. A failover to a replica that
    /// was behind loses commits, and so does a backup that is put back. In one era, a later view has all
    /// commits of an earlier one. The number stays the same during a view. The default is 0. A view around
    /// another one has its era.
    fn era(&self) -> u64 {
        0
    }

    // A number of what this view shows: views that have the same one show the same. Returns `None` if there is
    // none, as in a transaction that has changed something.
    #[doc(hidden)]
    fn stamp(&self) -> Option<u64> {
        None
    }

    // The codec of the records in this view. A backend has the default; a view around another one
    // has that of the other.
    #[doc(hidden)]
    fn codec(&self) -> Codec<'_> {
        Codec::COMPACT
    }
}

/// A transaction. Its reads see its own changes.
pub trait Transaction: Snapshot {
    /// Puts `value` under `key`, in place of the value before.
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes the value under `key`, if there is one.
    fn delete(&mut self, table: Table, key: &[u8]) -> Result<()>;

    // Takes note of a record that was written. A backend does nothing.
    #[doc(hidden)]
    fn changed(&mut self, _change: Change) {}
}

/// The body of a [`Store::read`].
pub type ReadBody<'b> = dyn FnMut(&dyn Snapshot) -> Result<()> + 'b;

/// The body of a [`Store::write`]. A backend may run it several times, so that it must have no
/// effect outside the transaction.
pub type WriteBody<'b> = dyn FnMut(&mut dyn Transaction) -> Result<Decision> + 'b;

/// A function that a store tells of commits: the keys that they have changed, or `None` if those are
/// not known.
pub type Listener = Box<dyn FnMut(Option<&[(Table, Vec<u8>)]>) -> ControlFlow<()> + Send>;

/// The visitor of [`Snapshot::get_many`]. Its argument is the value of a key, or `None`.
pub type VisitValue<'v> = dyn FnMut(Option<&[u8]>) + 'v;

/// The visitor of [`Snapshot::scan`]. Its arguments are the key and the value of an entry.
pub type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'v;

/// A range of keys.
pub type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The end of a transaction, as its body decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The changes are made.
    Commit,
    /// The changes are dropped.
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
