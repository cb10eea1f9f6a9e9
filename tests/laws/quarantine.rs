//! A record that cannot be read holds up nothing but what needs it.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use store::Table;
use testkit::interposed::Point;
use testkit::tables::{self, Entry, check_indexes, dump, put, records};
use testkit::world::{World, email, id, in_app, on_both, only, sms};
use tidings::dead_letter::DeadLetterQuery;
use tidings::job::{Job, JobStatus};
use tidings::notification::Notification;
use tidings::quarantine::{QuarantineQuery, Quarantined};
use tidings::{Delivery, DeliveryReport, Error};

/// Workflow, subscriber and channel of a message.
type Sent = [String; 3];

/// A way to damage a value. It leaves none that can be read.
type Ruin = fn(&[u8]) -> Option<Vec<u8>>;

const RUINS: [Ruin; 3] =
    [|_| None, |value| Some(value[..value.len() / 2].to_vec()), |_| Some(b"\x01{}".to_vec())];

/// What a damaged entry may cost: the messages that need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cost {
    Nothing,
    /// The message of the task.
    One,
    /// The messages of a subscriber.
    OfSubscriber,
    /// The messages of a workflow.
    OfWorkflow,
}

const TABLES: [(Table, Cost); 10] = [
    (Table::Tasks, Cost::One),
    (Table::Due, Cost::Nothing),
    (Table::Notifications, Cost::OfSubscriber),
    (Table::Subscribers, Cost::OfSubscriber),
    (Table::SubscriberIds, Cost::OfSubscriber),
    (Table::MessageCounters, Cost::OfSubscriber),
    (Table::Workflows, Cost::OfWorkflow),
    (Table::NotificationOutcomes, Cost::Nothing),
    (Table::Lanes, Cost::Nothing),
    (Table::LaneHeads, Cost::Nothing),
];

/// Two workflows with an e-mail and a text, and two subscribers for each. One of the subscribers
/// has messages already.
fn set_up(world: &World) {
    world.active_integration("email", "sendgrid");
    world.active_integration("sms", "twilio");
    for (workflow, severity) in [("one", "none"), ("two", "high")] {
        world.workflow(json!({
            "workflowId": workflow, "name": workflow, "active": true, "severity": severity,
            "steps": [email(), sms()],
        }));
    }
    let to = |who| json!({ "subscriberId": who, "email": "a@example.org", "phone": "+4912345" });
    world.in_app_workflow("inbox");
    world.trigger(json!({ "name": "inbox", "to": to("ada") }));
    for (who, workflow) in [("ada", "one"), ("bob", "two"), ("cyd", "one"), ("dan", "two")] {
        world.trigger(json!({ "name": workflow, "to": to(who) }));
    }
    world.tick();
}

/// Runs `scenario` in a world of its own for each entry of `table` and each way to damage it.
fn with_each(table: Table, scenario: impl Fn(World, &Entry, Option<Vec<u8>>)) {
    let world = World::in_memory();
    set_up(&world);
    for at in 0..tables::of(&world.store, table).len() {
        for ruin in RUINS {
            // Nobody looks for a task without an entry in the queue.
            if matches!(table, Table::Due | Table::Lanes) && ruin(b"value").is_none() {
                continue;
            }
            let damaged = |world: World| {
                set_up(&world);
                let entry = tables::of(&world.store, table).swap_remove(at);
                let value = ruin(&entry.2);
                put(&world.store, table, &entry.1, value.as_deref());
                scenario(world, &entry, value);
            };
            // A file takes longer, and its first entry tells what the others would.
            if at == 0 { on_both(damaged) } else { damaged(World::in_memory()) }
        }
    }
}

/// Every message that was sent, each once.
fn sent(world: &World) -> BTreeSet<Sent> {
    let sent = world.recorder.sent();
    let name = |delivery: &Delivery| {
        let workflow = delivery.message.workflow_identifier.clone();
        let subscriber = delivery.subscriber.subscriber_id.to_string();
        [format!("{workflow:?}"), subscriber, delivery.message.channel.to_string()]
    };
    let names: BTreeSet<_> = sent.iter().map(name).collect();
    assert_eq!(names.len(), sent.len(), "a message is sent twice");
    names
}

/// Does everything, also what is due later.
fn deliver(world: &World) -> DeliveryReport {
    let engine = world.another_engine();
    let report = engine.delivery().run_due(usize::MAX).unwrap();
    world.pass(Duration::from_secs(3_600));
    let again = engine.delivery().run_due(usize::MAX).unwrap();
    assert_eq!(again, DeliveryReport::default(), "something was left");
    assert_eq!(engine.delivery().next_due().unwrap(), None);
    report
}

