//! Limits on the input of callers.
//!
//! A host can change the fields of [`Limits`]. The other limits are constants of their types:
//!
//! | what | limit |
//! |---|---|
//! | identifiers | 255 bytes: [`ids::MAX_LEN`](crate::ids::MAX_LEN) |
//! | names of environments and API keys | [`EnvironmentName::MAX_LEN`], [`ApiKeyName::MAX_LEN`] |
//! | addresses | [`Email::MAX_LEN`], [`PhoneNumber::MAX_DIGITS`], [`SuppressedAddress::MAX_DIGITS`] |
//! | nesting of an object | [`Object::MAX_DEPTH`] |
//! | workflows | [`Workflow::MAX_NAME`], [`MAX_DESCRIPTION`](Workflow::MAX_DESCRIPTION), [`MAX_TAGS`](Workflow::MAX_TAGS), [`MAX_TAG`](Workflow::MAX_TAG), [`MAX_STEPS`](Workflow::MAX_STEPS), [`MAX_PAYLOAD_SCHEMA`](Workflow::MAX_PAYLOAD_SCHEMA), [`MAX_SCHEMA_REFERENCES`](Workflow::MAX_SCHEMA_REFERENCES), [`WorkflowSync::MAX`] |
//! | steps | [`StepDefinition::MAX_NAME`], [`MAX_VARIANTS`](StepDefinition::MAX_VARIANTS), [`MAX_BLOCKS`](StepDefinition::MAX_BLOCKS), [`MAX_BUTTONS`](StepDefinition::MAX_BUTTONS), [`MAX_DAYS`](StepDefinition::MAX_DAYS), [`MAX_PATH`](StepDefinition::MAX_PATH), [`MAX_CRON`](StepDefinition::MAX_CRON), [`MAX_INTEGRATIONS`](StepDefinition::MAX_INTEGRATIONS), [`MAX_DESTINATIONS`](StepDefinition::MAX_DESTINATIONS), [`Throttle::MAX_THRESHOLD`] |
//! | templates | [`Template::MAX_LEN`], [`MAX_OUTPUT`](Template::MAX_OUTPUT), [`MAX_TAGS`](Template::MAX_TAGS), [`MAX_TOKENS`](Template::MAX_TOKENS), [`MAX_OPERATORS`](Template::MAX_OPERATORS), [`MAX_NESTING`](Template::MAX_NESTING), [`MAX_BLOCKS`](Template::MAX_BLOCKS), [`MAX_ELIFS`](Template::MAX_ELIFS), [`MAX_DEPTH`](Template::MAX_DEPTH), [`MAX_INDEX`](Template::MAX_INDEX), [`MAX_FORMAT`](Template::MAX_FORMAT), [`MAX_NUMBER`](Template::MAX_NUMBER), [`MAX_RANGE`](Template::MAX_RANGE) |
//! | a rendering | [`Template::MAX_WORK`], [`MAX_WEIGHT`](Template::MAX_WEIGHT), [`MAX_VALUE_DEPTH`](Template::MAX_VALUE_DEPTH) |
//! | all renderings of a message | [`Template::MAX_MESSAGE_WORK`], [`MAX_MESSAGE_WEIGHT`](Template::MAX_MESSAGE_WEIGHT) |
//! | step filters | [`Filter::MAX_DEPTH`], [`MAX_PARTS`](Filter::MAX_PARTS), [`FieldFilterPart::MAX_FIELD`], [`MAX_VALUE`](FieldFilterPart::MAX_VALUE), [`MAX_PATTERN`](FieldFilterPart::MAX_PATTERN) |
//! | conditions | [`Rule::MAX_DEPTH`], [`MAX_NODES`](Rule::MAX_NODES), [`MAX_SIZE`](Rule::MAX_SIZE), [`MAX_WORK`](Rule::MAX_WORK), [`MAX_DATA_DEPTH`](Rule::MAX_DATA_DEPTH) |
//! | triggers | [`Trigger::MAX_RECIPIENTS`], [`MAX_AT_ONCE`](Trigger::MAX_AT_ONCE), [`MAX_EXCLUDED`](Trigger::MAX_EXCLUDED), [`MAX_BULK`](Trigger::MAX_BULK) |
//! | contexts | [`ContextPayload::MAX`] in a call, [`Context::MAX_DATA`], [`ContextPart::MAX_LEN`] |
//! | subscribers | [`Profile::MAX_CHANNELS`], [`MAX_DEVICE_TOKENS`](Profile::MAX_DEVICE_TOKENS), [`MAX_DEVICE_TOKEN`](Profile::MAX_DEVICE_TOKEN), [`SubscriberCreate::MAX_BULK`], [`MAX_BULK_SIZE`](SubscriberCreate::MAX_BULK_SIZE) |
//! | preferences | [`WorkflowPreferenceUpdates::MAX`], [`DaySchedule::MAX_HOURS`] |
//! | topics | [`Topic::MAX_NAME`], [`TopicKey::MAX_LEN`] |
//! | subscriptions | [`Subscribe::MAX`], [`Subscription::MAX_OF_SUBSCRIBER`], [`MAX_PREFERENCES`](Subscription::MAX_PREFERENCES), [`MAX_CONDITIONS_SIZE`](Subscription::MAX_CONDITIONS_SIZE), [`MAX_NAME`](Subscription::MAX_NAME), [`MAX_IDENTIFIER`](Subscription::MAX_IDENTIFIER), [`SubscriptionIdentifier::MAX_LEN`] |
//! | unsubscribe links | [`UnsubscribeLinks::MAX_URL`], [`MAX_TOKEN`](UnsubscribeLinks::MAX_TOKEN) |
//! | suppressions, and receipts of providers | [`SuppressionCreate::MAX_TEXT`], [`Receipt::MAX_ID`], [`Receipt::MAX_TEXT`], [`Receipt::MAX_RECORDED`] |
//! | reports of providers, with receipts in them | `tidings::InboundReport::MAX_BODY`, `InboundReport::MAX_RECEIPTS` |
//! | events that a job of a digest shows | [`JobDigest::MAX_EVENTS`], [`MAX_EVENTS_SIZE`](JobDigest::MAX_EVENTS_SIZE) |
//! | integrations | [`Integration::MAX_NAME`], [`Credentials::MAX_SIZE`] |
//! | connections and endpoints | [`Workspace::MAX_NAME`], [`ConnectionAuth::MAX_TOKEN`], [`WebhookUrl::MAX_LEN`], [`ChannelEndpoint::MAX_PER_INTEGRATION`] |
//! | layouts and translations | [`Layout::MAX_NAME`], [`Translation::MAX_CONTENT`], [`TranslationImport::MAX`] |
//! | messages marked, archived, snoozed or deleted at once | [`Message::MAX_MARKED`], [`MAX_MARKED_SIZE`](Message::MAX_MARKED_SIZE) |
//! | pages | [`PageQuery::MAX_LIMIT`], [`NotificationQuery::MAX_LIMIT`], [`DeadLetterQuery::MAX_LIMIT`] |
//! | lists in a query | [`NotificationQuery::MAX_VALUES`], [`MessageQuery::MAX_VALUES`], [`TagFilter::MAX_GROUPS`], [`MAX_IN_GROUP`](TagFilter::MAX_IN_GROUP), [`MAX_IN_ALL`](TagFilter::MAX_IN_ALL), [`DataFilter::MAX_TEXT`], [`DeadLetterQuery::MAX_VALUES`], [`ContextFilter::MAX_VALUES`] |
//! | records that a query looks at | [`MessageQuery::MAX_SCANNED`], [`MAX_ENTRIES`](MessageQuery::MAX_ENTRIES) without reading them, [`DeadLetterQuery::MAX_SCANNED`] |
//! | API keys of an environment | [`ApiKey::MAX`] |
//! | `tidings-providers` | `Smtp::MAX_HEADER_NAME`, `Smtp::MAX_HELLO_NAME`, `Smtp::MAX_URL`, `WebPush::MAX_TOPIC`, `WebPush::MAX_MESSAGE`, `WebhookKeys::MAX_KEY` |

