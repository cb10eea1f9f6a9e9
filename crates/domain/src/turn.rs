//! The turn of a job: whether and how its step is run, decided from facts alone.

use std::borrow::Cow;

use serde_json::Value;

use crate::contact::Email;
use crate::context::Context;
use crate::filter::{self, FilterFacts};
use crate::integration::{self, Integration};
use crate::job::{Detail, Job};
use crate::json::Object;
use crate::known::{Known, about};
use crate::notification::Notification;
use crate::preference::{ConditionData, Layer, Layers, Preference, resolve};
use crate::secret::Secret;
use crate::step::{Rendered, WorkflowStep};
use crate::subscriber::{Profile, Subscriber};
use crate::vocabulary::Channel;
use crate::workflow::Workflow;

/// Everything that a turn depends on, gathered when it comes.
#[derive(Clone, Copy, Debug)]
pub struct StepFacts<'a> {
    /// Whom the notification is for, unless the subscriber was deleted.
    pub subscriber: Option<&'a Subscriber>,
    /// The workflow that it is from, unless it was deleted.
    pub workflow: Option<&'a Workflow>,
    /// The contexts that it is about.
    pub contexts: &'a [Context],
    /// What the subscriber said about every workflow.
    pub global: Option<&'a Preference>,
    /// What the subscriber said about this workflow.
    pub specific: Option<&'a Preference>,
    /// The integrations of the environment.
    pub integrations: &'a [Integration],
}

/// A job whose turn has come is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Whether that is as it should be.
    pub kind: RefusalKind,
    /// What stood against it.
    pub detail: Detail,
    /// More about it, as text.
    pub raw: Option<String>,
}

/// Whether it is as it should be that a job is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// A rule says that it should not be done.
    Skip,
    /// It should be done, and cannot be.
    Fail,
}

/// A message on its way to a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The account that it goes through.
    pub integration: Integration,
    /// Where it goes.
    pub address: Address,
    /// What it says.
    pub rendered: Rendered,
}

/// Where a message goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// To an e-mail address.
    Email(Email),
    /// To a telephone.
    Phone(String),
    /// To the address that a chat provider listens at.
    Webhook(Secret),
    /// To the devices that a push provider knows.
    Devices(Vec<String>),
}

/// What the message of `job`, a job of `notification`, says, if it is to be sent at all.
pub fn render(
    job: &Job,
    notification: &Notification,
    facts: StepFacts<'_>,
) -> Result<Rendered, Refusal> {
    let turn = Turn::new(job, notification, facts)?;
    turn.render(&turn.filter_facts())
}

/// What the message of `job`, a job of `notification`, says and how it is sent, if it is to be
/// sent at all.
pub fn dispatch(
    job: &Job,
    notification: &Notification,
    facts: StepFacts<'_>,
) -> Result<Dispatch, Refusal> {
    let turn = Turn::new(job, notification, facts)?;
    let rendered = turn.render(&turn.filter_facts())?;
    let integration = turn.integration()?;
    let address = address(&turn.subscriber.profile, integration)?;
    Ok(Dispatch { integration: integration.clone(), address, rendered })
}

// A job whose subscriber, workflow and step are there.
struct Turn<'a> {
    notification: &'a Notification,
    facts: StepFacts<'a>,
    subscriber: &'a Subscriber,
    workflow: &'a Workflow,
    step: &'a WorkflowStep,
    channel: Channel,
    about: Object,
    payload: Cow<'a, Object>,
}

impl<'a> Turn<'a> {
    fn new(
        job: &Job,
        notification: &'a Notification,
        facts: StepFacts<'a>,
    ) -> Result<Self, Refusal> {
        let subscriber = facts.subscriber.ok_or(skip(Detail::SubscriberDeleted))?;
        let workflow = facts.workflow.ok_or(skip(Detail::WorkflowDeleted))?;
        let step = workflow.step(job.step.id).ok_or(skip(Detail::StepDeleted))?;
        if !step.definition.active {
            return Err(skip(Detail::StepInactive));
        }
        let channel = step.definition.kind.channel().ok_or(fail(Detail::ContentNotGenerated))?;
        let payload = notification.payload.as_ref().map(Cow::Borrowed).unwrap_or_default();
        let about = about(subscriber);
        Ok(Self { notification, facts, subscriber, workflow, step, channel, about, payload })
    }

