//! The layout on disk: every table, and every key in it.
//!
//! | table                       | key                                                | value |
//! |-----------------------------|----------------------------------------------------|-------|
//! | `environments`              | organization, environment                          | [`Environment`](domain::environment::Environment) |
//! | `environment_ids`           | environment                                        | key into `environments` |
//! | `api_keys`                  | hash of the API key                                | key into `environments` |
//! | `subscribers`               | environment, subscriber by its own name            | [`Subscriber`](domain::subscriber::Subscriber) |
//! | `subscriber_ids`            | environment, subscriber                            | key into `subscribers` |
//! | `subscriber_emails`         | environment, e-mail address, subscriber            | key into `subscribers` |
//! | `workflows`                 | environment, workflow                              | [`Workflow`](domain::workflow::Workflow) |
//! | `workflow_identifiers`      | environment, identifier                            | key into `workflows` |
//! | `integrations`              | environment, integration                           | [`Integration`](domain::integration::Integration) |
//! | `integration_identifiers`   | environment, identifier, unless it is deleted      | key into `integrations` |
//! | `contexts`                  | environment, type, id                              | [`Context`](domain::context::Context) |
//! | `context_lists`             | environment, type (or any), order, sort value, context | key into `contexts` |
//! | `preferences`               | environment, subscriber, context set, workflow (nil: all of them) | [`SubscriberPreference`](domain::preference::SubscriberPreference) |
//! | `workflow_preferences`      | environment, workflow, subscriber, context set     | key into `preferences` |
//! | `channel_endpoints`         | environment, endpoint by its own name              | [`ChannelEndpoint`](domain::endpoint::ChannelEndpoint) |
//! | `endpoint_lists`            | environment, order, integration, subscriber (or any), context set (or any), sort value, endpoint | key into `channel_endpoints` |
//! | `channel_connections`       | environment, connection by its own name            | [`ChannelConnection`](domain::connection::ChannelConnection) |
//! | `connection_lists`          | as `endpoint_lists`                                | key into `channel_connections` |
//! | `connection_owners`         | environment, integration, subscriber (or none), context set | key into `channel_connections` |
//! | `topics`                    | environment, topic by its own name                 | [`Topic`](domain::topic::Topic) |
//! | `topic_lists`               | environment, order, sort value, topic, folded key, folded name | key into `topics` |
//! | `subscriptions`             | environment, topic, subscription by its own name   | [`Subscription`](domain::subscription::Subscription) |
//! | `subscription_ids`          | environment, topic, subscription                   | key into `subscriptions` |
//! | `topic_subscribers`         | environment, topic, subscriber, subscription       | key into `subscriptions` |
//! | `subscriber_subscriptions`  | environment, subscriber, topic, subscription       | key into `subscriptions` |
//! | `layouts`                   | environment, layout by its own name                | [`Layout`](domain::layout::Layout) |
//! | `layout_ids`                | environment, layout                                | key into `layouts` |
//! | `translations`              | environment, kind of resource, resource, locale    | [`Translation`](domain::translation::Translation) |
//! | `translation_ids`           | environment, translation                           | key into `translations` |
//! | `translation_groups`        | environment, kind of resource, resource            | [`TranslationGroup`](domain::translation::TranslationGroup) |
//! | `transactions`              | environment, transaction                           | [`AcceptedTrigger`](domain::trigger::AcceptedTrigger) |
//! | `notifications`             | environment, ordinal                               | [`Notification`](domain::notification::Notification) |
//! | `transaction_notifications` | environment, generation, transaction               | runs of ordinals |
//! | `activity_heads`            | environment                                        | head of the activity index |
//! | `activity_facets`           | environment, generation, row                       | facets of notifications that are not sealed |
//! | `activity_segments`         | environment, generation, segment, part             | times, presence and blocks of a sealed segment |
//! | `activity_deleted`          | environment, generation, segment                   | deleted places of the segment |
//! | `due`                       | time, environment, notification                    | key into `notifications` |
//! | `messages`                  | environment, subscriber, message                   | [`Message`](domain::message::Message) |
//! | `inbox_messages`            | environment, subscriber, message, if in the inbox  | key into `messages` |
//! | `unseen_messages`           | the same, if it was not seen                       | key into `messages` |
//! | `unread_messages`           | the same, if it was not read                       | key into `messages` |
//! | `stored_answers`            | environment, idempotency key                       | [`StoredAnswer`](domain::idempotency::StoredAnswer) |
//! | `expiring_answers`          | environment, time, idempotency key                 | key into `stored_answers` |
//!
//! Every key starts with its environment, so that no look-up can leave its environment. Exceptions
//! are the tables that lead to an environment, and the jobs that are due. Ids are in order of
//! creation, so that lists by id are lists by time.
//!
//! Only this module makes keys. A change of a row here changes the format on disk: raise
//! [`FORMAT`], and add the old format to the tests.

mod activity;
mod entries;
mod keys;
mod tables;

