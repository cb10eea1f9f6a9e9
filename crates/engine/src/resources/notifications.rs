//! Operations on the activity list.

mod events;
mod index;
mod search;

use std::collections::{BTreeSet, HashMap};
use std::slice;
use std::sync::Arc;

use domain::convert::IntoChecked;
use domain::digest::WindowEvent;
use domain::ids::{NotificationId, StepId, StepRef};
use domain::job::{Job, JobDigest, JobStatus};
use domain::message::Message;
use domain::notification::{
    Notification, NotificationPage, NotificationQuery, NotificationSubscriber, Ordinal,
    ResendRefusal,
};
use domain::page::ForwardPage;
use domain::step::DigestEvent;
use domain::task::{Task, Work};
use domain::time::Timestamp;
use serde_json::json;
use store::{Kept, Order, ReadKept, ReadRecords, Step, Table, WriteRecords, layout};

use crate::damage::if_readable;
use crate::guarded::guarded;
use crate::pipeline::facts::workflow_of;
use crate::pipeline::leases;
use crate::pipeline::notification_tx::NotificationTx;
use crate::resources::removal_guard::RemovalGuard;
use crate::tx::{Tx, View};
use crate::{Entity, Error, Rejection, Result, Scope};

pub(crate) use self::index::{rebuild, rebuild_activity};

use self::events::{Deletion, Events};
use self::search::Search;

/// The activity list of an environment.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::notification::NotificationQuery;
/// # use tidings::{step::Step, trigger::Trigger, workflow::WorkflowCreate};
///
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme")?.development()?;
/// # env.workflows().create(
/// #     &WorkflowCreate::new("greeting", "Greeting")?.step(Step::in_app("Hello!")?))?;
/// # let trigger = Trigger::new("greeting", "ada")?.to("grace")?.transaction_id("t1")?;
/// # env.events().trigger(&trigger)?;
/// let query = NotificationQuery::default().transaction_id("t1")?.subscriber_ids(["grace"])?;
/// let page = env.notifications().list(&query)?;
/// assert_eq!(page.data.len(), 1);
///
/// let notification = env.notifications().get(page.data[0].id)?;
/// for job in &notification.jobs {
///     for detail in &job.execution_details {
///         println!("{}: {}", job.kind, detail.detail);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Notifications<'s> {
    pub(crate) scope: &'s Scope,
}

