//! Signatures in the entries of lists of messages: pages of a query are what a filter over all messages
//! says, whatever has happened to the messages, and a check finds each signature that is wrong.

use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use store::Table;
use store::layout::Target;
use testkit::interposed::Interposed;
use testkit::tables::{self, check_indexes, dump, put};
use testkit::world::{Backend, World, email, in_app, with, workflow_of};
use tidings::check::{Finding, Problem};
use tidings::ids::MessageId;
use tidings::message::{MarkAs, Message, MessageQuery};
use tidings::page::Total;

use crate::seeded::{copy, entries, entries_of};
use crate::{cases, parsed};

/// What happens to an inbox.
#[derive(Clone, Debug)]
enum Deed {
    Trigger { workflow: usize, contexts: usize },
    Mark(Index, MarkAs),
    Archive(Index),
    Unarchive(Index),
    Snooze(Index),
    Unsnooze(Index),
    Delete(Index),
    ArchiveTagged(usize),
    // The entry of a message loses its signature, as if it were from an older file.
    Unsign(Index),
    // Messages are sent, and snoozes end.
    Wait,
}

fn deed() -> impl Strategy<Value = Deed> {
    let which = || any::<Index>();
    let mark = prop::sample::select(MarkAs::ALL.to_vec());
    prop_oneof![
        6 => (0..4_usize, 0..3_usize)
            .prop_map(|(workflow, contexts)| Deed::Trigger { workflow, contexts }),
        3 => (which(), mark).prop_map(|(which, mark)| Deed::Mark(which, mark)),
        1 => which().prop_map(Deed::Archive),
        1 => which().prop_map(Deed::Unarchive),
        1 => which().prop_map(Deed::Snooze),
        1 => which().prop_map(Deed::Unsnooze),
        1 => which().prop_map(Deed::Delete),
        1 => (0..4_usize).prop_map(Deed::ArchiveTagged),
        2 => which().prop_map(Deed::Unsign),
        1 => Just(Deed::Wait),
    ]
}

const NAMES: [&str; 4] = ["news", "bills", "both", "plain"];

fn world_on(backend: &Backend) -> World {
    let world = World::with(Interposed::over(backend.open()), |builder| builder);
    world.active_integration("email", "mail");
    world.bare_subscriber("ada");
    world.env.subscribers().update("ada", &parsed(json!({ "email": "ada@example.com" }))).unwrap();
    let tags = [json!(["news"]), json!(["bills", "shop"]), json!(["news", "bills"]), json!([])];
    let severities = ["low", "high", "none", "none"];
    for ((name, tags), severity) in NAMES.into_iter().zip(tags).zip(severities) {
        let more = json!({ "tags": tags, "severity": severity });
        world.workflow(with(workflow_of(name, &[in_app(), email()]), more));
    }
    world
}

fn perform(world: &World, deed: &Deed) {
    let inbox = world.env.inbox("ada").unwrap();
    let all = world.records::<Message>();
    let of = |which: &Index| (!all.is_empty()).then(|| which.get(&all).id);
    world.tick();
    match deed {
        Deed::Trigger { workflow, contexts } => {
            let context = match contexts {
                0 => json!({}),
                1 => json!({ "context": { "tenant": "acme" } }),
                _ => json!({ "context": { "tenant": "b", "app": "web" } }),
            };
            world.trigger(with(json!({ "name": NAMES[*workflow], "to": "ada" }), context));
        }
        // An e-mail is in no folder, and cannot be moved to one.
        Deed::Mark(which, mark) => drop(inbox.mark_as(of(which), *mark)),
        Deed::Archive(which) => drop(inbox.archive(of(which))),
        Deed::Unarchive(which) => drop(inbox.unarchive(of(which))),
        Deed::Snooze(which) => {
            let until = world.now().after(Duration::from_secs(3));
            drop(inbox.snooze(of(which), until));
        }
        Deed::Unsnooze(which) => drop(inbox.unsnooze(of(which))),
        Deed::Delete(which) => drop(of(which).map(|id| inbox.delete([id]))),
        Deed::ArchiveTagged(at) => {
            let tagged = MessageQuery::default().tags([NAMES[*at]]);
            inbox.archive_matching(&tagged).unwrap();
        }
        Deed::Unsign(which) => {
            let lists = listed(world);
            if !lists.is_empty() {
                let (key, value) = which.get(&lists);
                put(
                    &world.store,
                    Table::MessageLists,
                    key,
                    Some(Target::read(Table::MessageLists, value).key),
                );
            }
        }
        Deed::Wait => drop(world.run_due()),
    }
}

