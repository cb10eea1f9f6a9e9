//! Operations on the quarantine.

use domain::convert::IntoChecked;
use domain::ids::QuarantineId;
use domain::job::Detail;
use domain::page::ForwardPage;
use domain::quarantine::{QuarantineQuery, Quarantined, RequeueRefusal};
use domain::task::Task;
use store::{Order, Prefix, ReadRecords, Record, Snapshot, WriteRecords, layout};

use crate::error::{Reason, Rejection};
use crate::pipeline::delivery::end_window;
use crate::pipeline::live_events::LiveEvents;
use crate::pipeline::notification_tx::NotificationTx;
use crate::resources::notifications;
use crate::tx::{Draft, Tx};
use crate::{Engine, Entity, Error, Result, trace};

/// The quarantine of all environments: records that cannot be read, and tasks that cannot be done without
/// them. The delivery queue puts a task there, so that the others go on. A [repair](Engine::repair) and a
/// deletion put records there that are damaged.
///
/// ```
/// # fn main() -> tidings::Result<()> {
/// use tidings::quarantine::QuarantineQuery;
///
/// let engine = tidings::Engine::in_memory();
/// // ... the damaged records are written anew
/// for entry in engine.quarantine().list(&QuarantineQuery::default())?.data {
///     if let Err(refused) = engine.quarantine().requeue(entry.id) {
///         eprintln!("{} {}: {}, {refused}", entry.table, entry.key, entry.reason);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Quarantine<'e> {
    engine: &'e Engine,
}

impl<'e> Quarantine<'e> {
    pub(crate) fn new(engine: &'e Engine) -> Self {
        Self { engine }
    }

    /// A page of the entries, oldest first.
    ///
    /// An entry that is damaged itself is left out. [`check`](Engine::check) has a finding for it, in the
    /// table `quarantine`. A [repair](Engine::repair) puts an entry with its bytes in its place, which is
    /// listed and can be [discarded](Self::discard).
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the limit is 0; [`Error::Store`].
    pub fn list(&self, query: &QuarantineQuery) -> Result<ForwardPage<Quarantined, QuarantineId>> {
        let page = |snapshot: &dyn Snapshot| page(snapshot, *query);
        trace::operation("quarantine.list", None, || self.engine.read(page))
    }

    /// Returns an entry.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no entry with this id.
    pub fn get(&self, id: impl IntoChecked<QuarantineId>) -> Result<Quarantined> {
        let id = id.into_checked()?;
        let found = trace::operation("quarantine.get", None, || self.look_up(id))?;
        found.ok_or_else(|| missing(id))
    }

    /// Returns an entry. Returns `None` if there is no entry with this id.
    ///
    /// # Errors
    ///
    /// [`Error::Store`], if the entry cannot be read.
    pub fn find(&self, id: impl IntoChecked<QuarantineId>) -> Result<Option<Quarantined>> {
        let id = id.into_checked()?;
        trace::operation("quarantine.find", None, || self.look_up(id))
    }

    fn look_up(&self, id: QuarantineId) -> Result<Option<Quarantined>> {
        self.engine.read(|snapshot| Ok(snapshot.find(&layout::quarantined(id))?))
    }

