//! Messages: listing them, and marking them (operation 8).

use serde_json::json;
use tidings::ids::MessageId;
use tidings::message::{MarkAs, Message, MessageQuery, Stage};
use tidings::page::{Cursor, Direction, ListId, OrderBy, PageQuery};
use tidings::time::Timestamp;
use tidings::vocabulary::Channel;

use crate::world::{
    NO_ID, World, changed, email, id, in_app, names, on_both, only, pages, parsed, unreadable,
    wire, workflow_of,
};

#[test]
fn marks_lead_from_stage_to_stage() {
    use MarkAs::{Read, Seen, Unread, Unseen};

    #[track_caller]
    fn check(world: &World, marks: &[MarkAs], stage: fn(&[Timestamp]) -> Stage) {
        world.notify("hi", "ada");
        let message = world.inbox("ada")[0].clone();

        let mut times = Vec::new();
        let mut marked = Vec::new();
        for mark_as in marks {
            times.push(world.tick());
            marked = mark(world, "ada", &[message.id], *mark_as);
        }

        let expected = changed(message, |it| {
            it.stage = stage(&times);
            it.last_change = marked[0].last_change;
        });
        assert_eq!(marked, std::slice::from_ref(&expected), "{marks:?}");
        assert_eq!(world.inbox("ada")[0], expected, "{marks:?}");
    }

    on_both(|world| {
        world.in_app_workflow("hi");
        let check = |marks, stage| check(&world, marks, stage);

        // 8.1
        check(&[Seen], |at| Stage::Seen { seen_at: at[0] });
        // 8.2
        check(&[Read], |at| Stage::Read { seen_at: at[0], read_at: at[0] });
        check(&[Seen, Read], |at| Stage::Read { seen_at: at[0], read_at: at[1] });
        // 8.3
        check(&[Seen, Unseen], |_| Stage::Unseen);
        // 8.4
        check(&[Read, Unread], |at| Stage::Seen { seen_at: at[0] });
        check(&[Unread], |at| Stage::Seen { seen_at: at[0] });
        // 8.11, decided otherwise: what is not seen is not read either.
        check(&[Read, Unseen], |_| Stage::Unseen);
        // What changes nothing changes no date.
        check(&[Seen, Seen], |at| Stage::Seen { seen_at: at[0] });
        check(&[Seen, Unread], |at| Stage::Seen { seen_at: at[0] });
        check(&[Read, Read], |at| Stage::Read { seen_at: at[0], read_at: at[0] });
        check(&[Read, Seen], |at| Stage::Read { seen_at: at[0], read_at: at[0] });
        check(&[Unseen], |_| Stage::Unseen);
        check(&[Read, Unread, Read], |at| Stage::Read { seen_at: at[0], read_at: at[2] });
    });
}

#[test]
fn the_wire_has_two_flags_and_their_dates() {
    on_both(|world| {
        let message = delivered(&world, "ada");
        let at = world.tick();

        let read = wire(only(mark(&world, "ada", &[message.id], MarkAs::Read)));
        let unread = wire(only(mark(&world, "ada", &[message.id], MarkAs::Unread)));

        let shown = |message: serde_json::Value| {
            ["read", "seen", "lastReadDate", "lastSeenDate"].map(|field| message[field].clone())
        };
        assert_eq!(shown(read), [json!(true), json!(true), wire(at), wire(at)]);
        assert_eq!(shown(unread), [json!(false), json!(true), json!(null), wire(at)]);
    });
}

#[test]
fn messages_come_back_once_and_in_the_order_asked() {
    on_both(|world| {
        let [first, second, third] = [(); 3].map(|()| delivered(&world, "ada").id);

        // 8.6, 8.10
        let marked = mark(&world, "ada", &[third, first, third, second, first], MarkAs::Seen);

        assert_eq!(names(&marked, |message| message.id), [third, first, second].map(text));
        assert!(marked.iter().all(|message| message.stage.is_seen()));
    });
}

#[test]
fn somebody_elses_messages_are_passed_over() {
    on_both(|world| {
        let own = delivered(&world, "ada");
        let foreign = delivered(&world, "bob");
        let production = world.production();
        production.workflows().create(&parsed(workflow_of("hi", &[in_app()]))).unwrap();
        production.events().trigger(&parsed(json!({ "name": "hi", "to": "ada" }))).unwrap();
        let list = || production.inbox("ada").unwrap().list(&MessageQuery::default()).unwrap();
        let elsewhere = only(list().data);

        // 8.8, 8.9
        let ids = [unknown(), foreign.id, own.id, elsewhere.id];
        let marked = mark(&world, "ada", &ids, MarkAs::Read);

        assert_eq!(names(&marked, |message| message.id), [text(own.id)]);
        assert_eq!(world.inbox("bob"), [foreign]);
        assert_eq!(list().data, [elsewhere]);
        let none = world.unchanged(|| mark(&world, "ada", &[unknown()], MarkAs::Read));
        assert_eq!(none, []);
    });
}

