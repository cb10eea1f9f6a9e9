//! Records that the events of a call create or change. Each event sees those of the events before it.

use std::mem;
use std::sync::Arc;

use domain::context::{Context, ContextKey, NamedContext};
use domain::ids::SubscriberId;
use domain::subscriber::Subscriber;
use domain::time::Timestamp;
use domain::trigger::SubscriberRecipient;
use foldhash::HashMap;
use store::{Kept, ReadKept, layout};

use crate::Result;
use crate::entropy::TxRandom;
use crate::tx::{Reading, View};

/// The records that the events of a call change, at one time and on one snapshot.
pub(super) struct Changes<'r> {
    view: &'r Reading<'r>,
    random: &'r TxRandom<'r>,
    now: Timestamp,
    // Those of the events before the present one that are going to happen.
    before: Records,
    // Those of the present event, unless it is refused.
    own: Records,
}

#[derive(Default)]
struct Records {
    subscribers: HashMap<SubscriberId, Changed<Subscriber>>,
    contexts: HashMap<ContextKey, Changed<Context>>,
}

/// A record as it was read, if it was there, and as an event leaves it.
#[derive(Clone, Debug)]
pub(super) struct Changed<R> {
    pub(super) read: Option<Arc<Kept<R>>>,
    pub(super) after: Arc<R>,
}

impl<'r> Changes<'r> {
    pub(super) fn new(view: &'r Reading<'r>, random: &'r TxRandom<'r>, now: Timestamp) -> Self {
        let (before, own) = (Records::default(), Records::default());
        Self { view, random, now, before, own }
    }

    /// Keeps the records of the present event, which is going to happen.
    pub(super) fn keep(&mut self) {
        let own = mem::take(&mut self.own);
        // Most calls have one event.
        if self.before.subscribers.is_empty() && self.before.contexts.is_empty() {
            self.before = own;
            return;
        }
        self.before.subscribers.extend(own.subscribers);
        self.before.contexts.extend(own.contexts);
    }

    /// Forgets the records of the present event, which is refused.
    pub(super) fn forget(&mut self) {
        self.own = Records::default();
    }

    /// Returns a subscriber that the present event or an earlier one changes.
    pub(super) fn subscriber(&self, id: &SubscriberId) -> Option<&Changed<Subscriber>> {
        self.own.subscribers.get(id).or_else(|| self.before.subscribers.get(id))
    }

    /// Returns the subscriber of a recipient. Creates it if it is not there.
    pub(super) fn reach(&mut self, recipient: &SubscriberRecipient) -> Result<Changed<Subscriber>> {
        let (view, now) = (self.view, self.now);
        let create = recipient.to_create();
        let (read, before) = if let Some(known) = self.subscriber(&create.subscriber_id) {
            (known.read.clone(), Some(Arc::clone(&known.after)))
        } else {
            let key = layout::subscriber(view.environment_id(), &create.subscriber_id);
            read_and_record(view.find_kept(key)?)
        };
        let after = match before {
            Some(before) if create.has_only_id() => before,
            Some(before) => Arc::unwrap_or_clone(before).superseded_by(&create, now)?.into(),
            None => Subscriber::new(self.random.id(), view.home, create, now).into(),
        };
        let changed = Changed { read, after };
        self.own.subscribers.insert(changed.after.subscriber_id.clone(), changed.clone());
        Ok(changed)
    }

    /// Returns a context that the present event names, with its data if the event has some.
    pub(super) fn name(&mut self, named: &NamedContext) -> Result<Changed<Context>> {
        let known = self.own.contexts.get(&named.key);
        let known = known.or_else(|| self.before.contexts.get(&named.key));
        let (read, before) = if let Some(known) = known {
            (known.read.clone(), Some(Arc::clone(&known.after)))
        } else {
            let key = layout::context(self.view.environment_id(), &named.key);
            read_and_record(self.view.find_kept(key)?)
        };
        let after = named.change(before, self.view.home, || self.random.id(), self.now);
        let after = after.into_after();
        let changed = Changed { read, after };
        self.own.contexts.insert(named.key.clone(), changed.clone());
        Ok(changed)
    }
}

fn read_and_record<R>(read: Option<Kept<R>>) -> (Option<Arc<Kept<R>>>, Option<Arc<R>>) {
    let read = read.map(Arc::new);
    let record = read.as_ref().map(|read| Arc::clone(read.record()));
    (read, record)
}
