//! The front page: customers sign up and order here.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{Form, State};
use axum::response::Redirect;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;
use tidings::error::Reason;
use tidings::subscriber::SubscriberCreate;
use tidings::trigger::Trigger;
use tidings::{Error, Result};

use super::layout;
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

pub(super) async fn page() -> Markup {
    let content = html! {
        h2 { "Sign up" }
        form method="post" action="/sign-up" {
            label { "User name " input name="customer" required; }
            label { "First name " input name="name" required; }
            label { "E-mail " input name="email" type="email" required; }
            button { "Sign up" }
        }
        h2 { "Order" }
        form method="post" action="/orders" {
            // A form that is sent twice is one order.
            input type="hidden" name="number" value=(fresh_number());
            label { "User name " input name="customer" required; }
            label { "Item " input name="item" value="A blue teapot" required; }
            button { "Order" }
        }
    };
    layout("A small shop", &content)
}

pub(super) async fn sign_up(
    State(shop): State<Shop>,
    Form(form): Form<SignUp>,
) -> Result<Redirect, PageFailure> {
    let inbox = format!("/inbox/{}", form.customer);
    let customer = form.customer()?;
    let welcome = Trigger::new("welcome", &customer.subscriber_id)?;
    shop.trigger(move |env| {
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
    let inbox = format!("/inbox/{}", order.customer);
    shop.trigger(move |env| {
        // A trigger creates a subscriber who is not there, and a shop does not want that.
        env.subscribers().get(&order.customer)?;
        env.events().trigger(&shipped)
    })
    .await?;
    Ok(Redirect::to(&inbox))
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

fn fresh_number() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("A-{}", since.as_millis())
}
