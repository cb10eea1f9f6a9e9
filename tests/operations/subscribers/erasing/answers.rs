//! Stored answers and entries of the quarantine about a person, and what looks like them.

use std::ops::ControlFlow;
use std::time::Duration;

use domain::idempotency::StoredAnswer;
use domain::quarantine::{QuarantineQuery, Quarantined};
use serde_json::json;
use testkit::sealed::is_wanted;
use testkit::tables;
use tidings::content::ButtonType;
use tidings::message::MarkAs;
use tidings::store::Table;
use tidings::{Error, SendError};

use super::{nothing_is_left, put_aside_one};
use crate::world::{email, on_both, only, parsed};

/// A stored answer about a suppression names nothing but the address, in the form of suppressions: of the
/// subscriber, of a recipient of an event, and of a message to a former address.
#[test]
fn an_erasure_reaches_answers_that_name_an_address_only() {
    on_both(|world| {
        world.active_integration("email", "mail");
        world.workflow_of("mail", &[email()]);
        world.in_app_workflow("news");
        let canary = json!({ "subscriberId": "canary-id", "email": "Former-Canary@Example.org" });
        world.subscriber(canary);
        world.notify("mail", "canary-id");
        assert_eq!(world.run_due().sent, 1);
        let canary = json!({ "subscriberId": "canary-id", "email": "Event-Canary@Example.org" });
        world.trigger(json!({ "name": "news", "to": canary }));
        let present = json!({ "email": "Canary@Example.org", "phone": "+42 (99) 887766" });
        world.env.subscribers().update("canary-id", &parsed(present)).unwrap();
        let addresses = [
            ("email", "Former-Canary@Example.org"),
            ("email", "Event-Canary@Example.org"),
            ("email", "Canary@Example.org"),
            ("sms", "+42 (99) 887766"),
        ];
        for (channel, address) in addresses {
            let add = json!({ "channel": channel, "address": address });
            let once = world.env.idempotent(address).unwrap();
            once.suppressions().add(&parsed(add)).unwrap();
        }

        let erased = world.env.subscribers().erase("canary-id").unwrap();

        assert_eq!((erased.answers, erased.suppressions), (4, 4), "{erased:?}");
        assert_eq!(world.records::<StoredAnswer>(), []);
    });
}

/// A host may put an address into the keys of its calls, whose answers may name nobody.
#[test]
fn an_erasure_reaches_answers_whose_keys_name_an_address() {
    on_both(|world| {
        for who in ["bob", "canary-id", "canary"] {
            let email = format!("{who}@example.org");
            world.subscriber(json!({ "subscriberId": who, "email": email }));
        }
        let once = |key: &str| world.env.idempotent(key).unwrap();
        once("merge canary@example.org").subscribers().delete("bob").unwrap();
        once("canary").topics().create(&parsed(json!({ "key": "news" }))).unwrap();
        once("scanary@example.org").topics().create(&parsed(json!({ "key": "more" }))).unwrap();

        assert_eq!(world.env.subscribers().erase("canary").unwrap().answers, 1);

        let left: Vec<_> = world.records::<StoredAnswer>().into_iter().map(|it| it.key).collect();
        assert_eq!(
            left.iter().map(AsRef::as_ref).collect::<Vec<&str>>(),
            ["canary", "scanary@example.org"]
        );
    });
}

/// The quarantine shows the bytes of a record with escapes. Here they are what is left of a subscriber of
/// whom only the address is known.
#[test]
fn an_erasure_reaches_entries_of_the_quarantine_with_escapes_in_an_address() {
    if is_wanted() {
        return;
    }
    for address in ["canary@example.org", "o'canary@example.org", "cänary@example.org"] {
        on_both(|world| {
            world.active_integration("email", "mail");
            world.workflow_of("mail", &[email()]);
            let canary = json!({ "subscriberId": "canary-id", "email": address });
            let receipt = world.trigger(json!({ "name": "mail", "to": canary }));
            let rows = tables::dump(&world.store).into_iter();
            let rows: Vec<_> = rows.filter(|row| row.0 == Table::Notifications).collect();
            for (table, key, sound) in &rows {
                let damaged = [&[0xff], &sound[1..]].concat();
                tables::put(&world.store, *table, key, Some(&damaged));
            }
            world.run_due();
            for (table, key, sound) in &rows {
                tables::put(&world.store, *table, key, Some(sound));
            }
            let id = only(receipt.notifications).notification_id;
            world.env.notifications().delete(id).unwrap();
            world.env.subscribers().delete("canary-id").unwrap();
            world.subscriber(canary);

            let erased = world.env.subscribers().erase("canary-id").unwrap();

            assert_eq!(erased.quarantined, 1, "{address}: {erased:?}");
            assert_eq!(world.records::<Quarantined>(), []);
        });
    }
}

