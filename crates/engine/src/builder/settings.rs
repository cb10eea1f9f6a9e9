//! Settings of an engine.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use activity::ActivityIndex;
use domain::contact::Locale;
use domain::explain::EvidenceLog;
use domain::job::RetryPolicy;
use domain::limits::Limits;
use domain::retention::Retention;
use domain::unsubscribe::UnsubscribeLinks;

use crate::entropy::{OsEntropy, SeededEntropy, Seeds};
use crate::observer::Dispatcher;
use crate::pipeline::delivery::circuits::Circuits;
use crate::pipeline::delivery::quota::Quotas;
use crate::pipeline::delivery::{Assumed, Handler, Provider};

// The ids of a rehearsal differ from those that the host's entropy makes.
const REHEARSED: u64 = u64::from_be_bytes(*b"explain!");

/// Settings of an engine, which do not depend on its store.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) seeds: Seeds,
    pub(crate) providers: Providers,
    pub(crate) handlers: Handlers,
    pub(crate) retry: RetryPolicy,
    pub(crate) lease: Duration,
    pub(crate) limits: Limits,
    pub(crate) activity: ActivityIndex,
    pub(crate) quotas: Quotas,
    pub(crate) circuits: Circuits,
    pub(crate) retention: Retention,
    pub(crate) observer: Dispatcher,
    /// Evidence of a rehearsal. `None` in any other engine.
    pub(crate) evidence: Option<Arc<EvidenceLog>>,
    /// Language of an environment without a default one, for workflows without one.
    pub(crate) default_locale: Option<Locale>,
    pub(crate) unsubscribe: Option<UnsubscribeLinks>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seeds: Seeds::new(OsEntropy),
            providers: Providers::default(),
            handlers: Handlers::default(),
            retry: RetryPolicy::default(),
            lease: Duration::from_secs(300),
            limits: Limits::default(),
            activity: ActivityIndex::default(),
            quotas: Quotas::default(),
            circuits: Circuits::default(),
            retention: Retention::default(),
            observer: Dispatcher::default(),
            evidence: None,
            default_locale: None,
            unsubscribe: None,
        }
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

impl Settings {
    /// Returns the settings of a rehearsal: its providers accept every message, and the functions of custom
    /// steps return nothing.
    pub(super) fn assumed(&self) -> Self {
        let handler = |name: &String| (name.clone(), Box::new(Assumed) as Box<dyn Handler>);
        Self {
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
            ..Self::default()
        }
    }
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
