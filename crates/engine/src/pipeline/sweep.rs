//! Sweeps: records are removed by age, in bounded steps. Each environment has one task for that.
//!
//! A step reads some rows on a snapshot. A short transaction removes the old ones that have not
//! changed since, and moves the task behind the last row. So a step happens as a whole or not at
//! all.

mod pins;
mod tasks;

use std::collections::hash_map::Entry;

use domain::digest::{DigestBucket, ThrottleSlot, WindowEvent};
use domain::environment::Home;
use domain::idempotency::StoredAnswer;
use domain::ids::TransactionId;
use domain::message::Message;
use domain::notification::{Notification, Ordinal};
use domain::retention::{Retention, SweepPace, SweepPart};
use domain::step::StepKind;
use domain::suppression::Suppression;
use domain::task::{Task, TaskState, Work};
use domain::time::{MAX_CLOCK_SKEW, Timestamp};
use domain::trigger::AcceptedTrigger;
use foldhash::HashMap;
use store::{Key, Order, Range, ReadRecords, Record, WriteRecords, layout};

pub(crate) use pins::has_something_left;
use pins::{Carriers, is_open, is_over, runs_of};
pub(crate) use tasks::{SweepTasks, add, ensure};

use crate::damage::if_readable;
use crate::heal::healed;
use crate::pipeline::row_batch::{RowBatch, RowBudget};
use crate::resources::{messages, notifications, workflows};
use crate::tx::{Reading, Tx};
use crate::{Engine, Result};

/// Largest number of rows that a step reads.
const MAX_ROWS_READ: usize = 512;

/// Size of the rows with which a step ends, in bytes: the writer is held for a few milliseconds.
const READ_SIZE: usize = 1024 * 1024;

/// Largest number of records that a step removes.
const MAX_REMOVED: usize = 128;

/// What becomes of a row.
enum Row {
    Kept,
    Old,
    // Neither this row nor one behind it is old.
    End,
    // No row up to these bytes is old.
    Skip(Vec<u8>),
}

/// Rows that a step has looked at.
struct Walked<R> {
    old: Vec<R>,
    // The last row that was looked at. `None` at the end of the part.
    after: Option<Vec<u8>>,
}

/// Does the next step of a sweep that was claimed at `since`. Returns the number of records that it has
/// removed.
pub(crate) fn step(engine: &Engine, task: &Task, since: Timestamp) -> Result<usize> {
    let Work::Sweep { part, after, pace } = &task.work else { return Ok(0) };
    let home = task.home();
    // A clock that is ahead for a moment makes no record old.
    let now = engine.now().min(since);
    let sweep = Sweep { engine, task, part: *part, after, pace: *pace, home: &home, now };
    if let Some((pace, until)) = pace.put_off(now)
        && engine.parts.clock.as_manual().is_none()
    {
        return sweep.put_off(pace, until);
    }
    match part {
        SweepPart::Notifications => sweep.notifications(),
        SweepPart::Messages => sweep.messages(),
        SweepPart::Receipts => sweep.receipts(),
        SweepPart::Answers => sweep.answers(),
        SweepPart::Suppressions => sweep.suppressions(),
        SweepPart::DigestEvents => sweep.digest_events(),
        SweepPart::DigestBuckets => sweep.digest_buckets(),
        SweepPart::ThrottleSlots => sweep.throttle_slots(),
    }
}

struct Sweep<'s> {
    engine: &'s Engine,
    task: &'s Task,
    part: SweepPart,
    after: &'s [u8],
    pace: SweepPace,
    home: &'s Home,
    now: Timestamp,
}

// The runs of an event that are kept.
enum KeptRuns {
    All,
    // The first one, which has the receipt. It goes with the next sweep.
    First(Key<AcceptedTrigger>),
    None,
}

impl KeptRuns {
    fn of(view: &Reading<'_>, id: &TransactionId, before: Timestamp) -> Result<Self> {
        let runs = runs_of(view, id)?;
        let is_old = runs.iter().all(|run| run.created_at < before);
        if !is_old || has_something_left(view, id, &runs)? {
            return Ok(Self::All);
        }
        Ok(match runs.as_slice() {
            [first, _, ..] => Self::First(first.key()),
            [] | [_] => Self::None,
        })
    }

