//! What a caller can reach: an organization, or the inside of an environment.

use domain::environment::{Environment, Home};
use domain::ids::{EnvironmentId, OrganizationId, SubscriberId};
use domain::time::Timestamp;
use store::{Snapshot, Transaction};
use uuid::Uuid;

use crate::environments::Viewer;
use crate::{
    Contexts, Engine, Environments, Events, Inbox, Integrations, Messages, Notifications, Result,
    SubscriberPreferences, Subscribers, Workflows,
};

/// Everything that belongs to an organization.
#[derive(Clone, Debug)]
pub struct Organization {
    engine: Engine,
    id: OrganizationId,
}

/// Everything inside an environment. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Scope {
    pub(crate) engine: Engine,
    pub(crate) home: Home,
}

impl Organization {
    pub(crate) fn new(engine: Engine, id: OrganizationId) -> Self {
        Self { engine, id }
    }

    /// Everything inside the environment `Development`, which is created when it is first asked
    /// for.
    pub fn development(&self) -> Result<Scope> {
        Ok(Scope::new(self.engine.clone(), &self.environments().development()?))
    }

    /// Everything inside the environment `Production`, which is created when it is first asked
    /// for.
    pub fn production(&self) -> Result<Scope> {
        Ok(Scope::new(self.engine.clone(), &self.environments().production()?))
    }

    /// The organization's environments, with all of their keys.
    pub fn environments(&self) -> Environments<'_> {
        Environments::new(&self.engine, &self.id, Viewer::Host)
    }
}

impl Scope {
    pub(crate) fn new(engine: Engine, environment: &Environment) -> Self {
        let organization_id = environment.organization_id.clone();
        Self { engine, home: Home { organization_id, environment_id: environment.id } }
    }

    /// The environment.
    pub fn environment_id(&self) -> EnvironmentId {
        self.home.environment_id
    }

    /// The environments of the organization, with the keys of this one only.
    pub fn environments(&self) -> Environments<'_> {
        let viewer = Viewer::Environment(self.home.environment_id);
        Environments::new(&self.engine, &self.home.organization_id, viewer)
    }

    /// Contexts.
    pub fn contexts(&self) -> Contexts<'_> {
        Contexts { scope: self }
    }

    /// Triggering workflows.
    pub fn events(&self) -> Events<'_> {
        Events { scope: self }
    }

    /// The inbox of a subscriber.
    pub fn inbox<'s>(&'s self, subscriber: &'s SubscriberId) -> Inbox<'s> {
        Inbox { scope: self, subscriber }
    }

    /// Integrations.
    pub fn integrations(&self) -> Integrations<'_> {
        Integrations { scope: self }
    }

    /// Messages.
    pub fn messages(&self) -> Messages<'_> {
        Messages { scope: self }
    }

    /// The activity list.
    pub fn notifications(&self) -> Notifications<'_> {
        Notifications { scope: self }
    }

    /// The preferences of a subscriber.
    pub fn preferences<'s>(&'s self, subscriber: &'s SubscriberId) -> SubscriberPreferences<'s> {
        SubscriberPreferences { scope: self, subscriber }
    }

    /// Subscribers.
    pub fn subscribers(&self) -> Subscribers<'_> {
        Subscribers { scope: self }
    }

    /// Workflows.
    pub fn workflows(&self) -> Workflows<'_> {
        Workflows { scope: self }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.engine.now()
    }

    pub(crate) fn id<Id: From<Uuid>>(&self, now: Timestamp) -> Id {
        self.engine.id(now)
    }

    pub(crate) fn read<T>(&self, body: impl FnMut(&dyn Snapshot) -> Result<T>) -> Result<T> {
        self.engine.read(body)
    }

    pub(crate) fn write<T>(
        &self,
        body: impl FnMut(&mut dyn Transaction) -> Result<T>,
    ) -> Result<T> {
        self.engine.write(body)
    }
}
