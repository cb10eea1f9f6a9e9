//! Mending a store: derived rows are rebuilt, and records that cannot be read are moved into quarantine.

use std::ops::ControlFlow;

use domain::ids::EnvironmentId;
use domain::quarantine::Unreadable;
use serde::Serialize;
use store::check::{Fix, Homes, Pass, Rebuild, Unsound, Waiting, stalled};
use store::layout::CountedList;
use store::{OnProgress, OnRows, Step, Table, WriteScope, counters, list_counts, text_index};

use crate::backfill;
use crate::check::summed;
use crate::damage::{self, if_readable};
use crate::guarded::guarded;
use crate::pipeline;
use crate::resources::{environments, notifications};
use crate::tx::Draft;
use crate::{Engine, Entity, Error, Progress, Result, trace};

/// Result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
#[must_use = "it says whether the repair is finished"]
pub struct RepairReport {
    /// Number of rows that were looked at.
    pub rows: u64,
    /// Number of records that were moved into quarantine, because they cannot be read, or because
    /// another record has their place.
    pub put_aside: u64,
    /// Number of index entries and other derived rows that were put or removed.
    pub mended: u64,
    /// Number of records that waited for a task which was missing: notifications, also those whose message
    /// became a dead letter, snoozed messages, and broadcasts.
    pub resumed: u64,
    /// Environments whose activity index was rebuilt.
    pub rebuilt: Vec<EnvironmentId>,
    /// Environments whose own record was missing, or was moved into quarantine. Each has a new record with the same
    /// id and the name `Repaired`. Its other records and its API keys are unchanged. It belongs to the same
    /// organization, or to the organization `repaired` if its organization is unknown.
    pub replaced: Vec<EnvironmentId>,
    /// `true` if everything was looked at; `false` if `progress` has ended the repair.
    pub is_finished: bool,
}

impl Engine {
    /// Mends what [`check`](Self::check) finds. Index entries, counters, lanes and the other derived rows are
    /// rebuilt from the records. A record that cannot be read is moved into
    /// [quarantine](Engine::quarantine), with its bytes and the reason. One that is sealed with a key that
    /// the engine does not have stays. If the record of an environment is missing or cannot be read, the repair
    /// creates a new one with the same id and the name `Repaired`.
    /// [`Engine::environment`](crate::Engine::environment) and its API keys open it.
    /// [`development`](crate::Organization::development) does not find it, and creates another environment. An
    /// environment without the key of its unsubscribe links gets another one, and links of the lost key stay invalid.
    /// Jobs, snoozes and broadcasts whose task is missing get another one; a function of the host may be called a
    /// second time. A message for a provider becomes a dead letter instead, as it may have been sent.
    ///
    /// The repair takes many small transactions, and only where something is wrong. Other operations
    /// continue meanwhile. After an interruption, another call goes on. A sound store is not written
    /// to. Derived rows stay as they are if a table that they are made from cannot be mended.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tidings::quarantine::QuarantineQuery;
    ///
    /// let engine = tidings::Engine::in_memory();
    /// if !engine.check()?.findings.is_empty() {
    ///     let report = engine.repair()?;
    ///     eprintln!("{} records are in quarantine", report.put_aside);
    ///     for entry in engine.quarantine().list(&QuarantineQuery::default())?.data {
    ///         eprintln!("{} {}: {}", entry.table, entry.key, entry.reason);
    ///         engine.quarantine().discard(entry.id)?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Store`], if the backend fails.
    pub fn repair(&self) -> Result<RepairReport> {
        self.repair_with(|_| ControlFlow::Continue(()))
    }

