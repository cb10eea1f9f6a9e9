//! A small world with something in every table: records in each of their states, and work to do.

use std::sync::LazyLock;
use std::time::Duration;

use domain::content::ButtonType;
use domain::context::{ContextSet, RichContext};
use domain::ids::{IntegrationId, MessageId, NotificationId, SubscriberId, TransactionId};
use domain::integration::IntegrationDelete;
use domain::message::{CompleteAction, MarkAs, MessageQuery};
use domain::notification::NotificationQuery;
use domain::quarantine::{Quarantined, Unreadable};
use domain::task::Task;
use domain::trigger::{
    AcceptedTrigger, CanceledTrigger, Cancellation, Crowd, EventProgress, FanOut, FanOutState,
    Trigger,
};
use domain::vocabulary::Channel;
use serde_json::{Value, json};
use store::memory::MemoryStore;
use store::{Table, WriteRecords};
use tidings::{Builder, Entity, Error, Result, Scope, SendError};

use crate::facade::restarted;
use crate::interposed::Interposed;
use crate::parsed;
use crate::tables::{Entry, dump, load};
use crate::world::{World, payload_is};

static WORLD: LazyLock<World> = LazyLock::new(|| made_in(Interposed::default()));

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| dump(&WORLD.store));

/// The world, for reading only.
pub fn world() -> &'static World {
    &WORLD
}

/// Every entry of the world, with another environment that uses the same names.
pub fn with_second_environment() -> &'static [Entry] {
    static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| with_another(World::production));
    &ENTRIES
}

/// Every entry of the world, with an environment of another organization that uses the same names.
pub fn with_second_organization() -> &'static [Entry] {
    static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| with_another(World::elsewhere));
    &ENTRIES
}

fn with_another(environment: fn(&World) -> Scope) -> Vec<Entry> {
    let mut world = copy();
    world.env = environment(&world);
    settle_in(&world);
    dump(&world.store)
}

// What an environment has without the work of its delivery, which is done for all of them.
fn settle_in(world: &World) {
    add_integrations(world);
    add_subscribers(world);
    add_workflows(world);
    add_contexts(world);
    add_preferences(world);
    add_channels(world);
    add_topics(world);
    add_translations(world);
    suppress(world);
    add_waiting(world);
    for (transaction, workflow) in [("first", "inbox"), ("second", "both"), ("third", "all")] {
        let trigger = trigger(workflow, json!(["ada", "bob"]));
        let trigger = trigger.transaction_id(transaction).unwrap();
        world.env.events().trigger(&trigger).unwrap();
    }
}

/// Every entry of the world.
pub fn entries() -> &'static [Entry] {
    &ENTRIES
}

/// Every entry of one table of the world.
pub fn entries_of(table: Table) -> impl DoubleEndedIterator<Item = &'static Entry> {
    entries().iter().filter(move |(of, ..)| *of == table)
}

/// A copy of the world, as another process finds it.
pub fn copy() -> World {
    fork().0
}

/// A store with every entry of the world. No row is copied until it changes.
pub fn store() -> MemoryStore {
    static STORE: LazyLock<MemoryStore> = LazyLock::new(|| {
        let store = MemoryStore::default();
        load(&store, entries());
        store
    });
    STORE.fork()
}

/// A copy of the world, and the store below its own.
pub fn fork() -> (World, MemoryStore) {
    let below = store();
    (world_over(Interposed::new(below.clone())), below)
}

/// A world over a store that holds the entries of the world, at the time of the world.
pub fn world_over(store: Interposed) -> World {
    let world = World::with(store, restarted(1));
    world.clock.set(WORLD.now());
    world
}

/// A world of `entries` at the time of the world.
pub fn copy_of(entries: &[Entry]) -> World {
    reopened(Interposed::default(), entries, 1)
}

/// A copy of the world, with an engine that `configure` changes.
pub fn copy_with(configure: impl Fn(Builder) -> Builder) -> World {
    let copy = World::with(Interposed::new(store()), |builder| configure(restarted(1)(builder)));
    copy.clock.set(WORLD.now());
    copy
}

/// A copy of the world in `store`, with an engine that `configure` changes.
pub fn copy_in(store: Interposed, configure: impl Fn(Builder) -> Builder) -> World {
    reopened_with(store, self::entries(), 1, configure)
}

