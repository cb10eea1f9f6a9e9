//! Snoozed messages, and their waking.

use std::time::Duration;

use domain::task::{Task, Work};
use serde_json::json;
use testkit::tables::check_indexes;
use tidings::Clock;
use tidings::ids::MessageId;
use tidings::message::{Changes, InboxChange, InboxCounts, MarkAs, MessageQuery, Stage};
use tidings::time::Timestamp;

use super::{counts, mark};
use crate::world::{World, on_both, only, with, workflow_of};

const HOUR: Duration = Duration::from_secs(3_600);

// Two messages, the older one first.
fn two(world: &World) -> [MessageId; 2] {
    world.in_app_workflow("hi");
    [(); 2].map(|()| {
        world.tick();
        world.notify("hi", "ada");
        world.inbox("ada")[0].id
    })
}

// The times at which messages wake.
fn wakes(world: &World) -> Vec<(MessageId, Timestamp)> {
    let tasks = world.records::<Task>().into_iter();
    let wakes = tasks.filter_map(|task| match task.work {
        Work::Wake { message_id } => Some((message_id, task.state.due_at().unwrap())),
        _ => None,
    });
    wakes.collect()
}

fn listed(world: &World, query: &MessageQuery) -> Vec<MessageId> {
    let page = world.env.inbox("ada").unwrap().list(query).unwrap();
    page.data.iter().map(|found| found.id).collect()
}

#[test]
fn a_snoozed_message_wakes_as_the_newest_unseen_one() {
    on_both(|world| {
        let [older, newer] = two(&world);
        let inbox = world.env.inbox("ada").unwrap();
        mark(&world, "ada", &[older], MarkAs::Read);
        let delivered_at = world.now();
        let until = world.now().after(HOUR);

        let snoozed = inbox.snooze([older], until).unwrap();

        assert_eq!(snoozed[0].snoozed_until, Some(until));
        assert_eq!(listed(&world, &MessageQuery::default()), [newer]);
        assert_eq!(listed(&world, &MessageQuery::default().snoozed()), [older]);
        assert_eq!(counts(&world, "ada"), InboxCounts::new(1, 1));
        assert_eq!(wakes(&world), [(older, until)]);
        check_indexes(&world.store);
        world.clock.advance(Duration::from_millis(3_599_999));
        assert_eq!(world.engine.delivery().run_due(9).unwrap().woken, 0);

        world.clock.advance(Duration::from_millis(1));
        assert_eq!(world.engine.delivery().next_due().unwrap(), Some(until));
        assert_eq!(world.engine.delivery().run_due(9).unwrap().woken, 1);

        assert_eq!(listed(&world, &MessageQuery::default()), [older, newer]);
        let woken = world.inbox("ada").remove(0);
        assert_eq!((woken.stage, woken.snoozed_until), (Stage::Unseen, None));
        assert_eq!(woken.delivered_at.last(), Some(&until));
        assert_eq!(woken.delivered_at.len(), 2);
        assert!(woken.created_at < delivered_at, "it was created before");
        assert_eq!(counts(&world, "ada"), InboxCounts::new(2, 2));
        assert_eq!(wakes(&world), []);
        check_indexes(&world.store);
    });
}

/// The clock goes back before a message wakes. A client that has the newer message is told of it.
#[test]
fn a_message_wakes_as_the_newest_one_after_the_clock_went_back() {
    on_both(|world| {
        let [older, newer] = two(&world);
        let start = world.now();
        let inbox = world.env.inbox("ada").unwrap();
        inbox.snooze([older], start.after(Duration::from_secs(10))).unwrap();
        world.clock.advance(HOUR);
        world.notify("hi", "ada");
        let cursor = inbox.cursor().unwrap();

        world.clock.set(start.after(Duration::from_secs(20)));
        world.run_due();

        let found = listed(&world, &MessageQuery::default());
        assert_eq!((found[0], found[2]), (older, newer));
        let Changes::Since(page) = inbox.changes_since(&cursor).unwrap() else { panic!("reset") };
        let InboxChange::Message { message } = only(page.changes) else { panic!("deleted") };
        assert_eq!((message.id, message.snoozed_until), (older, None));
        check_indexes(&world.store);
    });
}

#[test]
fn a_snooze_moves_and_ends_with_the_message_as_it_was() {
    on_both(|world| {
        let [older, newer] = two(&world);
        let inbox = world.env.inbox("ada").unwrap();
        let before = world.inbox("ada");
        let [first, second] = [1, 2].map(|hours| world.now().after(HOUR * hours));
        inbox.snooze([older], first).unwrap();
        inbox.snooze([older], second).unwrap();
        assert_eq!(wakes(&world), [(older, second)]);
        world.clock.advance(HOUR);
        assert_eq!(world.engine.delivery().run_due(9).unwrap().woken, 0, "it was moved");

        inbox.unsnooze([older]).unwrap();

        assert_eq!(listed(&world, &MessageQuery::default()), [newer, older]);
        let after = world.inbox("ada");
        assert_eq!((after[1].stage, after[1].snoozed_until), (before[1].stage, None));
        assert_eq!(wakes(&world), []);
        world.clock.advance(HOUR);
        assert_eq!(world.engine.delivery().run_due(9).unwrap().woken, 0);
        world.unchanged(|| inbox.unsnooze([older]).unwrap());
        check_indexes(&world.store);
    });
}

