//! Every writing operation, called twice.

use serde::Serialize;
use serde_json::{Value, json};
use testkit::sealed::in_common;
use tidings::contact::Locale;
use tidings::ids::{
    ApiKeyId, DeadLetterId, IntegrationId, MessageId, NotificationId, StepId, SubscriberId,
};
use tidings::integration::IntegrationDelete;
use tidings::message::{MarkAs, MessageQuery};
use tidings::suppression::SuppressionCreate;
use tidings::trigger::Trigger;
use tidings::unsubscribe::UnsubscribeRequest;
use tidings::vocabulary::Channel;
use tidings::workflow::WorkflowSync;
use tidings::{Result, Scope};

use super::once;
use crate::layouts;
use crate::subscriptions::subscribe_all;
use crate::topics::key;
use crate::translations::{resource, upsert};
use crate::world::{World, email, in_app, on_both, parsed, wire, with, workflow_of};

// A writing operation with some arguments, or with others. Its answer is the one on the wire.
pub(super) type Write = fn(&Scope, &Known, Args) -> Result<Value>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Args {
    These,
    Others,
}

// What the calls name that the engine has made.
pub(super) struct Known {
    ada: SubscriberId,
    primary: IntegrationId,
    second: IntegrationId,
    idle: IntegrationId,
    messages: Vec<MessageId>,
    archived: Vec<MessageId>,
    snoozed: Vec<MessageId>,
    // A message with buttons, and one whose second button was chosen.
    question: MessageId,
    answered: MessageId,
    notifications: Vec<NotificationId>,
    letters: Vec<DeadLetterId>,
    // Steps whose e-mails were refused.
    refused: Vec<(NotificationId, StepId)>,
    keys: [ApiKeyId; 2],
    // Tokens of unsubscribe links.
    tokens: [String; 2],
}

#[test]
fn every_writing_operation_happens_once() {
    for (name, write) in WRITES {
        on_both(|world| {
            let known = known(&world);
            let once = once(&world, "k");
            let before = world.dump();

            let first = write(&once, &known, Args::These).unwrap_or_else(|e| panic!("{name}: {e}"));

            let written = world.dump();
            assert!(written != before, "{name} writes nothing");
            world.tick();
            let again = world.unchanged(|| write(&once, &known, Args::These).unwrap());
            assert_eq!(again, first, "{name}");
            let refusal = "409 idempotency key `k` was used for another call";
            world.refuses(refusal, || write(&once, &known, Args::Others));
            // With the arguments of this operation, another one is another call.
            let other = parsed(json!({ "type": "tenant", "id": "other" }));
            world.refuses(refusal, || once.contexts().create(&other));
            // What has been refused for its key does not take the place of the answer.
            assert_eq!(world.unchanged(|| write(&once, &known, Args::These).unwrap()), first);
        });
    }
}

/// A key changes when an operation happens, and not what it does.
#[test]
fn every_writing_operation_does_with_a_key_what_it_does_without() {
    for (name, write) in WRITES {
        let outcome = |with_key: bool| {
            let outcome = std::cell::RefCell::new(Vec::new());
            on_both(|world| {
                let known = known(&world);
                let scope = if with_key { once(&world, "k") } else { world.env.clone() };
                let answer = write(&scope, &known, Args::These).unwrap();
                let mut dump = world.dump();
                dump.retain(|(table, _), _| !table.ends_with("answers"));
                outcome.borrow_mut().push((answer, in_common(dump)));
            });
            outcome.into_inner()
        };
        assert!(outcome(true) == outcome(false), "{name}");
    }
}

