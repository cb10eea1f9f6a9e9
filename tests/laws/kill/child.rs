//! A process that lets the pipeline work on a file, with as much at a time as there is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use testkit::kill::{exit_on_panic, file_of_child, open};
use testkit::world::{START, time};
use tidings::job::RetryPolicy;
use tidings::message::{FeedCursor, MarkAs, MessageQuery};
use tidings::retention::Retention;
use tidings::time::Timestamp;
use tidings::trigger::ProgressStatus;
use tidings::vocabulary::Channel;
use tidings::{
    Builder, Clock, Delivery, Engine, Error, ManualClock, Provider, ProviderReceipt, Scope,
    SendError,
};

use super::notes::{FEW, Kind, Note, allowed};
use crate::feed::{Seen, look};
use crate::parsed;

/// Clients of these subscribers follow their inboxes.
pub(super) const FOLLOWED: [&str; 2] = ["ada", "bob"];

/// Digested events of a day. The first of them ends all windows and leases of the day before.
const OF_A_DAY: usize = 25;

/// Place at which a process goes on. It repeats the first event of each kind, since the one before
/// it may have accepted that event without an acknowledgement.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Start {
    pub(super) crowds: usize,
    pub(super) digests: usize,
    pub(super) late: usize,
    pub(super) cursors: BTreeMap<String, FeedCursor>,
}

impl Start {
    fn file(path: &Path) -> PathBuf {
        path.with_extension("start")
    }

    pub(super) fn write(&self, path: &Path) {
        fs::write(Self::file(path), serde_json::to_vec(self).unwrap()).unwrap();
    }

    fn read(path: &Path) -> Self {
        serde_json::from_slice(&fs::read(Self::file(path)).unwrap()).unwrap()
    }

    /// The time at which the process begins.
    pub(super) fn time(&self) -> Timestamp {
        time_of(self.digests)
    }
}

/// Not a test, but what the other process does.
#[test]
#[ignore = "the other process of a test"]
fn child() {
    let Some(file) = file_of_child() else { return };
    exit_on_panic();
    let start = Start::read(Path::new(&file));
    let clock = ManualClock::at(start.time());
    let retention = Retention::default()
        .activity_days(1)
        .messages_days(Channel::InApp, 1)
        .messages_days(Channel::Sms, 1);
    let builder = builder(&clock, Telling::default()).retention(retention);
    let engine = &builder.build(open(Path::new(&file)));
    let env = &engine.organization("acme").unwrap().development().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| tell_crowds(env, start.crowds));
        scope.spawn(|| gather(env, &clock, start.digests));
        scope.spawn(|| tell_late(env, start.late));
        scope.spawn(|| read(env, &clock));
        for who in FOLLOWED {
            let cursor = start.cursors.get(who).copied();
            scope.spawn(move || follow(env, who, cursor));
        }
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    engine.delivery().run_due(16).unwrap();
                    pause(1);
                }
            });
        }
    });
}

/// An engine that goes on for as long as it takes.
pub(super) fn builder(clock: &ManualClock, provider: impl Provider) -> Builder {
    let retry = RetryPolicy::new(1_000, Duration::from_millis(100));
    Engine::builder().clock(clock.clone()).retry(retry).default_provider(provider)
}

// The time of the digested event of that number.
fn time_of(number: usize) -> Timestamp {
    let days = (number / OF_A_DAY) as u64;
    let since = Duration::from_secs(days * 24 * 60 * 60);
    time(START).after(since + Duration::from_millis(number as u64 * 100))
}

/// A provider that notes what it gets, and does not take everything at the first attempt.
#[derive(Debug, Default)]
struct Telling(AtomicUsize);