impl Notifications<'_> {
    /// The notification of that id, with its jobs and their logs.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn get(&self, id: impl IntoChecked<NotificationId>) -> Result<Notification> {
        let id = id.into_checked()?;
        self.scope.operation("notifications.get", || self.look_up(id)?.ok_or_else(|| missing(id)))
    }

    /// The notification of that id, with its jobs and their logs. Returns `None` if there is none.
    pub fn find(&self, id: impl IntoChecked<NotificationId>) -> Result<Option<Notification>> {
        let id = id.into_checked()?;
        self.scope.operation("notifications.find", || self.look_up(id))
    }

    fn look_up(&self, id: NotificationId) -> Result<Option<Notification>> {
        self.scope.view(|view| {
            let key = layout::notification(view.environment_id(), id.ordinal());
            let found = view.engine().parts.decoded.notifications.find(view.snapshot, &key)?;
            let Some(mut notification) = found.map(Arc::unwrap_or_clone).filter(|one| one.id == id)
            else {
                return Ok(None);
            };
            fill_in(view, slice::from_mut(&mut notification))?;
            Ok(Some(notification))
        })
    }

    /// The messages of a notification on all channels, in the order of its jobs. What retention or the reader
    /// has removed, and what cannot be read, is left out.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tidings::notification::NotificationQuery;
    /// # use tidings::{step::Step, trigger::Trigger, workflow::WorkflowCreate};
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// # env.workflows().create(
    /// #     &WorkflowCreate::new("greeting", "Greeting")?.step(Step::in_app("Hello!")?))?;
    /// # env.events().trigger(&Trigger::new("greeting", "ada")?)?;
    /// let notification = &env.notifications().list(&NotificationQuery::default())?.data[0];
    /// let messages = env.notifications().messages(notification.id)?;
    /// assert_eq!(messages[0].text(), Some("Hello!"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such notification.
    pub fn messages(&self, id: impl IntoChecked<NotificationId>) -> Result<Vec<Message>> {
        // The number of a job has one byte in the place of its message.
        const PLACES: usize = 1 << u8::BITS;
        let id = id.into_checked()?;
        self.scope.read("notifications.messages", |view| {
            let ordinal = id.ordinal();
            let key = layout::notification(view.environment_id(), ordinal);
            let found = view.engine().parts.decoded.notifications.find(view.snapshot, &key)?;
            if found.is_none_or(|found| found.id != id) {
                return Err(missing(id));
            }
            let range = layout::messages_of_one(view.environment_id(), ordinal);
            Ok(view.readable(&range, Order::Ascending, PLACES)?)
        })
    }

    /// A page of the notifications that match `query`, newest first.
    ///
    /// A search holds at most 4,096 subscribers in memory. If more have an address that the query
    /// names, it reads their addresses anew for each 61,440 notifications that the page comes to.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the limit is not between 1 and 50, if `after` comes after `before`,
    /// or if a list of the query has more than 1,000 values.
    pub fn list(&self, query: &NotificationQuery) -> Result<NotificationPage> {
        let limit = query.check()?;
        let skip = u64::from(query.page_number) * limit as u64;
        self.scope.read("notifications.list", |view| {
            let found = Search::of(view, query)?.find(skip, limit + 1)?;
            let shown = found.get(..limit).unwrap_or(&found);
            let mut data = read(view, shown)?;
            let unreadable = shown.len() - data.len();
            fill_in(view, &mut data)?;
            let has_more = found.len() > limit;
            let page = NotificationPage::new(data, has_more, limit, query.page_number);
            Ok(page.without(unreadable))
        })
    }

    /// Returns the number of notifications that match `query`, on all pages.
    ///
    /// # Errors
    ///
    /// As [`list`](Self::list).
    pub fn count(&self, query: &NotificationQuery) -> Result<u64> {
        query.check()?;
        self.scope.read("notifications.count", |view| Search::of(view, query)?.count())
    }

    /// A page of the events in the window of a notification's digest, oldest first: those from the
    /// number `cursor` on, or the first ones. Events that were canceled or have expired are among them.
    /// Events are kept as long as their notifications. If the notification has several digests, the events are those
    /// of the latest closed window, or else of the open one. The page is empty if the notification has no digest.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tidings::{step::Step, trigger::Trigger, workflow::WorkflowCreate};
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// # env.workflows().create(
    /// #     &WorkflowCreate::new("greeting", "Greeting")?.step(Step::in_app("Hello!")?))?;
    /// let receipt = env.events().trigger(&Trigger::new("greeting", "ada")?)?;
    /// let id = receipt.notifications[0].notification_id;
    /// let (mut events, mut cursor) = (Vec::new(), None);
    /// loop {
    ///     let page = env.notifications().digest_events(id, cursor)?;
    ///     events.extend(page.data);
    ///     cursor = page.next;
    ///     if cursor.is_none() {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(events, []); // the workflow has no digest
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such notification.
    pub fn digest_events(
        &self,
        id: impl IntoChecked<NotificationId>,
        cursor: Option<u32>,
    ) -> Result<ForwardPage<DigestEvent, u32>> {
        self.digest_events_of(id.into_checked()?, cursor.unwrap_or_default())
    }

    fn digest_events_of(
        &self,
        id: NotificationId,
        from: u32,
    ) -> Result<ForwardPage<DigestEvent, u32>> {
        self.scope.read("notifications.digest_events", |view| {
            let notification = find(view, id)?.ok_or_else(|| missing(id))?;
            // The events of a window are those of the notification that goes on.
            let jobs = notification.jobs.iter().rev().filter(|job| job.status != JobStatus::Merged);
            let mut digests = jobs.filter_map(|job| job.digest.as_ref());
            let closed = digests.clone().find_map(JobDigest::closed_window);
            let open = digests.find_map(|digest| digest.window_id);
            let Some(window) = closed.or(open) else {
                return Ok(ForwardPage::new(Vec::new(), None));
            };
            let range = layout::digest_events_from(view.environment_id(), window, from);
            let limit = JobDigest::MAX_EVENTS;
            let mut events = view.readable::<WindowEvent>(&range, Order::Ascending, limit + 1)?;
            let next = events.get(limit).map(|event| event.number);
            events.truncate(limit);
            let (mut data, mut unreadable) = (Vec::with_capacity(events.len()), 0);
            for event in events {
                match if_readable(find(view, event.notification_id))? {
                    Some(found) => data.extend(found.map(|found| event.with_payload(&found))),
                    None => unreadable += 1,
                }
            }
            Ok(ForwardPage::new(data, next).without(unreadable))
        })
    }

    /// Sends the message of a step again, with the present content and preferences. `step` is the
    /// [id](crate::job::JobStep::id), the name or the position of the step. The job gets a new id, which is the
    /// idempotency key for the provider, and its log records the call. A message for a provider keeps its marks, such
    /// as read. A message in the inbox is delivered again with its stored content, and is unseen. If the first
    /// rendering failed, the message is rendered from the present workflow. A second failure is recorded in the log
    /// of the job. Jobs after this one stay as they are.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tidings::{integration::IntegrationCreate, step::Step, subscriber::SubscriberCreate};
    /// # use tidings::{trigger::Trigger, vocabulary::Channel, workflow::WorkflowCreate};
    /// # use tidings::{Engine, RecordingProvider, store::memory::MemoryStore};
    /// # let recorder = RecordingProvider::default();
    /// # let engine = Engine::builder().default_provider(recorder).build(MemoryStore::default());
    /// # let env = engine.organization("acme")?.development()?;
    /// # env.integrations().create(&IntegrationCreate::new("ses", Channel::Email)?)?;
    /// # env.workflows().create(
    /// #     &WorkflowCreate::new("greeting", "Greeting")?
    /// #         .step(Step::email("Hello!", "Hello!")?.name("mail")))?;
    /// # let ada = SubscriberCreate::new("ada")?.email("ada@example.org")?;
    /// let receipt = env.events().trigger(&Trigger::new("greeting", ada)?)?;
    /// engine.delivery().run_due(100)?;
    /// let id = receipt.notifications[0].notification_id;
    ///
    /// env.notifications().resend(id, "mail")?;
    /// assert_eq!(engine.delivery().run_due(100)?.sent, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such notification; [`Error::Invalid`] with the known steps, if
    /// it has no step of that name or place; [`Rejection::NotResent`], if it has no step of that id, or
    /// if the step has not ended, or has no message.
    pub fn resend(
        &self,
        id: impl IntoChecked<NotificationId>,
        step: impl Into<StepRef>,
    ) -> Result<()> {
        self.resend_of(id.into_checked()?, step.into().as_str())
    }

    fn resend_of(&self, id: NotificationId, step: &str) -> Result<()> {
        self.scope.write("notifications.resend", (id, step), |tx| {
            let before = find(tx, id)?.ok_or_else(|| missing(id))?;
            let Some((number, job)) = before.job_of_step(step) else {
                return Err(match step.parse() {
                    Ok(id) => not_resent(id, ResendRefusal::NoStep),
                    Err(_) => before.unknown_step().into(),
                });
            };
            job.check_resent().map_err(|reason| not_resent(job.step.id, reason))?;
            let workflow = workflow_of(tx, &before)?;
            let mut notification_tx = NotificationTx::of(tx, before.clone(), workflow.as_deref());
            if !notification_tx.resend(number)? {
                return Err(not_resent(job.step.id, ResendRefusal::NoMessage));
            }
            notification_tx.store_over(&before).map(drop)
        })
    }

    /// Deletes a notification, with its jobs and their logs. Inbox messages stay. Its waiting messages are not sent,
    /// including the message of a closed digest. If the window of its digest is still open, the next event of the
    /// window takes over. Its events in digests are deleted as well. The last notification of a trigger frees its
    /// transaction id.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is none.
    pub fn delete(&self, id: impl IntoChecked<NotificationId>) -> Result<()> {
        self.delete_of(id.into_checked()?)
    }

    fn delete_of(&self, id: NotificationId) -> Result<()> {
        let index = self.scope.engine.activity();
        let look = || {
            self.scope.view(|view| {
                let found = if_readable(find(view, id))?.flatten();
                Events::of(view, found.as_slice())
            })
        };
        let start = (look()?, RemovalGuard::default());
        let mut again =
            |(_, guard): (Events, RemovalGuard)| look().map(|found| Step::More((found, guard)));
        self.scope.write_in_steps_with(
            "notifications.delete",
            id,
            (start, &mut again),
            |tx, (events, guard): &(Events, RemovalGuard)| {
                let notification = find(tx, id)?.ok_or_else(|| missing(id))?;
                let mut guard = guard.clone();
                if !events.are_all_of(&notification)
                    || clear_runs(tx, slice::from_ref(&notification), &mut guard)?
                {
                    return Ok(Step::More((Events::default(), guard)));
                }
                remove_tasks(tx, &notification)?;
                index.delete(tx, &notification)?;
                events.remove(tx)?;
                Ok(Step::Done(()))
            },
        )
    }

    /// Deletes every notification that was created before `time`, by the clock at its creation.
    /// Returns the number of deleted notifications. A host calls it regularly, to limit the age of
    /// the activity list. Their events in digests are deleted with them. The last notification of a
    /// trigger frees its transaction id.
    ///
    /// The deletion takes several transactions. After an interruption, another call continues.
    pub fn delete_before(&self, time: Timestamp) -> Result<u64> {
        let index = self.scope.engine.activity();
        let environment = self.scope.environment_id();
        let start = self.scope.view(|view| {
            let old = index.created_before(view, environment, time)?;
            Deletion::of(old).next(view, time)
        })?;
        let mut next =
            |at: Deletion| self.scope.view(|view| at.clone().next(view, time)).map(Step::More);
        let deleted = self.scope.write_in_steps_with(
            "notifications.delete_before",
            json!({ "time": time }),
            (start, &mut next),
            |tx, at: &Deletion| {
                let (removed, next) = at.first(tx, time)?;
                let mut guard = at.guard.clone();
                if clear_runs(tx, &removed, &mut guard)? {
                    return Ok(Step::More(at.again(guard)));
                }
                index.delete_all(tx, environment, &removed)?;
                at.events.remove(tx)?;
                Ok(if next.old.is_empty() { Step::Done(next.deleted) } else { Step::More(next) })
            },
        )?;
        // After a failure here, the next trigger removes the remainder.
        guarded(&self.scope.engine, environment, |store| index.tend_all(store, environment)).ok();
        Ok(deleted)
    }
}

