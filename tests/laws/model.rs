//! The engine does what a model does that is obviously right, on a store that runs every
//! transaction once, and on one that runs it twice.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use testkit::facade::restarted;
use testkit::interposed::Interposed;
use testkit::tables::check_indexes;
use testkit::world::World;
use tidings::Scope;
use tidings::ids::{MessageId, SubscriberId};
use tidings::message::{MarkAs, MessageQuery};
use tidings::notification::NotificationQuery;
use tidings::page::PageQuery;
use tidings::vocabulary::Channel;

use crate::seeded::{email, inbox};
use crate::{cases, parsed};
use checks::{began, check_letters, check_people, check_question};
use history::{Flow, Happening, Step, WORKFLOWS, question, step};
use plain::{Model, is_set};

mod checks;
mod history;
mod plain;

proptest! {
    #![proptest_config(cases(32))]

    #[test]
    fn after_any_history(
        steps in vec(step(), 0..40),
        questions in vec(question(), 8),
        limit in 1_u32..5,
        hesitant in any::<bool>(),
    ) {
        let world = start(hesitant);
        let mut model = Model::default();
        for step in &steps {
            run(&world, &model, step);
            model.run(step);
        }
        check_people(&world, &model, limit);
        check_letters(&world, &model, limit);
        for question in &questions {
            check_question(&world, &model, question);
        }
        check_indexes(&world.store);
    }
}

fn start(hesitant: bool) -> World {
    let store = Interposed::default();
    let store = if hesitant { store.repeating() } else { store };
    let world = World::with(store, restarted(0));
    for Flow { name, channel, steps, severity, critical } in &WORKFLOWS {
        let step = if *channel == Channel::Email { email() } else { inbox() };
        let create = json!({
            "workflowId": name, "name": name, "active": true, "critical": critical,
            "severity": severity, "steps": vec![step; *steps],
        });
        world.env.workflows().create(&parsed(create)).unwrap();
    }
    let sends = json!({ "providerId": "of-the-host", "channel": "email", "active": true });
    world.env.integrations().create(&parsed(sends)).unwrap();
    world
}

/// Does what `step` says, as long as it makes sense.
fn run(world: &World, model: &Model, step: &Step) {
    let (env, is_there) = (&world.env, |name: &str| model.person(name).is_some());
    match step {
        Step::Say(name, email) => {
            let mut profile = json!({ "subscriberId": name });
            if let Some(email) = email {
                profile["email"] = json!(email);
            }
            env.subscribers().upsert(&parsed(profile)).unwrap();
        }
        Step::Leave(name) => {
            assert_eq!(env.subscribers().delete(id(name)).is_ok(), is_there(name));
        }
        Step::Trigger(happening) => trigger(env, &model.next_transaction(), happening),
        Step::Mark(name, which, mark) => mark_as(env, &id(name), *which, *mark),
        Step::Mute(name, workflow, is_on) => {
            let Flow { name: workflow, channel, critical, .. } = &WORKFLOWS[*workflow];
            let said = json!({ "workflowId": workflow, "channels": { channel.as_str(): is_on } });
            let bulk = parsed(json!({ "preferences": [said] }));
            let said = env.preferences(id(name)).unwrap().update_bulk(&bulk);
            assert_eq!(said.is_ok(), is_there(name) && !critical);
        }
        Step::Deliver => {
            let mut done = 0;
            let delivery = world.engine.delivery();
            // What is left of a notification that was deleted is not in a report.
            while delivery.next_due().unwrap().is_some_and(|due_at| due_at <= world.now()) {
                let report = delivery.run_due(1).unwrap();
                done += report.sent + report.skipped;
            }
            assert_eq!(done, model.events.iter().filter(|event| event.waits).count());
        }
        Step::Wait(millis) => world.clock.advance(Duration::from_millis(*millis)),
        Step::Forget(which) => forget(world, model, *which),
        Step::Sweep(millis) => {
            let since = model.now.saturating_sub(*millis);
            let time = began(world, model).after(Duration::from_millis(since));
            let old = model.events.iter().filter(|event| event.at < since).count();
            assert_eq!(env.notifications().delete_before(time).unwrap(), old as u64);
        }
        Step::Rebuild => assert!(env.notifications().rebuild_index().unwrap().is_finished),
    }
}

// Deletes the notification that is so many behind the newest.
fn forget(world: &World, model: &Model, which: usize) {
    let page = NotificationQuery::default().page_number(u32::try_from(which).unwrap()).limit(1);
    let found = world.env.notifications().list(&page).unwrap().data;
    assert_eq!(found.len(), usize::from(model.place(which).is_some()));
    for notification in found {
        world.env.notifications().delete(notification.id).unwrap();
        assert!(world.env.notifications().delete(notification.id).is_err(), "it is gone");
    }
}

fn trigger(env: &Scope, transaction: &str, happening: &Happening) {
    let Happening { workflow, to, tenant, urgent } = happening;
    let name = WORKFLOWS[*workflow].name;
    let mut trigger = json!({ "name": name, "to": to, "transactionId": transaction });
    if let Some(tenant) = tenant {
        trigger["context"] = json!({ "tenant": tenant });
    }
    if *urgent {
        trigger["overrides"] = json!({ "severity": "high" });
    }
    let trigger = parsed(trigger);
    let receipt = env.events().trigger(&trigger).unwrap();
    assert_eq!(receipt.notifications.len(), to.len());
    assert_eq!(env.events().trigger(&trigger).unwrap(), receipt, "it happens once");
}

// Marks the messages whose bits are set, counting from the newest one.
fn mark_as(env: &Scope, who: &SubscriberId, which: u8, mark: MarkAs) {
    let page = PageQuery::default().limit(PageQuery::MAX_LIMIT);
    let query = MessageQuery::default().page(page);
    let Ok(messages) = env.messages().list(who, &query) else { return };
    let marked = messages.data.iter().enumerate().filter(|(at, _)| is_set(which, *at));
    let ids: Vec<MessageId> = marked.map(|(_, message)| message.id).collect();
    if !ids.is_empty() {
        env.messages().mark(who, &ids, mark).unwrap();
    }
}

fn id(name: &str) -> SubscriberId {
    SubscriberId::new(name).unwrap()
}
