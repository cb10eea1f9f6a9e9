//! Integrations, and the connections and endpoints of channels.

use domain::connection::ChannelConnection;
use domain::endpoint::ChannelEndpoint;
use domain::integration::Integration;

use super::places;
use crate::key::Key;
use crate::layout::channels::lists_with;
use crate::layout::{by_identifier, connection, connection_owner, endpoint, integration};
use crate::record::{Entries, Record};

impl Record for Integration {
    fn key(&self) -> Key<Self> {
        integration(self.environment_id, self.id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        if !self.is_deleted() {
            entries.add(by_identifier(self.environment_id, &self.identifier));
        }
    }
}

impl Record for ChannelEndpoint {
    fn key(&self) -> Key<Self> {
        endpoint(self.environment_id, &self.identifier)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let owner = (Some(&self.subscriber_id), &self.context_keys);
        for list in lists_with((self.environment_id, self.integration_id), owner) {
            for place in places(self.id, self.created_at, self.updated_at) {
                entries.add(list.clone().then(place).end());
            }
        }
    }
}

impl Record for ChannelConnection {
    fn key(&self) -> Key<Self> {
        connection(self.environment_id, &self.identifier)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let (environment, integration) = (self.environment_id, self.integration_id);
        let (subscriber, contexts) = (self.subscriber_id.as_ref(), &self.context_keys);
        entries.add(connection_owner(environment, integration, subscriber, contexts));
        for list in lists_with((environment, integration), (subscriber, contexts)) {
            for place in places(self.id, self.created_at, self.updated_at) {
                entries.add(list.clone().then(place).end());
            }
        }
    }
}