#[cfg(doc)]
use crate::{
    api_key::{ApiKey, ApiKeyName},
    condition::Rule,
    connection::{ConnectionAuth, Workspace},
    contact::Email,
    context::{Context, ContextFilter, ContextPart, ContextPayload},
    credentials::Credentials,
    dead_letter::DeadLetterQuery,
    endpoint::{ChannelEndpoint, PhoneNumber, WebhookUrl},
    environment::EnvironmentName,
    filter::{FieldFilterPart, Filter},
    ids::{SubscriptionIdentifier, TopicKey},
    integration::Integration,
    job::JobDigest,
    layout::Layout,
    message::{DataFilter, Message, MessageQuery, TagFilter},
    notification::NotificationQuery,
    page::PageQuery,
    preference::WorkflowPreferenceUpdates,
    receipt::Receipt,
    schedule::DaySchedule,
    step::{StepDefinition, Throttle},
    subscriber::SubscriberCreate,
    subscription::{Subscribe, Subscription},
    suppression::{SuppressedAddress, SuppressionCreate},
    template::Template,
    topic::Topic,
    translation::{Translation, TranslationImport},
    unsubscribe::UnsubscribeLinks,
    workflow::{Workflow, WorkflowSync},
};

use crate::error::{Invalid, Reason, Unit};
use crate::json::Object;
use crate::message::CompleteAction;
use crate::preview::Preview;
use crate::setters::setters;
use crate::subscriber::{Profile, SubscriberTexts, SubscriberUpdate};
use crate::trigger::{Recipient, SubscriberRecipient, Trigger};

