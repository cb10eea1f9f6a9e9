//! World of a scenario: an engine with a manual clock, a seed and a recorder.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use store::memory::MemoryStore;
use store::sealing::Sealable;
use store::{Record, Store, Table};
use tidings::ids::{NotificationId, SubscriberId};
use tidings::integration::Integration;
use tidings::message::{Message, MessageQuery};
use tidings::notification::{Notification, NotificationQuery};
use tidings::page::{Page, PageQuery, Total};
use tidings::subscriber::Subscriber;
use tidings::time::Timestamp;
use tidings::trigger::TriggerReceipt;
use tidings::unsubscribe::UnsubscribeLinks;
use tidings::workflow::Workflow;
use tidings::{
    Builder, Clock, Delivery, DeliveryReport, Engine, ManualClock, Organization, Provider,
    ProviderReceipt, RecordingProvider, Scope, SeededEntropy, SendError,
};

use crate::disk::Disk;
use crate::interposed::{Interposed, Point};
pub use crate::parsed;
use crate::postgres::{self, Server};
use crate::{sealed, tables};

/// An id that no record has.
pub const NO_ID: &str = "01999999-0000-7000-8000-000000000000";

/// Start time of the clock of every world.
pub const START: &str = "2026-11-20T12:00:00.000Z";

/// An engine, and an environment in it.
#[derive(Debug)]
pub struct World {
    /// The engine.
    pub engine: Engine,
    /// The clock of the engine.
    pub clock: ManualClock,
    /// The provider of the engine.
    pub recorder: RecordingProvider,
    /// The organization `acme`.
    pub organization: Organization,
    /// The environment `Development` of the organization.
    pub env: Scope,
    /// The store of the engine.
    pub store: Interposed,
}

/// Backend of the store of a world.
#[derive(Clone, Debug)]
pub enum Backend {
    /// In memory. A restart keeps the store.
    Memory(MemoryStore),
    /// On a disk, by redb.
    Redb(Disk),
    /// In a schema of a PostgreSQL server.
    Postgres(postgres::Place),
}

/// A clock that is ahead by decades for one reading.
#[derive(Clone, Debug)]
pub struct Blip {
    right: ManualClock,
    /// Number of readings before that one.
    left: Arc<AtomicUsize>,
}

impl Blip {
    /// A clock that is ahead after so many readings, and otherwise shows what `right` does.
    pub fn behind(readings: usize, right: &ManualClock) -> Self {
        Self { right: right.clone(), left: Arc::new(AtomicUsize::new(readings)) }
    }
}

impl Clock for Blip {
    fn now(&self) -> Timestamp {
        // It wraps around behind zero, so that one reading is ahead.
        match self.left.fetch_sub(1, Ordering::Relaxed) {
            0 => time("2099-01-01T00:00:00.000Z"),
            _ => self.right.now(),
        }
    }
}

