//! The inbox: listing it, and counting what waits in it.

mod actions;
mod archive;
mod feed;
mod filters;
mod groups;
mod snooze;

use std::time::Duration;

use serde_json::{Value, json};
use testkit::tables::check_indexes;
use tidings::Clock;
use tidings::ids::MessageId;
use tidings::message::{InboxCounts, MarkAs, Message, MessageQuery};
use tidings::page::{PageQuery, Total};
use tidings::time::Timestamp;
use tidings::vocabulary::{Channel, Severity};

use crate::world::{
    NO_ID, START, World, email, id, in_app, names, on_both, only, pages, parsed, payload_is, sms,
    wire, with, workflow_of,
};

#[test]
fn a_message_says_what_its_template_does() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "firstName": "Ada", "data": { "n": 3 } }));
        let template = json!({
            "subject": "{{ workflow.name }} for {{ subscriber.firstName }}",
            "body": "{{ payload.item.name }} <{{ subscriber.data.n }}>, {{ payload.nothing }}",
            "url": "https://{{ context.tenant.id }}.example/{{ context.tenant.data.path }}",
            "buttons": [{ "type": "primary", "content": "Take {{ payload.item.name }}" }],
        });
        world.workflow_of("offer", &[json!({ "type": "in_app", "template": template })]);

        world.trigger(json!({
            "name": "offer",
            "to": "ada",
            "payload": { "item": { "name": "Tea & cup" } },
            "context": { "tenant": { "id": "acme", "data": { "path": "shop" } } },
        }));

        let message = wire(only(world.inbox("ada")));
        assert_eq!(message["subject"], "offer for Ada");
        assert_eq!(message["content"], "Tea & cup <3>, ");
        assert_eq!(message["contextKeys"], json!(["tenant:acme"]));
        assert_eq!(
            message["cta"],
            json!({
                "type": "redirect",
                "data": { "url": "https://acme.example/shop" },
                "action": {
                    "status": "pending",
                    "buttons": [{ "type": "primary", "content": "Take Tea & cup" }],
                },
            })
        );
    });
}

#[test]
fn a_message_has_every_field_of_the_specification() {
    on_both(|world| {
        let workflow = world.in_app_workflow("hi");
        let ada = world.bare_subscriber("ada");

        let receipt = world.trigger(json!({
            "name": "hi",
            "to": "ada",
            "payload": { "name": "Ada" },
            "transactionId": "t1",
        }));

        let message = only(world.inbox("ada"));
        assert_eq!(
            wire(&message),
            json!({
                "_id": message.id,
                "_templateId": workflow.id,
                "_messageTemplateId": workflow.steps[0].content_id,
                "_environmentId": world.env.environment_id(),
                "_organizationId": "acme",
                "_notificationId": only(receipt.notifications).notification_id,
                "_subscriberId": ada.id,
                "templateIdentifier": "hi",
                "createdAt": START,
                "deliveredAt": [START],
                "read": false,
                "seen": false,
                "content": "Hello Ada",
                "transactionId": "t1",
                "channel": "in_app",
                "cta": {},
                "status": "sent",
                "payload": { "name": "Ada" },
            })
        );
    });
}

#[test]
fn only_in_app_messages_are_in_the_inbox() {
    on_both(|world| {
        reachable(&world);
        world.workflow_of("both", &[in_app(), email()]);
        world.notify("both", "ada");
        world.run_due();

        let list = |query: Value| world.env.inbox(id("ada")).unwrap().list(&parsed(query)).unwrap();

        for query in [json!({}), json!({ "channel": "in_app" })] {
            assert_eq!(names(&list(query).data, |message| message.channel), ["in_app"]);
        }
        assert_eq!(list(json!({ "channel": "email" })).data, []);
        assert_eq!(names(&world.messages("ada"), |message| message.channel), ["email", "in_app"]);
        assert_eq!(counts(&world, "ada"), InboxCounts::new(1, 1));
    });
}

