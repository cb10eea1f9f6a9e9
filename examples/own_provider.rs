//! A provider of your own, in ten lines: `cargo run --example own_provider`.
//!
//! It writes text messages to the terminal. One that calls a service is not much longer: the account
//! is in `delivery.integration.credentials`, and the error says what follows.

use tidings::integration::IntegrationCreate;
use tidings::step::Step;
use tidings::store::memory::MemoryStore;
use tidings::subscriber::SubscriberCreate;
use tidings::trigger::Trigger;
use tidings::vocabulary::Channel;
use tidings::workflow::WorkflowCreate;
use tidings::{Address, Delivery, DeliveryReport, Engine, Provider, ProviderReceipt, SendError};

#[derive(Debug)]
struct Terminal;

impl Provider for Terminal {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        let Address::Phone(number) = &delivery.address else {
            return Err(SendError::misconfigured("this provider has text messages only"));
        };
        println!("{number}: {}", delivery.message.text().unwrap_or_default());
        // A service that takes a key of idempotency gets this one, the same for every attempt.
        Ok(ProviderReceipt::with_id(delivery.idempotency_key().to_string()))
    }
}

fn run() -> Result<DeliveryReport, Box<dyn std::error::Error>> {
    let engine = Engine::builder().provider("terminal", Terminal).build(MemoryStore::default());
    let env = engine.organization("shop")?.development()?;
    env.integrations().create(&IntegrationCreate::new("terminal", Channel::Sms)?)?;
    let code = Step::sms("Your code is {{ payload.code }}.")?;
    env.workflows().create(&WorkflowCreate::new("login", "Login")?.step(code))?;

    let ada = SubscriberCreate::new("ada")?.phone("+49 30 1234");
    let payload = serde_json::json!({ "code": 172_913 });
    env.events().trigger(&Trigger::new("login", ada)?.payload(payload)?)?;
    Ok(engine.delivery().run_due(100)?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{} message sent", run()?.sent);
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn runs() {
        assert_eq!(super::run().unwrap().sent, 1);
    }
}
