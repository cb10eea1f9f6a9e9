//! Subscribers and their preferences.

use domain::ids::EnvironmentId;
use domain::notification::NotificationSubscriber;
use domain::observer::Event;
use domain::preference::{PreferenceScope, SubscriberPreference};
use domain::subscriber::{Subscriber, SubscriberIds};

use crate::key::Key;
use crate::layout::{
    CountedList, SUBSCRIBER_EMAILS, SUBSCRIBER_PHONES, WORKFLOW_PREFERENCES, preference,
    subscriber, subscriber_id,
};
use crate::record::{CountedPlace, Entries, Excerpt, Record};
use crate::text_index::IndexedText;

impl Record for Subscriber {
    fn key(&self) -> Key<Self> {
        subscriber(self.environment_id, &self.subscriber_id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        entries.add(subscriber_id(self.environment_id, self.id));
        if let Some(email) = &self.profile.email {
            let emails = SUBSCRIBER_EMAILS.within(self.environment_id).then(email.as_str());
            entries.add(emails.then(self.id).end());
        }
        if let Some(phone) = &self.profile.phone {
            entries
                .add(SUBSCRIBER_PHONES.within(self.environment_id).then(phone).then(self.id).end());
        }
    }

    fn counted_place(&self) -> Option<CountedPlace> {
        Some((CountedList::Subscribers(self.environment_id), self.id.into()))
    }

    fn texts(&self) -> Vec<IndexedText> {
        let Self { environment_id: environment, id, profile, .. } = self;
        let email = profile.email.as_ref();
        let email = email.map(|email| IndexedText::email(*environment, email, *id));
        let name = profile.full_name().map(|name| IndexedText::name(*environment, &name, *id));
        email.into_iter().chain(name).collect()
    }
}

impl Excerpt for NotificationSubscriber {
    type Of = Subscriber;

    fn key(&self, environment: EnvironmentId) -> Key<Subscriber> {
        subscriber(environment, &self.subscriber_id)
    }

    fn entry(&self, environment: EnvironmentId) -> Key<Subscriber> {
        subscriber_id(environment, self.id)
    }
}

impl Excerpt for SubscriberIds {
    type Of = Subscriber;

    fn key(&self, environment: EnvironmentId) -> Key<Subscriber> {
        subscriber(environment, &self.subscriber_id)
    }

    fn entry(&self, environment: EnvironmentId) -> Key<Subscriber> {
        subscriber_id(environment, self.id)
    }
}

impl Record for SubscriberPreference {
    fn key(&self) -> Key<Self> {
        let workflow = match self.scope {
            PreferenceScope::Global { .. } => None,
            PreferenceScope::Workflow { workflow_id } => Some(workflow_id),
        };
        preference(self.environment_id, self.subscriber_id, &self.context_keys, workflow)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        if let PreferenceScope::Workflow { workflow_id } = self.scope {
            let of_workflow = WORKFLOW_PREFERENCES.within(self.environment_id).then(workflow_id);
            let key = of_workflow.then(self.subscriber_id).then(&self.context_keys);
            entries.add(key.end());
        }
    }

    fn events(before: Option<&Self>, after: Option<&Self>) -> Vec<Event> {
        after.or(before).map(Event::of_preference).into_iter().collect()
    }
}