    /// [`repair`](Self::repair) that calls `progress` as [`check_with`](Self::check_with) does, and ends if
    /// `progress` breaks. It also calls `progress` after each 1,024 rows of an index of texts that it rebuilds, and
    /// after each 500 subscribers of an older format. An ended repair keeps its changes, and the next call starts
    /// from the beginning.
    ///
    /// # Errors
    ///
    /// As [`repair`](Self::repair).
    pub fn repair_with(
        &self,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<RepairReport> {
        trace::operation("engine.repair", None, || {
            let mut report = RepairReport::default();
            report.is_finished = self.repair_all(&mut report, &mut progress)?.is_continue();
            // Tasks that were in no lane may be due.
            self.parts.work_signal.notify();
            Ok(report)
        })
    }

    fn repair_all(
        &self,
        report: &mut RepairReport,
        progress: &mut OnProgress<'_>,
    ) -> Result<ControlFlow<()>> {
        // Passes do not look for rows that an older format lacks while some are to come, so these are put
        // first. The second round puts those that need an entry which the first one has mended.
        for _ in 0..2 {
            if self.put_missing(report, progress)?.is_break()
                || self.repair_tables(report, progress)?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
            if !self.read(|snapshot| Ok(store::backfill::is_pending(snapshot)?))? {
                break;
            }
        }
        for table in Waiting::TABLES {
            if self.resume_stalled(table, report, progress)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.repair_activity(report, progress)
    }

    fn repair_tables(
        &self,
        report: &mut RepairReport,
        progress: &mut OnProgress<'_>,
    ) -> Result<ControlFlow<()>> {
        let mut impassable = Unsound::default();
        for pass in Pass::all() {
            // What is rebuilt from a part of a table would be worse than what is there.
            if impassable.holds_up(pass) {
                continue;
            }
            if self.repair_in((pass, &mut impassable), report, progress)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    // Puts the rows that records of an older format lack, unless their table cannot be gone through.
    fn put_missing(
        &self,
        report: &mut RepairReport,
        progress: &mut OnProgress<'_>,
    ) -> Result<ControlFlow<()>> {
        while let Some(Step::More(())) = if_readable(backfill::put_next(self))? {
            if progress(Progress::of_rows(Table::Subscribers, report.rows)).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    // Mends what a pass finds. Adds the tables that cannot be gone through to `impassable`.
    fn repair_in(
        &self,
        (pass, impassable): (Pass, &mut Unsound),
        report: &mut RepairReport,
        progress: &mut OnProgress<'_>,
    ) -> Result<ControlFlow<()>> {
        let mut behind: Option<Vec<u8>> = None;
        loop {
            let (mut step, homes) = self.read(|snapshot| {
                let homes = Homes::default();
                Ok((pass.step(snapshot, behind.as_deref(), &homes)?, homes))
            })?;
            step.impassable().for_each(|finding| impassable.add(finding));
            if step.fixes().any(|fix| !matches!(fix, Fix::Rebuild(_))) {
                let mended = self.mend(pass, behind.as_deref(), &homes.settled(), report)?;
                // Where others have put rows meanwhile, the transaction has not come as far.
                step.next = step.next.into_iter().chain(mended).min();
            }
            for rebuild in step.rebuilds() {
                let told = &mut summed(&mut report.rows, progress);
                match if_mended(self.rebuild(rebuild, told))? {
                    Some(ControlFlow::Continue(())) => report.mended += 1,
                    Some(ControlFlow::Break(())) => return Ok(ControlFlow::Break(())),
                    None => {}
                }
            }
            report.rows += step.rows;
            let next = progress(Progress::of_rows(pass.table(), report.rows));
            behind = step.next;
            if behind.is_none() || next.is_break() {
                return Ok(next);
            }
        }
    }

    // Looks at the same rows again, and mends them. Returns the key behind which it has not looked, if there
    // are other rows.
    fn mend(
        &self,
        pass: Pass,
        behind: Option<&[u8]>,
        homes: &Homes,
        report: &mut RepairReport,
    ) -> Result<Option<Vec<u8>>> {
        let (done, next) = self.write(self.now(), |draft| {
            let step = pass.step(&*draft.writer, behind, homes)?;
            let mut repaired = Repaired::default();
            step.fixes().try_for_each(|fix| repaired.apply(draft, fix))?;
            Ok((repaired, step.next))
        })?;
        report.replaced.extend(done.replaced);
        report.put_aside += done.put_aside;
        report.mended += done.mended;
        Ok(next)
    }

    fn rebuild(&self, rebuild: &Rebuild, told: &mut OnRows<'_>) -> Result<ControlFlow<()>> {
        match rebuild {
            Rebuild::Texts(index) => {
                guarded(self, index.environment, |store| text_index::rebuild(store, *index, told))
            }
            Rebuild::Counters(key) => {
                let recounted = self.recount(key);
                // They are put as they are, so their commits wake no future that waits for them.
                self.parts.watches.wake_those_of(key);
                recounted.map(ControlFlow::Continue)
            }
            Rebuild::ListCount(list) => self.count_list(*list).map(ControlFlow::Continue),
        }
    }

    // Counts the messages of a subscriber anew, some in each transaction.
    fn recount(&self, key: &[u8]) -> Result<()> {
        let mut step = self.write(self.now(), |draft| Ok(counters::begin(draft.writer, key)?))?;
        while step.is_more() {
            step = self.write(self.now(), |draft| Ok(counters::go_on(draft.writer, key)?))?;
        }
        Ok(())
    }

    // Counts the records of a list anew, some in each transaction.
    fn count_list(&self, list: CountedList) -> Result<()> {
        let scope = WriteScope::Environment(list.environment());
        let begin = |draft: &mut Draft<'_>| Ok(list_counts::begin(draft.writer, list)?);
        let mut step = self.write_within(scope, self.now(), begin)?;
        while step.is_more() {
            let go_on = |draft: &mut Draft<'_>| Ok(list_counts::go_on(draft.writer, list)?);
            step = self.write_within(scope, self.now(), go_on)?;
        }
        Ok(())
    }

    // Gives tasks to the records of a table that wait for some which are not there. If a table cannot be
    // gone through, it is not known which they are.
    fn resume_stalled(
        &self,
        table: Table,
        report: &mut RepairReport,
        progress: &mut OnProgress<'_>,
    ) -> Result<ControlFlow<()>> {
        const AT_A_TIME: usize = 64;
        let mut behind: Option<Vec<u8>> = None;
        loop {
            let told = &mut summed(&mut report.rows, progress);
            let part = self.read(|snapshot| Ok(stalled(snapshot, table, behind.as_deref(), told)?));
            let Some(part) = if_readable(part)? else { return Ok(ControlFlow::Continue(())) };
            let ControlFlow::Continue(part) = part else { return Ok(ControlFlow::Break(())) };
            for some in part.found.chunks(AT_A_TIME) {
                report.resumed += self.write(self.now(), |draft| {
                    let mut resumed = 0;
                    for stalled in some {
                        resumed += u64::from(pipeline::stalled::resume(draft, stalled)?);
                    }
                    Ok(resumed)
                })?;
            }
            behind = part.next;
            if behind.is_none() {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }

    fn repair_activity(
        &self,
        report: &mut RepairReport,
        progress: &mut OnProgress<'_>,
    ) -> Result<ControlFlow<()>> {
        let environments =
            self.read(|snapshot| Ok(store::check::listed_environments(snapshot)?))?;
        for environment in environments {
            let told = &mut summed(&mut report.rows, progress);
            let (found, next) =
                self.read(|snapshot| self.check_activity(snapshot, environment, told))?;
            if next.is_break() {
                return Ok(next);
            }
            if found.is_empty() {
                continue;
            }
            match if_mended(notifications::rebuild(self, environment, told))? {
                Some(ControlFlow::Continue(())) => report.rebuilt.push(environment),
                Some(ControlFlow::Break(())) => return Ok(ControlFlow::Break(())),
                None => {}
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

// Returns `None` if the environment was deleted meanwhile, so that there is nothing to mend, or if what the
// rows are made from cannot be gone through.
fn if_mended<T>(mended: Result<T>) -> Result<Option<T>> {
    match mended {
        Err(Error::NotFound { entity: Entity::Environment, .. }) => Ok(None),
        mended => if_readable(mended),
    }
}

// Outcome of the fixes of a step.
#[derive(Debug, Default)]
struct Repaired {
    put_aside: u64,
    mended: u64,
    replaced: Vec<EnvironmentId>,
}

impl Repaired {
    fn apply(&mut self, draft: &mut Draft<'_>, fix: &Fix) -> Result<()> {
        match fix {
            Fix::Row(change) => {
                change.apply(draft.writer)?;
                self.mended += 1;
            }
            Fix::PutAside(table, unreadable) => {
                let Unreadable { key, .. } = unreadable;
                // Several findings may name this record, one for each of its entries. The first has moved it.
                if !draft.writer.get(*table, key, &mut |_| {})? {
                    return Ok(());
                }
                damage::quarantine(draft, *table, unreadable)?;
                draft.writer.delete(*table, key)?;
                self.put_aside += 1;
                if *table == Table::Environments {
                    self.replaced.extend(environments::replace_lost(draft, key)?);
                }
            }
            Fix::StandIn(key) => {
                self.replaced.extend(environments::replace_lost(draft, key)?);
                self.mended += 1;
            }
            Fix::LinkKey(environment) => {
                environments::insert_link_key(draft, *environment)?;
                self.mended += 1;
            }
            // It takes transactions of its own.
            Fix::Rebuild(_) => {}
        }
        Ok(())
    }
}
