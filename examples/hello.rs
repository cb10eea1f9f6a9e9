//! The smallest use of the engine: `cargo run --example hello`.

use serde_json::json;
use tidings::Engine;
use tidings::message::MessageQuery;
use tidings::step::Step;
use tidings::subscriber::SubscriberCreate;
use tidings::trigger::Trigger;
use tidings::workflow::WorkflowCreate;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::in_memory(); // or Engine::open("notifications.redb")?
    let env = engine.organization("shop")?.development()?;

    let text = "{{ subscriber.firstName }}, order {{ payload.order }} is on its way.";
    let shipped = WorkflowCreate::new("order-shipped", "Order shipped")?.step(Step::in_app(text)?);
    env.workflows().create(&shipped)?;
    env.subscribers().create(&SubscriberCreate::new("ada")?.first_name("Ada"))?;

    let order = Trigger::new("order-shipped", "ada")?.payload(json!({ "order": "A-1001" }))?;
    env.events().trigger(&order)?;
    for message in env.inbox("ada")?.list(&MessageQuery::default())?.data {
        println!("{}", message.text().unwrap_or_default()); // Ada, order A-1001 is on its way.
    }
    Ok(())
}

#[test]
fn says_hello() {
    main().unwrap();
}

#[test]
fn the_readme_says_the_same() {
    let (_, code) = include_str!("hello.rs").split_once("\n\n").unwrap();
    let (code, _) = code.split_once("\n#[test]").unwrap();
    assert!(include_str!("../README.md").contains(code));
}
