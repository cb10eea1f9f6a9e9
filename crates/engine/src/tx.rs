//! Views and transactions of operations: the records of one environment.

use std::iter;

use domain::environment::Home;
use domain::ids::{EnvironmentId, InternalSubscriberId};
use domain::limits::Limits;
use domain::message::MessageCounters;
use domain::task::Task;
use domain::time::Timestamp;
use store::counters::ReadCounters;
use store::layout::CountedList;
use store::{
    Change, Codec, KeyRange, Order, ReadRecords, Record, Result, Snapshot, Table, Transaction,
    Visit, VisitValue, layout,
};
use uuid::Uuid;

use crate::Engine;
use crate::entropy::TxRandom;

/// Size of content at which a transaction ends, in bytes. Its last event, message or dead letter may
/// exceed it.
pub(crate) const MAX_TRANSACTION_CONTENT: usize = 4 * 1024 * 1024;

/// Source of records for an operation: a [`Reading`] or a [`Tx`]. The bytes of a record are
/// reachable only through a view, so all processing of the bytes is done here.
pub(crate) trait View: Snapshot {
    /// The environment whose records are looked up, with its organization.
    fn home(&self) -> &Home;

    /// The parts of the engine that run the operation.
    fn engine(&self) -> &Engine;

    /// The environment whose records are looked up.
    fn environment_id(&self) -> EnvironmentId {
        self.home().environment_id
    }
}

/// A snapshot of an environment.
pub(crate) struct Reading<'r> {
    pub(crate) engine: &'r Engine,
    pub(crate) home: &'r Home,
    pub(crate) snapshot: &'r dyn Snapshot,
}

/// A transaction that records its changes, of one run of its body.
pub(crate) struct Recording<'t> {
    pub(crate) writer: &'t mut dyn Transaction,
    pub(crate) changes: Vec<Change>,
}

/// One run of the body of a transaction. A store may run the body again: then the time, the ids
/// and all that is random are the same.
pub(crate) struct Draft<'t> {
    pub(crate) engine: &'t Engine,
    pub(crate) now: Timestamp,
    pub(crate) random: &'t TxRandom<'t>,
    pub(crate) counters: &'t mut ReadCounters,
    pub(crate) writer: &'t mut dyn Transaction,
}

/// One run of the body of a transaction inside an environment.
pub(crate) struct Tx<'t> {
    pub(crate) draft: Draft<'t>,
    pub(crate) home: &'t Home,
}

impl Draft<'_> {
    /// Returns this run, inside an environment.
    pub(crate) fn within<'s>(&'s mut self, home: &'s Home) -> Tx<'s> {
        let Self { engine, now, random, counters, writer } = self;
        Tx { draft: Draft { engine, now: *now, random, counters, writer: &mut **writer }, home }
    }
}

impl Tx<'_> {
    /// Returns the time of the operation. All of its transactions have the same time.
    pub(crate) fn now(&self) -> Timestamp {
        self.draft.now
    }

    /// Returns the task of a claim. Returns `None` if the claim was superseded: later claims and settlements replace
    /// or remove the task.
    pub(crate) fn claimed(&self, leased: &Task) -> Result<Option<Task>> {
        Ok(self.find::<Task>(&leased.key())?.filter(|task| task == leased))
    }

    /// A new id.
    pub(crate) fn id<Id: From<Uuid>>(&self) -> Id {
        self.draft.random.id()
    }

    /// `length` random letters and digits.
    pub(crate) fn text(&self, length: usize) -> String {
        self.draft.random.text(length)
    }

    /// A random number.
    pub(crate) fn random(&self) -> u64 {
        self.draft.random.random()
    }

    /// A random number of 16 bits.
    pub(crate) fn jitter(&self) -> u16 {
        self.draft.random.jitter()
    }

    /// The counters of the messages of a subscriber before this transaction. The numbers of messages
    /// may be too small.
    pub(crate) fn counters(
        &mut self,
        subscriber: InternalSubscriberId,
    ) -> Result<&MessageCounters> {
        let key = layout::message_counters(self.environment_id(), subscriber);
        self.draft.counters.order(&*self.draft.writer, &key)
    }

    /// Notes that a subscriber is new, and so has no messages before this transaction.
    pub(crate) fn begin_counters(&mut self, subscriber: InternalSubscriberId) {
        let key = layout::message_counters(self.environment_id(), subscriber);
        self.draft.counters.begin(&key);
    }

    /// Notes that the transaction may change the length of a list, so that the number of its records is
    /// read with the next other row.
    pub(crate) fn expect_change(&self, list: CountedList) -> Result<()> {
        self.prefetch(&mut iter::once(list.key().into_parts()))
    }

    /// Limits of the callers' input.
    pub(crate) fn limits(&self) -> &Limits {
        &self.engine().parts.settings.limits
    }
}

impl View for Reading<'_> {
    fn home(&self) -> &Home {
        self.home
    }

    fn engine(&self) -> &Engine {
        self.engine
    }
}

impl View for Tx<'_> {
    fn home(&self) -> &Home {
        self.home
    }

    fn engine(&self) -> &Engine {
        self.draft.engine
    }
}

// A view reads what the view inside does, with the codec of that.
macro_rules! snapshot_through {
    ($($view:ty: $($inner:ident).+,)+) => {
        $(#[deny(clippy::missing_trait_methods)]
        impl Snapshot for $view {
            fn get(&self, table: Table, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
                self.$($inner).+.get(table, key, visit)
            }

            fn get_many(
                &self,
                table: Table,
                keys: &[&[u8]],
                visit: &mut VisitValue<'_>,
            ) -> Result<()> {
                self.$($inner).+.get_many(table, keys, visit)
            }

            fn scan(
                &self,
                table: Table,
                range: &KeyRange,
                order: Order,
                limit: Option<usize>,
                visit: &mut Visit<'_>,
            ) -> Result<()> {
                self.$($inner).+.scan(table, range, order, limit, visit)
            }

            fn prefetch(&self, keys: &mut dyn Iterator<Item = (Table, Vec<u8>)>) -> Result<()> {
                self.$($inner).+.prefetch(keys)
            }

            fn era(&self) -> u64 {
                self.$($inner).+.era()
            }

            fn stamp(&self) -> Option<u64> {
                self.$($inner).+.stamp()
            }

            fn codec(&self) -> Codec<'_> {
                self.$($inner).+.codec()
            }
        })+
    };
}

snapshot_through! {
    Reading<'_>: snapshot,
    Recording<'_>: writer,
    Tx<'_>: draft.writer,
}

#[deny(clippy::missing_trait_methods)]
impl Transaction for Recording<'_> {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.writer.put(table, key, value)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<()> {
        self.writer.delete(table, key)
    }

    fn changed(&mut self, change: Change) {
        self.changes.push(change);
    }
}

#[deny(clippy::missing_trait_methods)]
impl Transaction for Tx<'_> {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.draft.writer.put(table, key, value)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<()> {
        self.draft.writer.delete(table, key)
    }

    fn changed(&mut self, change: Change) {
        self.draft.writer.changed(change);
    }
}

#[cfg(test)]
mod tests;
