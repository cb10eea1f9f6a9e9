//! The fields of every structure, copied from the specification.
//!
//! A field is written as its name; behind it `?` says that it may be absent, and `~` that it may be
//! null.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The fields of a structure.
#[derive(Debug)]
pub struct Structure {
    pub name: &'static str,
    /// Those that the specification lists, in its order.
    pub specified: &'static str,
    /// Those that are kept beside them.
    pub own: &'static str,
    /// Those that may be absent, and yet are always written.
    pub always: &'static str,
    /// Those that may be absent, unless another field says that they are there.
    pub tied: &'static str,
    /// Those that are specified, may be absent, and are never written.
    pub left_out: &'static str,
    /// Those that may be null by the specification, and never are.
    pub never_null: &'static str,
    /// The structures that the values of some fields have, or the items of their lists. Of several
    /// it is the first whose required fields are all there.
    pub inside: &'static [(&'static str, &'static [&'static Structure])],
    /// Whether other names are refused, and not ignored.
    pub closed: bool,
}

impl Structure {
    const fn of(name: &'static str, specified: &'static str) -> Self {
        Self {
            name,
            specified,
            own: "",
            always: "",
            tied: "",
            left_out: "",
            never_null: "",
            inside: &[],
            closed: false,
        }
    }

    /// A structure that the specification does not list.
    const fn own(name: &'static str, own: &'static str) -> Self {
        Self { own, ..Self::of(name, "") }
    }

    fn fields(&self) -> impl Iterator<Item = &'static str> {
        let left_out = names(self.left_out);
        let all = self.specified.split_whitespace().chain(self.own.split_whitespace());
        all.filter(move |field| !left_out.contains(bare(field)))
    }

    /// Every field that is ever written.
    pub fn every(&self) -> BTreeSet<&'static str> {
        self.fields().map(bare).collect()
    }

    /// The fields that must be there.
    pub fn required(&self) -> BTreeSet<&'static str> {
        self.fields().filter(|field| !field.contains('?')).map(bare).collect()
    }

    /// The fields that are there in any case.
    pub fn least(&self) -> BTreeSet<&'static str> {
        self.required().union(&names(self.always)).copied().collect()
    }

    /// The fields that may be absent for no other reason than that there is nothing to say.
    pub fn free(&self) -> BTreeSet<&'static str> {
        let bound = self.least().union(&names(self.tied)).copied().collect();
        self.every().difference(&bound).copied().collect()
    }

    /// The fields that may be null, each with whether it may be absent as well.
    pub fn nullable(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let never = names(self.never_null);
        let nullable =
            self.fields().filter(move |field| field.contains('~') && !never.contains(bare(field)));
        nullable.map(|field| (bare(field), field.contains('?')))
    }

    /// This structure, and every one that is inside of it.
    pub fn with_inside(&'static self) -> Vec<&'static Structure> {
        let mut all = vec![self];
        let mut next = 0;
        while let Some(structure) = all.get(next).copied() {
            let inside = structure.inside.iter().flat_map(|(_, structures)| structures.iter());
            for structure in inside.copied() {
                if !all.iter().any(|known| known.name == structure.name) {
                    all.push(structure);
                }
            }
            next += 1;
        }
        all
    }

    /// Shows `visit` every object in `value` that has a structure, with its structure.
    pub fn walk(&self, value: &mut Value, visit: &mut impl FnMut(&Self, &mut Map<String, Value>)) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item, visit)),
            Value::Object(object) => {
                for (field, structures) in self.inside {
                    let Some(value) = object.get_mut(*field) else { continue };
                    walk_any(structures, value, visit);
                }
                visit(self, object);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn walk_any(
    structures: &[&Structure],
    value: &mut Value,
    visit: &mut impl FnMut(&Structure, &mut Map<String, Value>),
) {
    if let Value::Array(items) = value {
        return items.iter_mut().for_each(|item| walk_any(structures, item, visit));
    }
    let fits = |structure: &&&Structure| {
        structure.required().iter().all(|field| value.get(field).is_some())
    };
    let structure = structures.iter().find(fits).or(structures.last()).unwrap();
    structure.walk(value, visit);
}

fn bare(field: &str) -> &str {
    field.trim_end_matches(['?', '~'])
}

fn names(fields: &'static str) -> BTreeSet<&'static str> {
    fields.split_whitespace().collect()
}

// An endpoint belongs to a subscriber, and to an integration, which has a channel.
pub static CHANNEL_ENDPOINT: Structure = Structure {
    own: "_id _organizationId _environmentId _integrationId",
    never_null: "channel subscriberId",
    inside: &[("endpoint", &[&WEBHOOK])],
    ..Structure::of(
        "channel endpoint",
        "identifier channel~ providerId~ integrationIdentifier~ connectionIdentifier~ \
         subscriberId~ contextKeys type endpoint createdAt updatedAt",
    )
};
static CHAT_CHANNEL: Structure = endpoint_data("chat channel", "channelId");
static CHAT_USER: Structure = endpoint_data("chat user", "userId");
static WEBHOOK: Structure = endpoint_data("webhook", "url channel?");
static PHONE: Structure = endpoint_data("phone", "phoneNumber");
// The specification does not show these two.
static MS_TEAMS_CHANNEL: Structure = endpoint_data("ms teams channel", "teamId channelId");
static MS_TEAMS_USER: Structure = endpoint_data("ms teams user", "userId tenantId?");

const fn endpoint_data(name: &'static str, specified: &'static str) -> Structure {
    Structure { closed: true, ..Structure::of(name, specified) }
}

pub static SLACK_CHANNEL_CREATE: Structure = endpoint_create(&[("endpoint", &[&CHAT_CHANNEL])]);
pub static SLACK_USER_CREATE: Structure = endpoint_create(&[("endpoint", &[&CHAT_USER])]);
pub static WEBHOOK_CREATE: Structure = endpoint_create(&[("endpoint", &[&WEBHOOK])]);
pub static PHONE_CREATE: Structure = endpoint_create(&[("endpoint", &[&PHONE])]);
pub static MS_TEAMS_CHANNEL_CREATE: Structure =
    endpoint_create(&[("endpoint", &[&MS_TEAMS_CHANNEL])]);
pub static MS_TEAMS_USER_CREATE: Structure = endpoint_create(&[("endpoint", &[&MS_TEAMS_USER])]);

// Which of the fields must be there is not shown.
const fn endpoint_create(
    inside: &'static [(&'static str, &'static [&'static Structure])],
) -> Structure {
    Structure {
        inside,
        ..Structure::of(
            "channel endpoint create",
            "identifier? subscriberId context? integrationIdentifier connectionIdentifier? type \
             endpoint",
        )
    }
}

