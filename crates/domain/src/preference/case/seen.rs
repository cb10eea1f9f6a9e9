//! Subscriber as the conditions of a case see one.

use serde::{Deserialize, Serialize};

use crate::error::Invalid;
use crate::ids::{EnvironmentId, SubscriberId};
use crate::json::{Object, Unknown, checked, shape};
use crate::subscriber::Profile;
use crate::time::Timestamp;

/// Fields of a subscriber, without the channel settings. Each of them may be absent.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SeenSubscriber {
    #[serde(flatten)]
    profile: Profile,
    #[serde(skip_serializing_if = "Option::is_none")]
    subscriber_id: Option<SubscriberId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    topics: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_online: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_online_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<Timestamp>,
    #[serde(rename = "__v", skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(rename = "_id", skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(rename = "_organizationId", skip_serializing_if = "Option::is_none")]
    organization_id: Option<String>,
    #[serde(rename = "_environmentId", skip_serializing_if = "Option::is_none")]
    environment_id: Option<EnvironmentId>,
}

shape! { SeenSubscriber {
    "subscriberId": subscriber_id, "topics": topics, "isOnline": is_online,
    "lastOnlineAt": last_online_at, "deleted": deleted, "createdAt": created_at,
    "updatedAt": updated_at, "__v": version, "_id": id, "_organizationId": organization_id,
    "_environmentId": environment_id;
    profile
} }

impl SeenSubscriber {
    /// Reads the fields as those of a request.
    pub(super) fn read(fields: Object) -> Result<Self, Invalid> {
        let mut seen: Self = checked(&fields.into(), Unknown::Refused)?;
        seen.profile.check()?;
        // Conditions do not see the channel settings, which hold secrets.
        seen.profile.channels.clear();
        Ok(seen)
    }
}