#[test]
fn an_inbox_is_walked_page_by_page() {
    on_both(|world| {
        reachable(&world);
        world.workflow_of("both", &[in_app(), email()]);
        for _ in 0..5 {
            world.notify("both", "ada");
            world.run_due();
        }

        let query = PageQuery::default().limit(2);
        let pages = pages(&query, |page| {
            let query = MessageQuery::default().page(page);
            world.env.inbox(id("ada")).unwrap().list(&query).unwrap()
        });

        let lengths: Vec<_> = pages.iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 2, 1]);
        assert_eq!(pages.concat(), world.inbox("ada"));
        assert!(world.inbox("ada").is_sorted_by(|newer, older| newer.id > older.id));
    });
}

/// A clock that goes back, and messages of one moment, on every channel: lists are in the order in
/// which the messages were stored, and the times are those of the clock.
#[test]
fn messages_are_listed_in_the_order_of_their_commits() {
    on_both(|world| {
        reachable(&world);
        world.in_app_workflow("hi");
        world.workflow_of("mail", &[email()]);
        let mut made = Vec::new();
        for (seconds, workflow) in
            [(9, "hi"), (5, "hi"), (5, "hi"), (1, "mail"), (9, "hi"), (7, "hi")]
        {
            world
                .clock
                .set(START.parse::<Timestamp>().unwrap().after(Duration::from_secs(seconds)));
            let waits = workflow == "mail";
            if waits {
                world.notify("mail", "ada");
                world.notify("hi", "ada");
                made.push(world.inbox("ada")[0].id);
                world.run_due();
            } else {
                world.notify(workflow, "ada");
            }
            let newest = world.messages("ada")[0].clone();
            assert_eq!(newest.delivered_at, [world.clock.now()], "{workflow} at {seconds}");
            made.push(newest.id);
        }
        made.reverse();
        let listed: Vec<_> = world.messages("ada").iter().map(|message| message.id).collect();
        assert_eq!(listed, made);
        let in_app: Vec<_> = world.inbox("ada").iter().map(|message| message.id).collect();
        made.remove(2);
        assert_eq!(in_app, made);
        let walked = pages(&PageQuery::default().limit(2), |page| {
            let query = MessageQuery::default().page(page);
            world.env.inbox("ada").unwrap().list(&query).unwrap()
        });
        assert_eq!(walked.concat(), world.inbox("ada"));
        check_indexes(&world.store);
    });
}

/// The totals of pages, with and without what is read from counters.
#[test]
fn totals_are_those_of_the_messages() {
    on_both(|world| {
        reachable(&world);
        world.workflow_of("both", &[in_app(), email()]);
        for transaction in ["t1", "t2", "t3", "t4", "t5"] {
            let to = json!({ "name": "both", "to": "ada", "transactionId": transaction });
            world.trigger(to);
            world.run_due();
            world.tick();
        }
        let [read, seen] = [0, 1].map(|at| world.inbox("ada")[at].id);
        mark(&world, "ada", &[read], MarkAs::Read);
        mark(&world, "ada", &[seen], MarkAs::Seen);
        let sent = world.messages("ada")[0].id;
        world.env.messages().mark("ada", [sent], MarkAs::Read).unwrap();
        for (query, in_inbox, of_all) in [
            (json!({}), 5, 10),
            (json!({ "read": true }), 1, 2),
            (json!({ "read": false }), 4, 8),
            (json!({ "seen": true }), 2, 3),
            (json!({ "seen": false }), 3, 7),
            (json!({ "seen": true, "read": false }), 1, 1),
            (json!({ "seen": false, "read": true }), 0, 0),
            (json!({ "transactionId": "t1" }), 1, 2),
            (json!({ "transactionId": "t1", "read": true }), 0, 0),
        ] {
            for limit in [1, 100] {
                let mut query = parsed::<MessageQuery>(query.clone());
                query.page.limit = Some(limit);
                let page = world.env.inbox("ada").unwrap().list(&query).unwrap();
                assert_eq!(page.total, Total::Exactly(in_inbox), "{query:?}");
                let page = world.env.messages().list("ada", &query).unwrap();
                assert_eq!(page.total, Total::Exactly(of_all), "{query:?}");
            }
        }
    });
}