pub static CHANNEL_ENDPOINT_UPDATE: Structure = Structure {
    inside: CHANNEL_ENDPOINT.inside,
    ..Structure::of("channel endpoint update", "endpoint")
};
pub static CHANNEL_ENDPOINT_QUERY: Structure = Structure {
    own: "subscriberId? channel? providerId? integrationIdentifier? connectionIdentifier? \
          contextKeys?",
    ..page_query("channel endpoint query")
};

// A connection belongs to an integration, which has a channel.
pub static CHANNEL_CONNECTION: Structure = Structure {
    own: "_id _organizationId _environmentId _integrationId",
    never_null: "channel",
    inside: &[("workspace", &[&WORKSPACE]), ("auth", &[&AUTH])],
    ..Structure::of(
        "channel connection",
        "identifier channel~ providerId~ integrationIdentifier~ subscriberId~ contextKeys \
         workspace auth createdAt updatedAt",
    )
};
static WORKSPACE: Structure = Structure::of("workspace", "id name?");
static AUTH: Structure = Structure::of("auth", "accessToken");
pub static CHANNEL_CONNECTION_CREATE: Structure = Structure {
    inside: CHANNEL_CONNECTION.inside,
    ..Structure::of(
        "channel connection create",
        "identifier? subscriberId? context? integrationIdentifier workspace auth",
    )
};
pub static CHANNEL_CONNECTION_UPDATE: Structure = Structure {
    inside: CHANNEL_CONNECTION.inside,
    ..Structure::own("channel connection update", "workspace? auth?")
};
pub static CHANNEL_CONNECTION_QUERY: Structure = Structure::of(
    "channel connection query",
    "after? before? limit? orderDirection? orderBy? includeCursor? subscriberId? channel? \
     providerId? integrationIdentifier? contextKeys?",
);
pub static CHANNEL_CONNECTION_PAGE: Structure = page(&[("data", &[&CHANNEL_CONNECTION])]);

pub static TOPIC: Structure = Structure {
    own: "_organizationId _environmentId",
    always: "createdAt updatedAt",
    ..Structure::of("topic", "_id key name? createdAt? updatedAt?")
};
pub static TOPIC_CREATE: Structure = Structure::own("topic create", "key name?");
pub static TOPIC_UPDATE: Structure = Structure::own("topic update", "name?");
pub static TOPIC_QUERY: Structure = Structure::of(
    "topic query",
    "after? before? limit? orderDirection? orderBy? includeCursor? key? name?",
);
pub static TOPIC_PAGE: Structure = page(&[("data", &[&TOPIC])]);

