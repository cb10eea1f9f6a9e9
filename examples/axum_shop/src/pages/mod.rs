//! The pages. `maud` escapes every text that a page shows.
//!
//! Each button is a form, so that the pages need no script. `shop.js` sends the forms in place, and
//! follows the inbox.

mod activity;
mod counter;
mod inbox;
pub(crate) mod message;
mod preferences;
mod unsubscribe;

use axum::Router;
use axum::routing::{get, post};
use maud::{DOCTYPE, Markup, html};

use crate::shop::Shop;

/// Whose page it is, and which link of the header leads to it.
pub(crate) enum Place<'p> {
    Shop,
    Activity,
    Inbox(&'p str),
    Preferences(&'p str),
}

pub(crate) fn routes() -> Router<Shop> {
    Router::new()
        .route("/", get(counter::page))
        .route("/sign-up", post(counter::sign_up))
        .route("/orders", post(counter::order))
        .route("/offers", post(counter::offer))
        .route("/inbox/{customer}", get(inbox::page).post(inbox::act))
        .route("/preferences/{customer}", get(preferences::page).post(preferences::update))
        .route("/unsubscribe", get(unsubscribe::page).post(unsubscribe::switch_off))
        .route("/admin/activity", get(activity::page))
}

/// A whole page.
pub(crate) fn layout(title: &str, place: &Place<'_>, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · The Teapot Shop" }
                link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/assets/shop.css";
                script src="/assets/shop.js" defer {}
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                (header(place))
                main #content tabindex="-1" { (content) }
                p #status role="status" {}
            }
        }
    }
}

/// The path of a customer's page. An id that comes by the JSON interface may have any character.
fn path(page: &str, customer: &str) -> String {
    let escaped = customer.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    });
    format!("/{page}/{}", escaped.collect::<String>())
}

fn header(place: &Place<'_>) -> Markup {
    html! {
        header.bar {
            a.brand href="/" { "The Teapot Shop" }
            nav aria-label="Pages" {
                @for (name, href, is_here) in place.links() {
                    a href=(href) aria-current=[is_here.then_some("page")] { (name) }
                }
            }
        }
    }
}

impl Place<'_> {
    fn links(&self) -> Vec<(&'static str, String, bool)> {
        let customer = match self {
            Self::Inbox(customer) | Self::Preferences(customer) => Some(customer),
            Self::Shop | Self::Activity => None,
        };
        let own = customer.map(|customer| {
            [
                ("Inbox", path("inbox", customer), matches!(self, Self::Inbox(_))),
                (
                    "Preferences",
                    path("preferences", customer),
                    matches!(self, Self::Preferences(_)),
                ),
            ]
        });
        let all = [
            ("Shop", "/".to_owned(), matches!(self, Self::Shop)),
            ("Activity", "/admin/activity".to_owned(), matches!(self, Self::Activity)),
        ];
        own.into_iter().flatten().chain(all).collect()
    }
}