/// The values in a store, each under the name of its table and its key.
pub type Dump = BTreeMap<(&'static str, Vec<u8>), Vec<u8>>;

/// Runs `scenario` in a world of its own on each backend.
pub fn on_both(scenario: impl Fn(World)) {
    on_both_with(|builder| builder, scenario);
}

/// Runs `scenario` in a world of its own on each backend, with an engine that `configure` changes.
pub fn on_both_with(configure: impl Fn(Builder) -> Builder, scenario: impl Fn(World)) {
    for backend in Backend::all() {
        scenario(World::with(Interposed::over(backend.open()), &configure));
    }
}

impl World {
    /// A world in memory.
    pub fn in_memory() -> Self {
        Self::with(Interposed::default(), |builder| builder)
    }

    /// A world in `store`, with an engine that `configure` changes.
    pub fn with(store: Interposed, configure: impl FnOnce(Builder) -> Builder) -> Self {
        let clock = ManualClock::at(time(START));
        let recorder = RecordingProvider::default();
        let builder = builder(&clock, 7).default_provider(recorder.clone());
        let engine = configure(builder).build(store.clone());
        let (organization, env) = homes(&engine);
        Self { engine, clock, recorder, organization, env, store }
    }

    /// Puts another engine in the place of this one: another process, or this one after a restart.
    pub fn restart_with(&mut self, configure: impl FnOnce(Builder) -> Builder) {
        self.engine = self.engine_with(configure);
        (self.organization, self.env) = homes(&self.engine);
    }

    /// Another engine on the same store, at the same time, with the same recorder: what a second
    /// process would be, or this one after a crash.
    pub fn another_engine(&self) -> Engine {
        self.engine_with(|builder| builder)
    }

    /// Another engine like that, which `configure` changes.
    pub fn engine_with(&self, configure: impl FnOnce(Builder) -> Builder) -> Engine {
        let builder = builder(&self.clock, 8).default_provider(self.recorder.clone());
        configure(builder).build(self.store.clone())
    }

    /// An engine on the same store whose process is killed by the first message that it sends,
    /// having shown the message to `watch`.
    pub fn mortal_engine(
        &self,
        configure: impl FnOnce(Builder) -> Builder,
        watch: impl Fn(&Delivery) + Send + Sync + 'static,
    ) -> Engine {
        let store = Interposed::new(self.store.clone());
        let provider = Deadly { store: store.clone(), watch: Box::new(watch) };
        configure(builder(&self.clock, 9)).default_provider(provider).build(store)
    }

    /// Runs `operation` with a store that stops working after so many transactions, and works
    /// again afterwards.
    pub fn interrupted<T>(&self, after: usize, operation: impl FnOnce() -> T) -> T {
        self.store.stop(Point::Write, after);
        let answer = operation();
        self.store.recover();
        answer
    }

    /// The environment `Production` of the same organization.
    pub fn production(&self) -> Scope {
        let production = self.organization.environments().production().unwrap();
        self.engine.environment(production.id).unwrap()
    }

    /// The environment `Development` of another organization.
    pub fn elsewhere(&self) -> Scope {
        let other = self.engine.organization("other").unwrap();
        self.engine.environment(other.environments().development().unwrap().id).unwrap()
    }

    /// Everything in the store.
    pub fn dump(&self) -> Dump {
        self.dump_without(&[])
    }

    /// Everything in the store, but for these tables.
    pub fn dump_without(&self, tables: &[Table]) -> Dump {
        let mut entries = tables::dump(&self.store);
        entries.retain(|(table, ..)| !tables.contains(table));
        entries.into_iter().map(|(table, key, value)| ((table.name(), key), value)).collect()
    }

    /// Number of entries in a table.
    pub fn rows(&self, table: Table) -> usize {
        tables::of(&self.store, table).len()
    }

    /// The store with the keys of the world, if it is sealed.
    pub fn opened(&self) -> Sealable {
        Sealable::new(Arc::new(self.store.clone()), sealed::keyring_of(&self.store))
    }

    /// Every record of a kind.
    pub fn records<R: Record>(&self) -> Vec<R> {
        tables::records(&self.opened())
    }

    /// Checks that `operation` is refused with `refusal`, its status and its text, and leaves
    /// nothing behind.
    #[track_caller]
    pub fn refuses<T: fmt::Debug>(
        &self,
        refusal: &str,
        operation: impl FnOnce() -> tidings::Result<T>,
    ) {
        let before = tables::dump(&self.store);
        let error = operation().unwrap_err();
        assert_eq!(format!("{} {error}", error.status()), refusal);
        assert!(tables::dump(&self.store) == before, "`{error}` left something behind");
    }

    /// Checks that `operation` changes nothing in the store, and returns what it does.
    #[track_caller]
    pub fn unchanged<T>(&self, operation: impl FnOnce() -> T) -> T {
        let before = tables::dump(&self.store);
        let answer = operation();
        assert!(tables::dump(&self.store) == before, "the operation left something behind");
        answer
    }

    /// The time on the clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Moves the clock forward by one second, and returns the time then.
    pub fn tick(&self) -> Timestamp {
        self.pass(Duration::from_secs(1))
    }

    /// Moves the clock forward by `span`, and returns the time then.
    pub fn pass(&self, span: Duration) -> Timestamp {
        self.clock.advance(span);
        self.now()
    }

    /// Creates an active workflow of that identifier with an in-app step.
    pub fn in_app_workflow(&self, identifier: &str) -> Workflow {
        self.workflow_of(identifier, &[in_app()])
    }

    /// Creates an active workflow of that identifier with those steps.
    pub fn workflow_of(&self, identifier: &str, steps: &[Value]) -> Workflow {
        self.workflow(workflow_of(identifier, steps))
    }

    /// Creates the workflow that `create` describes.
    pub fn workflow(&self, create: Value) -> Workflow {
        self.env.workflows().create(&parsed(create)).unwrap()
    }

    /// Creates the subscriber that `create` describes.
    pub fn subscriber(&self, create: Value) -> Subscriber {
        self.env.subscribers().create(&parsed(create)).unwrap()
    }

    /// Creates a subscriber of that id and nothing else.
    pub fn bare_subscriber(&self, id: &str) -> Subscriber {
        self.subscriber(json!({ "subscriberId": id }))
    }

    /// Creates the integration that `create` describes.
    pub fn integration(&self, create: Value) -> Integration {
        self.env.integrations().create(&parsed(create)).unwrap()
    }

    /// Creates an active integration of that identifier, which is the provider's name as well.
    pub fn active_integration(&self, channel: &str, identifier: &str) -> Integration {
        self.integration(active_integration(channel, identifier))
    }

    /// Makes the trigger that `trigger` describes.
    pub fn trigger(&self, trigger: Value) -> TriggerReceipt {
        self.env.events().trigger(&parsed(trigger)).unwrap()
    }

    /// Triggers `workflow` for the subscriber of that id, and returns the notification.
    pub fn notify(&self, workflow: &str, subscriber: &str) -> NotificationId {
        let receipt = self.trigger(json!({ "name": workflow, "to": subscriber }));
        only(receipt.notifications).notification_id
    }

    /// The notification of that id.
    pub fn notification(&self, id: NotificationId) -> Notification {
        self.env.notifications().get(id).unwrap()
    }

    /// The notifications that match `query`.
    pub fn notifications(&self, query: Value) -> Vec<Notification> {
        let query: NotificationQuery = parsed(query);
        self.env.notifications().list(&query).unwrap().data
    }

    /// The messages in the inbox of the subscriber of that id, newest first.
    pub fn inbox(&self, subscriber: &str) -> Vec<Message> {
        self.env.inbox(id(subscriber)).unwrap().list(&MessageQuery::default()).unwrap().data
    }

    /// The texts in the inbox of the subscriber of that id, oldest first.
    pub fn texts(&self, subscriber: &str) -> Vec<String> {
        let mut messages = self.inbox(subscriber);
        messages.reverse();
        names(&messages, |message| message.text().unwrap_or_default().to_owned())
    }

    /// The statuses of the jobs of a notification.
    pub fn statuses(&self, id: NotificationId) -> Vec<String> {
        names(&self.notification(id).jobs, |job| job.status.as_str())
    }

    /// The words in the log of a job of a notification.
    pub fn log(&self, id: NotificationId, job: usize) -> Vec<String> {
        names(&self.notification(id).jobs[job].execution_details, |entry| entry.detail)
    }

    /// The messages of the subscriber of that id on every channel, newest first.
    pub fn messages(&self, subscriber: &str) -> Vec<Message> {
        self.env.messages().list(id(subscriber), &MessageQuery::default()).unwrap().data
    }

    /// Runs due jobs.
    pub fn run_due(&self) -> Counts {
        self.engine.delivery().run_due(usize::MAX).unwrap().into()
    }
}

/// Counts of a delivery report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are those of the report")]
pub struct Counts {
    pub sent: usize,
    pub retried: usize,
    pub failed: usize,
    pub skipped: usize,
    pub superseded: usize,
}

impl From<DeliveryReport> for Counts {
    fn from(report: DeliveryReport) -> Self {
        let DeliveryReport { sent, retried, failed, skipped, superseded, .. } = report;
        Self { sent, retried, failed, skipped, superseded }
    }
}

impl Backend {
    /// One of each kind.
    pub fn both() -> [Self; 2] {
        [Self::Memory(MemoryStore::default()), Self::Redb(Disk::new())]
    }

    /// One of each kind, and a schema in PostgreSQL if [`postgres::WANTED`] is set.
    pub fn all() -> Vec<Self> {
        Self::both().into_iter().chain(Self::on_a_server()).collect()
    }

    /// A schema in PostgreSQL, if [`postgres::WANTED`] is set.
    pub fn on_a_server() -> Option<Self> {
        Server::wanted().map(|server| Self::Postgres(server.place()))
    }

    /// The store in it.
    pub fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::Memory(store) => Arc::new(store.clone()),
            Self::Redb(disk) => Arc::new(disk.open()),
            Self::Postgres(place) => Arc::new(place.open()),
        }
    }

    /// Returns the backend as another process finds it after a kill. A memory store and a server
    /// outlive the kill.
    #[must_use]
    pub fn after_kill(&self) -> Self {
        match self {
            Self::Memory(store) => Self::Memory(store.clone()),
            Self::Redb(disk) => Self::Redb(disk.after_kill()),
            Self::Postgres(place) => Self::Postgres(place.clone()),
        }
    }
}