pub(super) const WRITES: &[(&str, Write)] = &[
    ("channel_connections.create", |scope, _, args| {
        let token = args.pick("token", "other");
        shown(scope.channel_connections().create(&parsed(json!({
            "integrationIdentifier": "slack",
            "subscriberId": "bob",
            "context": { "tenant": "new" },
            "workspace": { "id": "w" },
            "auth": { "accessToken": token },
        }))))
    }),
    ("channel_connections.update", |scope, _, args| {
        let update = json!({ "workspace": { "id": args.pick("new", "newer") } });
        shown(scope.channel_connections().update("conn", &parsed(update)))
    }),
    ("channel_connections.delete", |scope, _, args| {
        let name = args.pick("conn", "unknown");
        shown(scope.channel_connections().delete(name))
    }),
    ("channel_endpoints.create", |scope, _, args| {
        shown(scope.channel_endpoints().create(&parsed(json!({
            "integrationIdentifier": "slack",
            "subscriberId": "ada",
            "type": "slack_channel",
            "endpoint": { "channelId": args.pick("c", "d") },
        }))))
    }),
    ("channel_endpoints.update", |scope, _, args| {
        let update = json!({ "endpoint": { "channelId": args.pick("new", "newer") } });
        shown(scope.channel_endpoints().update("end", &parsed(update)))
    }),
    ("channel_endpoints.delete", |scope, _, args| {
        let name = args.pick("end", "unknown");
        shown(scope.channel_endpoints().delete(name))
    }),
    ("contexts.create", |scope, _, args| {
        let data = json!({ "plan": args.pick("free", "pro") });
        shown(scope.contexts().create(&parsed(json!({ "type": "app", "id": "x", "data": data }))))
    }),
    ("contexts.update", |scope, _, args| {
        let update = json!({ "data": { "plan": args.pick("free", "pro") } });
        shown(scope.contexts().update("tenant:acme", &parsed(update)))
    }),
    ("contexts.delete", |scope, _, args| {
        let key = args.pick("tenant:acme", "tenant:unknown");
        shown(scope.contexts().delete(key))
    }),
    ("dead_letters.redrive", |scope, known, args| {
        shown(scope.dead_letters().redrive(known.letters[usize::from(args == Args::Others)]))
    }),
    ("dead_letters.discard", |scope, known, args| {
        shown(scope.dead_letters().discard(known.letters[usize::from(args == Args::Others)]))
    }),
    ("dead_letters.redrive_matching", |scope, _, args| {
        let query = json!({ "templates": args.pick("mail", "hi") });
        shown(scope.dead_letters().redrive_matching(&parsed(query)))
    }),
    ("dead_letters.discard_matching", |scope, _, args| {
        let query = json!({ "channels": args.pick("email", "sms") });
        shown(scope.dead_letters().discard_matching(&parsed(query)))
    }),
    ("environments.create", |scope, _, args| {
        let create = json!({ "name": "QA", "color": args.pick("#fff", "#000") });
        shown(scope.environments().create(&parsed(create)))
    }),
    ("environments.update", |scope, _, args| {
        let update = json!({ "defaultLocale": args.pick("de", "fr") });
        shown(scope.environments().update(scope.environment_id(), &parsed(update)))
    }),
    ("api_keys.create", |scope, _, args| {
        let create = json!({ "name": args.pick("Orders", "Reports") });
        shown(scope.api_keys().create(&parsed(create)))
    }),
    ("api_keys.revoke", |scope, known, args| {
        let [these, others] = known.keys;
        shown(scope.api_keys().revoke(if args == Args::These { these } else { others }))
    }),
    ("events.trigger", |scope, _, args| {
        let trigger = event(args.pick("ada", "new"));
        shown(scope.events().trigger(&trigger))
    }),
    ("events.trigger_bulk", |scope, _, args| {
        // One of them is refused, and its refusal is part of the answer.
        let mut refused = event("ada");
        refused.workflow = "unknown".parse().unwrap();
        let events = [event(args.pick("ada", "new")), refused];
        let receipts = scope.events().trigger_bulk(&events)?;
        let shown = receipts.into_iter().map(|receipt| match receipt {
            Ok(receipt) => wire(receipt),
            Err(error) => json!(format!("{} {error}", error.status())),
        });
        Ok(shown.collect())
    }),
    ("events.broadcast", |scope, _, args| {
        let everybody = json!({ "name": args.pick("hi", "mail") });
        shown(scope.events().broadcast(&parsed(everybody)))
    }),
    ("events.cancel", |scope, _, args| {
        shown(scope.events().cancel(args.pick("waits", "waits too")))
    }),
    ("inbox.mark_as", |scope, known, args| {
        let mark = if args == Args::These { MarkAs::Read } else { MarkAs::Seen };
        shown(scope.inbox(&known.ada).unwrap().mark_as(&known.messages, mark))
    }),
    ("inbox.mark_all", |scope, known, args| {
        let mark = if args == Args::These { MarkAs::Read } else { MarkAs::Seen };
        shown(scope.inbox(&known.ada).unwrap().mark_all(mark))
    }),
    ("inbox.mark_matching", |scope, known, args| {
        shown(scope.inbox(&known.ada).unwrap().mark_matching(&args.query(), MarkAs::Read))
    }),
    ("inbox.archive", |scope, known, args| {
        let ids = if args == Args::These { &known.messages[..] } else { &known.messages[1..] };
        shown(scope.inbox(&known.ada).unwrap().archive(ids))
    }),
    ("inbox.unarchive", |scope, known, args| {
        let ids = if args == Args::These { &known.archived[..] } else { &known.messages };
        shown(scope.inbox(&known.ada).unwrap().unarchive(ids))
    }),
    ("inbox.delete", |scope, known, args| {
        let ids = if args == Args::These { &known.messages[..] } else { &known.messages[1..] };
        shown(scope.inbox(&known.ada).unwrap().delete(ids))
    }),
    ("inbox.archive_matching", |scope, known, args| {
        shown(scope.inbox(&known.ada).unwrap().archive_matching(&args.query()))
    }),
    ("inbox.unarchive_matching", |scope, known, args| {
        shown(scope.inbox(&known.ada).unwrap().unarchive_matching(&args.query()))
    }),
    ("inbox.delete_matching", |scope, known, args| {
        shown(scope.inbox(&known.ada).unwrap().delete_matching(&args.query()))
    }),
    ("inbox.snooze", |scope, known, args| {
        let until = crate::world::time(args.pick("2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z"));
        shown(scope.inbox(&known.ada).unwrap().snooze(&known.messages, until))
    }),
    ("inbox.unsnooze", |scope, known, args| {
        let ids = if args == Args::These { &known.snoozed[..] } else { &known.messages };
        shown(scope.inbox(&known.ada).unwrap().unsnooze(ids))
    }),
    ("inbox.snooze_matching", |scope, known, args| {
        let until = crate::world::time("2030-01-01T00:00:00Z");
        shown(scope.inbox(&known.ada).unwrap().snooze_matching(&args.query(), until))
    }),
    ("inbox.unsnooze_matching", |scope, known, args| {
        shown(scope.inbox(&known.ada).unwrap().unsnooze_matching(&args.query()))
    }),
    ("inbox.complete_action", |scope, known, args| {
        let kind = args.pick("primary", "secondary");
        let choice = parsed(json!({ "type": kind }));
        shown(scope.inbox(&known.ada).unwrap().complete_action(known.question, &choice))
    }),
    ("inbox.revert_action", |scope, known, args| {
        let kind = parsed(json!(args.pick("secondary", "primary")));
        shown(scope.inbox(&known.ada).unwrap().revert_action(known.answered, kind))
    }),
    ("integrations.create", |scope, _, args| {
        shown(scope.integrations().create(&parsed(json!({
            "providerId": "ses",
            "channel": "email",
            "active": true,
            "credentials": { "apiKey": args.pick("one", "two") },
        }))))
    }),
    ("integrations.update", |scope, known, args| {
        let update = json!({ "credentials": { "apiKey": args.pick("one", "two") } });
        shown(scope.integrations().update(known.primary, &parsed(update)))
    }),
    ("integrations.upsert", |scope, _, args| {
        shown(scope.integrations().upsert(&parsed(json!({
            "identifier": args.pick("A", "B"), "providerId": "ses", "channel": "email",
        }))))
    }),
    ("integrations.set_primary", |scope, known, args| {
        let id = if args == Args::These { known.second } else { known.primary };
        shown(scope.integrations().set_primary(id))
    }),
    ("integrations.pause", |scope, known, args| {
        let id = if args == Args::These { known.second } else { known.primary };
        shown(scope.integrations().pause(id))
    }),
    ("integrations.resume", |scope, known, args| {
        let id = if args == Args::These { known.idle } else { known.primary };
        shown(scope.integrations().resume(id))
    }),
    ("integrations.delete", |scope, known, args| {
        let mut delete = IntegrationDelete::default();
        delete.promote = args == Args::These;
        shown(scope.integrations().delete(known.primary, &delete))
    }),
    ("layouts.upsert", |scope, _, args| {
        let upsert = json!({ "layoutId": "new", "name": args.pick("New", "Newer") });
        shown(scope.layouts().upsert(&parsed(upsert)))
    }),
    ("layouts.delete", |scope, _, args| {
        shown(scope.layouts().delete(args.pick("frame", "unknown")))
    }),
    ("messages.mark", |scope, known, args| {
        let ids = if args == Args::These { &known.messages[..] } else { &known.messages[1..] };
        shown(scope.messages().mark(&known.ada, ids, MarkAs::Read))
    }),
    ("notifications.delete", |scope, known, args| {
        shown(scope.notifications().delete(known.notifications[usize::from(args == Args::Others)]))
    }),
    ("notifications.resend", |scope, known, args| {
        let (id, step) = known.refused[usize::from(args == Args::Others)];
        shown(scope.notifications().resend(id, step))
    }),
    ("notifications.delete_before", |scope, _, args| {
        let end = args.pick("2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z");
        shown(scope.notifications().delete_before(crate::world::time(end)))
    }),
    ("preferences.update_bulk", |scope, known, args| {
        let word = json!({ "workflowId": "hi", "channels": { "sms": args == Args::These } });
        let update = json!({ "preferences": [word] });
        shown(scope.preferences(&known.ada).unwrap().update_bulk(&parsed(update)))
    }),
    ("preferences.update_global", |scope, known, args| {
        let update = json!({ "enabled": args == Args::These });
        shown(scope.preferences(&known.ada).unwrap().update_global(&parsed(update)))
    }),
    ("subscribers.create", |scope, _, args| {
        let create = json!({ "subscriberId": "new", "firstName": args.pick("A", "B") });
        shown(scope.subscribers().create(&parsed(create)))
    }),
    ("subscribers.upsert", |scope, _, args| {
        let create = json!({ "subscriberId": "ada", "firstName": args.pick("A", "B") });
        shown(scope.subscribers().upsert(&parsed(create)))
    }),
    // What is cleared is not what is kept.
    ("subscribers.update", |scope, known, args| {
        let update = match args {
            Args::These => json!({ "lastName": null }),
            Args::Others => json!({}),
        };
        shown(scope.subscribers().update(&known.ada, &parsed(update)))
    }),
    ("subscribers.set_channel", |scope, known, args| {
        let settings = channel(known.idle, args.pick("new", "newer"));
        shown(scope.subscribers().set_channel(&known.ada, &parsed(settings)))
    }),
    ("subscribers.remove_channel", |scope, known, args| {
        let integration = if args == Args::These { known.idle } else { known.primary };
        shown(scope.subscribers().remove_channel(&known.ada, integration))
    }),
    ("subscribers.remove_device", |scope, known, args| {
        let token = args.pick("token", "other");
        shown(scope.subscribers().remove_device(&known.ada, known.idle, token))
    }),
    ("subscribers.upsert_bulk", |scope, _, args| {
        let creates = json!([
            { "subscriberId": "new", "firstName": args.pick("A", "B") }, { "subscriberId": "ada" },
        ]);
        shown(scope.subscribers().upsert_bulk(&parsed::<Vec<_>>(creates)))
    }),
    ("subscribers.set_online", |scope, known, args| {
        shown(scope.subscribers().set_online(&known.ada, args == Args::These))
    }),
    ("subscribers.delete", |scope, _, args| {
        shown(scope.subscribers().delete(args.pick("ada", "bob")))
    }),
    ("subscribers.erase", |scope, _, args| {
        shown(scope.subscribers().erase(args.pick("ada", "bob")))
    }),
    ("topics.create", |scope, _, args| {
        let create = json!({ "key": "new", "name": args.pick("A", "B") });
        shown(scope.topics().create(&parsed(create)))
    }),
    ("topics.upsert", |scope, _, args| {
        let create = json!({ "key": "news", "name": args.pick("A", "B") });
        shown(scope.topics().upsert(&parsed(create)))
    }),
    ("topics.update", |scope, _, args| {
        let update = json!({ "name": args.pick("A", "B") });
        shown(scope.topics().update(key("news"), &parsed(update)))
    }),
    ("topics.delete", |scope, _, args| {
        shown(scope.topics().delete(key(args.pick("news", "other"))))
    }),
    ("topics.subscribe", |scope, _, args| {
        let request = json!({ "subscriptions": ["bob", args.pick("eve", "ada")] });
        shown(scope.topics().subscribe(key("fresh"), &parsed(request)))
    }),
    ("topics.unsubscribe", |scope, _, args| {
        let request = json!({ "subscriptions": ["ada", args.pick("eve", "bob")] });
        shown(scope.topics().unsubscribe(key("news"), &parsed(request)))
    }),
    ("topics.update_subscription", |scope, _, args| {
        let update = json!({ "name": args.pick("A", "B") });
        let identifier = "tk_news:si_ada";
        shown(scope.topics().update_subscription("news", identifier, &parsed(update)))
    }),
    ("translations.upsert", |scope, _, args| {
        let content = json!({ "a": args.pick("A", "B") });
        shown(scope.translations().upsert(&parsed(json!({
            "resourceType": "workflow", "resourceId": "hi", "locale": "de", "content": content,
        }))))
    }),
    ("translations.import", |scope, _, args| {
        let texts = json!({ "hi": { "a": args.pick("A", "B") }, "mail": {}, "unknown": {} });
        let master = json!({ "workflows": texts });
        shown(scope.translations().import(&parsed(json!({
            "locale": "de", "masterJson": master,
        }))))
    }),
    ("translations.delete", |scope, _, args| {
        let locale = Locale::new(args.pick("fr", "en"))?;
        shown(scope.translations().delete(&resource("workflow", "hi"), &locale))
    }),
    ("translations.delete_group", |scope, _, args| {
        let kind = args.pick("workflow", "layout");
        shown(scope.translations().delete_group(&resource(kind, "hi")))
    }),
    ("suppressions.add", |scope, _, args| {
        let create = SuppressionCreate::new(Channel::Sms, args.pick("+1", "+2"))?;
        shown(scope.suppressions().add(&create))
    }),
    ("suppressions.remove", |scope, _, args| {
        shown(scope.suppressions().remove(Channel::Email, args.pick("a@b.c", "b@b.c")))
    }),
    ("suppressions.clear_channel", |scope, _, args| {
        let channel = if args == Args::These { Channel::Email } else { Channel::Sms };
        shown(scope.suppressions().clear_channel(channel))
    }),
    ("suppressions.clear_all", |scope, _, args| {
        let suppressions = scope.suppressions();
        shown(match args {
            Args::These => suppressions.clear_all(),
            Args::Others => suppressions.clear_channel(Channel::Sms),
        })
    }),
    ("scope.unsubscribe", |scope, known, args| {
        let [these, others] = &known.tokens;
        shown(scope.unsubscribe(if args == Args::These { these } else { others }))
    }),
    ("workflows.create", |scope, _, args| {
        let step = if args == Args::These { in_app() } else { email() };
        shown(scope.workflows().create(&parsed(workflow_of("new", &[step]))))
    }),
    ("workflows.update", |scope, _, args| {
        let update = json!({ "name": args.pick("A", "B") });
        shown(scope.workflows().update("hi", &parsed(update)))
    }),
    ("workflows.upsert", |scope, _, args| {
        let steps = [with(email(), json!({ "name": args.pick("A", "B") }))];
        shown(scope.workflows().upsert(&parsed(workflow_of("hi", &steps))))
    }),
    ("workflows.sync", |scope, _, args| {
        let workflows = [parsed(workflow_of(args.pick("hi", "new"), &[in_app()]))];
        shown(scope.workflows().sync(&WorkflowSync::new(workflows)))
    }),
    ("workflows.pause", |scope, _, args| shown(scope.workflows().pause(args.pick("hi", "mail")))),
    ("workflows.resume", |scope, _, args| shown(scope.workflows().resume(args.pick("idle", "hi")))),
    ("workflows.delete", |scope, _, args| shown(scope.workflows().delete(args.pick("hi", "mail")))),
];

