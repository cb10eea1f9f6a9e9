//! What the shop tells its customers, declared in code. Start-up brings the file in line with it.

use tidings::Result;
use tidings::integration::IntegrationCreate;
use tidings::step::Step;
use tidings::vocabulary::{Channel, Severity};
use tidings::workflow::WorkflowCreate;

/// The channels that the workflows use, for the page of preferences.
pub(crate) const CHANNELS: [Channel; 2] = [Channel::InApp, Channel::Email];

/// Every workflow of the shop.
pub(crate) fn all() -> Result<Vec<WorkflowCreate>> {
    Ok(vec![welcome()?, order_shipped()?])
}

/// The account that e-mail goes through. `Mail` is its provider.
pub(crate) fn mail_account() -> Result<IntegrationCreate> {
    Ok(IntegrationCreate::new("smtp", Channel::Email)?.identifier("mail")?.name("Mail server"))
}

// Critical: the customer cannot switch it off, and the page of preferences does not list it.
fn welcome() -> Result<WorkflowCreate> {
    let greeting = Step::in_app("Welcome to the shop, {{ subscriber.firstName }}!")?;
    Ok(WorkflowCreate::new("welcome", "Welcome")?.critical().step(greeting))
}

fn order_shipped() -> Result<WorkflowCreate> {
    let inbox = Step::in_app("{{ payload.item }} (order {{ payload.order }}) is on its way.")?
        .subject("Order {{ payload.order }}")?;
    let mail = Step::email(
        "Order {{ payload.order }} is on its way",
        "<p>Dear {{ subscriber.firstName }},</p><p>{{ payload.item }} is on its way to you.</p>",
    )?;
    Ok(WorkflowCreate::new("order-shipped", "Order shipped")?
        .description("Tells the customer that an order has left the shop.")
        .tags(["orders"])
        .severity(Severity::Medium)
        .step(inbox.named("inbox"))
        .step(mail.named("mail")))
}
