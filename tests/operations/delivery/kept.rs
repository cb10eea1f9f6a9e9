//! Results that the store did not take are kept: what was sent is not sent again.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use store::redb::AppliedBy;
use store::{Store, Table, layout};
use testkit::dice::Dice;
use testkit::disk::{Disk, Noticed};
use testkit::interposed::{Interposed, Point};
use testkit::tables::{self, put};
use testkit::waiting::{PATIENCE, wait_until};
use tidings::notification::Notification;
use tidings::{Delivery, Engine, ProviderReceipt, Scope, SendError, SystemClock};

use super::{Told, crowd, queued_email};
use crate::world::{Counts, World, email, on_both, parsed};

const LEASE: Duration = Duration::from_secs(300);
const PLENTY: usize = 10_000;

/// The calls of a provider.
type Calls = Arc<AtomicUsize>;

/// An engine whose provider counts its calls, and does `then` in each of them.
fn counting(
    world: &World,
    then: impl Fn(usize) -> Result<(), SendError> + Send + Sync + 'static,
) -> (Engine, Calls) {
    let calls = Calls::default();
    let counted = Arc::clone(&calls);
    let provider = Told(move |_: &Delivery| {
        then(counted.fetch_add(1, SeqCst) + 1).map(|()| ProviderReceipt::default())
    });
    (world.engine_with(|builder| builder.default_provider(provider)), calls)
}

#[test]
fn a_message_whose_result_was_not_stored_is_sent_once() {
    for pause in [Duration::ZERO, LEASE * 2] {
        on_both(|world| {
            let store = world.store.clone();
            let (engine, calls) = counting(&world, move |_| {
                store.kill();
                Ok(())
            });
            let id = queued_email(&world);
            for _ in 0..3 {
                let error = engine.delivery().run_due(10).unwrap_err();
                assert!(error.is_retryable(), "{error}");
            }
            world.store.recover();
            world.pass(pause);
            let report = engine.delivery().run_due(10).unwrap();
            assert_eq!(Counts::from(report), Counts { sent: 1, ..Counts::default() });
            assert_eq!(world.statuses(id), ["completed"]);
            world.pass(LEASE * 2);
            assert_eq!(engine.delivery().run_due(10).unwrap().sent, 0);
            assert_eq!(calls.load(SeqCst), 1);
            assert_eq!(engine.check().unwrap().findings, []);
        });
    }
}

/// Results are settled when 100 ms have passed, or when they have more than 1 MiB of content. The fourth
/// one finds a store that fails.
#[test]
fn messages_that_were_not_begun_are_sent_when_the_store_goes_on() {
    for (span, size) in [(60, 1), (0, 600 * 1024)] {
        on_both(|world| {
            let (store, clock) = (world.store.clone(), world.clock.clone());
            let (engine, calls) = counting(&world, move |call| {
                clock.advance(Duration::from_millis(span));
                if call == 4 {
                    store.kill();
                }
                Ok(())
            });
            world.active_integration("email", "sendgrid");
            let body = format!("{{{{ 'x' * {size} }}}}");
            let template = json!({ "subject": "Hi", "body": body });
            world.workflow_of("mail", &[json!({ "type": "email", "template": template })]);
            world.trigger(json!({ "name": "mail", "to": crowd(10) }));
            engine.delivery().run_due(10).unwrap_err();
            assert_eq!(calls.load(SeqCst), 4);
            world.store.recover();
            // Two of them were sent and settled by the call that has failed.
            assert_eq!(engine.delivery().run_due(10).unwrap().sent, 10);
            assert_eq!(calls.load(SeqCst), 10);
            assert_eq!(engine.delivery().stats().unwrap().total().waiting, 0);
        });
    }
}

/// The store fails while the second message is prepared. No time passes.
#[test]
fn a_message_that_was_not_handed_over_is_sent_when_the_store_goes_on() {
    on_both(|world| {
        let store = world.store.clone();
        let (engine, calls) = counting(&world, move |call| {
            if call == 1 {
                store.kill();
            }
            Ok(())
        });
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[email()]);
        world.trigger(json!({ "name": "mail", "to": crowd(10) }));
        engine.delivery().run_due(10).unwrap_err();
        assert_eq!(calls.load(SeqCst), 1);
        world.store.recover();

        assert_eq!(engine.delivery().run_due(10).unwrap().sent, 10);

        assert_eq!(calls.load(SeqCst), 10);
        let total = engine.delivery().stats().unwrap().total();
        assert_eq!((total.waiting, total.leased), (0, 0));
    });
}