    fn known(&self) -> Known<'_> {
        Known::new(&self.about, &self.payload, self.facts.contexts, self.workflow)
    }

    fn filter_facts(&self) -> FilterFacts<'_> {
        FilterFacts { subscriber: &self.about, payload: &self.payload }
    }

    // Conditions come before preferences, and both before the content: what is not to be sent need
    // not render.
    fn render(&self, facts: &FilterFacts<'_>) -> Result<Rendered, Refusal> {
        self.admit(facts)?;
        self.prefer()?;
        match self.step.render(facts, self.known()) {
            Some(Ok(rendered)) => Ok(rendered),
            Some(Err(error)) => Err(fail(Detail::ContentNotGenerated).because(error.to_string())),
            None => Err(fail(Detail::ContentNotGenerated)),
        }
    }

    fn admit(&self, facts: &FilterFacts<'_>) -> Result<(), Refusal> {
        let report = filter::evaluate(&self.step.definition.filters, facts);
        if report.holds {
            return Ok(());
        }
        let report = serde_json::to_string(&report).unwrap_or_default();
        Err(skip(Detail::FilteredByStepConditions).because(report))
    }

    fn prefer(&self) -> Result<(), Refusal> {
        let layers = self.workflow.layers(self.facts.global, self.facts.specific);
        let data = layers.have_conditions().then(|| self.known().data());
        let known = data.as_ref().map_or(ConditionData::Missing, ConditionData::Known);
        let verdict = resolve(Layers { data: known, ..layers }, self.channel);
        if verdict.is_enabled() {
            return Ok(());
        }
        Err(skip(match verdict.decided_by() {
            Layer::Default | Layer::Definition | Layer::Dashboard => {
                Detail::FilteredByWorkflowPreference
            }
            Layer::SubscriberGlobal => Detail::FilteredBySubscriberGlobalPreference,
            Layer::SubscriberWorkflow => Detail::FilteredBySubscriberWorkflowPreference,
        }))
    }

    fn integration(&self) -> Result<&'a Integration, Refusal> {
        let overrides = self.notification.overrides.as_ref();
        let named = overrides
            .and_then(|overrides| overrides.get(self.channel.as_str()))
            .and_then(|channel| channel.get("integrationIdentifier"))
            .and_then(Value::as_str);
        let all: Vec<_> = self.facts.integrations.iter().collect();
        let reaches = |one: &&Integration| address(&self.subscriber.profile, one).is_ok();
        let reaching: Vec<_> = all.iter().copied().filter(reaches).collect();
        let choose =
            |among: &[_]| integration::choose(among, self.channel, named, &self.filter_facts());
        // What does not reach the subscriber is chosen only where nothing else does.
        let chosen = choose(&reaching).or_else(|| choose(&all));
        chosen.ok_or_else(|| {
            let raw = named.map(ToOwned::to_owned);
            Refusal { raw, ..fail(Detail::NoActiveIntegration) }
        })
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

const fn skip(detail: Detail) -> Refusal {
    Refusal { kind: RefusalKind::Skip, detail, raw: None }
}

const fn fail(detail: Detail) -> Refusal {
    Refusal { kind: RefusalKind::Fail, detail, raw: None }
}

impl Refusal {
    /// What the job depends on is not there any more.
    pub const fn gone() -> Self {
        skip(Detail::WorkflowDeleted)
    }

    fn because(self, raw: String) -> Self {
        Self { raw: Some(raw), ..self }
    }
}

#[cfg(test)]
mod tests;
