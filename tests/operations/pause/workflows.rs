//! Paused workflows.

use std::thread;
use std::time::Duration;

use serde_json::json;
use store::Table;
use testkit::interposed::Call;
use testkit::tables::check_indexes;
use testkit::waiting::{PATIENCE, wait_until};
use tidings::trigger::Broadcast;
use tidings::workflow::WorkflowSync;
use tidings::{Delivery, DeliveryReport, SystemClock};

use super::{HOUR, ada, check_still, held};
use crate::world::{
    Counts, World, email, hour, in_app, names, on_both, only, parsed, say, time, wire, with,
    workflow_of,
};

fn pause(world: &World, workflow: &str) {
    world.env.workflows().pause(workflow).unwrap();
}

fn resume(world: &World, workflow: &str) {
    world.env.workflows().resume(workflow).unwrap();
}

#[test]
fn a_paused_workflow_takes_triggers_and_does_nothing() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        world.workflow_of("both", &[in_app(), email()]);
        pause(&world, "both");
        let event = json!({ "name": "both", "to": "ada", "transactionId": "once" });
        let receipt = world.trigger(event.clone());
        world.pass(HOUR);

        check_still(&world);
        assert_eq!(world.unchanged(|| world.trigger(event.clone())), receipt);
        let id = only(receipt.notifications).notification_id;
        assert_eq!(only(world.notifications(json!({}))).id, id);
        assert_eq!(world.statuses(id), ["pending", "pending"]);
        assert_eq!(world.log(id, 0), ["workflow_paused"]);
        assert_eq!((world.inbox("ada").len(), held(&world)), (0, 1));

        resume(&world, "both");
        assert_eq!(world.run_due(), Counts { sent: 1, ..Counts::default() });
        assert_eq!((world.inbox("ada").len(), held(&world)), (1, 0));
        assert_eq!(world.statuses(id), ["completed", "completed"]);
        check_still(&world);
    });
}

#[test]
fn a_pause_is_visible_and_stays_until_the_workflow_is_resumed() {
    on_both(|world| {
        let create = workflow_of("both", &[in_app(), email()]);
        let before = world.workflow(create.clone());
        assert_eq!(wire(&before).get("pausedAt"), None);
        let at = world.tick();
        let workflows = world.env.workflows();

        let paused = workflows.pause("both").unwrap();

        assert_eq!((paused.paused_at, paused.updated_at), (Some(at), at));
        assert_eq!(wire(&paused)["pausedAt"], json!(at));
        world.tick();
        assert_eq!(world.unchanged(|| workflows.pause(before.id).unwrap()), paused);
        assert_eq!(workflows.upsert(&parsed(create.clone())).unwrap().paused_at, Some(at));
        let changed = with(create, json!({ "name": "Changed" }));
        workflows.sync(&WorkflowSync::new([parsed(changed)])).unwrap();
        let update = parsed(json!({ "tags": ["new"], "active": true }));
        assert_eq!(workflows.update("both", &update).unwrap().paused_at, Some(at));

        let resumed = workflows.resume("both").unwrap();
        assert_eq!((resumed.name.as_str(), resumed.is_paused()), ("Changed", false));
        assert_eq!(world.unchanged(|| workflows.resume("both").unwrap()), resumed);
        let unknown = "404 workflow `unknown` is not there";
        world.refuses(unknown, || workflows.pause("unknown"));
        world.refuses(unknown, || workflows.resume("unknown"));
    });
}

#[test]
fn a_critical_workflow_waits_too_and_the_others_go_on() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        for name in ["code", "other"] {
            let more = json!({ "critical": true, "severity": "high" });
            world.workflow(with(workflow_of(name, &[in_app(), email()]), more));
        }
        pause(&world, "code");
        world.notify("code", "ada");
        world.notify("other", "ada");

        assert_eq!(world.run_due(), Counts { sent: 1, ..Counts::default() });
        let name = |delivery: &Delivery| delivery.message.workflow_identifier.clone().unwrap();
        assert_eq!(names(&world.recorder.sent(), name), ["other"]);
        check_still(&world);
    });
}

#[test]
fn what_was_under_way_before_the_pause_waits() {
    on_both(|mut world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        world.workflow_of("long", &[say("first"), hour("delay"), say("then"), email()]);
        world.workflow_of("mail", &[email()]);
        world.notify("long", "ada");
        let queued = world.notify("mail", "ada");
        pause(&world, "long");
        pause(&world, "mail");
        world.pass(HOUR * 2);

        check_still(&world);
        world.restart_with(|builder| builder);
        check_still(&world);
        assert_eq!((world.texts("ada"), held(&world)), (vec!["first".to_owned()], 2));
        assert_eq!(world.statuses(queued), ["queued"]);

        resume(&world, "mail");
        assert_eq!(world.run_due(), Counts { sent: 1, ..Counts::default() });
        resume(&world, "long");
        assert_eq!(world.run_due(), Counts { sent: 1, ..Counts::default() });
        assert_eq!(world.texts("ada"), ["first", "then"]);
        check_still(&world);
    });
}

#[test]
fn a_digest_that_is_open_closes_when_the_workflow_is_resumed() {
    on_both(|world| {
        ada(&world);
        world.workflow_of("digest", &[hour("digest"), say("{{ total_count }}")]);
        world.notify("digest", "ada");
        world.notify("digest", "ada");
        pause(&world, "digest");
        world.notify("digest", "ada");
        world.pass(HOUR * 2);
        check_still(&world);

        resume(&world, "digest");
        world.run_due();
        // The third event came while nothing went on. Its window opens now.
        assert_eq!(world.texts("ada"), ["2"]);
        world.pass(HOUR);
        world.run_due();
        assert_eq!(world.texts("ada"), ["2", "1"]);
        check_still(&world);
    });
}