pub static SUBSCRIPTION: Structure = Structure {
    own: "_organizationId _environmentId _topicId topicKey _subscriberId subscriberId createdAt \
          updatedAt",
    always: "identifier contextKeys",
    inside: &[("preferences", &[&SUBSCRIPTION_PREFERENCE])],
    ..Structure::of("subscription", "id identifier? name? preferences? contextKeys?")
};
static SUBSCRIPTION_PREFERENCE: Structure = Structure {
    own: "_workflowId",
    inside: &[("workflow", &[&WORKFLOW_INFO])],
    ..Structure::of("subscription preference", "subscriptionId workflow? enabled condition?")
};
pub static SUBSCRIBE: Structure = Structure {
    inside: &[
        ("subscriptions", &[&SUBSCRIBE_ITEM]),
        ("preferences", &[&WORKFLOW_WORD, &WORKFLOWS_WORD]),
    ],
    ..Structure::own("subscribe", "subscriptions name? context? preferences?")
};
static SUBSCRIBE_ITEM: Structure =
    Structure::own("subscriber to put in", "subscriberId identifier? name?");
static WORKFLOW_WORD: Structure = Structure {
    always: "enabled",
    ..Structure::own("word about a workflow", "workflowId enabled? condition?")
};
static WORKFLOWS_WORD: Structure = Structure {
    always: "enabled",
    inside: &[("filter", &[&WORKFLOW_FILTER])],
    ..Structure::own("word about workflows", "filter enabled? condition?")
};
static WORKFLOW_FILTER: Structure = Structure::own("workflow filter", "workflowIds? tags?");
pub static UNSUBSCRIBE: Structure = Structure {
    inside: &[("subscriptions", &[&UNSUBSCRIBE_SUBSCRIBER, &UNSUBSCRIBE_SUBSCRIPTION])],
    ..Structure::own("unsubscribe", "subscriptions")
};
static UNSUBSCRIBE_SUBSCRIBER: Structure = Structure::own("subscriber to take out", "subscriberId");
static UNSUBSCRIBE_SUBSCRIPTION: Structure =
    Structure::own("subscription to take out", "identifier");
pub static SUBSCRIPTION_UPDATE: Structure = Structure {
    inside: &[("preferences", &[&WORKFLOW_WORD, &WORKFLOWS_WORD])],
    ..Structure::own("subscription update", "name? preferences?")
};
pub static SUBSCRIPTION_QUERY: Structure =
    Structure { own: "subscriberId? contextKeys?", ..page_query("subscription query") };
pub static SUBSCRIPTIONS: Structure = Structure {
    inside: &[
        ("data", &[&SUBSCRIPTION]),
        ("meta", &[&SUBSCRIPTION_META]),
        ("errors", &[&SUBSCRIPTION_ERROR]),
    ],
    ..Structure::own("subscriptions", "data meta errors?")
};
static SUBSCRIPTION_META: Structure =
    Structure::own("subscription meta", "totalCount successful failed");
static SUBSCRIPTION_ERROR: Structure =
    Structure::own("subscription error", "subscriberId code message");

pub static TRANSLATION: Structure = Structure {
    own: "_id _organizationId _environmentId",
    ..Structure::of("translation", "resourceId resourceType locale content createdAt updatedAt")
};
pub static TRANSLATION_UPSERT: Structure =
    Structure::own("translation upsert", "resourceId resourceType locale content");
pub static TRANSLATION_IMPORT: Structure = Structure {
    inside: &[("masterJson", &[&MASTER_JSON])],
    ..Structure::of("translation import", "locale masterJson")
};
static MASTER_JSON: Structure =
    Structure { own: "layouts?", ..Structure::of("master JSON", "workflows") };
pub static IMPORT_RESULT: Structure = Structure {
    own: "errors? warnings?",
    ..Structure::of("import result", "success message successful? failed?")
};
pub static TRANSLATION_QUERY: Structure =
    Structure { own: "resourceType? resourceId? locale?", ..page_query("translation query") };

pub static LAYOUT: Structure = Structure::own(
    "layout",
    "_id _organizationId _environmentId layoutId name isTranslationEnabled createdAt updatedAt",
);
pub static LAYOUT_UPSERT: Structure =
    Structure::own("layout upsert", "layoutId name isTranslationEnabled?");
pub static LAYOUT_QUERY: Structure =
    Structure { own: "isTranslationEnabled?", ..page_query("layout query") };

pub static ENVIRONMENT: Structure = Structure {
    own: "color defaultLocale? createdAt deletedAt?",
    always: "apiKeys",
    inside: &[("apiKeys", &[&API_KEY])],
    ..Structure::of(
        "environment",
        "_id name _organizationId identifier type?~ apiKeys? _parentId? slug?",
    )
};
static API_KEY: Structure = Structure::of("API key", "key _userId hash?");
pub static API_KEY_CREATE: Structure = Structure::own("API key create", "name");
pub static ENVIRONMENT_KEY: Structure = Structure::own(
    "environment key",
    "_id _organizationId _environmentId name lastCharacters hash createdAt",
);
pub static CREATED_API_KEY: Structure = Structure::own(
    "created API key",
    "key _id _organizationId _environmentId name lastCharacters hash createdAt",
);
pub static ENVIRONMENT_CREATE: Structure =
    Structure::of("environment create", "name parentId? color");

