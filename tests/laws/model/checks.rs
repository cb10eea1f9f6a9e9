//! Comparing what the engine shows with what the model holds.

use std::fmt::Debug;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::world::{World, changed};
use tidings::Clock;
use tidings::contact::Email;
use tidings::message::{Message, MessageQuery, Stage};
use tidings::notification::{Notification, NotificationQuery};
use tidings::page::{Direction, Page, PageQuery, Total};
use tidings::subscriber::SubscriberQuery;
use tidings::time::Timestamp;

use super::history::{Question, WORKFLOWS};
use super::id;
use super::plain::{Letter, Model};
use crate::parsed;

#[track_caller]
pub fn check_people(world: &World, model: &Model, limit: u32) {
    let expected: Vec<_> = model.people.iter().map(|person| (person.name, person.email)).collect();
    let found = walk(limit, |page| {
        let query = SubscriberQuery::default().page(page);
        world.env.subscribers().list(&query).unwrap()
    });
    let found: Vec<_> = found
        .iter()
        .map(|found| (found.subscriber_id.as_str(), found.profile.email.as_ref()))
        .map(|(name, email)| (name, email.map(Email::as_str)))
        .collect();
    assert_eq!(found, expected);
}

#[track_caller]
pub fn check_letters(world: &World, model: &Model, limit: u32) {
    let began = began(world, model);
    for person in &model.people {
        let who = id(person.name);
        assert_eq!(world.env.inbox(&who).unwrap().counts().unwrap(), person.counts(), "of {who}");
        for read in [None, Some(true), Some(false)] {
            let found = walk(limit, |page| {
                let query = changed(MessageQuery::default(), |it| {
                    it.page = page;
                    it.read = read;
                });
                world.env.messages().list(&who, &query).unwrap()
            });
            let found: Vec<_> = found.iter().map(|message| letter(message, began)).collect();
            let mut expected = person.letters.clone();
            expected.retain(|letter| read.is_none_or(|read| letter.read.is_some() == read));
            assert_eq!(found, expected, "of {who}");
        }
    }
}

fn letter(message: &Message, began: Timestamp) -> Letter {
    let (seen, read) = match message.stage {
        Stage::Unseen => (None, None),
        Stage::Seen { seen_at } => (Some(seen_at), None),
        Stage::Read { seen_at, read_at } | Stage::Archived { seen_at, read_at, .. } => {
            (Some(seen_at), Some(read_at))
        }
    };
    let since = |time: Timestamp| u64::try_from(time.since(began).as_millis()).unwrap();
    Letter {
        transaction: message.transaction_id.to_string(),
        channel: message.channel,
        seen: seen.map(since),
        read: read.map(since),
    }
}

#[track_caller]
pub fn check_question(world: &World, model: &Model, question: &Question) {
    let page = world.env.notifications().list(&query(world, model, question)).unwrap();
    let found: Vec<_> = page.data.iter().map(named).collect();

    let all = model.asked_for(question);
    let start = (question.page * question.limit).min(all.len());
    let end = (start + question.limit).min(all.len());
    let expected = all[start..end].iter().map(|event| {
        let person = model.people.iter().find(|person| person.number == event.person);
        (event.transaction.clone(), person.map(|person| person.name.to_owned()))
    });
    assert_eq!(found, expected.collect::<Vec<_>>(), "{question:?}");
    assert_eq!(page.has_more, end < all.len(), "{question:?}");
    let mut on_all_pages = query(world, model, question);
    (on_all_pages.page_number, on_all_pages.limit) = (0, None);
    let count = world.env.notifications().count(&on_all_pages).unwrap();
    assert_eq!(count, all.len() as u64, "{question:?}");
}

fn query(world: &World, model: &Model, question: &Question) -> NotificationQuery {
    let began = began(world, model);
    let time = |millis| json!(began.after(Duration::from_millis(millis)));
    let contexts = |tenants: &Vec<_>| {
        json!(tenants.iter().map(|tenant| format!("tenant:{tenant}")).collect::<Vec<_>>())
    };
    let templates: Vec<_> = question.templates.iter().map(|at| WORKFLOWS[*at].name).collect();
    let mut query = json!({
        "subscriberIds": question.names, "emails": question.emails, "templates": templates,
        "channels": question.channels, "severity": question.severity,
        "page": question.page, "limit": question.limit,
    });
    let optional: [(&str, Option<Value>); 5] = [
        ("search", question.search.map(Value::from)),
        ("transactionId", question.transaction.clone().map(Value::from)),
        ("contextKeys", question.tenants.as_ref().map(contexts)),
        ("after", question.after.map(time)),
        ("before", question.before.map(time)),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            query[name] = value;
        }
    }
    parsed(query)
}

pub fn began(world: &World, model: &Model) -> Timestamp {
    Timestamp::from_millis(world.clock.now().as_millis() - i64::try_from(model.now).unwrap())
}

fn named(found: &Notification) -> (String, Option<String>) {
    let subscriber = found.subscriber.as_ref();
    let name = subscriber.map(|subscriber| subscriber.subscriber_id.to_string());
    (found.transaction_id.to_string(), name)
}

/// Walks through a list in both directions, checks that both lead past the same items, and returns
/// them oldest first.
#[track_caller]
fn walk<T: Clone + Debug + PartialEq>(limit: u32, list: impl Fn(PageQuery) -> Page<T>) -> Vec<T> {
    let walk = |direction| {
        let order_direction = Some(direction);
        let query = changed(PageQuery::default(), |it| {
            it.limit = Some(limit);
            it.order_direction = order_direction;
        });
        walk_there_and_back(&query, &list)
    };
    let oldest_first = walk(Direction::Ascending);
    let mut newest_first = walk(Direction::Descending);
    newest_first.reverse();
    assert_eq!(newest_first, oldest_first, "the other direction is another list");
    oldest_first
}

#[track_caller]
fn walk_there_and_back<T: Clone + Debug + PartialEq>(
    query: &PageQuery,
    list: impl Fn(PageQuery) -> Page<T>,
) -> Vec<T> {
    let mut pages = vec![list(query.clone())];
    while let Some(next) = &pages[pages.len() - 1].next {
        let after = Some(next.clone());
        pages.push(list(changed(query.clone(), |it| it.after = after)));
    }
    assert_eq!(pages[0].previous, None, "something comes before the first page");
    for two in pages.windows(2) {
        assert_eq!(two[0].data.len(), query.limit.unwrap() as usize, "a page is not full");
        assert!(!two[1].data.is_empty(), "a page is empty");
        let before = two[1].previous.clone();
        assert!(before.is_some(), "there is no way back");
        assert_eq!(list(changed(query.clone(), |it| it.before = before)), two[0], "the way back");
    }
    let total = pages[0].total;
    let items: Vec<T> = pages.into_iter().flat_map(|page| page.data).collect();
    assert_eq!(total, Total::Exactly(items.len()));
    items
}
