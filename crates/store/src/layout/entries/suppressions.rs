//! Suppressions.

use domain::suppression::Suppression;

use crate::key::Key;
use crate::layout::{EXPIRING_SUPPRESSIONS, suppression, suppression_list};
use crate::record::{Entries, Record};

impl Record for Suppression {
    fn key(&self) -> Key<Self> {
        suppression(self.environment_id, self.address.channel(), self.address.address())
    }

    fn index(&self, entries: &mut Entries<Self>) {
        let (environment, channel) = (self.environment_id, self.address.channel());
        for of in [None, Some(channel)] {
            entries.add(suppression_list(environment, of).then(self.id).end());
        }
        if let Some(expires_at) = self.expires_at {
            let expiring = EXPIRING_SUPPRESSIONS.within(environment).then(expires_at);
            entries.add(expiring.then(channel).then(self.address.address()).end());
        }
    }
}