    fn has(&self, run: &AcceptedTrigger) -> bool {
        match self {
            Self::All => true,
            Self::First(first) => *first == run.key(),
            Self::None => false,
        }
    }
}

impl Sweep<'_> {
    fn retention(&self) -> &Retention {
        &self.engine.parts.settings.retention
    }

    fn read<T>(&self, mut body: impl FnMut(&Reading<'_>) -> Result<T>) -> Result<T> {
        let (engine, home) = (self.engine, self.home);
        healed(engine, home.environment_id, || {
            engine.read(|snapshot| body(&Reading { engine, home, snapshot }))
        })
    }

    fn notifications(&self) -> Result<usize> {
        let Some(before) = self.retention().activity_before(self.now) else { return self.skip() };
        let environment = self.home.environment_id;
        let walked = self.read(|view| {
            let old = self.engine.activity().created_before(view, environment, before)?;
            let ranges =
                old.ranges().map(|range| layout::notifications_between(environment, range));
            let mut carriers = Carriers::default();
            self.walk(view, ranges, |notification| {
                Ok(row_if(is_over(view, &mut carriers, notification, before)?))
            })
        })?;
        let index = self.engine.activity();
        let removed = self.remove(walked, |tx, old| Ok(index.remove(tx, environment, old)?))?;
        // What the index has of them goes, also if no trigger follows.
        if removed > 0 {
            self.engine.parts.upkeep.add(environment);
        }
        Ok(removed)
    }

    fn messages(&self) -> Result<usize> {
        let Some(before) = self.retention().messages_before(self.now) else { return self.skip() };
        let environment = self.home.environment_id;
        let walked = self.read(|view| {
            let all = layout::notifications(environment).range();
            let first = view.readable::<Notification>(&all, Order::Ascending, 1)?;
            let floor = first.first().map_or(Ordinal::MAX, |first| first.id.ordinal()).get();
            let old = self.engine.activity().created_before(view, environment, before)?;
            // Those whose notifications are gone come first.
            let ranges = std::iter::once(0..floor).chain(old.ranges().filter_map(|range| {
                (range.end > floor).then_some(range.start.max(floor)..range.end)
            }));
            let ranges = ranges.map(|range| layout::messages_of(environment, range));
            self.walk(view, ranges, |message: &Message| {
                let of = notifications::find(view, message.notification_id)?;
                Ok(row_if(self.retention().ends(message, of.as_ref(), self.now)))
            })
        })?;
        self.remove(walked, |tx, old| {
            old.iter().try_for_each(|message| messages::remove(tx, message))
        })
    }

    fn receipts(&self) -> Result<usize> {
        let Some(before) = self.retention().receipts_before(self.now) else { return self.skip() };
        let all = layout::triggers(self.home.environment_id).range();
        // An event with many recipients has many runs.
        let mut known: HashMap<TransactionId, KeptRuns> = HashMap::default();
        let walked = self.read(|view| {
            self.walk(view, [all.clone()], |trigger: &AcceptedTrigger| {
                // Those behind one of a clock that was ahead are older.
                if trigger.created_at >= before {
                    let is_ahead = trigger.created_at.is_far_ahead_of(self.now);
                    return Ok(if is_ahead { Row::Kept } else { Row::End });
                }
                let id = &trigger.receipt.transaction_id;
                let kept = match known.entry(id.clone()) {
                    Entry::Occupied(kept) => kept.into_mut(),
                    Entry::Vacant(place) => place.insert(KeptRuns::of(view, id, before)?),
                };
                Ok(row_if(!kept.has(trigger)))
            })
        })?;
        self.remove(walked, remove_triggers)
    }

    fn answers(&self) -> Result<usize> {
        let before = self.retention().answers_before(self.now);
        self.expired::<StoredAnswer>(&layout::expired_answers(self.home.environment_id, before))
    }

    fn suppressions(&self) -> Result<usize> {
        let environment = self.home.environment_id;
        self.expired::<Suppression>(&layout::expired_suppressions(environment, self.now))
    }

    fn expired<R: Record>(&self, expired: &Range<R>) -> Result<usize> {
        let old = self.read(|view| Ok(view.readable(expired, Order::Ascending, MAX_REMOVED)?))?;
        // The next step reads the same range again. The key tells its task from the present one.
        let last = old.last().filter(|_| old.len() == MAX_REMOVED);
        let after = last.map(|last| last.key().as_bytes().to_vec());
        self.remove(Walked { old, after }, remove_all)
    }

    // The events of a window that has closed go with their notifications, oldest first.
    fn digest_events(&self) -> Result<usize> {
        if self.retention().activity_before(self.now).is_none() {
            return self.skip();
        }
        let environment = self.home.environment_id;
        let all = layout::all_digest_events(environment).range();
        let walked = self.read(|view| {
            self.walk(view, [all.clone()], |event: &WindowEvent| {
                let window = event.window_id;
                if is_open(view, window)? || notifications::exists(view, event.notification_id)? {
                    return Ok(Row::Skip(layout::behind_window(environment, window)));
                }
                Ok(Row::Old)
            })
        })?;
        self.remove(walked, remove_all)
    }

    fn digest_buckets(&self) -> Result<usize> {
        let all = layout::digest_buckets(self.home.environment_id).range();
        let walked = self.read(|view| {
            self.walk(view, [all.clone()], |bucket: &DigestBucket| {
                Ok(row_if(self.is_done_with(view, bucket)?))
            })
        })?;
        self.remove(walked, remove_all)
    }

    // Returns `true` if no later event depends on the bucket, also if the clock has been ahead.
    fn is_done_with(&self, view: &Reading<'_>, bucket: &DigestBucket) -> Result<bool> {
        let before = self.now.before(MAX_CLOCK_SKEW);
        let is_open = match bucket.window {
            Some(window) => window.until >= before || is_open(view, window.id)?,
            None => false,
        };
        if is_open || bucket.last_event >= before {
            return Ok(false);
        }
        let workflow = workflows::find_by_id(view, bucket.id.workflow_id)?;
        let step = workflow.as_ref().and_then(|workflow| workflow.step(bucket.id.step_id));
        Ok(match step.map(|step| &step.definition.kind) {
            Some(StepKind::Digest { metadata }) => metadata.forgets(bucket.last_event, self.now),
            Some(_) | None => true,
        })
    }

    fn throttle_slots(&self) -> Result<usize> {
        let before = self.now.before(MAX_CLOCK_SKEW);
        let all = layout::all_throttle_slots(self.home.environment_id).range();
        let walked = self.read(|view| {
            self.walk(view, [all.clone()], |slot: &ThrottleSlot| Ok(row_if(slot.until < before)))
        })?;
        self.remove(walked, remove_all)
    }

    // Nothing of this part is removed.
    fn skip(&self) -> Result<usize> {
        self.move_task(None, |_| Ok(0))
    }

    // Looks at rows behind those that were looked at. A row that cannot be read is kept.
    fn walk<R: Record>(
        &self,
        view: &Reading<'_>,
        ranges: impl IntoIterator<Item = Range<R>>,
        mut row: impl FnMut(&R) -> Result<Row>,
    ) -> Result<Walked<R>> {
        let (mut old, mut after) = (Vec::new(), self.after.to_vec());
        let mut left = RowBudget { rows: MAX_ROWS_READ, size: READ_SIZE };
        for range in ranges {
            loop {
                let RowBatch { rows, is_last } =
                    RowBatch::of(view, &range.clone().resumed(&after), &mut left)?;
                for (key, record) in rows {
                    if key <= after {
                        continue;
                    }
                    after = key;
                    let Some(record) = record else { continue };
                    // What depends on a record that cannot be read is kept.
                    match if_readable(row(&record))? {
                        None | Some(Row::Kept) => {}
                        Some(Row::Old) => old.push(record),
                        Some(Row::Skip(behind)) => after = behind,
                        Some(Row::End) => return Ok(Walked { old, after: None }),
                    }
                    if old.len() == MAX_REMOVED {
                        return Ok(Walked { old, after: Some(after) });
                    }
                }
                if left.is_spent() {
                    return Ok(Walked { old, after: Some(after) });
                }
                if is_last {
                    break;
                }
            }
        }
        Ok(Walked { old, after: None })
    }

    // Removes the records that have not changed since, and moves the task.
    fn remove<R: Record>(
        &self,
        walked: Walked<R>,
        remove: impl Fn(&mut Tx<'_>, &[R]) -> Result<()>,
    ) -> Result<usize> {
        let Walked { old: found, after } = walked;
        self.move_task(after, |tx| {
            let keys: Vec<_> = found.iter().map(Record::key).collect();
            let there = tx.find_readable::<R>(&keys)?;
            let mut old: Vec<R> = Vec::with_capacity(there.len());
            for (present, record) in there.into_iter().zip(&found) {
                old.extend(present.filter(|present| present == record));
            }
            remove(tx, &old)?;
            Ok(old.len())
        })
    }

    // Runs the transaction of a step with `remove`, and moves the task behind these bytes, or to the next part.
    fn move_task(
        &self,
        after: Option<Vec<u8>>,
        remove: impl Fn(&mut Tx<'_>) -> Result<usize>,
    ) -> Result<usize> {
        let next = self.following(after);
        let mut step = |tx: &mut Tx<'_>| {
            // Another worker may have done this step.
            let Some(task) = tx.claimed(self.task)? else { return Ok(0) };
            let removed = remove(tx)?;
            match &next {
                Some(next) => tx.replace(&task, next)?,
                None => tx.remove(&task)?,
            }
            Ok(removed)
        };
        healed(self.engine, self.home.environment_id, || {
            self.engine.write_in(self.home, self.now, &mut step)
        })
    }

    // The task behind the step: due at once, or for the next sweep. Returns `None` if the policy is
    // gone, or if the clock shows the end of time, behind which there is no other sweep.
    fn following(&self, after: Option<Vec<u8>>) -> Option<Task> {
        if self.retention().keeps_everything() {
            return None;
        }
        let (part, after, due_at) = match (after, self.part.next()) {
            (Some(after), _) => (self.part, after, self.now),
            (None, Some(part)) => (part, Vec::new(), self.now),
            (None, None) => {
                let next = self.now.after(Retention::INTERVAL);
                (SweepPart::default(), Vec::new(), Some(next).filter(|next| *next > self.now)?)
            }
        };
        Some(self.then(Work::Sweep { part, after, pace: self.pace.stepped(self.now) }, due_at))
    }

    fn then(&self, work: Work, due_at: Timestamp) -> Task {
        Task { work, ..self.task.with(TaskState::Waiting { due_at, attempts: 0 }) }
    }

    // Does the step later, if the clock is right.
    fn put_off(&self, pace: SweepPace, until: Timestamp) -> Result<usize> {
        let work = Work::Sweep { part: self.part, after: self.after.to_vec(), pace };
        let later = self.then(work, until);
        self.engine.write_in(self.home, self.now, |tx| {
            if let Some(task) = tx.claimed(self.task)? {
                tx.replace(&task, &later)?;
            }
            Ok(0)
        })
    }
}

fn row_if(is_old: bool) -> Row {
    if is_old { Row::Old } else { Row::Kept }
}

/// Removes runs of events. What else there is of an event goes with its last run, so that a later
/// event with the same transaction id is not a canceled one.
pub(crate) fn remove_triggers(tx: &mut Tx<'_>, old: &[AcceptedTrigger]) -> Result<()> {
    remove_all(tx, old)?;
    for trigger in old {
        let (environment, id) = (trigger.environment_id, &trigger.receipt.transaction_id);
        if !tx.has_any(&layout::transaction(environment, id).range())? {
            tx.delete_key(&layout::canceled_trigger(environment, id))?;
            tx.delete_key(&layout::fan_out_state(environment, id))?;
        }
    }
    Ok(())
}

fn remove_all<R: Record>(tx: &mut Tx<'_>, old: &[R]) -> Result<()> {
    old.iter().try_for_each(|record| Ok(tx.remove(record)?))
}
