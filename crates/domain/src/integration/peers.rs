//! How the integrations of one channel stand to one another, and how that changes.

use std::cmp::Reverse;

use super::{Integration, Standing};
use crate::credentials::Credentials;
use crate::ids::{IntegrationId, UserId};
use crate::time::Timestamp;

/// The integrations of one channel that are not deleted, as a change finds them.
#[derive(Debug)]
pub struct Peers(pub Vec<Integration>);

impl Peers {
    /// Makes `id` active when it is created: primary if nobody else is, otherwise right behind the
    /// one that is. What has conditions is never primary.
    pub fn activate_new(&mut self, id: IntegrationId) {
        let is_free = !self.0.iter().any(Integration::is_primary);
        self.activate_as(id, |integration| {
            is_free && integration.channel.has_primary() && integration.conditions.is_empty()
        });
    }

    /// Makes `id` active again, right behind the primary one. It does not become primary by that.
    pub fn activate(&mut self, id: IntegrationId) {
        self.activate_as(id, |_| false);
    }

    fn activate_as(&mut self, id: IntegrationId, leads: impl FnOnce(&Integration) -> bool) {
        self.change(id, |integration| {
            if !integration.is_active() {
                let primary = leads(integration);
                integration.standing = Standing::Active { primary, priority: u32::MAX };
            }
        });
    }

    /// Makes `id` inactive. Nobody else becomes primary for that.
    pub fn deactivate(&mut self, id: IntegrationId) {
        self.change(id, |integration| integration.standing = Standing::Inactive);
    }

    /// Makes `id` the primary one: active, and without conditions.
    pub fn lead(&mut self, id: IntegrationId) {
        if !self.0.iter().any(|peer| peer.id == id) {
            return;
        }
        for integration in &mut self.0 {
            let priority = integration.priority();
            if integration.is_primary() {
                integration.standing = Standing::Active { primary: false, priority };
            }
        }
        self.change(id, |integration| {
            integration.conditions.clear();
            integration.standing = Standing::Active { primary: true, priority: u32::MAX };
        });
    }

    /// Demotes `id`, if it is primary and has conditions now.
    pub fn follow_conditions(&mut self, id: IntegrationId) {
        self.change(id, |integration| {
            let priority = integration.priority();
            if integration.is_primary() && !integration.conditions.is_empty() {
                integration.standing = Standing::Active { primary: false, priority };
            }
        });
    }

    /// Deletes `id`, with its credentials. If it was primary and `promote` says so, the next one in
    /// rank becomes primary.
    pub fn delete(&mut self, id: IntegrationId, promote: bool, by: UserId, now: Timestamp) {
        let was_primary = self.0.iter().any(|peer| peer.id == id && peer.is_primary());
        self.change(id, |integration| {
            integration.standing = Standing::Deleted { at: now, by };
            integration.credentials = Credentials::default();
            integration.configurations = None;
        });
        if was_primary && promote {
            let unconditional =
                |peer: &&Integration| peer.is_active() && peer.conditions.is_empty();
            let next = self.0.iter().filter(unconditional).max_by_key(|peer| rank(peer));
            if let Some(next) = next.map(|peer| peer.id) {
                self.lead(next);
            }
        }
    }

    fn change(&mut self, id: IntegrationId, change: impl FnOnce(&mut Integration)) {
        if let Some(integration) = self.0.iter_mut().find(|peer| peer.id == id) {
            change(integration);
        }
        self.number();
    }

    // Numbers the active ones by rank, the last one 1.
    fn number(&mut self) {
        let mut active: Vec<_> = self.0.iter_mut().filter(|peer| peer.is_active()).collect();
        active.sort_by_key(|peer| rank(peer));
        for (priority, peer) in (1..).zip(active) {
            let priority = if peer.channel.has_primary() { priority } else { 0 };
            peer.standing = Standing::Active { primary: peer.is_primary(), priority };
        }
    }
}

// The higher, the sooner it is asked; of equals the older one.
pub(super) fn rank(integration: &Integration) -> impl Ord + use<> {
    (integration.is_primary(), integration.priority(), Reverse(integration.id))
}