/// Nothing but a suppression has told whose the address was.
#[test]
fn an_erasure_reaches_answers_that_name_a_former_address_only() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "canary-id", "email": "canary@example.org" }));
        let text = "Canaria has left";
        let add = json!({ "channel": "email", "address": "Canary@Example.org", "text": text });
        let once = world.env.idempotent("add").unwrap();
        once.suppressions().add(&parsed(add)).unwrap();
        let other = parsed(json!({ "email": "other@example.org" }));
        world.env.subscribers().update("canary-id", &other).unwrap();

        let erased = world.env.subscribers().erase("canary-id").unwrap();

        assert_eq!((erased.answers, erased.suppressions), (1, 1), "{erased:?}");
        assert_eq!(world.records::<StoredAnswer>(), []);
        nothing_is_left(&world.store);
    });
}

/// The subscriber gets another address while the erasure runs, which has seen the first one.
#[test]
fn an_erasure_reaches_answers_that_name_an_address_which_is_changed_meanwhile() {
    on_both(|world| {
        world.in_app_workflow("news");
        world.subscriber(json!({ "subscriberId": "canary-id", "email": "canary@example.org" }));
        (0..100).for_each(|_| _ = world.notify("news", "canary-id"));
        let add = json!({ "channel": "email", "address": "canary@example.org" });
        let once = world.env.idempotent("add").unwrap();
        once.suppressions().add(&parsed(add)).unwrap();
        let other = parsed(json!({ "email": "other@example.org" }));

        let erased = world.env.subscribers().erase_with("canary-id", |_| {
            world.env.subscribers().update("canary-id", &other).unwrap();
            ControlFlow::Continue(())
        });

        let erased = erased.unwrap();
        assert_eq!((erased.answers, erased.suppressions), (1, 1), "{erased:?}");
        nothing_is_left(&world.store);
    });
}

/// A message names the subscriber by the id that the engine gave, which nothing else has any more.
#[test]
fn an_erasure_reaches_answers_with_messages_of_who_was_deleted() {
    for is_there_again in [false, true] {
        on_both(|world| {
            let button = json!({ "type": "primary", "content": "Join" });
            let template = json!({ "body": "{{ payload.text }}", "buttons": [button] });
            world.workflow_of("hi", &[json!({ "type": "in_app", "template": template })]);
            let payload = json!({ "text": "payload-canary" });
            world.trigger(json!({ "name": "hi", "to": "canary-id", "payload": payload }));
            let id = only(world.messages("canary-id")).id;
            let once = |key: &str| world.env.idempotent(key).unwrap();
            let choice = parsed(json!({ "type": "primary" }));
            once("mark").inbox("canary-id").unwrap().mark_as([id], MarkAs::Read).unwrap();
            once("archive").inbox("canary-id").unwrap().archive([id]).unwrap();
            once("do").inbox("canary-id").unwrap().complete_action(id, &choice).unwrap();
            let primary = ButtonType::Primary;
            once("undo").inbox("canary-id").unwrap().revert_action(id, primary).unwrap();
            once("messages").messages().mark("canary-id", [id], MarkAs::Seen).unwrap();
            for notification in world.notifications(json!({})) {
                world.env.notifications().delete(notification.id).unwrap();
            }
            world.env.subscribers().delete("canary-id").unwrap();
            if is_there_again {
                world.bare_subscriber("canary-id");
            }

            let erased = world.env.subscribers().erase("canary-id").unwrap();

            assert_eq!(erased.answers, 5, "{erased:?}");
            assert_eq!(world.records::<StoredAnswer>(), []);
            nothing_is_left(&world.store);
        });
    }
}

