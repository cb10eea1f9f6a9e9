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

use std::sync::Arc;

use ::activity::ActivityIndex;
use ::domain::api_key::ApiKey;
use ::domain::convert::IntoChecked;
use ::domain::environment::{Environment, Home};
use ::domain::ids::{EnvironmentId, OrganizationId};
use ::domain::time::Timestamp;
use ::store::counters::ReadCounters;
use ::store::memory::MemoryStore;
use ::store::{
    Change, ChangeKind, HostTransaction, Snapshot, Store, Table, Transaction, WriteBody, WriteScope,
};

pub use ::domain::{
    api_key, channel, circuit, condition, connection, contact, content, context, convert,
    credentials, dead_letter, endpoint, environment, explain, filter, ids, integration, job, json,
    layout, limits, message, notification, page, patch, person, preference, preview, quarantine,
    query, receipt, retention, schedule, secret, step, subscriber, subscription, suppression,
    template, time, topic, translation, trigger, unsubscribe, vocabulary, workflow,
};
use entropy::Seed;
use tx::{Draft, Recording, Tx};

pub use ::domain::plan::Address;
pub use ::domain::task::TaskClass;
pub use ::store::Progress;
pub use builder::Builder;
pub use clock::{Clock, ManualClock, SystemClock};
pub use entropy::{Entropy, OsEntropy, SeededEntropy};
pub use error::{Entity, Error, Rejection, Result, Unauthorized};
pub use pipeline::delivery::{
    Call, Delivery, DeliveryFailure, DeliveryQueue, DeliveryReport, FailureReason, Handler,
    Inbound, InboundReport, IntegrationStats, IntegrationTest, LaneStats, Provider,
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

/// A notification engine. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct Engine {
    parts: Arc<builder::Parts>,
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

    /// Returns the scope of an environment.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such environment.
    pub fn environment(&self, id: impl IntoChecked<EnvironmentId>) -> Result<Scope> {
        self.scope_of(id.into_checked()?)
    }

    fn scope_of(&self, id: EnvironmentId) -> Result<Scope> {
        let get = |snapshot: &dyn Snapshot| {
            let key = ::store::layout::environment_id(id);
            let environment =
                resources::environments::indexed(snapshot, &key, |one: &Environment| one.id == id)?;
            let environment = environment.filter(|one| !one.is_deleted());
            environment.ok_or_else(|| Error::not_found(Entity::Environment, id))
        };
        trace::operation("engine.environment", Some(id), || self.read(get))
            .map(|environment| Scope::new(self.clone(), &environment))
    }

    /// Returns the scope of the environment of an API key. `authorization` is the value of an
    /// `Authorization` header: `ApiKey` in any case, a space and the key.
    ///
    /// # Errors
    ///
    /// [`Error::Unauthorized`], if the header is malformed, or its key is unknown or revoked. The
    /// error holds no part of the header.
    pub fn authenticate(&self, authorization: &str) -> Result<Scope> {
        let key = Unauthorized::key_in(authorization)?;
        // The time of a look-up by hash reveals nothing about the key.
        let hash = resources::environments::hash(key);
        let find = |snapshot: &dyn Snapshot| {
            let key = ::store::layout::api_key(&hash);
            let is_it = |one: &ApiKey| one.hash == hash;
            let key = resources::environments::indexed(snapshot, &key, is_it)?;
            key.ok_or(Error::Unauthorized(Unauthorized::UnknownKey))
        };
        trace::operation("engine.authenticate", None, || self.read(find))
            .map(|key| Scope::inside(self.clone(), key.home()))
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
        self.parts.settings.observer.read(self.parts.clock.as_ref())
    }

    fn read<T>(&self, body: impl FnMut(&dyn Snapshot) -> Result<T>) -> Result<T> {
        ::store::read(self.store(), body)
    }

    // The same for a body without effects, which the store may run several times. It is no generic
    // function, so that it is compiled once.
    fn read_pure(&self, body: &mut dyn FnMut(&dyn Snapshot) -> Result<()>) -> Result<()> {
        let mut outcome = None;
        self.store().read_pure(&mut |snapshot| {
            outcome = Some(body(snapshot));
            Ok(())
        })?;
        outcome.ok_or_else(::store::not_run)?
    }

    fn write<T>(&self, now: Timestamp, body: impl FnMut(&mut Draft<'_>) -> Result<T>) -> Result<T> {
        self.write_within(WriteScope::Everything, now, body)
    }

    fn write_within<T>(
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
        self.committed(&changes);
        Ok(outcome.ok_or_else(::store::not_run)?)
    }

    // The same inside an environment. In a store of several processes, writers of other environments
    // do not wait for it.
    fn write_in<T>(
        &self,
        home: &Home,
        now: Timestamp,
        mut body: impl FnMut(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let scope = WriteScope::Environment(home.environment_id);
        self.write_within(scope, now, |draft| body(&mut draft.within(home)))
    }

    // Runs `body` in a transaction. Returns the records that it has changed: those of its last run, if
    // the store runs it again. It is no generic function, so that it is compiled once.
    //
    // The seed is drawn before the transaction, so that no foreign code runs in it, and so that a
    // body that the store runs again makes the same ids.
    fn record(
        &self,
        scope: WriteScope,
        now: Timestamp,
        body: &mut dyn FnMut(&mut Draft<'_>) -> Result<()>,
    ) -> Result<Vec<Change>> {
        let seed = self.parts.settings.seeds.draw(now);
        let mut ticket = None;
        let run = |body: &mut WriteBody<'_>| self.store().write_within(scope, body);
        let recorded = ::store::write_by(run, |writer| {
            let changes = self.draft(now, &seed, writer, body)?;
            // Transactions of an environment run one after the other. A body that runs again takes a
            // later ticket.
            ticket = self.parts.settings.observer.ticket(&changes);
            Ok(changes)
        });
        if let (Ok(_), Some(ticket)) = (&recorded, ticket) {
            ticket.commit();
        }
        self.parts.latest_time.note(now);
        recorded
    }

    // Runs `body` in a transaction of the host. Nothing follows it here: the host may roll it back. If
    // it commits, the store tells its listeners, as of a commit of another process.
    fn write_in_host<T>(
        &self,
        host: &mut dyn HostTransaction,
        home: &Home,
        now: Timestamp,
        mut body: impl FnMut(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let scope = WriteScope::Environment(home.environment_id);
        let seed = self.parts.settings.seeds.draw(now);
        let run = |body: &mut WriteBody<'_>| match &self.parts.sealable {
            Some(sealable) => sealable.write_in_host(host, scope, body),
            None => host.write_within(scope, body),
        };
        let mut outcome = None;
        ::store::write_by(run, |writer| {
            self.draft(now, &seed, writer, &mut |draft| {
                outcome = Some(body(&mut draft.within(home))?);
                Ok(())
            })
        })?;
        self.parts.latest_time.note(now);
        Ok(outcome.ok_or_else(::store::not_run)?)
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
        let (made, writer) = (&seed.start(), &mut recording);
        let mut read = ReadCounters::default();
        let counters = &mut read;
        body(&mut Draft { engine: self, now, made, counters, writer })?;
        let Recording { writer, changes } = recording;
        // Before the commit, so that the last transaction of an erasure knows of all before it.
        self.parts.meanwhile.note(&changes);
        ::store::counters::count(writer, read, &changes)?;
        ::store::list_counts::count(writer, &changes)?;
        ::store::lanes::move_changed(writer, &changes)?;
        ::store::outcomes::mark(writer, &changes)?;
        Ok(changes)
    }

    // Follows a transaction that was committed and has changed these records.
    fn committed(&self, changes: &[Change]) {
        self.parts.decoded.workflows.forget(changes);
        self.parts.decoded.prepared.forget(changes);
        self.parts.decoded.integrations.forget(changes);
        self.parts.decoded.environments.forget(changes);
        // A change is often the repair.
        let accounts = changes.iter().filter(|change| change.table == Table::Integrations);
        for id in accounts.filter_map(|change| ::store::layout::integration_of(&change.key)) {
            self.parts.settings.circuits.close(id);
        }
        self.parts.decoded.translations.forget(changes);
        self.parts.decoded.layouts.forget(changes);
        self.parts.decoded.notifications.forget(changes);
        self.parts.watches.wake(changes);
        // The tasks of a workflow that was paused are due again when it is resumed or deleted.
        let brings_work = |change: &Change| {
            let is_new = change.kind == ChangeKind::Inserted;
            (change.table == Table::Tasks && is_new)
                || (change.table == Table::Workflows && !is_new)
        };
        if changes.iter().any(brings_work) {
            self.parts.bell.ring();
        }
    }

    fn activity(&self) -> &ActivityIndex {
        &self.parts.settings.activity
    }

    fn store(&self) -> &dyn Store {
        self.parts.store.as_ref()
    }
}
