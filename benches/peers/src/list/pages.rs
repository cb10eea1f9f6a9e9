//! Whole pages of the list: the index part, and the notifications on the page, read and decoded.

use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use bench_data::{Population, Shape, Wanted};
use domain::context::ContextFilter;
use domain::ids::{InternalSubscriberId, SubscriberId};
use domain::notification::NotificationQuery;
use tidings::{Engine, Scope};

use crate::list::compare;
use crate::list::load::{self, Loaded, SEED};
use crate::list::oracle::Expected;
use crate::list::search::{self, SEARCHES};
use crate::list::sql::Way;
use crate::list::sqlite::Sqlite;
use crate::list::system::System;

mod sqlite;

/// Notifications that are put into both systems with everything that they have: more would take
/// longer than everything else together.
pub(crate) const MOST: u64 = 1_100_000;

/// Times for the whole pages of a question.
pub(crate) struct Pages {
    pub(crate) question: &'static str,
    pub(crate) matches: u64,
    pub(crate) sqlite: Duration,
    pub(crate) tidings: Duration,
}

/// Measures whole pages of each shape and search, of SQLite along `ways`.
pub(crate) fn measure(loaded: &mut Loaded, size: u64, folder: &Path, ways: &[Way]) -> Vec<Pages> {
    let engine = Engine::open(folder.join("whole.redb")).unwrap();
    let scope = engine.organization("acme").unwrap().development().unwrap();
    let activity = tidings::bench_data::load(&scope, &load::profile(true), SEED, size).unwrap();
    let population = activity.population();
    let Loaded { numbers, expected, searched, .. } = loaded;
    let subscribers = 0..population.profile().subscribers.count;
    let addresses = subscribers.map(|rank| {
        let number = numbers.subscriber(population.internal_subscriber_id(rank));
        (number, search::address(population, rank))
    });
    let file = Sqlite::open(&folder.join("sqlite.db"));
    sqlite::fill(&file, load::whole(size), addresses);
    let expected: Vec<_> = expected.iter().chain(&*searched).collect();
    let queries = queries(&expected, population);
    let limits: Vec<_> = expected.iter().map(|one| one.shape.limit as usize).collect();
    let searches = SEARCHES.map(|(part, _)| sqlite::search(part, Shape::LIMIT));
    let ways = ways.iter().chain(&searches).zip(limits);
    let mut systems: [(&str, Box<dyn System + '_>); 2] = [
        ("SQLite", Box::new(sqlite::Whole::new(&file, ways))),
        ("Tidings", Box::new(Whole { scope, queries })),
    ];
    let pages = expected.into_iter().enumerate().map(|(question, expected)| {
        let mut page = expected.page();
        page.truncate(expected.shape.limit as usize);
        for (name, system) in &mut systems {
            let found: Vec<_> = system.find(question).into_iter().map(i64::cast_unsigned).collect();
            assert_eq!(found, page, "{name} is wrong about {}", expected.shape.name);
        }
        let [sqlite, tidings] = compare::in_turns(&mut systems, question)[..] else {
            unreachable!("there are two systems")
        };
        Pages { question: expected.shape.name, matches: expected.matches, sqlite, tidings }
    });
    pages.collect()
}

// Tidings as a host calls it.
struct Whole {
    scope: Scope,
    queries: Vec<NotificationQuery>,
}

impl System for Whole {
    fn find(&mut self, question: usize) -> Vec<i64> {
        let page = self.scope.notifications().list(&self.queries[question]).unwrap();
        page.data.iter().map(sqlite::ordinal).collect()
    }

    fn run(&mut self, question: usize) {
        black_box(self.scope.notifications().list(&self.queries[question]).unwrap());
    }
}

fn queries(expected: &[&Expected], population: &Population) -> Vec<NotificationQuery> {
    let subscribers = 0..population.profile().subscribers.count;
    let names: HashMap<_, _> = subscribers
        .map(|rank| (population.internal_subscriber_id(rank), population.subscriber_id(rank)))
        .collect();
    let query = |expected: &&Expected| {
        let shape = &expected.shape;
        let search = SEARCHES.iter().find(|(_, name)| *name == shape.name);
        search.map_or_else(
            || query(shape, &names),
            |(part, _)| NotificationQuery::default().search(*part),
        )
    };
    expected.iter().map(query).collect()
}

fn query(shape: &Shape, names: &HashMap<InternalSubscriberId, SubscriberId>) -> NotificationQuery {
    let mut query = NotificationQuery::default().page_number(shape.page).limit(shape.limit);
    (query.earliest, query.latest) = (shape.after, shape.before);
    query.transaction_id.clone_from(&shape.transaction);
    for wanted in shape.groups.iter().flatten() {
        match wanted {
            Wanted::Subscriber(id) if shape.name.contains("addresses") => {
                query.emails.push(format!("{}@example.com", names[id]));
            }
            Wanted::Subscriber(id) => query.subscriber_ids.push(names[id].clone()),
            Wanted::Workflow(id) => query.workflows.push(id.to_string().into()),
            Wanted::Topic(key) => query.topic_key = Some(key.clone()),
            Wanted::Subscription(identifier) => query.subscription_id = Some(identifier.clone()),
            Wanted::Contexts(contexts) => {
                query.context_keys = ContextFilter::Exact(contexts.clone());
            }
            Wanted::Severity(severity) => query.severities.push(*severity),
            Wanted::Channel(kind) => query.step_types.push(*kind),
        }
    }
    query
}
