//! Reading of subscribers. Serde copies the fields of a flattened structure before it reads them, and each
//! trigger reads a subscriber.

use serde::Deserialize;

use super::{ChannelSettings, Profile, Subscriber};
use crate::contact::{Email, Locale, TimeZone};
use crate::ids::{EnvironmentId, InternalSubscriberId, OrganizationId, SubscriberId};
use crate::json::Object;
use crate::time::Timestamp;

/// The fields of a subscriber and of its profile.
#[derive(Deserialize)]
#[serde(rename = "Subscriber", rename_all = "camelCase")]
pub(super) struct Flat {
    #[serde(rename = "_id")]
    id: InternalSubscriberId,
    subscriber_id: SubscriberId,
    first_name: Option<String>,
    last_name: Option<String>,
    email: Option<Email>,
    phone: Option<String>,
    avatar: Option<String>,
    locale: Option<Locale>,
    timezone: Option<TimeZone>,
    #[serde(default)]
    channels: Vec<ChannelSettings>,
    data: Option<Object>,
    #[serde(default)]
    topics: Vec<String>,
    is_online: Option<bool>,
    last_online_at: Option<Timestamp>,
    #[serde(rename = "__v", default)]
    version: u64,
    #[serde(rename = "_organizationId")]
    organization_id: OrganizationId,
    #[serde(rename = "_environmentId")]
    environment_id: EnvironmentId,
    deleted: bool,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<Flat> for Subscriber {
    fn from(flat: Flat) -> Self {
        Self {
            id: flat.id,
            subscriber_id: flat.subscriber_id,
            profile: Profile {
                first_name: flat.first_name,
                last_name: flat.last_name,
                email: flat.email,
                phone: flat.phone,
                avatar: flat.avatar,
                locale: flat.locale,
                timezone: flat.timezone,
                channels: flat.channels,
                data: flat.data,
            },
            topics: flat.topics,
            is_online: flat.is_online,
            last_online_at: flat.last_online_at,
            version: flat.version,
            organization_id: flat.organization_id,
            environment_id: flat.environment_id,
            deleted: flat.deleted,
            created_at: flat.created_at,
            updated_at: flat.updated_at,
        }
    }
}
