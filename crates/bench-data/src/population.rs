//! A population: subscribers, workflows, topics and context sets.

use domain::contact::{Email, Locale, TimeZone};
use domain::context::{ContextKey, ContextSet};
use domain::environment::Home;
use domain::ids::{
    InternalSubscriberId, SubscriberId, SubscriptionIdentifier, TopicId, TopicKey, TransactionId,
    WorkflowId,
};
use domain::subscriber::{Subscriber, SubscriberCreate};
use domain::subscription::Subscription;
use domain::time::Timestamp;
use domain::topic::{Topic, TopicCreate};
use domain::workflow::Workflow;
use uuid::Uuid;

use crate::draw::{Lots, Purpose, sound};
use crate::profile::Profile;
use crate::workflows;

/// The entities of an environment before the first trigger.
///
/// A rank beyond the last entity stands for the entity that a larger population would have.
#[derive(Clone, Debug)]
pub struct Population {
    profile: Profile,
    home: Home,
    // Seed of all draws.
    root: u64,
    workflows: Vec<Workflow>,
    topics: Vec<Topic>,
    context_sets: Vec<ContextSet>,
    no_contexts: ContextSet,
}

impl Population {
    /// Returns the population of `home` for a profile and a seed.
    pub fn new(profile: Profile, home: Home, seed: u64) -> Self {
        let mut population = Self {
            profile,
            home,
            root: Lots::root(seed).bits(),
            workflows: Vec::new(),
            topics: Vec::new(),
            context_sets: Vec::new(),
            no_contexts: ContextSet::default(),
        };
        let Profile { workflows, topics, context_sets, .. } = &population.profile;
        let counts = [workflows, topics, context_sets].map(|ranked| ranked.count.max(1));
        let [workflows, topics, context_sets] = counts;
        population.workflows = (0..workflows).map(|rank| population.workflow(rank)).collect();
        population.topics = (0..topics).map(|rank| population.topic(rank)).collect();
        population.context_sets =
            (0..context_sets).map(|rank| population.context_set(rank)).collect();
        population
    }

    /// Profile of the activity.
    pub const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Environment of the population, with its organization.
    pub const fn home(&self) -> &Home {
        &self.home
    }

    /// Workflows by rank.
    pub fn workflows(&self) -> &[Workflow] {
        &self.workflows
    }

    /// Topics by rank.
    pub fn topics(&self) -> &[Topic] {
        &self.topics
    }

    /// Context sets by rank.
    pub fn context_sets(&self) -> &[ContextSet] {
        &self.context_sets
    }

    /// Subscribers by rank.
    pub fn subscribers(&self) -> impl Iterator<Item = Subscriber> {
        (0..self.profile.subscribers.count.max(1)).map(|rank| self.subscriber(rank))
    }

    /// The subscriber of that rank. The address of number 7 is `user-7@example.com`.
    pub fn subscriber(&self, rank: usize) -> Subscriber {
        let (id, at, mut lots) = self.made(Purpose::Subscriber, rank);
        let mut create = sound(SubscriberCreate::new(self.subscriber_id(rank)));
        let profile = &mut create.profile;
        profile.phone = lots.happens(0.5).then(|| format!("+1555{rank:07}"));
        profile.first_name = Some(lots.one_of(&FIRST_NAMES).into());
        profile.last_name = Some(lots.one_of(&LAST_NAMES).into());
        profile.email = Some(sound(Email::new(format!("user-{rank}@example.com"))));
        let locales = ["en_US", "en_GB", "de_DE", "fr_FR"];
        profile.locale = Some(sound(Locale::new(lots.one_of(&locales))));
        profile.timezone = Some(sound(TimeZone::new(lots.one_of(&ZONES))));
        Subscriber::new(id, &self.home, create, at)
    }

    /// Returns the host's id of the subscriber of that rank.
    pub fn subscriber_id(&self, rank: usize) -> SubscriberId {
        sound(SubscriberId::new(format!("user-{rank}")))
    }

    /// Returns the engine's id of the subscriber of that rank.
    pub fn internal_subscriber_id(&self, rank: usize) -> InternalSubscriberId {
        self.made(Purpose::Subscriber, rank).0
    }

