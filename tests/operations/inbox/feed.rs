//! The feed of an inbox: what has changed since a cursor.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use store::Table;
use testkit::tables::{Entry, check_indexes, dump, put};
use tidings::Inbox;
use tidings::content::ButtonType;
use tidings::ids::MessageId;
use tidings::message::{
    Changes, FeedCursor, FeedPage, InboxChange, InboxCounts, MarkAs, Message, MessageQuery,
};
use tidings::vocabulary::Channel;

use super::mark;
use crate::world::{World, email, on_both, parsed, wire};

// A page of changes.
fn since(inbox: &Inbox<'_>, cursor: &FeedCursor) -> FeedPage {
    match inbox.changes_since(cursor).unwrap() {
        Changes::Since(page) => page,
        Changes::Reset { .. } => panic!("the cursor is lost"),
    }
}

// The ids of changed messages, and of deleted ones with a minus.
fn told(page: &FeedPage) -> Vec<String> {
    let told = page.changes.iter().map(|change| match change {
        InboxChange::Message { message } => message.id.to_string(),
        InboxChange::Deleted { message_id } => format!("-{message_id}"),
    });
    told.collect()
}

fn messages(world: &World, count: usize) -> Vec<MessageId> {
    let ids = (0..count).map(|_| {
        world.tick();
        world.notify("hi", "ada");
        world.inbox("ada")[0].id
    });
    ids.collect()
}

#[test]
fn changes_are_told_with_the_state_after_the_last_of_them() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let inbox = world.env.inbox("ada").unwrap();
        let start = inbox.cursor().unwrap();
        let ids = messages(&world, 3);
        let names: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let first = since(&inbox, &start);
        assert_eq!(told(&first), names);
        assert_eq!(first.counts, InboxCounts::new(3, 3));

        mark(&world, "ada", &ids[..1], MarkAs::Seen);
        mark(&world, "ada", &ids[1..2], MarkAs::Read);
        inbox.archive(&ids[..1]).unwrap();
        let second = since(&inbox, &first.next);
        assert_eq!(told(&second), [names[1].clone(), names[0].clone()]);
        let InboxChange::Message { message } = &second.changes[1] else { unreachable!() };
        assert!(message.stage.is_archived());

        inbox.delete(&ids[1..2]).unwrap();
        messages(&world, 1);
        let third = since(&inbox, &second.next);
        let newest = world.inbox("ada")[0].id.to_string();
        assert_eq!(told(&third), [newest.clone(), format!("-{}", names[1])]);

        // A cursor from before all of that: one entry for each message.
        let all = since(&inbox, &start);
        let expected = [names[2].clone(), newest, names[0].clone(), format!("-{}", names[1])];
        assert_eq!(told(&all), expected);
        assert_eq!(all.next, third.next);
        // What changes nothing is not told.
        mark(&world, "ada", &ids[..1], MarkAs::Read);
        assert!(since(&inbox, &third.next).changes.is_empty());
        // A cursor is its text.
        let cursor: FeedCursor = start.to_string().parse().unwrap();
        assert_eq!(since(&inbox, &cursor), all);
        assert_eq!(parsed::<FeedPage>(wire(&all)), all);
        check_indexes(&world.store);
    });
}

#[test]
fn a_message_that_wakes_or_is_answered_is_told() {
    on_both(|world| {
        let buttons = json!([{ "type": "primary", "content": "Yes" }]);
        let template = json!({ "body": "?", "buttons": buttons });
        world.workflow_of("hi", &[json!({ "type": "in_app", "template": template })]);
        world.bare_subscriber("ada");
        let inbox = world.env.inbox("ada").unwrap();
        let id = messages(&world, 1)[0];
        let mut cursor = inbox.cursor().unwrap();
        let until = world.now().after(Duration::from_secs(60));
        let mut expect = |deed: &dyn Fn()| {
            deed();
            let page = since(&inbox, &cursor);
            assert_eq!(told(&page), [id.to_string()]);
            cursor = page.next;
        };
        expect(&|| drop(inbox.snooze([id], until)));
        expect(&|| {
            world.clock.advance(Duration::from_secs(60));
            assert_eq!(world.engine.delivery().run_due(1).unwrap().woken, 1);
        });
        expect(&|| drop(inbox.complete_action(id, &parsed(json!({ "type": "primary" })))));
        expect(&|| drop(inbox.revert_action(id, ButtonType::Primary)));
        let notification = world.inbox("ada")[0].notification_id;
        let step = world.notification(notification).jobs[0].step.id;
        expect(&|| drop(world.env.notifications().resend(notification, step)));
    });
}