    /// Puts the task of an entry back into the delivery queue, such as after the damaged record was
    /// written anew. The task is due at once. A job that failed because of the damage waits again. Later jobs that
    /// have ended stay as they are. The task that closes the window of a digest can be put back as long as one event
    /// of the window exists. The jobs after such a digest wait until then.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no entry with this id. [`Rejection::NotRequeued`], if it has no task
    /// or one that cannot be read, if the notification of the task is gone, or if its job has ended in another
    /// way. [`Error::Store`], if the notification, or an event of the window, cannot be read.
    pub fn requeue(&self, id: impl IntoChecked<QuarantineId>) -> Result<()> {
        let id = id.into_checked()?;
        let requeue = |draft: &mut Draft<'_>| {
            let found = draft.writer.find(&layout::quarantined(id))?;
            let quarantined = found.ok_or_else(|| missing(id))?;
            let task = quarantined.readable_task().map_err(refused)?;
            put_back(&mut draft.within(&task.home()), &quarantined, &task)
        };
        let now = self.engine.now();
        trace::operation("quarantine.requeue", None, || self.engine.write(now, requeue))
    }

    /// Removes an entry. A record that waits for the task, such as a snoozed message, continues after the next
    /// [repair](Engine::repair). If the task closes the window of a digest, the digest job of the first remaining
    /// event fails, and the jobs after it end. The jobs of the other events stay `merged`. If the notification of the
    /// first remaining event cannot be read, its jobs do not end.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no entry with this id.
    pub fn discard(&self, id: impl IntoChecked<QuarantineId>) -> Result<()> {
        let id = id.into_checked()?;
        let discard = |draft: &mut Draft<'_>| {
            let key = layout::quarantined(id);
            if !draft.writer.contains(&key)? {
                return Err(missing(id));
            }
            // An entry that cannot be read is removed too.
            let entry = store::if_readable(draft.writer.find(&key))?.flatten();
            if let Some(entry) = entry
                && let Ok(task) = entry.readable_task()
                && !draft.writer.contains(&task.key())?
            {
                end_window(&mut draft.within(&task.home()), &task, &entry.table)?;
            }
            Ok(draft.writer.delete_key(&key)?)
        };
        let now = self.engine.now();
        trace::operation("quarantine.discard", None, || self.engine.write(now, discard))
    }
}

fn page(
    snapshot: &dyn Snapshot,
    QuarantineQuery { after, limit, .. }: QuarantineQuery,
) -> Result<ForwardPage<Quarantined, QuarantineId>> {
    let limit = limit.unwrap_or(QuarantineQuery::DEFAULT_LIMIT);
    let all = Prefix::of_all().range();
    let range = match after {
        Some(after) => all.resumed(layout::quarantined(after).as_bytes()),
        None => all,
    };
    // A page without entries would be followed by itself.
    if limit == 0 {
        return Err(Error::invalid("limit", Reason::malformed("at least 1")));
    }
    // One entry more tells whether there is another page.
    let asked = limit.saturating_add(1);
    let (mut found, behind) = snapshot.readable_with_gaps(&range, Order::Ascending, asked)?;
    let has_more = found.len() == asked;
    found.truncate(limit);
    let gaps = found.iter().map(|(gap, _)| gap).sum::<usize>();
    let data: Vec<Quarantined> = found.into_iter().map(|(_, entry)| entry).collect();
    let next = data.last().map(|entry| entry.id).or(after).filter(|_| has_more);
    let unreadable = if has_more { gaps } else { gaps + behind };
    Ok(ForwardPage::new(data, next).without(unreadable))
}

fn missing(id: QuarantineId) -> Error {
    Error::not_found(Entity::QuarantineEntry, id)
}

fn refused(reason: RequeueRefusal) -> Error {
    Error::Rejected(Rejection::NotRequeued { reason })
}

// Puts a task back that is due at once. Its job waits again if it has failed.
fn put_back(tx: &mut Tx<'_>, quarantined: &Quarantined, task: &Task) -> Result<()> {
    let due_at = tx.now();
    let task = task.clone().restarted(due_at);
    if tx.contains(&task.key())? {
        return Err(refused(RequeueRefusal::Queued));
    }
    if let Some(id) = LiveEvents::bounded(due_at).notification_of(tx, &task.work)? {
        let before = notifications::find(tx, id)?.ok_or_else(|| refused(RequeueRefusal::Gone))?;
        let mut notification_tx = NotificationTx::of(tx, before.clone(), None);
        if let Some((job, status)) = before.requeued(&task.work, due_at).map_err(refused)? {
            notification_tx.log(job, Detail::StepQueued, None);
            notification_tx.move_job(job, status);
        }
        notification_tx.notification.wait_again(&task);
        notification_tx.store_over(&before)?;
    }
    tx.insert(&task)?;
    Ok(tx.remove(quarantined)?)
}
