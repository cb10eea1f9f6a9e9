//! Targets: the destinations of a chat or push message.

use serde_json::Value;

use super::attempt::{Address, Chosen, OtherIntegrations};
use super::step::RunStep;
use super::{Refusal, fail, skip};
use crate::connection::ChannelConnection;
use crate::endpoint::{ChannelEndpoint, Endpoint};
use crate::integration::{Choice, Integration, Routed, is_candidate};
use crate::job::{Destination, Detail, SendTarget};
use crate::step::StepDefinition;
use crate::vocabulary::Channel;

/// Endpoint of the subscriber, with the connection to its workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectedEndpoint {
    /// Endpoint.
    pub endpoint: ChannelEndpoint,
    /// Connection to its workspace.
    pub connection: Option<ChannelConnection>,
}

/// Destination that was found, with its address.
pub(super) struct Target<'a> {
    integration: &'a Integration,
    place: SendTarget,
    address: Address,
}

/// Choice among the destinations of a message.
pub(super) enum Targets<'a> {
    /// The message has one destination.
    One(Chosen<'a>),
    /// The message has several, and each is sent to by a task of its own.
    Many(Vec<SendTarget>),
}

impl<'a> RunStep<'a> {
    /// Returns the destinations of a message on `channel`: the one that the task names, or that an earlier
    /// attempt has called when there was no other one, or all.
    pub(super) fn targets(
        &self,
        channel: Channel,
        named: Option<&str>,
    ) -> Result<Targets<'a>, Refusal> {
        let at = |place: &SendTarget| {
            let mut all = self.found_targets(channel, named).flatten();
            all.find(|found| found.place == *place)
        };
        if let Some(wanted) = &self.run.target {
            return self.answered(at(wanted).ok_or_else(|| self.unreached(channel, named))?);
        }
        if let Some(called) = self.run.tries.called() {
            if let Some(found) = at(called) {
                return self.answered(found);
            }
            // Its recipient may have the message.
            if self.run.tries.is_unanswered() {
                return Err(fail(Detail::AnswerLost));
            }
        }
        let found = self.found_targets(channel, named).take(StepDefinition::MAX_INTEGRATIONS);
        let mut all: Vec<_> = found.flatten().take(StepDefinition::MAX_DESTINATIONS).collect();
        self.note(|| {
            let chosen: Vec<_> = all.iter().map(|found| found.integration.id).collect();
            self.candidates(channel, named, (&chosen, &[]))
        });
        // The key of the message is that of the destination which was called and is gone.
        if all.len() > 1 || (self.run.tries.called().is_some() && !all.is_empty()) {
            // Each of them would get the message under another key.
            if self.run.tries.is_unanswered() {
                return Err(fail(Detail::AnswerLost));
            }
            return Ok(Targets::Many(all.into_iter().map(|found| found.place).collect()));
        }
        match all.pop() {
            Some(found) => self.answered(found),
            None => Err(self.unreached(channel, named)),
        }
    }

    // Refuses a destination if the answer to an earlier call was lost, and that was the last one.
    fn answered(&self, found: Target<'a>) -> Result<Targets<'a>, Refusal> {
        let routed = Routed { integration: found.integration, choice: Choice::Newest };
        self.run.tries.next(&[routed], &[]).map_err(fail)?;
        let Target { integration, place, address } = found;
        let (address, target) = (Ok(address), Some(place));
        let others = OtherIntegrations::default();
        Ok(Targets::One(Chosen { integration, address, others, target }))
    }

    // The destinations at each integration that has some.
    fn found_targets(
        &self,
        channel: Channel,
        named: Option<&str>,
    ) -> impl Iterator<Item = Vec<Target<'a>>> {
        let all = self.facts.integrations.iter().map(|one| &**one);
        let facts = self.filter_facts();
        let sending = all.filter(move |one| is_candidate(one, channel, named, &facts));
        sending.map(|one| self.targets_at(one)).filter(|found| !found.is_empty())
    }

    /// Returns the destinations at an integration.
    pub(super) fn targets_at<'i>(&self, integration: &'i Integration) -> Vec<Target<'i>> {
        let target = |to, address| Target {
            integration,
            place: SendTarget::new(integration.id, to),
            address,
        };
        let mut found = Vec::new();
        let settings = self.subscriber.profile.channels.iter();
        for settings in settings.filter(|settings| settings.integration_id == integration.id) {
            let credentials = &settings.credentials;
            // What was stored by an earlier version may be empty.
            let url = credentials.webhook_url.as_ref().filter(|url| !url.expose().is_empty());
            if let (Channel::Chat, Some(url)) = (integration.channel, url) {
                let (url, channel) = (url.clone(), credentials.channel.clone());
                found.push(target(Destination::Webhook, Address::Webhook { url, channel }));
            }
            if integration.channel == Channel::Push {
                for token in credentials.device_tokens.iter().filter(|token| !token.is_empty()) {
                    let to = Destination::Device { token: token.clone() };
                    found.push(target(to, Address::Device(token.clone())));
                }
            }
        }
        let own =
            |connected: &&ConnectedEndpoint| connected.endpoint.integration_id == integration.id;
        for connected in self.facts.endpoints.iter().filter(own) {
            let identifier = connected.endpoint.identifier.clone();
            found.push(target(Destination::Endpoint { identifier }, Address::of(connected)));
        }
        let mut seen = std::collections::BTreeSet::new();
        found.retain(|found| seen.insert(found.place.to.clone()));
        found
    }

    // The reason for which there is no destination. A task with a destination depends on the integration
    // of that one only, since the others have tasks of their own.
    fn unreached(&self, channel: Channel, named: Option<&str>) -> Refusal {
        let wanted = self.run.target.as_ref();
        let is_wanted = |one: &Integration| wanted.is_none_or(|to| to.integration_id == one.id);
        let facts = self.filter_facts();
        let mut all = self.facts.integrations.iter();
        let is_there = all.any(|one| is_wanted(one) && is_candidate(one, channel, named, &facts));
        match (is_there, channel) {
            (true, _) if wanted.is_some() => skip(Detail::RecipientRemoved),
            (true, Channel::Push) => skip(Detail::MissingPushTokens),
            (true, _) => skip(Detail::MissingChatWebhook),
            (false, _) => {
                Refusal { raw: named.map(ToOwned::to_owned), ..fail(Detail::NoActiveIntegration) }
            }
        }
    }
}

