//! An operation that fails leaves nothing behind, wherever it failed.

mod deliveries;
pub(crate) mod faults;
mod large;

use std::time::Duration;

use serde_json::{Value, json};
use store::Table;
use testkit::interposed::{Interposed, Point};
use testkit::postgres::Server;
use testkit::requests;
use testkit::tables::{check_indexes, dump};
use testkit::world::World;
use tidings::Error;
use tidings::integration::IntegrationDelete;
use tidings::notification::NotificationQuery;
use tidings::preference::PreferencesQuery;
use tidings::retention::Retention;
use tidings::trigger::Trigger;
use tidings::vocabulary::Channel;

use self::faults::{
    Checked, ask, assert_is_fault, check, check_read, check_steps, check_strided, check_tended,
    check_tended_every, fails, faults, one_of,
};
use crate::parsed;
use crate::seeded::{
    self, ada, copy_of, email_integration, entries, is_urgent, paused_integration, trigger,
};

#[test]
fn environments() {
    let create = || parsed(json!({ "name": "QA", "color": "#fff" }));
    check(|world| world.organization.environments().create(&create()));
    check(|world| world.env.environments().create(&create()));
    check(|world| world.organization.environments().production());
    check(|world| {
        let other = world.engine.organization("other").unwrap();
        other.environments().development()
    });
}

#[test]
fn integrations() {
    let create = |channel: &str, active: bool| {
        parsed(json!({ "providerId": "host", "channel": channel, "active": active }))
    };
    check(|world| world.env.integrations().create(&create("email", true)));
    check(|world| world.env.integrations().create(&create("sms", false)));
    for update in [
        json!({ "name": "New", "identifier": "new" }),
        json!({ "active": false }),
        json!({ "conditions": [is_urgent()] }),
    ] {
        check(|world| {
            world
                .env
                .integrations()
                .update(email_integration(&world.env, 0)?, &parsed(update.clone()))
        });
    }
    check(|world| {
        let id = paused_integration(&world.env)?;
        world.env.integrations().delete(id, &IntegrationDelete::default())
    });
    check(|world| {
        let id = email_integration(&world.env, 0)?;
        world.env.integrations().delete(id, &IntegrationDelete::default())
    });
}

#[test]
fn preferences() {
    let words = |context: Value| {
        let word = |id: &str| json!({ "workflowId": id, "channels": { "email": false } });
        let mut bulk = json!({ "preferences": [word("inbox"), word("both")] });
        if !context.is_null() {
            bulk["context"] = context;
        }
        bulk
    };
    for context in [Value::Null, json!({ "tenant": "acme", "app": "new" })] {
        let bulk = words(context.clone());
        check(|world| world.env.preferences(ada()).unwrap().update_bulk(&parsed(bulk.clone())));
        let mut global = json!({ "channels": { "email": false }, "enabled": false });
        if !context.is_null() {
            global["context"] = context;
        }
        check(|world| world.env.preferences(ada()).unwrap().update_global(&parsed(global.clone())));
    }
}

#[test]
fn receipts() {
    for kind in ["opened", "bounced", "complained", "unsubscribed"] {
        let receipt = json!({ "providerMessageId": "msg-1", "type": kind });
        check(|world| {
            ask(world, &json!(["integrations.ingest_receipt", "$integration 0", receipt]))
        });
    }
}

#[test]
fn events() {
    check_tended(|world| world.env.events().trigger(&trigger("inbox", json!("ada"))));
    check_tended(|world| {
        let mut several = trigger("both", json!(["ada", { "subscriberId": "new", "phone": "1" }]));
        let context = json!({ "tenant": { "id": "acme", "data": { "new": true } }, "app": "new" });
        several.context = Some(parsed(context));
        world.env.events().trigger(&several)
    });
    // The segment is full, so that it is sealed.
    let everybody = json!(["ada", "bob", "cyd"]);
    let sealing = |world: &World| world.env.events().trigger(&trigger("inbox", everybody.clone()));
    assert_eq!(check_tended(sealing), 2);
    check_tended(|world| {
        let refused = trigger("nobody.knows", json!("ada"));
        let events = [trigger("inbox", json!("ada")), refused, trigger("email", json!("new"))];
        world.env.events().trigger_bulk(&events)
    });
}