impl Provider for Telling {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        Note::handed(delivery).acknowledge();
        let is_digest = delivery.notification.transaction_id.as_str().starts_with("digest");
        if is_digest && delivery.attempt() == 1 {
            return Err(SendError::retry_after("busy", Duration::from_millis(500)));
        }
        match self.0.fetch_add(1, Ordering::Relaxed) {
            number if number % 7 == 3 => Err(SendError::retryable("busy")),
            number if number % 11 == 5 => Err(SendError::unknown("no answer")),
            _ => Ok(ProviderReceipt::default()),
        }
    }
}

fn pause(millis: u64) {
    thread::sleep(Duration::from_millis(millis));
}

fn trigger(env: &Scope, workflow: &str, to: &Value, id: String) {
    let trigger = json!({ "name": workflow, "to": to, "transactionId": id });
    env.events().trigger(&parsed(trigger)).unwrap();
    Note::Accepted(id).acknowledge();
}

// An event whose record retention has taken is not there.
fn cancel(env: &Scope, id: String) {
    Note::Canceling(id.clone()).acknowledge();
    match env.events().cancel(id.as_str()) {
        Ok(cancellation) => Note::Canceled(id, allowed(&cancellation)).acknowledge(),
        Err(Error::NotFound { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

// Tells everybody, one event after the other. Some of them are canceled halfway.
fn tell_crowds(env: &Scope, from: usize) {
    for number in from.. {
        let id = Kind::Crowd.id(number);
        let topic = json!({ "type": "Topic", "topicKey": "crowd" });
        trigger(env, "crowd", &topic, id.clone());
        let runs = || {
            let progress = env.events().progress(id.as_str());
            progress.is_ok_and(|progress| progress.status == ProgressStatus::Running)
        };
        let mut looks = 0;
        while runs() {
            if number % 3 == 1 && looks == 8 {
                cancel(env, id.clone());
            }
            looks += 1;
            pause(5);
        }
    }
}

// Digested events, which take the clock along. Some of them are canceled before their window ends.
// Others have opened one that has ended, and its message is tried again later.
fn gather(env: &Scope, clock: &ManualClock, from: usize) {
    for number in from.. {
        clock.set(time_of(number));
        trigger(env, "digest", &json!(FEW), Kind::Digest.id(number));
        let ago = match number % OF_A_DAY {
            4 | 14 => 1,
            12 | 22 => 12,
            _ => 0,
        };
        if ago > 0 {
            cancel(env, Kind::Digest.id(number - ago));
        }
        pause(2);
    }
}

// Events that are sent at once or after a delay. Most of them are canceled, some of these too late.
fn tell_late(env: &Scope, from: usize) {
    for number in from.. {
        let workflow = if number % 2 == 0 { "late" } else { "now" };
        trigger(env, workflow, &json!(FEW), Kind::Late.id(number));
        if number % 3 > 0 {
            pause(number as u64 * 7 % 30);
            cancel(env, Kind::Late.id(number));
        }
        pause(2);
    }
}

fn read(env: &Scope, clock: &ManualClock) {
    let inbox = env.inbox("ada").unwrap();
    for round in 0.. {
        let found = inbox.list(&MessageQuery::default()).unwrap().data;
        if let Some(message) = found.get(round % 7) {
            match round % 4 {
                0 => drop(inbox.mark_as([message.id], MarkAs::Read).unwrap()),
                1 => drop(inbox.archive([message.id]).unwrap()),
                2 => {
                    let later = clock.now().after(Duration::from_secs(1));
                    drop(inbox.snooze([message.id], later).unwrap());
                }
                _ => drop(inbox.delete([message.id]).unwrap()),
            }
        }
        pause(3);
    }
}

fn follow(env: &Scope, who: &str, mut cursor: Option<FeedCursor>) {
    loop {
        let seen = look(env, who, cursor.as_ref()).unwrap();
        let (next, is_new) = match &seen {
            Seen::Changes(page) => (page.next, !page.changes.is_empty()),
            Seen::Everything(next, _) => (*next, true),
        };
        cursor = Some(next);
        if is_new {
            Note::Seen(who.to_owned(), seen).acknowledge();
        } else {
            pause(2);
        }
    }
}