/// The entries of all lists of messages.
fn listed(world: &World) -> Vec<(Vec<u8>, Vec<u8>)> {
    let lists = tables::of(&world.store, Table::MessageLists);
    lists.into_iter().map(|(_, key, value)| (key, value)).collect()
}

fn queries(world: &World) -> Vec<Value> {
    let bills = world.env.workflows().get("bills").unwrap().id;
    let transaction = world.records::<Message>().last().map(|one| one.transaction_id.clone());
    let mut queries = vec![
        json!({ "tags": "news" }),
        json!({ "tags": ["bills", "nothing"] }),
        json!({ "tags": "nothing" }),
        json!({ "tags": "shop", "read": false }),
        json!({ "tags": "news", "archived": true }),
        json!({ "tags": "news", "snoozed": true }),
        json!({ "severity": ["high", "medium"] }),
        json!({ "severity": "none", "tags": "news" }),
        json!({ "contextKeys": ["tenant:acme"] }),
        json!({ "contextKeys": ["app:web", "tenant:b"], "severity": "low" }),
        json!({ "contextKeys": [] }),
        json!({ "templates": ["plain", bills] }),
        json!({ "channel": "email", "templates": "news" }),
        json!({ "channel": "sms" }),
    ];
    queries.extend(transaction.map(|id| json!({ "transactionId": id })));
    queries
}

/// The pages of each query, and its count, are what a filter over all messages says.
#[track_caller]
fn check_queries(world: &World) {
    let inbox = world.env.inbox("ada").unwrap();
    let mut all = world.records::<Message>();
    all.sort_by_key(|message| Reverse(message.list_place()));
    for query in queries(world) {
        let asked: MessageQuery = parsed(query.clone());
        let matching = |asked: &MessageQuery, is_inbox: bool| -> Vec<MessageId> {
            let shown =
                all.iter().filter(|one| asked.matches(*one) && (!is_inbox || one.is_in_inbox()));
            shown.map(|message| message.id).collect()
        };
        let expected = matching(&asked.in_inbox(), true);
        let found = pages(&asked, |asked| inbox.list(asked).unwrap());
        assert_eq!(found, expected, "inbox: {query}");
        assert_eq!(inbox.count(&asked).unwrap(), Total::Exactly(expected.len()), "{query}");
        let found = pages(&asked, |asked| world.env.messages().list("ada", asked).unwrap());
        assert_eq!(found, matching(&asked, false), "messages: {query}");
    }
}

fn pages(
    query: &MessageQuery,
    list: impl Fn(&MessageQuery) -> tidings::page::Page<Message>,
) -> Vec<MessageId> {
    let (mut found, mut next) = (Vec::new(), Some(query.clone().limit(3)));
    while let Some(asked) = next {
        let page = list(&asked);
        found.extend(page.data.iter().map(|message| message.id));
        next = page.next.map(|cursor| query.clone().limit(3).after(&cursor));
    }
    found
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn pages_are_what_a_filter_over_all_messages_says(deeds in vec(deed(), 0..50)) {
        for backend in Backend::both() {
            let world = world_on(&backend);
            for deed in &deeds {
                perform(&world, deed);
            }
            check_queries(&world);
            check_indexes(&world.store);
        }
    }
}

/// Damage to the signature of an entry.
fn ruins(value: &[u8]) -> [Vec<u8>; 3] {
    let bare = Target::read(Table::MessageLists, value).key;
    let flipped: Vec<u8> = value[bare.len()..].iter().map(|byte| !byte).collect();
    [[bare, &flipped].concat(), [bare, &[0; 8]].concat(), [bare, &[u8::MAX; 8]].concat()]
}

fn signed() -> Vec<(&'static [u8], &'static [u8])> {
    let lists = entries_of(Table::MessageLists);
    let lists: Vec<_> = lists.map(|(_, key, value)| (key.as_slice(), value.as_slice())).collect();
    let is_signed = |value| Target::read(Table::MessageLists, value).signature.is_some();
    assert!(lists.len() > 1 && lists.iter().all(|(_, value)| is_signed(value)));
    lists
}