#[test]
fn everything_else_is_delivered() {
    let world = World::in_memory();
    set_up(&world);
    deliver(&world);
    let everything = sent(&world);
    assert_eq!(everything.len(), 8);
    for (table, cost) in TABLES {
        with_each(table, |world, entry, value| {
            let report = deliver(&world);
            let missing: Vec<_> = everything.difference(&sent(&world)).cloned().collect();
            let is_one = |field: fn(&Sent) -> &str| {
                missing.iter().map(field).collect::<BTreeSet<_>>().len() <= 1
            };
            let is_fine = match cost {
                Cost::Nothing => missing.is_empty(),
                Cost::One => missing.len() == 1,
                Cost::OfSubscriber => is_one(|sent| &sent[1]),
                Cost::OfWorkflow => is_one(|sent| &sent[0]),
            };
            let (name, key) = (table.name(), entry.1.escape_ascii());
            assert!(is_fine, "{missing:?} are missing with {name} {key} as {value:?}");
            let quarantined =
                world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data;
            // A message that was sent, and cannot be stored, is not missing.
            if value.is_some() && table != Table::MessageCounters {
                assert_eq!(quarantined.len(), missing.len(), "{name} {key}: {report:?}");
                assert_eq!(report.quarantined, missing.len(), "{name} {key}");
            }
        });
    }
}

/// The task leaves the queue with all of its entries, and its bytes are kept.
#[test]
fn an_unreadable_task_is_moved() {
    with_each(Table::Tasks, |world, (_, key, _), value| {
        let Some(value) = value else { return };
        let report = deliver(&world);

        assert_eq!((report.sent, report.quarantined), (7, 1));
        let delivery = world.engine.delivery();
        let entry = only(world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data);
        assert_eq!(entry.environment_id, world.env.environment_id());
        assert_eq!((entry.table.as_str(), &entry.task), ("tasks", &None));
        assert_eq!(entry.key, key.escape_ascii().to_string());
        assert_eq!(entry.value, value.escape_ascii().to_string());
        assert!(!entry.reason.is_empty());
        let none =
            world.engine.quarantine().list(&QuarantineQuery::default().limit(0)).unwrap_err();
        assert_eq!(none.to_string(), "`limit` must be at least 1");
        assert_eq!(delivery.stats().unwrap().quarantined, 1);

        world.engine.quarantine().discard(entry.id).unwrap();
        assert_eq!(delivery.stats().unwrap().quarantined, 0);
        assert_eq!(world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data, []);
        let again = world.engine.quarantine().discard(entry.id).unwrap_err();
        assert!(matches!(again, Error::NotFound { .. }), "{again}");
        check_redriven(&world);
    });
}

/// Checks that one notification waits for a task that was lost, and that its message becomes a dead letter,
/// which is sent once it is redriven.
fn check_redriven(world: &World) {
    let check = world.engine.check().unwrap();
    let found = only(check.findings.iter().map(ToString::to_string));
    assert!(found.ends_with("the task that it waits for is missing"), "{found}");
    assert_eq!(world.engine.repair().unwrap().resumed, 1);
    check_indexes(&world.store);
    let redriven = world.env.dead_letters().redrive_matching(&DeadLetterQuery::default()).unwrap();
    assert_eq!(redriven, 1);
    assert_eq!(deliver(world).sent, 1);
    assert_eq!(sent(world).len(), 8);
}