// A provider that kills its process, having shown the message to `watch`.
struct Deadly {
    store: Interposed,
    watch: Box<dyn Fn(&Delivery) + Send + Sync>,
}

impl fmt::Debug for Deadly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deadly")
    }
}

impl Provider for Deadly {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        (self.watch)(delivery);
        self.store.kill();
        Ok(ProviderReceipt::default())
    }
}

fn builder(clock: &ManualClock, seed: u64) -> Builder {
    let links = UnsubscribeLinks::new("https://shop.example.org/unsubscribe").unwrap();
    let builder = Engine::builder().unsubscribe_links(links);
    sealed::if_wanted(builder.clock(clock.clone()).entropy(SeededEntropy::new(seed)))
}

fn homes(engine: &Engine) -> (Organization, Scope) {
    let organization = engine.organization("acme").expect("a name");
    let env = organization.development().expect("the environment is always there");
    (organization, env)
}

/// A subscriber id.
pub fn id(id: &str) -> SubscriberId {
    SubscriberId::new(id).unwrap()
}

/// A time.
pub fn time(time: &str) -> Timestamp {
    time.parse().unwrap()
}

/// Error text for input that cannot be read as a `T`.
#[track_caller]
pub fn unreadable<T: DeserializeOwned + fmt::Debug>(json: Value) -> String {
    serde_json::from_value::<T>(json).unwrap_err().to_string()
}

