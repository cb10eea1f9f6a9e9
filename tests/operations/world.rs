//! What every scenario starts from: an engine with a manual clock, a seed and an outbox.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tidings::ids::{NotificationId, SubscriberId};
use tidings::integration::Integration;
use tidings::message::{Message, MessageQuery};
use tidings::notification::{Notification, NotificationQuery};
use tidings::page::{Page, PageQuery, Total};
use tidings::store::memory::MemoryStore;
use tidings::store::redb::RedbStore;
use tidings::store::{Order, ReadBody, Store, Table, WriteBody};
use tidings::subscriber::Subscriber;
use tidings::time::Timestamp;
use tidings::trigger::TriggerReceipt;
use tidings::workflow::Workflow;
use tidings::{
    Builder, Clock, Delivery, DeliveryReport, Engine, ManualClock, Organization, Outbox, Scope,
    SeededEntropy,
};

use crate::mortal::mortal;

/// When the clock of every world starts.
pub const START: &str = "2026-11-20T12:00:00.000Z";

/// An engine, and an environment in it.
pub struct World {
    pub engine: Engine,
    pub clock: ManualClock,
    pub outbox: Outbox,
    pub organization: Organization,
    pub env: Scope,
    store: Shared,
}

/// Everything in a store.
pub type Dump = BTreeMap<(&'static str, Vec<u8>), Vec<u8>>;

// A store that several engines can have, and that can be looked into.
#[derive(Clone, Debug)]
pub struct Shared(Arc<dyn Store>);

/// Runs `scenario` in a world of its own on each backend.
pub fn on_both(scenario: impl Fn(World)) {
    on_both_with(|builder| builder, scenario);
}

/// Runs `scenario` in a world of its own on each backend, with an engine that `configure` has the
/// last word about.
pub fn on_both_with(configure: impl Fn(Builder) -> Builder, scenario: impl Fn(World)) {
    scenario(World::on(MemoryStore::default(), &configure));
    let folder = tempfile::tempdir().unwrap();
    let file = RedbStore::open(folder.path().join("tidings.redb")).unwrap();
    scenario(World::on(file, &configure));
}

impl World {
    fn on(store: impl Store, configure: impl Fn(Builder) -> Builder) -> Self {
        let clock = ManualClock::at(time(START));
        let outbox = Outbox::default();
        let store = Shared(Arc::new(store));
        let builder = Engine::builder()
            .clock(clock.clone())
            .entropy(SeededEntropy::new(7))
            .default_provider(outbox.clone());
        let engine = configure(builder).build(store.clone());
        let organization = engine.organization("acme".try_into().unwrap());
        let development = organization.environments().development().unwrap();
        let env = engine.environment(development.id).unwrap();
        Self { engine, clock, outbox, organization, env, store }
    }

    /// Another engine on the same store, at the same time, with the same outbox: what a second
    /// process would be, or this one after a crash.
    pub fn another_engine(&self) -> Engine {
        self.engine_with(|builder| builder)
    }

    /// The same, with an engine that `configure` has the last word about.
    pub fn engine_with(&self, configure: impl FnOnce(Builder) -> Builder) -> Engine {
        let builder = Engine::builder()
            .clock(self.clock.clone())
            .entropy(SeededEntropy::new(8))
            .default_provider(self.outbox.clone());
        configure(builder).build(self.store.clone())
    }

    /// An engine on the same store whose process dies of the first message that it sends, having
    /// shown it to `watch`: from then on it cannot reach the store.
    pub fn mortal_engine(
        &self,
        configure: impl FnOnce(Builder) -> Builder,
        watch: impl Fn(&Delivery) + Send + Sync + 'static,
    ) -> Engine {
        let (store, provider) = mortal(self.store.clone(), watch);
        let builder = Engine::builder().clock(self.clock.clone()).entropy(SeededEntropy::new(9));
        configure(builder).default_provider(provider).build(store)
    }

    /// The environment `Production` of the same organization.
    pub fn production(&self) -> Scope {
        let production = self.organization.environments().production().unwrap();
        self.engine.environment(production.id).unwrap()
    }

    /// The environment `Development` of another organization.
    pub fn elsewhere(&self) -> Scope {
        let other = self.engine.organization("other".try_into().unwrap());
        self.engine.environment(other.environments().development().unwrap().id).unwrap()
    }

    /// The store, for those who want to do something to it.
    pub fn store(&self) -> &impl Store {
        &self.store
    }

    /// Everything in the store.
    pub fn dump(&self) -> Dump {
        let mut dump = Dump::new();
        let everything = (Bound::Unbounded, Bound::Unbounded);
        let read = self.store.read(&mut |snapshot| {
            for table in Table::ALL {
                snapshot.scan(table, &everything, Order::Ascending, &mut |key, value| {
                    dump.insert((table.name(), key.into()), value.into());
                    ControlFlow::Continue(())
                })?;
            }
            Ok(())
        });
        read.unwrap();
        dump
    }

    /// Checks that `operation` is refused with `refusal`, its status and its text, and leaves
    /// nothing behind.
    #[track_caller]
    pub fn refuses<T: fmt::Debug>(
        &self,
        refusal: &str,
        operation: impl FnOnce() -> tidings::Result<T>,
    ) {
        let before = self.dump();
        let error = operation().unwrap_err();
        assert_eq!(format!("{} {error}", error.status()), refusal);
        assert!(self.dump() == before, "`{error}` left something behind");
    }

    /// Checks that `operation` changes nothing in the store, and returns what it does.
    #[track_caller]
    pub fn unchanged<T>(&self, operation: impl FnOnce() -> T) -> T {
        let before = self.dump();
        let answer = operation();
        assert!(self.dump() == before, "the operation left something behind");
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
        self.env.workflows().create(parsed(create)).unwrap()
    }

    /// Creates the subscriber that `create` describes.
    pub fn subscriber(&self, create: Value) -> Subscriber {
        self.env.subscribers().create(parsed(create)).unwrap()
    }

    /// Creates a subscriber of that id and nothing else.
    pub fn bare_subscriber(&self, id: &str) -> Subscriber {
        self.subscriber(json!({ "subscriberId": id }))
    }

    /// Creates the integration that `create` describes.
    pub fn integration(&self, create: Value) -> Integration {
        self.env.integrations().create(parsed(create)).unwrap()
    }

    /// Creates an active integration of that identifier, which is the provider's name as well.
    pub fn active_integration(&self, channel: &str, identifier: &str) -> Integration {
        self.integration(active_integration(channel, identifier))
    }

    /// Triggers what `trigger` describes.
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
        self.env.inbox(&id(subscriber)).list(&MessageQuery::default()).unwrap().data
    }

    /// The messages of the subscriber of that id on every channel, newest first.
    pub fn messages(&self, subscriber: &str) -> Vec<Message> {
        self.env.messages().list(&id(subscriber), &MessageQuery::default()).unwrap().data
    }

    /// Runs what is due.
    pub fn run_due(&self) -> DeliveryReport {
        self.engine.delivery().run_due(usize::MAX).unwrap()
    }
}

