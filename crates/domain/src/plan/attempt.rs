//! Attempts: the integration, the address and the content of a message for a provider.

use serde_json::Value;

use super::step::RunStep;
use super::targets::Targets;
use super::{Facts, Refusal, Run, RunJob, fail, skip};
use crate::connection::Workspace;
use crate::contact::Email;
use crate::endpoint::Endpoint;
use crate::explain::{Candidate, EvidenceKind, Rejected};
use crate::ids::IntegrationId;
use crate::integration::{self, Integration, Routed};
use crate::job::{Detail, SendTarget};
use crate::json::Object;
use crate::layout::LayoutChoice;
use crate::secret::Secret;
use crate::step::{Rendered, StepKind};
use crate::suppression::{SuppressedAddress, Suppression};
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
    pub others: OtherIntegrations,
    /// Address of the recipient.
    pub address: Address,
    /// Content. `None` if an earlier attempt has rendered it.
    pub rendered: Option<Rendered>,
    /// Destination of a chat or push message.
    pub target: Option<SendTarget>,
    /// Settings of the trigger for the message.
    pub overrides: Object,
}

/// Integrations that may send a message, besides the one that was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherIntegrations {
    /// All of them.
    pub all: Vec<IntegrationId>,
    /// Those that do not take over at once: their circuit is open, or they are paused.
    pub unavailable: Vec<IntegrationId>,
    /// Those that send in place of the chosen one while its circuit is open.
    pub stand_ins: Vec<IntegrationId>,
}

/// Integration that sends a message, and where to.
pub(super) struct Chosen<'a> {
    pub(super) integration: &'a Integration,
    pub(super) address: Result<Address, Refusal>,
    pub(super) others: OtherIntegrations,
    pub(super) target: Option<SendTarget>,
}

/// Decision about an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The message is handed to a provider.
    Send(Box<Dispatch>),
    /// The message has several destinations, and a task of its own sends to each of them.
    Split(Vec<SendTarget>),
    /// The message waits for the next opening of the subscriber's schedule.
    Defer {
        /// Time of the opening.
        due_at: Timestamp,
    },
    /// The message waits until the workflow is resumed.
    WorkflowPaused,
    /// The message waits until the integration that sends it is resumed.
    IntegrationPaused(IntegrationId),
    /// The message waits for the first of these integrations that may be called. The circuits of all that may
    /// send it are open.
    CircuitOpen(Vec<IntegrationId>),
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
    Webhook {
        /// URL.
        url: Secret,
        /// Channel that the platform posts to.
        channel: Option<String>,
    },
    /// Token of a device.
    Device(String),
    /// Channel or user in a workspace.
    Workspace {
        /// Channel or user.
        endpoint: Endpoint,
        /// Workspace of the connection. `None` if there is no connection.
        workspace: Option<Workspace>,
        /// Access token of the connection.
        access_token: Option<Secret>,
    },
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
    if facts.workflow.is_some_and(Workflow::is_paused) {
        return Ok(Attempt::WorkflowPaused);
    }
    step.check_preferences(channel)?;
    if let Some(due_at) = step.send_time(channel)? {
        return Ok(Attempt::Defer { due_at });
    }
    step.dispatch(channel, content)
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

impl<'a> RunStep<'a> {
    fn dispatch(&self, channel: Channel, content: Content) -> Result<Attempt, Refusal> {
        let named = self.overrides(channel, None);
        let named = named.get("integrationIdentifier").and_then(Value::as_str);
        let chosen = match channel {
            Channel::Chat | Channel::Push => match self.targets(channel, named) {
                Ok(Targets::Many(targets)) => return Ok(Attempt::Split(targets)),
                Ok(Targets::One(found)) => Ok(found),
                Err(refusal) => Err(refusal),
            },
            Channel::Email | Channel::Sms | Channel::InApp => self.recipient(channel, named),
        };
        if let Ok(Chosen { integration, .. }) = &chosen
            && let Some(since) = integration.paused_at
        {
            let integration_id = integration.identifier.clone();
            self.note(|| EvidenceKind::Paused { integration: integration_id, since });
            return Ok(Attempt::IntegrationPaused(integration.id));
        }
        // Many messages may wait, so none is rendered before.
        if let Ok(Chosen { integration, others, address: Ok(_), .. }) = &chosen
            && self.run.open.contains(&integration.id)
        {
            return Ok(Attempt::CircuitOpen(others.awaited(integration.id)));
        }
        let rendered = match content {
            Content::New => Some(self.render()?),
            Content::Kept => None,
        };
        let Chosen { integration, address, others, target } = chosen?;
        let overrides = self.overrides(channel, Some(&integration.provider_id));
        let integration = integration.clone();
        let address = address?;
        let dispatch = Dispatch { integration, others, address, rendered, target, overrides };
        Ok(Attempt::Send(Box::new(dispatch)))
    }