/// Every mark after every other: the counts are those of the messages.
#[test]
fn counts_are_kept_in_step() {
    const MARKS: [MarkAs; 4] = [MarkAs::Seen, MarkAs::Read, MarkAs::Unread, MarkAs::Unseen];
    on_both(|world| {
        world.in_app_workflow("hi");
        let ids = [(); 3].map(|()| {
            world.notify("hi", "ada");
            world.inbox("ada")[0].id
        });
        assert_eq!(counts(&world, "ada"), InboxCounts::new(3, 3));

        for (first, second) in MARKS.iter().flat_map(|first| MARKS.map(|second| (*first, second))) {
            for (ids, mark_as) in [(&ids[..2], first), (&ids[1..], second)] {
                mark(&world, "ada", ids, mark_as);
                assert_eq!(counts(&world, "ada"), counted(&world, "ada"), "{first} {second}");
            }
        }
        mark(&world, "ada", &ids, MarkAs::Read);
        assert_eq!(counts(&world, "ada"), InboxCounts::new(0, 0));
        mark(&world, "ada", &ids[..1], MarkAs::Unread);
        assert_eq!(counts(&world, "ada"), InboxCounts::new(0, 1));
    });
}

#[test]
fn an_inbox_belongs_to_one_subscriber_in_one_environment() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let production = world.production();
        production.workflows().create(&parsed(workflow_of("hi", &[in_app()]))).unwrap();
        production.subscribers().create(&parsed(json!({ "subscriberId": "ada" }))).unwrap();
        world.bare_subscriber("bob");

        world.notify("hi", "ada");

        let none = InboxCounts::default();
        assert_eq!(counts(&world, "ada"), InboxCounts::new(1, 1));
        assert_eq!((counts(&world, "bob"), world.inbox("bob")), (none, vec![]));
        let elsewhere = production.inbox("ada").unwrap();
        assert_eq!(elsewhere.counts().unwrap(), none);
        assert_eq!(elsewhere.list(&MessageQuery::default()).unwrap().data, []);
        let own = world.inbox("ada")[0].id;
        assert_eq!(elsewhere.mark_as([own], MarkAs::Read).unwrap(), []);
        assert_eq!(counts(&world, "ada"), InboxCounts::new(1, 1));
    });
}

#[test]
fn what_is_not_wanted_does_not_come_in() {
    on_both(|world| {
        world.bare_subscriber("ada");
        let off = json!({ "preferenceSettings": { "in_app": false } });
        world.workflow(with(workflow_of("off", &[in_app()]), off));
        let guarded = with(in_app(), json!({ "filters": [payload_is("vip", "true")] }));
        world.workflow_of("guarded", &[guarded]);

        world.notify("off", "ada");
        world.notify("guarded", "ada");
        world.trigger(json!({ "name": "guarded", "to": "ada", "payload": { "vip": true } }));

        let only = only(world.inbox("ada"));
        assert_eq!(only.payload, Some(parsed(json!({ "vip": true }))));
        assert_eq!(counts(&world, "ada"), InboxCounts::new(1, 1));
    });
}

#[test]
fn the_inbox_of_nobody_is_not_there() {
    on_both(|world| {
        let eve = id("eve");
        let inbox = world.env.inbox(&eve).unwrap();
        let refusal = "404 subscriber `eve` is not there";

        world.refuses(refusal, || inbox.list(&MessageQuery::default()));
        world.refuses(refusal, || inbox.counts());
        let message: MessageId = NO_ID.parse().unwrap();
        world.refuses(refusal, || inbox.mark_as([message], MarkAs::Read));
    });
}

// Makes `ada` a subscriber who can be sent e-mail.
fn reachable(world: &World) {
    world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
    world.active_integration("email", "sendgrid");
}

