//! Attempts: the integration, the address and the content of a message for a provider.

use serde_json::Value;

use super::step::RunStep;
use super::{Facts, Refusal, Run, RunJob, fail, skip};
use crate::contact::Email;
use crate::explain::{Candidate, FindingKind, Rejected};
use crate::ids::IntegrationId;
use crate::integration::{self, Integration, Routed};
use crate::job::Detail;
use crate::json::Object;
use crate::layout::LayoutChoice;
use crate::schedule::Timing;
use crate::secret::Secret;
use crate::step::{Rendered, StepKind};
use crate::subscriber::Profile;
use crate::time::Timestamp;
use crate::trigger::overrides;
use crate::vocabulary::Channel;
use crate::workflow::Workflow;

/// Message for a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// Integration that sends the message.
    pub integration: Integration,
    /// The other integrations that may send it.
    pub others: Vec<IntegrationId>,
    /// Address of the recipient.
    pub address: Address,
    /// Content. `None` if an earlier attempt has rendered it.
    pub rendered: Option<Rendered>,
    /// Settings of the trigger for the message.
    pub overrides: Object,
}

/// Decision about an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The message is handed to a provider.
    Send(Box<Dispatch>),
    /// The message waits for the next opening of the subscriber's schedule.
    Defer {
        /// Time of the opening.
        due_at: Timestamp,
    },
    /// The message waits until what is paused is resumed.
    Hold(Hold),
}

/// What is paused, so that work waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The workflow.
    Workflow,
    /// The integration that sends the message.
    Integration(IntegrationId),
}

/// Returns what keeps the work of a notification from being done for the time being.
pub const fn hold(workflow: Option<&Workflow>) -> Option<Hold> {
    match workflow {
        Some(workflow) if workflow.is_paused() => Some(Hold::Workflow),
        Some(_) | None => None,
    }
}

/// Content of the message of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The attempt renders it.
    New,
    /// An earlier attempt has rendered it.
    Kept,
}

/// Address of a recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// E-mail address.
    Email(Email),
    /// Telephone number.
    Phone(String),
    /// Webhook of a chat provider.
    Webhook(Secret),
    /// Device tokens of a push provider.
    Devices(Vec<String>),
}

/// Decides an attempt to send the message of `job`. Refuses a message that must not or cannot be
/// sent any more. The conditions of the step were decided in the turn of the job.
pub fn attempt(
    run: &Run<'_>,
    job: RunJob,
    facts: Facts<'_>,
    content: Content,
) -> Result<Attempt, Refusal> {
    let step = RunStep::new(run, job, facts, &run.results)?;
    let channel = step.step.definition.kind.channel();
    let channel = channel.ok_or(fail(Detail::ContentNotGenerated))?;
    if let Some(hold) = hold(facts.workflow) {
        return Ok(Attempt::Hold(hold));
    }
    step.check_preferences(channel)?;
    match step.timing(channel) {
        Timing::Now => {}
        Timing::At(due_at) => return Ok(Attempt::Defer { due_at }),
        Timing::Drop => return Err(skip(Detail::OutsideSchedule)),
        Timing::Never => return Err(skip(Detail::ScheduleNeverOpens)),
    }
    let chosen = step.integration(channel);
    if let Ok((integration, _)) = &chosen
        && integration.is_paused()
    {
        return Ok(Attempt::Hold(Hold::Integration(integration.id)));
    }
    let rendered = match content {
        Content::New => Some(step.render()?),
        Content::Kept => None,
    };
    let (integration, others) = chosen?;
    let address = address(&step.subscriber.profile, integration)?;
    let integration = integration.clone();
    let overrides = step.overrides(channel, Some(&integration.provider_id));
    Ok(Attempt::Send(Box::new(Dispatch { integration, others, address, rendered, overrides })))
}

/// Returns the layout that the message of `job` wants. One that is not sent wants none.
pub fn layout(run: &Run<'_>, job: RunJob, facts: Facts<'_>) -> LayoutChoice {
    RunStep::new(run, job, facts, &run.results).map_or(LayoutChoice::None, |step| {
        overrides::layout(run.overrides, step.step, &|| step.filter_facts())
    })
}

