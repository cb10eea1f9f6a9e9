//! The pipeline in a process that is killed: each recipient is told once, each event is in one
//! digest, a canceled event is not sent, and a client that follows an inbox shows what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use store::Table;
use tempfile::tempdir;
use testkit::interposed::Interposed;
use testkit::kill::{open, place_in, work_until_killed};
use testkit::postgres::Server;
use testkit::scaled;
use testkit::tables::{Entry, check_indexes, dump, load, records};
use testkit::world::{World, active_integration, in_app, workflow_of};
use tidings::message::Message;
use tidings::notification::Notification;
use tidings::vocabulary::Channel;
use tidings::{
    Clock, Delivery, ManualClock, Provider, ProviderReceipt, QueueDepth, Scope, SendError,
};

use super::child::{FOLLOWED, Start, builder};
use super::notes::{FEW, Kind, Note, Told};
use crate::feed::{Client, listed};
use crate::parsed;

/// Number of recipients of an event for everybody.
const CROWD: usize = 1_000;

/// The same on a server, where a call takes longer.
const CROWD_OF_A_SERVER: usize = 150;

/// Number of kills of a process that works on the same file.
const ROUNDS: u64 = 3;

/// The same on a machine so slow that the processes do not get to everything.
const MOST_ROUNDS: u64 = 30;

#[test]
fn each_recipient_is_told_once_whatever_is_killed() {
    tells_once(None, CROWD, |round| 300 + round * 137 % 400);
}

#[test]
fn on_a_server_each_recipient_is_told_once_whatever_is_killed() {
    if let Some(server) = Server::wanted() {
        tells_once(Some(server), CROWD_OF_A_SERVER, |round| 3_000 + round * 1_370 % 4_000);
    }
}

// Kills a process so many milliseconds after its first acknowledgement, by the number of the round.
fn tells_once(server: Option<&Server>, crowd: usize, millis: impl Fn(u64) -> u64) {
    let prepared = prepared(crowd);
    for file in 0..scaled(1) {
        let folder = tempdir().unwrap();
        let path = place_in(folder.path(), server);
        load(&open(&path), &prepared);
        let (mut notes, mut largest) = (Vec::new(), 0);
        for round in 0_u64.. {
            start_behind(&notes).write(&path);
            let longer = round.saturating_sub(ROUNDS) * 200;
            let span = Duration::from_millis(millis(file * ROUNDS + round) + longer);
            let lines = work_until_killed("kill::child::child", &path, span);
            notes.extend(lines.iter().map(|line| serde_json::from_str::<Note>(line).unwrap()));
            largest = largest.max(check_left(&path, &notes, crowd));
            if round + 1 >= ROUNDS && largest > 2 && Told::of(&notes).is_rich() {
                println!("{} kills among {} notes lost none", round + 1, notes.len());
                break;
            }
            assert!(round < MOST_ROUNDS, "not everything has happened, or each event is a digest");
        }
    }
}

// A store with everything that the process needs.
fn prepared(crowd: usize) -> Vec<Entry> {
    let world = World::in_memory();
    let sms = |body: &str| json!({ "type": "sms", "template": { "body": body } });
    let seconds = |kind: &str, amount: u32| {
        let metadata = json!({ "type": "regular", "amount": amount, "unit": "seconds" });
        json!({ "type": kind, "metadata": metadata })
    };
    let events = sms("{% for event in events %}{{ event.id }} {% endfor %}");
    for (name, steps) in [
        ("crowd", vec![in_app(), sms("Hi")]),
        ("digest", vec![seconds("digest", 1), in_app(), events]),
        ("late", vec![seconds("delay", 1), sms("Hi")]),
        ("now", vec![sms("Hi")]),
    ] {
        world.workflow(workflow_of(name, &steps));
    }
    world.integration(active_integration("sms", "of-the-host"));
    let create = |id: &str| world.subscriber(json!({ "subscriberId": id, "phone": "+1" }));
    for few in FEW {
        create(few);
    }
    let crowd: Vec<String> = (0..crowd).map(|number| format!("s{number}")).collect();
    for some in crowd.chunks(100) {
        for one in some {
            create(one);
        }
        let subscribe = parsed(json!({ "subscriptions": some }));
        assert_eq!(world.env.topics().subscribe("crowd", &subscribe).unwrap().errors, []);
    }
    dump(&world.store)
}