/// The events of a bulk share a transaction, so one that is refused must not have written yet.
#[test]
fn refused_events() {
    let mut sound = trigger("both", json!({ "subscriberId": "new", "email": "new@example.org" }));
    let context = json!({ "app": { "id": "new", "data": { "new": true } } });
    sound.context = Some(parsed(context));
    let tokens = vec!["token"; 101];
    let settings = json!([{
        "providerId": "fcm", "_integrationId": "00000000-0000-0000-0000-000000000000", "credentials": { "deviceTokens": tokens },
    }]);
    let crowded = json!(["new", { "subscriberId": "newer", "channels": settings }]);
    let malformed = json!({ "app": "new", "tenant": "not a name" });
    let damages: [&dyn Fn(&mut Trigger); 4] = [
        &|trigger| trigger.workflow = "nobody.knows".parse().unwrap(),
        &|trigger| trigger.to = parsed(json!([])),
        &|trigger| trigger.to = parsed(crowded.clone()),
        &|trigger| trigger.context = Some(parsed(malformed.clone())),
    ];
    for damage in damages {
        let mut refused = sound.clone();
        damage(&mut refused);
        let world = seeded::copy();
        let before = dump(&world.store);
        let receipts = world.env.events().trigger_bulk(std::slice::from_ref(&refused)).unwrap();
        assert!(receipts[0].is_err(), "{receipts:?}");
        assert!(dump(&world.store) == before, "{receipts:?} leaves something behind");
    }
}

/// Everything that writes, also when it is to happen once: then the answer is kept with the
/// changes, and what is too old to mean anything goes. Most calls are the same then, and one of eight fails.
#[test]
fn whatever_is_requested() {
    for request in requests::writing().filter(|request| !takes_steps(request)) {
        println!("{request}");
        let check_request = |request: &Value, stride| {
            if is_tended(request) {
                check_tended_every(stride, |world| ask(world, request));
            } else {
                check_strided(stride, |world| ask(world, request));
            }
        };
        check_request(request, 1);
        if request[0] == "idempotent" {
            continue;
        }
        let once = [&[json!("idempotent"), json!("new")], request.as_array().unwrap().as_slice()];
        check_request(&json!(once.concat()), one_of(8));
    }
    let faults = faults();
    assert!(faults > 1_000, "{faults}");
    println!("{faults} faults of the store leave nothing behind");
}

/// A fault in a call of a transaction, or before its commit, ends the transaction of the server.
#[test]
fn on_a_server_a_request_that_fails_leaves_nothing_behind() {
    let Some(server) = Server::wanted() else { return };
    let is_one = |request: &&Value| !takes_steps(request) && !is_tended(request);
    for request in requests::writing().filter(is_one).step_by(6) {
        let store = Interposed::new(server.place().open());
        let world = seeded::copy_in(store, |builder| builder);
        let before = dump(&world.store);
        for (point, after) in [
            (Point::Commit, 0),
            (Point::Call, 0),
            (Point::Call, 4),
            (Point::Call, 9),
            (Point::Call, 15),
        ] {
            if !fails(&world, (point, after), || ask(&world, request)) {
                break;
            }
            assert!(dump(&world.store) == before, "{request} {point:?} {after} leaves something");
        }
    }
}

// What is in the tables is tended after these, and a failure there is nobody's.
fn is_tended(request: &Value) -> bool {
    let parts = request.as_array().unwrap().iter().filter_map(Value::as_str);
    parts.into_iter().any(|name| match name {
        "events.cancel" => false,
        name => name.starts_with("events.") || name == "notifications.delete_before",
    })
}

