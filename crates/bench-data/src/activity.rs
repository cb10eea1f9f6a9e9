//! Activity: notifications as the engine would have stored them.

use domain::context::ContextSet;
use domain::environment::Home;
use domain::event::Event;
use domain::ids::{NotificationId, TransactionId};
use domain::json::Object;
use domain::notification::{Notification, NotificationTopic, Ordinal};
use domain::subscriber::{Subscriber, SubscriberCreate};
use domain::time::Timestamp;
use domain::trigger::{SubscriberRecipient, Trigger};
use domain::vocabulary::Severity;
use domain::workflow::Workflow;
use serde_json::json;

use crate::course::Course;
use crate::draw::{Lots, Purpose, sound};
use crate::occasion::{Occasion, Occasions, Recipient};
use crate::population::Population;
use crate::profile::Profile;

/// An endless sequence of triggers.
///
/// Ordinals count from 0 without gaps, and no trigger comes before the one before it.
#[derive(Clone, Debug)]
pub struct Activity {
    population: Population,
    occasions: Occasions,
    course: Course,
    triggers: u64,
    ordinal: u64,
}

/// A call of trigger, and the notifications that it led to: at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Triggered {
    /// Transaction id.
    pub transaction_id: TransactionId,
    /// Time of the trigger.
    pub created_at: Timestamp,
    /// Notifications, in the order of their ordinals.
    pub notifications: Vec<Notification>,
}

// Common values of the notifications of a trigger.
struct Common<'p> {
    population: &'p Population,
    workflow: &'p Workflow,
    context_keys: &'p ContextSet,
    transaction_id: TransactionId,
    severity: Severity,
    at: Timestamp,
}

impl Activity {
    /// Returns the activity in `home` for a profile and a seed.
    pub fn new(profile: Profile, home: Home, seed: u64) -> Self {
        Self::of(Population::new(profile, home, seed))
    }

    /// Returns the activity of a population.
    pub fn of(population: Population) -> Self {
        let occasions = Occasions::new(&population);
        let course = Course::new(population.profile(), population.lots(Purpose::Bodies));
        Self { population, occasions, course, triggers: 0, ordinal: 0 }
    }

    /// Population of the activity.
    pub const fn population(&self) -> &Population {
        &self.population
    }

    /// Number of triggers so far.
    pub const fn triggers(&self) -> u64 {
        self.triggers
    }

    /// Number of notifications so far.
    pub const fn notifications(&self) -> u64 {
        self.ordinal
    }
}

impl Iterator for Activity {
    type Item = Triggered;

    fn next(&mut self) -> Option<Triggered> {
        let Self { population, occasions, course, triggers, ordinal } = self;
        let occasion = occasions.draw(population.profile());
        let common = Common::new(population, &occasion, *triggers)?;
        let trigger = population.profile().bodies.then(|| common.trigger(course.lots()));
        let notifications = occasion.recipients.iter().map(|recipient| {
            let id = NotificationId::new(occasion.at, Ordinal::new(*ordinal), recipient.random);
            *ordinal += 1;
            let topics = common.topics(&occasion, *recipient);
            match &trigger {
                Some(trigger) => common.notification(id, *recipient, topics, trigger, course),
                None => common.bare(id, *recipient, topics),
            }
        });
        let notifications = notifications.collect();
        *triggers += 1;
        let Common { transaction_id, at: created_at, .. } = common;
        Some(Triggered { transaction_id, created_at, notifications })
    }
}

impl<'p> Common<'p> {
    fn new(population: &'p Population, occasion: &Occasion, triggers: u64) -> Option<Self> {
        Some(Self {
            population,
            workflow: population.workflows().get(occasion.workflow)?,
            context_keys: match occasion.context_set {
                Some(rank) => population.context_sets().get(rank)?,
                None => population.no_contexts(),
            },
            transaction_id: population.transaction_id(triggers),
            severity: occasion.severity,
            at: occasion.at,
        })
    }

    // The topics through which `recipient` is told.
    fn topics(&self, occasion: &Occasion, recipient: Recipient) -> Vec<NotificationTopic> {
        let topic = |rank: &usize| {
            let topic = self.population.topics().get(*rank)?;
            let identifier = self.population.subscription_identifier(
                *rank,
                recipient.subscriber,
                self.context_keys,
            );
            Some(NotificationTopic::new(topic.id, topic.key.clone(), vec![identifier]))
        };
        occasion.topics.iter().take(recipient.topics).filter_map(topic).collect()
    }

    // The trigger as the host application calls it.
    fn trigger(&self, lots: &mut Lots) -> Trigger {
        let number = lots.between(10_000, 9_999_999);
        let payload = json!({
            "actor": { "name": lots.one_of(&["Ada", "Alan", "Grace", "Edsger", "Barbara"]) },
            "reference": format!("R-{number}"),
            "title": lots.one_of(&TITLES),
            "total": lots.between(100, 99_999),
            "url": format!("https://app.example.com/things/{number}"),
        });
        let overrides = || sound(Object::try_from(json!({ "severity": self.severity.as_str() })));
        let somebody = self.population.subscriber_id(0);
        let trigger = Trigger::new(self.workflow.identifier(), somebody);
        let mut trigger = sound(trigger.and_then(|trigger| trigger.payload(payload)));
        trigger.overrides = (self.severity != self.workflow.severity).then(overrides);
        trigger
    }

    // A notification with its jobs, payload and other contents.
    fn notification(
        &self,
        id: NotificationId,
        recipient: Recipient,
        topics: Vec<NotificationTopic>,
        trigger: &Trigger,
        course: &mut Course,
    ) -> Notification {
        let event = Event {
            actor: None,
            home: self.population.home(),
            trigger,
            transaction_id: &self.transaction_id,
            workflow: self.workflow,
            contexts: &[],
            context_keys: self.context_keys,
            now: self.at,
        };
        let subscriber_id = self.population.subscriber_id(recipient.subscriber);
        let to = SubscriberRecipient::Id(subscriber_id.clone());
        // A notification stores no field of its subscriber but the id.
        let create = sound(SubscriberCreate::new(subscriber_id));
        let id_of = self.population.internal_subscriber_id(recipient.subscriber);
        let subscriber = Subscriber::new(id_of, event.home, create, self.at);
        let new_job = || course.lots().id(self.at);
        let made = (id, self.at);
        let mut notification = Notification::new(made, &event, &subscriber, &to, topics, new_job);
        course.run(&mut notification);
        notification
    }

    // The notification of a recipient without the parts that a list neither searches nor sorts.
    fn bare(
        &self,
        id: NotificationId,
        recipient: Recipient,
        topics: Vec<NotificationTopic>,
    ) -> Notification {
        let (home, transaction_id) = (self.population.home(), self.transaction_id.clone());
        let subscriber_id = self.population.internal_subscriber_id(recipient.subscriber);
        let mut bare = Notification::bare(id, home, subscriber_id, transaction_id, self.at);
        bare.workflow_id = Some(self.workflow.id);
        bare.step_types = self.workflow.step_types();
        bare.topics = topics;
        bare.severity = Some(self.severity);
        bare.critical = Some(self.workflow.critical);
        bare.context_keys = self.context_keys.clone();
        bare
    }
}

const TITLES: [&str; 8] = [
    "Your order has left the warehouse",
    "A new comment on the quarterly report",
    "Invoice is overdue since yesterday",
    "You have been assigned to a task",
    "A document has been shared with you",
    "The build of the main branch has failed",
    "Your booking is confirmed",
    "Payment received, thank you",
];