/// A world of `entries` in `store`, after some restarts. Each of them makes other ids.
pub fn reopened(store: Interposed, entries: &[Entry], restarts: u64) -> World {
    reopened_with(store, entries, restarts, |builder| builder)
}

/// A world of `entries` in `store`, after some restarts, with an engine that `configure` changes.
pub fn reopened_with(
    store: Interposed,
    entries: &[Entry],
    restarts: u64,
    configure: impl Fn(Builder) -> Builder,
) -> World {
    load(&store, entries);
    let copy = World::with(store, |builder| configure(restarted(restarts)(builder)));
    copy.clock.set(WORLD.now());
    copy
}

/// The world, created again in `store`.
pub fn made_in(store: Interposed) -> World {
    let world = World::with(store, restarted(0));
    add_integrations(&world);
    add_subscribers(&world);
    call_once(&world);
    add_workflows(&world);
    add_contexts(&world);
    add_preferences(&world);
    add_channels(&world);
    add_topics(&world);
    add_translations(&world);
    suppress(&world);
    fill_a_segment(&world);
    trigger_and_deliver(&world);
    add_quarantine(&world);
    receive(&world);
    reach_many(&world);
    pause(&world);
    world
        .organization
        .environments()
        .create(&parsed(json!({ "name": "Old", "color": "#000" })))
        .unwrap();
    world
}

fn add_integrations(world: &World) {
    let create = |channel: &str, name: &str, conditions: Value| {
        let integrations = world.env.integrations();
        let create = json!({
            "providerId": name, "channel": channel, "identifier": name, "active": true,
            "conditions": conditions, "credentials": { "apiKey": "secret", "from": "us" },
        });
        integrations.create(&parsed(create)).unwrap().id
    };
    create("email", "sendgrid", json!([]));
    create("email", "of-the-host", json!([]));
    create("email", "for-the-urgent", json!([is_urgent()]));
    create("sms", "twilio", json!([]));
    create("push", "fcm", json!([]));
    create("in_app", "inbox", json!([]));
    create("chat", "slack", json!([]));
    let deleted = create("chat", "discord", json!([]));
    world.env.integrations().delete(deleted, &IntegrationDelete::default()).unwrap();
}

fn add_subscribers(world: &World) {
    let push = world.env.integrations().list().unwrap().remove(4).id;
    let credentials = json!({ "deviceTokens": ["one", "two"] });
    let settings =
        json!({ "providerId": "fcm", "_integrationId": push, "credentials": credentials });
    for create in [
        json!({
            "subscriberId": "ada", "firstName": "Ada", "lastName": "Lovelace", "locale": "en_GB",
            "email": "ada@example.org", "phone": "+44 20 7946 0000", "timezone": "Europe/London",
            "channels": [settings], "data": { "plan": { "seats": 3 } },
        }),
        json!({ "subscriberId": "bob", "email": "bob@example.org" }),
        json!({ "subscriberId": "cyd" }),
    ] {
        world.env.subscribers().create(&parsed(create)).unwrap();
    }
}

// Leaves behind an expired answer, a valid answer and a valid refusal.
fn call_once(world: &World) {
    let subscribe = |key: &str, id: &str| {
        let env = world.env.idempotent(key).unwrap();
        env.subscribers().create(&parsed(json!({ "subscriberId": id }))).is_ok()
    };
    let half_a_day = Duration::from_secs(12 * 60 * 60);
    assert!(subscribe("long ago", "dan"));
    world.clock.advance(half_a_day);
    assert!(subscribe("today", "eve"));
    assert!(!subscribe("today, in vain", "ada"));
    world.clock.advance(half_a_day);
}

fn add_workflows(world: &World) {
    let filtered = json!({ "type": "sms", "template": { "body": "!" }, "filters": [is_urgent()] });
    let push = json!({ "type": "push", "template": { "title": "Hi", "body": "{{ payload.n }}" } });
    for (name, critical, steps) in [
        ("inbox", false, json!([question()])),
        ("both", false, json!([inbox(), email()])),
        ("all", true, json!([filtered, push, email(), inbox()])),
    ] {
        let create = json!({
            "workflowId": name, "name": name, "active": true, "critical": critical,
            "tags": ["tag"], "severity": "high", "steps": steps, "data": { "owner": "us" },
            "isTranslationEnabled": critical,
        });
        world.env.workflows().create(&parsed(create)).unwrap();
    }
}

