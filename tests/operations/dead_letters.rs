//! Dead letters: listed, redriven and discarded.

use std::ops::ControlFlow;
use std::time::Duration;

use serde_json::{Value, json};
use store::layout;
use testkit::interposed::Point;
use testkit::tables::put;
use tidings::dead_letter::{DeadLetter, DeadLetterQuery, DeadLetterReason};
use tidings::ids::NotificationId;
use tidings::integration::IntegrationDelete;
use tidings::job::RetryPolicy;
use tidings::message::MessageStatus;
use tidings::retention::Retention;
use tidings::store::Table;
use tidings::vocabulary::Channel;
use tidings::{Delivery, Scope, SendError};

use crate::delivery::log;
use crate::world::{Counts, World, email, names, on_both, on_both_with, only, parsed, sms, with};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn prepared(world: &World) {
    world.active_integration("email", "ses");
    world.active_integration("sms", "twilio");
    let ada = json!({ "subscriberId": "ada", "email": "ada@example.org", "phone": "+491" });
    world.subscriber(ada);
    let strict = with(email(), json!({ "shouldStopOnFail": true }));
    world.workflow_of("mail", &[email()]);
    world.workflow_of("text", &[sms()]);
    world.workflow_of("both", &[strict, sms()]);
}

// An e-mail that the provider refuses.
fn refused(world: &World) -> NotificationId {
    world.recorder.refuse_next(SendError::permanent("no"));
    let id = world.notify("mail", "ada");
    assert_eq!(world.run_due().failed, 1);
    id
}

fn letters(world: &World, query: Value) -> Vec<DeadLetter> {
    let query: DeadLetterQuery = parsed(query);
    let page = world.env.dead_letters().list(&query).unwrap();
    let count = world.env.dead_letters().count(&query).unwrap();
    assert_eq!((page.data.len() as u64, page.next), (count, None));
    page.data
}

fn sound(world: &World) {
    assert_eq!(world.engine.check().unwrap().findings, []);
}

/// The task has the id, the time and the attempt of the last one.
#[test]
fn a_dead_letter_is_redriven_twice_at_the_same_time() {
    on_both(|world| {
        prepared(&world);
        let redrive =
            |env: &Scope| env.dead_letters().redrive_matching(&parsed(json!({}))).unwrap();
        // Behind the claim, behind the result, and so on.
        let sent = (1..=5).map(|calls| {
            refused(&world);
            redrive(&world.env);
            let env = world.env.clone();
            world.store.pause(Point::Begin, calls, move || _ = redrive(&env));
            world.recorder.refuse_next(SendError::permanent("no"));

            let report = world.run_due();

            world.store.pause(Point::Begin, usize::MAX, || {});
            sound(&world);
            assert_eq!((report.failed, letters(&world, json!({})).len()), (1, 1 - report.sent));
            world.env.dead_letters().discard_matching(&parsed(json!({}))).unwrap();
            report.sent
        });
        assert_eq!(sent.sum::<usize>(), 1);
    });
}

/// Both attempts have the same content and the same idempotency key, though the workflow is another
/// one by now. Its attempts count from 1.
#[test]
fn a_dead_letter_is_redriven_with_the_same_message() {
    on_both(|world| {
        prepared(&world);
        let id = refused(&world);
        let letter = only(letters(&world, json!({})));
        assert_eq!((letter.notification_id, letter.reason), (id, DeadLetterReason::Refused));
        assert_eq!(letter.text.as_deref(), Some("refused: no"));
        let other = with(email(), json!({ "template": { "subject": "New", "body": "New" } }));
        world.env.workflows().update("mail", &parsed(json!({ "steps": [other] }))).unwrap();
        sound(&world);

        assert_eq!(world.env.dead_letters().redrive(letter.id).unwrap(), letter);
        assert_eq!(letters(&world, json!({})), []);
        assert_eq!(world.statuses(id), ["queued"]);
        sound(&world);
        assert_eq!(world.run_due(), Counts { sent: 1, ..Counts::default() });

        let sent = only(world.recorder.sent());
        assert_eq!((sent.idempotency_key(), sent.attempt()), (letter.idempotency_key, 1));
        let message = only(world.messages("ada"));
        assert_eq!(Some(message.id), letter.message_id);
        assert_eq!(message.status, MessageStatus::Sent);
        assert_ne!(message.text(), Some("New"));
        assert_eq!((message.subject, message.delivered_at.len()), (sent.message.subject, 1));
        let words = names(&world.notification(id).jobs[0].execution_details, |entry| entry.detail);
        let redriven = ["step_redriven", "integration_selected", "message_sent"];
        assert_eq!(words[words.len() - 3..], redriven);
        assert_eq!(world.run_due(), Counts::default());
        sound(&world);
    });
}

