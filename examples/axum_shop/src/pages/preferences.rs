//! The preferences of a customer: for each workflow, the channels that it may use.

use axum::extract::{Form, Path, State};
use axum::response::Redirect;
use maud::{Markup, html};
use serde::Deserialize;
use tidings::preference::{
    BulkPreference, BulkPreferences, PreferenceChannels, PreferencesQuery, WorkflowPreference,
};
use tidings::vocabulary::Channel;

use super::{customer_links, layout};
use crate::failure::PageFailure;
use crate::shop::Shop;
use crate::workflows::CHANNELS;

/// A workflow and its boxes. A box that is not ticked is not in the form.
#[derive(Debug, Deserialize)]
pub(super) struct Update {
    workflow: String,
    in_app: Option<String>,
    email: Option<String>,
}

pub(super) async fn page(
    State(shop): State<Shop>,
    Path(customer): Path<String>,
) -> Result<Markup, PageFailure> {
    let links = customer_links(&customer);
    let preferences =
        shop.run(move |env| env.preferences(customer)?.get(&PreferencesQuery::default())).await?;
    let content = html! {
        (links)
        @for workflow in &preferences.workflows {
            (form(workflow))
        }
    };
    Ok(layout("Preferences", &content))
}

pub(super) async fn update(
    State(shop): State<Shop>,
    Path(customer): Path<String>,
    Form(update): Form<Update>,
) -> Result<Redirect, PageFailure> {
    let back = format!("/preferences/{customer}");
    let update = update.preferences();
    shop.run(move |env| env.preferences(customer)?.update_bulk(&update)).await?;
    Ok(Redirect::to(&back))
}

impl Update {
    fn preferences(&self) -> BulkPreferences {
        let workflow = BulkPreference::new(&self.workflow)
            .with(Channel::InApp, self.in_app.is_some())
            .with(Channel::Email, self.email.is_some());
        BulkPreferences::default().preference(workflow)
    }
}

fn form(preference: &WorkflowPreference) -> Markup {
    html! {
        form method="post" {
            h2 { (preference.workflow.name) }
            input type="hidden" name="workflow" value=(preference.workflow.identifier);
            @for channel in CHANNELS {
                label {
                    input type="checkbox" name=(channel) checked[on(preference.channels, channel)];
                    " " (channel)
                }
            }
            button { "Save" }
        }
    }
}

fn on(channels: PreferenceChannels, channel: Channel) -> bool {
    channels.get(channel).unwrap_or(true)
}