/// Limits that a host can change.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use tidings::limits::Limits;
///
/// let limits = Limits::default().payload(16 * 1024);
/// assert_eq!((limits.payload, limits.overrides), (16 * 1024, 64 * 1024));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Longest first name, last name and phone number of a subscriber, in characters: 255 by default.
    pub subscriber_text: usize,
    /// Longest avatar of a subscriber, in characters: 2,048 by default.
    pub avatar: usize,
    /// Largest custom data of a subscriber or a workflow, in bytes of JSON text: 64 KiB by default.
    pub data: usize,
    /// Largest payload of a trigger, and largest result of a custom step, in bytes of JSON text: 256
    /// KiB by default.
    pub payload: usize,
    /// Largest overrides of a trigger, in bytes of JSON text: 64 KiB by default.
    pub overrides: usize,
    /// Largest content of the notifications that one event creates at once, in bytes: 8 MiB by
    /// default. Payload and overrides count once for each notification and each message in an inbox,
    /// and the text of such a message counts as well. An event with more is refused. Other writers
    /// wait while the content is written. In an explanation, the messages of every channel count.
    /// The subscribers that an event creates or changes may have as many bytes of JSON text together.
    /// Tasks notify larger topics in parts, to which this limit does not apply.
    pub content: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            subscriber_text: 255,
            avatar: 2_048,
            data: 64 * 1024,
            payload: 256 * 1024,
            overrides: 64 * 1024,
            content: 8 * 1024 * 1024,
        }
    }
}

setters! { Limits:
    /// Sets the longest first name, last name and phone number of a subscriber, in characters.
    subscriber_text: exact(usize);
    /// Sets the longest avatar of a subscriber, in characters.
    avatar: exact(usize);
    /// Sets the largest custom data of a subscriber or a workflow, in bytes of JSON text.
    data: exact(usize);
    /// Sets the largest payload of a trigger and the largest result of a custom step, in bytes of
    /// JSON text.
    payload: exact(usize);
    /// Sets the largest overrides of a trigger, in bytes of JSON text.
    overrides: exact(usize);
    /// Sets the largest content of the notifications that one event creates at once, in bytes.
    content: exact(usize);
}

impl Limits {
    /// Refuses custom data that is too large.
    #[doc(hidden)]
    pub fn check_data(&self, data: Option<&Object>) -> Result<(), Invalid> {
        object("data", data, self.data)
    }

    /// Refuses texts and custom data of a subscriber that are too large.
    #[doc(hidden)]
    pub fn check_profile(&self, profile: &Profile) -> Result<(), Invalid> {
        self.check_texts(profile.texts())?;
        self.check_data(profile.data.as_ref())
    }

    /// Refuses an update of a subscriber with texts or custom data that are too large.
    #[doc(hidden)]
    pub fn check_update(&self, update: &SubscriberUpdate) -> Result<(), Invalid> {
        self.check_texts(update.texts())?;
        self.check_data(update.data.as_set())
    }

