//! Ranks of the integrations of a channel, of which one may be primary.

use domain::integration::{Integration, Peers};
use domain::vocabulary::Channel;
use store::WriteRecords;

use super::lookup::{all, check_readable, cloned};
use crate::Result;
use crate::tx::{Tx, View};

/// Changes the integrations of a channel together, because their ranks depend on one another.
pub(super) fn rank(
    tx: &mut Tx<'_>,
    channel: Channel,
    change: impl FnOnce(&mut Peers),
) -> Result<()> {
    let mut peers = peers(tx, channel)?;
    let before = peers.0.clone();
    change(&mut peers);
    store(tx, &before, &peers.0)
}

/// The integrations of a channel. Fails if one cannot be read, since it may be the primary one.
pub(super) fn peers(view: &dyn View, channel: Channel) -> Result<Peers> {
    check_readable(view)?;
    readable_peers(view, channel)
}

/// The integrations of a channel that can be read.
pub(super) fn readable_peers(view: &dyn View, channel: Channel) -> Result<Peers> {
    let mut integrations = all(view)?;
    integrations.retain(|integration| integration.channel == channel);
    Ok(Peers(cloned(integrations)))
}

/// Stores those that have changed.
pub(super) fn store(tx: &mut Tx<'_>, before: &[Integration], after: &[Integration]) -> Result<()> {
    for (before, after) in before.iter().zip(after).filter(|(before, after)| before != after) {
        tx.replace(before, after)?;
    }
    Ok(())
}
