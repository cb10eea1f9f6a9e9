//! One request and more for every operation, each of which is done in the seeded world.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::seeded::{email, inbox, is_urgent};

/// The requests.
pub fn sound() -> &'static [Value] {
    static SOUND: LazyLock<Vec<Value>> = LazyLock::new(|| {
        [people(), workflows(), channels(), topics(), translations(), activity(), inboxes()]
            .concat()
    });
    &SOUND
}

/// Requests that are stopped by an existing record, or by their own stored answer.
pub fn stopped() -> Vec<Value> {
    let workspace = json!({ "id": "T1" });
    vec![
        json!(["channel_connections.create", {
            "integrationIdentifier": "slack", "subscriberId": "ada", "workspace": workspace,
            "auth": { "accessToken": "secret" },
        }]),
        json!(["idempotent", "today", "subscribers.create", { "subscriberId": "eve" }]),
        json!(["idempotent", "today, in vain", "subscribers.create", { "subscriberId": "ada" }]),
    ]
}

/// The sound requests that change something.
pub fn writing() -> impl Iterator<Item = &'static Value> {
    sound().iter().filter(|request| writes(request[0].as_str().unwrap_or_default()))
}

/// Returns `true` if the operation of that name changes something.
pub fn writes(name: &str) -> bool {
    const READING: [&str; 34] = [
        "get",
        "find",
        "find_by_id",
        "get_subscription",
        "find_subscription",
        "digest_events",
        "messages",
        "explain",
        "preview",
        "test",
        "health",
        "stats",
        "development",
        "production",
        "progress",
        "export",
        "count",
        "check_index",
        "list",
        "list_active",
        "counts",
        "cursor",
        "changes_since",
        "counts_of_tag",
        "counts_of_severity",
        "subscriptions",
        "authenticate",
        "unsubscribe_scope",
        "environment",
        "environment_named",
        "organizations",
        "next_due",
        "url",
        "read",
    ];
    !name.split_once('.').is_some_and(|(_, operation)| READING.contains(&operation))
}

