//! Operations on the activity list.

mod deletion;
mod events;
mod index;
mod lookup;
mod search;

use std::slice;
use std::sync::Arc;

use domain::convert::IntoChecked;
use domain::digest::WindowEvent;
use domain::ids::{NotificationId, StepId, StepRef};
use domain::job::{JobDigest, JobStatus};
use domain::message::Message;
use domain::notification::{Notification, NotificationPage, NotificationQuery, ResendRefusal};
use domain::page::ForwardPage;
use domain::step::DigestEvent;
use store::{Order, ReadRecords, layout};

use crate::damage::if_readable;
use crate::pipeline::facts::workflow_of;
use crate::pipeline::notification_tx::NotificationTx;
use crate::tx::View;
use crate::{Entity, Error, Rejection, Result, Scope};

pub(crate) use self::deletion::clear_runs;
pub(crate) use self::index::{rebuild, rebuild_activity};
pub(crate) use self::lookup::{exists, find, find_again, find_kept, of_work};

use self::lookup::{fill_in, read};
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
    /// [`Error::Invalid`], if the limit is not between 1 and 50, if `earliest` comes after `latest`, or if a list of
    /// the query has more than 1,000 values. It names the field as on the wire, such as `after` for `earliest`.
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
}

fn not_resent(step: StepId, reason: ResendRefusal) -> Error {
    Error::Rejected(Rejection::NotResent { step, reason })
}

fn missing(id: NotificationId) -> Error {
    Error::not_found(Entity::Notification, id)
}