/// A delivery to an inbox that nobody has changed writes no row for the feed, and no number.
#[test]
fn a_delivery_writes_nothing_for_the_feed() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        messages(&world, 1);
        let before = dump(&world.store);
        messages(&world, 1);
        let after = dump(&world.store);
        let added = |table: Table| {
            let count = |rows: &[Entry]| rows.iter().filter(|(of, ..)| *of == table).count();
            count(&after) - count(&before)
        };
        assert_eq!((added(Table::MessageChanges), added(Table::DeletedMessages)), (0, 0));
        assert_eq!((added(Table::Messages), added(Table::MessageLists)), (1, 1));
        assert_eq!(added(Table::MessageCounters), 0);
        assert_eq!(world.inbox("ada")[0].last_change, None);
    });
}

/// More than a page of each kind of change is told page by page.
#[test]
fn many_changes_take_several_pages() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let inbox = world.env.inbox("ada").unwrap();
        let start = inbox.cursor().unwrap();
        let hundred: Vec<_> = vec![parsed(json!({ "name": "hi", "to": "ada" })); 100];
        for _ in 0..4 {
            world.env.events().trigger_bulk(&hundred).unwrap().all().unwrap();
        }
        let transaction = world.inbox("ada")[0].transaction_id.clone();
        let oldest = MessageQuery::default().limit(100);
        let ids: Vec<_> = inbox.list(&oldest).unwrap().data.iter().map(|one| one.id).collect();
        mark(&world, "ada", &ids, MarkAs::Seen);
        let of_one = MessageQuery::default().transaction_id(transaction).unwrap();
        assert_eq!(inbox.mark_matching(&of_one, MarkAs::Read).unwrap(), 1);
        inbox.mark_all(MarkAs::Seen).unwrap();
        messages(&world, 2);
        inbox.delete(&ids[..50]).unwrap();
        let (mut cursor, mut seen, mut pages) = (start, BTreeMap::new(), 0);
        loop {
            let page = since(&inbox, &cursor);
            for change in page.changes {
                match change {
                    InboxChange::Message { message } => {
                        assert!(seen.insert(message.id, Some(message)).is_none(), "told twice");
                    }
                    InboxChange::Deleted { message_id } => {
                        assert!(seen.insert(message_id, None).is_none(), "told twice");
                    }
                }
            }
            cursor = page.next;
            pages += 1;
            if !page.has_more {
                break;
            }
        }
        assert_eq!((pages, seen.len()), (7, 402));
        let left: Vec<Message> = seen.into_values().flatten().map(|message| *message).collect();
        assert_eq!(left.len(), 352);
        assert!(left.iter().filter(|one| one.stage.is_seen()).count() == 350);
        check_indexes(&world.store);
    });
}

#[test]
fn a_cursor_that_is_too_old_is_reset() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let inbox = world.env.inbox("ada").unwrap();
        let is_lost = |cursor: &FeedCursor| match inbox.changes_since(cursor).unwrap() {
            Changes::Since(_) => false,
            Changes::Reset { cursor } => {
                assert_eq!(cursor, inbox.cursor().unwrap());
                true
            }
        };
        let start = inbox.cursor().unwrap();
        // The last 100 deletions are known.
        for deleted in 1..=101 {
            let ids = messages(&world, 1);
            inbox.delete(ids).unwrap();
            assert_eq!(is_lost(&start), deleted > 100, "{deleted}");
        }
        check_indexes(&world.store);
        // Many deletions at once are not.
        let before = inbox.cursor().unwrap();
        let hundred: Vec<_> = vec![parsed(json!({ "name": "hi", "to": "ada" })); 100];
        world.env.events().trigger_bulk(&hundred).unwrap().all().unwrap();
        messages(&world, 1);
        assert!(!is_lost(&before));
        assert_eq!(inbox.delete_matching(&MessageQuery::default()).unwrap(), 101);
        assert!(is_lost(&before));
        // The next subscriber of that name is another one.
        let newest = inbox.cursor().unwrap();
        assert!(!is_lost(&newest));
        world.env.subscribers().delete("ada").unwrap();
        world.refuses("404 subscriber `ada` is not there", || inbox.changes_since(&newest));
        world.refuses("404 subscriber `ada` is not there", || inbox.cursor());
        world.refuses("404 subscriber `ada` is not there", || inbox.wait(&newest, Duration::ZERO));
        world.bare_subscriber("ada");
        assert!(is_lost(&newest));
        let elsewhere = world.production();
        elsewhere.subscribers().create(&parsed(json!({ "subscriberId": "ada" }))).unwrap();
        let foreign = elsewhere.inbox("ada").unwrap();
        world.refuses("422 `cursor` must be a cursor of this inbox", || {
            foreign.changes_since(&newest)
        });
        check_indexes(&world.store);
    });
}