impl Address {
    /// Returns `true` if the address contains a server that the recipient has chosen: a webhook, or the
    /// push service of a browser.
    #[doc(hidden)]
    pub fn names_server(&self) -> bool {
        match self {
            Address::Webhook { .. } => true,
            // The token of a browser is a JSON object with the URL of its push service.
            Address::Device(token) => serde_json::from_str::<Value>(token)
                .is_ok_and(|token| token.get("endpoint").is_some()),
            Address::Email(_) | Address::Phone(_) | Address::Workspace { .. } => false,
        }
    }

    /// Returns `true` if the address is that of an endpoint.
    #[doc(hidden)]
    pub fn is_at(&self, place: &Endpoint) -> bool {
        match (self, place) {
            (_, Endpoint::Webhook { url, .. }) => self.is_webhook(url.expose()),
            (Address::Phone(number), Endpoint::Phone { phone_number }) => {
                number == phone_number.as_str()
            }
            (Address::Workspace { endpoint, .. }, place) => endpoint == place,
            _ => false,
        }
    }

    /// Returns `true` if the address is a webhook with that URL.
    pub(crate) fn is_webhook(&self, other: &str) -> bool {
        matches!(self, Address::Webhook { url, .. } if url.expose() == other)
    }

    // The address of an endpoint.
    fn of(connected: &ConnectedEndpoint) -> Self {
        let connection = connected.connection.as_ref();
        match &connected.endpoint.endpoint {
            Endpoint::Webhook { url, channel } => Address::Webhook {
                url: url.expose().into(),
                channel: channel.as_ref().map(ToString::to_string),
            },
            Endpoint::Phone { phone_number } => Address::Phone(phone_number.as_str().into()),
            place @ (Endpoint::SlackChannel { .. }
            | Endpoint::SlackUser { .. }
            | Endpoint::MsTeamsChannel { .. }
            | Endpoint::MsTeamsUser { .. }) => Address::Workspace {
                endpoint: place.clone(),
                workspace: connection.map(|connection| connection.workspace.clone()),
                access_token: connection.map(|connection| connection.auth.access_token.clone()),
            },
        }
    }
}