    /// Returns the engine's id of the workflow of that rank.
    pub fn workflow_id(&self, rank: usize) -> WorkflowId {
        self.made(Purpose::Workflow, rank).0
    }

    /// Returns the key of the topic of that rank.
    pub fn topic_key(&self, rank: usize) -> TopicKey {
        sound(TopicKey::new(format!("project-{rank}:watchers")))
    }

    /// Returns the engine's id of the topic of that rank.
    pub fn topic_id(&self, rank: usize) -> TopicId {
        self.made(Purpose::Topic, rank).0
    }

    /// The context set of that rank: a tenant, and for every third of them an app as well.
    pub fn context_set(&self, rank: usize) -> ContextSet {
        let tenant = sound(ContextKey::new("tenant", format!("tenant-{rank}")));
        let app =
            || sound(ContextKey::new("app", if rank.is_multiple_of(2) { "web" } else { "mobile" }));
        [tenant].into_iter().chain((rank % 3 == 2).then(app)).collect()
    }

    /// The name of a subscriber's subscription in a topic, both by rank. The subscription admits
    /// only events about `contexts`.
    pub fn subscription_identifier(
        &self,
        topic: usize,
        subscriber: usize,
        contexts: &ContextSet,
    ) -> SubscriptionIdentifier {
        let (topic, subscriber) = (self.topic_key(topic), self.subscriber_id(subscriber));
        sound(Subscription::made_identifier(&topic, &subscriber, contexts))
    }

    /// Returns the transaction id of the trigger after `before` others.
    pub fn transaction_id(&self, before: u64) -> TransactionId {
        let mut lots = Lots::new(self.root, Purpose::Trigger, before);
        sound(TransactionId::new(format!("txn_{:024x}", lots.many_bits() >> 32)))
    }

    /// Context set of a notification without contexts.
    pub(crate) const fn no_contexts(&self) -> &ContextSet {
        &self.no_contexts
    }

    /// The lots of that purpose.
    pub(crate) fn lots(&self, purpose: Purpose) -> Lots {
        Lots::new(self.root, purpose, 0)
    }

    fn workflow(&self, rank: usize) -> Workflow {
        let (id, at, mut lots) = self.made(Purpose::Workflow, rank);
        workflows::workflow(rank, &self.home, (id, at), &mut lots)
    }

    fn topic(&self, rank: usize) -> Topic {
        let (id, at, _) = self.made(Purpose::Topic, rank);
        let create = sound(TopicCreate::new(self.topic_key(rank)));
        Topic::new(id, &self.home, create.name(format!("Project {rank}")), at)
    }

    // Returns an entity's id, its creation time and the lots for its other values. The time is in
    // the year before the start of the activity.
    fn made<T: From<Uuid>>(&self, purpose: Purpose, rank: usize) -> (T, Timestamp, Lots) {
        let mut lots = Lots::new(self.root, purpose, rank as u64);
        let seconds = lots.between(1, 365 * 24 * 60 * 60) as u64;
        let before = i64::try_from(seconds * 1_000).unwrap_or_default();
        let at = Timestamp::from_millis(self.profile.start.as_millis() - before);
        (lots.id(at), at, lots)
    }
}

const FIRST_NAMES: [&str; 16] = [
    "Ada",
    "Alan",
    "Barbara",
    "Claude",
    "Donald",
    "Edsger",
    "Frances",
    "Grace",
    "Hedy",
    "John",
    "Katherine",
    "Leslie",
    "Margaret",
    "Niklaus",
    "Radia",
    "Tim",
];
const LAST_NAMES: [&str; 16] = [
    "Allen",
    "Berners-Lee",
    "Dijkstra",
    "Hamilton",
    "Hopper",
    "Johnson",
    "Knuth",
    "Lamarr",
    "Lamport",
    "Liskov",
    "Lovelace",
    "McCarthy",
    "Perlman",
    "Shannon",
    "Turing",
    "Wirth",
];
const ZONES: [&str; 5] =
    ["America/New_York", "America/Los_Angeles", "Europe/Berlin", "Europe/London", "Asia/Tokyo"];
