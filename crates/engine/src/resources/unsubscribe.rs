//! Operations on unsubscribe links.

use std::sync::Arc;

use domain::context::ContextSet;
use domain::environment::Home;
use domain::ids::TopicKey;
use domain::subscriber::Subscriber;
use domain::subscription::Subscription;
use domain::time::Timestamp;
use domain::topic::Topic;
use domain::unsubscribe::{
    Claimed, Claims, Link, LinkTo, TokenProblem, UnsubscribeFrom, UnsubscribeRequest,
    UnsubscribedFrom, Unsubscription,
};
use domain::vocabulary::Channel;
use domain::workflow::Workflow;
use store::{ReadRecords, Table, WriteRecords, layout};

use crate::resources::preferences::{self, Place};
use crate::resources::{environments, subscribers, topics, workflows};
use crate::trace;
use crate::tx::{Tx, View};
use crate::{Engine, Entity, Error, Rejection, Result, Scope};

impl Engine {
    /// Returns the scope of the environment of an unsubscribe link, for a page that serves the links of several
    /// environments. The signature of the token is verified.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tidings::unsubscribe::{UnsubscribeLinks, UnsubscribeRequest};
    /// use tidings::{Engine, store::memory::MemoryStore, vocabulary::Channel};
    /// # use tidings::{step::Step, subscriber::SubscriberCreate, workflow::WorkflowCreate};
    ///
    /// let links = UnsubscribeLinks::new("https://shop.example.org/unsubscribe")?;
    /// let engine = Engine::builder().unsubscribe_links(links).build(MemoryStore::default());
    /// # let env = engine.organization("acme")?.development()?;
    /// # let mail = Step::email("News", "News")?;
    /// # env.workflows().create(&WorkflowCreate::new("news", "News")?.step(mail))?;
    /// # env.subscribers().create(&SubscriberCreate::new("ada")?)?;
    /// let url = env.unsubscribe_url(&UnsubscribeRequest::workflow("ada", "news", Channel::Email)?)?;
    /// let (_, token) = url.split_once("token=").unwrap_or_default();
    /// let env = engine.unsubscribe_scope(token)?;
    /// assert!(!env.unsubscribe(token)?.subscribed);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Rejection::UnsubscribeLink`], if the token was tampered with, has expired, or is one of an environment
    /// that was deleted.
    pub fn unsubscribe_scope(&self, token: &str) -> Result<Scope> {
        trace::operation("engine.unsubscribe_scope", None, || {
            let id = Claims::environment_of(token).map_err(refused)?;
            let environment = self.find_environment(id)?;
            let environment = environment.ok_or_else(|| refused(TokenProblem::OtherEnvironment))?;
            let scope = Scope::new(self.clone(), &environment);
            scope.view(|view| verified(view, token, self.now()).map(drop))?;
            Ok(scope)
        })
    }
}

impl Scope {
    /// Returns an unsubscribe link, for a message that the host sends itself or for a page. Messages
    /// of the engine have their link already.
    ///
    /// A link switches off the preference for exactly the contexts of the request, and that of a
    /// message for the contexts of its event. Events of other contexts are still sent.
    ///
    /// # Errors
    ///
    /// [`Rejection::NoUnsubscribeUrl`], if the engine was built without
    /// [`unsubscribe_links`](crate::Builder::unsubscribe_links); [`Rejection::CriticalWorkflows`] for
    /// a critical workflow; [`Error::NotFound`], if there is no such subscriber, workflow or topic;
    /// [`Error::Invalid`], if the request has more than 5 contexts; [`Error::Store`], if the key of the
    /// links is lost: a [repair](crate::Engine::repair) makes another one.
    pub fn unsubscribe_url(&self, request: &UnsubscribeRequest) -> Result<String> {
        request.check()?;
        self.read("scope.unsubscribe_url", |view| {
            let links = self.engine.parts.settings.unsubscribe.as_ref();
            let links = links.ok_or_else(|| Error::Rejected(Rejection::NoUnsubscribeUrl))?;
            let claims = Claims {
                environment_id: view.environment_id(),
                subscriber_id: subscribers::get(view, &request.subscriber_id)?.id,
                from: claimed(view, &request.from)?,
                context_keys: request.context_keys.clone(),
                expires_at: links.expiry(self.engine.now()),
            };
            let key = view.find(&layout::link_key(view.environment_id()))?;
            Ok(links.sign(&key.ok_or_else(lost_key)?, claims).to_url())
        })
    }

