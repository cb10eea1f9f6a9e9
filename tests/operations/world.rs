//! What every scenario starts from: an engine with a manual clock, a seed and an outbox.

use serde_json::Value;
use tidings::domain::ids::SubscriberId;
use tidings::domain::time::Timestamp;
use tidings::domain::workflow::Workflow;
use tidings::store::Store;
use tidings::store::memory::MemoryStore;
use tidings::store::redb::RedbStore;
use tidings::{Engine, ManualClock, Organization, Outbox, Scope, SeededEntropy};

/// An engine, and an environment in it.
pub struct World {
    pub engine: Engine,
    pub clock: ManualClock,
    pub outbox: Outbox,
    pub organization: Organization,
    pub env: Scope,
}

/// Runs `scenario` in a world of its own on each backend.
pub fn on_both(scenario: impl Fn(World)) {
    scenario(World::on(MemoryStore::default()));
    let folder = tempfile::tempdir().unwrap();
    scenario(World::on(RedbStore::open(folder.path().join("tidings.redb")).unwrap()));
}

impl World {
    pub fn on(store: impl Store) -> Self {
        let clock = ManualClock::at("2026-11-20T12:00:00Z".parse::<Timestamp>().unwrap());
        let outbox = Outbox::default();
        let engine = Engine::builder()
            .clock(clock.clone())
            .entropy(SeededEntropy::new(7))
            .fallback_provider(outbox.clone())
            .build(store);
        let organization = engine.organization("acme".try_into().unwrap());
        let development = organization.environments().development().unwrap();
        let env = engine.environment(development.id).unwrap();
        Self { engine, clock, outbox, organization, env }
    }

    /// Creates an active workflow of that identifier with an in-app step.
    pub fn in_app_workflow(&self, identifier: &str) -> Workflow {
        self.workflow(serde_json::json!({
            "workflowId": identifier,
            "name": identifier,
            "active": true,
            "steps": [{ "type": "in_app", "template": { "body": "Hello {{ payload.name }}" } }],
        }))
    }

    /// Creates the workflow that `create` describes.
    pub fn workflow(&self, create: Value) -> Workflow {
        self.env.workflows().create(serde_json::from_value(create).unwrap()).unwrap()
    }
}

/// A subscriber id.
pub fn id(id: &str) -> SubscriberId {
    SubscriberId::new(id).unwrap()
}