pub static ENVIRONMENT_UPDATE: Structure = Structure::own("environment update", "defaultLocale?");

pub static INTEGRATION: Structure = Structure {
    own: "priority fallback? onUnknown?",
    always: "_id conditions",
    tied: "deletedAt deletedBy",
    inside: &[
        ("credentials", &[&CREDENTIALS]),
        ("configurations", &[&CONFIGURATIONS]),
        ("conditions", &[&STEP_FILTER]),
    ],
    ..Structure::of(
        "integration",
        "_id? _environmentId _organizationId name identifier providerId channel credentials \
         configurations? active deleted deletedAt? deletedBy? primary conditions?",
    )
};
static CREDENTIALS: Structure = Structure::of(
    "credentials",
    "apiKey? user? secretKey? domain? password? host? port? region? accountSid? \
     messageProfileId? token? from? senderName? projectName? applicationId? clientId? baseUrl? \
     webhookUrl? redirectUrl? serviceAccount? ipPoolName? apiKeyRequestHeader? \
     secretKeyRequestHeader? idPath? datePath? apiToken? authenticationTokenKey? instanceId? \
     alertUid? title? imageUrl? state? externalLink? channelId? phoneNumberIdentification? \
     accessKey? appSid? senderId? tenantId? AppIOBaseUrl? secure? requireTls? ignoreTls? hmac? \
     authenticateByToken? tlsOptions?",
);
static CONFIGURATIONS: Structure =
    Structure::of("configurations", "inboundWebhookEnabled? inboundWebhookSigningKey?");
static STEP_FILTER: Structure = Structure {
    inside: &[("children", &[&FIELD_FILTER_PART, &STEP_FILTER])],
    ..Structure::of("step filter", "isNegated type value children")
};
static FIELD_FILTER_PART: Structure = Structure::of("field filter part", "field value operator on");
pub static INTEGRATION_CREATE: Structure = Structure {
    inside: INTEGRATION.inside,
    ..Structure::own(
        "integration create",
        "providerId channel name? identifier? credentials? active? conditions? configurations? \
         fallback? onUnknown?",
    )
};
pub static INTEGRATION_UPDATE: Structure = Structure {
    inside: INTEGRATION.inside,
    ..Structure::own(
        "integration update",
        "name? identifier? credentials? active? conditions? configurations? fallback? onUnknown?",
    )
};
pub static INTEGRATION_DELETE: Structure = Structure::own("integration delete", "promote?");

pub static SUBSCRIBER: Structure = Structure {
    always: "_id __v",
    inside: &[("channels", &[&CHANNEL_SETTINGS])],
    ..Structure::of(
        "subscriber",
        "_id? subscriberId firstName?~ lastName?~ email?~ phone?~ avatar?~ locale?~ timezone?~ \
         channels? topics? isOnline?~ lastOnlineAt?~ __v? data?~ _organizationId _environmentId \
         deleted createdAt updatedAt",
    )
};
pub static CHANNEL_SETTINGS: Structure = Structure {
    inside: &[("credentials", &[&CHANNEL_CREDENTIALS])],
    ..Structure::of(
        "channel settings",
        "providerId integrationIdentifier? credentials _integrationId",
    )
};
static CHANNEL_CREDENTIALS: Structure = Structure::of(
    "channel credentials",
    "webhookUrl? channel? deviceTokens? alertUid? title? imageUrl? state? externalUrl?",
);
pub static SUBSCRIBER_CREATE: Structure = Structure {
    inside: SUBSCRIBER.inside,
    ..Structure::own(
        "subscriber create",
        "subscriberId firstName? lastName? email? phone? avatar? locale? timezone? channels? data?",
    )
};
pub static SUBSCRIBER_UPDATE: Structure = Structure::of(
    "subscriber update",
    "firstName? lastName? email? phone? avatar? locale? timezone? data?",
);
pub static SUBSCRIBER_QUERY: Structure =
    Structure { own: "email? phone? name?", ..page_query("subscriber query") };

const fn page_query(name: &'static str) -> Structure {
    Structure::of(name, "after? before? limit? orderDirection? orderBy? includeCursor?")
}