/// JSON of a record on the wire.
pub fn wire(record: impl Serialize) -> Value {
    serde_json::to_value(record).unwrap()
}

/// The only item.
#[track_caller]
pub fn only<T: fmt::Debug>(items: impl IntoIterator<Item = T>) -> T {
    let items: Vec<T> = items.into_iter().collect();
    let [item] = <[T; 1]>::try_from(items).expect("one item");
    item
}

/// `record` after `change`.
pub fn changed<T>(mut record: T, change: impl FnOnce(&mut T)) -> T {
    change(&mut record);
    record
}

/// Every page of a list, which is the same on the way back as on the way there.
#[track_caller]
pub fn pages<T: Clone + fmt::Debug + PartialEq>(
    query: &PageQuery,
    list: impl Fn(PageQuery) -> Page<T>,
) -> Vec<Vec<T>> {
    let mut pages = vec![list(query.clone())];
    while let Some(next) = &pages[pages.len() - 1].next {
        let after = query.clone().after(next);
        pages.push(list(after));
    }
    assert_eq!(pages[0].previous, None);
    for two in pages.windows(2) {
        let before = two[1].previous.clone();
        assert_eq!(list(changed(query.clone(), |page| page.before = before)), two[0]);
    }
    let total = pages.iter().map(|page| page.data.len()).sum();
    assert!(pages.iter().all(|page| page.total == Total::Exactly(total)), "{pages:?}");
    pages.into_iter().map(|page| page.data).collect()
}

/// Names of `items`.
pub fn names<T, N: ToString>(items: &[T], name: impl Fn(&T) -> N) -> Vec<String> {
    items.iter().map(|item| name(item).to_string()).collect()
}

/// An active workflow of that identifier with those steps.
pub fn workflow_of(identifier: &str, steps: &[Value]) -> Value {
    json!({ "workflowId": identifier, "name": identifier, "active": true, "steps": steps })
}

/// An active integration of that identifier, which is the provider's name as well.
pub fn active_integration(channel: &str, identifier: &str) -> Value {
    json!({
        "identifier": identifier,
        "providerId": identifier,
        "channel": channel,
        "active": true,
    })
}

/// A step that puts a message into the inbox.
pub fn in_app() -> Value {
    say("Hello {{ payload.name }}")
}

/// A step that puts a message with that text into the inbox.
pub fn say(body: &str) -> Value {
    json!({ "type": "in_app", "template": { "body": body } })
}

/// A step of that type, a delay or a digest, that takes an hour.
pub fn hour(kind: &str) -> Value {
    json!({ "type": kind, "metadata": { "type": "regular", "amount": 1, "unit": "hours" } })
}

/// A step that sends an e-mail.
pub fn email() -> Value {
    json!({ "type": "email", "template": { "subject": "Hello", "body": "<p>Hello</p>" } })
}

/// A step that sends a text message.
pub fn sms() -> Value {
    json!({ "type": "sms", "template": { "body": "Hello" } })
}

/// `json` with `fields` besides.
pub fn with(mut json: Value, fields: Value) -> Value {
    let Value::Object(fields) = fields else { panic!("fields are an object") };
    json.as_object_mut().unwrap().extend(fields);
    json
}

/// A filter that holds where the payload has `field` with that value.
pub fn payload_is(field: &str, value: &str) -> Value {
    let part = json!({ "field": field, "value": value, "operator": "EQUAL", "on": "payload" });
    json!({ "isNegated": false, "type": "GROUP", "value": "AND", "children": [part] })
}