/// Each page goes on behind the former one, and none is without an end.
#[test]
fn the_quarantine_has_pages() {
    with_each(Table::Subscribers, |world, _, value| {
        let Some(_) = value else { return };
        deliver(&world);
        let quarantine = world.engine.quarantine();
        let query = |limit| QuarantineQuery::default().limit(limit);
        let all = quarantine.list(&query(10)).unwrap();
        assert_eq!((all.data.len(), all.next, all.unreadable), (2, None, 0));

        let first = quarantine.list(&query(1)).unwrap();
        let second = quarantine.list(&query(1).after(first.next.unwrap())).unwrap();

        assert_eq!((first.next, second.next), (Some(all.data[0].id), None));
        assert_eq!([first.data, second.data].concat(), all.data);
        assert_eq!(quarantine.list(&query(2)).unwrap(), all);
        assert_eq!(quarantine.get(all.data[1].id).unwrap(), all.data[1]);
        assert_eq!(quarantine.find(all.data[0].id).unwrap().as_ref(), Some(&all.data[0]));

        // An entry that cannot be read takes no place on a page.
        let of_quarantine = |(table, ..): &Entry| *table == Table::Quarantine;
        let (_, key, _) = dump(&world.store).into_iter().find(of_quarantine).unwrap();
        put(&world.store, Table::Quarantine, &key, Some(b"\x01{}"));
        let rest = quarantine.list(&query(1)).unwrap();
        assert_eq!((&rest.data[..], rest.next, rest.unreadable), (&all.data[1..], None, 1));
        assert!(matches!(quarantine.find(all.data[0].id), Err(Error::Store(_))));
        quarantine.discard(all.data[0].id).unwrap();
        assert_eq!(quarantine.find(all.data[0].id).unwrap(), None);
        assert!(matches!(quarantine.get(all.data[0].id), Err(Error::NotFound { .. })));
    });
}

/// An entry of the queue that leads nowhere, or to a task that is elsewhere, is removed.
#[test]
fn an_entry_without_a_task_is_removed() {
    with_each(Table::Tasks, |world, _, value| {
        if value.is_none() {
            assert_eq!(deliver(&world).quarantined, 1);
            assert_eq!(
                world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data,
                []
            );
            check_redriven(&world);
        }
    });
}

/// What a task needs stays where it is. The quarantine has a copy of it, and the task.
#[test]
fn an_unreadable_subscriber_costs_his_messages() {
    with_each(Table::Subscribers, |world, (_, key, _), value| {
        let Some(value) = value else { return };
        let report = deliver(&world);

        assert_eq!((report.sent, report.quarantined), (6, 2));
        let [one, two] = world
            .engine
            .quarantine()
            .list(&QuarantineQuery::default())
            .unwrap()
            .data
            .try_into()
            .unwrap();
        for entry in [&one, &two] {
            assert_eq!(entry.table, "subscribers");
            assert_eq!(entry.key, key.escape_ascii().to_string());
            assert_eq!(entry.value, value.escape_ascii().to_string());
            assert!(!format!("{entry:?}").contains("value"), "it may hold secrets");
            assert_eq!(entry.task.as_ref().unwrap()["work"]["type"], "send");
        }
        let findings = world.engine.check().unwrap().findings;
        assert!(findings.iter().all(|found| found.to_string().starts_with("subscriber")));
        // The jobs say so.
        let list = records::<Notification>(&world.store);
        let jobs = list.iter().flat_map(|found| &found.jobs);
        let failed = jobs.filter(|job| job.status == JobStatus::Failed).count();
        assert_eq!(failed, 2);
    });
}

/// A task goes back into the queue when its record is whole again. Its job waits, and its message is
/// sent. A task whose own record is damaged stays.
#[test]
fn a_task_is_put_back() {
    for table in [Table::Subscribers, Table::Notifications, Table::Workflows, Table::Tasks] {
        let put_back = Cell::new(0);
        with_each(table, |world, (_, key, sound), value| {
            if value.is_none() {
                return;
            }
            let whole = deliver(&world).sent;
            put(&world.store, table, key, Some(sound));
            let quarantined =
                world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data;
            // The work of a notification may be done.
            put_back.set(put_back.get() + quarantined.len());
            if table == Table::Tasks {
                let refused = world.engine.quarantine().requeue(quarantined[0].id).unwrap_err();
                let text =
                    "the task is not put back into the queue: it has no task that can be read";
                assert_eq!((refused.status(), refused.to_string()), (400, text.to_owned()));
                return;
            }
            for entry in &quarantined {
                world.engine.quarantine().requeue(entry.id).unwrap();
                let again = world.engine.quarantine().requeue(entry.id).unwrap_err();
                assert!(matches!(again, Error::NotFound { .. }), "it is there once: {again}");
            }

            assert_eq!(
                world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data,
                []
            );
            check_indexes(&world.store);
            assert_eq!(whole + deliver(&world).sent, 8);
            assert_eq!(sent(&world).len(), 8);
            let list = records::<Notification>(&world.store);
            let is_done = |job: &Job| job.status == JobStatus::Completed;
            assert!(list.iter().flat_map(|found| &found.jobs).all(is_done));
        });
        assert!(put_back.get() > 0, "{}", table.name());
    }
}

