//! The preferences of a customer: the channels that the shop may use, by default and for each
//! workflow.

use axum::extract::{Form, Path, State};
use axum::response::Redirect;
use maud::{Markup, html};
use serde::Deserialize;
use tidings::preference::{
    Criticality, GlobalPreferenceUpdate, Preferences, PreferencesQuery, WorkflowPreference,
    WorkflowPreferenceUpdate, WorkflowPreferenceUpdates,
};
use tidings::vocabulary::Channel;
use tidings::workflow::Workflow;
use tidings::{Result, Scope};

use super::{Place, layout, path};
use crate::failure::PageFailure;
use crate::shop::Shop;
use crate::workflows::CHANNELS;

/// A switch that is moved: a channel of one workflow, or of all without a setting of their own.
#[derive(Debug, Deserialize)]
pub(super) struct Switch {
    workflow: Option<String>,
    channel: Channel,
    enabled: bool,
}

pub(super) async fn page(
    State(shop): State<Shop>,
    Path(customer): Path<String>,
) -> std::result::Result<Markup, PageFailure> {
    let name = customer.clone();
    let (preferences, workflows) = shop.run(move |env| read(env, name)).await?;
    let content = html! {
        h1 { "Preferences" }
        p.lead { "Choose what we tell you, and where." }
        section.switches aria-labelledby="default" {
            div.row {
                div.text {
                    h2 #default { "By default" }
                    p { "For everything that you have not set below." }
                }
                (switches("default", None, |channel| preferences.global.channels.get(channel)))
            }
        }
        section.switches aria-label="By subject" {
            @for (preference, workflow) in preferences.workflows.iter().zip(&workflows) {
                (row(preference, workflow))
            }
        }
    };
    Ok(layout("Preferences", &Place::Preferences(&customer), &content))
}

pub(super) async fn update(
    State(shop): State<Shop>,
    Path(customer): Path<String>,
    Form(switch): Form<Switch>,
) -> std::result::Result<Redirect, PageFailure> {
    let back = path("preferences", &customer);
    shop.run(move |env| switch.store(env, customer)).await?;
    Ok(Redirect::to(&back))
}

fn read(env: &Scope, customer: String) -> Result<(Preferences, Vec<Workflow>)> {
    let mut all = PreferencesQuery::default();
    all.criticality = Criticality::All;
    let preferences = env.preferences(customer)?.get(&all)?;
    let names = preferences.workflows.iter().map(|one| one.workflow.identifier.clone());
    let workflows = names.map(|name| env.workflows().get(name)).collect::<Result<_>>()?;
    Ok((preferences, workflows))
}

impl Switch {
    fn store(&self, env: &Scope, customer: String) -> Result<()> {
        let preferences = env.preferences(customer)?;
        if let Some(workflow) = &self.workflow {
            let one = WorkflowPreferenceUpdate::new(workflow).with(self.channel, self.enabled);
            preferences.update_bulk(&WorkflowPreferenceUpdates::default().preference(one)).map(drop)
        } else {
            let all = GlobalPreferenceUpdate::default().with(self.channel, self.enabled);
            preferences.update_global(&all).map(drop)
        }
    }
}

fn row(preference: &WorkflowPreference, workflow: &Workflow) -> Markup {
    let identifier = preference.workflow.identifier.as_str();
    let setting = |channel| preference.channels.get(channel);
    html! {
        div.row {
            div.text {
                h2 #(identifier) { (preference.workflow.name) }
                p { (workflow.description) }
            }
            @if workflow.critical {
                p.always { "Always on" }
            } @else {
                (switches(identifier, Some(identifier), setting))
            }
        }
    }
}

// Each switch is a button of its own form, so that it works without the script.
fn switches(
    label: &str,
    workflow: Option<&str>,
    setting: impl Fn(Channel) -> Option<bool>,
) -> Markup {
    html! {
        div.channels {
            @for (channel, name) in CHANNELS {
                @let on = setting(channel).unwrap_or(true);
                @let id = format!("{label}-{channel}");
                form method="post" {
                    @if let Some(workflow) = workflow {
                        input type="hidden" name="workflow" value=(workflow);
                    }
                    input type="hidden" name="channel" value=(channel);
                    span #(id) { (name) }
                    button.switch role="switch" name="enabled" value=(!on) aria-checked=(on)
                        aria-labelledby={ (id) " " (label) } {}
                }
            }
        }
    }
}