fn findings(world: &World) -> Vec<(&'static str, Vec<u8>, Problem)> {
    let place = |finding| match finding {
        Finding::Table(one) => (one.table, one.key, one.problem),
        other => panic!("{other}"),
    };
    world.engine.check().unwrap().findings.into_iter().map(place).collect()
}

#[test]
fn a_wrong_signature_is_found_and_mended() {
    for (key, value) in signed() {
        for ruin in ruins(value) {
            let world = copy();
            put(&world.store, Table::MessageLists, key, Some(&ruin));
            let expected = ("message_lists", key.to_vec(), Problem::WrongSignature);
            assert_eq!(findings(&world), [expected]);
            assert_eq!(world.engine.repair().unwrap().mended, 1);
            assert!(dump(&world.store) == entries());
        }
    }
}

/// A value is a key with a signature, or a key alone. Of any other length, it leads nowhere.
#[test]
fn a_signature_of_another_length_is_found_and_mended() {
    for (key, value) in signed().into_iter().step_by(3) {
        for len in [0, 8, 16, 23, 25, 31, 33, 40] {
            let ruin: Vec<u8> =
                value.iter().copied().chain(std::iter::repeat(0)).take(len).collect();
            let world = copy();
            put(&world.store, Table::MessageLists, key, Some(&ruin));
            let problems = [Problem::Missing, Problem::Extra];
            let expected = problems.map(|problem| ("message_lists", key.to_vec(), problem));
            assert_eq!(findings(&world), expected, "{len}");
            assert!(world.engine.repair().unwrap().is_finished);
            assert!(dump(&world.store) == entries(), "{len}");
        }
    }
}

/// An entry of an older file is as good as one with a signature.
#[test]
fn an_entry_without_a_signature_is_sound() {
    let world = copy();
    for (key, value) in signed() {
        put(
            &world.store,
            Table::MessageLists,
            key,
            Some(Target::read(Table::MessageLists, value).key),
        );
    }
    let before = dump(&world.store);
    assert_eq!(findings(&world), []);
    assert_eq!(world.engine.repair().unwrap().mended, 0);
    assert!(dump(&world.store) == before);
}

/// A repair that is ended anywhere goes on.
#[test]
fn wrong_signatures_are_mended_by_a_repair_that_is_interrupted() {
    let ruined = || {
        let world = copy();
        for (key, value) in signed() {
            put(&world.store, Table::MessageLists, key, Some(&ruins(value)[1]));
        }
        world
    };
    let mut last = 0;
    loop {
        last += 1;
        let (world, mut told) = (ruined(), 0);
        let until_last = |_| {
            told += 1;
            if told == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let is_finished = world.engine.repair_with(until_last).unwrap().is_finished;
        let found = findings(&world);
        assert!(found.iter().all(|(.., problem)| *problem == Problem::WrongSignature), "{found:?}");
        assert!(world.engine.repair().unwrap().is_finished);
        assert!(dump(&world.store) == entries());
        if is_finished {
            break;
        }
    }
    assert!(last > 3);
    for after in 0.. {
        let world = ruined();
        let repaired = world.interrupted(after, || world.engine.repair());
        assert!(findings(&world).len() <= signed().len());
        assert!(world.engine.repair().unwrap().is_finished);
        assert!(dump(&world.store) == entries(), "after {after} transactions");
        if repaired.is_ok() {
            break;
        }
    }
}

/// A wrong signature hides its message from queries, and from nothing else, until it is mended.
#[test]
fn a_message_with_a_wrong_signature_is_hidden_from_queries_only() {
    for backend in Backend::both() {
        let world = world_on(&backend);
        for workflow in [0, 1, 0] {
            perform(&world, &Deed::Trigger { workflow, contexts: 0 });
        }
        let all = world.inbox("ada");
        let inbox = world.env.inbox("ada").unwrap();
        let tagged = MessageQuery::default().tags(["news"]);
        let found = || inbox.list(&tagged).unwrap().data;
        assert_eq!(found(), [all[0].clone(), all[2].clone()]);
        let (key, value) = listed(&world).pop().unwrap();
        put(&world.store, Table::MessageLists, &key, Some(&ruins(&value)[1]));
        assert_eq!(found(), [all[2].clone()]);
        assert_eq!(world.inbox("ada"), all);
        assert!(world.engine.repair().unwrap().is_finished);
        assert_eq!(found(), [all[0].clone(), all[2].clone()]);
    }
}