impl Args {
    fn query(self) -> MessageQuery {
        match self {
            Args::These => MessageQuery::default(),
            Args::Others => MessageQuery::default().tags(["other"]),
        }
    }

    fn pick(self, these: &'static str, others: &'static str) -> &'static str {
        match self {
            Args::These => these,
            Args::Others => others,
        }
    }
}

fn shown<T: Serialize>(answer: Result<T>) -> Result<Value> {
    answer.map(wire)
}

fn event(to: &str) -> Trigger {
    parsed(json!({ "name": "hi", "to": to }))
}

// Fills a world with something for every operation to work on.
fn channel(integration: IntegrationId, token: &str) -> Value {
    let credentials = json!({ "deviceTokens": [token] });
    json!({ "providerId": "fcm", "_integrationId": integration, "credentials": credentials })
}

pub(super) fn known(world: &World) -> Known {
    let ada = json!({ "subscriberId": "ada", "firstName": "Ada", "lastName": "King" });
    let ada = world.subscriber(ada).subscriber_id;
    world.bare_subscriber("bob");
    world.in_app_workflow("hi");
    world.workflow_of("mail", &[email()]);
    let made = (0..2).map(|_| {
        let notification = world.notify("hi", "ada");
        (world.inbox("ada")[0].id, notification)
    });
    let (messages, notifications) = made.unzip();
    world.notify("hi", "ada");
    let archived = vec![world.inbox("ada")[0].id];
    world.env.inbox(&ada).unwrap().archive(&archived).unwrap();
    world.notify("hi", "ada");
    let snoozed = vec![world.inbox("ada")[0].id];
    let tomorrow = world.now().after(std::time::Duration::from_secs(24 * 60 * 60));
    world.env.inbox(&ada).unwrap().snooze(&snoozed, tomorrow).unwrap();
    let [question, answered] = questions(world);
    let credentials = json!({ "credentials": { "apiKey": "secret" } });
    let [primary, second] = ["first", "second"].map(|name| {
        let create = crate::world::active_integration("email", name);
        world.integration(with(create, credentials.clone())).id
    });
    world.active_integration("chat", "slack");
    let idle = world.active_integration("push", "fcm").id;
    let device = parsed(channel(idle, "token"));
    world.env.subscribers().set_channel(&ada, &device).unwrap();
    world.env.integrations().pause(idle).unwrap();
    world.in_app_workflow("idle");
    world.env.workflows().pause("idle").unwrap();
    let connection = json!({
        "identifier": "conn",
        "integrationIdentifier": "slack",
        "subscriberId": "ada",
        "context": { "tenant": "acme" },
        "workspace": { "id": "w" },
        "auth": { "accessToken": "t" },
    });
    world.env.channel_connections().create(&parsed(connection)).unwrap();
    let endpoint = json!({
        "identifier": "end",
        "integrationIdentifier": "slack",
        "subscriberId": "ada",
        "type": "slack_channel",
        "endpoint": { "channelId": "c" },
    });
    world.env.channel_endpoints().create(&parsed(endpoint)).unwrap();
    for topic in ["news", "other"] {
        subscribe_all(world, topic, json!({ "subscriptions": ["ada", "bob"] }));
    }
    layouts::upsert(world, json!({ "layoutId": "frame", "name": "Frame" }));
    for locale in ["fr", "en"] {
        upsert(world, "workflow", "hi", locale, json!({ "a": "A" }));
    }
    let gone = SuppressionCreate::new(Channel::Email, "a@b.c").unwrap();
    world.env.suppressions().add(&gone).unwrap();
    let letters = letters(world);
    let refused = world.notifications(json!({ "subscriberIds": ["cyd"] }));
    let refused = refused.iter().map(|found| (found.id, found.jobs[0].step.id)).collect();
    for id in ["waits", "waits too"] {
        world.trigger(json!({ "name": "mail", "to": "cyd", "transactionId": id }));
    }
    Known {
        ada,
        primary,
        second,
        idle,
        messages,
        archived,
        snoozed,
        question,
        answered,
        notifications,
        letters,
        refused,
        keys: ["one", "two"].map(|name| {
            let create = parsed(json!({ "name": name }));
            world.env.api_keys().create(&create).unwrap().record.id
        }),
        tokens: ["hi", "mail"].map(|workflow| token(world, workflow)),
    }
}