/// A refusal is kept in a transaction of its own, or the call was not made.
#[test]
fn refusals_that_are_kept() {
    for refused in [
        json!(["idempotent", "new", "topics.create", { "key": "news" }]),
        json!(["idempotent", "new", "topics.subscribe", "news", { "subscriptions": ["nobody"] }]),
        json!(["idempotent", "new", "channel_endpoints.delete", "nowhere"]),
    ] {
        check(|world| match ask(world, &refused) {
            Err(error @ Error::Store(_)) => Err(error),
            answer => Ok(answer.unwrap_err().to_string()),
        });
    }
}

/// Each resource is imported by a transaction of its own, which happens as a whole or not at all.
#[test]
fn imports() {
    for import in requests::writing().filter(|request| request[0] == "translations.import") {
        let once = json!(["idempotent", "new", import[0], import[1]]);
        check_steps(entries(), import, 1);
        check_steps(entries(), &once, 1);
    }
}

/// An index is made in several transactions beside the one in use, which the last of them replaces:
/// wherever that fails, the one in use is in order, and it is made when it is called again.
#[test]
fn an_index_that_is_made_anew() {
    let everything = NotificationQuery::default().limit(50);
    let list = |world: &World| world.env.notifications().list(&everything).unwrap();
    let expected = list(seeded::world());
    let mut checked = Checked::default();
    let mut check = |world: &World| {
        assert_eq!(list(world), expected);
        checked.check(&world.store, dump(&world.store))
    };
    for point in [Point::Call, Point::Commit] {
        for after in 0.. {
            println!("{point:?} {after}");
            let world = seeded::copy();
            world.store.fail(point, after);
            let result = world.env.notifications().rebuild_index();
            let has_failed = world.store.recover();
            if result.is_err() {
                assert_is_fault(&result);
            }
            // Most calls read, and leave what was there before.
            if check(&world) || !has_failed {
                assert!(world.env.notifications().rebuild_index().unwrap().is_finished);
                check(&world);
            }
            if !has_failed {
                break;
            }
        }
    }
}

/// What is old is deleted in several transactions, if that is a lot. What is not tended for a fault
/// is tended the next time.
#[test]
fn deletions_of_what_is_old() {
    let world = seeded::copy();
    let silent = json!({
        "workflowId": "silent", "name": "Silent", "active": true,
        "steps": [{ "type": "in_app", "template": { "body": "!" }, "filters": [is_urgent()] }],
    });
    world.env.workflows().create(&parsed(silent)).unwrap();
    let event: Trigger = parsed(json!({ "name": "silent", "to": ["ada", "bob"] }));
    for events in [100, 100, 100, 100, 97] {
        world.env.events().trigger_bulk(&vec![event.clone(); events]).unwrap().all().unwrap();
    }
    let crowded = dump(&world.store);
    let there = |world: &World| world.env.notifications().count(&NotificationQuery::default());
    let many = there(&world).unwrap();
    assert_eq!(many, 1_020);
    let request = json!(["notifications.delete_before", "2026-12-01T00:00:00Z"]);
    let undisturbed = copy_of(&crowded);
    let (states, answer) = undisturbed.store.states_of(|| ask(&undisturbed, &request));
    assert_eq!(answer.unwrap(), json!(1_020));
    for (point, stride) in [(Point::Call, 499), (Point::Commit, 1)] {
        for after in (0..).step_by(stride) {
            let world = copy_of(&crowded);
            world.store.fail(point, after);
            let result = ask(&world, &request);
            let has_failed = world.store.recover();
            match (&result, there(&world).unwrap()) {
                // In between, or after the last of it.
                (Err(_), left) => {
                    let is_step = left >= 20 && (1_020 - left) % 250 == 0;
                    assert!(has_failed && is_step, "{left}");
                }
                (Ok(_), left) => assert_eq!(left, 0, "{point:?} {after}"),
            }
            if !has_failed {
                break;
            }
            if result.is_err() {
                assert_is_fault(&result);
            }
            let found = dump(&world.store);
            assert!(
                found == crowded || states.contains(&found),
                "{point:?} {after} leaves half of it"
            );
            check_indexes(&world.store);
            ask(&world, &request).unwrap();
            assert!(
                dump(&world.store) == *states.last().unwrap(),
                "{point:?} {after} is not made up for"
            );
        }
    }
}