#[test]
fn messages_of_every_channel_can_be_marked() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[email()]);
        world.notify("mail", "ada");
        world.run_due();
        let sent = only(world.messages("ada"));
        let at = world.tick();

        let read = only(mark(&world, "ada", &[sent.id], MarkAs::Read));

        assert_eq!(read.stage, Stage::Read { seen_at: at, read_at: at });
        assert_eq!(only(world.messages("ada")).stage, read.stage);
    });
}

#[test]
fn a_mark_that_changes_nothing_writes_nothing() {
    on_both(|world| {
        let message = delivered(&world, "ada");
        let seen = mark(&world, "ada", &[message.id], MarkAs::Seen);
        world.tick();

        let again = world.unchanged(|| mark(&world, "ada", &[message.id], MarkAs::Seen));

        assert_eq!(again, seen);
    });
}

/// The inbox has messages of its channel only, and others are marked by the subscriber.
#[test]
fn an_inbox_marks_no_message_of_another_channel() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.active_integration("email", "sendgrid");
        world.workflow_of("both", &[in_app(), email()]);
        world.notify("both", "ada");
        world.run_due();
        let ids: Vec<_> = world.messages("ada").iter().map(|message| message.id).collect();
        assert_eq!(ids.len(), 2);
        let inbox = world.env.inbox("ada").unwrap();

        let marked = inbox.mark_as(&ids, MarkAs::Read).unwrap();

        assert_eq!(only(marked).channel, Channel::InApp);
        assert_eq!(mark(&world, "ada", &ids, MarkAs::Read).len(), 2);
    });
}

#[test]
fn marking_nothing_or_for_nobody_is_refused() {
    on_both(|world| {
        let message = delivered(&world, "ada");
        let mark =
            |who: &str, ids: &[MessageId]| world.env.messages().mark(id(who), ids, MarkAs::Read);

        // 8.5
        world.refuses("422 `messageId` must not be empty", || mark("ada", &[]));
        let unreadable = || world.env.messages().mark("ada", ["x"], MarkAs::Read);
        let Err(tidings::Error::Invalid(invalid)) = world.unchanged(unreadable) else { panic!() };
        assert_eq!(invalid.field, "messageId[0]");
        let many = vec![message.id; 1_001];
        world.refuses("422 `messageId` must have at most 1000 items", || mark("ada", &many));
        // 8.7
        world.refuses("404 subscriber `eve` is not there", || mark("eve", &[message.id]));
    });
    assert_eq!(
        "42".parse::<MessageId>().unwrap_err().to_string(),
        "`messageId` must be an identifier made by the engine"
    );
    assert_eq!(
        unreadable::<MarkAs>(json!("archived")),
        "`markAs` must be one of read, seen, unread, unseen"
    );
}

#[test]
fn a_list_names_the_subscriber_and_the_workflow() {
    on_both(|world| {
        let message = delivered(&world, "ada");
        let subscriber = world.env.subscribers().get(id("ada")).unwrap();
        let workflow = world.env.workflows().get("hi").unwrap();

        let got = || world.env.messages().get(id("ada"), message.id).unwrap();
        let listed = (only(world.messages("ada")), got());
        world.env.workflows().delete("hi").unwrap();
        let orphan = (only(world.messages("ada")), got());

        let named = changed(message.clone(), |it| it.subscriber = Some(subscriber.into()));
        let whole = changed(named.clone(), |it| it.workflow = Some(workflow.into()));
        assert_eq!(listed, (whole.clone(), whole));
        assert_eq!(orphan, (named.clone(), named));
    });
}

#[test]
fn a_message_is_had_by_its_id_and_its_subscriber() {
    on_both(|world| {
        let message = delivered(&world, "ada");
        world.bare_subscriber("bob");

        let get = |who: &str, message| world.env.messages().get(id(who), message);
        assert_eq!(get("ada", message.id).unwrap().id, message.id);
        let refusal = format!("404 message `{}` is not there", message.id);
        world.refuses(&refusal, || get("bob", message.id));
        let refusal = format!("404 message `{}` is not there", unknown());
        world.refuses(&refusal, || get("ada", unknown()));
        world.refuses("404 subscriber `eve` is not there", || get("eve", message.id));
    });
}