    /// Refuses the completion of an action with a payload that is too large.
    #[doc(hidden)]
    pub fn check_action(&self, choice: &CompleteAction) -> Result<(), Invalid> {
        object("payload", choice.payload.as_ref(), self.data)
    }

    /// Refuses a trigger whose payload, overrides or subscribers are too large. Returns its
    /// [size](Trigger::size).
    #[doc(hidden)]
    pub fn check_trigger(&self, trigger: &Trigger) -> Result<usize, Invalid> {
        let payload = trigger.payload.size();
        let overrides = trigger.overrides.as_ref().map_or(0, Object::size);
        sized("payload", payload, self.payload, Unit::Bytes)?;
        sized("overrides", overrides, self.overrides, Unit::Bytes)?;
        if let Some(SubscriberRecipient::Inline(create)) = &trigger.actor {
            self.check_profile(&create.profile).map_err(|bad| bad.within("actor"))?;
        }
        let mut subscribers = 0;
        trigger.to.each(|subscriber| match subscriber {
            Recipient::Subscriber(SubscriberRecipient::Inline(create)) => {
                subscribers += crate::json::size(create);
                self.check_profile(&create.profile)
            }
            Recipient::Subscriber(SubscriberRecipient::Id(_)) | Recipient::Topic(_) => Ok(()),
        })?;
        sized("to", subscribers, self.content, Unit::Bytes)?;
        Ok(payload + overrides)
    }

    /// Refuses a preview with a payload that is larger than that of a trigger may be.
    #[doc(hidden)]
    pub fn check_preview(&self, preview: &Preview) -> Result<(), Invalid> {
        object("payload", Some(&preview.payload), self.payload)
    }

    /// Refuses notifications of one event whose content takes so many bytes.
    #[doc(hidden)]
    pub fn check_content(&self, size: usize) -> Result<(), Invalid> {
        if size > self.content {
            return Err(Invalid::new("payload", Reason::TooMuch { max: self.content }));
        }
        Ok(())
    }

    /// Refuses the result of a custom step that is too large.
    #[doc(hidden)]
    pub fn check_result(&self, result: Option<&Object>) -> Result<(), Invalid> {
        object("result", result, self.payload)
    }

    fn check_texts(&self, texts: SubscriberTexts<'_>) -> Result<(), Invalid> {
        let SubscriberTexts { names, avatar } = texts;
        names.into_iter().try_for_each(|(field, name)| {
            text(field, name.unwrap_or_default(), self.subscriber_text)
        })?;
        text("avatar", avatar.unwrap_or_default(), self.avatar)
    }
}

/// Refuses an object that takes more than `max` bytes as JSON text.
pub(crate) fn object(field: &str, object: Option<&Object>, max: usize) -> Result<(), Invalid> {
    sized(field, object.map_or(0, Object::size), max, Unit::Bytes)
}

/// Refuses a text of more than `max` characters.
pub(crate) fn text(field: &str, text: &str, max: usize) -> Result<(), Invalid> {
    sized(field, text.chars().count(), max, Unit::Characters)
}