fn mark(world: &World, subscriber: &str, ids: &[MessageId], mark_as: MarkAs) -> Vec<Message> {
    world.env.inbox(id(subscriber)).unwrap().mark_as(ids, mark_as).unwrap()
}

fn counts(world: &World, subscriber: &str) -> InboxCounts {
    world.env.inbox(id(subscriber)).unwrap().counts().unwrap()
}

// What the counts ought to be.
fn counted(world: &World, subscriber: &str) -> InboxCounts {
    let messages = world.inbox(subscriber);
    let count = |wanted: fn(&Message) -> bool| messages.iter().filter(|one| wanted(one)).count();
    let unseen = count(|message| !message.stage.is_seen());
    InboxCounts::new(unseen, count(|message| !message.stage.is_read()))
}

/// One row per query: which of an unseen, a seen and a read message it shows, newest first.
#[test]
fn an_inbox_is_listed_by_what_was_seen_and_read() {
    on_both(|world| {
        world.in_app_workflow("hello");
        let [unseen, seen, read] = [(); 3].map(|()| {
            world.tick();
            world.notify("hello", "ada");
            world.inbox("ada")[0].id
        });
        let ada = id("ada");
        world.env.inbox(&ada).unwrap().mark_as([seen], MarkAs::Seen).unwrap();
        world.env.inbox(&ada).unwrap().mark_as([read], MarkAs::Read).unwrap();

        for (query, shown) in [
            (json!({}), vec![read, seen, unseen]),
            (json!({ "seen": false }), vec![unseen]),
            (json!({ "seen": true }), vec![read, seen]),
            (json!({ "read": false }), vec![seen, unseen]),
            (json!({ "read": true }), vec![read]),
            (json!({ "read": false, "seen": true }), vec![seen]),
            (json!({ "read": false, "seen": false }), vec![unseen]),
            (json!({ "read": true, "seen": false }), vec![]),
        ] {
            let page = world.env.inbox(&ada).unwrap().list(&parsed(query.clone())).unwrap();
            let ids: Vec<_> = page.data.iter().map(|message| message.id).collect();
            assert_eq!((ids, page.total), (shown.clone(), Total::Exactly(shown.len())), "{query}");
        }
    });
}

/// One row per query and mark: how many messages it changes, and what is not seen and not read
/// then.
#[test]
fn all_messages_that_match_are_marked() {
    on_both(|world| {
        world.in_app_workflow("hi");
        world.active_integration("sms", "twilio");
        world.workflow_of("text", &[sms()]);
        world.subscriber(json!({ "subscriberId": "ada", "phone": "1" }));
        for workflow in ["hi", "hi", "text", "hi"] {
            world.notify(workflow, "ada");
            world.run_due();
            world.tick();
        }
        world.notify("hi", "bob");
        let inbox = world.env.inbox("ada").unwrap();
        let oldest = world.inbox("ada").pop().unwrap().transaction_id;
        let of_one = json!({ "transactionId": oldest, "channel": "in_app" });
        for (query, mark_as, changed, unseen, unread) in [
            (json!({}), MarkAs::Seen, 3, 0, 3),
            (of_one, MarkAs::Read, 1, 0, 2),
            (json!({ "channel": "sms" }), MarkAs::Unread, 0, 0, 2),
            (json!({ "read": true }), MarkAs::Unseen, 1, 1, 3),
            (json!({ "read": false }), MarkAs::Read, 3, 0, 0),
            (json!({}), MarkAs::Read, 0, 0, 0),
            (json!({ "read": true }), MarkAs::Read, 0, 0, 0),
            (json!({}), MarkAs::Unread, 3, 0, 3),
            (json!({ "seen": false }), MarkAs::Read, 0, 0, 3),
            (json!({}), MarkAs::Unseen, 3, 3, 3),
        ] {
            let marked = inbox.mark_matching(&parsed(query.clone()), mark_as).unwrap();
            let counts = inbox.counts().unwrap();
            let expected = (changed, InboxCounts::new(unseen, unread));
            assert_eq!((marked, counts), expected, "{query} as {mark_as:?}");
        }
        assert_eq!(inbox.mark_all(MarkAs::Read).unwrap(), 3);
        assert_eq!(world.env.inbox("bob").unwrap().counts().unwrap().unread, 1);
        // The text message is not in the inbox.
        let sent = world.messages("ada").into_iter().find(|sent| sent.channel == Channel::Sms);
        assert!(!sent.unwrap().stage.is_seen());
        let stranger = world.env.inbox("stranger").unwrap();
        world.refuses("404 subscriber `stranger` is not there", || stranger.mark_all(MarkAs::Read));
    });
}

