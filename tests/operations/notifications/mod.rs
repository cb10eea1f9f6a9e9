//! The activity list: one notification (operation 21).

mod deleting;
mod index;
mod list;
mod resend;
mod searching;

use serde_json::{Value, json};
use tidings::Scope;
use tidings::ids::NotificationId;
use tidings::notification::{Notification, NotificationQuery};

use crate::world::{
    NO_ID, World, changed, email, id, in_app, names, on_both, on_both_with, parsed, sms, wire,
    with, workflow_of,
};

#[test]
fn a_notification_has_its_jobs_in_the_order_of_the_steps() {
    on_both(|world| {
        let workflow = world.workflow_of("all", &[sms(), in_app(), email()]);

        // 21.1, 21.4
        let notification = world.notification(world.notify("all", "ada"));

        assert_eq!(names(&notification.jobs, |job| job.kind), ["sms", "in_app", "email"]);
        let steps = names(&workflow.steps, |step| step.id);
        assert_eq!(names(&notification.jobs, |job| job.step.id), steps);
        assert_eq!(names(&notification.step_types, Clone::clone), ["in_app", "email", "sms"]);
    });
}

#[test]
fn a_notification_has_its_messages_in_the_order_of_its_jobs() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.active_integration("email", "sendgrid");
        world.workflow_of("all", &[in_app(), email(), in_app()]);
        let others = [world.notify("all", "bob"), world.notify("all", "ada")];
        let id = world.notify("all", "ada");
        world.notify("all", "ada");
        world.engine.delivery().run_due(100).unwrap();

        let messages = world.env.notifications().messages(id).unwrap();

        assert_eq!(names(&messages, |message| message.channel), ["in_app", "email", "in_app"]);
        assert!(messages.iter().all(|message| message.notification_id == id));
        let jobs = world.notification(id).jobs;
        let expected: Vec<_> = jobs.iter().map(|job| job.message_id).collect();
        assert_eq!(messages.iter().map(|found| Some(found.id)).collect::<Vec<_>>(), expected);
        // Bob has no address.
        assert_eq!(world.env.notifications().messages(others[0]).unwrap().len(), 2);
        world.env.inbox("ada").unwrap().delete([messages[0].id]).unwrap();
        assert_eq!(world.env.notifications().messages(id).unwrap(), messages[1..]);
        world.env.notifications().delete(id).unwrap();
        world.refuses(&format!("404 notification `{id}` is not there"), || {
            world.env.notifications().messages(id)
        });
    });
}

#[test]
fn every_subscriber_of_a_transaction_has_jobs_of_its_own() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let receipt = world.trigger(json!({ "name": "hi", "to": ["ada", "bob"] }));

        // 21.6
        let [ada, bob] = &receipt.notifications[..] else { panic!("two notifications") };
        for (created, who) in [(ada, "ada"), (bob, "bob")] {
            let notification = world.notification(created.notification_id);
            assert_eq!(notification.jobs.len(), 1);
            assert_eq!(notification.jobs[0].message_id, Some(world.inbox(who)[0].id));
            let subscriber = notification.subscriber.unwrap();
            assert_eq!(subscriber.subscriber_id.as_str(), who);
        }
    });
}

#[test]
fn the_log_of_a_job_is_in_order_of_time() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[email()]);
        let id = world.notify("mail", "ada");
        let retryable = tidings::SendError::retryable("busy");
        world.recorder.refuse_next(retryable);
        for _ in 0..2 {
            world.pass(std::time::Duration::from_secs(60));
            world.run_due();
        }

        // 21.7
        let notification = world.notification(id);
        let details = &notification.jobs[0].execution_details;
        assert_eq!(
            names(details, |entry| entry.detail),
            [
                "step_queued",
                "integration_selected",
                "provider_retry",
                "integration_selected",
                "message_sent",
            ]
        );
        assert!(details.is_sorted_by_key(|entry| (entry.created_at, entry.id)));
        assert_eq!(Some(notification.updated_at), details.last().unwrap().created_at);
    });
}

