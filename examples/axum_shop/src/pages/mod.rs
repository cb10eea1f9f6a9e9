//! The pages. `maud` escapes every text that a page shows.

mod activity;
mod counter;
mod inbox;
mod preferences;

use axum::Router;
use axum::routing::{get, post};
use maud::{DOCTYPE, Markup, html};

use crate::shop::Shop;

const STYLE: &str = include_str!("style.css");

pub(crate) fn routes() -> Router<Shop> {
    Router::new()
        .route("/", get(counter::page))
        .route("/sign-up", post(counter::sign_up))
        .route("/orders", post(counter::order))
        .route("/inbox/{customer}", get(inbox::page).post(inbox::read))
        .route("/preferences/{customer}", get(preferences::page).post(preferences::update))
        .route("/admin/activity", get(activity::page))
}

/// A whole page.
pub(crate) fn layout(title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (title) }
                style { (maud::PreEscaped(STYLE)) }
            }
            body {
                nav { a href="/" { "Shop" } " " a href="/admin/activity" { "Activity" } }
                h1 { (title) }
                (content)
            }
        }
    }
}

/// The links between the pages of a customer.
fn customer_links(customer: &str) -> Markup {
    html! {
        p {
            a href={ "/inbox/" (customer) } { "Inbox" } " "
            a href={ "/preferences/" (customer) } { "Preferences" }
        }
    }
}