fn add_contexts(world: &World) {
    for create in [
        json!({ "type": "app", "id": "web", "data": { "theme": "dark" } }),
        json!({ "type": "app", "id": "phone" }),
        json!({ "type": "region", "id": "eu" }),
    ] {
        world.env.contexts().create(&parsed(create)).unwrap();
    }
}

fn add_preferences(world: &World) {
    let ada = ada();
    let preferences = world.env.preferences(&ada).unwrap();
    let hours = json!([{ "start": "09:00 AM", "end": "05:00 PM" }]);
    let day = json!({ "isEnabled": true, "hours": hours });
    let schedule = json!({ "isEnabled": true, "weeklySchedule": { "monday": day } });
    let global = json!({ "channels": { "sms": true }, "schedule": schedule });
    preferences.update_global(&parsed(global)).unwrap();
    let both = json!({ "workflowId": "both", "channels": { "email": true } });
    for bulk in [
        json!({ "preferences": [both] }),
        json!({ "preferences": [both], "context": { "tenant": "acme" } }),
    ] {
        preferences.update_bulk(&parsed(bulk)).unwrap();
    }
}

fn add_channels(world: &World) {
    let connections = world.env.channel_connections();
    let workspace = json!({ "id": "T0123", "name": "Acme" });
    let (auth, acme) = (json!({ "accessToken": "secret" }), json!({ "tenant": "acme" }));
    for (identifier, integration, owner) in [
        ("of-ada", "slack", json!({ "subscriberId": "ada" })),
        ("of-acme", "slack", json!({ "context": acme })),
        ("of-bob-at-acme", "fcm", json!({ "subscriberId": "bob", "context": acme })),
    ] {
        let mut create = json!({
            "identifier": identifier, "integrationIdentifier": integration,
            "workspace": workspace, "auth": auth,
        });
        extend(&mut create, owner);
        connections.create(&parsed(create)).unwrap();
        world.clock.advance(Duration::from_millis(1));
    }
    for (identifier, kind, place) in [
        ("channel", "slack_channel", json!({ "channelId": "C0123" })),
        ("user", "slack_user", json!({ "userId": "U0123" })),
        ("hook", "webhook", json!({ "url": "https://example.org/hook", "channel": "news" })),
        ("phone", "phone", json!({ "phoneNumber": "+442079460000" })),
        ("team", "ms_teams_channel", json!({ "teamId": "T1", "channelId": "C1" })),
        ("member", "ms_teams_user", json!({ "userId": "U1", "tenantId": "O1" })),
    ] {
        let mut create = json!({
            "identifier": identifier, "subscriberId": "ada", "type": kind, "endpoint": place,
            "integrationIdentifier": "slack",
        });
        match identifier {
            "channel" => extend(&mut create, json!({ "connectionIdentifier": "of-ada" })),
            "phone" => extend(&mut create, json!({ "integrationIdentifier": "twilio" })),
            "hook" => extend(&mut create, json!({ "subscriberId": "bob", "context": acme })),
            _ => {}
        }
        world.env.channel_endpoints().create(&parsed(create)).unwrap();
        world.clock.advance(Duration::from_millis(1));
    }
    let moved = json!({ "endpoint": { "channelId": "C0456" } });
    world.env.channel_endpoints().update("channel", &parsed(moved)).unwrap();
}

fn add_topics(world: &World) {
    let topics = world.env.topics();
    topics.create(&parsed(json!({ "key": "empty", "name": "Nobody" }))).unwrap();
    world.clock.advance(Duration::from_millis(1));
    let condition = json!({ ">": [{ "var": "payload.n" }, 0] });
    for (key, subscribe) in [
        ("news", json!({ "subscriptions": ["ada", "bob"], "name": "News" })),
        (
            "prices",
            json!({
                "subscriptions": [
                    "ada", { "subscriberId": "bob", "identifier": "bobs", "name": "Bob's" },
                ],
                "preferences": [
                    { "workflowId": "both", "condition": condition },
                    { "filter": { "workflowIds": ["inbox"] }, "enabled": false },
                ],
            }),
        ),
        (
            "prices",
            json!({
                "subscriptions": [{ "subscriberId": "ada", "identifier": "of-acme" }],
                "context": { "tenant": "acme" },
            }),
        ),
    ] {
        assert_eq!(topics.subscribe(key, &parsed(subscribe)).unwrap().errors, []);
    }
    topics.update("news", &parsed(json!({ "name": "All the News" }))).unwrap();
    let wish = json!({ "name": "Mine", "preferences": [{ "workflowId": "both" }] });
    topics.update_subscription("prices", "of-acme", &parsed(wish)).unwrap();
}