#[test]
fn a_notification_outlives_its_workflow_and_its_subscriber() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let created = world.notify("hi", "ada");
        let before = world.notification(created);
        assert!(before.workflow.is_some() && before.subscriber.is_some());

        // 21.5
        world.env.workflows().delete("hi").unwrap();
        let without_workflow = changed(before, |it| it.workflow = None);
        assert_eq!(world.notification(created), without_workflow);

        world.env.subscribers().delete(id("ada")).unwrap();
        world.bare_subscriber("ada");
        assert_eq!(
            world.notification(created),
            changed(without_workflow, |it| it.subscriber = None)
        );
    });
}

#[test]
fn a_notification_shows_its_subscriber_as_it_is_now() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let created = world.notify("hi", "ada");
        let update = json!({ "firstName": "Ada", "phone": "1", "email": "ada@example.org" });
        let ada = world.env.subscribers().update(id("ada"), &parsed(update)).unwrap();
        let name = json!({ "name": "Greeting" });
        let workflow = world.env.workflows().update("hi", &parsed(name)).unwrap();

        let notification = world.notification(created);

        assert_eq!(
            wire(notification.subscriber),
            json!({
                "subscriberId": "ada",
                "_id": ada.id,
                "firstName": "Ada",
                "email": "ada@example.org",
                "phone": "1",
            })
        );
        assert_eq!(
            wire(notification.workflow),
            json!({ "_id": workflow.id, "name": "Greeting", "triggers": workflow.triggers })
        );
    });
}

#[test]
fn what_is_not_there_is_not_shown() {
    on_both(|world| {
        let production = world.production();
        let create = parsed(workflow_of("hi", &[in_app()]));
        production.workflows().create(&create).unwrap();
        let event = parsed(json!({ "name": "hi", "to": "ada" }));
        let there = production.events().trigger(&event).unwrap().notifications[0].notification_id;
        let nowhere: NotificationId = NO_ID.parse().unwrap();

        // 21.2
        for id in [nowhere, there] {
            let refusal = format!("404 notification `{id}` is not there");
            world.refuses(&refusal, || world.env.notifications().get(id));
        }
    });
    // 21.3
    assert_eq!(
        "42".parse::<NotificationId>().unwrap_err().to_string(),
        "`notificationId` must be an identifier made by the engine"
    );
}

/// Triggers `workflow` for `to`, a second after whatever was before, with `fields` besides.
fn happen(world: &World, workflow: &str, to: &str, fields: Value) -> NotificationId {
    world.tick();
    let receipt = world.trigger(with(json!({ "name": workflow, "to": to }), fields));
    receipt.notifications[0].notification_id
}

/// Runs `scenario` on both backends, with segments of the activity index that are soon full.
fn on_both_with_segments(scenario: impl Fn(World)) {
    on_both_with(|builder| builder.activity_segments(16), scenario);
}

/// The notifications on all pages of a list.
#[track_caller]
fn all(env: &Scope, query: Value) -> Vec<Notification> {
    let query: NotificationQuery = parsed(query);
    let mut found = Vec::new();
    for page in 0.. {
        let query = query.clone().page_number(page).limit(7);
        let page = env.notifications().list(&query).unwrap();
        found.extend(page.data);
        if !page.has_more {
            break;
        }
    }
    let counted = env.notifications().count(&query).unwrap();
    assert_eq!(counted, found.len() as u64, "{query:?} counts others than it lists");
    found
}

/// The ids of the notifications on all pages of a list.
#[track_caller]
fn ids(env: &Scope, query: Value) -> Vec<NotificationId> {
    all(env, query).iter().map(|notification| notification.id).collect()
}

fn count(env: &Scope, query: Value) -> u64 {
    env.notifications().count(&parsed(query)).unwrap()
}

/// Checks that the index agrees with the notifications.
#[track_caller]
fn intact(env: &Scope) {
    let check = env.notifications().check_index().unwrap();
    assert_eq!(check.disagreements, []);
    assert_eq!(check.notifications, count(env, json!({})));
}