/// The last 100 deletions are known, also those by a query. More of them in one transaction are not.
#[test]
fn deletions_by_a_query_are_told() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let inbox = world.env.inbox("ada").unwrap();
        for (count, is_known) in [(250, false), (20, true), (40, true), (60, true), (20, true)] {
            let all: Vec<_> = vec![parsed(json!({ "name": "hi", "to": "ada" })); count];
            all.chunks(100).for_each(|some| {
                drop(world.env.events().trigger_bulk(some).unwrap().all().unwrap());
            });
            let before = inbox.cursor().unwrap();
            assert_eq!(inbox.delete_matching(&MessageQuery::default()).unwrap(), count as u64);

            let changes = inbox.changes_since(&before).unwrap();
            assert_eq!(matches!(changes, Changes::Since(_)), is_known, "{count}");
            let kept = world.rows(Table::DeletedMessages);
            assert!(kept <= 100, "{kept}");
        }
        check_indexes(&world.store);
        assert_eq!(world.engine.check().unwrap().findings, []);
    });
}

/// An e-mail is in no inbox: nobody is woken for it, and a later message is behind it.
#[test]
fn a_message_outside_the_inbox_is_no_change() {
    on_both(|world| {
        world.subscriber(json!({ "subscriberId": "ada", "email": "ada@example.org" }));
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[email()]);
        world.in_app_workflow("hi");
        let inbox = world.env.inbox("ada").unwrap();
        messages(&world, 1);
        let cursor = inbox.cursor().unwrap();
        world.tick();
        world.notify("mail", "ada");
        world.run_due();
        let all = || world.env.messages().list("ada", &MessageQuery::default()).unwrap().data;
        let mail = all().remove(0);
        assert_eq!(mail.channel, Channel::Email);
        assert!(!inbox.wait(&cursor, Duration::ZERO).unwrap());
        assert_eq!(inbox.cursor().unwrap(), cursor);

        world.clock.set(mail.created_at.before(Duration::from_secs(60)));
        let hello = messages(&world, 1);
        assert_eq!(told(&since(&inbox, &cursor)), [hello[0].to_string()]);
        assert_eq!(all().iter().map(|one| one.id).take(2).collect::<Vec<_>>(), [hello[0], mail.id]);
        check_indexes(&world.store);
    });
}

/// A change between a page and the wait ends the wait at once, and so does one from another thread.
#[test]
fn a_wait_ends_with_the_next_change() {
    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let inbox = world.env.inbox("ada").unwrap();
        let long = Duration::from_secs(600);
        let cursor = inbox.cursor().unwrap();
        messages(&world, 1);
        assert!(inbox.wait(&cursor, long).unwrap());
        let cursor = since(&inbox, &cursor).next;
        let short = Duration::from_millis(20);
        let start = Instant::now();
        assert!(!inbox.wait(&cursor, short).unwrap());
        assert!(start.elapsed() >= short);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| inbox.wait(&cursor, long).unwrap());
            thread::sleep(short);
            world.notify("hi", "ada");
            assert!(waiting.join().unwrap());
        });
        // Another engine on the same store wakes it within a second or so.
        let cursor = inbox.cursor().unwrap();
        let other = testkit::sealed::builder().build(world.store.clone());
        let env = other.environment(world.env.environment_id()).unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| inbox.wait(&cursor, long).unwrap());
            env.inbox("ada").unwrap().mark_all(MarkAs::Read).unwrap();
            assert!(waiting.join().unwrap());
        });
    });
}