#[test]
fn a_message_that_cannot_be_read_holds_up_no_other_dead_letter() {
    on_both(|world| {
        prepared(&world);
        let ids = [(); 3].map(|()| refused(&world));
        let all = letters(&world, json!({}));
        let damaged = all.iter().find(|letter| letter.notification_id == ids[1]).unwrap();
        let id = damaged.message_id.unwrap();
        let key = layout::message(world.env.environment_id(), id.place());
        put(&world.store, Table::Messages, key.as_bytes(), Some(b"damaged"));

        let redriven = world.env.dead_letters().redrive_matching(&parsed(json!({}))).unwrap();

        assert_eq!(redriven, 2);
        assert_eq!(only(letters(&world, json!({}))), *damaged);
        assert_eq!(world.run_due(), Counts { sent: 2, ..Counts::default() });
        let refused = world.env.dead_letters().redrive(damaged.id).unwrap_err();
        assert_eq!(refused.status(), 500, "{refused}");
    });
}

#[test]
fn what_fails_again_is_another_dead_letter() {
    on_both(|world| {
        prepared(&world);
        refused(&world);
        let first = only(letters(&world, json!({})));
        world.env.dead_letters().redrive(first.id).unwrap();
        world.recorder.refuse_next(SendError::recipient_gone("moved"));
        assert_eq!(world.run_due().failed, 1);
        let second = only(letters(&world, json!({})));
        assert_ne!(second.id, first.id);
        assert_eq!(second.idempotency_key, first.idempotency_key);
        assert_eq!(
            (second.reason, second.message_id),
            (DeadLetterReason::RecipientGone, first.message_id)
        );
        let gone = format!("404 dead letter `{}` is not there", first.id);
        world.refuses(&gone, || world.env.dead_letters().redrive(first.id));
        world.refuses(&gone, || world.env.dead_letters().discard(first.id));
        world.refuses(&gone, || world.env.dead_letters().get(first.id));
        sound(&world);
    });
}

/// The steps behind a message that has failed were canceled, and stay so.
#[test]
fn nothing_behind_a_redriven_message_is_revived() {
    on_both(|world| {
        prepared(&world);
        world.recorder.refuse_next(SendError::permanent("no"));
        let id = world.notify("both", "ada");
        world.run_due();
        assert_eq!(world.statuses(id), ["failed", "canceled"]);
        world.env.dead_letters().redrive(only(letters(&world, json!({}))).id).unwrap();
        assert_eq!(world.run_due(), Counts { sent: 1, ..Counts::default() });
        assert_eq!(world.statuses(id), ["completed", "canceled"]);
        assert_eq!(world.run_due(), Counts::default());
        assert_eq!(world.engine.delivery().stats().unwrap().total().waiting, 0);
    });
}

/// One row per end of a message: the reason.
#[test]
fn a_dead_letter_says_why() {
    let configure =
        |builder: tidings::Builder| builder.retry(RetryPolicy::new(2, Duration::from_secs(1)));
    let answers = [
        (SendError::permanent("no"), DeadLetterReason::Refused),
        (SendError::retryable("busy"), DeadLetterReason::RetriesExhausted),
        (SendError::recipient_gone("gone"), DeadLetterReason::RecipientGone),
        (SendError::misconfigured("key"), DeadLetterReason::Misconfigured),
        (SendError::unknown("lost"), DeadLetterReason::AnswerLost),
    ];
    for (answer, reason) in answers {
        on_both_with(configure, |world| {
            prepared(&world);
            for _ in 0..2 {
                world.recorder.refuse_next(answer.clone());
            }
            world.notify("mail", "ada");
            world.run_due();
            world.pass(Duration::from_secs(3_600));
            world.run_due();
            let letter = only(letters(&world, json!({ "integrations": "ses" })));
            assert_eq!(letter.reason, reason, "{answer}");
            assert!(letter.message_id.is_some());
            sound(&world);
        });
    }
}