fn add_translations(world: &World) {
    for (id, is_translated) in [("plain", false), ("framed", true)] {
        let upsert = json!({
            "layoutId": id, "name": id, "isTranslationEnabled": is_translated,
            "body": "<b>{{ content }}</b>", "isDefault": true,
        });
        world.env.layouts().upsert(&parsed(upsert)).unwrap();
    }
    let german = json!({
        "resourceId": "both", "resourceType": "workflow", "locale": "de_DE",
        "content": { "greeting": "Hallo", "footer": { "legal": "Impressum" } },
    });
    world.env.translations().upsert(&parsed(german)).unwrap();
    let texts = json!({
        "workflows": { "both": { "greeting": "Bonjour" }, "nobody-knows": {} },
        "layouts": { "framed": { "footer": "Fin" } },
    });
    let french = parsed(json!({ "locale": "fr-FR", "masterJson": texts }));
    assert_eq!(world.env.translations().import(&french).unwrap().failed, ["nobody-knows"]);
}

// Leaves behind a suppression for ever, and one that expires.
fn suppress(world: &World) {
    for create in [
        json!({ "channel": "email", "address": "eve@example.org", "text": "has left" }),
        json!({
            "channel": "sms", "address": "+44 20 7946 0001", "reason": "bounced",
            "expiresAt": "2027-11-20T12:00:00.000Z",
        }),
    ] {
        world.env.suppressions().add(&parsed(create)).unwrap();
    }
}

// Leaves behind a sealed segment of the activity index, which is all that is left of a span, and the
// beginning of another one. Both have deleted notifications.
fn fill_a_segment(world: &World) {
    send_texts(world, 24);
    let told = (0..9).map(|n| {
        world.clock.advance(Duration::from_secs(1));
        let trigger = trigger("inbox", json!(["bob", "cyd"]));
        let trigger = trigger.transaction_id(format!("number {n}")).unwrap();
        world.env.events().trigger(&trigger).unwrap()
    });
    let ids = told.flat_map(|receipt| receipt.notifications).map(|told| told.notification_id);
    let ids: Vec<NotificationId> = ids.collect();
    let notifications = world.env.notifications();
    let third = notifications.get(ids[2]).unwrap();
    assert_eq!(notifications.delete_before(third.created_at).unwrap(), 48 + 2);
    for at in [5, 17] {
        notifications.delete(ids[at]).unwrap();
    }
}

// Texts leave nothing behind when their notifications are deleted.
fn send_texts(world: &World, count: u32) {
    let steps = json!([{ "type": "sms", "template": { "body": "!" } }]);
    let create = json!({ "workflowId": "texts", "name": "texts", "active": true, "steps": steps });
    let workflow = world.env.workflows().create(&parsed(create)).unwrap();
    for n in 0..count {
        let trigger = trigger("texts", json!(["bob", "cyd"]));
        let trigger = trigger.transaction_id(format!("text {n}")).unwrap();
        world.env.events().trigger(&trigger).unwrap();
    }
    world.env.workflows().delete(workflow.id).unwrap();
}

// Leaves behind messages of each kind: sent, refused, waiting for a retry, claimed without an
// outcome, and due.
fn trigger_and_deliver(world: &World) {
    let minute = Duration::from_secs(60);
    let send = |transaction: &str, trigger: Trigger| {
        let acme = RichContext::new("acme").data(json!({ "seats": 3 })).unwrap();
        let trigger = trigger.transaction_id(transaction).unwrap();
        world.env.events().trigger(&trigger.context("tenant", acme).unwrap()).unwrap();
        world.clock.advance(minute);
    };
    add_waiting(world);
    send("first", trigger("inbox", json!(["ada", "bob"])));
    send("second", trigger("both", json!(["ada", "bob"])));
    world.recorder.refuse_next(SendError::permanent("no"));
    world.recorder.refuse_next(SendError::retry_after("not now", minute * 10));
    world.engine.delivery().run_due(2).unwrap();
    send("third", trigger("both", json!("ada")));
    world.engine.delivery().run_due(1).unwrap();
    send("fourth", trigger("all", json!(["ada", "cyd"])));
    // The push message goes to two devices.
    world.engine.delivery().run_due(2).unwrap();
    send("fifth", trigger("both", json!("ada")));
    let topic = |key: &str| json!({ "type": "Topic", "topicKey": key, "exclude": ["cyd"] });
    send("sixth", trigger("both", json!([topic("prices"), topic("news"), topic("gone"), "bob"])));
    let messages = inbox_of(&world.env).unwrap();
    world.env.messages().mark(ada(), &messages[..1], MarkAs::Read).unwrap();
    world.env.messages().mark(ada(), &messages[1..2], MarkAs::Seen).unwrap();
    world.env.inbox(ada()).unwrap().archive(&messages[3..4]).unwrap();
    answer_questions(world);
}