pub static WORKFLOW: Structure = Structure {
    own: "preferences? payloadSchema? validatePayload? severity isTranslationEnabled? origin? \
          createdAt updatedAt",
    always: "_id isTranslationEnabled",
    inside: &[
        ("preferenceSettings", &[&PREFERENCE]),
        ("preferences", &[&PREFERENCE]),
        ("steps", &[&STEP]),
        ("triggers", &[&NOTIFICATION_TRIGGER]),
        ("notificationGroup", &[&NOTIFICATION_GROUP]),
    ],
    ..Structure::of(
        "workflow",
        "_id? name description active draft preferenceSettings critical tags steps \
         _organizationId _creatorId _environmentId triggers _notificationGroupId _parentId? \
         deleted deletedAt~ deletedBy~ notificationGroup? data? workflowIntegrationStatus?",
    )
};
static PREFERENCE: Structure =
    Structure { own: "enabled? condition?", ..Structure::of("preference", CHANNELS.specified) };
static CHANNELS: Structure =
    Structure::of("preference channels", "email? sms? in_app? chat? push?");
static NOTIFICATION_TRIGGER: Structure = Structure {
    inside: &[("variables", &[&VARIABLE]), ("subscriberVariables", &[&VARIABLE])],
    ..Structure::of("notification trigger", "type identifier variables subscriberVariables?")
};
static VARIABLE: Structure = Structure::of("variable", "name");
static NOTIFICATION_GROUP: Structure =
    Structure::of("notification group", "_id? name _environmentId _organizationId _parentId?");
static STEP: Structure = Structure {
    own: "type",
    always: "_id _templateId active shouldStopOnFail filters",
    tied: "template metadata",
    inside: &[
        ("filters", &[&STEP_FILTER]),
        ("metadata", &[&STEP_METADATA, &THROTTLE_METADATA]),
        ("replyCallback", &[&REPLY_CALLBACK]),
        ("variants", &[&VARIANT]),
    ],
    ..Structure::of(
        "step",
        "_id? uuid? name? _templateId? active? shouldStopOnFail? template? filters? _parentId? \
         metadata? replyCallback? variants?",
    )
};
// A variant is another content of its step: what it is called, what comes before it and what comes
// of it is for the step to say.
static VARIANT: Structure = Structure {
    own: "type",
    always: "active filters",
    tied: "template metadata",
    left_out: "_id uuid _templateId shouldStopOnFail _parentId replyCallback",
    inside: &[("filters", &[&STEP_FILTER]), ("metadata", &[&STEP_METADATA, &THROTTLE_METADATA])],
    ..Structure::of(
        "variant",
        "_id? uuid? name? _templateId? active? shouldStopOnFail? template? filters? _parentId? \
         metadata? replyCallback?",
    )
};
// All variants of step metadata in one: a regular or backoff digest, a timed one, a regular delay
// and a scheduled one.
static STEP_METADATA: Structure = Structure {
    tied: "delayPath",
    inside: &[("timed", &[&TIMED])],
    ..Structure::of(
        "step metadata",
        "type amount? unit? digestKey? backoff? backoffAmount? backoffUnit? updateMode? timed? \
         delayPath?",
    )
};
static THROTTLE_METADATA: Structure =
    Structure::own("throttle metadata", "amount unit threshold? throttleKey?");
static TIMED: Structure =
    Structure::of("timed", "atTime? weekDays? monthDays? ordinal? ordinalValue? monthlyType?");
static REPLY_CALLBACK: Structure = Structure::of("reply callback", "active? url?");
pub static WORKFLOW_CREATE: Structure = Structure {
    inside: &[("preferenceSettings", &[&PREFERENCE]), ("steps", &[&STEP_DEFINITION])],
    ..Structure::own(
        "workflow create",
        "workflowId name description? active? critical? isTranslationEnabled? severity? tags? \
         preferenceSettings? steps data? payloadSchema? validatePayload?",
    )
};
static STEP_DEFINITION: Structure = Structure {
    always: "active shouldStopOnFail filters",
    tied: "template metadata",
    inside: STEP.inside,
    ..Structure::own(
        "step definition",
        "uuid? name? active? shouldStopOnFail? template? filters? metadata? replyCallback? \
         variants? type",
    )
};
pub static WORKFLOW_UPDATE: Structure = Structure {
    inside: &[
        ("preferenceSettings", &[&PREFERENCE]),
        ("preferences", &[&PREFERENCE]),
        ("steps", &[&STEP_UPDATE]),
    ],
    ..Structure::own(
        "workflow update",
        "name? description? active? critical? isTranslationEnabled? severity? tags? \
         preferenceSettings? preferences? steps? data? payloadSchema? validatePayload?",
    )
};
static STEP_UPDATE: Structure = Structure {
    always: "active shouldStopOnFail filters",
    tied: "template metadata",
    inside: STEP.inside,
    ..Structure::own(
        "step update",
        "_id? uuid? name? active? shouldStopOnFail? template? filters? metadata? replyCallback? \
         variants? type",
    )
};
pub static WORKFLOW_QUERY: Structure =
    Structure { own: "tag? active?", ..page_query("workflow query") };

