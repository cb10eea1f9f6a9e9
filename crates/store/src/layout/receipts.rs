//! The index of messages at providers.

use domain::ids::{EnvironmentId, IntegrationId};
use domain::notification::Notification;

use super::PROVIDER_MESSAGES;
use crate::key::{Key, Range};

/// The entry of a message by the id that its provider gave it.
pub(super) fn provider_message_entry(
    notification: &Notification,
    (integration, id): (IntegrationId, &str),
) -> Key<Notification> {
    let messages = PROVIDER_MESSAGES.within(notification.environment_id).then(integration);
    messages.then(id).then(notification.id.ordinal()).end()
}

/// The notifications of a message by the id that its provider gave it, oldest first. A provider may
/// give an id twice.
pub fn provider_message(
    environment: EnvironmentId,
    integration: IntegrationId,
    id: &str,
) -> Range<Notification> {
    PROVIDER_MESSAGES.within(environment).then(integration).then(id).range()
}