    /// Returns the meaning of the token of an unsubscribe link, and changes nothing: for the page
    /// that asks whether the subscriber is sure. Mail programs open links that nobody has clicked.
    ///
    /// # Errors
    ///
    /// [`Rejection::UnsubscribeLink`], if the token was tampered with, has expired, or is one of
    /// another environment or of a deleted subscriber; [`Error::NotFound`], if its workflow or topic
    /// was deleted.
    pub fn read_unsubscribe(&self, token: &str) -> Result<Unsubscription> {
        self.read("scope.read_unsubscribe", |view| {
            Preference::of(view, token, self.engine.now())?.unsubscription(view)
        })
    }

    /// Switches off the preference that the token of an unsubscribe link is about: the channel of a
    /// workflow, or the subscriptions in a topic. Call it for a `POST` only. A link may be used
    /// again, and changes nothing then.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tidings::unsubscribe::{UnsubscribeLinks, UnsubscribeRequest};
    /// use tidings::{Engine, store::memory::MemoryStore, vocabulary::Channel};
    /// # use tidings::{step::Step, subscriber::SubscriberCreate, workflow::WorkflowCreate};
    ///
    /// let links = UnsubscribeLinks::new("https://shop.example.org/unsubscribe")?;
    /// let engine = Engine::builder().unsubscribe_links(links).build(MemoryStore::default());
    /// # let env = engine.organization("acme")?.development()?;
    /// # let mail = Step::email("News", "News")?;
    /// # env.workflows().create(&WorkflowCreate::new("news", "News")?.step(mail))?;
    /// # env.subscribers().create(&SubscriberCreate::new("ada")?)?;
    /// let news = UnsubscribeRequest::workflow("ada", "news", Channel::Email)?;
    /// let url = env.unsubscribe_url(&news)?;
    /// let (_, token) = url.split_once("token=").unwrap_or_default();
    /// assert!(env.read_unsubscribe(token)?.subscribed);
    /// assert!(!env.unsubscribe(token)?.subscribed);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`read_unsubscribe`](Self::read_unsubscribe), and [`Rejection::CriticalWorkflows`], if the
    /// workflow is critical.
    pub fn unsubscribe(&self, token: &str) -> Result<Unsubscription> {
        self.write("scope.unsubscribe", token, |tx| {
            let preference = Preference::of(tx, token, tx.now())?;
            preference.switch_off(tx)?;
            preference.unsubscription(tx)
        })
    }
}

// An environment has a key of its links from its creation on.
fn lost_key() -> Error {
    let (table, source) = (Table::LinkKeys.name(), "the key of the links is gone".into());
    store::Error::Corrupt { table, source }.into()
}

/// Returns the unsubscribe link in a message of `workflow`. Returns `None` if the engine has no
/// links, or the message has none. Fails if the key of the links is lost, see [`with_key`].
pub(crate) fn link(view: &dyn View, workflow: &Workflow, to: LinkTo<'_>) -> Result<Option<Link>> {
    let Some(links) = &view.engine().parts.settings.unsubscribe else { return Ok(None) };
    let key = view.find(&layout::link_key(view.environment_id()))?;
    Ok(links.link(&key.ok_or_else(lost_key)?, workflow, to))
}

/// Runs `body`. If it needs the key of the links and the key is gone, another one is made, and it runs once
/// more: a message without its link is worse than old links that are invalid in any case. A key that is
/// damaged stays, and is replaced by a repair.
pub(crate) fn with_key<T>(
    engine: &Engine,
    home: &Home,
    now: Timestamp,
    mut body: impl FnMut() -> Result<T>,
) -> Result<T> {
    match body() {
        Err(error)
            if error.corruption().is_some_and(|(table, _)| table == Table::LinkKeys.name()) =>
        {
            engine.write_in(home, now, environments::put_link_key)?;
            body()
        }
        result => result,
    }
}