/// The notification of the third message is damaged while its provider has it. So each result is stored in a
/// transaction of its own, and the second one fails.
#[test]
fn what_was_settled_before_a_failure_is_in_the_next_report() {
    on_both(|world| {
        let store = world.store.clone();
        let provider = Told(move |delivery: &Delivery| {
            if delivery.subscriber.subscriber_id.as_str() == "s2" {
                let Notification { environment_id, id, .. } = delivery.notification;
                let key = layout::notification(environment_id, id.ordinal());
                let (table, key) = key.into_parts();
                put(&store, table, &key, Some(b"\xFFgarbage"));
                store.fail(Point::Commit, 1);
            }
            Ok(ProviderReceipt::default())
        });
        let engine = world.engine_with(|builder| builder.default_provider(provider));
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[email()]);
        world.trigger(json!({ "name": "mail", "to": crowd(3) }));
        let error = engine.delivery().run_due(3).unwrap_err();
        assert!(error.is_retryable(), "{error}");

        let report = engine.delivery().run_due(10).unwrap();

        let expected = Counts { sent: 2, ..Counts::default() };
        assert_eq!((report.quarantined, Counts::from(report)), (1, expected));
    });
}

/// The task of the first message is damaged while the last one is sent. The results of the others are stored.
#[test]
fn a_task_that_is_damaged_loses_no_other_result() {
    on_both(|world| {
        let store = world.store.clone();
        let (engine, calls) = counting(&world, move |call| {
            if call == 3 {
                let entries = tables::of(&store, Table::Tasks);
                let (table, key, _) = entries.into_iter().min().unwrap();
                put(&store, table, &key, Some(b"\xFFgarbage"));
            }
            Ok(())
        });
        world.active_integration("email", "sendgrid");
        world.workflow_of("mail", &[email()]);
        world.trigger(json!({ "name": "mail", "to": crowd(3) }));
        let first = engine.delivery().run_due(10).unwrap();
        world.pass(LEASE);
        let second = engine.delivery().run_due(10).unwrap();
        assert_eq!((calls.load(SeqCst), first.sent + second.sent), (3, 2));
        assert_eq!(first.quarantined + second.quarantined, 1);
    });
}