/// So does one of large messages, also behind small ones.
#[test]
fn an_inbox_of_large_messages_is_marked_in_steps() {
    on_both(|world| {
        world.in_app_workflow("hi");
        for size in [vec![0; 20], vec![255 * 1_024; 40]].concat() {
            let payload = json!({ "text": "x".repeat(size) });
            let event = json!({ "name": "hi", "to": "ada", "payload": payload });
            world.env.events().trigger(&parsed(event)).unwrap();
        }
        let inbox = world.env.inbox("ada").unwrap();
        // Sixteen are read at a time: the third time, there are more than 4 MiB.
        world.interrupted(1, || inbox.mark_all(MarkAs::Read)).unwrap_err();
        assert_eq!(inbox.counts().unwrap(), InboxCounts::new(12, 12));
        assert_eq!(inbox.mark_all(MarkAs::Read).unwrap(), 12);
        assert_eq!(inbox.counts().unwrap(), InboxCounts::new(0, 0));
    });
}

/// An inbox of more than 250 messages takes several transactions, and one that was interrupted
/// goes on when it is called again.
#[test]
fn a_large_inbox_is_marked_in_steps() {
    on_both(|world| {
        world.in_app_workflow("hi");
        let event = json!({ "name": "hi", "to": "ada" });
        let hundred: Vec<_> = (0..100).map(|_| parsed(event.clone())).collect();
        for _ in 0..5 {
            world.env.events().trigger_bulk(&hundred).unwrap().all().unwrap();
        }
        world.env.events().trigger_bulk(&hundred[..2]).unwrap().all().unwrap();
        let inbox = world.env.inbox("ada").unwrap();
        assert_eq!(inbox.mark_all(MarkAs::Seen).unwrap(), 502);
        world.interrupted(1, || inbox.mark_all(MarkAs::Read)).unwrap_err();
        assert_eq!(inbox.counts().unwrap(), InboxCounts::new(0, 252));
        assert_eq!(inbox.mark_all(MarkAs::Read).unwrap(), 252);
        assert_eq!(inbox.counts().unwrap(), InboxCounts::new(0, 0));
        assert_eq!(inbox.mark_all(MarkAs::Unread).unwrap(), 502);
        let all = MessageQuery::default();
        world.interrupted(1, || inbox.archive_matching(&all)).unwrap_err();
        assert_eq!(inbox.archive_matching(&all).unwrap(), 252);
        let archived = MessageQuery::default().archived();
        assert_eq!(inbox.count(&archived).unwrap(), Total::Exactly(502));
        world.interrupted(1, || inbox.delete_matching(&archived)).unwrap_err();
        assert_eq!(inbox.delete_matching(&archived).unwrap(), 252);
        assert_eq!(world.messages("ada"), []);
        check_indexes(&world.store);
    });
}

