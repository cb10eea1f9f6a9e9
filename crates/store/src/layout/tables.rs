//! The names of the tables.

macro_rules! tables {
    ($($variant:ident = $name:literal,)+) => {
        /// Names a table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[expect(missing_docs, reason = "the constants of the module `layout` say it")]
        pub enum Table {
            $($variant,)+
        }

        impl Table {
            /// Every table, in the order of their numbers.
            pub const ALL: [Table; [$($name),+].len()] = [$(Table::$variant),+];

            /// The name of the table on disk.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Table::$variant => $name,)+
                }
            }

            /// The table with this name on disk. Returns `None` if there is none.
            #[doc(hidden)]
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|table| table.name() == name)
            }
        }
    };
}

tables! {
    Environments = "environments",
    EnvironmentIds = "environment_ids",
    EnvironmentKeys = "environment_keys",
    ApiKeys = "api_keys",
    LinkKeys = "link_keys",
    Subscribers = "subscribers",
    SubscriberIds = "subscriber_ids",
    SubscriberEmails = "subscriber_emails",
    EmailIndex = "addresses",
    Workflows = "workflows",
    WorkflowIdentifiers = "workflow_identifiers",
    Integrations = "integrations",
    IntegrationIdentifiers = "integration_identifiers",
    Contexts = "contexts",
    ContextLists = "context_lists",
    Preferences = "preferences",
    WorkflowPreferences = "workflow_preferences",
    ChannelEndpoints = "channel_endpoints",
    EndpointLists = "endpoint_lists",
    ChannelConnections = "channel_connections",
    ConnectionLists = "connection_lists",
    ConnectionOwners = "connection_owners",
    Topics = "topics",
    TopicLists = "topic_lists",
    Subscriptions = "subscriptions",
    SubscriptionIds = "subscription_ids",
    TopicSubscribers = "topic_subscribers",
    SubscriberSubscriptions = "subscriber_subscriptions",
    Layouts = "layouts",
    LayoutIds = "layout_ids",
    DefaultLayouts = "default_layouts",
    Translations = "translations",
    TranslationIds = "translation_ids",
    TranslationGroups = "translation_groups",
    Triggers = "triggers",
    Transactions = "transactions",
    CanceledTriggers = "canceled_triggers",
    FanOuts = "fan_outs",
    FanOutStates = "fan_out_states",
    Notifications = "notifications",
    DeadLetters = "dead_letters",
    ActivityHeads = "activity_heads",
    ActivityFacets = "activity_facets",
    ActivitySegments = "activity_segments",
    ActivityMerged = "activity_merged",
    ActivityDeleted = "activity_deleted",
    NotificationOutcomes = "notification_outcomes",
    ProviderMessages = "provider_messages",
    Tasks = "tasks",
    Due = "due",
    Lanes = "lanes",
    LaneHeads = "lane_heads",
    Held = "held",
    HeldLanes = "held_lanes",
    DigestBuckets = "digest_buckets",
    DigestEvents = "digest_events",
    ThrottleSlots = "throttle_slots",
    Quarantine = "quarantine",
    Messages = "messages",
    MessageLists = "message_lists",
    MessageCounters = "message_counters",
    MessageChanges = "message_changes",
    DeletedMessages = "deleted_messages",
    Suppressions = "suppressions",
    SuppressionLists = "suppression_lists",
    ExpiringSuppressions = "expiring_suppressions",
    StoredAnswers = "stored_answers",
    ExpiringAnswers = "expiring_answers",
    Seals = "seals",
    SubscriberPhones = "subscriber_phones",
    NameIndex = "names",
    Backfills = "backfills",
    ListCounts = "list_counts",
}