/// The content of the attempts before is kept, also if no integration is left for the last one.
#[test]
fn a_message_without_an_integration_is_redriven() {
    on_both(|world| {
        prepared(&world);
        world.recorder.refuse_next(SendError::retryable("busy"));
        let id = world.notify("mail", "ada");
        world.run_due();
        let ses = world.env.integrations().list_active().unwrap();
        let ses = ses.iter().find(|one| one.identifier.as_str() == "ses").unwrap().id;
        world.env.integrations().delete(ses, &IntegrationDelete::default()).unwrap();
        world.pass(Duration::from_secs(60));
        assert_eq!(world.run_due().failed, 1);
        let never_tried = world.notify("mail", "ada");
        assert_eq!(world.run_due().failed, 1);

        let found = letters(&world, json!({ "reasons": "no_integration" }));
        assert_eq!(
            names(&found, |one| one.notification_id),
            [id.to_string(), never_tried.to_string()]
        );
        assert!(found[0].message_id.is_some() && found[1].message_id.is_none());
        sound(&world);
        world.active_integration("email", "mailgun");
        for letter in found {
            world.env.dead_letters().redrive(letter.id).unwrap();
        }
        assert_eq!(world.run_due().sent, 2);
        assert_eq!(world.statuses(id), ["completed"]);
        sound(&world);
    });
}

/// Only the destination that has failed is sent to again.
#[test]
fn one_of_several_destinations_is_redriven() {
    on_both(|world| {
        let fcm = world.active_integration("push", "fcm");
        world.subscriber(json!({ "subscriberId": "ada", "channels": [{
            "providerId": "fcm", "_integrationId": fcm.id,
            "credentials": { "deviceTokens": ["phone", "tablet"] },
        }] }));
        let push = json!({ "type": "push", "template": { "title": "Hi", "body": "Hi" } });
        world.workflow_of("push", &[push]);
        world.recorder.refuse_next(SendError::permanent("no"));
        let id = world.notify("push", "ada");
        assert_eq!(world.run_due(), Counts { sent: 1, failed: 1, ..Counts::default() });
        assert_eq!(world.statuses(id), ["completed"]);
        let letter = only(letters(&world, json!({ "channels": ["push"] })));
        assert!(letter.target.is_some());

        world.env.dead_letters().redrive(letter.id).unwrap();
        assert_eq!(world.statuses(id), ["queued"]);
        assert_eq!(world.run_due(), Counts { sent: 1, ..Counts::default() });
        assert_eq!(world.statuses(id), ["completed"]);
        let keys = names(&world.recorder.sent(), Delivery::idempotency_key);
        assert_eq!(keys[1], letter.idempotency_key.to_string());
        assert_ne!(keys[0], keys[1]);
        assert!(log(&world.notification(id), 0).contains(&"some_sends_failed: 1".into()));
        sound(&world);
    });
}

/// One row per name of a workflow that was deleted.
#[test]
fn dead_letters_of_a_deleted_workflow_are_found() {
    on_both(|world| {
        prepared(&world);
        let id = refused(&world);
        let workflow = world.env.workflows().get("mail").unwrap();
        world.env.workflows().delete("mail").unwrap();
        for name in [workflow.id.to_string(), workflow.slug()] {
            let found = letters(&world, json!({ "templates": [name] }));
            assert_eq!(names(&found, |one| one.notification_id), [id.to_string()], "{name}");
        }
    });
}