/// Whatever the conditions, exactly the messages that match are changed, also if they are few among
/// many, and if the call was interrupted.
#[test]
fn a_large_inbox_is_changed_by_a_query_in_steps() {
    on_both(|world| {
        let workflows = ["often", "often", "half", "half", "half"];
        for name in ["often", "half", "rare", "never"] {
            world.workflow(with(workflow_of(name, &[in_app()]), json!({ "tags": [name] })));
        }
        let event = |number: usize| {
            let name = if number % 100 == 99 { "rare" } else { workflows[number % 5] };
            parsed(json!({ "name": name, "to": "ada" }))
        };
        for hundred in 0..10 {
            let events: Vec<_> = (0..100).map(|number| event(hundred * 100 + number)).collect();
            world.env.events().trigger_bulk(&events).unwrap().all().unwrap();
        }
        let inbox = world.env.inbox("ada").unwrap();
        let of = |tag: &str| MessageQuery::default().tags([tag]);
        let unread =
            || ["often", "half", "rare"].map(|tag| inbox.counts_of_tag(tag).unwrap().unread);
        assert_eq!(unread(), [400, 590, 10]);
        assert_eq!(inbox.mark_matching(&of("never"), MarkAs::Read).unwrap(), 0);
        assert_eq!(inbox.mark_matching(&of("rare"), MarkAs::Read).unwrap(), 10);
        assert_eq!(unread(), [400, 590, 0]);
        for transactions in [1, 2] {
            let marked = || inbox.mark_matching(&of("half"), MarkAs::Read);
            world.interrupted(transactions, marked).unwrap_err();
            let left = unread()[1];
            assert!(unread() == [400, left, 0] && (1..590).contains(&left), "{left}");
            assert_eq!(inbox.mark_matching(&of("half"), MarkAs::Read).unwrap(), left as u64);
            assert_eq!(unread(), [400, 0, 0]);
            assert_eq!(inbox.mark_matching(&of("half"), MarkAs::Unseen).unwrap(), 590);
        }
        let later = world.clock.now().after(Duration::from_secs(60));
        assert_eq!(inbox.snooze_matching(&of("rare"), later).unwrap(), 10);
        assert_eq!(inbox.archive_matching(&of("often")).unwrap(), 400);
        assert_eq!(inbox.delete_matching(&of("half")).unwrap(), 590);
        let shown = |query: &MessageQuery| inbox.count(query).unwrap();
        assert_eq!(shown(&MessageQuery::default()), Total::Exactly(0));
        assert_eq!(shown(&MessageQuery::default().snoozed()), Total::Exactly(10));
        assert_eq!(shown(&MessageQuery::default().archived()), Total::Exactly(400));
        check_indexes(&world.store);
    });
}

/// An inbox has in-app messages, whatever its subscriber has on other channels.
#[test]
fn a_query_for_another_channel_matches_nothing_in_an_inbox() {
    on_both(|world| {
        world.in_app_workflow("hi");
        world.active_integration("sms", "twilio");
        world.workflow_of("text", &[sms()]);
        world.subscriber(json!({ "subscriberId": "ada", "phone": "1" }));
        world.notify("hi", "ada");
        world.notify("text", "ada");
        world.run_due();
        let inbox = world.env.inbox("ada").unwrap();
        let of = |channel| MessageQuery::default().channel(channel);
        let later = world.clock.now().after(Duration::from_secs(60));
        for channel in [Channel::Sms, Channel::Email] {
            let (other, done) = (of(channel), of(channel).archived());
            assert_eq!(inbox.list(&other).unwrap().data, []);
            assert_eq!(inbox.list(&other).unwrap().total, Total::Exactly(0));
            assert_eq!(inbox.count(&other).unwrap(), Total::Exactly(0));
            assert_eq!(inbox.mark_matching(&other, MarkAs::Read).unwrap(), 0);
            assert_eq!(inbox.archive_matching(&other).unwrap(), 0);
            assert_eq!(inbox.unarchive_matching(&done).unwrap(), 0);
            assert_eq!(inbox.snooze_matching(&other, later).unwrap(), 0);
            assert_eq!(inbox.unsnooze_matching(&other).unwrap(), 0);
            assert_eq!(inbox.delete_matching(&other).unwrap(), 0);
        }
        assert_eq!(world.messages("ada").len(), 2);
        assert_eq!(inbox.count(&of(Channel::InApp)).unwrap(), Total::Exactly(1));
        assert_eq!(inbox.delete_matching(&of(Channel::InApp)).unwrap(), 1);
        assert_eq!(world.messages("ada").len(), 1);
    });
}