pub static MESSAGE: Structure = Structure {
    own: "archivedAt?",
    always: "_id",
    tied: "lastSeenDate lastReadDate archivedAt errorId errorText",
    inside: &[
        ("subscriber", &[&SUBSCRIBER]),
        ("template", &[&WORKFLOW]),
        ("content", &[&EMAIL_BLOCK]),
        ("cta", &[&CTA]),
    ],
    ..Structure::of(
        "message",
        "_id? _templateId?~ _messageTemplateId?~ _feedId?~ _environmentId _organizationId \
         _notificationId _subscriberId subscriber? template? templateIdentifier? createdAt \
         deliveredAt? lastSeenDate? lastReadDate? snoozedUntil? content? transactionId subject? \
         title? email? phone? directWebhookUrl? providerId? errorId? errorText? channel read seen \
         deviceTokens? cta status payload? overrides? contextKeys?",
    )
};
static EMAIL_BLOCK: Structure = Structure {
    inside: &[("styles", &[&STYLES])],
    ..Structure::of("email block", "type content url? styles?")
};
static STYLES: Structure = Structure::of("styles", "textAlign");
static CTA: Structure = Structure {
    inside: &[("data", &[&CTA_DATA]), ("action", &[&CTA_ACTION])],
    ..Structure::of("message CTA", "type? data? action?")
};
static CTA_DATA: Structure = Structure::of("message CTA data", "url?");
static CTA_ACTION: Structure = Structure {
    inside: &[("buttons", &[&CTA_BUTTON]), ("result", &[&CTA_RESULT])],
    ..Structure::of("message CTA action", "status? buttons? result?")
};
static CTA_BUTTON: Structure = Structure::of("message CTA button", "type content resultContent?");
static CTA_RESULT: Structure =
    Structure { own: "completedAt?", ..Structure::of("message CTA result", "payload? type?") };
pub static MESSAGE_QUERY: Structure = Structure {
    own: "channel? transactionId? read? seen? archived? snoozed? tags? data? severity? contextKeys? \
              templates? createdGte? createdLte?",
    ..page_query("message query")
};
pub static COMPLETE_ACTION: Structure = Structure::own("complete action", "type payload?");

pub static NOTIFICATION: Structure = Structure {
    own: "overrides?",
    always: "_id createdAt updatedAt jobs",
    inside: &[
        ("subscriber", &[&NOTIFICATION_SUBSCRIBER]),
        ("template", &[&NOTIFICATION_TEMPLATE]),
        ("jobs", &[&JOB]),
        ("topics", &[&NOTIFICATION_TOPIC]),
    ],
    ..Structure::of(
        "activity notification",
        "_id? _environmentId _organizationId _subscriberId transactionId _templateId? \
         _digestedNotificationId? createdAt? updatedAt? channels? subscriber? template? jobs? \
         payload? controls? to? tags? topics? severity? critical? contextKeys?",
    )
};
static NOTIFICATION_SUBSCRIBER: Structure =
    Structure::of("activity subscriber", "subscriberId _id firstName? lastName? email? phone?");
static NOTIFICATION_TEMPLATE: Structure = Structure {
    inside: &[("triggers", &[&NOTIFICATION_TRIGGER])],
    ..Structure::of("activity template", "_id? name origin? triggers")
};
static NOTIFICATION_TOPIC: Structure =
    Structure { own: "subscriptionIds?", ..Structure::of("activity topic", "_topicId topicKey") };
