//! The tables of suppressions.

use domain::ids::{EnvironmentId, SuppressionId};
use domain::suppression::Suppression;
use domain::time::Timestamp;
use domain::vocabulary::Channel;

use super::{EXPIRING_SUPPRESSIONS, SUPPRESSION_LISTS, SUPPRESSIONS};
use crate::key::{Key, Prefix, Range, Text, parts};

/// The suppression of an address in its normal form.
pub fn suppression(
    environment: EnvironmentId,
    channel: Channel,
    address: &str,
) -> Key<Suppression> {
    SUPPRESSIONS.within(environment).then(channel).then(address).end()
}

/// The suppressions of an environment.
pub fn suppressions(environment: EnvironmentId) -> Prefix<Suppression, parts![Channel, Text]> {
    SUPPRESSIONS.within(environment)
}

/// The suppressions of a channel, or all, oldest first.
pub fn suppression_list(
    environment: EnvironmentId,
    channel: Option<Channel>,
) -> Prefix<Suppression, parts![SuppressionId]> {
    SUPPRESSION_LISTS.within(environment).then(channel.map(Channel::as_str))
}

/// The suppressions that have expired at `now`.
pub fn expired_suppressions(environment: EnvironmentId, now: Timestamp) -> Range<Suppression> {
    EXPIRING_SUPPRESSIONS.within(environment).until(now)
}

/// The suppression that a key of [`expired_suppressions`] leads to.
pub fn suppression_of(entry: &[u8]) -> Option<Key<Suppression>> {
    let (environment, (_, (channel, (address, ())))) = EXPIRING_SUPPRESSIONS.read(entry)?;
    Some(suppression(environment, channel, address))
}