fn people() -> Vec<Value> {
    let hours = json!([{ "start": "09:00 AM", "end": "05:00 PM" }]);
    let monday = json!({ "monday": { "isEnabled": true, "hours": hours } });
    let rule = json!({ "==": [{ "var": "payload.n" }, 1] });
    vec![
        json!(["engine.environment", "$environment 0"]),
        json!(["engine.authenticate", "$authorization 0"]),
        json!(["organization.environment", "acme", "$environment 0"]),
        json!(["organization.environment_named", "acme", "Development"]),
        json!(["engine.organizations", null]),
        json!(["engine.organizations", "acme"]),
        json!(["environments.create", { "name": "New", "color": "fff" }]),
        json!(["environments.update", "$environment 0", { "defaultLocale": "de_DE" }]),
        json!(["environments.list"]),
        json!(["environments.get", "$environment 0"]),
        json!(["environments.find", "$environment 0"]),
        json!(["environments.development"]),
        json!(["environments.production"]),
        json!(["keys.create", { "name": "Orders" }]),
        json!(["keys.list"]),
        json!(["keys.revoke", "$key 0"]),
        json!(["subscribers.create", { "subscriberId": "new", "email": "new@example.org" }]),
        json!(["subscribers.upsert", { "subscriberId": "ada", "phone": "1" }]),
        json!(["subscribers.get", "ada"]),
        json!(["subscribers.find", "ada"]),
        json!(["subscribers.find", "nobody"]),
        json!(["subscribers.find_by_id", "$subscriber 0"]),
        json!(["subscribers.list", {}]),
        json!(["subscribers.list", { "email": "ada@example.org", "limit": 5 }]),
        json!(["subscribers.list", { "phone": "+44 20 7946 0000" }]),
        json!(["subscribers.list", { "name": "a LOVE" }]),
        json!(["subscribers.update", "ada", { "email": null, "firstName": "New" }]),
        json!(["subscribers.set_channel", "ada", {
            "providerId": "fcm", "_integrationId": "$integration 4",
            "credentials": { "deviceTokens": ["new"] },
        }]),
        json!(["subscribers.remove_channel", "ada", "$integration 4"]),
        json!(["subscribers.remove_device", "ada", "$integration 4", "two"]),
        json!(["subscribers.upsert_bulk", [
            { "subscriberId": "new", "email": "new@example.org" },
            { "subscriberId": "ada", "email": "new@example.org", "firstName": "New" },
            { "subscriberId": "bob" },
            { "subscriberId": "new", "phone": "1" },
        ]]),
        json!(["subscribers.set_online", "ada", true]),
        json!(["subscribers.delete", "ada"]),
        json!(["subscribers.export", "ada"]),
        json!(["subscribers.erase", "ada"]),
        json!(["subscribers.erase", "bob"]),
        json!(["preferences.get", "ada", { "criticality": "all", "contextKeys": ["tenant:acme"] }]),
        json!(["preferences.update_bulk", "ada", { "preferences": [
            { "workflowId": "both", "channels": { "email": false }, "condition": rule },
        ] }]),
        json!(["preferences.update_global", "ada", { "enabled": false }]),
        json!(["preferences.update_global", "bob", {
            "context": { "tenant": "umbrella" },
            "schedule": { "isEnabled": true, "weeklySchedule": monday },
        }]),
        json!(["links.url", {
            "subscriberId": "ada", "contextKeys": ["tenant:acme"],
            "from": { "type": "workflow", "workflowId": "both", "channel": "email" },
        }]),
        json!(["links.url", {
            "subscriberId": "ada", "from": { "type": "topic", "topicKey": "news" },
        }]),
        json!(["links.read", "$token 0"]),
        json!(["suppressions.add", { "channel": "sms", "address": "+44 20", "text": "gone" }]),
        json!(["suppressions.add", {
            "channel": "email", "address": "cyd@example.org", "reason": "complained",
        }]),
        json!(["suppressions.get", "email", "Eve@example.org"]),
        json!(["suppressions.find", "email", "eve@example.org"]),
        json!(["suppressions.list", {}]),
        json!(["suppressions.list", { "channel": "sms", "limit": 1 }]),
        json!(["suppressions.remove", "email", "eve@example.org"]),
        json!(["suppressions.clear", "email"]),
        json!(["engine.unsubscribe_scope", "$token 0"]),
        json!(["links.unsubscribe", "$token 0"]),
        json!(["links.unsubscribe", "$token 1"]),
        json!(["contexts.create", { "type": "tenant", "id": "new", "data": { "plan": "free" } }]),
        json!(["contexts.get", "tenant:acme"]),
        json!(["contexts.find", "tenant:acme"]),
        json!(["contexts.list", {}]),
        json!(["contexts.list", { "type": "app", "orderBy": "_id" }]),
        json!(["contexts.list", { "orderBy": "_id", "id": "acme" }]),
        json!(["contexts.update", "app:web", { "data": { "theme": "light" } }]),
        json!(["contexts.delete", "tenant:acme"]),
    ]
}

