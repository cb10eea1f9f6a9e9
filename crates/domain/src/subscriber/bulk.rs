//! Many subscribers in one call.

use serde::{Deserialize, Serialize};

use super::SubscriberCreate;
use crate::error::{Invalid, Reason, Unit, at_most_items};
use crate::json;
use crate::limits::{Limits, sized};

/// Result for one subscriber of a bulk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Upserted {
    /// The subscriber was created.
    Created,
    /// The subscriber was changed.
    Updated,
    /// The subscriber was there, with these fields.
    Unchanged,
}

impl SubscriberCreate {
    /// Maximum number of subscribers in a bulk.
    pub const MAX_BULK: usize = 500;
    /// Maximum size of the subscribers of a bulk as JSON texts, in bytes.
    pub const MAX_BULK_SIZE: usize = 4 * 1024 * 1024;

    /// Refuses a bulk without subscribers, with too many or too large ones, or with one that alone is refused.
    #[doc(hidden)]
    pub fn check_bulk(creates: &[Self], limits: &Limits) -> Result<(), Invalid> {
        const FIELD: &str = "subscribers";
        if creates.is_empty() {
            return Err(Invalid::new(FIELD, Reason::Empty));
        }
        at_most_items(FIELD, creates, Self::MAX_BULK)?;
        for (index, Self { profile, .. }) in creates.iter().enumerate() {
            let checked = profile.check().and_then(|()| limits.check_profile(profile));
            checked.map_err(|invalid| invalid.within(format!("{FIELD}[{index}]")))?;
        }
        let size = creates.iter().map(json::size).sum();
        sized(FIELD, size, Self::MAX_BULK_SIZE, Unit::Bytes)
    }
}