/// The answer to the commit that gives a task back is lost. Another process has claimed the task when the
/// result is settled once more.
#[test]
fn what_was_given_back_is_not_taken_from_another_process() {
    for policy in ["resend", "resend_with_key", "give_up"] {
        on_both(|world| {
            let (store, clock) = (world.store.clone(), world.clock.clone());
            let (here, first_calls) = counting(&world, move |call| {
                if call == 1 {
                    clock.advance(Duration::from_secs(2));
                    store.fail(Point::Committed, 1);
                }
                Ok(())
            });
            let of_here = here.clone();
            let (there, second_calls) = counting(&world, move |_| {
                let report = of_here.delivery().run_due(10).unwrap();
                assert_eq!((report.superseded, report.sent), (1, 1), "{report:?}");
                Ok(())
            });
            let mail = world.active_integration("email", "sendgrid");
            let update = json!({ "onUnknown": policy });
            world.env.integrations().update(mail.id, &parsed(update)).unwrap();
            world.workflow_of("mail", &[email()]);
            world.trigger(json!({ "name": "mail", "to": crowd(2) }));
            here.delivery().run_due(10).unwrap_err();
            assert!(world.store.recover());
            world.pass(Duration::from_millis(1));
            assert_eq!(there.delivery().run_due(10).unwrap().sent, 1);
            assert_eq!((first_calls.load(SeqCst), second_calls.load(SeqCst)), (1, 1));
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

#[test]
fn a_failure_that_was_not_stored_does_not_count_when_another_process_has_sent_the_message() {
    on_both(|world| {
        let store = world.store.clone();
        let (engine, _) = counting(&world, move |_| {
            store.kill();
            Err(SendError::permanent("no such address"))
        });
        let id = queued_email(&world);
        engine.delivery().run_due(10).unwrap_err();
        world.store.recover();
        world.pass(LEASE);
        assert_eq!(world.run_due(), Counts { sent: 1, ..Counts::default() });
        let report = engine.delivery().run_due(10).unwrap();
        assert_eq!(Counts::from(report), Counts { superseded: 1, ..Counts::default() });
        assert_eq!(world.statuses(id), ["completed"]);
    });
}

#[test]
fn a_simulation_goes_on_with_the_results_of_the_one_before() {
    on_both(|world| {
        let store = world.store.clone();
        let (engine, calls) = counting(&world, move |_| {
            store.kill();
            Ok(())
        });
        queued_email(&world);
        let end = world.now().after(LEASE * 4);
        engine.delivery().run_until(end).unwrap_err();
        world.store.recover();
        assert_eq!(engine.delivery().run_until(end).unwrap().sent, 1);
        assert_eq!(calls.load(SeqCst), 1);
    });
}

/// A disk that is full at the settlement, and has room later.
#[test]
fn a_message_whose_settlement_met_a_full_disk_is_sent_once() {
    for noticed in [Noticed::AtWrite, Noticed::AtSync] {
        let disk = Disk::new();
        let below: Arc<dyn Store> = Arc::new(disk.open_logged(AppliedBy::Callers));
        let world = World::with(Interposed::over(below), |builder| builder);
        let (full, env) = (disk.clone(), world.env.clone());
        let (engine, calls) = counting(&world, move |_| {
            full.leave_room(0, noticed);
            fill(&env);
            Ok(())
        });
        let id = queued_email(&world);
        let error = engine.delivery().run_due(10).unwrap_err();
        assert_eq!(error.status(), 507, "{error}");
        disk.leave_room(PLENTY, noticed);
        let end = Instant::now() + Duration::from_secs(120);
        let sent = loop {
            match engine.delivery().run_due(10) {
                Ok(report) => break report.sent,
                Err(error) => assert!(Instant::now() < end, "{error}"),
            }
            thread::sleep(Duration::from_millis(1));
        };
        assert_eq!((sent, world.statuses(id)), (1, vec!["completed".into()]));
        world.pass(LEASE * 2);
        assert_eq!(engine.delivery().run_due(10).unwrap().sent, 0);
        assert_eq!(calls.load(SeqCst), 1);
    }
}

/// Writes until the disk is full.
fn fill(env: &Scope) {
    for number in 0..10_000 {
        let mut dice = Dice::new(number);
        let text: String = (0..2_000).map(|_| dice.roll(u64::MAX).to_string()).collect();
        let filler = json!({ "subscriberId": format!("s{number}"), "data": { "text": text } });
        if let Err(error) = env.subscribers().create(&parsed(filler)) {
            assert_eq!(error.status(), 507, "{error}");
            return;
        }
    }
    panic!("the disk is never full");
}

/// A worker that is stopped while it pauses after an error stores what it has.
#[test]
fn a_worker_that_stops_stores_what_it_has_kept() {
    on_both(|world| {
        let store = world.store.clone();
        let provider = Told(move |_: &Delivery| {
            store.kill();
            Ok(ProviderReceipt::default())
        });
        let id = queued_email(&world);
        let engine =
            world.engine_with(|builder| builder.clock(SystemClock).default_provider(provider));
        let worker = engine.worker().start().unwrap();
        // The pauses between errors double.
        wait_until(|| worker.report().errors >= 7);
        world.store.recover();
        let report = worker.stop(PATIENCE);
        assert_eq!((report.delivery.sent, report.running), (1, 0), "{report:?}");
        assert_eq!(world.statuses(id), ["completed"]);
    });
}

/// A task of the host that delivers when it is woken.
struct Delivers(Engine);

impl Wake for Delivers {
    fn wake(self: Arc<Self>) {
        self.0.delivery().run_due(10).unwrap_err();
    }
}

/// The commit of what was kept wakes code of the host, whose own results are kept as well.
#[test]
fn what_fails_while_kept_results_are_stored_is_kept() {
    on_both(|world| {
        let store = world.store.clone();
        let (engine, calls) = counting(&world, move |_| {
            store.kill();
            Ok(())
        });
        let env = engine.environment(world.env.environment_id()).unwrap();
        let first = queued_email(&world);
        world.in_app_workflow("hi");
        world.notify("hi", "ada");
        let inbox = env.inbox("ada").unwrap();
        let later = world.now().after(Duration::from_secs(60));
        inbox.snooze(world.inbox("ada").iter().map(|message| message.id), later).unwrap();
        world.pass(Duration::from_secs(60));
        engine.delivery().run_due(10).unwrap_err();
        world.store.recover();

        let second = world.notify("mail", "ada");
        let mut changed = pin!(inbox.changed(&inbox.cursor().unwrap()));
        let waker = Waker::from(Arc::new(Delivers(engine.clone())));
        assert!(changed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        engine.delivery().run_due(10).unwrap_err();
        world.store.recover();
        for _ in 0..2 {
            engine.delivery().run_due(10).unwrap();
            world.pass(LEASE * 2);
        }

        assert_eq!(calls.load(SeqCst), 2);
        for id in [first, second] {
            assert_eq!(world.statuses(id), ["completed"]);
        }
    });
}