fn workflows() -> Vec<Value> {
    vec![
        json!(["workflows.create", {
            "workflowId": "new", "name": "New", "steps": [inbox()], "isTranslationEnabled": true,
        }]),
        json!(["workflows.get", "both"]),
        json!(["workflows.find", "both"]),
        json!(["workflows.preview", "both", {
            "step": "1", "subscriberId": "ada", "payload": { "n": 1 },
            "context": { "tenant": "acme" },
        }]),
        json!(["workflows.list", {}]),
        json!(["workflows.list", { "tag": "tag", "limit": 2 }]),
        json!(["workflows.update", "both", { "name": "New", "steps": [inbox(), email()] }]),
        json!(["workflows.upsert", {
            "workflowId": "both", "name": "New", "steps": [inbox(), email(), inbox()],
        }]),
        json!(["workflows.sync", { "undeclared": "delete", "workflows": [
            { "workflowId": "both", "name": "New", "steps": [email()] },
            { "workflowId": "new", "name": "New", "steps": [] },
        ] }]),
        json!(["workflows.pause", "both"]),
        json!(["workflows.resume", "paused"]),
        json!(["workflows.delete", "both"]),
        json!(["integrations.create", {
            "providerId": "new", "channel": "email", "active": true, "conditions": [is_urgent()],
        }]),
        json!(["integrations.upsert", {
            "identifier": "new", "providerId": "ses", "channel": "email",
        }]),
        json!(["integrations.get", "$integration 0"]),
        json!(["integrations.find", "$integration 0"]),
        json!(["integrations.test", "$integration 0"]),
        json!(["integrations.health"]),
        json!(["integrations.list"]),
        json!(["integrations.list_active"]),
        json!(["integrations.update", "$integration 0", { "name": "New" }]),
        json!(["integrations.set_primary", "$integration 1"]),
        json!(["integrations.pause", "$integration 0"]),
        json!(["integrations.resume", "$integration 7"]),
        json!(["integrations.ingest_receipt", "$integration 0", {
            "providerMessageId": "msg-1", "type": "bounced", "eventId": "evt-2",
        }]),
        json!(["integrations.delete", "$integration 0", { "promote": true }]),
        json!(["integrations.delete", "$integration 6", {}]),
    ]
}

fn channels() -> Vec<Value> {
    let (workspace, auth) = (json!({ "id": "T1" }), json!({ "accessToken": "secret" }));
    let create = |of: &str| {
        json!({
            "integrationIdentifier": "slack", "subscriberId": of, "workspace": workspace,
            "auth": auth, "context": { "tenant": "umbrella", "app": "web" },
        })
    };
    vec![
        json!(["channel_connections.create", create("ada")]),
        json!(["channel_connections.get", "of-ada"]),
        json!(["channel_connections.find", "of-ada"]),
        json!(["channel_connections.list", { "orderBy": "_id" }]),
        json!(["channel_connections.list", { "subscriberId": "bob", "channel": "push" }]),
        json!(["channel_connections.list", { "contextKeys": ["tenant:acme"] }]),
        json!(["channel_connections.update", "of-ada", { "workspace": { "id": "T2" } }]),
        json!(["channel_connections.delete", "of-ada"]),
        json!(["channel_endpoints.create", {
            "integrationIdentifier": "slack", "connectionIdentifier": "of-acme",
            "subscriberId": "cyd", "type": "slack_user", "endpoint": { "userId": "U1" },
            "context": { "tenant": { "id": "umbrella", "data": { "seats": 1 } } },
        }]),
        json!(["channel_endpoints.create", {
            "integrationIdentifier": "twilio", "subscriberId": "bob", "type": "phone",
            "endpoint": { "phoneNumber": "+442079460001" },
        }]),
        json!(["channel_endpoints.get", "hook"]),
        json!(["channel_endpoints.find", "hook"]),
        json!(["channel_endpoints.list", { "orderBy": "_id" }]),
        json!(["channel_endpoints.list", {
            "subscriberId": "bob", "contextKeys": ["tenant:acme"], "orderBy": "updatedAt",
        }]),
        json!(["channel_endpoints.list", { "connectionIdentifier": "of-ada", "limit": "5" }]),
        json!(["channel_endpoints.update", "hook", { "endpoint": { "url": "http://a.b/c" } }]),
        json!(["channel_endpoints.delete", "phone"]),
    ]
}

