//! Enrolment: the subscriptions that a request makes, one subscriber after the other.

use domain::context::{ContextSet, NamedContext};
use domain::ids::TopicKey;
use domain::patch::Patch;
use domain::subscription::{
    ResolvedSetting, Subscribe, SubscribeItem, Subscription, SubscriptionError, Subscriptions,
};
use domain::topic::{Topic, TopicCreate};
use store::layout::CountedList;
use store::{ReadRecords, WriteRecords, layout};

use super::{verdicts, with_workflows};
use crate::resources::{contexts, subscribers, topics};
use crate::tx::{Tx, View};
use crate::{Rejection, Result};

/// The common part of the subscriptions that one request makes.
pub(super) struct Enrolment {
    create: TopicCreate,
    found: Option<Topic>,
    named: Vec<NamedContext>,
    keys: ContextSet,
    verdicts: Vec<ResolvedSetting>,
}

impl Enrolment {
    /// Returns the part of a request, before its first subscription.
    pub(super) fn new(view: &dyn View, topic: &TopicKey, request: &Subscribe) -> Result<Self> {
        let mut create = TopicCreate::new(topic)?;
        create.name.clone_from(&request.name);
        create.check()?;
        let named = contexts::named(request.context.as_ref())?;
        let keys = contexts::keys(&named);
        let verdicts = verdicts(view, &request.preferences)?;
        let found = topics::find(view, topic)?;
        Ok(Self { create, found, named, keys, verdicts })
    }

    /// Puts one subscriber into the topic. Returns the reason if a rule forbids that.
    pub(super) fn enrol(
        &mut self,
        tx: &mut Tx<'_>,
        item: &SubscribeItem,
    ) -> Result<Result<Subscription, SubscriptionError>> {
        let environment = tx.environment_id();
        tx.expect_change(match &self.found {
            Some(topic) => CountedList::Subscriptions(environment, topic.id),
            None => CountedList::Topics(environment),
        })?;
        let id = &item.subscriber_id;
        let Some(subscriber) = subscribers::find(tx, id)? else {
            return Ok(Err(SubscriptionError::subscriber_not_found(id)));
        };
        let made = || Subscription::made_identifier(&self.create.key, id, &self.keys);
        let identifier = item.identifier.clone().map_or_else(made, Ok)?;
        if let Some(topic) = &self.found {
            let key = layout::subscription(topic.environment_id, topic.id, &identifier);
            match tx.find(&key)? {
                Some(there) if there.is_of(&subscriber, &self.keys) => return Ok(Ok(there)),
                Some(_) => return Ok(Err(SubscriptionError::identifier_taken(id, &identifier))),
                None => {}
            }
            let prefix = layout::topic_subscriber(topic.environment_id, topic.id, subscriber.id);
            let others = tx.count(&prefix, Some(Subscription::MAX_OF_SUBSCRIBER))?;
            if let Err(error) = Subscription::check_room(others, id) {
                return Ok(Err(error));
            }
        }
        let topic = self.open(tx)?;
        let (id, home, keys, now) = (tx.id(), tx.home(), self.keys.clone(), tx.now());
        let new = Subscription::new(id, identifier, home, (&topic, &subscriber), keys, now);
        let name = item.name.clone().map_or(Patch::Keep, Patch::Set);
        let subscription = new.updated(name, Some(&self.verdicts), now);
        tx.insert(&subscription)?;
        Ok(Ok(subscription))
    }

    // The topic. It and the contexts are created with the first subscription that works.
    fn open(&mut self, tx: &mut Tx<'_>) -> Result<Topic> {
        contexts::ensure(tx, &self.named)?;
        self.named.clear();
        if let Some(topic) = &self.found {
            return Ok(topic.clone());
        }
        let topic = topics::insert(tx, self.create.clone())?;
        self.found = Some(topic.clone());
        Ok(topic)
    }
}

/// The subscriptions and refusals of one request.
#[derive(Default)]
pub(super) struct Collected {
    data: Vec<Subscription>,
    errors: Vec<SubscriptionError>,
}

impl Collected {
    pub(super) fn add(&mut self, result: Result<Subscription, SubscriptionError>) {
        match result {
            Ok(subscription) => self.data.push(subscription),
            Err(error) => self.errors.push(error),
        }
    }

    /// Returns them. A request of which nothing has worked is refused.
    pub(super) fn result(self, view: &dyn View) -> Result<Subscriptions> {
        let Self { data, errors } = self;
        if data.is_empty() {
            return Err(Rejection::NoSubscription { errors }.into());
        }
        let shown = data.into_iter().map(|one| with_workflows(view, one));
        Ok(Subscriptions::new(shown.collect::<Result<_>>()?, errors))
    }
}
