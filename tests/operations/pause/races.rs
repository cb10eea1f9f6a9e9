//! Workflows and integrations that are paused and resumed while claimed tasks are worked on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidings::ids::IntegrationId;
use tidings::vocabulary::Channel;
use tidings::{Delivery, Provider, ProviderReceipt, Scope, SendError};

use super::{ada, check_still, held};
use crate::world::{World, email, on_both, only, sms};

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
