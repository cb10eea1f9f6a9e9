//! Comparing what the environment shows with what the model holds.

use std::collections::{BTreeMap, BTreeSet};

use domain::message::{Changes, InboxChange, Known, Message, MessageQuery, Stage as Shown};
use domain::notification::NotificationQuery;
use domain::suppression::SuppressedAddress;
use domain::vocabulary::Channel;
use serde_json::{Value, json};

use super::model::{Letter, Mail, Model, Person, Stage, Topic, Workflow};
use super::op::{Flow, Text, called, phone};
use super::{at, dead_letters, listed};
use crate::requests;
use crate::world::World;

/// Compares every entity.
#[track_caller]
pub fn all(world: &World, model: &Model) {
    people(world, model);
    declared(world, model);
    topics(world, model);
    channels(world, model);
    texts(world, model);
    others(world, model);
    events(world, model);
    for (name, person) in &model.people {
        letters(world, name, person);
        feed(world, name, person);
        preferences(world, name, person);
    }
}

#[track_caller]
fn people(world: &World, model: &Model) {
    let shown: BTreeMap<String, Option<String>> =
        listed(world, &json!(["subscribers.list", limit()]))
            .iter()
            .map(|one| (text(&one["subscriberId"]), one["email"].as_str().map(str::to_owned)))
            .collect();
    let held = model.people.iter().map(|(name, one)| ((*name).to_owned(), one.email.clone()));
    assert_eq!(shown, held.collect(), "subscribers");
    let addresses: BTreeSet<&String> =
        model.people.values().filter_map(|one| one.email.as_ref()).collect();
    for address in addresses {
        found(world, model, address);
    }
}

// Checks that those who have an address are found by it, by their telephone number and by their name.
#[track_caller]
fn found(world: &World, model: &Model, address: &str) {
    let wanted = model.people.iter().filter(|(_, one)| one.email.as_deref() == Some(address));
    let wanted: BTreeSet<String> = wanted.map(|(name, _)| (*name).to_owned()).collect();
    let queries = [
        json!({ "email": address, "limit": 100 }),
        json!({ "phone": phone(address), "limit": 100 }),
        json!({ "name": called(address).to_uppercase(), "limit": 100 }),
    ];
    for query in queries {
        let shown: BTreeSet<String> = listed(world, &json!(["subscribers.list", query]))
            .iter()
            .map(|one| text(&one["subscriberId"]))
            .collect();
        assert_eq!(shown, wanted, "{query}");
    }
}

#[track_caller]
fn declared(world: &World, model: &Model) {
    let flows = [Flow::Inbox.name(), Flow::Mail.name()];
    let shown: BTreeMap<String, Workflow> = listed(world, &json!(["workflows.list", limit()]))
        .iter()
        .map(|one| (text(&one["triggers"][0]["identifier"]), workflow(one)))
        .filter(|(id, _)| !flows.contains(&id.as_str()))
        .collect();
    assert_eq!(shown, model.workflows, "workflows");
    let shown: BTreeMap<String, bool> = listed(world, &json!(["integrations.list"]))
        .iter()
        .map(|one| (text(&one["identifier"]), one["name"] == "Another"))
        .filter(|(name, _)| name.starts_with("integration"))
        .collect();
    assert_eq!(shown, model.integrations, "integrations");
}

fn workflow(shown: &Value) -> Workflow {
    Workflow { name: text(&shown["name"]), is_paused: !shown["pausedAt"].is_null() }
}

#[track_caller]
fn topics(world: &World, model: &Model) {
    let shown: BTreeMap<String, Topic> = listed(world, &json!(["topics.list", limit()]))
        .iter()
        .map(|one| {
            let key = text(&one["key"]);
            let members = listed(world, &json!(["topics.subscriptions", key, limit()]));
            let members = members.iter().map(|one| known(&one["subscriberId"]));
            let name = one["name"].as_str().map(str::to_owned);
            (key, Topic { name, members: members.collect() })
        })
        .collect();
    assert_eq!(shown, model.topics, "topics");
}