// Leaves behind a message whose action is completed, a snoozed one and a deleted one.
fn answer_questions(world: &World) {
    let inbox = world.env.inbox("bob").unwrap();
    let questions = MessageQuery::default().workflows(["inbox"]);
    let first = inbox.list(&questions).unwrap().data[1].id;
    let told = inbox.list(&MessageQuery::default()).unwrap().data;
    let tomorrow = world.now().after(Duration::from_secs(24 * 60 * 60));
    inbox.snooze([told.last().unwrap().id], tomorrow).unwrap();
    inbox.delete([told[told.len() - 2].id]).unwrap();
    inbox.complete_action(first, &CompleteAction::new(ButtonType::Secondary)).unwrap();
}

// A window of a digest with two events of ada, behind a throttle. Urgent messages come before it.
fn add_waiting(world: &World) {
    let throttle = json!({ "amount": 1, "unit": "hours", "threshold": 5 });
    let digest = json!({ "type": "regular", "amount": 1, "unit": "minutes" });
    let steps = json!([
        { "type": "throttle", "metadata": throttle },
        { "type": "digest", "metadata": digest },
        { "type": "in_app", "template": { "body": "{{ total_count }} events" } },
    ]);
    let create = json!({ "workflowId": "wait", "name": "wait", "active": true, "steps": steps });
    world.env.workflows().create(&parsed(create)).unwrap();
    for transaction in ["waiting 1", "waiting 2"] {
        let trigger = trigger("wait", json!("ada")).transaction_id(transaction).unwrap();
        world.env.events().trigger(&trigger).unwrap();
    }
}

// Leaves behind two tasks in quarantine. The second one tells the event of `reach_many`.
fn add_quarantine(world: &World) {
    let environment = world.env.environment_id();
    let whole = json!({
        "_id": "00000000-0000-7000-8000-000000000004",
        "_environmentId": environment,
        "_organizationId": "acme",
        "class": "background",
        "state": "waiting",
        "dueAt": world.now(),
        "attempts": 0,
        "work": { "type": "fan_out", "transactionId": "to many" },
    });
    let unreadable = Unreadable {
        table: Table::Tasks.name(),
        key: b"key".to_vec(),
        value: b"damaged".to_vec(),
        reason: "it is damaged".into(),
    };
    let added = store::write(&world.opened(), |transaction| {
        for (n, task) in [(1, None), (2, Some(whole.clone()))] {
            let id = parsed(json!(format!("00000000-0000-7000-8000-00000000000{n}")));
            let made = (id, world.now());
            transaction.insert(&Quarantined::new(made, environment, &unreadable, task))?;
        }
        Ok::<_, store::Error>(())
    });
    added.expect("the store can be written to");
}

// Leaves behind a message whose provider has given it an id, and has delivered it. The id is put
// there, since the recorder gives none.
fn receive(world: &World) {
    let integration = email_integration(&world.env, 0).unwrap();
    let query = NotificationQuery::default().transaction_id("second").unwrap();
    let page = world.env.notifications().list(&query).unwrap();
    let before = page.data.into_iter().next().unwrap();
    let mut after = before.clone();
    after.jobs.last_mut().unwrap().sent_as(integration, "msg-1");
    store::write(&world.opened(), |transaction| transaction.replace(&before, &after)).unwrap();
    let delivered = json!({ "providerMessageId": "msg-1", "type": "delivered", "eventId": "1" });
    world.env.integrations().ingest_receipt(integration, &parsed(delivered)).unwrap();
}

