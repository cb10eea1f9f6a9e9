//! Operations on the activity list as a whole.

use arbitrary::Arbitrary;
use domain::ids::NotificationId;
use domain::notification::{Notification, NotificationOutcome, NotificationQuery};
use domain::time::Timestamp;
use serde_json::json;
use tidings::Clock;

use super::{About, Event, Process, Which, text};
use crate::parsed;
use crate::world::NO_ID;

/// Operation on the activity list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub enum Deed {
    /// Triggers so many notifications at once that segments fill up.
    Crowd,
    /// Deletes the notification with that position, counted from the newest.
    Delete,
    /// Deletes all notifications older than that one.
    DeleteBefore,
    /// Rebuilds the index.
    Rebuild,
    /// Counts the matching notifications.
    Count,
}

impl Process {
    pub(super) fn activity(&self, deed: Deed, which: u8) -> String {
        let notifications = self.world.env.notifications();
        match deed {
            Deed::Crowd => {
                let event = Event {
                    workflow: Which(which),
                    to: 1 << (which >> 2 & 3),
                    said: None,
                    transaction: None,
                    about: About(which >> 4),
                    urgent: which >> 6 & 1 == 1,
                };
                let events = vec![event.trigger(); 8 + usize::from(which % 16)];
                text(self.world.env.events().trigger_bulk(&events))
            }
            Deed::Delete => {
                let id = self.notification(which).map(|found| found.id);
                text(notifications.delete(id.unwrap_or_else(nowhere)))
            }
            Deed::DeleteBefore => {
                let time = self.notification(which).map(|found| found.created_at);
                let time: Timestamp = time.unwrap_or_else(|| self.world.clock.now());
                text(notifications.delete_before(time))
            }
            Deed::Rebuild => text(notifications.rebuild_index()),
            Deed::Count => self.count(which),
        }
    }

    // The notification so many behind the newest, if there are any.
    fn notification(&self, which: u8) -> Option<Notification> {
        let query = NotificationQuery::default().limit(50);
        let mut found = self.world.env.notifications().list(&query).ok()?.data;
        let at = usize::from(which).checked_rem(found.len())?;
        Some(found.swap_remove(at))
    }

    fn count(&self, which: u8) -> String {
        let outcomes = NotificationOutcome::ALL;
        let contexts = [json!([]), json!(["tenant:acme"]), json!(["app:web"])];
        let queries = [
            json!({ "channels": ["in_app", "email"] }),
            json!({ "subscriberIds": ["ada", "dan"], "templates": Which(which).name() }),
            json!({ "severity": ["high"], "contextKeys": contexts[usize::from(which) % 3] }),
            json!({ "after": "2026-11-20T12:00:01Z", "topicKey": "news" }),
            json!({ "outcomes": [outcomes[usize::from(which) % outcomes.len()]] }),
        ];
        let counts =
            queries.map(|query| text(self.world.env.notifications().count(&parsed(query))));
        counts.join(" ")
    }
}

fn nowhere() -> NotificationId {
    parsed(json!(NO_ID))
}
