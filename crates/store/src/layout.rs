//! The layout on disk: every table, and the parts of its keys.
//!
//! Every key starts with its environment, so that no look-up can leave its environment. Exceptions are
//! the tables that lead to an environment, those of tasks that are due, the quarantine, and the marks of
//! sealing keys and of older formats. Ids are in order of creation, so that lists by id are lists by
//! time. Messages lie where their notifications do.
//!
//! Only this module makes keys. A change of a row here changes the format on disk: raise
//! [`FORMAT`], and add the old format to the tests.

mod activity;
mod ages;
mod channels;
mod counted;
mod entries;
mod identified;
mod keys;
mod lanes;
mod letters;
mod receipts;
mod roles;
mod suppressions;
mod tables;
mod targets;
mod text_index;

use domain::api_key::ApiKey;
use domain::connection::ChannelConnection;
use domain::contact::Locale;
use domain::context::{Context, ContextKey, ContextSet};
use domain::dead_letter::DeadLetterReason;
use domain::digest::{DigestBucket, ThrottleSlot, WindowEvent};
use domain::endpoint::ChannelEndpoint;
use domain::environment::Environment;
use domain::idempotency::StoredAnswer;
use domain::ids::{
    ApiKeyId, ConnectionId, ConnectionIdentifier, ContextId, DeadLetterId, DigestWindowId,
    EndpointId, EndpointIdentifier, EnvironmentId, IdempotencyKey, IntegrationId,
    IntegrationIdentifier, InternalSubscriberId, LayoutId, LayoutIdentifier, NotificationId,
    OrganizationId, QuarantineId, StepId, SubscriberId, SubscriptionId, SubscriptionIdentifier,
    SuppressionId, TaskId, TopicId, TopicKey, TransactionId, TranslationId, WorkflowId,
    WorkflowIdentifier,
};
use domain::integration::Integration;
use domain::layout::Layout;
use domain::message::{DeletedMessage, ListPlace, Message, MessagePlace, Shelf};
use domain::notification::{Notification, NotificationOutcome, Ordinal};
use domain::preference::SubscriberPreference;
use domain::quarantine::Quarantined;
use domain::step::EventKey;
use domain::subscriber::Subscriber;
use domain::subscription::Subscription;
use domain::suppression::Suppression;
use domain::task::{Task, TaskClass};
use domain::time::Timestamp;
use domain::topic::Topic;
use domain::translation::{Resource, Translation, TranslationGroup};
use domain::trigger::{AcceptedTrigger, CanceledTrigger, FanOut, FanOutState};
use domain::unsubscribe::LinkKey;
use domain::vocabulary::Channel;
use domain::workflow::Workflow;

use crate::key::{Any, Bytes, Sorted, TableOf, Text, parts};
use crate::record::{RowEntries, row_entries};
use crate::stored::stored;
use crate::{Codec, Result};

pub use activity::*;
pub use ages::*;
pub use channels::*;
pub use counted::*;
pub use identified::*;
pub use keys::*;
pub use lanes::*;
pub use letters::*;
pub use receipts::*;
pub use roles::*;
pub use suppressions::*;
pub use tables::Table;
pub use targets::*;
pub use text_index::*;

/// The version of this layout. A file has the version that it was written with.
pub const FORMAT: u32 = 3;

/// The oldest format that this version reads.
pub const OLDEST_FORMAT: u32 = 2;

