//! How an engine is put together.

mod callbacks;
mod parts;
mod settings;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use activity::ActivityIndex;
use domain::circuit::CircuitPolicy;
use domain::contact::{Locale, TimeZone};
use domain::convert::IntoChecked;
use domain::job::RetryPolicy;
use domain::limits::Limits;
use domain::retention::Retention;
use domain::unsubscribe::UnsubscribeLinks;
use store::Store;
#[cfg(feature = "redb")]
use store::redb::{RedbOptions, RedbStore};
use store::sealing::{Keyring, Sealable};

use crate::Engine;
use crate::clock::Clock;
use crate::entropy::{Entropy, OsEntropy, Seeds};
use crate::observer::{Dispatcher, Event};
use crate::pipeline::delivery::{Handler, Provider};

use callbacks::Callbacks;
use parts::Mode;
pub(crate) use parts::Parts;
pub(crate) use settings::Settings;

// A shorter lease would be over before a message is handed to its provider.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);

/// The parts of an engine, before it has a store.
#[derive(Debug)]
pub struct Builder {
    settings: Settings,
    callbacks: Callbacks,
    seeds: Seeds,
    observer: Dispatcher,
    activity: ActivityIndex,
    /// `None` if the store has the clock.
    clock: Option<Box<dyn Clock>>,
    keyring: Option<Keyring>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            callbacks: Callbacks::default(),
            seeds: Seeds::new(OsEntropy),
            observer: Dispatcher::default(),
            activity: ActivityIndex::default(),
            clock: None,
            keyring: None,
        }
    }
}

impl Builder {
    /// Reads the time from `clock`. Without a clock of yours, the engine has that of the store if
    /// several processes share it, and that of the system otherwise.
    ///
    /// A clock that is ahead by more than a day makes tasks due too late. The engine corrects them once the clock is
    /// right. Attempts are due at once, and an attempt that was under way gets a new lease. Plans that were not
    /// stored are made again. Delays and windows of digests keep their length. A snoozed message keeps the time that
    /// its reader has chosen. An engine that starts under the right clock checks the last 128 tasks of each workflow.
    /// If one of them was put off, the engine corrects all tasks of the environment.
    #[must_use]
    pub fn clock(self, clock: impl Clock) -> Self {
        Self { clock: Some(Box::new(clock)), ..self }
    }

    /// Makes ids and keys from `entropy`.
    #[must_use]
    pub fn entropy(self, entropy: impl Entropy) -> Self {
        Self { seeds: Seeds::new(entropy), ..self }
    }

    /// Registers the provider of integrations with `provider_id`. A later one takes its place.
    #[must_use]
    pub fn provider(mut self, provider_id: impl Into<String>, provider: impl Provider) -> Self {
        self.callbacks.providers.named.insert(provider_id.into(), Box::new(provider));
        self
    }

    /// Registers the provider of all integrations that have no provider of their own.
    #[must_use]
    pub fn default_provider(mut self, provider: impl Provider) -> Self {
        self.callbacks.providers.default = Some(Box::new(provider));
        self
    }

    /// Registers the function that custom steps call under the name `handler`. A later one takes its place.
    #[must_use]
    pub fn handler(mut self, handler: impl Into<String>, function: impl Handler) -> Self {
        self.callbacks.handlers.insert(handler.into(), Box::new(function));
        self
    }

