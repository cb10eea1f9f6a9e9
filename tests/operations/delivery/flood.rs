//! A flood of one workflow holds up no other one, and nothing urgent. A flood of turns takes few commits.

use std::time::Duration;

use domain::ids::{NotificationId, WorkflowId};
use domain::task::{Task, TaskClass, TaskState, Work};
use serde_json::json;
use store::{Table, WriteRecords, lanes};
use testkit::interposed::Call;

use super::ada;
use crate::world::{NO_ID, World, email, in_app, names, on_both, parsed, with, workflow_of};

#[test]
fn a_code_and_a_message_of_another_workflow_pass_a_flood() {
    check(&World::in_memory(), 100_000);
    on_both(|world| check(&world, 10_000));
}

#[track_caller]
fn check(world: &World, size: u32) {
    ada(world);
    world.active_integration("email", "sendgrid");
    let flood = world.workflow_of("flood", &[email()]);
    add_flood(world, size, flood.id);
    world.workflow_of("other", &[email()]);
    world.workflow(with(workflow_of("code", &[email()]), json!({ "severity": "high" })));
    world.notify("other", "ada");
    world.notify("code", "ada");

    // The first claim.
    let claim = || world.engine.delivery().run_due(32).unwrap();
    let (calls, report) = world.store.calls_of(claim);

    let done = |call: &&Call| matches!(call, Call::Delete(Table::Tasks, _));
    assert_eq!((report.sent, calls.iter().filter(done).count()), (2, 32));
    let sent = names(&world.recorder.sent(), |delivery| {
        delivery.message.workflow_identifier.clone().unwrap()
    });
    assert_eq!(sent, ["code", "other"]);
}

/// A claim of one task is what a slow provider leaves.
#[test]
fn lanes_take_turns_in_claims_of_one_task() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        let flood = world.workflow_of("flood", &[email()]);
        add_flood(&world, 10_000, flood.id);
        world.workflow_of("other", &[email()]);
        world.notify("other", "ada");

        for _ in 0..9 {
            world.engine.delivery().run_due(1).unwrap();
        }

        assert_eq!(world.recorder.sent().len(), 1);
    });
}

/// A task whose last attempt has no outcome is done alone, and waits for its turn.
#[test]
fn a_task_without_an_outcome_holds_up_no_lane() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        let flood = world.workflow_of("flood", &[email()]);
        add_flood(&world, 10_000, flood.id);
        let lost = world.workflow_of("lost", &[email()]);
        let state = TaskState::Leased { until: world.now(), attempts: 1 };
        add(&world, &Task { state, ..task(&world, 1 << 40, lost.id) });
        world.tick();
        world.workflow_of("other", &[email()]);
        world.notify("other", "ada");

        world.engine.delivery().run_due(32).unwrap();

        assert_eq!(world.recorder.sent().len(), 1);
        assert!(!is_there(&world, |task| task.state.is_leased()));
    });
}

/// Broadcasts and upkeep go on beside what is due all the time.
#[test]
fn a_flood_leaves_a_share_to_the_background() {
    for limit in [1, 32] {
        on_both(|world| {
            ada(&world);
            let flood = world.workflow_of("flood", &[email()]);
            add_flood(&world, 10_000, flood.id);
            let class = TaskClass::Background;
            add(&world, &Task { class, ..task(&world, 1 << 40, flood.id) });

            for _ in 0..16 {
                assert!(is_there(&world, |task| task.class == TaskClass::Normal));
                world.engine.delivery().run_due(limit).unwrap();
            }

            assert!(!is_there(&world, |task| task.class == class), "{limit}");
        });
    }
}

fn is_there(world: &World, is_wanted: impl Fn(&Task) -> bool) -> bool {
    world.records::<Task>().iter().any(is_wanted)
}