/// Refuses a size above `max`.
pub(crate) fn sized(field: &str, size: usize, max: usize, unit: Unit) -> Result<(), Invalid> {
    if size > max {
        return Err(Invalid::new(field, Reason::TooLarge { max, size, unit }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::credentials::Credentials;
    use crate::filter::Filter;
    use crate::notification::NotificationQuery;
    use crate::sample;

    #[test]
    fn a_refusal_names_the_limit_and_the_size() {
        assert_eq!(text("firstName", &"ü".repeat(255), 255), Ok(()));
        let refused = text("firstName", &"ü".repeat(256), 255).unwrap_err();
        let expected = "`firstName` must be at most 255 characters long, not 256";
        assert_eq!(refused.to_string(), expected);

        let limits = Limits::default().data(10);
        let data = |text: &str| sample::object(json!({ "a": text }));
        assert_eq!(limits.check_data(Some(&data("xx"))), Ok(()));
        assert_eq!(limits.check_data(None), Ok(()));
        let refused = limits.check_data(Some(&data("ü1"))).unwrap_err();
        assert_eq!(refused.to_string(), "`data` must be at most 10 bytes long, not 11");
    }

    /// Each of them alone is within the limits of its fields.
    #[test]
    fn the_subscribers_of_an_event_have_a_largest_size_together() {
        let limits = Limits::default().content(1_000);
        let check = |length: usize| {
            let inline = |id: &str| json!({ "subscriberId": id, "avatar": "x".repeat(length) });
            let trigger = json!({ "name": "hi", "to": [inline("ada"), "bob", inline("eve")] });
            limits.check_trigger(&serde_json::from_value(trigger).unwrap()).map(drop)
        };
        assert_eq!(check(400), Ok(()));
        let refused = check(500).unwrap_err().to_string();
        assert!(refused.starts_with("`to` must be at most 1000 bytes long, not 1"), "{refused}");
    }

    #[test]
    fn what_is_too_large_is_refused_with_limit_and_size() {
        let credentials = |key: usize| Credentials::default().api_key("k".repeat(key)).check();
        let profile = |credentials: serde_json::Value| {
            let channel = json!({
                "providerId": "fcm", "_integrationId": uuid::Uuid::nil(), "credentials": credentials,
            });
            let profile = serde_json::from_value::<Profile>(json!({ "channels": [channel] }));
            profile.unwrap().check()
        };
        let token = |len: usize| profile(json!({ "deviceTokens": ["t", "t".repeat(len)] }));
        let query = |len: usize| {
            let query = NotificationQuery::default().emails(vec!["ada@example.org"; len]);
            query.check().map(drop)
        };
        let part = |field: usize, value: usize| {
            crate::filter::check(&[Filter::payload("x".repeat(field)).equals("y".repeat(value))])
        };
        for result in [part(1024, 16 * 1024), credentials(65_523), token(4096), query(1000)] {
            assert_eq!(result, Ok(()));
        }
        for (result, expected) in [
            (
                part(1025, 1),
                "`filters[0].children[0].field` must be at most 1024 characters long, not 1025",
            ),
            (
                part(1, 16 * 1024 + 1),
                "`filters[0].children[0].value` must be at most 16384 characters long, not 16385",
            ),
            (credentials(65_524), "`credentials` must be at most 65536 bytes long, not 65537"),
            (
                token(4097),
                "`channels[0].credentials.deviceTokens[1]` must be at most 4096 characters long, not 4097",
            ),
            (
                profile(json!({ "alertUid": "x".repeat(4097) })),
                "`channels[0].credentials.alertUid` must be at most 4096 characters long, not 4097",
            ),
            (query(1001), "`emails` must have at most 1000 items"),
        ] {
            assert_eq!(result.unwrap_err().to_string(), expected);
        }
    }

    /// The table at the head of this file has every limit of the crate.
    #[test]
    fn the_table_has_every_limit() {
        let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let (mut open, mut limits) = (vec![source], Vec::new());
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                limits.extend(limits_in(&std::fs::read_to_string(path).unwrap()));
            }
        }
        let table = include_str!("limits.rs").lines().filter(|line| line.starts_with("//! |"));
        let table = table.collect::<Vec<_>>().join("\n");
        let is_there = |limit: &String| {
            let (of, name) = limit.split_once("::").unwrap();
            table.contains(&format!("[`{limit}`]")) || table.contains(&format!("[`{name}`]({of}::"))
        };
        let missing: Vec<_> = limits.iter().filter(|limit| !is_there(limit)).collect();
        assert!(missing.is_empty(), "not in the table: {missing:?}");
        assert!(limits.len() > 60, "{limits:?}");
    }

    // Public constants of a type whose names begin with `MAX`, as in `Workflow::MAX_NAME`.
    fn limits_in(source: &str) -> Vec<String> {
        let (mut of, mut limits) = ("", Vec::new());
        for line in source.lines() {
            let line_of = line.strip_prefix("impl ").and_then(|rest| rest.strip_suffix(" {"));
            of = line_of.unwrap_or(of);
            let constant = line.strip_prefix("    pub const MAX");
            if let Some((name, _)) = constant.and_then(|rest| rest.split_once(':')) {
                limits.push(format!("{of}::MAX{name}"));
            }
        }
        limits.retain(|limit| limit != "Timestamp::MAX" && limit != "Ordinal::MAX");
        limits
    }
}