fn topics() -> Vec<Value> {
    let word = json!({
        "filter": { "workflowIds": ["both"], "tags": ["tag"] },
        "condition": { "in": ["acme", { "var": "context.tenant.id" }] },
    });
    vec![
        json!(["topics.create", { "key": "new", "name": "New" }]),
        json!(["idempotent", "new", "topics.create", { "key": "new" }]),
        json!(["topics.upsert", { "key": "new:1" }]),
        json!(["topics.upsert", { "key": "news", "name": "New" }]),
        json!(["topics.get", "news"]),
        json!(["topics.find", "news"]),
        json!(["topics.list", {}]),
        json!(["topics.list", { "key": "NEW", "name": "all", "orderBy": "key" }]),
        json!(["topics.update", "news", { "name": null }]),
        json!(["topics.delete", "news"]),
        json!(["topics.delete", "prices"]),
        json!(["topics.subscribe", "news", { "subscriptions": ["cyd", "ada", "nobody"] }]),
        json!(["topics.subscribe", "new", {
            "subscriptions": [{ "subscriberId": "ada", "identifier": "mine", "name": "Mine" }],
            "name": "New", "preferences": [word, "inbox"], "context": { "tenant": "umbrella" },
        }]),
        json!(["topics.unsubscribe", "news", { "subscriptions": ["ada", "nobody"] }]),
        json!(["topics.unsubscribe", "prices", {
            "subscriptions": [{ "identifier": "bobs" }, { "identifier": "of-acme" }],
        }]),
        json!(["topics.get_subscription", "prices", "bobs"]),
        json!(["topics.find_subscription", "prices", "bobs"]),
        json!(["topics.find_subscription", "news", "tk_news:si_ada"]),
        json!(["topics.subscriptions", "news", {}]),
        json!(["subscribers.subscriptions", "ada", {}]),
        json!(["subscribers.subscriptions", "ada", { "limit": 1 }]),
        json!(["subscribers.subscriptions", "ada", { "contextKeys": ["tenant:acme"] }]),
        json!(["topics.subscriptions", "news", { "subscriberId": "ada" }]),
        json!(["topics.subscriptions", "prices", { "subscriberId": "ada" }]),
        json!(["topics.subscriptions", "prices", { "contextKeys": ["tenant:acme"], "limit": 1 }]),
        json!(["topics.update_subscription", "prices", "bobs", {
            "name": "New", "preferences": [{ "workflowId": "inbox", "enabled": false }],
        }]),
    ]
}

fn translations() -> Vec<Value> {
    let of = |kind: &str, id: &str| json!({ "resourceType": kind, "resourceId": id });
    let texts = json!({ "hello": "Ciao" });
    vec![
        json!(["layouts.upsert", { "layoutId": "new", "name": "New", "isTranslationEnabled": true }]),
        json!(["layouts.upsert", { "layoutId": "plain", "name": "New" }]),
        json!(["layouts.upsert", {
            "layoutId": "plain", "name": "New", "body": "<p>{{ content }}</p>", "isDefault": true,
        }]),
        json!(["layouts.get", "plain"]),
        json!(["layouts.find", "plain"]),
        json!(["layouts.get", "$layout 0"]),
        json!(["layouts.list", {}]),
        json!(["layouts.list", { "isTranslationEnabled": "true" }]),
        json!(["layouts.delete", "framed"]),
        json!(["translations.upsert", {
            "resourceType": "workflow", "resourceId": "inbox", "locale": "it", "content": texts,
        }]),
        json!(["translations.upsert", {
            "resourceType": "workflow", "resourceId": "both", "locale": "de-DE", "content": texts,
        }]),
        json!(["translations.import", { "locale": "it_IT", "masterJson": {
            "workflows": { "both": texts, "inbox": 1, "nobody": texts },
            "layouts": { "plain": texts, "framed": { "a": { "b": "c" } } },
        } }]),
        json!(["translations.get", of("workflow", "both"), "de_DE"]),
        json!(["translations.find", of("workflow", "both"), "de_DE"]),
        json!(["translations.list", {}]),
        json!(["translations.list", { "resourceType": "layout", "locale": "fr-FR" }]),
        json!(["translations.delete", of("workflow", "both"), "fr-fr"]),
        json!(["translations.delete_group", of("workflow", "both")]),
        json!(["translations.delete_group", of("workflow", "all")]),
        json!(["translations.delete_group", of("layout", "framed")]),
    ]
}