/// A claim and a settlement are a commit each. Messages are sent in small batches also behind turns, so that
/// what is urgent waits for few of them.
#[test]
fn turns_are_done_in_large_batches() {
    const FLOOD: usize = 400;
    const LATE: usize = 32 + 64 + 128;
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        let minute = json!({ "type": "regular", "amount": 1, "unit": "minutes" });
        let delay = json!({ "type": "delay", "metadata": minute });
        world.workflow_of("late", &[delay.clone(), in_app()]);
        world.workflow_of("late-mail", &[delay, email()]);
        world.workflow_of("mail", &[email()]);
        let commits_of = |identifier: &str, size: usize, span: Duration| {
            for _ in 0..size {
                world.notify(identifier, "ada");
            }
            world.pass(span);
            let (calls, report) = world.store.calls_of(|| world.run_due());
            let commits = calls.iter().filter(|call| **call == Call::Commit).count();
            (commits, report.sent)
        };

        let (turns, _) = commits_of("late", FLOOD, Duration::from_secs(60));
        let (sends, sent) = commits_of("mail", FLOOD, Duration::ZERO);
        // The turns come first, in three claims.
        let (both, sent_late) = commits_of("late-mail", LATE, Duration::from_secs(61));

        assert_eq!((sent, sent_late), (FLOOD, LATE));
        assert_eq!(world.env.inbox("ada").unwrap().counts().unwrap().unread, FLOOD);
        assert!(turns <= 12, "{turns} commits for {FLOOD} turns");
        assert!(sends >= FLOOD / 16, "{sends} commits for {FLOOD} messages");
        assert!(both >= LATE / 16, "{both} commits for {LATE} messages behind turns");
    });
}

/// A claim looks at the start of its lane, and moves the lane to what it has left. An event that is the
/// first of its lane looks behind its own time, and so do the results of the last claim. In a file, a look at
/// the start passes the tasks that were done lately.
#[test]
fn the_start_of_a_lane_is_looked_at_for_a_claim_only() {
    const FLOOD: usize = 96;
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[email()]);
        let looks =
            |calls: &[Call]| calls.iter().filter(|call| **call == Call::Scan(Table::Due)).count();
        let (events, ()) = world.store.calls_of(|| {
            for _ in 0..FLOOD {
                world.tick();
                world.notify("mail", "ada");
            }
        });
        // The first one finds an idle lane, and looks behind its own time.
        assert_eq!(looks(&events), 1);

        let (calls, report) = world.store.calls_of(|| world.run_due());

        assert_eq!(report.sent, FLOOD);
        let claims = calls.iter().filter(|call| **call == Call::Commit).count() / 2;
        assert!(looks(&calls) <= 2 * claims + 2, "{} looks, {claims} claims", looks(&calls));
    });
}

// Tasks that have been due for longer than any other one. Their notifications are gone.
fn add_flood(world: &World, size: u32, workflow_id: WorkflowId) {
    let lane = task(world, 0, workflow_id).lane();
    for start in (0..size).step_by(10_000) {
        let added = store::write(&world.opened(), |transaction| {
            let mut tasks = (start..start + 10_000).map(|n| task(world, n.into(), workflow_id));
            tasks.try_for_each(|task| transaction.insert(&task))?;
            lanes::move_lane(transaction, &lane)
        });
        added.unwrap();
    }
    world.tick();
}

fn add(world: &World, task: &Task) {
    let added = store::write(&world.opened(), |transaction| {
        transaction.insert(task)?;
        lanes::move_lane(transaction, &task.lane())
    });
    added.unwrap();
}

fn task(world: &World, number: u64, workflow_id: WorkflowId) -> Task {
    Task {
        id: parsed(json!(format!("00000000-0000-7000-8000-{number:012x}"))),
        environment_id: world.env.environment_id(),
        organization_id: parsed(json!("acme")),
        workflow_id: Some(workflow_id),
        class: TaskClass::Normal,
        restarted_at: None,
        state: TaskState::Waiting { due_at: world.now(), attempts: 0 },
        work: Work::Turn { notification_id: nobody() },
    }
}

fn nobody() -> NotificationId {
    parsed(json!(NO_ID))
}