    // The integration that sends to the subscriber on a channel with one address.
    fn recipient(&self, channel: Channel, named: Option<&str>) -> Result<Chosen<'a>, Refusal> {
        let (integration, others) = self.integration(channel, named)?;
        Ok(Chosen {
            integration,
            address: self.address(channel, integration),
            others,
            target: None,
        })
    }

    // The integration that sends, and the others that may.
    fn integration(
        &self,
        channel: Channel,
        named: Option<&str>,
    ) -> Result<(&'a Integration, OtherIntegrations), Refusal> {
        let route = self.route(channel, named);
        let next = self.run.tries.next(&route, &self.run.open);
        let ids = || route.iter().map(|routed| routed.integration.id);
        self.note(|| {
            let chosen = next.as_ref().ok().map(|routed| routed.integration.id);
            let waiting: Vec<_> = ids().collect();
            self.candidates(channel, named, (chosen.as_slice(), &waiting))
        });
        let Routed { integration, .. } = next.map_err(|detail| {
            let raw = named.filter(|_| route.is_empty()).map(ToOwned::to_owned);
            Refusal { raw, ..fail(detail) }
        })?;
        let others: Vec<&Integration> = route
            .iter()
            .map(|one| one.integration)
            .filter(|one| one.id != integration.id)
            .collect();
        let ids = |has: &dyn Fn(&Integration) -> bool| {
            others.iter().filter(|one| has(one)).map(|one| one.id).collect()
        };
        let others = OtherIntegrations {
            all: ids(&|_| true),
            unavailable: ids(&|one| one.paused_at.is_some() || self.run.open.contains(&one.id)),
            stand_ins: ids(&|one| {
                one.paused_at.is_none() && self.run.tries.may_stand_in(one.id, integration.id)
            }),
        };
        Ok((integration, others))
    }

    // The integrations that may send to the subscriber, the first choice first. If one has an address of the
    // subscriber, those without are left out: a telephone number may be that of one integration.
    fn route(&self, channel: Channel, named: Option<&str>) -> Vec<Routed<'a>> {
        let all: Vec<&Integration> = self.facts.integrations.iter().map(|one| &**one).collect();
        let route = integration::route(&all, channel, named, &self.filter_facts());
        let reaches = |routed: &&Routed<'_>| self.address(channel, routed.integration).is_ok();
        let reaching: Vec<_> = route.iter().filter(reaches).copied().collect();
        // After a lost answer, no other one sends.
        let is_kept = reaching.is_empty() || self.run.tries.is_unanswered();
        if is_kept { route } else { reaching }
    }

    // The address of the subscriber on a channel with one address. A telephone number at the
    // integration comes before that of the profile.
    fn address(&self, channel: Channel, at: &Integration) -> Result<Address, Refusal> {
        let profile = &self.subscriber.profile;
        let (address, missing) = match channel {
            Channel::Email => (profile.email.clone().map(Address::Email), Detail::MissingEmail),
            Channel::Sms => {
                let own = profile.phone.clone().filter(|phone| !phone.is_empty());
                let phone = self.phone_at(at.id).map(str::to_owned).or(own);
                (phone.map(Address::Phone), Detail::MissingPhone)
            }
            Channel::InApp | Channel::Chat | Channel::Push => (None, Detail::NoActiveIntegration),
        };
        let address = address.ok_or(skip(missing))?;
        match self.suppression(channel, &address) {
            Some(suppression) => Err(skip(Detail::AddressSuppressed).because(suppression.shown())),
            None => Ok(address),
        }
    }
}

impl OtherIntegrations {
    /// Returns the integrations of which the first one that may be called sends next, if the circuit of the
    /// `chosen` one is open.
    pub fn awaited(&self, chosen: IntegrationId) -> Vec<IntegrationId> {
        [chosen].into_iter().chain(self.stand_ins.iter().copied()).collect()
    }
}

impl RunStep<'_> {
    // The suppression of an address.
    fn suppression(&self, channel: Channel, address: &Address) -> Option<&Suppression> {
        let text = match address {
            Address::Email(email) => email.as_str(),
            Address::Phone(number) => number,
            Address::Webhook { .. } | Address::Device(_) | Address::Workspace { .. } => {
                return None;
            }
        };
        let address = SuppressedAddress::new(channel, text).ok()?;
        self.facts.suppressions.iter().find(|one| one.address == address)
    }

    // The number of the oldest endpoint of the subscriber at an integration.
    fn phone_at(&self, id: IntegrationId) -> Option<&str> {
        let mut endpoints = self.facts.endpoints.iter().map(|one| &one.endpoint);
        endpoints.find_map(|one| match &one.endpoint {
            Endpoint::Phone { phone_number } if one.integration_id == id => {
                Some(phone_number.as_str())
            }
            _ => None,
        })
    }

    // Returns the integrations of the channel, each with the reason for which it was not chosen.
    pub(super) fn candidates(
        &self,
        channel: Channel,
        named: Option<&str>,
        (chosen, waiting): (&[IntegrationId], &[IntegrationId]),
    ) -> EvidenceKind {
        let of_channel = self.facts.integrations.iter().filter(|one| one.channel == channel);
        let candidates = of_channel.map(|one| {
            let rejected = match integration::rejected(one, named, &self.filter_facts()) {
                _ if chosen.contains(&one.id) => None,
                Some(rejected) => Some(rejected),
                _ if self.run.open.contains(&one.id) => Some(Rejected::CircuitOpen),
                _ if waiting.contains(&one.id) => Some(Rejected::Waits),
                None => Some(self.unchosen(channel, one)),
            };
            Candidate {
                identifier: one.identifier.clone(),
                provider_id: one.provider_id.clone(),
                rejected,
            }
        });
        EvidenceKind::Integrations { channel, candidates: candidates.collect() }
    }

    // The reason for which an integration that is a candidate was not chosen.
    fn unchosen(&self, channel: Channel, one: &Integration) -> Rejected {
        match channel {
            // A message goes to a number of integrations at most.
            Channel::Push | Channel::Chat if !self.targets_at(one).is_empty() => {
                Rejected::Outranked
            }
            Channel::Push => Rejected::NoAddress { detail: Detail::MissingPushTokens },
            Channel::Chat => Rejected::NoAddress { detail: Detail::MissingChatWebhook },
            Channel::Email | Channel::Sms | Channel::InApp => {
                let missing = self.address(channel, one).err();
                missing.map_or(Rejected::Outranked, |missing| Rejected::NoAddress {
                    detail: missing.detail,
                })
            }
        }
    }
}