/// One row per condition, of two e-mails and a text message: the numbers of those it selects.
#[test]
fn a_query_selects() {
    on_both(|world| {
        prepared(&world);
        let first = refused(&world);
        world.tick();
        let at = world.now();
        let second = refused(&world);
        world.tick();
        world.recorder.refuse_next(SendError::misconfigured("no"));
        let third = world.notify("text", "ada");
        world.run_due();
        let all = [first, second, third];
        let workflow = world.env.workflows().get("text").unwrap().id;
        for (query, expected) in [
            (json!({}), &[0, 1, 2][..]),
            (json!({ "templates": "mail" }), &[0, 1]),
            (json!({ "templates": ["nobody", workflow.to_string()] }), &[2]),
            (json!({ "templates": "nobody" }), &[]),
            (json!({ "integrations": ["twilio"] }), &[2]),
            (json!({ "integrations": "nobody" }), &[]),
            (json!({ "channels": "email", "after": at }), &[1]),
            (json!({ "before": at }), &[0, 1]),
            (json!({ "reasons": ["misconfigured", "no_content"] }), &[2]),
        ] {
            let found = names(&letters(&world, query.clone()), |one| one.notification_id);
            let expected: Vec<_> = expected.iter().map(|n| all[*n].to_string()).collect();
            assert_eq!(found, expected, "{query}");
        }
        let elsewhere = world.elsewhere().dead_letters().list(&DeadLetterQuery::default());
        assert_eq!(elsewhere.unwrap().data, []);
    });
}

#[test]
fn pages_go_on_behind_their_cursor() {
    on_both(|world| {
        prepared(&world);
        let all = [(); 5].map(|()| refused(&world).to_string());
        let (mut found, mut query) = (Vec::new(), DeadLetterQuery::default().limit(2));
        loop {
            let page = world.env.dead_letters().list(&query).unwrap();
            found.extend(names(&page.data, |one| one.notification_id));
            let Some(next) = page.next else { break };
            query = query.cursor(next);
        }
        assert_eq!(found, all);
        let limit = DeadLetterQuery::default().limit(0);
        world.refuses("422 `limit` must be between 1 and 100", || {
            world.env.dead_letters().list(&limit)
        });
    });
}

/// One row per list that a host has made, and that came out empty. In a request, such a list is no filter.
#[test]
fn a_list_without_values_selects_no_dead_letters() {
    on_both(|world| {
        prepared(&world);
        refused(&world);
        let dead_letters = world.env.dead_letters();
        let all = DeadLetterQuery::default;
        let none = Vec::<String>::new;
        for (field, query) in [
            ("templates", all().workflows(none())),
            ("integrations", all().integrations(none())),
            ("channels", all().channels(Vec::<Channel>::new())),
            ("reasons", all().reasons(Vec::<DeadLetterReason>::new())),
        ] {
            let refusal = format!("422 `{field}` must not be empty");
            world.refuses(&refusal, || dead_letters.list(&query));
            world.refuses(&refusal, || dead_letters.count(&query));
            world.refuses(&refusal, || dead_letters.redrive_matching(&query));
            world.refuses(&refusal, || dead_letters.discard_matching(&query));
            // In JSON, it would be a query of all.
            let written = serde_json::to_string(&query).unwrap_err();
            assert_eq!(format!("422 {written}"), refusal);
        }
        let lists = json!({ "templates": [], "integrations": [], "channels": [], "reasons": [] });
        assert_eq!(dead_letters.discard_matching(&parsed(lists)).unwrap(), 1);
    });
}

/// A cursor leaves out what is in front of it. A limit is that of a page, on which a count does not depend.
#[test]
fn a_call_about_all_dead_letters_that_match_takes_a_cursor_and_no_limit() {
    on_both(|world| {
        prepared(&world);
        let ids = [refused(&world), refused(&world), refused(&world)];
        let dead_letters = world.env.dead_letters();
        let limited = DeadLetterQuery::default().limit(1);
        let refusal =
            "422 `limit` must not be given: this call is about all that match, not about a page";
        assert_eq!(dead_letters.count(&limited).unwrap(), 3);
        world.refuses(refusal, || dead_letters.redrive_matching(&limited));
        world.refuses(refusal, || dead_letters.discard_matching(&limited));

        let first = dead_letters.list(&limited).unwrap().next.unwrap();
        let behind = DeadLetterQuery::default().cursor(first);
        assert_eq!(dead_letters.count(&behind).unwrap(), 2);
        assert_eq!(dead_letters.discard_matching(&behind).unwrap(), 2);
        assert_eq!(only(letters(&world, json!({}))).notification_id, ids[0]);
        assert_eq!(dead_letters.redrive_matching(&behind).unwrap(), 0);
        assert_eq!(dead_letters.count(&DeadLetterQuery::default()).unwrap(), 1);
    });
}

