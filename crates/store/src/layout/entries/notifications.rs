//! Notifications, and what delivers them.

use domain::digest::{DigestBucket, ThrottleSlot, WindowEvent};
use domain::ids::EnvironmentId;
use domain::notification::{Notification, NotificationOwner, Outcomes};
use domain::observer::Event;
use domain::task::{Task, TaskState};

use crate::key::Key;
use crate::layout::letters::dead_letter_entry;
use crate::layout::receipts::provider_message_entry;
use crate::layout::{DIGEST_EVENTS, HELD, digest_bucket, lane, notification, task, throttle_slots};
use crate::outcomes::Listed;
use crate::record::{Entries, Excerpt, LanePlace, Record};

impl Excerpt for NotificationOwner {
    type Of = Notification;

    fn key(&self, environment: EnvironmentId) -> Key<Notification> {
        notification(environment, self.id.ordinal())
    }
}

impl Record for Notification {
    fn key(&self) -> Key<Self> {
        notification(self.environment_id, self.id.ordinal())
    }

    // The logs of a notification under way are short and grow. Eight such notifications with three jobs fill
    // a page.
    fn reserved_len(&self) -> usize {
        let has_ended = self.jobs.iter().all(|job| job.status.has_ended());
        if has_ended { 0 } else { 130 + 110 * self.jobs.len() }
    }

    fn index(&self, entries: &mut Entries<Self>) {
        for letter in self.letter_facts() {
            entries.add(dead_letter_entry(self.environment_id, &letter));
        }
        for message in self.provider_messages() {
            entries.add(provider_message_entry(self, message));
        }
    }

    fn outcomes(&self) -> Option<(Listed, Outcomes)> {
        Some((Listed::of(self.environment_id, self.id.ordinal()), self.outcomes()))
    }

    fn events(before: Option<&Self>, after: Option<&Self>) -> Vec<Event> {
        Event::of_notification(before, after)
    }
}

impl Record for Task {
    fn key(&self) -> Key<Self> {
        task(self.environment_id, self.id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        match self.state {
            TaskState::Waiting { due_at, .. } | TaskState::Leased { until: due_at, .. } => {
                entries.add(lane(&self.lane()).then(due_at).then(self.id).end());
            }
            TaskState::Held { integration_id, .. } => {
                let held = HELD.within(self.environment_id).then(integration_id);
                entries.add(held.then(self.id).end());
            }
        }
    }

    fn lane(&self) -> Option<LanePlace> {
        Some((self.lane(), self.state.due_at()))
    }
}

impl Record for DigestBucket {
    fn key(&self) -> Key<Self> {
        digest_bucket(&self.id)
    }
}

impl Record for WindowEvent {
    fn key(&self) -> Key<Self> {
        let window = DIGEST_EVENTS.within(self.environment_id).then(self.window_id);
        window.then(self.number).end()
    }
}

impl Record for ThrottleSlot {
    fn key(&self) -> Key<Self> {
        throttle_slots(&self.id).then(self.until).then(self.notification_id).end()
    }
}
