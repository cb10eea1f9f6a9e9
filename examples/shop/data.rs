//! What the shop knows: the files beside this one, and how they get into an environment.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tidings::Scope;
use tidings::ids::SubscriberId;
use tidings::integration::{Integration, IntegrationCreate};
use tidings::preference::{GlobalPreferenceUpdate, WorkflowPreferenceUpdates};
use tidings::subscriber::{ChannelCredentials, ChannelSettings, SubscriberCreate};
use tidings::time::Timestamp;
use tidings::trigger::Trigger;
use tidings::workflow::WorkflowCreate;

/// The shop on Monday morning, and the week that is ahead of it.
#[derive(Debug)]
pub struct Shop {
    pub workflows: Vec<WorkflowCreate>,
    pub integrations: Vec<IntegrationCreate>,
    pub customers: Vec<Customer>,
    pub preferences: Vec<Word>,
    pub events: Vec<Event>,
}

/// A customer, and where chat and push messages go: credentials by the identifier of the
/// integration that needs them. Its id is known only once the integration is created.
#[derive(Clone, Debug, Deserialize)]
pub struct Customer {
    #[serde(flatten)]
    pub subscriber: SubscriberCreate,
    #[serde(default)]
    pub destinations: BTreeMap<String, ChannelCredentials>,
}

/// What a customer said about being notified.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Word {
    pub subscriber_id: SubscriberId,
    pub global: Option<GlobalPreferenceUpdate>,
    pub workflows: Option<WorkflowPreferenceUpdates>,
}

/// Something that happened.
#[derive(Clone, Debug, Deserialize)]
pub struct Event {
    pub at: Timestamp,
    #[serde(flatten)]
    pub trigger: Trigger,
}

impl Shop {
    /// Reads the files.
    pub fn read() -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            workflows: json("workflows.json")?,
            integrations: json("integrations.json")?,
            customers: json("subscribers.json")?,
            preferences: json("preferences.json")?,
            events: json_lines("events.jsonl")?,
        })
    }

    /// Creates everything but the events.
    pub fn open(&self, env: &Scope) -> Result<(), Box<dyn Error>> {
        for workflow in &self.workflows {
            env.workflows().create(&workflow.clone())?;
        }
        for integration in &self.integrations {
            env.integrations().create(&integration.clone())?;
        }
        let integrations = env.integrations().list_active()?;
        for customer in &self.customers {
            env.subscribers().create(&customer.reached_through(&integrations)?)?;
        }
        self.preferences.iter().try_for_each(|word| word.say(env))
    }

    /// When the first event happens.
    pub fn start(&self) -> Timestamp {
        self.events.first().map(|event| event.at).unwrap_or_default()
    }
}

impl Customer {
    fn reached_through(
        &self,
        integrations: &[Integration],
    ) -> Result<SubscriberCreate, Box<dyn Error>> {
        let mut create = self.subscriber.clone();
        for (identifier, credentials) in &self.destinations {
            let mut integrations = integrations.iter();
            let integration = integrations
                .find(|integration| integration.identifier.as_str() == identifier)
                .ok_or_else(|| format!("there is no integration `{identifier}`"))?;
            let provider_id = integration.provider_id.parse()?;
            let settings = ChannelSettings::new(integration.id, provider_id, credentials.clone())?;
            create = create.channel(settings.integration_identifier(&integration.identifier)?);
        }
        Ok(create)
    }
}

impl Word {
    fn say(&self, env: &Scope) -> Result<(), Box<dyn Error>> {
        let preferences = env.preferences(&self.subscriber_id)?;
        if let Some(global) = &self.global {
            preferences.update_global(global)?;
        }
        if let Some(workflows) = &self.workflows {
            preferences.update_bulk(workflows)?;
        }
        Ok(())
    }
}

fn json<T: DeserializeOwned>(file: &str) -> Result<T, Box<dyn Error>> {
    let text = fs::read_to_string(path(file))?;
    serde_json::from_str(&text).map_err(|error| format!("{file}: {error}").into())
}

fn json_lines<T: DeserializeOwned>(file: &str) -> Result<Vec<T>, Box<dyn Error>> {
    let text = fs::read_to_string(path(file))?;
    let parsed = text.lines().enumerate().map(|(index, line)| {
        serde_json::from_str(line).map_err(|error| format!("{file}:{}: {error}", index + 1).into())
    });
    parsed.collect()
}

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/shop").join(file)
}