/// Removes some runs of the triggers of `removed`, which are in the order of their ordinals. Returns `true`
/// if there are more runs to remove before these notifications are deleted.
///
/// # Errors
///
/// Those of [`RemovalGuard::note`], with the first of the runs.
pub(crate) fn clear_runs(
    tx: &mut Tx<'_>,
    removed: &[Notification],
    guard: &mut RemovalGuard,
) -> Result<bool> {
    let environment = tx.environment_id();
    for of_one in removed.chunk_by(|one, next| one.transaction_id == next.transaction_id) {
        let Some(last) = of_one.last() else { continue };
        let of_trigger = |one: &&Notification| one.transaction_id == last.transaction_id;
        let gone = removed.iter().filter(of_trigger).map(|one| one.id.ordinal());
        let gone: Vec<_> = gone.collect();
        let writer = &mut *tx.draft.writer;
        let cleared = activity::clear_runs(writer, environment, &last.transaction_id, &gone)?;
        if let Some(first) = cleared {
            guard.note(Table::Transactions, &first)?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// The notification of that id. Returns `None` if there is none.
pub(crate) fn find(view: &dyn View, id: NotificationId) -> Result<Option<Notification>> {
    let key = layout::notification(view.environment_id(), id.ordinal());
    let found = view.find::<Notification>(&key)?;
    Ok(found.filter(|notification| notification.id == id))
}

/// The notification of that id with its bytes. Returns `None` if there is none.
pub(crate) fn find_kept(view: &dyn View, id: NotificationId) -> Result<Option<Kept<Notification>>> {
    let found = view.find_kept(layout::notification(view.environment_id(), id.ordinal()))?;
    Ok(found.filter(|notification| notification.id == id))
}

/// The notification of that id, which was read before. Returns `None` if there is none.
pub(crate) fn find_again(
    view: &dyn View,
    id: NotificationId,
    read: Option<&Kept<Notification>>,
) -> Result<Option<Arc<Notification>>> {
    let key = layout::notification(view.environment_id(), id.ordinal());
    let found = view.find_again(&key, read)?;
    Ok(found.filter(|notification| notification.id == id))
}

/// The notification of a task. Returns `None` if the task is about many, or if it is gone.
pub(crate) fn of_work(view: &dyn View, work: &Work) -> Result<Option<Notification>> {
    work.notification_id().map_or(Ok(None), |id| find(view, id))
}

/// Returns `true` if there is a notification in the place of that id.
pub(crate) fn exists(view: &dyn View, id: NotificationId) -> Result<bool> {
    Ok(view.contains(&layout::notification(view.environment_id(), id.ordinal()))?)
}

// The notifications of `ordinals`, which the index has found, without those that cannot be read.
fn read(view: &dyn View, ordinals: &[Ordinal]) -> Result<Vec<Notification>> {
    let key = |ordinal: &Ordinal| layout::notification(view.environment_id(), *ordinal);
    let keys: Vec<_> = ordinals.iter().map(key).collect();
    let found = view.engine().parts.decoded.notifications.find_readable(view, &keys)?;
    Ok(found.into_iter().flatten().map(Arc::unwrap_or_clone).collect())
}

// Removes the tasks of the messages and calls of a notification. A window has other events, and a delay that
// ends without its notification does nothing.
fn remove_tasks(tx: &mut Tx<'_>, notification: &Notification) -> Result<()> {
    let waiting = notification.jobs.iter().filter(|job| !job.status.has_ended());
    for id in waiting.flat_map(Job::task_ids) {
        let key = layout::task(tx.environment_id(), id);
        if let Some(task) = store::if_readable(tx.find::<Task>(&key))?.flatten() {
            tx.remove(&task)?;
        }
    }
    Ok(())
}

fn not_resent(step: StepId, reason: ResendRefusal) -> Error {
    Error::rejected(Rejection::NotResent { step, reason })
}

fn missing(id: NotificationId) -> Error {
    Error::not_found(Entity::Notification, id)
}

// Fills in the subscribers and the workflows of `notifications`, those that still exist and can be
// read.
fn fill_in(view: &dyn View, notifications: &mut [Notification]) -> Result<()> {
    let environment = view.environment_id();
    let ids: BTreeSet<_> = notifications.iter().map(|one| one.subscriber_id).collect();
    let keys: Vec<_> = ids.iter().map(|id| layout::subscriber_id(environment, *id)).collect();
    let found = view.find_readable_excerpts::<NotificationSubscriber>(environment, &keys)?;
    let subscribers: HashMap<_, _> = ids.into_iter().zip(found).collect();
    let ids: BTreeSet<_> = notifications.iter().filter_map(|one| one.workflow_id).collect();
    let keys: Vec<_> = ids.iter().map(|id| layout::workflow(environment, *id)).collect();
    let found = view.engine().parts.decoded.prepared.find_readable(view, &keys)?;
    let workflows: HashMap<_, _> = ids.into_iter().zip(found).collect();
    for notification in notifications.iter_mut() {
        notification.subscriber = subscribers.get(&notification.subscriber_id).cloned().flatten();
        let workflow = notification.workflow_id.and_then(|id| workflows.get(&id)?.as_deref());
        notification.workflow = workflow.map(Into::into);
    }
    leases::fill_in(view, notifications)
}