static JOB: Structure = Structure {
    own: "_messageId? sends? deadLetter? providerMessages? dueAt? leaseUntil? attempts?",
    tied: "dueAt leaseUntil attempts",
    inside: &[
        ("sends", &[&JOB_SEND]),
        ("deadLetter", &[&DEAD_LETTER_MARK]),
        ("providerMessages", &[&PROVIDER_MESSAGE]),
        ("digest", &[&DIGEST]),
        ("executionDetails", &[&EXECUTION_DETAIL]),
        ("step", &[&ACTIVITY_STEP]),
    ],
    ..Structure::of(
        "job",
        "_id type digest? executionDetails step overrides? payload? providerId status updatedAt? \
         scheduleExtensionsCount?",
    )
};
static JOB_SEND: Structure = Structure {
    inside: &[("deadLetter", &[&DEAD_LETTER_MARK])],
    ..Structure::own("job send", "_id _integrationId to status _messageId? deadLetter?")
};
static PROVIDER_MESSAGE: Structure = Structure {
    inside: &[("receipts", &[&KNOWN_RECEIPT]), ("resent", &[&RESENT_MESSAGE])],
    ..Structure::own("provider message", "_integrationId providerMessageId receipts? resent?")
};
static KNOWN_RECEIPT: Structure = Structure::own("known receipt", "type eventId? otherAddress?");
static RESENT_MESSAGE: Structure = Structure::own("resent message", "address?");
static DEAD_LETTER_MARK: Structure = Structure {
    inside: &[("called", &[&SEND_TARGET])],
    ..Structure::own(
        "dead letter mark",
        "_id reason text? _integrationId? _messageId? called? diedAt",
    )
};
pub static DEAD_LETTER_PAGE: Structure = Structure {
    inside: &[("data", &[&DEAD_LETTER])],
    ..Structure::own("dead letter page", "data next?")
};
static DEAD_LETTER: Structure = Structure {
    inside: &[("target", &[&SEND_TARGET])],
    ..Structure::own(
        "dead letter",
        "_id _notificationId transactionId _templateId? _stepId _subscriberId channel \
         idempotencyKey target? reason text? _integrationId? _messageId? diedAt",
    )
};
static SEND_TARGET: Structure = Structure::own("send target", "_integrationId to");
pub static DEAD_LETTER_QUERY: Structure = Structure::own(
    "dead letter query",
    "templates? integrations? channels? reasons? after? before? limit? cursor?",
);
static DIGEST: Structure = Structure {
    inside: &[("timed", &[&DIGEST_TIMED])],
    ..Structure::of(
        "digest metadata",
        "type digestKey? amount? unit? events? backoff? backoffAmount? backoffUnit? updateMode? \
         timed?",
    )
};
static DIGEST_TIMED: Structure = Structure::of(
    "digest timed",
    "atTime? weekDays? monthDays? ordinal? ordinalValue? monthlyType? cronExpression? untilDate?",
);
static EXECUTION_DETAIL: Structure = Structure::of(
    "execution detail",
    "_id createdAt? status detail isRetry isTest providerId? raw?~ source",
);
static ACTIVITY_STEP: Structure = Structure {
    inside: &[
        ("filters", &[&STEP_FILTER]),
        ("replyCallback", &[&REPLY_CALLBACK]),
        ("variants", &[&ACTIVITY_STEP]),
    ],
    ..Structure::of(
        "activity step",
        "_id active filters _templateId replyCallback? controlVariables? metadata? issues? \
         template? variants? name? _parentId?~",
    )
};
pub static NOTIFICATION_PAGE: Structure = Structure {
    inside: &[("data", &[&NOTIFICATION])],
    ..Structure::of("activity page", "hasMore data pageSize page")
};
pub static NOTIFICATION_QUERY: Structure = Structure::of(
    "activity query",
    "channels? templates? emails? search? subscriberIds? severity? page? limit? transactionId? \
     topicKey? subscriptionId? contextKeys? outcomes? after? before?",
);

pub static PAGE: Structure = page(&[("data", &[&SUBSCRIBER])]);

const fn page(inside: &'static [(&'static str, &'static [&'static Structure])]) -> Structure {
    Structure {
        inside,
        ..Structure::of("page", "data next~ previous~ totalCount totalCountCapped")
    }
}

pub static MARK_MESSAGES: Structure = Structure::of("mark messages", "messageId markAs");

pub static PREFERENCES: Structure = Structure {
    inside: &[("global", &[&GLOBAL_PREFERENCE]), ("workflows", &[&WORKFLOW_PREFERENCE])],
    ..Structure::of("preferences", "global workflows")
};
static GLOBAL_PREFERENCE: Structure = Structure {
    own: "condition?",
    inside: &[("channels", &[&CHANNELS]), ("schedule", &[&SCHEDULE])],
    ..Structure::of("global preference", "enabled channels schedule?")
};
static SCHEDULE: Structure = Structure {
    inside: &[("weeklySchedule", &[&WEEK])],
    ..Structure::of("schedule", "isEnabled weeklySchedule?")
};
static WEEK: Structure = Structure {
    closed: true,
    inside: &[
        ("monday", &[&DAY]),
        ("tuesday", &[&DAY]),
        ("wednesday", &[&DAY]),
        ("thursday", &[&DAY]),
        ("friday", &[&DAY]),
        ("saturday", &[&DAY]),
        ("sunday", &[&DAY]),
    ],
    ..Structure::of("week", "monday? tuesday? wednesday? thursday? friday? saturday? sunday?")
};
static DAY: Structure =
    Structure { inside: &[("hours", &[&HOURS])], ..Structure::of("day", "isEnabled hours?") };
