//! Parts of an engine.

use std::sync::Arc;

use activity::ActivityIndex;
use domain::environment::Environment;
use domain::explain::EvidenceLog;
use domain::integration::Integration;
use domain::layout::Layout;
use domain::notification::Notification;
use domain::retention::Retention;
use domain::time::Timestamp;
use domain::translation::Translation;
use domain::workflow::Workflow;
use store::sealing::Sealable;
use store::{Change, Decoded, Fork, Store, Table, layout};

use super::callbacks::Callbacks;
use super::{Builder, Settings};
use crate::Engine;
use crate::backfill::Backfill;
use crate::clock::{Clock, ManualClock, StoreClock};
use crate::entropy::{SeededEntropy, Seeds};
use crate::heal::Healing;
use crate::observer::Dispatcher;
use crate::pipeline::delivery::PendingReport;
use crate::pipeline::delivery::circuits::Circuits;
use crate::pipeline::delivery::clock_skew::ClockWatermark;
use crate::pipeline::delivery::fairness::FairScheduler;
use crate::pipeline::delivery::quota::Quotas;
use crate::pipeline::delivery::unsettled::Unsettled;
use crate::pipeline::sweep::SweepTasks;
use crate::resources::person::OngoingErasures;
use crate::watch::Watches;
use crate::worker::upkeep::Upkeep;
use crate::worker::work_signal::WorkSignal;

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
    pub(crate) mode: Mode,
    pub(crate) clock: Box<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) callbacks: Callbacks,
    pub(crate) seeds: Seeds,
    pub(crate) observer: Dispatcher,
    pub(crate) activity: ActivityIndex,
    pub(crate) quotas: Quotas,
    pub(crate) circuits: Circuits,
    pub(crate) decoded: DecodedRecords,
    pub(crate) unsettled: Unsettled,
    pub(crate) pending_report: PendingReport,
    pub(crate) scheduler: FairScheduler,
    pub(crate) clock_watermark: ClockWatermark,
    /// Signal of new tasks for workers.
    pub(crate) work_signal: WorkSignal,
    /// Futures that wait for changes of inboxes.
    pub(crate) watches: Arc<Watches>,
    pub(crate) upkeep: Upkeep,
    pub(crate) sweeps: SweepTasks,
    pub(crate) healing: Healing,
    pub(crate) backfill: Backfill,
    /// Erasures that are under way.
    pub(crate) ongoing_erasures: OngoingErasures,
}

/// Mode of an engine.
#[derive(Debug)]
pub(crate) enum Mode {
    /// The engine serves its host. It has the store with its keys for sealing.
    Live(Arc<Sealable>),
    /// The engine rehearses an event on a fork of the store of another engine. It has the evidence of the run.
    Rehearsal(Arc<EvidenceLog>),
}

/// Records that are decoded once, while their bytes stay the same.
#[derive(Debug)]
pub(crate) struct DecodedRecords {
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
    /// Notifications that are read again and again, such as those of the first page.
    pub(crate) notifications: Decoded<Notification>,
}

impl Default for DecodedRecords {
    fn default() -> Self {
        Self {
            workflows: Decoded::default(),
            prepared: Decoded::weighing(PREPARED, Workflow::prepared_weight),
            integrations: Decoded::default(),
            environments: Decoded::default(),
            translations: Decoded::weighing(TEXTS, Translation::prepared_weight),
            layouts: Decoded::weighing(TEXTS, Layout::prepared_weight),
            notifications: Decoded::of_repeated(),
        }
    }
}

impl DecodedRecords {
    /// Forgets the records that a transaction has changed.
    pub(crate) fn forget(&self, changes: &[Change]) {
        let Self {
            workflows,
            prepared,
            integrations,
            environments,
            translations,
            layouts,
            notifications,
        } = self;
        workflows.forget(changes);
        prepared.forget(changes);
        integrations.forget(changes);
        environments.forget(changes);
        translations.forget(changes);
        layouts.forget(changes);
        notifications.forget(changes);
    }
}

