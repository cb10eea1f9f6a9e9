//! Parts of an engine.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use activity::ActivityIndex;
use domain::contact::Locale;
use domain::environment::Environment;
use domain::explain::EvidenceLog;
use domain::integration::Integration;
use domain::job::RetryPolicy;
use domain::layout::Layout;
use domain::limits::Limits;
use domain::notification::Notification;
use domain::time::Timestamp;
use domain::translation::Translation;
use domain::unsubscribe::UnsubscribeLinks;
use domain::workflow::Workflow;
use store::sealing::Sealable;
use store::{Decoded, Fork, Store, Table, layout};

use super::Builder;
use crate::Engine;
use crate::backfill::Backfill;
use crate::clock::{Clock, ManualClock, StoreClock};
use crate::entropy::{SeededEntropy, Seeds};
use crate::heal::Healing;
use crate::observer::Dispatcher;
use crate::pipeline::delivery::Untold;
use crate::pipeline::delivery::circuits::Circuits;
use crate::pipeline::delivery::clock_skew::ClockWatermark;
use crate::pipeline::delivery::fairness::FairScheduler;
use crate::pipeline::delivery::quota::Quotas;
use crate::pipeline::delivery::unsettled::Unsettled;
use crate::pipeline::delivery::{Assumed, Handler, Provider};
use crate::pipeline::sweep::Sweeps;
use crate::resources::person::Meanwhile;
use crate::watch::Watches;
use crate::worker::bell::Bell;
use crate::worker::upkeep::Upkeep;

// Bytes of memory for workflows with compiled templates: some hundred workflows.
const PREPARED: usize = 16 << 20;

// Bytes of memory for translations, and as many for layouts, with compiled templates.
const TEXTS: usize = 8 << 20;

// The ids of a rehearsal differ from those that the host's entropy makes.
const REHEARSED: u64 = u64::from_be_bytes(*b"explain!");

/// The parts of an engine.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    /// The same store with its keys. `None` in a rehearsal, whose store lies over that of another
    /// engine.
    pub(crate) sealable: Option<Arc<Sealable>>,
    pub(crate) activity: ActivityIndex,
    /// Workflows for lists.
    pub(crate) workflows: Decoded<Workflow>,
    /// Workflows for triggers and deliveries, which compile their templates.
    pub(crate) prepared: Decoded<Workflow>,
    pub(crate) integrations: Decoded<Integration>,
    /// Environments of messages that are translated.
    pub(crate) environments: Decoded<Environment>,
    /// Translations and layouts for messages, which compile their templates.
    pub(crate) translations: Decoded<Translation>,
    pub(crate) layouts: Decoded<Layout>,
    /// Language of an environment without a default one, for workflows without one.
    pub(crate) default_locale: Option<Locale>,
    pub(crate) unsubscribe: Option<UnsubscribeLinks>,
    /// Notifications that are read again and again, such as those of the first page.
    pub(crate) notifications: Decoded<Notification>,
    pub(crate) clock: Box<dyn Clock>,
    pub(crate) seeds: Seeds,
    pub(crate) providers: Providers,
    pub(crate) handlers: Handlers,
    pub(crate) retry: RetryPolicy,
    pub(crate) lease: Duration,
    pub(crate) limits: Limits,
    pub(crate) quotas: Quotas,
    pub(crate) circuits: Circuits,
    pub(crate) unsettled: Unsettled,
    pub(crate) untold: Untold,
    pub(crate) scheduler: FairScheduler,
    pub(crate) latest_time: ClockWatermark,
    /// Signal of new tasks for workers.
    pub(crate) bell: Bell,
    /// Futures that wait for changes of inboxes.
    pub(crate) watches: Arc<Watches>,
    pub(crate) upkeep: Upkeep,
    pub(crate) sweeps: Sweeps,
    pub(crate) healing: Healing,
    pub(crate) backfill: Backfill,
    /// Erasures that are under way.
    pub(crate) meanwhile: Meanwhile,
    pub(crate) observer: Dispatcher,
    /// Evidence of a rehearsal. `None` in any other engine.
    pub(crate) evidence: Option<Arc<EvidenceLog>>,
}

