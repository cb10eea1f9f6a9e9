//! Transactions of an engine, and what follows a commit.

use domain::environment::Home;
use domain::time::Timestamp;
use store::counters::ReadCounters;
use store::{
    Change, ChangeKind, HostTransaction, Snapshot, Table, Transaction, WriteBody, WriteScope,
};

use crate::entropy::Seed;
use crate::tx::{Draft, Recording, Tx};
use crate::{Engine, Result};

impl Engine {
    /// Reads one snapshot of the store.
    pub(crate) fn read<T>(&self, body: impl FnMut(&dyn Snapshot) -> Result<T>) -> Result<T> {
        store::read(self.store(), body)
    }

    /// Reads one snapshot of the store with a body without effects, which the store may run several times.
    pub(crate) fn read_pure<T>(
        &self,
        mut body: impl FnMut(&dyn Snapshot) -> Result<T>,
    ) -> Result<T> {
        let mut outcome = None;
        self.run_pure(&mut |snapshot| {
            outcome = Some(body(snapshot)?);
            Ok(())
        })?;
        Ok(outcome.ok_or_else(store::not_run)?)
    }

    /// As [`read_pure`](Self::read_pure). It is no generic function, so that it is compiled once.
    pub(crate) fn run_pure(&self, body: &mut dyn FnMut(&dyn Snapshot) -> Result<()>) -> Result<()> {
        let mut outcome = None;
        self.store().read_pure(&mut |snapshot| {
            outcome = Some(body(snapshot));
            Ok(())
        })?;
        outcome.ok_or_else(store::not_run)?
    }

    /// Writes anywhere in the store. All other writers wait for it.
    pub(crate) fn write<T>(
        &self,
        now: Timestamp,
        body: impl FnMut(&mut Draft<'_>) -> Result<T>,
    ) -> Result<T> {
        self.write_within(WriteScope::Everything, now, body)
    }

    /// Writes within `scope`, and follows the commit.
    pub(crate) fn write_within<T>(
        &self,
        scope: WriteScope,
        now: Timestamp,
        mut body: impl FnMut(&mut Draft<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut outcome = None;
        let changes = self.record(scope, now, &mut |draft| {
            outcome = Some(body(draft)?);
            Ok(())
        })?;
        self.follow_commit(&changes);
        Ok(outcome.ok_or_else(store::not_run)?)
    }

    /// Writes inside an environment. In a store of several processes, writers of other environments do
    /// not wait for it.
    pub(crate) fn write_in<T>(
        &self,
        home: &Home,
        now: Timestamp,
        mut body: impl FnMut(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let scope = WriteScope::Environment(home.environment_id);
        self.write_within(scope, now, |draft| body(&mut draft.within(home)))
    }

    /// Runs `body` in a transaction. Returns the records that it has changed: those of its last run, if
    /// the store runs it again. It is no generic function, so that it is compiled once.
    ///
    /// The seed is drawn before the transaction, so that no foreign code runs in it, and so that a
    /// body that the store runs again makes the same ids.
    pub(crate) fn record(
        &self,
        scope: WriteScope,
        now: Timestamp,
        body: &mut dyn FnMut(&mut Draft<'_>) -> Result<()>,
    ) -> Result<Vec<Change>> {
        let seed = self.parts.seeds.draw(now);
        let mut ticket = None;
        let run = |body: &mut WriteBody<'_>| self.store().write_within(scope, body);
        let recorded = store::write_by(run, |writer| {
            let changes = self.draft(now, &seed, writer, body)?;
            // Transactions of an environment run one after the other. A body that runs again takes a
            // later ticket.
            ticket = self.parts.observer.ticket(&changes);
            Ok(changes)
        });
        if let (Ok(_), Some(ticket)) = (&recorded, ticket) {
            ticket.commit();
        }
        self.parts.clock_watermark.note(now);
        recorded
    }

    /// Runs `body` in a transaction of the host. Nothing follows it here: the host may roll it back. If
    /// it commits, the store calls its listeners, as of a commit of another process.
    pub(crate) fn write_in_host<T>(
        &self,
        host: &mut dyn HostTransaction,
        home: &Home,
        now: Timestamp,
        mut body: impl FnMut(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let scope = WriteScope::Environment(home.environment_id);
        let seed = self.parts.seeds.draw(now);
        let run = |body: &mut WriteBody<'_>| match self.parts.sealable() {
            Some(sealable) => sealable.write_in_host(host, scope, body),
            None => host.write_within(scope, body),
        };
        let mut outcome = None;
        store::write_by(run, |writer| {
            self.draft(now, &seed, writer, &mut |draft| {
                outcome = Some(body(&mut draft.within(home))?);
                Ok(())
            })
        })?;
        self.parts.clock_watermark.note(now);
        Ok(outcome.ok_or_else(store::not_run)?)
    }

    // One run of a body, with the rows that follow from the records that it has changed.
    fn draft(
        &self,
        now: Timestamp,
        seed: &Seed,
        writer: &mut dyn Transaction,
        body: &mut dyn FnMut(&mut Draft<'_>) -> Result<()>,
    ) -> Result<Vec<Change>> {
        let mut recording = Recording { writer, changes: Vec::new() };
        let (random, writer) = (&seed.start(), &mut recording);
        let mut read = ReadCounters::default();
        let counters = &mut read;
        body(&mut Draft { engine: self, now, random, counters, writer })?;
        let Recording { writer, changes } = recording;
        // Before the commit, so that the last transaction of an erasure knows of all before it.
        self.parts.ongoing_erasures.note(&changes);
        store::counters::count(writer, read, &changes)?;
        store::list_counts::count(writer, &changes)?;
        store::lanes::move_changed(writer, &changes)?;
        store::outcomes::mark(writer, &changes)?;
        Ok(changes)
    }

    // Follows a transaction that was committed and has changed these records.
    fn follow_commit(&self, changes: &[Change]) {
        self.parts.decoded.forget(changes);
        for change in changes.iter().filter(|change| change.table == Table::Integrations) {
            self.parts.close_circuit(&change.key);
        }
        self.parts.watches.wake(changes);
        // The tasks of a workflow that was paused are due again when it is resumed or deleted.
        let brings_work = |change: &Change| {
            let is_new = change.kind == ChangeKind::Inserted;
            (change.table == Table::Tasks && is_new)
                || (change.table == Table::Workflows && !is_new)
        };
        if changes.iter().any(brings_work) {
            self.parts.work_signal.notify();
        }
    }
}
