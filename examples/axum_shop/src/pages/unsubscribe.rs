//! The page behind the unsubscribe links of e-mails.

use axum::extract::{Query, State};
use maud::{Markup, html};
use serde::Deserialize;
use tidings::unsubscribe::{UnsubscribedFrom, Unsubscription};

use super::{Place, layout, path};
use crate::failure::PageFailure;
use crate::shop::Shop;

/// The token of a link. It is in the URL of the form, too.
#[derive(Debug, Deserialize)]
pub(super) struct Link {
    token: String,
}

/// Asks. Mail programs open links that nobody has clicked, so that this changes nothing.
pub(super) async fn page(
    State(shop): State<Shop>,
    Query(link): Query<Link>,
) -> Result<Markup, PageFailure> {
    let meaning = shop.run(move |env| env.read_unsubscribe(&link.token)).await?;
    let content = if meaning.subscribed { question(&meaning) } else { done(&meaning) };
    Ok(layout("E-mails", &Place::Shop, &content))
}

/// Switches off. A mail program with a button of its own posts here, too, and sends no cookie and no
/// other field that the page could ask for.
pub(super) async fn switch_off(
    State(shop): State<Shop>,
    Query(link): Query<Link>,
) -> Result<Markup, PageFailure> {
    let meaning = shop.run(move |env| env.unsubscribe(&link.token)).await?;
    Ok(layout("E-mails", &Place::Shop, &done(&meaning)))
}

fn question(meaning: &Unsubscription) -> Markup {
    html! {
        h1 { "No more e-mails?" }
        p.lead { "We send you e-mails about " b { (subject(meaning)) } ". Other messages stay as they are." }
        form.confirm method="post" {
            button.primary { "Unsubscribe" }
        }
    }
}

fn done(meaning: &Unsubscription) -> Markup {
    html! {
        h1 { "You are unsubscribed" }
        p.lead { "We send you no more e-mails about " b { (subject(meaning)) } "." }
        p.confirm {
            a href=(path("preferences", meaning.subscriber_id.as_str())) { "All preferences" }
        }
    }
}

fn subject(meaning: &Unsubscription) -> &str {
    match &meaning.from {
        UnsubscribedFrom::Workflow { workflow, .. } => &workflow.name,
        UnsubscribedFrom::Topic { topic_key, name } => {
            name.as_deref().unwrap_or(topic_key.as_str())
        }
    }
}