// Two e-mails that their provider has refused.
fn letters(world: &World) -> Vec<DeadLetterId> {
    let cyd = json!({ "subscriberId": "cyd", "email": "cyd@example.org" });
    world.subscriber(cyd);
    for _ in 0..2 {
        world.recorder.refuse_next(tidings::SendError::permanent("no"));
        world.notify("mail", "cyd");
    }
    assert_eq!(world.run_due().failed, 2);
    let page = world.env.dead_letters().list(&parsed(json!({}))).unwrap();
    page.data.iter().map(|letter| letter.id).collect()
}

fn token(world: &World, workflow: &str) -> String {
    let link = UnsubscribeRequest::workflow("ada", workflow, Channel::Email).unwrap();
    let url = world.env.unsubscribe_url(&link).unwrap();
    url.split_once("token=").unwrap().1.to_owned()
}

// A message with buttons, and one whose second button was chosen.
fn questions(world: &World) -> [MessageId; 2] {
    let buttons = json!([
        { "type": "primary", "content": "Yes" }, { "type": "secondary", "content": "No" },
    ]);
    let template = json!({ "body": "?", "buttons": buttons });
    world.workflow_of("ask", &[json!({ "type": "in_app", "template": template })]);
    let ids = [(); 2].map(|()| {
        world.notify("ask", "ada");
        world.inbox("ada")[0].id
    });
    let inbox = world.env.inbox("ada").unwrap();
    inbox.complete_action(ids[1], &parsed(json!({ "type": "secondary" }))).unwrap();
    ids
}