/// What depends on a topic goes before it, and then in several transactions, if that is a lot.
#[test]
fn deletions_of_much() {
    let world = seeded::copy();
    for who in 0..101 {
        let who = format!("subscriber {who}");
        world.env.subscribers().create(&parsed(json!({ "subscriberId": who }))).unwrap();
        let item = |n| json!({ "subscriberId": who, "identifier": format!("{n} of {who}") });
        let items: Vec<Value> = (0..10).map(item).collect();
        let request = json!(["topics.subscribe", "empty", { "subscriptions": items }]);
        ask(&world, &request).unwrap();
    }
    let crowded = dump(&world.store);
    check_steps(&crowded, &json!(["topics.delete", "empty"]), 499);
    check_steps(&crowded, &json!(["idempotent", "new", "topics.delete", "empty"]), 997);
}

/// Each step of a sweep is a transaction. Wherever one fails, the sweep goes on when the lease is
/// over, and nothing that is old is left.
#[test]
fn sweeps() {
    let channels = [Channel::InApp, Channel::Email, Channel::Sms, Channel::Push];
    let ages = channels.into_iter().fold(Retention::default().activity_days(1), |ages, channel| {
        ages.messages_days(channel, 1)
    });
    let calm = seeded::copy();
    for _ in 0..28 {
        calm.clock.advance(Duration::from_secs(43_200));
        calm.engine.delivery().run_due(usize::MAX).unwrap();
    }
    let (now, calm) = (calm.now(), dump(&calm.store));
    for (point, stride) in [(Point::Call, 97), (Point::Commit, 1)] {
        for after in (0..).step_by(stride) {
            let mut world = copy_of(&calm);
            world.clock.set(now.after(Duration::from_secs(172_800)));
            world.restart_with(|builder| builder.retention(ages.clone()));
            world.store.fail(point, after);
            let result = world.engine.delivery().run_due(usize::MAX);
            let has_failed = world.store.recover();
            if has_failed {
                assert_is_fault(&result);
            }
            check_indexes(&world.store);
            world.clock.advance(Duration::from_secs(301));
            world.engine.delivery().run_due(usize::MAX).unwrap();
            check_indexes(&world.store);
            for table in [
                Table::Notifications,
                Table::Messages,
                Table::Triggers,
                Table::DigestBuckets,
                Table::DigestEvents,
                Table::ThrottleSlots,
            ] {
                assert_eq!(world.rows(table), 0, "{point:?} {after} leaves {table:?}");
            }
            if !has_failed {
                break;
            }
        }
    }
}

#[test]
fn reading() {
    let writing: Vec<_> = requests::writing().collect();
    for request in requests::sound().iter().filter(|request| !writing.contains(request)) {
        check_read(|world| ask(world, request));
    }
    check_read(|world| world.organization.environments().list());
    check_read(|world| world.env.preferences(ada()).unwrap().get(&PreferencesQuery::default()));
    for query in [
        json!({}),
        json!({ "transactionId": "first" }),
        json!({ "subscriberIds": ["ada", "bob"], "templates": ["both"] }),
        json!({ "emails": ["ada@example.org"], "search": "example" }),
        json!({ "templates": ["inbox", "both"] }),
        json!({ "after": "2026-11-21T12:00:05Z", "severity": ["high"] }),
    ] {
        let query: NotificationQuery = parsed(query);
        check_read(|world| world.env.notifications().list(&query));
        check_read(|world| world.env.notifications().count(&query));
        check_read(|world| {
            let first = world.env.notifications().list(&query)?.data.remove(0);
            world.env.notifications().get(first.id)
        });
    }
}

fn takes_steps(request: &Value) -> bool {
    let several = ["translations.import", "delivery.run_due", "notifications.rebuild_index"];
    request[0].as_str().is_some_and(|name| several.contains(&name))
}