/// Marks leave a snooze as it is, the archive ends it, and a snooze takes out of the archive.
#[test]
fn a_message_is_not_snoozed_and_archived() {
    on_both(|world| {
        let [id, _] = two(&world);
        let inbox = world.env.inbox("ada").unwrap();
        let until = world.now().after(HOUR);
        inbox.snooze([id], until).unwrap();
        for mark_as in MarkAs::ALL {
            let after = mark(&world, "ada", &[id], *mark_as);
            assert_eq!(after[0].snoozed_until, Some(until), "{mark_as}");
        }
        assert_eq!(inbox.archive([id]).unwrap()[0].snoozed_until, None);
        assert_eq!(wakes(&world), []);
        let snoozed = inbox.snooze([id], until).unwrap();
        assert!(!snoozed[0].stage.is_archived() && snoozed[0].stage.is_read());
        assert_eq!(listed(&world, &MessageQuery::default().archived()), []);
        let snoozed = MessageQuery::default().snoozed();
        assert_eq!(inbox.archive_matching(&snoozed).unwrap(), 1);
        assert_eq!(wakes(&world), []);
        check_indexes(&world.store);
    });
}

#[test]
fn a_message_that_is_gone_leaves_no_task() {
    on_both(|world| {
        let [first, second] = two(&world);
        let until = world.now().after(HOUR);
        let inbox = world.env.inbox("ada").unwrap();
        inbox.snooze([first, second], until).unwrap();
        inbox.delete([first]).unwrap();
        assert_eq!(wakes(&world), [(second, until)]);
        assert_eq!(inbox.delete_matching(&MessageQuery::default().snoozed()).unwrap(), 1);
        assert_eq!(wakes(&world), []);
        world.notify("hi", "ada");
        inbox.snooze([world.inbox("ada")[0].id], until).unwrap();
        world.env.subscribers().delete("ada").unwrap();
        assert_eq!(wakes(&world), []);
        check_indexes(&world.store);
    });
}

#[test]
fn a_message_that_is_sent_again_is_not_snoozed() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let notification = world.notify("hi", "ada");
        let message = world.inbox("ada").remove(0);
        let inbox = world.env.inbox("ada").unwrap();
        inbox.snooze([message.id], world.now().after(HOUR)).unwrap();
        let step = world.notification(notification).jobs[0].step.id;
        world.env.notifications().resend(notification, step).unwrap();
        assert_eq!(listed(&world, &MessageQuery::default()), [message.id]);
        assert_eq!(wakes(&world), []);
        check_indexes(&world.store);
    });
}

#[test]
fn a_snooze_ends_in_the_future() {
    on_both(|world| {
        let [id, _] = two(&world);
        let inbox = world.env.inbox("ada").unwrap();
        let now = world.clock.now();
        let refusal = "422 `until` must be a time in the future";
        world.refuses(refusal, || inbox.snooze([id], now));
        world.refuses(refusal, || inbox.snooze_matching(&MessageQuery::default(), now));
        world.refuses("422 `messageId` must not be empty", || {
            inbox.snooze([] as [MessageId; 0], now.after(HOUR))
        });
        let eve = world.env.inbox("eve").unwrap();
        world.refuses("404 subscriber `eve` is not there", || eve.unsnooze([id]));
    });
}

/// A simulation wakes messages at their times, after a restart as well, the urgent one first.
#[test]
fn a_simulation_wakes_messages() {
    on_both(|world| {
        let urgent =
            with(workflow_of("urgent", &[crate::world::in_app()]), json!({ "severity": "high" }));
        world.workflow(urgent);
        let [one, other] = two(&world);
        world.notify("urgent", "ada");
        let third = world.inbox("ada")[0].id;
        let inbox = world.env.inbox("ada").unwrap();
        let until = world.now().after(HOUR);
        inbox.snooze([other, third], until).unwrap();
        inbox.snooze([one], until.after(HOUR)).unwrap();
        let engine =
            testkit::sealed::builder().clock(world.clock.clone()).build(world.store.clone());
        let report = engine.delivery().run_until(until.after(HOUR * 2)).unwrap();
        assert_eq!(report.woken, 3);
        let woken: Vec<_> = world.inbox("ada").iter().map(|one| one.delivered_at[1]).collect();
        assert_eq!(woken, [until.after(HOUR), until, until]);
        assert_eq!(world.inbox("ada")[0].id, one);
        check_indexes(&world.store);
    });
}
