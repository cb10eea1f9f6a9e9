//! The activity page of the people who run the shop: what was triggered, and what came of it.

use axum::extract::{RawQuery, State};
use maud::{Markup, html};
use tidings::job::Job;
use tidings::notification::{Notification, NotificationPage, NotificationQuery};
use tidings::query;

use super::message::moment;
use super::{Place, layout};
use crate::failure::PageFailure;
use crate::shop::Shop;

// The filters of the form: the name in the query, a label and a type. The query has more of them.
const FILTERS: [(&str, &str, &str); 5] = [
    ("subscriberIds", "Customer", "text"),
    ("templates", "Workflow", "text"),
    ("channels", "Channel", "text"),
    ("after", "From", "date"),
    ("before", "Until", "date"),
];

pub(super) async fn page(
    State(shop): State<Shop>,
    RawQuery(raw): RawQuery,
) -> Result<Markup, PageFailure> {
    let raw = raw.unwrap_or_default();
    // Empty fields of the form say nothing, and an unknown one is refused.
    let query: NotificationQuery = query::read(&raw)?;
    let found = shop.run(move |env| env.notifications().list(&query)).await?;
    let content = html! {
        h1 { "Activity" }
        form.filters {
            @for (name, label, kind) in FILTERS {
                label { (label) input name=(name) type=(kind); }
            }
            button { "Filter" }
        }
        div.wide tabindex="0" role="region" aria-label="Notifications" {
            table {
                thead {
                    tr {
                        @for head in ["Time", "Workflow", "Customer", "What came of it"] {
                            th scope="col" { (head) }
                        }
                    }
                }
                tbody {
                    @for notification in &found.data {
                        (row(notification))
                    }
                }
            }
        }
        @if found.data.is_empty() {
            p.empty { "Nothing was triggered." }
        }
        (pages(&raw, &found))
    };
    Ok(layout("Activity", &Place::Activity, &content))
}

fn row(notification: &Notification) -> Markup {
    let subscriber = notification.subscriber.as_ref();
    html! {
        tr.notification {
            td { (moment(notification.created_at)) }
            td { @if let Some(workflow) = &notification.workflow { (workflow.name) } }
            td { @if let Some(customer) = subscriber { (customer.subscriber_id) } }
            td {
                @for job in &notification.jobs {
                    p.job { b { (job.kind) } " " (outcome(job)) }
                }
            }
        }
    }
}

// The last entry of the log says why a message was not sent, or how it was.
fn outcome(job: &Job) -> Markup {
    html! {
        @if let Some(last) = job.execution_details.last() {
            (last.detail)
            @if let Some(raw) = &last.raw { " (" (raw) ")" }
        }
    }
}

fn pages(raw: &str, found: &NotificationPage) -> Markup {
    html! {
        p.older {
            @if let Some(newer) = found.page.checked_sub(1) {
                a href={ "?" (on_page(raw, newer)) } { "Newer" }
            }
            @if found.has_more {
                a href={ "?" (on_page(raw, found.page + 1)) } { "Older" }
            }
        }
    }
}

// The same query on another page.
fn on_page(raw: &str, page: u32) -> String {
    let filters = raw.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("page="));
    filters.map(str::to_owned).chain([format!("page={page}")]).collect::<Vec<_>>().join("&")
}
