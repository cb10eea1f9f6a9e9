//! Functions of the host that deliveries call.

use std::collections::HashMap;

use crate::pipeline::delivery::{Assumed, Handler, Provider};

/// Providers, and functions of custom steps.
#[derive(Debug, Default)]
pub(crate) struct Callbacks {
    pub(super) providers: Providers,
    pub(super) handlers: HashMap<String, Box<dyn Handler>>,
}

/// Providers by the id of the provider.
#[derive(Debug, Default)]
pub(super) struct Providers {
    pub(super) named: HashMap<String, Box<dyn Provider>>,
    pub(super) default: Option<Box<dyn Provider>>,
}

impl Callbacks {
    /// Returns the callbacks of a rehearsal: its providers accept every message, and the functions of custom
    /// steps return nothing.
    pub(super) fn assumed(&self) -> Self {
        let handler = |name: &String| (name.clone(), Box::new(Assumed) as Box<dyn Handler>);
        Self {
            providers: self.providers.assumed(),
            handlers: self.handlers.keys().map(handler).collect(),
        }
    }

    /// Returns the provider of integrations with `provider_id`.
    pub(crate) fn provider(&self, provider_id: &str) -> Option<&dyn Provider> {
        let Providers { named, default } = &self.providers;
        named.get(provider_id).or(default.as_ref()).map(AsRef::as_ref)
    }

    /// Returns the function that custom steps call under the name `handler`.
    pub(crate) fn handler(&self, handler: &str) -> Option<&dyn Handler> {
        self.handlers.get(handler).map(AsRef::as_ref)
    }
}

impl Providers {
    // Returns providers of the same ids that accept every message.
    fn assumed(&self) -> Self {
        let assumed = || Box::new(Assumed) as Box<dyn Provider>;
        let named = self.named.keys().map(|id| (id.clone(), assumed())).collect();
        Self { named, default: self.default.is_some().then(assumed) }
    }
}