impl Store for Shared {
    fn read(&self, body: &mut ReadBody<'_>) -> tidings::store::Result<()> {
        self.0.read(body)
    }

    fn write(&self, body: &mut WriteBody<'_>) -> tidings::store::Result<()> {
        self.0.write(body)
    }
}

/// A subscriber id.
pub fn id(id: &str) -> SubscriberId {
    SubscriberId::new(id).unwrap()
}

/// A time.
pub fn time(time: &str) -> Timestamp {
    time.parse().unwrap()
}

/// The input or record that `json` describes.
#[track_caller]
pub fn parsed<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}

/// What is said about input that cannot be read as a `T`.
#[track_caller]
pub fn unreadable<T: DeserializeOwned + fmt::Debug>(json: Value) -> String {
    serde_json::from_value::<T>(json).unwrap_err().to_string()
}

/// What a record looks like on the wire.
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

/// Every page of a list, which is the same on the way back as on the way there.
#[track_caller]
pub fn pages<T: Clone + fmt::Debug + PartialEq>(
    query: &PageQuery,
    list: impl Fn(PageQuery) -> Page<T>,
) -> Vec<Vec<T>> {
    let mut pages = vec![list(query.clone())];
    while let Some(next) = &pages[pages.len() - 1].next {
        let after = Some(next.clone());
        pages.push(list(PageQuery { after, ..query.clone() }));
    }
    assert_eq!(pages[0].previous, None);
    for two in pages.windows(2) {
        let before = two[1].previous.clone();
        assert_eq!(list(PageQuery { before, ..query.clone() }), two[0]);
    }
    let total = pages.iter().map(|page| page.data.len()).sum();
    assert!(pages.iter().all(|page| page.total == Total::Exactly(total)), "{pages:?}");
    pages.into_iter().map(|page| page.data).collect()
}

/// What each of `items` is called.
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
    json!({ "type": "in_app", "template": { "body": "Hello {{ payload.name }}" } })
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