#[track_caller]
fn channels(world: &World, model: &Model) {
    let shown: BTreeMap<_, _> = listed(world, &json!(["channel_connections.list", limit()]))
        .iter()
        .map(|one| {
            let place = (known(&one["subscriberId"]), text(&one["workspace"]["id"]));
            (text(&one["identifier"]), place)
        })
        .collect();
    assert_eq!(shown, model.connections, "connections");
    let shown: BTreeMap<_, _> = listed(world, &json!(["channel_endpoints.list", limit()]))
        .iter()
        .map(|one| {
            let place = (known(&one["subscriberId"]), text(&one["endpoint"]["channelId"]));
            (text(&one["identifier"]), place)
        })
        .collect();
    assert_eq!(shown, model.endpoints, "endpoints");
}

#[track_caller]
fn texts(world: &World, model: &Model) {
    let layouts = listed(world, &json!(["layouts.list", limit()]));
    let shown: BTreeSet<String> = layouts.iter().map(|one| text(&one["layoutId"])).collect();
    assert_eq!(shown, model.layouts, "layouts");
    let mut held = BTreeMap::new();
    for ((resource, locale), content) in &model.translations {
        let (kind, which) = match resource {
            Text::Workflow(which) => ("workflow", which),
            Text::Layout(which) => ("layout", which),
        };
        held.insert((format!("{kind}-{which}"), (*locale).to_owned()), content.clone());
    }
    let shown: BTreeMap<_, _> = listed(world, &json!(["translations.list", limit()]))
        .iter()
        .map(|one| {
            let place = (text(&one["resourceId"]), text(&one["locale"]));
            (place, text(&one["content"]["hello"]))
        })
        .collect();
    assert_eq!(shown, held, "translations");
}

#[track_caller]
fn others(world: &World, model: &Model) {
    let shown: BTreeMap<String, i64> = listed(world, &json!(["contexts.list", limit()]))
        .iter()
        .map(|one| {
            let key = format!("{}:{}", text(&one["type"]), text(&one["id"]));
            (key, one["data"]["seats"].as_i64().unwrap_or(-1))
        })
        .collect();
    let held = model.contexts.iter().map(|(key, data)| ((*key).to_owned(), i64::from(*data)));
    assert_eq!(shown, held.collect(), "contexts");

    let shown: BTreeMap<String, Option<String>> =
        listed(world, &json!(["suppressions.list", limit()]))
            .iter()
            .map(|one| (text(&one["address"]), one["expiresAt"].as_str().map(str::to_owned)))
            .collect();
    let in_force = model.suppressions.iter().filter(|(address, _)| model.is_suppressed(address));
    let held = in_force.map(|(address, suppression)| {
        let end = suppression.end.map(|end| at(end).to_string());
        let shown = SuppressedAddress::new(Channel::Email, address).unwrap();
        let hash = shown.erased(world.env.environment_id());
        let shown = if suppression.is_erased { hash } else { shown };
        (shown.address().to_owned(), end)
    });
    assert_eq!(shown, held.collect(), "suppressions");

    for (request, prefix, held) in
        [("keys.list", "key-", &model.keys), ("environments.list", "env-", &model.environments)]
    {
        let shown = listed(world, &json!([request]));
        let names = shown.iter().map(|one| text(&one["name"]));
        let names: BTreeSet<String> = names.filter(|name| name.starts_with(prefix)).collect();
        assert_eq!(names, *held, "{request}");
    }
}

#[track_caller]
fn events(world: &World, model: &Model) {
    let notifications = world.env.notifications();
    let everything = NotificationQuery::default().limit(50);
    let shown = notifications.list(&everything).expect("they can be listed").data;
    let shown: Vec<String> = shown.iter().map(|one| one.transaction_id.to_string()).collect();
    let held = model.events.iter().rev().take(50).map(|event| event.transaction.clone());
    assert_eq!(shown, held.collect::<Vec<_>>(), "notifications");
    let count = notifications.count(&NotificationQuery::default()).expect("they can be counted");
    assert_eq!(count, model.events.len() as u64, "count of notifications");

    let mut shown: Vec<_> =
        dead_letters(world).iter().map(|letter| letter.transaction_id.to_string()).collect();
    shown.sort();
    let dead = model.events.iter().filter(|event| event.mail == Mail::Dead);
    let mut held: Vec<_> = dead.map(|event| event.transaction.clone()).collect();
    held.sort();
    assert_eq!(shown, held, "dead letters");
}

