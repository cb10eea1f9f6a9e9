//! Suppressions: addresses to which no messages are sent.

use std::time::Duration;

use domain::quarantine::Quarantined;
use serde_json::json;
use testkit::tables::{self, check_indexes};
use tidings::SendError;
use tidings::ids::SubscriberId;
use tidings::job::JobStatus;
use tidings::page::Total;
use tidings::store::Table;
use tidings::suppression::{Suppression, SuppressionCreate, SuppressionQuery, SuppressionReason};
use tidings::time::Timestamp;
use tidings::vocabulary::Channel;

use crate::world::{World, email, in_app, on_both, only, parsed, sms, unreadable, wire};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn suppress(world: &World, channel: Channel, address: &str, until: Option<Timestamp>) {
    let mut create = SuppressionCreate::new(channel, address).unwrap();
    create.expires_at = until;
    world.env.suppressions().add(&create).unwrap();
}

fn ready(world: &World) {
    let ada = json!({ "subscriberId": "ada", "email": "Ada@Example.org", "phone": "+44 20 7946" });
    world.subscriber(ada);
    world.active_integration("email", "sendgrid");
    world.active_integration("sms", "twilio");
    world.workflow_of("all", &[email(), sms(), in_app()]);
}

// The channels of the messages that a trigger sends.
fn sent(world: &World) -> Vec<Channel> {
    let before = world.recorder.sent().len();
    world.notify("all", "ada");
    world.run_due();
    world.recorder.sent()[before..].iter().map(|sent| sent.integration.channel).collect()
}

#[test]
fn a_message_for_a_suppressed_address_is_skipped_with_the_reason() {
    on_both(|world| {
        ready(&world);
        let until = world.now().after(DAY);
        suppress(&world, Channel::Email, "ada@example.ORG", Some(until));
        // Another channel, another address and another environment are not concerned.
        suppress(&world, Channel::Email, "bob@example.org", None);
        let create = SuppressionCreate::new(Channel::Sms, "+44 20 7946").unwrap();
        world.production().suppressions().add(&create).unwrap();

        let id = world.notify("all", "ada");
        world.run_due();
        let jobs = world.notification(id).jobs;
        let ended = [JobStatus::Skipped, JobStatus::Completed, JobStatus::Completed];
        assert_eq!(jobs.iter().map(|job| job.status).collect::<Vec<_>>(), ended);
        let last = wire(jobs[0].execution_details.last().unwrap());
        assert_eq!(last["detail"], "address_suppressed");
        assert_eq!(last["raw"], format!("manual until {until}"));
        let explained =
            world.env.events().explain(&parsed(json!({ "name": "all", "to": "ada" })), world.now());
        assert!(wire(explained.unwrap()).to_string().contains("address_suppressed"));

        world.pass(DAY);
        assert_eq!(sent(&world), [Channel::Email, Channel::Sms]);
    });
}

/// A device that is gone is removed; an address stays with its subscriber, and nothing is sent to it for a while.
#[test]
fn an_address_without_a_recipient_is_suppressed() {
    on_both(|world| {
        ready(&world);
        world.recorder.refuse_next(SendError::recipient_gone("no such user"));
        assert_eq!(sent(&world), [Channel::Sms]);
        let email = world.env.suppressions().get(Channel::Email, "ada@example.org").unwrap();
        assert_eq!(email.reason, SuppressionReason::Bounced);
        assert_eq!(email.text.as_deref(), Some("the recipient is gone: no such user"));
        assert_eq!(email.expires_at, Some(world.now().after(DAY * Suppression::DAYS)));
        assert_eq!(
            email.subscriber_ids.iter().map(SubscriberId::as_str).collect::<Vec<_>>(),
            ["ada"]
        );
        assert_eq!(sent(&world), [Channel::Sms]);
        world.pass(DAY * Suppression::DAYS);
        assert_eq!(sent(&world), [Channel::Email, Channel::Sms]);
        check_indexes(&world.store);
    });
}

/// A message that waits for another attempt is not sent to an address that is suppressed meanwhile.
#[test]
fn the_next_attempt_looks_again() {
    on_both(|world| {
        ready(&world);
        world.recorder.refuse_next(SendError::retryable("busy"));
        let id = world.notify("all", "ada");
        world.run_due();
        suppress(&world, Channel::Email, "ada@example.org", None);
        world.pass(DAY);
        world.run_due();
        assert_eq!(world.notification(id).jobs[0].status, JobStatus::Skipped);
    });
}

/// The number of an endpoint at the integration comes before that of the profile.
#[test]
fn the_number_that_is_called_counts() {
    on_both(|world| {
        ready(&world);
        let endpoint = json!({
            "subscriberId": "ada", "integrationIdentifier": "twilio", "type": "phone",
            "endpoint": { "phoneNumber": "+4930123456" },
        });
        world.env.channel_endpoints().create(&parsed(endpoint)).unwrap();
        suppress(&world, Channel::Sms, "+44 20 7946", None);
        assert_eq!(sent(&world), [Channel::Email, Channel::Sms]);
        suppress(&world, Channel::Sms, "+49 30 123456", None);
        assert_eq!(sent(&world), [Channel::Email]);
    });
}

