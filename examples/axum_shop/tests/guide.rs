//! The parts of the guide and of the page about PostgreSQL that their own tests do not compile.

use std::error::Error;

const TEXTS: [&str; 3] = [
    include_str!("../../../crates/engine/guide/delivery.md"),
    include_str!("../../../crates/engine/guide/applications.md"),
    include_str!("../../../docs/postgresql.md"),
];

// Compiled and not called: there is no such server.
#[expect(dead_code, reason = "it is compared with the guide")]
fn account_of_a_server(password: &str) -> Result<(), Box<dyn Error>> {
    use tidings::credentials::Credentials;
    use tidings::integration::IntegrationCreate;
    use tidings::vocabulary::Channel;
    use tidings::{Engine, IntegrationTestResult};
    use tidings_providers::Smtp;

    let engine = Engine::builder().provider("smtp", Smtp::default()).open("notifications.redb")?;
    let env = engine.organization("shop")?.production()?;
    let account = Credentials::default().host("smtp.example.org").from("shop@example.org");
    let account = account.user("shop").password(password);
    let mail = IntegrationCreate::new("smtp", Channel::Email)?.identifier("mail")?;
    let mail = env.integrations().upsert(&mail.credentials(account))?;
    assert_eq!(env.integrations().test(mail.id)?, IntegrationTestResult::Passed);
    Ok(())
}

#[test]
fn every_part_is_compiled_elsewhere() {
    let order = include_str!("../../../crates/store-postgres/examples/order.rs");
    let code = [include_str!("../src/api.rs"), include_str!("guide.rs"), order];
    let parts = TEXTS.map(|text| text.split("```rust,ignore\n").skip(1));
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    assert_eq!(parts.len(), 3);
    for part in parts {
        let (part, _) = part.split_once("```").unwrap();
        let indented =
            |line: &str| if line.is_empty() { "\n".into() } else { format!("    {line}\n") };
        let inner = part.lines().map(indented).collect::<String>();
        assert!(code.iter().any(|code| code.contains(part) || code.contains(&inner)), "{part}");
    }
}
