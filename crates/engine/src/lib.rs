#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! * [`Engine`] opens a store. An [`Organization`] has environments, and a [`Scope`] is the inside of
//!   one: a function for each group of operations, such as [`Scope::workflows`] and
//!   [`Scope::inbox`].
//! * Records and requests have a module for each entity, such as [`trigger`], [`workflow`] and
//!   [`subscriber`]. Steps of workflows are in [`step`], ids in [`ids`].
//! * [`json`] and [`query`] read the input of clients, [`error`] has the refusals.
//! * A [`Provider`] sends messages, and the [`DeliveryQueue`] calls the providers.
//! * [`store`] has the backends, and the contract for one of your own.
//! * [`guide`] has a chapter for each part.

mod backfill;
#[cfg(feature = "bench-data")]
pub mod bench_data;
mod builder;
pub mod check;
mod clock;
mod commit;
mod copies;
mod damage;
mod entropy;
pub mod error;
mod guarded;
pub mod guide;
mod heal;
mod host;
mod idempotency;
pub mod observer;
mod pipeline;
mod repair;
mod resources;
mod scope;
pub mod sealing;
pub mod store;
mod trace;
mod tx;
mod watch;
mod worker;

use std::sync::{Arc, Weak};

use ::activity::ActivityIndex;
use ::domain::convert::IntoChecked;
use ::domain::ids::OrganizationId;
use ::domain::time::Timestamp;
use ::store::Store;
use ::store::memory::MemoryStore;

pub use ::domain::{
    api_key, channel, circuit, condition, connection, contact, content, context, convert,
    credentials, dead_letter, endpoint, environment, explain, filter, ids, integration, job, json,
    layout, limits, message, notification, page, patch, person, preference, preview, quarantine,
    query, receipt, retention, schedule, secret, step, subscriber, subscription, suppression,
    template, time, topic, translation, trigger, unsubscribe, vocabulary, workflow,
};

pub use ::domain::plan::Address;
pub use ::domain::task::TaskClass;
pub use ::store::Progress;
pub use builder::Builder;
pub use clock::{Clock, ManualClock, SystemClock};
pub use entropy::{Entropy, OsEntropy, SeededEntropy};
pub use error::{Entity, Error, Rejection, Result, Unauthorized};
pub use pipeline::delivery::{
    Call, Delivery, DeliveryFailure, DeliveryQueue, DeliveryReport, FailureReason, Handler,
    Inbound, InboundReport, IntegrationStats, IntegrationTestResult, LaneStats, Provider,
    ProviderReceipt, QueueDepth, QueueStats, RecordingProvider, SendError,
};
pub use pipeline::receipts::BulkReceipts;
pub use pipeline::trigger::Events;
pub use repair::RepairReport;
pub use resources::connections::ChannelConnections;
pub use resources::contexts::Contexts;
pub use resources::dead_letters::DeadLetters;
pub use resources::deletion::Deletion;
pub use resources::endpoints::ChannelEndpoints;
pub use resources::environments::Environments;
pub use resources::inbox::{Inbox, InboxChanged};
pub use resources::integrations::Integrations;
pub use resources::keys::ApiKeys;
pub use resources::layouts::Layouts;
pub use resources::messages::Messages;
pub use resources::notifications::Notifications;
pub use resources::preferences::SubscriberPreferences;
pub use resources::quarantine::Quarantine;
pub use resources::subscribers::Subscribers;
pub use resources::suppressions::Suppressions;
pub use resources::topics::Topics;
pub use resources::translations::Translations;
pub use resources::workflows::Workflows;
pub use scope::{Organization, Scope};
pub use worker::{Worker, WorkerBuilder, WorkerError, WorkerReport};

// What a host moves into threads and tasks, and shares between them.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    const fn is_sent<T: Send>() {}
    is_shared::<Engine>();
    is_shared::<Organization>();
    is_shared::<Scope>();
    is_shared::<Error>();
    is_sent::<Worker>();
    is_sent::<InboxChanged>();
};

/// A notification engine. Cheap to clone; clones share everything. Its operations are synchronous: a write
/// waits for the disk, and in an asynchronous host belongs on a thread that may block.
#[derive(Clone, Debug)]
pub struct Engine {
    parts: Arc<builder::Parts>,
}

/// Reference to an engine that does not keep its file open, for an observer or a provider, which the engine
/// owns. An [`Engine`] in one of them would never be dropped.
///
/// ```
/// use std::sync::{Arc, OnceLock};
/// use tidings::{Engine, WeakEngine, observer::Event, store::memory::MemoryStore};
///
/// let cell: Arc<OnceLock<WeakEngine>> = Arc::default();
/// let own = Arc::clone(&cell);
/// let engine = Engine::builder()
///     .observer(move |_: &Event| {
///         let engine = own.get().and_then(WeakEngine::upgrade);
///         drop(engine.map(|engine| engine.delivery().next_due()));
///     })
///     .build(MemoryStore::default());
/// cell.set(engine.downgrade()).expect("it is set once");
///
/// let own = engine.downgrade();
/// drop(engine);
/// assert!(own.upgrade().is_none());
/// ```
#[derive(Clone, Debug)]
pub struct WeakEngine {
    parts: Weak<builder::Parts>,
}

impl WeakEngine {
    /// Returns the engine. Returns `None` if it was dropped.
    pub fn upgrade(&self) -> Option<Engine> {
        self.parts.upgrade().map(|parts| Engine { parts })
    }
}

impl Engine {
    /// Returns an engine on the file at `path`. A missing file is created, see
    /// [`open_existing`](Self::open_existing).
    ///
    /// # Errors
    ///
    /// [`Error::Store`], if the file is no store, damaged, sealed, newer than this version, or open
    /// elsewhere.
    #[cfg(feature = "redb")]
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Self::builder().open(path)
    }

    /// Returns an engine on the file at `path`, which must have a store, as for a tool that looks at
    /// one.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); [`NoStore`](::store::Error::NoStore), if the file does not exist or is
    /// empty.
    #[cfg(feature = "redb")]
    pub fn open_existing(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Self::builder().open_existing(path)
    }

    /// Returns an engine that keeps its records in memory until it is dropped.
    pub fn in_memory() -> Self {
        Self::builder().build(MemoryStore::default())
    }

    /// Returns a reference that does not keep the file open.
    #[must_use]
    pub fn downgrade(&self) -> WeakEngine {
        WeakEngine { parts: Arc::downgrade(&self.parts) }
    }

    /// Returns a builder, to choose the parts of an engine.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns an organization. An organization needs no creation.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the id is empty, longer than 255 bytes, or has control characters.
    pub fn organization(&self, id: impl IntoChecked<OrganizationId>) -> Result<Organization> {
        Ok(Organization::new(self.clone(), id.into_checked()?))
    }

    /// Returns the delivery queue of all environments.
    pub fn delivery(&self) -> DeliveryQueue<'_> {
        DeliveryQueue::new(self)
    }

    /// Returns the quarantine of all environments.
    pub fn quarantine(&self) -> Quarantine<'_> {
        Quarantine::new(self)
    }

    fn now(&self) -> Timestamp {
        self.parts.observer.read(self.parts.clock.as_ref())
    }

    fn activity(&self) -> &ActivityIndex {
        &self.parts.activity
    }

    fn store(&self) -> &dyn Store {
        self.parts.store.as_ref()
    }
}