/// A dead letter names a notification, which is gone, and what the provider has said.
#[test]
fn an_erasure_reaches_answers_with_dead_letters_of_who_was_deleted() {
    on_both(|world| {
        world.active_integration("email", "mail");
        world.workflow_of("mail", &[email()]);
        world.subscriber(json!({ "subscriberId": "canary-id", "email": "canary@example.org" }));
        for _ in 0..2 {
            world.recorder.refuse_next(SendError::permanent("no mailbox of Canaria"));
            world.notify("mail", "canary-id");
            assert_eq!(world.run_due().failed, 1);
        }
        let found = world.env.dead_letters().list(&parsed(json!({}))).unwrap().data;
        let once = |key: &str| world.env.idempotent(key).unwrap();
        let redriven = once("redrive").dead_letters().redrive(found[0].id).unwrap();
        let discarded = once("discard").dead_letters().discard(found[1].id).unwrap();
        assert_eq!(once("redrive").dead_letters().redrive(found[0].id).unwrap(), redriven);
        assert_eq!(once("discard").dead_letters().discard(found[1].id).unwrap(), discarded);
        for notification in world.notifications(json!({})) {
            world.env.notifications().delete(notification.id).unwrap();
        }
        world.env.subscribers().delete("canary-id").unwrap();

        let erased = world.env.subscribers().erase("canary-id").unwrap();

        assert_eq!(erased.answers, 2, "{erased:?}");
        assert_eq!(world.records::<StoredAnswer>(), []);
        nothing_is_left(&world.store);
    });
}

/// A call that has begun goes on when it is made again, unless its answer has expired.
#[test]
fn an_erasure_reaches_keys_of_calls_that_were_interrupted_long_ago() {
    for (hours, removed) in [(0, 0), (25, 2)] {
        on_both(|world| {
            world.in_app_workflow("news");
            world.subscriber(json!({ "subscriberId": "canary", "email": "canary@example.org" }));
            (0..100).for_each(|_| _ = world.notify("news", "bob"));
            let once = |key: &str| world.env.idempotent(key).unwrap();
            let merge = once("merge canary@example.org");
            let ended = merge.subscribers().erase_with("bob", |_| ControlFlow::Break(()));
            assert!(!ended.unwrap().is_finished);
            let bulk = once("tell canary@example.org");
            // The first transaction is that of the ids.
            let to: Vec<_> = (0..100).map(|number| format!("s{number}")).collect();
            let event = || parsed(json!({ "name": "news", "to": to }));
            let events: Vec<_> = (0..7).map(|_| event()).collect();
            let told = world.interrupted(1, || bulk.events().trigger_bulk(&events).map(drop));
            assert_eq!(told.unwrap_err().status(), 500);
            assert_eq!(world.records::<StoredAnswer>().len(), 2);
            world.pass(Duration::from_secs(hours * 3_600));

            assert_eq!(world.env.subscribers().erase("canary").unwrap().answers, removed);

            assert_eq!(world.records::<StoredAnswer>().len() as u64, 2 - removed);
        });
    }
}

/// The engine puts the id of a subscriber into the identifiers of subscriptions.
#[test]
fn an_erasure_reaches_answers_that_name_a_subscription_only() {
    on_both(|world| {
        world.bare_subscriber("canary-id");
        let once = |key: &str| world.env.idempotent(key).unwrap();
        let identifier = "tk_news:si_canary-id";
        world.env.topics().create(&parsed(json!({ "key": "news" }))).unwrap();
        let name = parsed(json!({ "name": "News" }));
        let updated = once("update").topics().update_subscription("news", identifier, &name);
        assert_eq!(updated.unwrap_err().status(), 404);
        let items = parsed(json!({ "subscriptions": [{ "identifier": identifier }] }));
        let left = once("leave").topics().unsubscribe("news", &items);
        assert!(matches!(left, Err(Error::Rejected(_))), "{left:?}");

        assert_eq!(world.env.subscribers().erase("canary-id").unwrap().answers, 2);

        nothing_is_left(&world.store);
    });
}

/// Otherwise a call of theirs that is repeated happens again, and their messages that were put aside are
/// never sent.
#[test]
fn an_erasure_leaves_what_has_longer_addresses_and_ids() {
    on_both(|world| {
        world.active_integration("email", "mail");
        world.workflow_of("mail", &[email()]);
        let own = json!({ "subscriberId": "eve", "email": "eve@canary.example", "phone": "1" });
        world.subscriber(own);
        for (id, email, phone) in
            [("steve", "steve@canary.example", "11"), ("eve:2", "eve@canary.examples", "+1")]
        {
            let once = world.env.idempotent(id).unwrap();
            let other = json!({ "subscriberId": id, "email": email, "phone": phone });
            once.subscribers().create(&parsed(other)).unwrap();
        }
        put_aside_one(&world, "steve", (Table::Workflows, true));
        let entry = only(world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data);
        let before = world.records::<StoredAnswer>();

        let erased = world.env.subscribers().erase("eve").unwrap();

        assert_eq!((erased.answers, erased.quarantined), (0, 0), "{erased:?}");
        assert_eq!(world.records::<StoredAnswer>(), before);
        world.engine.quarantine().requeue(entry.id).unwrap();
        assert_eq!(world.run_due().sent, 1);
    });
}