impl Parts {
    /// The parts of an engine that keeps its records in `store`.
    pub(super) fn of(
        builder: Builder,
        store: Arc<dyn Store>,
        sealable: Option<Arc<Sealable>>,
    ) -> Self {
        let Builder {
            clock,
            seeds,
            providers,
            handlers,
            retry,
            lease,
            limits,
            activity,
            quotas,
            circuits,
            retention,
            observer,
            evidence,
            default_locale,
            unsubscribe,
            keyring: _,
        } = builder;
        let clock = clock.unwrap_or_else(|| Box::new(StoreClock(Arc::clone(&store))));
        let (workflows, integrations) = (Decoded::default(), Decoded::default());
        let prepared = Decoded::weighing(PREPARED, Workflow::prepared_weight);
        Self {
            store,
            sealable,
            activity,
            workflows,
            prepared,
            integrations,
            environments: Decoded::default(),
            translations: Decoded::weighing(TEXTS, Translation::prepared_weight),
            layouts: Decoded::weighing(TEXTS, Layout::prepared_weight),
            default_locale,
            unsubscribe,
            notifications: Decoded::of_repeated(),
            clock,
            seeds,
            providers,
            handlers,
            retry,
            lease,
            limits,
            quotas,
            circuits,
            unsettled: Unsettled::default(),
            untold: Untold::default(),
            scheduler: FairScheduler::default(),
            latest_time: ClockWatermark::default(),
            bell: Bell::default(),
            watches: Arc::default(),
            upkeep: Upkeep::default(),
            sweeps: Sweeps::new(retention),
            healing: Healing::default(),
            backfill: Backfill::default(),
            meanwhile: Meanwhile::default(),
            observer,
            evidence,
        }
    }

    /// Follows commits of other processes that have changed these keys, or any if they are not known.
    /// What is decoded needs no news: it is compared with its bytes.
    pub(crate) fn heard(&self, keys: Option<&[(Table, Vec<u8>)]>) {
        let Some(keys) = keys else {
            self.watches.wake_all();
            return self.bell.ring();
        };
        for (table, key) in keys {
            match table {
                Table::MessageCounters | Table::Subscribers => self.watches.wake_those_of(key),
                Table::Integrations => {
                    if let Some(id) = layout::integration_of(key) {
                        self.circuits.close(id);
                    }
                }
                _ => {}
            }
        }
        if keys.iter().any(|(table, _)| matches!(table, Table::LaneHeads | Table::Workflows)) {
            self.bell.ring();
        }
    }

    /// Returns an engine for a rehearsal at `at`. It sees the records of this one, without the tasks
    /// that wait, and its own changes stay in memory. Its providers accept every message, and the
    /// functions of custom steps return nothing.
    pub(crate) fn rehearsal(&self, at: Timestamp) -> Engine {
        const HIDDEN: &[Table] = &[Table::Tasks, Table::Due, Table::Lanes, Table::LaneHeads];
        let handler = |name: &String| (name.clone(), Box::new(Assumed) as Box<dyn Handler>);
        let builder = Builder {
            clock: Some(Box::new(ManualClock::at(at))),
            seeds: Seeds::new(SeededEntropy::new(REHEARSED)),
            providers: self.providers.assumed(),
            handlers: self.handlers.keys().map(handler).collect(),
            retry: self.retry,
            lease: self.lease,
            limits: self.limits,
            quotas: self.quotas.without_calls(),
            circuits: self.circuits.copied(),
            evidence: Some(Arc::default()),
            default_locale: self.default_locale.clone(),
            unsubscribe: self.unsubscribe.clone(),
            ..Builder::default()
        };
        builder.assemble(Arc::new(Fork::new(Arc::clone(&self.store), HIDDEN)), None)
    }
}

/// Functions of custom steps by name.
pub(crate) type Handlers = HashMap<String, Box<dyn Handler>>;

/// Providers by the id of the provider.
#[derive(Debug, Default)]
pub(crate) struct Providers {
    pub(super) named: HashMap<String, Box<dyn Provider>>,
    pub(super) default: Option<Box<dyn Provider>>,
}

impl Providers {
    // Returns providers of the same ids that accept every message.
    fn assumed(&self) -> Self {
        let assumed = || Box::new(Assumed) as Box<dyn Provider>;
        let named = self.named.keys().map(|id| (id.clone(), assumed())).collect();
        Self { named, default: self.default.is_some().then(assumed) }
    }

    /// Returns the provider of integrations with `provider_id`.
    pub(crate) fn of(&self, provider_id: &str) -> Option<&dyn Provider> {
        self.named.get(provider_id).or(self.default.as_ref()).map(AsRef::as_ref)
    }
}