// Leaves behind the records of an event that was canceled before it has reached many. They are put
// there, since such an event has more than 100 recipients.
fn reach_many(world: &World) {
    let (environment_id, now) = (world.env.environment_id(), world.now());
    let id = TransactionId::new("to many").unwrap();
    let trigger = trigger("inbox", json!(["ada"])).transaction_id(id.clone()).unwrap();
    let workflow_id = world.env.workflows().get("inbox").unwrap().id;
    let fan_out = FanOut {
        environment_id,
        transaction_id: id.clone(),
        workflow_id,
        trigger,
        crowd: Crowd::Everybody,
        before: workflow_id.into(),
        context_keys: ContextSet::default(),
        actor_id: None,
    };
    let accepted = AcceptedTrigger::bare(environment_id, now, id.clone());
    let state = FanOutState::new(environment_id, EventProgress::of(&accepted.receipt, now));
    let canceled = CanceledTrigger::new(environment_id, now, Cancellation::new(id));
    store::write(&world.opened(), |transaction| {
        transaction.insert(&fan_out)?;
        transaction.insert(&state)?;
        transaction.insert(&canceled)
    })
    .unwrap();
}

// Leaves behind a workflow and an integration that are paused, and a message that waits for the
// integration. The message is put there, since a notification more would fill the segment.
fn pause(world: &World) {
    let create = json!({ "workflowId": "paused", "name": "paused", "steps": [inbox()] });
    let workflow = world.env.workflows().create(&parsed(create)).unwrap();
    world.env.workflows().pause(workflow.id).unwrap();
    let create = json!({ "providerId": "paused", "channel": "sms", "identifier": "paused" });
    let integration = world.env.integrations().create(&parsed(create)).unwrap();
    world.env.integrations().pause(integration.id).unwrap();
    let page = world.env.notifications().list(&NotificationQuery::default()).unwrap();
    let task = json!({
        "_id": "00000000-0000-7000-8000-000000000003",
        "_environmentId": world.env.environment_id(),
        "_organizationId": "acme",
        "_templateId": workflow.id,
        "class": "normal",
        "state": "held",
        "_integrationId": integration.id,
        "attempts": 1,
        "work": { "type": "turn", "_notificationId": page.data[0].id },
    });
    let task: Task = parsed(task);
    store::write(&world.opened(), |transaction| transaction.insert(&task)).unwrap();
}

/// A trigger of `workflow` for `to`.
pub fn trigger(workflow: &str, to: Value) -> Trigger {
    let mut trigger = json!({ "name": workflow, "payload": { "urgent": true, "n": 1 } });
    trigger["to"] = to;
    parsed(trigger)
}

/// The subscriber of most records.
pub fn ada() -> SubscriberId {
    SubscriberId::new("ada").unwrap()
}

/// The messages in the inbox of ada, newest first.
pub fn inbox_of(env: &Scope) -> Result<Vec<MessageId>> {
    let page = env.inbox(ada())?.list(&MessageQuery::default())?;
    Ok(page.data.iter().map(|message| message.id).collect())
}

/// One of the integrations for e-mail, oldest first. The first one is primary.
pub fn email_integration(env: &Scope, rank: usize) -> Result<IntegrationId> {
    let integrations = env.integrations().list()?;
    let mut emails = integrations.iter().filter(|found| found.channel == Channel::Email);
    let found = emails.nth(rank).map(|integration| integration.id);
    found.ok_or_else(|| Error::not_found(Entity::Integration, rank))
}

/// The integration that is paused.
pub fn paused_integration(env: &Scope) -> Result<IntegrationId> {
    let integrations = env.integrations().list()?;
    let found = integrations.iter().find(|found| found.is_paused());
    let found = found.map(|integration| integration.id);
    found.ok_or_else(|| Error::not_found(Entity::Integration, "paused"))
}

/// A step with a message in the inbox.
pub fn inbox() -> Value {
    json!({ "type": "in_app", "template": { "subject": "Hi", "body": "Dear {{ payload.n }}" } })
}

// A step with a message in the inbox that has buttons.
fn question() -> Value {
    let mut step = inbox();
    step["template"]["buttons"] = json!([
        { "type": "primary", "content": "Yes" }, { "type": "secondary", "content": "No" },
    ]);
    step
}

/// A step with an e-mail.
pub fn email() -> Value {
    json!({ "type": "email", "template": { "subject": "Hi", "body": "<p>{{ payload.n }}</p>" } })
}

/// A filter that the payload of [`trigger`] meets.
pub fn is_urgent() -> Value {
    payload_is("urgent", "true")
}

fn extend(json: &mut Value, fields: Value) {
    if let (Value::Object(json), Value::Object(fields)) = (json, fields) {
        json.extend(fields);
    }
}
