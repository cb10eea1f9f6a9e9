//! The front page: customers sign up and order here.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{Form, State};
use axum::response::Redirect;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;
use tidings::error::Reason;
use tidings::subscriber::SubscriberCreate;
use tidings::trigger::{Broadcast, Trigger};
use tidings::{Error, Result};

use super::{Place, layout, path};
use crate::failure::PageFailure;
use crate::shop::Shop;

#[derive(Debug, Deserialize)]
pub(super) struct SignUp {
    customer: String,
    name: String,
    email: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Order {
    number: String,
    customer: String,
    item: String,
}

/// An offer to everybody.
#[derive(Debug, Deserialize)]
pub(super) struct Offer {
    number: String,
    text: String,
}

pub(super) async fn page() -> Markup {
    let content = html! {
        h1 { "A small shop" }
        p.lead { "Sign up, order a teapot, and keep the inbox open: it follows." }
        div.cards {
            (card("Sign up", "/sign-up", &html! {
                (field("User name", &html! { input name="customer" required autocomplete="username"; }))
                (field("First name", &html! { input name="name" required autocomplete="given-name"; }))
                (field("E-mail", &html! {
                    input name="email" type="email" required autocomplete="email";
                }))
            }))
            (card("Order", "/orders", &html! {
                // A form that is sent twice is one order.
                input type="hidden" name="number" value=(fresh_number("A"));
                (field("User name", &html! { input name="customer" required autocomplete="username"; }))
                (field("Item", &html! { input name="item" value="A blue teapot" required; }))
            }))
            (card("Offer to everybody", "/offers", &html! {
                input type="hidden" name="number" value=(fresh_number("offer"));
                (field("Text", &html! {
                    textarea name="text" rows="3" required { "All teapots cost less until Sunday." }
                }))
            }))
        }
    };
    layout("Shop", &Place::Shop, &content)
}

fn card(title: &str, action: &str, fields: &Markup) -> Markup {
    html! {
        section.card {
            h2 { (title) }
            form method="post" action=(action) {
                (fields)
                button.primary { (title) }
            }
        }
    }
}

fn field(label: &str, input: &Markup) -> Markup {
    html! { label { (label) (input) } }
}

pub(super) async fn sign_up(
    State(shop): State<Shop>,
    Form(form): Form<SignUp>,
) -> Result<Redirect, PageFailure> {
    let inbox = path("inbox", &form.customer);
    let customer = form.customer()?;
    let welcome = Trigger::new("welcome", &customer.subscriber_id)?;
    shop.run(move |env| {
        env.subscribers().create(&customer)?;
        env.events().trigger(&welcome)
    })
    .await?;
    Ok(Redirect::to(&inbox))
}

pub(super) async fn order(
    State(shop): State<Shop>,
    Form(order): Form<Order>,
) -> Result<Redirect, PageFailure> {
    let shipped = order.shipped()?;
    let inbox = path("inbox", &order.customer);
    shop.run(move |env| {
        // A trigger creates a subscriber who is not there, and a shop does not want that.
        env.subscribers().get(&order.customer)?;
        env.events().trigger(&shipped)
    })
    .await?;
    Ok(Redirect::to(&inbox))
}

pub(super) async fn offer(
    State(shop): State<Shop>,
    Form(offer): Form<Offer>,
) -> Result<Redirect, PageFailure> {
    let broadcast = Broadcast::new("offer")?
        .payload(json!({ "text": offer.text }))?
        .transaction_id(offer.number)?;
    shop.run(move |env| env.events().broadcast(&broadcast)).await?;
    Ok(Redirect::to("/admin/activity"))
}

impl SignUp {
    // A rule of the shop, refused in the way of the engine: the name is a part of addresses.
    fn customer(self) -> Result<SubscriberCreate> {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        if !self.customer.chars().all(plain) {
            let expected = Reason::malformed("letters, digits and hyphens");
            return Err(Error::invalid("customer", expected));
        }
        let customer = SubscriberCreate::new(self.customer)?.first_name(self.name);
        Ok(customer.email(self.email)?)
    }
}

impl Order {
    fn shipped(&self) -> Result<Trigger> {
        let payload = json!({ "order": self.number, "item": self.item });
        let trigger = Trigger::new("order-shipped", &self.customer)?.payload(payload)?;
        Ok(trigger.transaction_id(format!("order-{}", self.number))?)
    }
}

fn fresh_number(prefix: &str) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{prefix}-{}", since.as_millis())
}