#[test]
fn an_address_is_found_and_removed_in_any_spelling() {
    on_both(|world| {
        suppress(&world, Channel::Sms, "0044 (20) 7946", None);
        let suppressions = world.env.suppressions();
        let found = suppressions.get(Channel::Sms, "+44-20-7946").unwrap();
        assert_eq!(found.address.address(), "+44207946");
        assert_eq!(suppressions.find(Channel::Email, "a@b.c").unwrap(), None);
        let refusal = "404 suppression `a@b.c` is not there";
        world.refuses(refusal, || suppressions.get(Channel::Email, "a@b.c"));
        world.refuses(refusal, || suppressions.remove(Channel::Email, "A@B.c"));
        let channel = "422 `channel` must be one of email, sms";
        world.refuses(channel, || suppressions.find(Channel::Push, "token"));
        let number = "422 `address` must be a telephone number";
        world.refuses(number, || suppressions.remove(Channel::Sms, "ada"));
        assert_eq!(suppressions.remove(Channel::Sms, "+44 207 946").unwrap(), found);
        assert_eq!(suppressions.find(Channel::Sms, "+44207946").unwrap(), None);
    });
}

#[test]
fn the_longer_time_holds_and_what_has_expired_is_gone() {
    on_both(|world| {
        let suppressions = world.env.suppressions();
        let (short, long) = (world.now().after(DAY), world.now().after(DAY * 2));
        let found = || suppressions.find(Channel::Email, "a@b.c").unwrap();
        for (until, left) in
            [(Some(long), Some(long)), (Some(short), Some(long)), (None, None), (Some(long), None)]
        {
            suppress(&world, Channel::Email, "a@b.c", until);
            assert_eq!(found().unwrap().expires_at, left);
        }
        let listed = || suppressions.list(&SuppressionQuery::default()).unwrap();
        suppressions.clear_all().unwrap();
        for n in 0..6 {
            suppress(&world, Channel::Email, &format!("a{n}@b.c"), Some(short));
        }
        assert_eq!(listed().total, Total::Exactly(6));
        world.pass(DAY);
        assert_eq!((listed().data.len(), listed().total), (0, Total::Exactly(0)));
        // One of them comes back, as another one.
        suppress(&world, Channel::Email, "a5@b.c", None);
        assert_eq!(listed().data.len(), 1);
        suppress(&world, Channel::Email, "b@b.c", None);
        let rows = world.rows(Table::Suppressions);
        assert_eq!(rows, 2, "what has expired is removed by those that are added");
    });
}

// Erases the owner of an address that is suppressed. Returns the hash that is left of it.
fn erased_hash(world: &World, address: &str) -> String {
    world.subscriber(json!({ "subscriberId": "ada", "email": address }));
    suppress(world, Channel::Email, address, None);
    assert!(world.env.subscribers().erase("ada").unwrap().is_finished);
    let listed = world.env.suppressions().list(&SuppressionQuery::default()).unwrap();
    let hash = only(listed.data).address.address().to_owned();
    world.env.suppressions().remove(Channel::Email, &hash).unwrap();
    hash
}

/// The host may suppress an address and the hash of the same one.
#[test]
fn the_longer_time_of_an_address_and_of_its_hash_holds() {
    for of_hash in [None, Some(2), Some(1)] {
        on_both(|world| {
            let hash = erased_hash(&world, "ada@example.org");
            let (now, suppressions) = (world.now(), world.env.suppressions());
            suppress(&world, Channel::Email, "ada@example.org", Some(now.after(DAY)));
            let until = of_hash.map(|days| now.after(DAY * days));
            suppress(
                &world,
                Channel::Email,
                &hash.to_uppercase().replace("ERASED", "erased"),
                until,
            );
            let find = || suppressions.find(Channel::Email, "ada@example.org").unwrap();

            assert_eq!(find().unwrap().expires_at, until);
            world.pass(DAY);
            assert_eq!(find().is_some(), of_hash != Some(1));
            if of_hash.is_none() {
                ready(&world);
                assert_eq!(sent(&world), [Channel::Sms]);
            }
            suppress(&world, Channel::Email, "ada@example.org", None);
            assert_eq!(find().unwrap().expires_at, None);
            suppressions.remove(Channel::Email, "ada@example.org").unwrap();
            assert_eq!(find(), None);
            check_indexes(&world.store);
        });
    }
}