use domain::connection::ChannelConnection;
use domain::context::Context;
use domain::endpoint::ChannelEndpoint;
use domain::environment::Environment;
use domain::idempotency::StoredAnswer;
use domain::integration::Integration;
use domain::layout::Layout;
use domain::message::Message;
use domain::notification::Notification;
use domain::preference::SubscriberPreference;
use domain::subscriber::Subscriber;
use domain::subscription::Subscription;
use domain::topic::Topic;
use domain::translation::{Translation, TranslationGroup};
use domain::trigger::AcceptedTrigger;
use domain::workflow::Workflow;

use crate::key::TableOf;

pub use activity::*;
pub use keys::*;
pub use tables::Table;

/// The version of this layout. A file has the version that it was written with.
pub const FORMAT: u32 = 1;

// Each table, and the records that its entries are or lead to.
const ENVIRONMENTS: TableOf<Environment> = TableOf::new(Table::Environments);
const ENVIRONMENT_IDS: TableOf<Environment> = TableOf::new(Table::EnvironmentIds);
const API_KEYS: TableOf<Environment> = TableOf::new(Table::ApiKeys);
const SUBSCRIBERS: TableOf<Subscriber> = TableOf::new(Table::Subscribers);
const SUBSCRIBER_IDS: TableOf<Subscriber> = TableOf::new(Table::SubscriberIds);
const SUBSCRIBER_EMAILS: TableOf<Subscriber> = TableOf::new(Table::SubscriberEmails);
const WORKFLOWS: TableOf<Workflow> = TableOf::new(Table::Workflows);
const WORKFLOW_IDENTIFIERS: TableOf<Workflow> = TableOf::new(Table::WorkflowIdentifiers);
const INTEGRATIONS: TableOf<Integration> = TableOf::new(Table::Integrations);
const INTEGRATION_IDENTIFIERS: TableOf<Integration> = TableOf::new(Table::IntegrationIdentifiers);
const CONTEXTS: TableOf<Context> = TableOf::new(Table::Contexts);
const CONTEXT_LISTS: TableOf<Context> = TableOf::new(Table::ContextLists);
const PREFERENCES: TableOf<SubscriberPreference> = TableOf::new(Table::Preferences);
const WORKFLOW_PREFERENCES: TableOf<SubscriberPreference> =
    TableOf::new(Table::WorkflowPreferences);
const CHANNEL_ENDPOINTS: TableOf<ChannelEndpoint> = TableOf::new(Table::ChannelEndpoints);
const ENDPOINT_LISTS: TableOf<ChannelEndpoint> = TableOf::new(Table::EndpointLists);
const CHANNEL_CONNECTIONS: TableOf<ChannelConnection> = TableOf::new(Table::ChannelConnections);
const CONNECTION_LISTS: TableOf<ChannelConnection> = TableOf::new(Table::ConnectionLists);
const CONNECTION_OWNERS: TableOf<ChannelConnection> = TableOf::new(Table::ConnectionOwners);
const TOPICS: TableOf<Topic> = TableOf::new(Table::Topics);
const TOPIC_LISTS: TableOf<Topic> = TableOf::new(Table::TopicLists);
const SUBSCRIPTIONS: TableOf<Subscription> = TableOf::new(Table::Subscriptions);
const SUBSCRIPTION_IDS: TableOf<Subscription> = TableOf::new(Table::SubscriptionIds);
const TOPIC_SUBSCRIBERS: TableOf<Subscription> = TableOf::new(Table::TopicSubscribers);
const SUBSCRIBER_SUBSCRIPTIONS: TableOf<Subscription> =
    TableOf::new(Table::SubscriberSubscriptions);
const LAYOUTS: TableOf<Layout> = TableOf::new(Table::Layouts);
const LAYOUT_IDS: TableOf<Layout> = TableOf::new(Table::LayoutIds);
const TRANSLATIONS: TableOf<Translation> = TableOf::new(Table::Translations);
const TRANSLATION_IDS: TableOf<Translation> = TableOf::new(Table::TranslationIds);
const TRANSLATION_GROUPS: TableOf<TranslationGroup> = TableOf::new(Table::TranslationGroups);
const TRANSACTIONS: TableOf<AcceptedTrigger> = TableOf::new(Table::Transactions);
const NOTIFICATIONS: TableOf<Notification> = TableOf::new(Table::Notifications);
const DUE: TableOf<Notification> = TableOf::new(Table::Due);
const MESSAGES: TableOf<Message> = TableOf::new(Table::Messages);
const INBOX_MESSAGES: TableOf<Message> = TableOf::new(Table::InboxMessages);
const UNSEEN_MESSAGES: TableOf<Message> = TableOf::new(Table::UnseenMessages);
const UNREAD_MESSAGES: TableOf<Message> = TableOf::new(Table::UnreadMessages);
const STORED_ANSWERS: TableOf<StoredAnswer> = TableOf::new(Table::StoredAnswers);
const EXPIRING_ANSWERS: TableOf<StoredAnswer> = TableOf::new(Table::ExpiringAnswers);