/// A waker is code of the host. The trigger is stored when it is called.
#[test]
fn a_waker_that_panics_keeps_nothing_from_the_others() {
    struct Wakes(AtomicUsize);

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("the payload is dropped");
        }
    }

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
            std::panic::panic_any(Bomb);
        }
    }

    on_both(|world| {
        world.bare_subscriber("ada");
        world.in_app_workflow("hi");
        let inbox = world.env.inbox("ada").unwrap();
        let cursor = inbox.cursor().unwrap();
        let wakers = [0, 1].map(|_| Arc::new(Wakes(AtomicUsize::new(0))));
        let mut futures = [0, 1].map(|_| Box::pin(inbox.changed(&cursor)));
        for (future, waker) in futures.iter_mut().zip(&wakers) {
            let waker = Waker::from(Arc::clone(waker));
            assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        world.notify("hi", "ada");
        // A store that tells of commits may wake them once more.
        assert!(wakers.iter().all(|waker| waker.0.load(Ordering::SeqCst) > 0));
        assert_eq!(world.inbox("ada").len(), 1);
    });
}

// How often a future was woken.
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// The inbox has no messages whose deletion would wake the future.
#[test]
fn a_future_is_woken_when_its_subscriber_is_deleted() {
    for is_created_again in [false, true] {
        on_both(|world| {
            world.bare_subscriber("ada");
            let inbox = world.env.inbox("ada").unwrap();
            let cursor = inbox.cursor().unwrap();
            let woken = Arc::new(Woken(AtomicUsize::new(0)));
            let waker = Waker::from(Arc::clone(&woken));
            let mut changed = Box::pin(inbox.changed(&cursor));
            let mut poll = || changed.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(poll().is_pending());
            world.env.subscribers().delete("ada").unwrap();
            assert!(woken.0.load(Ordering::SeqCst) > 0);
            if is_created_again {
                world.bare_subscriber("ada");
            }
            match poll() {
                Poll::Ready(Ok(())) => assert!(is_created_again),
                Poll::Ready(Err(error)) => assert!(!is_created_again && error.status() == 404),
                Poll::Pending => panic!("it waits for a subscriber who is gone"),
            }
        });
    }
}

/// What counts the changes begins anew, so that a cursor may have to be reset.
#[test]
fn a_future_is_woken_when_a_repair_counts_its_messages_anew() {
    on_both(|world| {
        world.in_app_workflow("hi");
        messages(&world, 3);
        let inbox = world.env.inbox("ada").unwrap();
        let cursor = inbox.cursor().unwrap();
        let woken = Arc::new(Woken(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut changed = Box::pin(inbox.changed(&cursor));
        assert!(changed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let rows = dump(&world.store).into_iter();
        let rows: Vec<_> = rows.filter(|row| row.0 == Table::MessageCounters).collect();
        let [(table, key, _)] = &rows[..] else { panic!("{rows:?}") };
        put(&world.store, *table, key, Some(b"damaged"));
        let before = woken.0.load(Ordering::SeqCst);

        assert!(world.engine.repair().unwrap().mended > 0);

        assert!(woken.0.load(Ordering::SeqCst) > before);
        check_indexes(&world.store);
    });
}

/// The environment is closed in the first transaction, and its rows go in many.
#[test]
fn a_future_is_woken_when_the_deletion_of_its_environment_is_interrupted() {
    let delete = |world: &World| {
        let id = world.env.environment_id();
        let ended = world.organization.delete_environment_with(id, |_| ControlFlow::Break(()));
        assert!(!ended.unwrap().is_finished);
    };
    let fail = |world: &World| {
        let id = world.env.environment_id();
        world.interrupted(2, || world.organization.delete_environment(id)).unwrap_err();
    };
    for interrupted in [&delete as &dyn Fn(&World), &fail] {
        on_both(|world| {
            world.bare_subscriber("ada");
            let inbox = world.env.inbox("ada").unwrap();
            let cursor = inbox.cursor().unwrap();
            let woken = Arc::new(Woken(AtomicUsize::new(0)));
            let waker = Waker::from(Arc::clone(&woken));
            let mut changed = Box::pin(inbox.changed(&cursor));
            assert!(changed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());

            interrupted(&world);

            assert!(woken.0.load(Ordering::SeqCst) > 0);
        });
    }
}
