//! Ranks of the integrations of one channel, and changes of them.

use std::cmp::Reverse;

use super::{Integration, Standing};
use crate::credentials::Credentials;
use crate::ids::{IntegrationId, UserId};
use crate::time::Timestamp;
use crate::vocabulary::Channel;

/// Integrations of one channel that are not deleted.
#[doc(hidden)]
#[derive(Debug)]
pub struct Peers(pub Vec<Integration>);

impl Peers {
    /// Returns `true` if `new` may join. There is at most one in-app integration.
    pub fn admits(&self, new: &Integration) -> bool {
        new.channel != Channel::InApp || self.0.is_empty()
    }

    /// Puts `after` in the place of the integration of its id. `active` activates or deactivates
    /// it. Without `active`, a primary integration that gets filters is demoted.
    pub fn update(&mut self, after: &Integration, active: Option<bool>) {
        let mut was_active = false;
        if let Some(peer) = self.0.iter_mut().find(|peer| peer.id == after.id) {
            was_active = peer.is_active();
            peer.clone_from(after);
        }
        match active {
            Some(true) if !was_active => self.activate(after.id),
            Some(false) => self.deactivate(after.id),
            Some(true) | None => self.follow_filters(after.id),
        }
    }

    /// Activates the new integration `id`. It becomes primary if no other is, and ranks right
    /// behind the primary one otherwise. An integration with filters and a fallback never become
    /// primary by that.
    pub fn activate_new(&mut self, id: IntegrationId) {
        let is_free = !self.0.iter().any(Integration::is_primary);
        self.activate_as(id, |integration| {
            let is_regular = integration.filters.is_empty() && integration.fallback.is_none();
            is_free && integration.channel.has_primary() && is_regular
        });
    }

    /// Activates the integration `id`, right behind the primary one.
    pub fn activate(&mut self, id: IntegrationId) {
        self.activate_as(id, |_| false);
    }

    fn activate_as(
        &mut self,
        id: IntegrationId,
        becomes_primary: impl FnOnce(&Integration) -> bool,
    ) {
        self.change(id, |integration| {
            if !integration.is_active() {
                let primary = becomes_primary(integration);
                integration.standing = Standing::Active { primary, priority: u32::MAX };
            }
        });
    }

    /// Deactivates the integration `id`. No other one becomes primary.
    pub fn deactivate(&mut self, id: IntegrationId) {
        self.change(id, |integration| integration.standing = Standing::Inactive);
    }

    /// Makes the integration `id` primary: active, and without filters.
    pub fn make_primary(&mut self, id: IntegrationId) {
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
            integration.filters.clear();
            integration.standing = Standing::Active { primary: true, priority: u32::MAX };
        });
    }

    /// Demotes the integration `id` if it is primary and has filters.
    pub fn follow_filters(&mut self, id: IntegrationId) {
        self.change(id, |integration| {
            let priority = integration.priority();
            if integration.is_primary() && !integration.filters.is_empty() {
                integration.standing = Standing::Active { primary: false, priority };
            }
        });
    }

    /// Deletes the integration `id` with its credentials. If it was primary and `promote` is set,
    /// the next one in rank becomes primary, and a fallback only if there is no other.
    pub fn delete(&mut self, id: IntegrationId, promote: bool, by: UserId, now: Timestamp) {
        let was_primary = self.0.iter().any(|peer| peer.id == id && peer.is_primary());
        self.change(id, |integration| {
            integration.standing = Standing::Deleted { at: now, by };
            integration.paused_at = None;
            integration.credentials = Credentials::default();
            integration.configurations = None;
        });
        if was_primary && promote {
            let unconditional = |peer: &&Integration| peer.is_active() && peer.filters.is_empty();
            let last_fallbacks = |peer: &&Integration| (peer.fallback.is_none(), rank(peer));
            let next = self.0.iter().filter(unconditional).max_by_key(last_fallbacks);
            if let Some(next) = next.map(|peer| peer.id) {
                self.make_primary(next);
            }
        }
    }

    fn change(&mut self, id: IntegrationId, change: impl FnOnce(&mut Integration)) {
        if let Some(integration) = self.0.iter_mut().find(|peer| peer.id == id) {
            change(integration);
        }
        self.number();
    }

    // Numbers the active integrations by rank. The last one gets 1.
    fn number(&mut self) {
        let mut active: Vec<_> = self.0.iter_mut().filter(|peer| peer.is_active()).collect();
        active.sort_by_key(|peer| rank(peer));
        for (priority, peer) in (1..).zip(active) {
            let priority = if peer.channel.has_primary() { priority } else { 0 };
            peer.standing = Standing::Active { primary: peer.is_primary(), priority };
        }
    }
}

// The highest comes first, and of equals the older one.
pub(super) fn rank(integration: &Integration) -> impl Ord + use<> {
    (integration.is_primary(), integration.priority(), Reverse(integration.id))
}