// Goes on behind the last events that were acknowledged, and from the last cursors.
fn start_behind(notes: &[Note]) -> Start {
    let next = |kind: Kind| {
        let ids = (0..).map(|number| kind.id(number));
        let accepted: BTreeSet<&str> = notes.iter().filter_map(Note::accepted).collect();
        ids.take_while(|id| accepted.contains(id.as_str())).count()
    };
    let clients = clients(notes);
    let cursors = clients.iter().filter_map(|(who, client)| Some((who.clone(), client.cursor?)));
    Start {
        crowds: next(Kind::Crowd),
        digests: next(Kind::Digest),
        late: next(Kind::Late),
        cursors: cursors.collect(),
    }
}

fn clients(notes: &[Note]) -> BTreeMap<String, Client> {
    let mut clients: BTreeMap<String, Client> = BTreeMap::new();
    for note in notes {
        if let Note::Seen(who, seen) = note {
            clients.entry(who.clone()).or_default().take(seen.clone());
        }
    }
    clients
}

// Checks what a kill has left, and that it comes to its end in a copy. The file goes on as it is.
// Returns the number of events of the largest digest.
#[track_caller]
fn check_left(path: &Path, notes: &[Note], crowd: usize) -> usize {
    let store = Interposed::default();
    load(&store, &dump(&open(path)));
    check_indexes(&store);

    let ending = Ending::default();
    let clock = ManualClock::at(start_behind(notes).time());
    let engine = builder(&clock, ending.clone()).build(store.clone());
    while let Some(due) = engine.delivery().next_due().unwrap() {
        // What was left may be due since more than a day.
        clock.set(due.max(clock.now()));
        engine.delivery().run_due(usize::MAX).unwrap();
    }

    check_indexes(&store);
    check_records(&store);
    assert_eq!(engine.delivery().stats().unwrap().total(), QueueDepth::default());
    let ending = ending.0.lock().unwrap();
    let told = Told::of(notes.iter().chain(&*ending));
    told.check(crowd);
    let env = engine.organization("acme").unwrap().development().unwrap();
    check_clients(&env, clients(notes));
    told.largest_digest()
}

/// A provider that accepts everything.
#[derive(Clone, Debug, Default)]
struct Ending(Arc<Mutex<Vec<Note>>>);

impl Provider for Ending {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        self.0.lock().unwrap().push(Note::handed(delivery));
        Ok(ProviderReceipt::default())
    }
}

// Nobody has two notifications of an event, or two messages of one. All jobs have ended.
#[track_caller]
fn check_records(store: &Interposed) {
    let mut told = BTreeSet::new();
    for notification in records::<Notification>(store) {
        assert!(notification.jobs.iter().all(|job| job.status.has_ended()), "{notification:?}");
        let recipient = (notification.transaction_id.clone(), notification.subscriber_id);
        assert!(told.insert(recipient), "two notifications: {notification:?}");
    }
    let mut shown = BTreeSet::new();
    let messages = records::<Message>(store).into_iter();
    for message in messages.filter(|message| message.channel == Channel::InApp) {
        assert!(shown.insert(message.notification_id), "two messages: {message:?}");
    }
    assert!(!dump(store).iter().any(|(table, ..)| *table == Table::Due), "work is left");
}

// Whoever goes on from the last cursor ends with the inbox.
#[track_caller]
fn check_clients(env: &Scope, mut clients: BTreeMap<String, Client>) {
    for who in FOLLOWED {
        let client = clients.entry(who.to_owned()).or_default();
        while client.ask(env, who) {}
        assert_eq!(client.shown, listed(env, who), "{who}");
    }
}