impl Parts {
    /// The parts of an engine that keeps its records in `store`.
    pub(super) fn of(builder: Builder, store: Arc<dyn Store>, mode: Mode) -> Self {
        let Builder { settings, callbacks, seeds, observer, activity, clock, keyring: _ } = builder;
        let clock = clock.unwrap_or_else(|| Box::new(StoreClock(Arc::clone(&store))));
        Self {
            store,
            mode,
            clock,
            callbacks,
            seeds,
            observer,
            activity,
            quotas: Quotas::new(settings.calls.clone()),
            circuits: Circuits::new(settings.circuit),
            settings,
            decoded: DecodedRecords::default(),
            unsettled: Unsettled::default(),
            pending_report: PendingReport::default(),
            scheduler: FairScheduler::default(),
            clock_watermark: ClockWatermark::default(),
            work_signal: WorkSignal::default(),
            watches: Arc::default(),
            upkeep: Upkeep::default(),
            sweeps: SweepTasks::default(),
            healing: Healing::default(),
            backfill: Backfill::default(),
            ongoing_erasures: OngoingErasures::default(),
        }
    }

    /// Returns `true` if the engine is one of a rehearsal.
    pub(crate) const fn is_rehearsal(&self) -> bool {
        self.evidence().is_some()
    }

    /// Returns the evidence of a rehearsal. Returns `None` for any other engine.
    pub(crate) const fn evidence(&self) -> Option<&Arc<EvidenceLog>> {
        match &self.mode {
            Mode::Live(_) => None,
            Mode::Rehearsal(evidence) => Some(evidence),
        }
    }

    /// Returns the store with its keys for sealing. Returns `None` for a rehearsal.
    pub(crate) const fn sealable(&self) -> Option<&Arc<Sealable>> {
        match &self.mode {
            Mode::Live(sealable) => Some(sealable),
            Mode::Rehearsal(_) => None,
        }
    }

    /// Closes the circuit of an integration that was changed, by its key: the operator may have repaired it.
    pub(crate) fn close_circuit(&self, key: &[u8]) {
        let integration = layout::integration_of(key);
        if integration.is_some_and(|(environment, id)| self.circuits.close(environment, id)) {
            self.work_signal.notify();
        }
    }

    /// Follows commits of other processes that have changed these keys, or any if they are not known.
    /// What is decoded needs no news: it is compared with its bytes.
    pub(crate) fn follow_foreign_commit(&self, keys: Option<&[(Table, Vec<u8>)]>) {
        let Some(keys) = keys else {
            self.watches.wake_all();
            return self.work_signal.notify();
        };
        for (table, key) in keys {
            match table {
                Table::MessageCounters | Table::Subscribers => self.watches.wake_those_of(key),
                Table::Integrations => self.close_circuit(key),
                _ => {}
            }
        }
        if keys.iter().any(|(table, _)| matches!(table, Table::LaneHeads | Table::Workflows)) {
            self.work_signal.notify();
        }
    }

    /// Returns an engine for a rehearsal at `at`. It sees the records of this one, without the tasks
    /// that wait, and its own changes stay in memory. Its circuits are open where those of this one are.
    pub(crate) fn rehearsal(&self, at: Timestamp) -> Engine {
        const HIDDEN: &[Table] = &[Table::Tasks, Table::Due, Table::Lanes, Table::LaneHeads];
        let builder = Builder {
            // A rehearsal removes nothing.
            settings: Settings { retention: Retention::default(), ..self.settings.clone() },
            callbacks: self.callbacks.assumed(),
            seeds: Seeds::new(SeededEntropy::new(REHEARSED)),
            clock: Some(Box::new(ManualClock::at(at))),
            ..Builder::default()
        };
        let store = Arc::new(Fork::new(Arc::clone(&self.store), HIDDEN));
        let mode = Mode::Rehearsal(Arc::default());
        let parts = Self { circuits: self.circuits.copied(), ..Self::of(builder, store, mode) };
        Engine { parts: Arc::new(parts) }
    }
}