    /// Sets the policy of retries of messages that a provider cannot send at the moment. It also limits the attempts
    /// of tasks whose process ended during an attempt. Tasks that call no code of the host application, such as the
    /// end of a delay, have at least three attempts.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.settings.retry = retry;
        self
    }

    /// Sets the lease of an attempt: 1 second at least, and 5 minutes by default. An attempt without
    /// an outcome by its end is followed by another one. Up to 32 messages are claimed at once and
    /// sent one after the other. Those that do not fit into the lease are given back, and their
    /// attempts do not count. A lease should be longer than the slowest call of a provider. Otherwise another worker
    /// may repeat that message, and also those that were sent just before it.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease.max(SHORTEST_LEASE);
        self
    }

    /// Sets how many calls of the provider with `provider_id` are under way at once in this engine:
    /// 1 at least, and 0 counts as 1. The default is no limit. A thread waits up to 100 ms for the end of another
    /// call. Then the message waits without an attempt, and is due again after a second. An id without an integration
    /// has no effect.
    #[must_use]
    pub fn max_concurrent(mut self, provider_id: impl Into<String>, calls: usize) -> Self {
        self.settings.calls.limit_concurrent(provider_id.into(), calls);
        self
    }

    /// Sets how many calls of the provider with `provider_id` this engine makes within a second: 1
    /// at least, and 0 counts as 1. The default is no limit. An id without an integration has no effect. The limit
    /// holds for each span of 1,000 ms, by the engine's clock just before each call. If the clock goes back by more
    /// than a second, the last calls count as made at the earlier time. Messages over the limit are postponed by up
    /// to five minutes at a time. Urgent messages go first, and workflows take turns. A free call is reserved for an
    /// expected message for up to one second.
    #[must_use]
    pub fn per_second(mut self, provider_id: impl Into<String>, calls: usize) -> Self {
        self.settings.calls.limit_rate(provider_id.into(), calls);
        self
    }

    /// Sets when the circuit of an integration opens, so that it is not called for a while: its
    /// messages wait without an attempt, and fallbacks take over at once. Then one message is the
    /// probe, and the others follow its success. With `None`, no circuit opens. The default is that of
    /// [`CircuitPolicy`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidings::{Engine, circuit::CircuitPolicy};
    ///
    /// let builder = Engine::builder().circuit(CircuitPolicy::new(5, Duration::from_secs(10)));
    /// # drop(builder);
    /// ```
    ///
    /// Circuits are in memory. Each is closed after a restart, and after a change of its integration. After a
    /// change, the messages that wait are due at once. After a restart, they wait for the longest pause at most,
    /// and for two of these behind a thousand others. Processes on one server have circuits of their own: a message
    /// that one has put off waits that long, also if another one may call the integration.
    #[must_use]
    pub fn circuit(mut self, policy: impl Into<Option<CircuitPolicy>>) -> Self {
        self.settings.circuit = policy.into();
        self
    }

    /// Tells `observer` what happens, in the order of commits, see [`Event`]. A thread of its own
    /// calls it, after the commit. The thread starts with the first event. It ends when the engine and its clones are
    /// dropped and the observer has received all queued events. The queue holds up to 10,000 events. Further events
    /// are discarded, and [`Event::Lagged`] reports their number. A panic of the observer ends the call only. Events
    /// that wait when the process ends are lost.
    ///
    /// The observer gets the commits of this engine: none of other processes, and none of a transaction of the
    /// host ([`trigger_in`](crate::Events::trigger_in)).
    ///
    /// ```
    /// use tidings::observer::Event;
    /// use tidings::{Engine, store::memory::MemoryStore, vocabulary::Channel};
    /// # use tidings::{step::Step, trigger::Trigger, workflow::WorkflowCreate};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (sender, events) = std::sync::mpsc::channel();
    /// let engine = Engine::builder()
    ///     .observer(move |event: &Event| drop(sender.send(event.clone())))
    ///     .build(MemoryStore::default());
    /// # let env = engine.organization("acme")?.development()?;
    /// # env.workflows().create(
    /// #     &WorkflowCreate::new("greeting", "Greeting")?.step(Step::in_app("Hello!")?))?;
    /// env.events().trigger(&Trigger::new("greeting", "ada")?)?;
    /// let Event::MessageCreated(message) = events.recv()? else { panic!("a message comes first") };
    /// assert_eq!(message.channel, Channel::InApp);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A second call replaces the observer.
    #[must_use]
    pub fn observer(self, observer: impl FnMut(&Event) + Send + 'static) -> Self {
        Self { observer: Dispatcher::to(observer), ..self }
    }

    /// Sets the limits of the callers' input.
    ///
    /// ```
    /// use tidings::limits::Limits;
    /// use tidings::{Builder, store::memory::MemoryStore};
    ///
    /// let limits = Limits::default().payload(16 * 1024);
    /// let engine = Builder::default().limits(limits).build(MemoryStore::default());
    /// # drop(engine);
    /// ```
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Sets the ages at which records are removed. By default all records are kept, except stored
    /// answers, which later calls remove after 24 hours. Delivery removes old records once a day, a
    /// few at a time.
    ///
    /// ```
    /// use tidings::retention::Retention;
    /// use tidings::vocabulary::Channel;
    /// use tidings::{Builder, store::memory::MemoryStore};
    ///
    /// let retention = Retention::default().activity_days(30).messages_days(Channel::InApp, 365);
    /// let engine = Builder::default().retention(retention).build(MemoryStore::default());
    /// engine.organization("acme")?.development()?;
    /// assert!(engine.delivery().next_due()?.is_some());
    /// # Ok::<(), tidings::Error>(())
    /// ```
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.settings.retention = retention;
        self
    }

    /// Sets the language for subscribers whose own one has no texts, in workflows without a default
    /// language, and in layouts. The default is `en_US`.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`](crate::Error::Invalid), if it is no locale such as `en` or `en_US`.
    pub fn default_locale(mut self, locale: impl IntoChecked<Locale>) -> crate::Result<Self> {
        let locale = locale.into_checked().map_err(|invalid| invalid.named("defaultLocale"))?;
        self.settings.default_locale = locale;
        Ok(self)
    }

    /// Sets the time zone of subscribers without one: of times in texts, of schedules, and of delays and
    /// digests that end at a time of day. The default is UTC. What waits already keeps its time.
    ///
    /// ```
    /// use tidings::{Engine, store::memory::MemoryStore};
    ///
    /// let builder = Engine::builder().default_timezone("Europe/Berlin")?;
    /// # drop(builder);
    /// # Ok::<(), tidings::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`](crate::Error::Invalid), if it is no name of the IANA database.
    pub fn default_timezone(mut self, zone: impl IntoChecked<TimeZone>) -> crate::Result<Self> {
        let zone = zone.into_checked().map_err(|invalid| invalid.named("defaultTimezone"))?;
        self.settings.default_timezone = zone;
        Ok(self)
    }

    /// Puts unsubscribe links into messages, for `{{ unsubscribeUrl }}` in templates and for the
    /// header `List-Unsubscribe` of e-mails. By default there are none. In-app messages and those of
    /// critical workflows have none. The page calls
    /// [`read_unsubscribe`](crate::Scope::read_unsubscribe) when it is shown, and
    /// [`unsubscribe`](crate::Scope::unsubscribe) when it is posted.
    ///
    /// ```
    /// use tidings::unsubscribe::UnsubscribeLinks;
    /// use tidings::{Engine, store::memory::MemoryStore};
    ///
    /// let links = UnsubscribeLinks::new("https://shop.example.org/unsubscribe")?;
    /// let engine = Engine::builder().unsubscribe_links(links).build(MemoryStore::default());
    /// # drop(engine);
    /// # Ok::<(), tidings::Error>(())
    /// ```
    #[must_use]
    pub fn unsubscribe_links(mut self, links: UnsubscribeLinks) -> Self {
        self.settings.unsubscribe = Some(links);
        self
    }

    /// Sets the number of notifications in a segment of the activity index, 16 to 61,440. The
    /// default is 61,440. The number applies to environments without segments. Small segments are
    /// for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn activity_segments(self, notifications: u32) -> Self {
        Self { activity: ActivityIndex::with_segments_of(notifications), ..self }
    }

    /// Seals the values of all records with the keys of `keyring`. By default they are plain. A store
    /// with plain values is sealed by what is written, and as a whole by
    /// [`Engine::reseal`](crate::Engine::reseal). A sealed store needs its keys from then on.
    ///
    /// ```
    /// use tidings::sealing::{Keyring, SealingKey};
    /// use tidings::{Engine, store::memory::MemoryStore};
    ///
    /// # let (new, old) = ([2; 32], [1; 32]);
    /// let keys = Keyring::new(2, SealingKey::from_bytes(new));
    /// let keys = keys.and_old(1, SealingKey::from_bytes(old))?;
    /// let engine = Engine::builder().sealing(keys).build(MemoryStore::default());
    /// # drop(engine);
    /// # Ok::<(), tidings::error::Invalid>(())
    /// ```
    #[must_use]
    pub fn sealing(self, keyring: Keyring) -> Self {
        Self { keyring: Some(keyring), ..self }
    }

    /// Returns an engine with these parts that keeps its records in `store`. The first operation
    /// compares its keys with those of the store, see [`open`](Self::open).
    pub fn build(mut self, store: impl Store) -> Engine {
        let sealable = Arc::new(Sealable::new(Arc::new(store), self.keyring.take()));
        let store = Arc::clone(&sealable) as Arc<dyn Store>;
        let engine = Engine { parts: Arc::new(Parts::of(self, store, Mode::Live(sealable))) };
        let parts = Arc::downgrade(&engine.parts);
        engine.parts.store.listen(Box::new(move |keys| {
            let Some(parts) = parts.upgrade() else { return ControlFlow::Break(()) };
            parts.follow_foreign_commit(keys);
            ControlFlow::Continue(())
        }));
        engine
    }

    /// Returns an engine with these parts that keeps its records in the file at `path`.
    ///
    /// # Errors
    ///
    /// As [`Engine::open`]. [`MissingKey`](store::Error::MissingKey), if values are sealed with a key
    /// that was not given, [`WrongKey`](store::Error::WrongKey), if they are sealed with another key of
    /// that id, and [`PlainRecords`](store::Error::PlainRecords), if the keys are for sealed records only.
    #[cfg(feature = "redb")]
    pub fn open(self, path: impl AsRef<std::path::Path>) -> crate::Result<Engine> {
        self.on(RedbStore::open(path)?)
    }

    /// Returns an engine with these parts on the file at `path`, which must have a store: none is created.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); [`NoStore`](store::Error::NoStore), if the file does not exist or is
    /// empty.
    #[cfg(feature = "redb")]
    pub fn open_existing(self, path: impl AsRef<std::path::Path>) -> crate::Result<Engine> {
        let options = RedbOptions::default().create(false);
        self.on(RedbStore::open_with(path, &options)?)
    }

    // An engine whose keys are those of the store.
    #[cfg(feature = "redb")]
    fn on(self, store: RedbStore) -> crate::Result<Engine> {
        let engine = self.build(store);
        if let Some(sealable) = engine.parts.sealable() {
            sealable.check()?;
        }
        Ok(engine)
    }
}