// The tables of each kind of record: the one that has the records, and those that lead to them. Behind
// them, the tables of other rows, by their role. A table or a record that is missing does not compile.
macro_rules! layout {
    (
        $($record:ident {
            $(#[$doc:meta])*
            $name:ident = $table:ident [$($part:ty),+ $(,)?];
            $($(#[$index_doc:meta])* $index_name:ident = $index:ident [$($index_part:ty),+ $(,)?];)*
        })+
        ;
        $($role:ident $(($of:expr))? {
            $($(#[$row_doc:meta])* $row_name:ident = $row:ident [$($row_part:ty),+ $(,)?];)+
        })+
    ) => {
        $(
            $(#[$doc])*
            pub const $name: TableOf<$record, parts![$($part),+]> = TableOf::new(Table::$table);
            $(
                $(#[$index_doc])*
                pub const $index_name: TableOf<$record, parts![$($index_part),+]> =
                    TableOf::new(Table::$index);
            )*
            stored! { $record in $table }
        )+
        $($(
            $(#[$row_doc])*
            pub const $row_name: TableOf<Bytes, parts![$($row_part),+]> =
                TableOf::new(Table::$row);
        )+)+

        impl Table {
            /// What the rows of the table are.
            #[doc(hidden)]
            pub const fn role(self) -> Role {
                match self {
                    $(
                        Table::$table => Role::Records,
                        $(Table::$index => Role::IndexOf(Table::$table),)*
                    )+
                    $($(Table::$row)|+ => Role::$role $(($of))?,)+
                }
            }

            /// The index entries of the record in a row of the table. Returns `None` if the table has
            /// no records.
            pub(crate) fn entries_of_row(
                self,
                codec: Codec<'_>,
                (key, value): (&[u8], &[u8]),
            ) -> Option<Result<RowEntries>> {
                let entries_of = match self {
                    $(Table::$table => row_entries::<$record>,)+
                    $($(Table::$index => return None,)*)+
                    $($(Table::$row)|+ => return None,)+
                };
                Some(entries_of(codec, key, value))
            }
        }
    };
}

layout! {
    Environment {
        /// Environments.
        ENVIRONMENTS = Environments [OrganizationId, EnvironmentId];
        /// Environments by their ids alone.
        ENVIRONMENT_IDS = EnvironmentIds [EnvironmentId];
    }
    ApiKey {
        /// API keys of environments.
        ENVIRONMENT_KEYS = EnvironmentKeys [EnvironmentId, ApiKeyId];
        /// API keys by their hashes.
        API_KEYS = ApiKeys [Text];
    }
    LinkKey {
        /// Keys that sign unsubscribe links.
        LINK_KEYS = LinkKeys [EnvironmentId];
    }
    Subscriber {
        /// Subscribers by the names that the host gave them.
        SUBSCRIBERS = Subscribers [EnvironmentId, SubscriberId];
        /// Subscribers by their ids.
        SUBSCRIBER_IDS = SubscriberIds [EnvironmentId, InternalSubscriberId];
        /// Subscribers by e-mail address.
        SUBSCRIBER_EMAILS = SubscriberEmails [EnvironmentId, Text, InternalSubscriberId];
        /// Subscribers by telephone number.
        SUBSCRIBER_PHONES = SubscriberPhones [EnvironmentId, Text, InternalSubscriberId];
    }
    Workflow {
        /// Workflows.
        WORKFLOWS = Workflows [EnvironmentId, WorkflowId];
        /// Workflows by identifier.
        WORKFLOW_IDENTIFIERS = WorkflowIdentifiers [EnvironmentId, WorkflowIdentifier];
    }
    Integration {
        /// Integrations.
        INTEGRATIONS = Integrations [EnvironmentId, IntegrationId];
        /// Integrations that are not deleted, by identifier.
        INTEGRATION_IDENTIFIERS = IntegrationIdentifiers [EnvironmentId, IntegrationIdentifier];
    }
    Context {
        /// Contexts.
        CONTEXTS = Contexts [EnvironmentId, ContextKey];
        /// Contexts of a type or of any, in each order.
        CONTEXT_LISTS = ContextLists [EnvironmentId, Any<Text>, Sorted<ContextId>];
    }
    SubscriberPreference {
        /// Preferences about a workflow, or about all of them.
        PREFERENCES = Preferences
            [EnvironmentId, InternalSubscriberId, ContextSet, Option<WorkflowId>];
        /// Preferences about a workflow.
        WORKFLOW_PREFERENCES = WorkflowPreferences
            [EnvironmentId, WorkflowId, InternalSubscriberId, ContextSet];
    }
    ChannelEndpoint {
        /// Endpoints.
        CHANNEL_ENDPOINTS = ChannelEndpoints [EnvironmentId, EndpointIdentifier];
        /// Endpoints of an integration: of a subscriber or of any, for a context set or for any.
        ENDPOINT_LISTS = EndpointLists
            [EnvironmentId, IntegrationId, Any<SubscriberId>, Any<ContextSet>, Sorted<EndpointId>];
    }
    ChannelConnection {
        /// Connections.
        CHANNEL_CONNECTIONS = ChannelConnections [EnvironmentId, ConnectionIdentifier];
        /// Connections of an integration: of a subscriber or of any, for a context set or for any.
        CONNECTION_LISTS = ConnectionLists
            [EnvironmentId, IntegrationId, Any<SubscriberId>, Any<ContextSet>, Sorted<ConnectionId>];
        /// Connections of a subscriber or of none, for a context set.
        CONNECTION_OWNERS = ConnectionOwners
            [EnvironmentId, IntegrationId, Any<SubscriberId>, ContextSet];
    }
    Topic {
        /// Topics.
        TOPICS = Topics [EnvironmentId, TopicKey];
        /// Topics in each order, with key and name without case.
        TOPIC_LISTS = TopicLists [EnvironmentId, Sorted<TopicId>, Text, Text];
    }
    Subscription {
        /// Subscriptions of a topic.
        SUBSCRIPTIONS = Subscriptions [EnvironmentId, TopicId, SubscriptionIdentifier];
        /// Subscriptions of a topic by their ids.
        SUBSCRIPTION_IDS = SubscriptionIds [EnvironmentId, TopicId, SubscriptionId];
        /// Subscriptions of a topic by subscriber.
        TOPIC_SUBSCRIBERS = TopicSubscribers
            [EnvironmentId, TopicId, InternalSubscriberId, SubscriptionId];
        /// Subscriptions of a subscriber by topic.
        SUBSCRIBER_SUBSCRIPTIONS = SubscriberSubscriptions
            [EnvironmentId, InternalSubscriberId, TopicId, SubscriptionId];
    }
    Layout {
        /// Layouts.
        LAYOUTS = Layouts [EnvironmentId, LayoutIdentifier];
        /// Layouts by their ids.
        LAYOUT_IDS = LayoutIds [EnvironmentId, LayoutId];
        /// The default layouts.
        DEFAULT_LAYOUTS = DefaultLayouts [EnvironmentId];
    }
    Translation {
        /// Translations.
        TRANSLATIONS = Translations [EnvironmentId, Resource, Locale];
        /// Translations by their ids.
        TRANSLATION_IDS = TranslationIds [EnvironmentId, TranslationId];
    }
    TranslationGroup {
        /// Groups of the translations of a resource.
        TRANSLATION_GROUPS = TranslationGroups [EnvironmentId, Resource];
    }
    AcceptedTrigger {
        /// Accepted triggers, by the ordinals of their notifications: the first one, and the one
        /// behind the last.
        TRIGGERS = Triggers [EnvironmentId, Ordinal, Ordinal, TransactionId];
        /// Accepted triggers by transaction id and ordinals. Each run of ordinals has an entry.
        TRANSACTIONS = Transactions [EnvironmentId, TransactionId, Ordinal, Ordinal];
    }
    CanceledTrigger {
        /// Canceled events.
        CANCELED_TRIGGERS = CanceledTriggers [EnvironmentId, TransactionId];
    }
    FanOut {
        /// Events whose recipients tasks tell.
        FAN_OUTS = FanOuts [EnvironmentId, TransactionId];
    }
    FanOutState {
        /// States of the events whose recipients tasks tell or have told.
        FAN_OUT_STATES = FanOutStates [EnvironmentId, TransactionId];
    }
    Notification {
        /// Notifications.
        NOTIFICATIONS = Notifications [EnvironmentId, Ordinal];
        /// Notifications by dead letter, oldest failure first, with what queries ask for.
        DEAD_LETTERS = DeadLetters
            [EnvironmentId, DeadLetterId, Timestamp, Channel, DeadLetterReason,
             Option<WorkflowId>, Any<IntegrationId>, Ordinal];
        /// Notifications of messages by the ids that their providers gave them.
        PROVIDER_MESSAGES = ProviderMessages [EnvironmentId, IntegrationId, Text, Ordinal];
    }
    Task {
        /// Tasks.
        TASKS = Tasks [EnvironmentId, TaskId];
        /// Tasks of a lane by the time at which they are due.
        DUE = Due [TaskClass, EnvironmentId, Option<WorkflowId>, Timestamp, TaskId];
        /// Tasks that wait until an integration is resumed.
        HELD = Held [EnvironmentId, IntegrationId, TaskId];
    }
    DigestBucket {
        /// Digests of the events with one key.
        DIGEST_BUCKETS = DigestBuckets
            [EnvironmentId, WorkflowId, StepId, InternalSubscriberId, ContextSet, EventKey];
    }
    WindowEvent {
        /// Events of a window, oldest first.
        DIGEST_EVENTS = DigestEvents [EnvironmentId, DigestWindowId, u32];
    }
    ThrottleSlot {
        /// Places that events have taken, by the time at which they are free again.
        THROTTLE_SLOTS = ThrottleSlots
            [EnvironmentId, WorkflowId, StepId, InternalSubscriberId, EventKey, Timestamp,
             NotificationId];
    }
    Quarantined {
        /// Entries of the quarantine, oldest first.
        QUARANTINE = Quarantine [QuarantineId];
    }
    Message {
        /// Messages.
        MESSAGES = Messages [EnvironmentId, MessagePlace];
        /// Messages of a subscriber, by shelf, each with a signature behind the key in the value.
        MESSAGE_LISTS = MessageLists [EnvironmentId, InternalSubscriberId, Shelf, ListPlace];
        /// Messages in the inbox of a subscriber, by the number of their last change.
        MESSAGE_CHANGES = MessageChanges [EnvironmentId, InternalSubscriberId, u64, MessagePlace];
    }
    DeletedMessage {
        /// Deleted messages of a subscriber, by the number of the change.
        DELETED_MESSAGES = DeletedMessages
            [EnvironmentId, InternalSubscriberId, u64, MessagePlace];
    }
    Suppression {
        /// Suppressed addresses.
        SUPPRESSIONS = Suppressions [EnvironmentId, Channel, Text];
        /// Suppressions of a channel or of any, oldest first.
        SUPPRESSION_LISTS = SuppressionLists [EnvironmentId, Any<Text>, SuppressionId];
        /// Suppressions by the time at which they expire.
        EXPIRING_SUPPRESSIONS = ExpiringSuppressions [EnvironmentId, Timestamp, Channel, Text];
    }
    StoredAnswer {
        /// Stored answers.
        STORED_ANSWERS = StoredAnswers [EnvironmentId, IdempotencyKey];
        /// Stored answers by the time at which they expire.
        EXPIRING_ANSWERS = ExpiringAnswers [EnvironmentId, Timestamp, IdempotencyKey];
    }
    ;
    Derived(Derived::Counters) {
        /// Counters of the messages of a subscriber.
        MESSAGE_COUNTERS = MessageCounters [EnvironmentId, InternalSubscriberId];
    }
    Derived(Derived::Lanes) {
        /// Times at which the first task of a lane is due.
        LANE_HEADS = LaneHeads [TaskClass, EnvironmentId, Option<WorkflowId>];
        /// Lanes of a class by the time at which their first task is due.
        LANES = Lanes [TaskClass, Timestamp, EnvironmentId, Option<WorkflowId>];
        /// Lanes of a class whose workflow is paused.
        HELD_LANES = HeldLanes [TaskClass, EnvironmentId, Option<WorkflowId>];
    }
    Derived(Derived::Texts(SearchedField::Email)) {
        /// Parts of the index of e-mail addresses: the kind of the part, and two numbers. Behind them, the
        /// places of the texts, by subscriber.
        EMAIL_INDEX = EmailIndex [EnvironmentId, u8, u32, u32];
    }
    Derived(Derived::Texts(SearchedField::Name)) {
        /// Parts of the index of names, likewise.
        NAME_INDEX = NameIndex [EnvironmentId, u8, u32, u32];
    }
    Derived(Derived::Outcomes) {
        /// Notifications by outcome, as rows of bits for consecutive ordinals.
        NOTIFICATION_OUTCOMES = NotificationOutcomes [EnvironmentId, NotificationOutcome, u32];
    }
    Derived(Derived::ListCounts) {
        /// Numbers of records in lists: the tag of the list, and its topic if it has one.
        LIST_COUNTS = ListCounts [EnvironmentId, u8, Any<TopicId>];
    }
    Marks {
        /// Marks of the keys that values are sealed with, by the ids of the keys.
        SEALS = Seals [u32];
        /// Marks of records of an older format, which may lack rows that the next format has.
        BACKFILLS = Backfills [u32];
    }
    // The activity index. Its tables have a generation, except the first one.
    Derived(Derived::Activity) {
        /// Heads of the activity indexes.
        ACTIVITY_HEADS = ActivityHeads [EnvironmentId];
        /// Facets of notifications that are not sealed, by the number of their row.
        ACTIVITY_FACETS = ActivityFacets [EnvironmentId, u32, u128];
        /// Parts of sealed segments, by the number of their segment.
        ACTIVITY_SEGMENTS = ActivitySegments [EnvironmentId, u32, u32, SegmentPart];
        /// Parts of merged spans of segments, by level and by the segment behind the span.
        ACTIVITY_MERGED = ActivityMerged [EnvironmentId, u32, u8, u32, SpanPart];
        /// Deleted places of a segment, by its number.
        ACTIVITY_DELETED = ActivityDeleted [EnvironmentId, u32, u32];
    }
}