static HOURS: Structure = Structure::of("hours", "start end");
static WORKFLOW_PREFERENCE: Structure = Structure {
    own: "condition?",
    inside: &[
        ("channels", &[&CHANNELS]),
        ("overrides", &[&OVERRIDE]),
        ("workflow", &[&WORKFLOW_NAME]),
    ],
    ..Structure::of("workflow preference", "enabled channels overrides workflow updatedAt?")
};
static OVERRIDE: Structure =
    Structure { own: "layer", ..Structure::of("override", "channel source") };
static WORKFLOW_NAME: Structure = Structure::of("workflow name", "slug identifier name updatedAt?");
pub static PREFERENCES_QUERY: Structure =
    Structure::of("preferences query", "criticality? contextKeys?");
pub static UPDATED_PREFERENCE: Structure = Structure {
    inside: &[("workflow", &[&WORKFLOW_INFO]), ("channels", &[&CHANNELS])],
    // The level says whether there is one.
    tied: "workflow",
    ..Structure::of("updated preference", "level workflow? enabled channels condition?~")
};
static WORKFLOW_INFO: Structure =
    Structure::of("workflow info", "id identifier name critical tags? data? severity");
pub static BULK_PREFERENCES: Structure = Structure {
    inside: &[("preferences", &[&BULK_PREFERENCE])],
    ..Structure::of("bulk preferences", "preferences context?")
};
static BULK_PREFERENCE: Structure = Structure {
    own: "enabled? condition?",
    inside: &[("channels", &[&CHANNELS])],
    ..Structure::of("bulk preference", "workflowId channels")
};
pub static GLOBAL_PREFERENCE_UPDATE: Structure = Structure {
    inside: &[("channels", &[&CHANNELS]), ("schedule", &[&SCHEDULE])],
    ..Structure::own("global preference update", "enabled? channels? condition? schedule? context?")
};

pub static CONTEXT: Structure = Structure {
    own: "_id _organizationId _environmentId",
    ..Structure::of("context", "type id data createdAt updatedAt")
};
pub static CONTEXT_CREATE: Structure = Structure::own("context create", "type id data?");
pub static CONTEXT_UPDATE: Structure = Structure::of("context update", "data");
pub static CONTEXT_QUERY: Structure = Structure { own: "type? id?", ..page_query("context query") };

pub static TRIGGER: Structure = Structure {
    inside: &[("to", &[&TOPIC_RECIPIENT, &SUBSCRIBER_CREATE])],
    ..Structure::own("trigger", "name to payload? overrides? transactionId? context?")
};
static TOPIC_RECIPIENT: Structure = Structure::own("topic to tell", "type topicKey exclude?");
pub static TRIGGER_TOPIC: Structure =
    Structure { inside: &[("to", &[&TOPIC_RECIPIENT])], ..Structure::own("trigger", TRIGGER.own) };
pub static TRIGGER_RECEIPT: Structure = Structure {
    inside: &[("notifications", &[&CREATED_NOTIFICATION]), ("topics", &[&TOPIC_COUNTS])],
    ..Structure::own(
        "trigger receipt",
        "acknowledged status transactionId notifications topics? missingTopics?",
    )
};
static CREATED_NOTIFICATION: Structure =
    Structure::own("created notification", "subscriberId _notificationId");
static TOPIC_COUNTS: Structure = Structure::own("topic counts", "created filtered");

pub static BROADCAST: Structure = Structure::own(
    "broadcast",
    "name payload? overrides? transactionId? expiresAt? actor? context?",
);
pub static PREVIEW: Structure = Structure::own("preview", "step subscriberId payload? context?");
pub static RECEIPT: Structure =
    Structure::own("receipt", "providerMessageId type eventId? address? text?");
pub static RESOURCE: Structure = Structure::own("resource", "resourceId resourceType");
pub static SUPPRESSION_CREATE: Structure =
    Structure::own("suppression create", "channel address reason? text? expiresAt?");
pub static SUPPRESSION_QUERY: Structure =
    Structure { own: "channel?", ..page_query("suppression query") };
pub static UNSUBSCRIBE_WORKFLOW: Structure = Structure {
    inside: &[("from", &[&FROM_WORKFLOW])],
    ..Structure::own("unsubscribe request", UNSUBSCRIBE_REQUEST)
};
pub static UNSUBSCRIBE_TOPIC: Structure = Structure {
    inside: &[("from", &[&FROM_TOPIC])],
    ..Structure::own("unsubscribe request", UNSUBSCRIBE_REQUEST)
};
const UNSUBSCRIBE_REQUEST: &str = "subscriberId from contextKeys?";
static FROM_WORKFLOW: Structure = Structure::own("from a workflow", "type workflowId channel");
static FROM_TOPIC: Structure = Structure::own("from a topic", "type topicKey");
// The workflows have the structure of one that is created alone.
pub static WORKFLOW_SYNC: Structure = Structure::own("workflow sync", "workflows undeclared?");
