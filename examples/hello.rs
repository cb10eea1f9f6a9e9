//! The smallest use of the engine: `cargo run --example hello`.

use serde_json::{from_value, json};
use tidings::Engine;
use tidings::message::MessageQuery;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::in_memory(); // or Engine::open("notifications.redb")?
    let env = engine.organization("shop")?.development()?;

    env.workflows().create(&from_value(json!({
        "workflowId": "order-shipped",
        "name": "Order shipped",
        "active": true,
        "steps": [{ "type": "in_app", "template": {
            "body": "{{ subscriber.firstName }}, order {{ payload.order }} is on its way.",
        }}],
    }))?)?;

    env.events().trigger(&from_value(json!({
        "name": "order-shipped",
        "to": { "subscriberId": "ada", "firstName": "Ada" },
        "payload": { "order": "A-1001" },
    }))?)?;

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