// The records of the preference that a token is about.
struct Preference {
    subscriber: Subscriber,
    subject: Subject,
    context_keys: ContextSet,
    expires_at: Timestamp,
}

enum Subject {
    Workflow(Arc<Workflow>, Channel),
    Topic(Topic),
}

fn refused(problem: TokenProblem) -> Error {
    Error::Rejected(Rejection::UnsubscribeLink { problem })
}

// The claims of a token of this environment.
fn verified(view: &dyn View, token: &str, now: Timestamp) -> Result<Claims> {
    let environment = view.environment_id();
    let key = view.find(&layout::link_key(environment))?.map(|key| key.key.clone());
    Claims::verified(token, environment, key.as_ref(), now).map_err(refused)
}

impl Preference {
    fn of(view: &dyn View, token: &str, now: Timestamp) -> Result<Self> {
        let claims = verified(view, token, now)?;
        let subscriber = subscribers::find_by_id(view, claims.subscriber_id)?;
        let subscriber = subscriber.ok_or_else(|| refused(TokenProblem::SubscriberDeleted))?;
        let subject = match claims.from {
            Claimed::Workflow(id, channel) => {
                let workflow = workflows::find_by_id(view, id)?;
                let missing = || Error::not_found(Entity::Workflow, id);
                Subject::Workflow(workflow.ok_or_else(missing)?, channel)
            }
            Claimed::Topic(key) => Subject::Topic(topics::get(view, &key)?),
        };
        let Claims { context_keys, expires_at, .. } = claims;
        Ok(Self { subscriber, subject, context_keys, expires_at })
    }

    fn place(&self) -> Place {
        Place { subscriber: self.subscriber.id, contexts: self.context_keys.clone() }
    }

    fn switch_off(&self, tx: &mut Tx<'_>) -> Result<()> {
        match &self.subject {
            Subject::Workflow(workflow, channel) => self.place().switch_off(tx, workflow, *channel),
            Subject::Topic(topic) => {
                let subscriptions = self.subscriptions(tx, topic)?;
                Ok(subscriptions.iter().try_for_each(|one| tx.remove(one))?)
            }
        }
    }

    fn unsubscription(&self, view: &dyn View) -> Result<Unsubscription> {
        let (from, subscribed) = match &self.subject {
            Subject::Workflow(workflow, channel) => {
                let is_on = self.place().admits(view, workflow, *channel)?;
                let workflow = workflow.info();
                (UnsubscribedFrom::Workflow { workflow, channel: *channel }, is_on)
            }
            Subject::Topic(topic) => {
                let subscribed = !self.subscriptions(view, topic)?.is_empty();
                let (topic_key, name) = (topic.key.clone(), topic.name.clone());
                (UnsubscribedFrom::Topic { topic_key, name }, subscribed)
            }
        };
        let of = (self.subscriber.subscriber_id.clone(), self.context_keys.clone());
        Ok(Unsubscription::new(of, from, subscribed, self.expires_at))
    }

    fn subscriptions(&self, view: &dyn View, topic: &Topic) -> Result<Vec<Subscription>> {
        let of = layout::topic_subscriber(view.environment_id(), topic.id, self.subscriber.id);
        let mut found = view.all(&of)?;
        found.retain(|one| one.is_of(&self.subscriber, &self.context_keys));
        Ok(found)
    }
}

fn claimed(view: &dyn View, from: &UnsubscribeFrom) -> Result<Claimed> {
    match from {
        UnsubscribeFrom::Workflow { workflow_id, channel } => {
            let workflow = workflows::get(view, workflow_id.as_str())?;
            preferences::refuse_critical(&workflow)?;
            Ok(Claimed::Workflow(workflow.id, *channel))
        }
        UnsubscribeFrom::Topic { topic_key } => {
            Ok(Claimed::Topic(TopicKey::clone(&topics::get(view, topic_key)?.key)))
        }
    }
}