#[test]
fn every_condition_of_a_list_must_hold() {
    #[track_caller]
    fn check(world: &World, query: serde_json::Value, expected: &[&str]) {
        let page = world.env.messages().list(id("ada"), &parsed(query)).unwrap();
        let name = |message: &Message| format!("{} {}", message.channel, message.transaction_id);
        assert_eq!(names(&page.data, name), expected);
    }

    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.active_integration("email", "sendgrid");
        world.workflow_of("both", &[in_app(), email()]);
        for transaction in ["t1", "t2"] {
            let to = json!({ "name": "both", "to": "ada", "transactionId": transaction });
            world.trigger(to);
            world.run_due();
        }
        let newest = world.inbox("ada")[0].id;
        mark(&world, "ada", &[newest], MarkAs::Read);
        let oldest = world.inbox("ada")[1].id;
        mark(&world, "ada", &[oldest], MarkAs::Seen);
        let check = |query, expected: &[_]| check(&world, query, expected);

        check(json!({}), &["email t2", "in_app t2", "email t1", "in_app t1"]);
        check(json!({ "channel": "in_app" }), &["in_app t2", "in_app t1"]);
        check(json!({ "channel": "sms" }), &[]);
        check(json!({ "transactionId": "t1" }), &["email t1", "in_app t1"]);
        check(json!({ "transactionId": "t3" }), &[]);
        check(json!({ "read": true }), &["in_app t2"]);
        check(json!({ "read": false }), &["email t2", "email t1", "in_app t1"]);
        check(json!({ "seen": true }), &["in_app t2", "in_app t1"]);
        check(json!({ "seen": false }), &["email t2", "email t1"]);
        check(json!({ "seen": true, "read": false }), &["in_app t1"]);
        check(json!({ "channel": "email", "transactionId": "t1", "seen": true }), &[]);
        check(json!({ "limit": 1, "channel": "email" }), &["email t2"]);
    });
}

#[test]
fn a_list_is_walked_page_by_page() {
    on_both(|world| {
        // Made in one millisecond, and in order all the same.
        let made = [(); 5].map(|()| delivered(&world, "ada").id);
        let walk = |query: MessageQuery| {
            let pages = pages(&query.page, |page| {
                let query = query.clone().page(page);
                world.env.messages().list(id("ada"), &query).unwrap()
            });
            pages.iter().map(|page| names(page, |message| message.id)).collect::<Vec<_>>()
        };

        let by_two = PageQuery::default().limit(2);
        let oldest_first = Some(Direction::Ascending);
        let upwards = changed(by_two.clone(), |it| it.order_direction = oldest_first);
        let newest_first = walk(MessageQuery::default().page(by_two.clone()));
        let filtered = walk(MessageQuery::default().page(by_two).unseen());
        let reversed = walk(MessageQuery::default().page(upwards));

        let mut made = made.map(text);
        assert_eq!(reversed, [&made[..2], &made[2..4], &made[4..]]);
        made.reverse();
        assert_eq!(newest_first, [&made[..2], &made[2..4], &made[4..]]);
        assert_eq!(filtered, newest_first);
    });
}

#[test]
fn a_list_that_cannot_be_read_is_refused() {
    on_both(|world| {
        delivered(&world, "ada");
        let list = |who: &str, query: serde_json::Value| {
            world.env.messages().list(id(who), &parsed(query))
        };

        world.refuses("404 subscriber `eve` is not there", || list("eve", json!({})));
        for limit in [0, 101] {
            let refusal = "422 `limit` must be between 1 and 100";
            world.refuses(refusal, || list("ada", json!({ "limit": limit })));
        }
        let cursor = Cursor::at(ListId::default(), OrderBy::Id, &[0; 16]).to_string();
        let both = json!({ "after": cursor, "before": cursor });
        let refusal = "422 `before` must not be given together with `after`";
        world.refuses(refusal, || list("ada", both));
        let refusal = "422 `after` must be a cursor of this list";
        let cursor = Cursor::at(ListId::default(), OrderBy::CreatedAt, &[0; 24]).to_string();
        world.refuses(refusal, || list("ada", json!({ "after": cursor })));
    });
    for side in ["after", "before"] {
        for text in ["not a cursor", "00ff", ""] {
            let error = unreadable::<PageQuery>(json!({ side: text }));
            assert_eq!(error, format!("`{side}` must be a cursor of this list"));
        }
    }
}

// A new message in the inbox of a subscriber.
fn delivered(world: &World, subscriber: &str) -> Message {
    if world.env.workflows().get("hi").is_err() {
        world.in_app_workflow("hi");
    }
    world.notify("hi", subscriber);
    world.inbox(subscriber)[0].clone()
}

fn mark(world: &World, subscriber: &str, ids: &[MessageId], mark_as: MarkAs) -> Vec<Message> {
    world.env.messages().mark(id(subscriber), ids, mark_as).unwrap()
}

fn unknown() -> MessageId {
    NO_ID.parse().unwrap()
}

fn text(id: MessageId) -> String {
    id.to_string()
}