fn activity() -> Vec<Value> {
    let event = |name: &str, to: Value| json!({ "name": name, "to": to, "payload": { "n": 1 } });
    let topic = |key: &str| json!({ "type": "Topic", "topicKey": key });
    let mut again = event("both", json!("ada"));
    again["transactionId"] = json!("third");
    let mut last = event("both", json!("ada"));
    last["transactionId"] = json!("sixth");
    let mut about = event("both", json!([topic("prices"), "bob", { "subscriberId": "new" }]));
    about["context"] = json!({ "tenant": { "id": "acme", "data": { "seats": 4 } } });
    vec![
        json!(["events.trigger", event("both", json!(["ada", "new"]))]),
        json!(["events.trigger", event("both", json!([topic("news"), topic("prices")]))]),
        json!(["events.trigger", event("wait", json!("ada"))]),
        json!(["events.trigger", about]),
        json!(["events.trigger_bulk", [again, event("nobody.knows", json!("ada")), last, about]]),
        json!(["events.broadcast", {
            "name": "both", "payload": { "n": 1 }, "actor": "ada", "transactionId": "seventh",
        }]),
        json!(["events.cancel", "fifth"]),
        json!(["events.progress", "to many"]),
        json!(["events.explain", event("both", json!(["ada", "new"])), "2026-11-28T12:00:00Z"]),
        json!(["notifications.resend", "$sent 0", "$step 0"]),
        json!(["notifications.get", "$notification 0"]),
        json!(["notifications.find", "$notification 0"]),
        json!(["notifications.messages", "$notification 0"]),
        json!(["notifications.digest_events", "$digest 0"]),
        json!(["notifications.list", {}]),
        json!(["notifications.list", { "subscriberIds": ["ada"], "limit": "3", "page": 1 }]),
        json!(["notifications.list", { "emails": "ada@example.org", "topicKey": "prices" }]),
        json!(["notifications.list", { "templates": ["both", "all"], "search": "ada" }]),
        json!(["notifications.list", { "transactionId": "third" }]),
        json!(["notifications.list", { "templates": ["inbox", "all"] }]),
        json!(["notifications.list", { "outcomes": ["waiting", "failed"] }]),
        json!(["notifications.list", { "outcomes": "skipped", "templates": ["all"] }]),
        json!(["notifications.count", {}]),
        json!(["notifications.count", { "outcomes": ["delivered", "merged", "canceled"] }]),
        json!(["notifications.count", { "channels": ["in_app"], "subscriberIds": "bob" }]),
        json!(["notifications.delete", "$notification 0"]),
        json!(["notifications.delete", "$notification 20"]),
        json!(["notifications.delete_before", "2026-11-21T12:00:06Z"]),
        json!(["notifications.delete_before", "2026-12-01T00:00:00Z"]),
        json!(["notifications.check_index"]),
        json!(["notifications.rebuild_index"]),
        json!(["dead_letters.get", "$letter 0"]),
        json!(["dead_letters.find", "$letter 0"]),
        json!(["dead_letters.list", {}]),
        json!(["dead_letters.list", { "templates": "both", "integrations": ["first"], "limit": "1" }]),
        json!(["dead_letters.count", { "channels": "email", "reasons": "refused" }]),
        json!(["dead_letters.redrive", "$letter 0"]),
        json!(["dead_letters.discard", "$letter 0"]),
        json!(["dead_letters.redrive_matching", {}]),
        json!(["dead_letters.discard_matching", { "after": "2026-11-21T00:00:00Z" }]),
        json!(["messages.list", "ada", {}]),
        json!(["messages.get", "ada", "$message 0"]),
        json!(["messages.find", "ada", "$message 0"]),
        json!(["messages.list", "ada", { "channel": "email", "read": "false" }]),
        json!(["messages.mark", "ada", ["$message 0", "$message 2"], "read"]),
        json!(["delivery.run_due", 8]),
        json!(["delivery.next_due"]),
        json!(["delivery.stats"]),
        json!(["quarantine.list", 8]),
        json!(["quarantine.list", 1, "$quarantined 0"]),
        json!(["quarantine.get", "$quarantined 0"]),
        json!(["quarantine.find", "$quarantined 1"]),
        json!(["quarantine.requeue", "$quarantined 1"]),
        json!(["quarantine.discard", "$quarantined 0"]),
    ]
}

