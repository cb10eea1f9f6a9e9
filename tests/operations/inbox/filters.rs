//! Queries of an inbox by what messages are about: tags, severity, contexts and workflows.

use serde_json::json;
use store::layout::Target;
use store::{Table, layout};
use testkit::tables::{self, load};
use tidings::ids::MessageId;
use tidings::message::{InboxCounts, ListPlace, MarkAs, MessagePlace, MessageQuery, Signature};
use tidings::notification::Ordinal;
use tidings::page::{PageQuery, Total};
use tidings::vocabulary::Severity;

use super::mark;
use crate::world::{World, in_app, on_both, pages, parsed, with, workflow_of};

// Messages of three workflows, oldest first: of each one an unseen, a seen, a read and an archived
// message.
fn with_messages(world: &World) -> Vec<MessageId> {
    for (name, tags, severity) in [
        ("news", json!(["a"]), "low"),
        ("bills", json!(["a", "b"]), "high"),
        ("rest", json!([]), "none"),
    ] {
        let more = json!({ "tags": tags, "severity": severity });
        world.workflow(with(workflow_of(name, &[in_app()]), more));
    }
    let mut ids = Vec::new();
    for (name, context) in [
        ("news", json!({})),
        ("bills", json!({ "context": { "tenant": "acme" } })),
        ("rest", json!({})),
    ] {
        let told: Vec<_> = (0..4)
            .map(|_| {
                world.tick();
                world.trigger(with(json!({ "name": name, "to": "ada" }), context.clone()));
                world.inbox("ada")[0].id
            })
            .collect();
        mark(world, "ada", &told[1..2], MarkAs::Seen);
        mark(world, "ada", &told[2..3], MarkAs::Read);
        world.env.inbox("ada").unwrap().archive(&told[3..]).unwrap();
        ids.extend(told);
    }
    ids
}

/// One row per query: the messages that it selects, oldest first.
#[test]
fn an_inbox_is_listed_and_counted_by_what_its_messages_are_about() {
    on_both(|world| {
        let ids = with_messages(&world);
        let inbox = world.env.inbox("ada").unwrap();
        let bills = world.env.workflows().get("bills").unwrap();
        let (bills, slug) = (bills.id, bills.slug());
        for (query, expected) in [
            (json!({ "tags": "a" }), vec![0, 1, 2, 4, 5, 6]),
            (json!({ "tags": ["b", "c"] }), vec![4, 5, 6]),
            (json!({ "tags": "c" }), vec![]),
            (json!({ "tags": "a", "read": false }), vec![0, 1, 4, 5]),
            (json!({ "tags": "a", "read": false, "seen": true }), vec![1, 5]),
            (json!({ "tags": "b", "seen": false }), vec![4]),
            (json!({ "tags": ["a", "b"], "read": false }), vec![0, 1, 4, 5]),
            (json!({ "severity": ["high", "low"] }), vec![0, 1, 2, 4, 5, 6]),
            (json!({ "severity": "none", "read": false }), vec![8, 9]),
            (json!({ "severity": "medium", "read": false }), vec![]),
            (json!({ "severity": "high", "tags": "a", "read": "true" }), vec![6]),
            (json!({ "contextKeys": ["tenant:acme"] }), vec![4, 5, 6]),
            (json!({ "contextKeys": [] }), vec![0, 1, 2, 8, 9, 10]),
            (json!({ "templates": ["news", bills] }), vec![0, 1, 2, 4, 5, 6]),
            (json!({ "templates": [slug] }), vec![4, 5, 6]),
            (json!({ "templates": ["bills_wf_", "wf_rest"] }), vec![]),
            (json!({ "archived": true, "tags": "a" }), vec![3, 7]),
            (json!({ "archived": true, "read": false }), vec![]),
            (json!({ "archived": true, "severity": "high" }), vec![7]),
            (json!({ "snoozed": true, "tags": "a" }), vec![]),
        ] {
            let selected: Vec<_> = expected.iter().rev().map(|at| ids[*at]).collect();
            let asked: MessageQuery = parsed(query.clone());
            for limit in [1, 2, 100] {
                let asked = PageQuery::default().limit(limit);
                let walked = pages(&asked, |page| {
                    inbox.list(&parsed::<MessageQuery>(query.clone()).page(page)).unwrap()
                });
                let walked: Vec<_> = walked.concat().iter().map(|found| found.id).collect();
                assert_eq!(walked, selected, "{query}");
            }
            assert_eq!(inbox.count(&asked).unwrap(), Total::Exactly(selected.len()), "{query}");
        }
    });
}

#[test]
fn what_waits_is_counted_by_tag_and_by_severity() {
    on_both(|world| {
        with_messages(&world);
        let inbox = world.env.inbox("ada").unwrap();
        for (tag, unseen, unread) in [("a", 2, 4), ("b", 1, 2), ("c", 0, 0)] {
            assert_eq!(
                inbox.counts_of_tag(tag).unwrap(),
                InboxCounts::new(unseen, unread),
                "{tag}"
            );
        }
        for (severity, unseen, unread) in [
            (Severity::Low, 1, 2),
            (Severity::High, 1, 2),
            (Severity::None, 1, 2),
            (Severity::Medium, 0, 0),
        ] {
            let counts = inbox.counts_of_severity(severity).unwrap();
            assert_eq!(counts, InboxCounts::new(unseen, unread), "{severity}");
        }
        let eve = world.env.inbox("eve").unwrap();
        let refusal = "404 subscriber `eve` is not there";
        world.refuses(refusal, || eve.counts_of_tag("a"));
        world.refuses(refusal, || eve.counts_of_severity(Severity::Low));
        world.refuses(refusal, || eve.count(&MessageQuery::default()));
    });
}

