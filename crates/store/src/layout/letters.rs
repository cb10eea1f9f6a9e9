//! The index of dead letters.

use domain::dead_letter::LetterFacts;
use domain::ids::{DeadLetterId, EnvironmentId};
use domain::notification::Notification;

use super::{DEAD_LETTERS, notification};
use crate::{Key, Range};

/// The entry of a dead letter.
pub(super) fn dead_letter_entry(
    environment: EnvironmentId,
    letter: &LetterFacts,
) -> Key<Notification> {
    let key = DEAD_LETTERS.within(environment).then(letter.id).then(letter.died_at);
    let key = key.then(letter.channel).then(letter.reason);
    key.then(letter.workflow_id).then(letter.integration_id).then(letter.ordinal).end()
}

/// The entry of the dead letter with this id.
pub fn dead_letter(environment: EnvironmentId, id: DeadLetterId) -> Range<Notification> {
    DEAD_LETTERS.within(environment).then(id).range()
}

/// The entries of the dead letters behind the one with this id, oldest failure first, or of all.
pub fn dead_letters_behind(
    environment: EnvironmentId,
    id: Option<DeadLetterId>,
) -> Range<Notification> {
    DEAD_LETTERS.within(environment).behind_or_all(id)
}

/// What an entry in [`DEAD_LETTERS`] tells.
pub fn letter_of(entry: &[u8]) -> Option<LetterFacts> {
    let (_, (id, (died_at, (channel, (reason, rest))))) = DEAD_LETTERS.read(entry)?;
    let (workflow_id, (integration_id, (ordinal, ()))) = rest;
    Some(LetterFacts { id, died_at, workflow_id, integration_id, channel, reason, ordinal })
}

/// The notification of an entry in [`DEAD_LETTERS`].
pub fn notification_of_letter(entry: &[u8]) -> Option<Key<Notification>> {
    let (environment, _) = DEAD_LETTERS.read(entry)?;
    Some(notification(environment, letter_of(entry)?.ordinal))
}