// No call on all messages of `ada` that match takes the query.
fn refuses_all_that_match(world: &World, query: &MessageQuery, refusal: &str) {
    let inbox = world.env.inbox("ada").unwrap();
    let later = world.clock.now().after(Duration::from_secs(60));
    world.refuses(refusal, || inbox.mark_matching(query, MarkAs::Read));
    world.refuses(refusal, || inbox.archive_matching(query));
    world.refuses(refusal, || inbox.unarchive_matching(query));
    world.refuses(refusal, || inbox.snooze_matching(query, later));
    world.refuses(refusal, || inbox.unsnooze_matching(query));
    world.refuses(refusal, || inbox.delete_matching(query));
}

/// One row per list that a host has made, and that came out empty. In a request, such a list is no filter.
#[test]
fn a_list_without_values_selects_nothing() {
    on_both(|world| {
        world.in_app_workflow("hi");
        world.notify("hi", "ada");
        let inbox = world.env.inbox("ada").unwrap();
        let all = MessageQuery::default;
        let none = Vec::<String>::new;
        for (field, query) in [
            ("tags", all().tags(none())),
            ("tags", all().and_tags(["a"]).tags(none())),
            ("tags", all().and_tags(none())),
            ("data.x", all().data("x", none()).unwrap()),
            ("severity", all().severities(Vec::<Severity>::new())),
            ("templates", all().workflows(["hi"]).workflows(none())),
        ] {
            let refusal = format!("422 `{field}` must not be empty");
            world.refuses(&refusal, || inbox.list(&query));
            world.refuses(&refusal, || inbox.count(&query));
            refuses_all_that_match(&world, &query, &refusal);
            // A query that is sent to another process is refused there, or cannot be written.
            let keyed = world.env.idempotent("key").unwrap();
            let keyed = keyed.inbox("ada").unwrap();
            world.refuses(&refusal, || keyed.delete_matching(&query));
            match serde_json::to_value(&query) {
                Ok(written) => refuses_all_that_match(&world, &parsed(written), &refusal),
                Err(error) => assert_eq!(format!("422 {error}"), refusal),
            }
        }
        // The last call of a setter counts, and so does a field that is set itself.
        let mut query = all().tags(none()).tags(["a"]).workflows(none()).workflows(["hi"]);
        assert_eq!(query, all().tags(["a"]).workflows(["hi"]));
        assert_eq!(inbox.delete_matching(&query).unwrap(), 0);
        query = all().workflows(none());
        query.workflows = vec!["other".into()];
        assert_eq!(inbox.delete_matching(&query).unwrap(), 0);
        let keyed = world.env.idempotent("key").unwrap();
        assert_eq!(keyed.inbox("ada").unwrap().delete_matching(&query).unwrap(), 0);
        let request = json!({ "tags": [], "data": {}, "severity": [], "templates": [] });
        assert_eq!(inbox.delete_matching(&parsed(request)).unwrap(), 1);
    });
}

/// One row per part of a page. A count is that of all pages.
#[test]
fn a_call_about_all_messages_that_match_takes_no_page() {
    on_both(|world| {
        world.in_app_workflow("hi");
        world.notify("hi", "ada");
        world.notify("hi", "ada");
        let inbox = world.env.inbox("ada").unwrap();
        let cursor = inbox.list(&MessageQuery::default().limit(1)).unwrap().next.unwrap();
        for (part, value) in [
            ("after", json!(cursor)),
            ("before", json!(cursor)),
            ("limit", json!(1)),
            ("orderBy", json!("_id")),
            ("orderDirection", json!("ASC")),
            ("includeCursor", json!(true)),
        ] {
            let query: MessageQuery = parsed(json!({ part: value }));
            inbox.list(&query).unwrap();
            let refusal = format!(
                "422 `{part}` must not be given: this call is about all that match, not about a page"
            );
            assert_eq!(inbox.count(&query).unwrap(), Total::Exactly(2), "{part}");
            refuses_all_that_match(&world, &query, &refusal);
        }
    });
}