/// More than one transaction changes. What fails meanwhile stays.
#[test]
fn many_are_redriven_and_discarded() {
    on_both(|world| {
        prepared(&world);
        for _ in 0..120 {
            world.recorder.refuse_next(SendError::permanent("no"));
            world.notify("mail", "ada");
        }
        world.recorder.refuse_next(SendError::permanent("no"));
        let text = world.notify("text", "ada");
        assert_eq!(world.run_due().failed, 121);
        let mails: DeadLetterQuery = parsed(json!({ "templates": ["mail"] }));

        assert_eq!(
            world.interrupted(1, || world.env.dead_letters().redrive_matching(&mails)).ok(),
            None
        );
        assert_eq!(world.env.dead_letters().count(&mails).unwrap(), 70);
        assert_eq!(world.env.dead_letters().redrive_matching(&mails).unwrap(), 70);
        assert_eq!(world.run_due().sent, 120);
        sound(&world);
        assert_eq!(only(letters(&world, json!({}))).notification_id, text);
        let all = DeadLetterQuery::default();
        assert_eq!(world.env.dead_letters().discard_matching(&all).unwrap(), 1);
        assert_eq!(letters(&world, json!({})), []);
        assert_eq!(world.statuses(text), ["failed"]);
        assert_eq!(world.env.dead_letters().discard_matching(&all).unwrap(), 0);
        sound(&world);
    });
}

/// A transaction ends with 4 MiB of notifications.
#[test]
fn large_ones_are_discarded_in_steps() {
    on_both(|world| {
        prepared(&world);
        let payload = json!({ "text": "x".repeat(255 * 1_024) });
        for _ in 0..20 {
            world.recorder.refuse_next(SendError::permanent("no"));
            world.trigger(json!({ "name": "mail", "to": "ada", "payload": payload }));
        }
        assert_eq!(world.run_due().failed, 20);
        let all = DeadLetterQuery::default();

        world.interrupted(1, || world.env.dead_letters().discard_matching(&all)).unwrap_err();
        assert_eq!(world.env.dead_letters().count(&all).unwrap(), 3);
        assert_eq!(world.env.dead_letters().discard_matching(&all).unwrap(), 3);
        sound(&world);
    });
}

#[test]
fn a_letter_leaves_the_list_with_its_notification_and_a_resend() {
    on_both(|world| {
        prepared(&world);
        let (first, second) = (refused(&world), refused(&world));
        let third = refused(&world);
        let discarded = letters(&world, json!({})).pop().unwrap();
        assert_eq!(world.env.dead_letters().discard(discarded.id).unwrap(), discarded);
        assert_eq!(world.statuses(third), ["failed"]);
        world.env.notifications().delete(first).unwrap();
        let step = world.notification(second).jobs[0].step.id;
        world.env.notifications().resend(second, step).unwrap();
        assert_eq!(letters(&world, json!({})), []);
        sound(&world);
    });
}

/// The message is older than the policy allows, and its notification is not.
#[test]
fn a_letter_whose_message_is_gone_stays() {
    let policy = Retention::default().messages_days(Channel::Email, 1);
    on_both_with(
        |builder| builder.retention(policy.clone()),
        |world| {
            prepared(&world);
            let id = refused(&world);
            let letter = only(letters(&world, json!({})));
            for _ in 0..4 {
                world.pass(DAY);
                world.run_due();
            }
            assert_eq!(world.messages("ada"), []);
            let gone = "400 the dead letter is not redriven: its message was deleted: resend the step, \
                    which renders a new one";
            world.refuses(gone, || world.env.dead_letters().redrive(letter.id));
            let all = DeadLetterQuery::default();
            assert_eq!(world.env.dead_letters().redrive_matching(&all).unwrap(), 0);
            assert_eq!(letters(&world, json!({})), [letter]);
            let step = world.notification(id).jobs[0].step.id;
            world.env.notifications().resend(id, step).unwrap();
            assert_eq!(world.run_due().sent, 1);
            sound(&world);
        },
    );
}

