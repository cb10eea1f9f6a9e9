//! Workflows and integrations that are paused and resumed while claimed tasks are worked on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use testkit::interposed::Point;
use tidings::ids::IntegrationId;
use tidings::vocabulary::Channel;
use tidings::{Delivery, Provider, ProviderReceipt, Scope, SendError};

use super::{ada, check_still, held};
use crate::world::{World, email, names, on_both, only, parsed, sms};

/// A provider that does something to the environment before it accepts the last one of so many
/// messages.
#[derive(Clone, Debug)]
struct Meddling {
    env: Arc<Mutex<Option<Scope>>>,
    sent: Arc<Mutex<Vec<String>>>,
    at: usize,
    meddle: fn(&Scope),
}

impl Meddling {
    fn new(at: usize, meddle: fn(&Scope)) -> Self {
        Self { env: Arc::default(), sent: Arc::default(), at, meddle }
    }

    fn begin(&self, world: &World) {
        *self.env.lock().unwrap() = Some(world.env.clone());
    }

    fn keys(&self) -> Vec<String> {
        self.sent.lock().unwrap().clone()
    }
}

impl Provider for Meddling {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        let mut sent = self.sent.lock().unwrap();
        sent.push(delivery.idempotency_key().to_string());
        if sent.len() == self.at {
            (self.meddle)(self.env.lock().unwrap().as_ref().unwrap());
        }
        Ok(ProviderReceipt::default())
    }
}

// A workflow for e-mail and one for texts, each with so many messages, and a provider for each.
fn race(world: &mut World, count: usize, mail: &Meddling, texts: &Meddling) {
    world.restart_with(|builder| {
        builder.provider("mail", mail.clone()).provider("texts", texts.clone())
    });
    mail.begin(world);
    texts.begin(world);
    ada(world);
    world.active_integration("email", "mail");
    world.active_integration("sms", "texts");
    world.workflow_of("mail", &[email()]);
    world.workflow_of("texts", &[sms()]);
    for _ in 0..count {
        world.notify("mail", "ada");
        world.notify("texts", "ada");
    }
}

#[test]
fn what_was_claimed_before_the_pause_is_given_back() {
    on_both(|mut world| {
        let mail = Meddling::new(1, |env| drop(env.workflows().pause("mail").unwrap()));
        race(&mut world, 40, &mail, &Meddling::new(0, |_| {}));

        // One claim takes some of the e-mails, and the first provider call pauses their workflow.
        world.run_due();

        assert_eq!((mail.keys().len(), held(&world)), (1, 39));
        check_still(&world);
        world.env.workflows().resume("mail").unwrap();
        world.pass(Duration::from_secs(1));
        assert_eq!(world.run_due().sent, 39);
        let mut keys = mail.keys();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 40, "each is sent once");
        check_still(&world);
    });
}

/// Messages are found paused, and what pauses them is resumed before that is stored. They do not wait
/// for a resumption that is over.
#[test]
fn what_was_resumed_before_the_settlement_goes_on() {
    fn mail(env: &Scope) -> IntegrationId {
        let integrations = env.integrations().list().unwrap();
        only(integrations.into_iter().filter(|one| one.channel == Channel::Email)).id
    }
    let of_the_workflow: [fn(&Scope); 2] = [
        |env| drop(env.workflows().pause("mail").unwrap()),
        |env| drop(env.workflows().resume("mail").unwrap()),
    ];
    let of_the_integration: [fn(&Scope); 2] = [
        |env| drop(env.integrations().pause(mail(env)).unwrap()),
        |env| drop(env.integrations().resume(mail(env)).unwrap()),
    ];
    for [pause, resume] in [of_the_workflow, of_the_integration] {
        on_both(|mut world| {
            let (mail, texts) = (Meddling::new(1, pause), Meddling::new(10, resume));
            race(&mut world, 10, &mail, &texts);

            assert_eq!(world.run_due().sent, 11);

            assert_eq!((mail.keys().len(), held(&world)), (1, 0));
            world.pass(Duration::from_secs(1));
            assert_eq!(world.run_due().sent, 9);
            assert_eq!((mail.keys().len(), texts.keys().len()), (10, 10));
            check_still(&world);
        });
    }
}

/// A message is found waiting, for one that resumes its integration or for the hours of its subscriber, and its
/// event is canceled before that is stored.
#[test]
fn a_message_that_waits_knows_of_a_cancellation() {
    let closed = json!({ "schedule": { "isEnabled": true, "weeklySchedule": {
        "saturday": { "isEnabled": true, "hours": [{ "start": "09:00 AM", "end": "05:00 PM" }] },
    } } });
    for waits_for in ["integration", "workflow", "schedule"] {
        on_both(|mut world| {
            let texts = Meddling::new(1, |env| drop(env.events().cancel("t1").unwrap()));
            race(&mut world, 0, &Meddling::new(0, |_| {}), &texts);
            let trigger = json!({ "name": "mail", "to": "ada", "transactionId": "t1" });
            let receipt = world.env.events().trigger(&parsed(trigger)).unwrap();
            let id = receipt.notifications[0].notification_id;
            world.subscriber(json!({ "subscriberId": "bob", "phone": "+4912346" }));
            world.notify("texts", "bob");
            let integrations = world.env.integrations().list().unwrap();
            let mail = integrations.iter().find(|one| one.channel == Channel::Email).unwrap().id;
            match waits_for {
                "integration" => drop(world.env.integrations().pause(mail).unwrap()),
                "workflow" => {
                    let env = world.env.clone();
                    // After the claim.
                    let pause = move || drop(env.workflows().pause("mail").unwrap());
                    world.store.pause(Point::Committed, 0, pause);
                }
                _ => {
                    let preferences = world.env.preferences("ada").unwrap();
                    preferences.update_global(&parsed(closed.clone())).unwrap();
                }
            }
            world.tick();

            world.run_due();

            assert_eq!(texts.keys().len(), 1);
            let statuses = names(&world.notification(id).jobs, |job| job.status.as_str());
            assert_eq!(statuses, ["canceled"], "{waits_for}");
            let total = world.engine.delivery().stats().unwrap().total();
            assert_eq!((total.held, total.waiting, total.leased), (0, 0, 0), "{waits_for}");
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}
