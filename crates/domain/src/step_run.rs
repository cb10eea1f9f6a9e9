//! Runs of steps: the decision whether a job runs, with the content and the address of its message.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

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

/// Facts that the run of a job depends on.
#[derive(Clone, Copy, Debug)]
pub struct StepFacts<'a> {
    /// Subscriber of the notification. `None` if it was deleted.
    pub subscriber: Option<&'a Subscriber>,
    /// Workflow of the notification. `None` if it was deleted.
    pub workflow: Option<&'a Workflow>,
    /// Contexts of the notification.
    pub contexts: &'a [Context],
    /// Preference of the subscriber for every workflow.
    pub global: Option<&'a Preference>,
    /// Preference of the subscriber for this workflow.
    pub specific: Option<&'a Preference>,
    /// Integrations of the environment.
    pub integrations: &'a [Arc<Integration>],
}

/// Reason for not running a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Kind of refusal.
    pub kind: RefusalKind,
    /// Entry for the log.
    pub detail: Detail,
    /// Details, as text.
    pub raw: Option<String>,
}

/// Kind of refusal of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// A rule skips the job.
    Skip,
    /// The job should run, but cannot.
    Fail,
}

/// Message for a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// Integration that sends the message.
    pub integration: Integration,
    /// Address of the recipient.
    pub address: Address,
    /// Content.
    pub rendered: Rendered,
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

/// Renders the message of `job`, a job of `notification`. Refuses a message that must not or cannot
/// be sent.
pub fn render(
    job: &Job,
    notification: &Notification,
    facts: StepFacts<'_>,
) -> Result<Rendered, Refusal> {
    let run = StepRun::new(job, notification, facts)?;
    run.render()
}

/// Renders the message of `job`, a job of `notification`, and chooses its integration and address.
/// Refuses a message that must not or cannot be sent.
pub fn dispatch(
    job: &Job,
    notification: &Notification,
    facts: StepFacts<'_>,
) -> Result<Dispatch, Refusal> {
    let run = StepRun::new(job, notification, facts)?;
    let rendered = run.render()?;
    let integration = run.integration()?;
    let address = address(&run.subscriber.profile, integration)?;
    Ok(Dispatch { integration: integration.clone(), address, rendered })
}

// Job with an existing subscriber, workflow and step.
struct StepRun<'a> {
    notification: &'a Notification,
    facts: StepFacts<'a>,
    subscriber: &'a Subscriber,
    workflow: &'a Workflow,
    step: &'a WorkflowStep,
    channel: Channel,
    about: OnceCell<Object>,
    payload: Cow<'a, Object>,
}

impl<'a> StepRun<'a> {
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
        let about = OnceCell::new();
        Ok(Self { notification, facts, subscriber, workflow, step, channel, about, payload })
    }

    fn known(&self) -> Known<'_> {
        Known::new(self.subscriber, &self.payload, self.facts.contexts, self.workflow)
    }

    // Most steps have neither conditions nor variants, and need no object of the subscriber.
    fn filter_facts(&self) -> FilterFacts<'_> {
        let subscriber = self.about.get_or_init(|| about(self.subscriber));
        FilterFacts { subscriber, payload: &self.payload }
    }

    // Conditions and preferences come before the content: a message that is not sent need not
    // render.
    fn render(&self) -> Result<Rendered, Refusal> {
        self.check_conditions()?;
        self.check_preferences()?;
        match self.step.render(|| self.filter_facts(), self.known()) {
            Some(Ok(rendered)) => Ok(rendered),
            Some(Err(error)) => Err(fail(Detail::ContentNotGenerated).because(error.to_string())),
            None => Err(fail(Detail::ContentNotGenerated)),
        }
    }

    fn check_conditions(&self) -> Result<(), Refusal> {
        let filters = &self.step.definition.filters;
        if filters.is_empty() {
            return Ok(());
        }
        let report = filter::evaluate(filters, &self.filter_facts());
        if report.holds {
            return Ok(());
        }
        let report = serde_json::to_string(&report).unwrap_or_default();
        Err(skip(Detail::FilteredByStepConditions).because(report))
    }

    fn check_preferences(&self) -> Result<(), Refusal> {
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
        let all: Vec<&Integration> = self.facts.integrations.iter().map(|one| &**one).collect();
        let reaches = |one: &&Integration| address(&self.subscriber.profile, one).is_ok();
        let reaching: Vec<_> = all.iter().copied().filter(reaches).collect();
        let choose =
            |among: &[_]| integration::choose(among, self.channel, named, &self.filter_facts());
        // An integration without an address of the subscriber is the last choice.
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
    /// Returns the refusal of a job whose workflow was deleted.
    pub const fn workflow_deleted() -> Self {
        skip(Detail::WorkflowDeleted)
    }

    fn because(self, raw: String) -> Self {
        Self { raw: Some(raw), ..self }
    }
}

#[cfg(test)]
mod tests;
