//! Environments, their keys, and what an environment has beside its resources.

use domain::api_key::ApiKey;
use domain::environment::Environment;
use domain::idempotency::StoredAnswer;
use domain::quarantine::Quarantined;
use domain::unsubscribe::LinkKey;

use crate::key::Key;
use crate::layout::{
    EXPIRING_ANSWERS, api_key, environment, environment_id, environment_key, link_key, quarantined,
    stored_answer,
};
use crate::record::{Entries, Record};

impl Record for Environment {
    fn key(&self) -> Key<Self> {
        environment(&self.organization_id, self.id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        entries.add(environment_id(self.id));
    }
}

impl Record for ApiKey {
    fn key(&self) -> Key<Self> {
        environment_key(self.environment_id, self.id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        entries.add(api_key(&self.hash));
    }
}

impl Record for LinkKey {
    fn key(&self) -> Key<Self> {
        link_key(self.environment_id)
    }
}

impl Record for StoredAnswer {
    fn key(&self) -> Key<Self> {
        stored_answer(self.environment_id, &self.key)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let expires = EXPIRING_ANSWERS.within(self.environment_id).then(self.expires_at());
        entries.add(expires.then(&self.key).end());
    }
}

impl Record for Quarantined {
    fn key(&self) -> Key<Self> {
        quarantined(self.id)
    }
}