/// What an erasure leaves of an address takes the place of a hash that is there already.
#[test]
fn an_erasure_leaves_one_hash_of_an_address() {
    for (of_address, of_hash) in [(None, Some(1)), (Some(1), None), (Some(2), Some(1))] {
        on_both(|world| {
            let hash = erased_hash(&world, "ada@example.org");
            let after = |days: Option<u32>| days.map(|days| world.now().after(DAY * days));
            suppress(&world, Channel::Email, "ada@example.org", after(of_address));
            suppress(&world, Channel::Email, &hash, after(of_hash));
            world.subscriber(json!({ "subscriberId": "bob", "email": "ada@example.org" }));
            if of_hash.is_none() {
                let other = parsed(json!({ "email": "bob@example.org" }));
                world.env.subscribers().update("bob", &other).unwrap();
            }

            let erased = world.env.subscribers().erase("bob").unwrap();

            assert_eq!(erased.suppressions, 1);
            let left =
                only(world.env.suppressions().list(&SuppressionQuery::default()).unwrap().data);
            assert_eq!(left.address.address(), hash);
            let longest =
                if of_address.is_none() || of_hash.is_none() { None } else { after(of_address) };
            assert_eq!(left.expires_at, longest);
            check_indexes(&world.store);
            assert_eq!(world.engine.check().unwrap().findings, []);
        });
    }
}

#[test]
fn suppressions_are_listed_by_page_and_cleared_by_channel() {
    on_both(|world| {
        let suppressions = world.env.suppressions();
        for n in 0..260 {
            suppress(&world, Channel::Email, &format!("a{n}@b.c"), None);
        }
        suppress(&world, Channel::Sms, "+1", None);
        let all = SuppressionQuery::default().limit(100);
        let mut page = suppressions.list(&all).unwrap();
        assert_eq!(page.total, Total::Exactly(261));
        assert_eq!(page.data[0].address.channel(), Channel::Sms);
        let mut seen = page.data.len();
        while let Some(next) = page.next {
            page = suppressions.list(&all.clone().after(next)).unwrap();
            seen += page.data.len();
        }
        assert_eq!(seen, 261);
        let texts = SuppressionQuery::default().channel(Channel::Sms);
        assert_eq!(suppressions.list(&texts).unwrap().data.len(), 1);
        assert_eq!(suppressions.clear_channel(Channel::Email).unwrap(), 260);
        assert_eq!(suppressions.clear_channel(Channel::Email).unwrap(), 0);
        assert_eq!(suppressions.list(&all).unwrap().data.len(), 1);
        assert_eq!(suppressions.clear_all().unwrap(), 1);
    });
}

/// What has expired is removed with the others, and was no suppression any more.
#[test]
fn the_number_of_cleared_suppressions_is_that_of_those_in_force() {
    on_both(|world| {
        let suppressions = world.env.suppressions();
        for n in 0..300 {
            let until = world.now().after(if n < 280 { DAY } else { DAY * 2 });
            suppress(&world, Channel::Email, &format!("a{n}@b.c"), Some(until));
        }
        suppress(&world, Channel::Sms, "+1", None);
        world.pass(DAY);
        assert_eq!(suppressions.clear_channel(Channel::Email).unwrap(), 20);
        let rows = world.rows(Table::Suppressions);
        assert_eq!(rows, 1, "what has expired is removed");
        assert_eq!(suppressions.clear_channel(Channel::Email).unwrap(), 0);
        assert_eq!(suppressions.clear_all().unwrap(), 1);
    });
}

/// A suppression has several index entries. One that cannot be read is put into quarantine, and none of them
/// is left.
#[test]
fn an_unreadable_suppression_leaves_no_entries() {
    let clear = |world: &World| {
        assert_eq!(world.env.suppressions().clear_channel(Channel::Email).unwrap(), 1);
    };
    let expire = |world: &World| {
        world.pass(DAY);
        suppress(world, Channel::Email, "b@b.c", None);
    };
    for (remove, left) in [(&clear as &dyn Fn(&World), 1), (&expire, 2)] {
        on_both(|world| {
            suppress(&world, Channel::Email, "a@b.c", Some(world.now().after(DAY)));
            let suppressions = tables::dump(&world.store);
            let damaged = suppressions.iter().find(|row| row.0 == Table::Suppressions).unwrap();
            tables::put(&world.store, damaged.0, &damaged.1, Some(b"damaged"));
            suppress(&world, Channel::Sms, "+1", None);

            remove(&world);

            let page = world.env.suppressions().list(&SuppressionQuery::default()).unwrap();
            assert_eq!((page.data.len(), page.unreadable), (left, 0));
            let quarantined = world.records::<Quarantined>();
            assert_eq!(only(quarantined).table, "suppressions");
            tables::check_indexes(&world.store);
        });
    }
}

#[test]
fn a_request_has_an_address_of_its_channel() {
    for (create, problem) in [
        (json!({ "channel": "email", "address": "ada" }), "`address` must be an e-mail address"),
        (json!({ "channel": "push", "address": "t" }), "`channel` must be one of email, sms"),
    ] {
        assert!(unreadable::<SuppressionCreate>(create).contains(problem));
    }
}