/// The sweep removes old notifications, with their dead letters.
#[test]
fn retention_takes_dead_letters() {
    let policy = Retention::default().activity_days(2);
    on_both_with(
        |builder| builder.retention(policy.clone()),
        |world| {
            prepared(&world);
            refused(&world);
            assert_eq!(letters(&world, json!({})).len(), 1);
            for _ in 0..4 {
                world.pass(DAY);
                world.run_due();
            }
            assert_eq!(letters(&world, json!({})), []);
            sound(&world);
        },
    );
}

/// An index that has lost an entry, or has one too many, is made anew.
#[test]
fn the_index_is_rebuilt() {
    on_both(|world| {
        prepared(&world);
        for _ in 0..3 {
            refused(&world);
        }
        let before = world.dump();
        let first = letters(&world, json!({})).remove(0);
        let lost = store::layout::dead_letter(world.env.environment_id(), first.id);
        let stray = store::layout::dead_letters_behind(world.env.environment_id(), None);
        store::write(&world.store, |transaction| {
            let mut keys = Vec::new();
            store::ReadRecords::scan_bytes(
                transaction,
                &lost,
                store::Order::Ascending,
                None,
                &mut |key, value| {
                    keys.push((key.to_vec(), value.to_vec()));
                    std::ops::ControlFlow::Continue(())
                },
            )?;
            let (mut key, value) = keys.remove(0);
            transaction.delete(stray.table(), &key)?;
            key[20] ^= 1;
            transaction.put(stray.table(), &key, &value)
        })
        .unwrap();
        assert!(!world.engine.check().unwrap().findings.is_empty());
        assert!(world.env.notifications().rebuild_index().unwrap().is_finished);
        sound(&world);
        let letters = |dump: &testkit::world::Dump| {
            dump.iter().filter(|((table, _), _)| *table == "dead_letters").count()
        };
        assert_eq!((letters(&before), letters(&world.dump())), (3, 3));
    });
}

/// A dead letter behind so many others that a page comes to it, and behind one more.
#[test]
fn a_page_looks_at_ten_thousand_dead_letters() {
    const OTHERS: u128 = DeadLetterQuery::MAX_SCANNED as u128 - 1;
    let world = World::in_memory();
    prepared(&world);
    world.recorder.refuse_next(SendError::permanent("no"));
    world.notify("text", "ada");
    assert_eq!(world.run_due().failed, 1);
    world.pass(DAY);
    let wanted = refused(&world);
    // The others are entries of the same message under later ids, since entries are all that a page
    // looks at.
    let mut entries = testkit::tables::dump(&world.store);
    entries.retain(|(table, ..)| *table == Table::DeadLetters);
    let [(table, key, value), _] = &entries[..] else { panic!("{entries:?}") };
    let add = |number: u128| {
        let mut key = key.clone();
        let id = u128::from_be_bytes(key[16..32].try_into().unwrap()) + number;
        key[16..32].copy_from_slice(&id.to_be_bytes());
        testkit::tables::put(&world.store, *table, &key, Some(value));
    };
    (1..OTHERS).for_each(add);
    let mut query: DeadLetterQuery = parsed(json!({ "channels": ["email"] }));
    let list = |query: &DeadLetterQuery| world.env.dead_letters().list(query).unwrap();

    let page = list(&query);
    assert_eq!(only(page.data).notification_id, wanted);
    assert_eq!(page.next, None);

    add(OTHERS);
    let page = list(&query);
    assert_eq!((page.data, page.next.is_some()), (vec![], true));
    query.cursor = page.next;
    let page = list(&query);
    assert_eq!((only(page.data).notification_id, page.next), (wanted, None));
    assert_eq!(
        world.env.dead_letters().count(&parsed(json!({ "channels": ["email"] }))).unwrap(),
        1
    );
}

/// Others may fail between any two steps in which the index of dead letters is made anew.
#[test]
fn an_index_is_made_anew_among_endless_failures() {
    on_both(|world| {
        prepared(&world);
        refused(&world);
        let mut failures = 1;
        let rebuilt = world.env.notifications().rebuild_index_with(|at| {
            if at.table == Table::DeadLetters.name() {
                assert!(failures < 100, "the rebuild does not end");
                refused(&world);
                failures += 1;
            }
            ControlFlow::Continue(())
        });
        assert!(rebuilt.unwrap().is_finished);
        assert_eq!(letters(&world, json!({})).len(), failures);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}