/// Decides the call of a custom step. Returns the name of the function.
pub fn call<'a>(run: &'a Run<'a>, job: RunJob, facts: Facts<'a>) -> Result<&'a str, Refusal> {
    let step = RunStep::new(run, job, facts, &run.results)?;
    match &step.step.definition.kind {
        StepKind::Custom { metadata } => Ok(&metadata.handler),
        _ => Err(fail(Detail::HandlerMissing)),
    }
}

/// Decides whether a message is sent again that its provider does not accept at the moment.
pub const fn again(canceled: bool) -> Result<(), Refusal> {
    if canceled { Err(super::canceled()) } else { Ok(()) }
}

impl<'a> RunStep<'a> {
    // The integration that sends, and the others that may.
    fn integration(
        &self,
        channel: Channel,
    ) -> Result<(&'a Integration, Vec<IntegrationId>), Refusal> {
        let overrides = self.overrides(channel, None);
        let named = overrides.get("integrationIdentifier").and_then(Value::as_str);
        let route = self.route(channel, named);
        let next = self.run.tries.next(&route);
        self.note(|| {
            let chosen = next.as_ref().ok().map(|routed| routed.integration);
            self.candidates(channel, (named, &route), chosen)
        });
        let Routed { integration, .. } = next.map_err(|detail| {
            let raw = named.filter(|_| route.is_empty()).map(ToOwned::to_owned);
            Refusal { raw, ..fail(detail) }
        })?;
        let ids = route.iter().map(|routed| routed.integration.id);
        Ok((integration, ids.filter(|id| *id != integration.id).collect()))
    }

    fn route(&self, channel: Channel, named: Option<&str>) -> Vec<Routed<'a>> {
        let all: Vec<&Integration> = self.facts.integrations.iter().map(|one| &**one).collect();
        let reaches = |one: &&Integration| address(&self.subscriber.profile, one).is_ok();
        let reaching: Vec<_> = all.iter().copied().filter(reaches).collect();
        let route = |among: &[_]| integration::route(among, channel, named, &self.filter_facts());
        // An integration without an address of the subscriber is the last choice.
        let found = route(&reaching);
        if found.is_empty() { route(&all) } else { found }
    }
}

impl RunStep<'_> {
    // Returns the integrations of the channel, each with the reason for which it was not chosen.
    fn candidates(
        &self,
        channel: Channel,
        (named, route): (Option<&str>, &[Routed<'_>]),
        chosen: Option<&Integration>,
    ) -> FindingKind {
        let is_in = |one: &Integration| route.iter().any(|routed| routed.integration.id == one.id);
        let of_channel = self.facts.integrations.iter().filter(|one| one.channel == channel);
        let candidates = of_channel.map(|one| {
            let objection = integration::objection(one, channel, named, &self.filter_facts());
            let missing = || address(&self.subscriber.profile, one).err();
            let rejected = match objection {
                _ if chosen.is_some_and(|chosen| chosen.id == one.id) => None,
                _ if is_in(one) => Some(Rejected::Waits),
                Some(objection) => Some(Rejected::from(objection)),
                None => Some(missing().map_or(Rejected::Outranked, |missing| {
                    Rejected::NoAddress { detail: missing.detail }
                })),
            };
            Candidate {
                identifier: one.identifier.clone(),
                provider_id: one.provider_id.clone(),
                rejected,
            }
        });
        FindingKind::Integrations { channel, candidates: candidates.collect() }
    }
}

fn address(profile: &Profile, integration: &Integration) -> Result<Address, Refusal> {
    let mut settings = profile.channels.iter();
    let credentials = settings
        .find(|settings| settings.integration_id == integration.id)
        .map(|settings| settings.credentials.clone())
        .unwrap_or_default();
    let (address, missing) = match integration.channel {
        Channel::InApp => (None, Detail::NoActiveIntegration),
        Channel::Email => (profile.email.clone().map(Address::Email), Detail::MissingEmail),
        Channel::Sms => {
            let phone = profile.phone.clone().filter(|phone| !phone.is_empty());
            (phone.map(Address::Phone), Detail::MissingPhone)
        }
        Channel::Chat => {
            (credentials.webhook_url.map(Address::Webhook), Detail::MissingChatWebhook)
        }
        Channel::Push => {
            let tokens = Some(credentials.device_tokens).filter(|tokens| !tokens.is_empty());
            (tokens.map(Address::Devices), Detail::MissingPushTokens)
        }
    };
    address.ok_or(skip(missing))
}
