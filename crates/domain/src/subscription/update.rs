//! Updates of subscriptions.

use serde::{Deserialize, Serialize};

use super::setting::check_settings;
use super::{WorkflowSetting, check_name};
use crate::error::Invalid;
use crate::json::shape;
use crate::patch::Patch;

/// Partial update of a subscription. Absent fields keep their value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SubscriptionUpdate {
    /// Display name: at most 255 characters.
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub name: Patch<String>,
    /// Settings for workflows, which replace the stored ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preferences: Option<Vec<WorkflowSetting>>,
}

shape! { update SubscriptionUpdate { "name": name, "preferences": preferences } }

impl SubscriptionUpdate {
    /// Refuses an overlong text, and more than 100 names of workflows.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        if let Patch::Set(name) = &self.name {
            check_name(name)?;
        }
        self.preferences.as_deref().map_or(Ok(()), check_settings)
    }
}