/// A page reads 2,000 messages, and the next one goes on behind them. Without signatures it reads each
/// message of the list, and with them those that may match.
#[test]
fn a_page_of_few_among_many_has_an_end() {
    const HUNDREDS: usize = MessageQuery::MAX_SCANNED / 100 + 1;
    on_both(|world| {
        world.in_app_workflow("hi");
        world.in_app_workflow("rare");
        world.notify("rare", "ada");
        let hundred: Vec<_> = vec![parsed(json!({ "name": "hi", "to": "ada" })); 100];
        for _ in 0..HUNDREDS {
            world.env.events().trigger_bulk(&hundred).unwrap().all().unwrap();
        }
        let inbox = world.env.inbox("ada").unwrap();
        let rare: MessageQuery = parsed(json!({ "templates": ["rare"] }));
        let only = inbox.list(&rare).unwrap();
        assert_eq!((only.data.len(), only.next, only.total), (1, None, Total::Exactly(1)));
        assert_eq!(inbox.count(&rare).unwrap(), Total::Exactly(1));
        unsign(&world);
        let first = inbox.list(&rare).unwrap();
        assert_eq!((first.data.len(), first.total), (0, Total::AtLeast(0)));
        let second = inbox.list(&rare.clone().after(first.next.unwrap())).unwrap();
        assert_eq!((second.data.len(), second.next), (1, None));
        assert_eq!(second.total, Total::AtLeast(1));
        assert_eq!(inbox.count(&rare).unwrap(), Total::AtLeast(0));
        let mut frequent: MessageQuery = parsed(json!({ "templates": ["hi"], "limit": 100 }));
        assert_eq!(inbox.count(&frequent).unwrap(), Total::AtLeast(MessageQuery::MAX_SCANNED));
        let mut found = 0;
        loop {
            let page = inbox.list(&frequent).unwrap();
            let Total::AtLeast(total) = page.total else { panic!("{:?}", page.total) };
            assert!((1_000..=HUNDREDS * 100).contains(&total), "{total}");
            found += page.data.len();
            let Some(next) = page.next else { break };
            frequent = frequent.after(&next);
        }
        assert_eq!(found, HUNDREDS * 100);
        // What the counters rule out needs no walk.
        let none = MessageQuery::default().unread().tags(["nothing"]);
        let page = inbox.list(&none).unwrap();
        assert_eq!((page.next, page.total), (None, Total::Exactly(0)));
    });
}

// Takes the signatures out of the entries of all lists.
fn unsign(world: &World) {
    let lists = tables::of(&world.store, Table::MessageLists);
    let bare = lists.into_iter().map(|(table, key, value)| {
        let value = Target::read(table, &value).key.to_vec();
        (table, key, value)
    });
    load(&world.store, &bare.collect::<Vec<_>>());
}

/// A page looks at 20,000 entries, and the next one goes on behind them.
#[test]
fn a_page_passes_so_many_entries_at_most() {
    on_both(|world| {
        world.in_app_workflow("rare");
        world.in_app_workflow("hi");
        world.notify("rare", "ada");
        world.tick();
        world.notify("hi", "ada");
        let [newest, oldest] = &world.inbox("ada")[..] else { panic!("two messages") };
        // Entries between the two, which lead to the one that is not asked for.
        let list =
            layout::message_list(newest.environment_id, newest.subscriber_id, newest.shelf());
        let target = layout::message(newest.environment_id, newest.id.place());
        let signature = Some(Signature::of(newest));
        let value = Target { key: target.as_bytes(), signature }.to_bytes();
        let at = oldest.list_place().at;
        let others = |count: usize| {
            let entries = (1_000..).take(count).map(|ordinal| {
                let place = MessagePlace::new(Ordinal::new(ordinal), 0);
                let key = list.clone().then(ListPlace { at, place }).end();
                (key.table(), key.as_bytes().to_vec(), value.to_vec())
            });
            load(&world.store, &entries.collect::<Vec<_>>());
        };
        let inbox = world.env.inbox("ada").unwrap();
        let rare: MessageQuery = parsed(json!({ "templates": ["rare"] }));
        others(MessageQuery::MAX_ENTRIES - 2);
        let page = inbox.list(&rare).unwrap();
        assert_eq!((page.data.len(), page.next.is_some()), (1, true));
        others(MessageQuery::MAX_ENTRIES - 1);
        let page = inbox.list(&rare).unwrap();
        assert_eq!((page.data.len(), page.total), (0, Total::AtLeast(0)));
        assert_eq!(inbox.count(&rare).unwrap(), Total::AtLeast(0));
        let page = inbox.list(&rare.clone().after(page.next.unwrap())).unwrap();
        assert_eq!((page.data.len(), page.next, page.total), (1, None, Total::AtLeast(1)));
    });
}