#[track_caller]
fn letters(world: &World, name: &str, person: &Person) {
    let inbox = world.env.inbox(name).expect("an id");
    let open = MessageQuery::default().limit(100);
    let mails = MessageQuery::default().limit(100).channel(Channel::Email);
    let mut shown: Vec<Letter> = [open.clone(), open.clone().archived(), open.snoozed()]
        .iter()
        .flat_map(|query| inbox.list(query).expect("the subscriber is there").data)
        .chain(world.env.messages().list(name, &mails).expect("the subscriber is there").data)
        .map(|message| letter(&message))
        .collect();
    shown.sort();
    let mut held = person.letters.clone();
    held.sort();
    assert_eq!(shown, held, "messages of {name}");
    let counts = inbox.counts().expect("the subscriber is there");
    let waits = |letter: &&Letter| letter.flow == Flow::Inbox && letter.snoozed_until.is_none();
    let waiting = || person.letters.iter().filter(waits);
    let unseen = waiting().filter(|letter| letter.stage == Stage::Unseen).count();
    let unread = waiting().filter(|letter| letter.stage < Stage::Read).count();
    assert_eq!((counts.unseen, counts.unread), (unseen, unread), "counts of {name}");
}

// The feed from its start tells every message of the inbox, and those that were deleted.
#[track_caller]
fn feed(world: &World, name: &str, person: &Person) {
    let inbox = world.env.inbox(name).expect("an id");
    let newest = inbox.cursor().expect("the subscriber is there");
    let mut from = newest.moved(None, Known::default());
    let (mut shown, mut deleted) = (Vec::new(), BTreeSet::new());
    loop {
        let Ok(Changes::Since(page)) = inbox.changes_since(&from) else {
            panic!("the feed of {name} does not begin");
        };
        for change in page.changes {
            match change {
                InboxChange::Message { message } => shown.push(letter(&message)),
                InboxChange::Deleted { message_id } => drop(deleted.insert(message_id)),
            }
        }
        from = page.next;
        if !page.has_more {
            break;
        }
    }
    shown.sort();
    let held = person.letters.iter().filter(|letter| letter.flow == Flow::Inbox);
    let mut held: Vec<Letter> = held.cloned().collect();
    held.sort();
    assert_eq!(shown, held, "feed of {name}");
    assert_eq!(deleted, person.deleted, "deleted messages of {name}");
}

#[track_caller]
fn preferences(world: &World, name: &str, person: &Person) {
    let request = json!(["preferences.get", name, {}]);
    let answer = requests::call(&world.engine, &world.env, &request);
    let shown = answer.expect("the subscriber is there").json();
    let workflows = shown["workflows"].as_array().expect("they are listed");
    for flow in [Flow::Inbox, Flow::Mail] {
        let about = workflows.iter().find(|one| one["workflow"]["identifier"] == flow.name());
        let wanted = about.map(|one| &one["channels"][flow.channel()]);
        assert_eq!(wanted, Some(&json!(person.welcomes(flow))), "{flow:?} for {name}");
    }
}

fn letter(message: &Message) -> Letter {
    let since = |time: domain::time::Timestamp| time.since(at(0)).as_secs();
    Letter {
        notification: message.notification_id,
        flow: if message.channel == Channel::InApp { Flow::Inbox } else { Flow::Mail },
        to: message.email.clone().filter(|_| message.channel == Channel::Email),
        stage: match message.stage {
            Shown::Unseen => Stage::Unseen,
            Shown::Seen { .. } => Stage::Seen,
            Shown::Read { .. } => Stage::Read,
            Shown::Archived { .. } => Stage::Archived,
        },
        snoozed_until: message.snoozed_until.map(since),
    }
}

fn limit() -> Value {
    json!({ "limit": 50 })
}

fn text(json: &Value) -> String {
    json.as_str().unwrap_or_default().to_owned()
}

/// The name of a subscriber, which is one of those of the model.
fn known(name: &Value) -> &'static str {
    (0..3).map(|who| super::Who(who).name()).find(|who| name == who).unwrap_or("nobody")
}
