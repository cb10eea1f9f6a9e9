//! What the shop tells its customers, declared in code. Start-up brings the file in line with it.

use tidings::Result;
use tidings::step::Step;
use tidings::vocabulary::{Channel, Severity};
use tidings::workflow::WorkflowCreate;

/// The channels that the workflows use, with their names on the page of preferences.
pub(crate) const CHANNELS: [(Channel, &str); 2] =
    [(Channel::InApp, "Inbox"), (Channel::Email, "E-mail")];

/// Every workflow of the shop.
pub(crate) fn all() -> Result<Vec<WorkflowCreate>> {
    Ok(vec![welcome()?, order_shipped()?, offer()?])
}

// Critical: the customer cannot switch it off.
fn welcome() -> Result<WorkflowCreate> {
    let greeting = Step::in_app("Good to have you. What we tell you is kept here.")?
        .subject("Welcome to the shop, {{ subscriber.firstName }}!")?;
    Ok(WorkflowCreate::new("welcome", "Your account")?
        .description("What you have to know about your account.")
        .critical(true)
        .step(greeting))
}

fn order_shipped() -> Result<WorkflowCreate> {
    let inbox = Step::in_app("{{ payload.item }} has left the shop and is on its way to you.")?
        .subject("Order {{ payload.order }} is on its way")?;
    let mail = Step::email(
        "Order {{ payload.order }} is on its way",
        "<p>Dear {{ subscriber.firstName }},</p><p>{{ payload.item }} is on its way to you.</p>\
         <p><a href=\"{{ unsubscribeUrl }}\">No more e-mails about orders</a></p>",
    )?;
    Ok(WorkflowCreate::new("order-shipped", "Orders")?
        .description("When an order has left the shop.")
        .tags(["orders"])
        .severity(Severity::Medium)
        .step(inbox.name("inbox"))
        .step(mail.name("mail")))
}

fn offer() -> Result<WorkflowCreate> {
    let inbox = Step::in_app("{{ payload.text }}")?.subject("An offer for you")?;
    let mail = Step::email(
        "An offer for you",
        "<p>Dear {{ subscriber.firstName }},</p><p>{{ payload.text }}</p>\
         <p><a href=\"{{ unsubscribeUrl }}\">No more e-mails about offers</a></p>",
    )?;
    Ok(WorkflowCreate::new("offer", "Offers")?
        .description("When something in the shop costs less.")
        .tags(["offers"])
        .severity(Severity::Low)
        .step(inbox.name("inbox"))
        .step(mail.name("mail")))
}