/// An entry of the quarantine, behind a record that is whole again.
fn damaged() -> (World, Quarantined) {
    let world = World::in_memory();
    set_up(&world);
    let (table, key, value) = tables::of(&world.store, Table::Subscribers).swap_remove(0);
    put(&world.store, table, &key, Some(b"?"));
    deliver(&world);
    put(&world.store, table, &key, Some(&value));
    let entry = world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data.remove(0);
    (world, entry)
}

/// The task, its job and the entry of the quarantine change together, wherever the store fails.
#[test]
fn a_task_is_put_back_as_a_whole_or_not_at_all() {
    for point in [Point::Call, Point::Commit] {
        for after in 0.. {
            let (world, entry) = damaged();
            let before = dump(&world.store);
            world.store.fail(point, after);
            let put_back = world.engine.quarantine().requeue(entry.id);
            let has_failed = world.store.recover();
            assert_eq!(put_back.is_err(), has_failed, "{point:?} {after}");
            if has_failed {
                assert!(dump(&world.store) == before, "{point:?} {after} leaves something behind");
                world.engine.quarantine().requeue(entry.id).unwrap();
            }
            check_indexes(&world.store);
            assert_eq!(deliver(&world).sent, 1, "{point:?} {after}");
            if !has_failed {
                break;
            }
        }
    }
}

/// The jobs behind the one whose subscriber could not be read have gone on to a delay, or to a digest.
#[test]
fn a_turn_that_is_put_back_does_not_wait_for_a_later_delay() {
    for waiting in ["delay", "digest"] {
        let world = World::in_memory();
        let day = json!({ "type": "regular", "amount": 1, "unit": "days" });
        let wait = json!({ "type": waiting, "metadata": day });
        world.workflow_of("late", &[in_app(), wait, in_app()]);
        world.env.workflows().pause("late").unwrap();
        world.notify("late", "ada");
        let (table, key, value) = tables::of(&world.store, Table::Subscribers).swap_remove(0);
        put(&world.store, table, &key, Some(b"?"));
        world.env.workflows().resume("late").unwrap();
        world.engine.delivery().run_due(1).unwrap();
        put(&world.store, table, &key, Some(&value));
        world.run_due();
        let entry =
            world.engine.quarantine().list(&QuarantineQuery::default()).unwrap().data.remove(0);

        world.engine.quarantine().requeue(entry.id).unwrap();
        world.run_due();

        assert_eq!(world.inbox("ada").len(), 1, "{waiting}");
        world.pass(Duration::from_secs(86_400));
        world.run_due();
        assert_eq!(world.inbox("ada").len(), 2, "{waiting}");
    }
}

/// A task whose notification is gone, or whose job was sent again meanwhile, is not put back.
#[test]
fn a_task_without_a_job_is_not_put_back() {
    let id = |entry: &Quarantined| {
        testkit::parsed(entry.task.as_ref().unwrap()["work"]["_notificationId"].clone())
    };
    let refusal = |world: &World, entry: &Quarantined| {
        world.engine.quarantine().requeue(entry.id).unwrap_err().to_string()
    };
    let (world, entry) = damaged();
    world.env.notifications().delete(id(&entry)).unwrap();
    assert!(refusal(&world, &entry).ends_with("its notification is gone"));

    let (world, entry) = damaged();
    let notification = world.notification(id(&entry));
    for job in &notification.jobs {
        world.env.notifications().resend(notification.id, job.step.id).unwrap();
    }
    assert!(refusal(&world, &entry).ends_with("its job has ended in another way"));
    check_indexes(&world.store);
}

/// The answer of an idempotent call that cannot be read fails no other call once it has expired.
#[test]
fn an_expired_answer_fails_no_call() {
    for ruin in RUINS {
        for table in [Table::StoredAnswers, Table::ExpiringAnswers] {
            on_both(|world| {
                let create = |key: &str| {
                    let env = world.env.idempotent(key).unwrap();
                    env.topics().create(&testkit::parsed(json!({ "key": key })))
                };
                create("old").unwrap();
                create("older").unwrap();
                let (_, key, value) = tables::of(&world.store, table).swap_remove(0);
                put(&world.store, table, &key, ruin(&value).as_deref());
                world.pass(Duration::from_secs(24 * 60 * 60));

                create("new").unwrap();

                let left = tables::of(&world.store, Table::ExpiringAnswers).len();
                assert_eq!(left, 1, "expired answers are swept away");
                assert!(world.env.subscribers().find(id("nobody")).unwrap().is_none());
            });
        }
    }
}