fn inboxes() -> Vec<Value> {
    let tagged = json!({ "tags": ["tag", "other"], "severity": "high", "templates": "both" });
    vec![
        json!(["inbox.list", "ada", {}]),
        json!(["inbox.list", "ada", { "seen": false, "orderDirection": "ASC" }]),
        json!(["inbox.list", "ada", { "read": "false" }]),
        json!(["inbox.list", "ada", { "archived": "true" }]),
        json!(["inbox.list", "ada", tagged]),
        json!(["inbox.list", "ada", { "contextKeys": ["tenant:acme"], "limit": 1 }]),
        json!(["inbox.list", "ada", {
            "tags": { "and": [{ "or": ["tag", "other"] }, { "or": ["tag"] }] },
            "data": { "n": [1, null] }, "createdGte": "2026-11-21T00:00:00Z",
        }]),
        json!(["inbox.count", "ada", { "tags": "tag", "read": false }]),
        json!(["inbox.cursor", "ada"]),
        json!(["inbox.changes_since", "ada", "$feed 0"]),
        json!(["inbox.changes_since", "ada", "$feed 1"]),
        json!(["inbox.changes_since", "bob", "$feed 2"]),
        json!(["inbox.counts", "ada"]),
        json!(["inbox.counts_of_tag", "ada", "tag"]),
        json!(["inbox.counts_of_severity", "ada", "high"]),
        json!(["inbox.mark_as", "ada", ["$message 1"], "unseen"]),
        json!(["inbox.mark_all", "ada", "read"]),
        json!(["inbox.mark_matching", "ada", { "read": "true" }, "unread"]),
        json!(["inbox.archive", "ada", ["$message 0", "$message 1"]]),
        json!(["inbox.unarchive", "ada", ["$archived 0"]]),
        json!(["inbox.mark_as", "ada", ["$archived 0"], "unread"]),
        json!(["inbox.delete", "ada", ["$message 0", "$archived 0"]]),
        json!(["inbox.archive_matching", "ada", tagged]),
        json!(["inbox.mark_matching", "ada", { "data": { "n": 1 } }, "read"]),
        json!(["inbox.unarchive_matching", "ada", {}]),
        json!(["inbox.delete_matching", "ada", { "read": true }]),
        json!(["inbox.list", "bob", { "snoozed": true }]),
        json!(["inbox.snooze", "ada", ["$message 0", "$archived 0"], "2030-01-01T00:00:00Z"]),
        json!(["inbox.snooze", "bob", ["$snoozed 0"], "2031-01-01T00:00:00Z"]),
        json!(["inbox.snooze_matching", "ada", { "tags": "tag" }, "2030-01-01T00:00:00Z"]),
        json!(["inbox.unsnooze", "bob", ["$snoozed 0"]]),
        json!(["inbox.unsnooze_matching", "bob", {}]),
        json!(["inbox.delete", "bob", ["$snoozed 0"]]),
        json!(["inbox.complete_action", "bob", "$question 0", {
            "type": "primary", "payload": { "n": 1 },
        }]),
        json!(["inbox.revert_action", "bob", "$question 1", "secondary"]),
    ]
}
