//! The law of delivery by SMTP, if the process is killed: an e-mail whose result was stored is not
//! sent again, and any other one is sent again under its first Message-ID.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tempfile::tempdir;
use testkit::kill::{acknowledge, file_of_child, work_until_killed};
use testkit::tables::{check_indexes, dump, load};
use tidings::job::{JobStatus, RetryPolicy};
use tidings::notification::NotificationQuery;
use tidings::store::memory::MemoryStore;
use tidings::store::redb::RedbStore;
use tidings::time::Timestamp;
use tidings::{Builder, Clock, Engine, ManualClock, QueueDepth, SystemClock};
use tidings_providers::Smtp;

use crate::load::{MAILS, Tries, number, triggered, unreliable};
use crate::server::Server;

/// Number of e-mails that each process settles at least.
const AT_LEAST: usize = 60;

const HOUR: Duration = Duration::from_secs(3_600);

/// E-mails that the server has kept, by recipient.
type Kept = BTreeMap<String, Vec<String>>;

#[test]
fn an_email_is_sent_again_only_if_its_result_was_not_stored() {
    let server = Server::start(unreliable(Tries::default()));
    let folder = tempdir().unwrap();
    let path = folder.path().join("tidings.redb");
    prepare(&path, &server);
    let mut unsettled_at_kills = Vec::new();
    for (round, span) in [10, 70, 140].into_iter().enumerate() {
        fs::write(hour_file(&path), round.to_string()).unwrap();
        work_until_killed("kill::child", &path, Duration::from_millis(span));
        unsettled_at_kills.push(unsettled(&path, &server));
    }
    let last = &unsettled_at_kills[2];
    assert!(!last.is_empty() && last.len() < MAILS - 3 * AT_LEAST, "{} are left", last.len());

    let engine = finish(&path);

    let kept = kept(&server);
    let mut ids = BTreeSet::new();
    for (recipient, mails) in &kept {
        let found = unsettled_at_kills.iter().filter(|unsettled| unsettled.contains(recipient));
        let lost_answers = usize::from(number(recipient) % 5 == 2);
        let most = 1 + lost_answers + found.count();
        assert!(mails.len() <= most, "{recipient} has {} e-mails", mails.len());
        let of_mails: BTreeSet<_> = mails.iter().map(|mail| message_id(mail)).collect();
        assert_eq!(of_mails.len(), 1, "{recipient}: {of_mails:?}");
        ids.extend(of_mails);
    }
    assert_eq!((kept.len(), ids.len()), (MAILS, MAILS));
    assert_eq!(engine.delivery().stats().unwrap().total(), QueueDepth::default());
}

/// Not a test, but what the other process does.
#[test]
#[ignore = "the other process of a test"]
fn child() {
    let Some(file) = file_of_child() else { return };
    // The leases of the processes before are over.
    let hour = fs::read_to_string(hour_file(Path::new(&file))).unwrap().parse().unwrap();
    let engine = builder().clock(Later(HOUR * hour)).open(&file).unwrap();
    let left = || engine.delivery().stats().unwrap().total();
    let tasks = |depth: QueueDepth| depth.waiting + depth.leased;
    let before = tasks(left());
    let _worker = engine.worker().threads(8).start().unwrap();
    while tasks(left()) + AT_LEAST > before {
        thread::sleep(Duration::from_millis(2));
    }
    acknowledge("some are settled");
    loop {
        thread::sleep(Duration::from_secs(1));
    }
}

/// The clock of the system, set forward.
#[derive(Debug)]
struct Later(Duration);

impl Clock for Later {
    fn now(&self) -> Timestamp {
        SystemClock.now().after(self.0)
    }
}

// The file with the number of hours by which the clock of a child is ahead.
fn hour_file(path: &Path) -> PathBuf {
    path.with_file_name("hour")
}

fn builder() -> Builder {
    Engine::builder()
        .provider("smtp", Smtp::default().timeout(Duration::from_secs(10)))
        .retry(RetryPolicy::new(12, Duration::from_millis(20)))
}

// A file with an e-mail for each recipient in the queue.
fn prepare(path: &Path, server: &Server) {
    let store = MemoryStore::default();
    triggered(&builder().build(store.clone()), server);
    load(&RedbStore::open(path).unwrap(), &dump(&store));
}

// The recipients whose e-mails are not settled. Of those that are, the server has at least one.
#[track_caller]
fn unsettled(path: &Path, server: &Server) -> BTreeSet<String> {
    let store = MemoryStore::default();
    load(&store, &dump(&RedbStore::open(path).unwrap()));
    check_indexes(&store);
    let statuses = statuses(&builder().build(store));
    let kept = kept(server);
    let (settled, unsettled): (BTreeMap<_, _>, BTreeMap<_, _>) =
        statuses.into_iter().partition(|(_, status)| status.has_ended());
    for (recipient, status) in settled {
        assert!(kept.contains_key(&recipient), "{recipient} is {status:?} and has no e-mail");
    }
    unsettled.into_keys().collect()
}

// The statuses of the jobs, by recipient.
fn statuses(engine: &Engine) -> BTreeMap<String, JobStatus> {
    let env = engine.organization("acme").unwrap().development().unwrap();
    let mut statuses = BTreeMap::new();
    for page in 0.. {
        let query = NotificationQuery::default().limit(50).page_number(page);
        let listed = env.notifications().list(&query).unwrap();
        for notification in &listed.data {
            let email = notification.subscriber.as_ref().and_then(|one| one.email.clone()).unwrap();
            statuses.insert(format!("<{}>", email.as_str()), notification.jobs[0].status);
        }
        if !listed.has_more {
            break;
        }
    }
    statuses
}

// Sends what is left, when all leases are over.
#[track_caller]
fn finish(path: &Path) -> Engine {
    let clock = ManualClock::at(SystemClock.now().after(HOUR * 3));
    let engine = builder().clock(clock.clone()).open(path).unwrap();
    while let Some(due) = engine.delivery().next_due().unwrap() {
        clock.set(clock.now().max(due));
        engine.delivery().run_due(usize::MAX).unwrap();
    }
    let all = statuses(&engine);
    assert!(all.values().all(|status| *status == JobStatus::Completed), "{all:?}");
    engine
}

fn kept(server: &Server) -> Kept {
    let mut kept = Kept::new();
    for mail in server.kept() {
        kept.entry(mail.to[0].clone()).or_default().push(mail.content);
    }
    kept
}

fn message_id(mail: &str) -> &str {
    mail.lines().find(|line| line.starts_with("Message-ID: ")).unwrap()
}
