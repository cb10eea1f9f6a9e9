//! Tidings, in a file.

use std::path::Path;
use std::sync::Arc;

use store::WriteRecords;
use store::redb::RedbStore;
use tidings::page::Total;
use tidings::subscriber::{SubscriberQuery, SubscriberUpdate};
use tidings::{Engine, Scope};

use crate::subscribers::people::{People, home};
use crate::subscribers::system::{MOST, Page, Query, System};

/// Number of subscribers that a transaction writes, past the facade.
const AT_A_TIME: u64 = 1_000;

/// A file with subscribers.
pub(crate) struct Tidings {
    scope: Scope,
    people: People,
}

impl Tidings {
    pub(crate) fn create(path: &Path, people: People) -> Self {
        let store = Arc::new(RedbStore::open(path).unwrap());
        let engine = Engine::builder().build(Arc::clone(&store));
        let scope = engine.organization("acme").unwrap().development().unwrap();
        let home = home(&scope);
        for start in (0..people.size).step_by(usize::try_from(AT_A_TIME).unwrap()) {
            store::write::<_, store::Error>(&store, |txn| {
                (start..people.size.min(start + AT_A_TIME)).try_for_each(|number| {
                    txn.insert(&People::numbered(number).subscriber(&home, number))
                })
            })
            .unwrap();
        }
        // Counts what was written past the facade.
        assert!(engine.repair().unwrap().is_finished);
        store.checkpoint().unwrap();
        Self { scope, people }
    }
}

impl System for Tidings {
    fn page(&self, query: &Query) -> Page {
        let all = SubscriberQuery::default().limit(10);
        let query = match query {
            Query::All => all,
            Query::Email(email) => all.email(email),
            Query::Phone(phone) => all.phone(phone),
            Query::Name(name) => all.name(name),
        };
        let page = self.scope.subscribers().list(&query).unwrap();
        let total = match page.total {
            Total::Exactly(total) => total.min(MOST),
            Total::AtLeast(_) | Total::Capped => MOST,
        };
        let names = page.data.iter().map(|one| one.subscriber_id.to_string()).collect();
        Page { names, total }
    }

    fn rename(&self, number: u64, is_other: bool) {
        let number = number * 7 % self.people.size;
        let first = if is_other { "Another".into() } else { People::numbered(number).first };
        let update = SubscriberUpdate::default().first_name(first);
        self.scope.subscribers().update(People::name(number).as_str(), &update).unwrap();
    }

    fn create(&self, number: u64) {
        let number = self.people.size + number;
        self.scope.subscribers().create(&People::numbered(number).create(number)).unwrap();
    }

    fn delete(&self, number: u64) {
        let number = self.people.size + number;
        self.scope.subscribers().delete(People::name(number).as_str()).unwrap();
    }
}