#[test]
fn events_are_canceled_and_expire_while_the_workflow_is_paused() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        world.workflow_of("both", &[in_app(), email()]);
        pause(&world, "both");
        let expires_at = time("2026-11-20T12:30:00.000Z");
        let late = json!({ "name": "both", "to": "ada", "expiresAt": expires_at });
        let late = only(world.trigger(late).notifications).notification_id;
        let event = json!({ "name": "both", "to": "ada", "transactionId": "t" });
        let canceled = only(world.trigger(event).notifications).notification_id;

        assert_eq!(world.env.events().cancel("t").unwrap().canceled, 2);
        assert_eq!(world.statuses(canceled), ["canceled", "canceled"]);
        world.pass(HOUR);
        resume(&world, "both");
        world.run_due();

        assert_eq!(world.statuses(late), ["skipped", "skipped"]);
        assert_eq!(world.log(late, 1), ["expired"]);
        assert_eq!((world.inbox("ada").len(), world.recorder.sent().len()), (0, 0));
        check_still(&world);
    });
}

#[test]
fn an_attempt_without_an_outcome_is_repeated_after_the_pause() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[email()]);
        world.notify("mail", "ada");
        world.mortal_engine(|builder| builder, |_| {}).delivery().run_due(1).unwrap_err();
        pause(&world, "mail");
        world.pass(HOUR);
        check_still(&world);

        resume(&world, "mail");
        assert_eq!(world.run_due(), Counts { sent: 1, ..Counts::default() });
        assert_eq!(only(world.recorder.sent()).attempt(), 2);
        check_still(&world);
    });
}

#[test]
fn a_crowd_is_told_after_the_pause_each_once() {
    on_both(|world| {
        for number in 0..150 {
            world.bare_subscriber(&format!("s{number}"));
        }
        world.workflow_of("news", &[in_app()]);
        let tell = |id: &str| {
            let broadcast = Broadcast::new("news").unwrap().transaction_id(id).unwrap();
            world.env.events().broadcast(&broadcast).unwrap();
        };
        tell("first");
        let told = world.engine.delivery().run_due(1).unwrap().created;
        assert!(told > 0 && told < 150, "{told}");
        pause(&world, "news");
        tell("second");
        check_still(&world);
        let created = |id: &str| world.env.events().progress(id).unwrap().created;
        assert_eq!((created("first"), created("second")), (told as u64, 0));

        resume(&world, "news");
        world.run_due();
        assert_eq!((created("first"), created("second")), (150, 150));
        assert!((0..150).all(|number| world.inbox(&format!("s{number}")).len() == 2));
        check_still(&world);
    });
}

#[test]
fn a_paused_workflow_that_is_deleted_ends_what_waits() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        world.workflow_of("both", &[in_app(), email()]);
        pause(&world, "both");
        let id = world.notify("both", "ada");
        world.env.workflows().delete("both").unwrap();
        check_indexes(&world.store);

        world.run_due();

        assert_eq!(world.statuses(id), ["canceled", "canceled"]);
        assert_eq!((world.inbox("ada").len(), held(&world)), (0, 0));
        check_still(&world);
    });
}

#[test]
fn a_simulation_ends_when_only_paused_work_is_left() {
    on_both(|world| {
        ada(&world);
        world.workflow_of("long", &[hour("delay"), say("then")]);
        world.notify("long", "ada");
        pause(&world, "long");
        world.notify("long", "ada");
        let end = time("2026-11-27T12:00:00.000Z");
        let report = world.engine.delivery().run_until(end).unwrap();
        assert_eq!(report, DeliveryReport::default());
        assert_eq!((world.now(), world.texts("ada").len()), (end, 0));

        resume(&world, "long");
        world.engine.delivery().run_until(end.after(HOUR)).unwrap();
        assert_eq!(world.texts("ada"), ["then", "then"]);
    });
}

// Number of tasks that a call of the store reads.
fn tasks_of(call: &Call) -> usize {
    match call {
        Call::Get(Table::Tasks, _) => 1,
        Call::GetMany(Table::Tasks, keys) => keys.len(),
        _ => 0,
    }
}

/// A claim does not look at the tasks of a paused workflow, however many there are.
#[test]
fn claims_pass_over_a_paused_lane() {
    on_both(|world| {
        ada(&world);
        world.active_integration("email", "sendgrid");
        world.workflow_of("many", &[email()]);
        world.workflow_of("other", &[email()]);
        for _ in 0..200 {
            world.notify("many", "ada");
        }
        pause(&world, "many");
        world.notify("other", "ada");

        let (calls, report) = world.store.calls_of(|| world.run_due());

        assert_eq!(report.sent, 1);
        let read: usize = calls.iter().map(tasks_of).sum();
        assert!((1..8).contains(&read), "{read} tasks were read");
    });
}

#[test]
fn a_worker_tells_what_a_resumed_workflow_has_held() {
    on_both(|world| {
        ada(&world);
        world.workflow_of("news", &[in_app()]);
        pause(&world, "news");
        world.notify("news", "ada");
        let engine = world.engine_with(|builder| builder.clock(SystemClock));
        let env = engine.environment(world.env.environment_id()).unwrap();
        let worker = engine.worker().start().unwrap();
        let is_told = || env.inbox("ada").unwrap().counts().unwrap().unread == 1;
        // The worker sleeps by then.
        thread::sleep(Duration::from_millis(50));
        assert!(!is_told());
        env.workflows().resume("news").unwrap();
        wait_until(is_told);
        let report = worker.stop(PATIENCE);
        assert_eq!((report.errors, report.last_error), (0, None));
        assert_eq!(engine.delivery().next_due().unwrap(), None);
    });
}
