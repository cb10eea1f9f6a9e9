//! Leases under a scheduler that decides, before and after each transaction and within each send, which
//! process goes on, and when time passes: several processes deliver what is in one store, each message
//! is settled once, and no process sends what another one has a lease on.
//!
//! `TIDINGS_TEST_SCALE` multiplies the number of orders.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use serde_json::json;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::thread::yield_now;
use store::memory::MemoryStore;
use store::{ReadBody, Store, WriteBody};
use testkit::facade::restarted;
use testkit::interposed::Interposed;
use testkit::tables::{check_indexes, dump, load};
use testkit::world::{World, email, in_app};
use tidings::dead_letter::DeadLetterQuery;
use tidings::ids::SendId;
use tidings::job::{Detail, ExecutionDetail, JobStatus};
use tidings::message::{Message, MessageStatus};
use tidings::time::Timestamp;
use tidings::{
    Clock, Delivery, DeliveryReport, ManualClock, Provider, ProviderReceipt, Scope, SendError,
};

const PROCESSES: u64 = 2;

/// The lease of a claim.
const LEASE: Duration = Duration::from_secs(300);

/// Number of times that half a lease passes. Some leases end while a message is sent.
const HALVES: u32 = 12;

/// Size of the stack of a thread under the scheduler.
const STACK: usize = 4 << 20;

static ORDERS: AtomicUsize = AtomicUsize::new(0);
static REPEATS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn each_message_is_settled_once_in_any_order_of_processes() {
    // Nothing is made under the scheduler that all orders share.
    LazyLock::force(&WAITING);
    let orders = testkit::scaled(50);
    in_orders_of(RandomScheduler::new_from_seed(1, orders));
    in_orders_of(PctScheduler::new_from_seed(2, 4, orders));
    let (orders, repeats) = (ORDERS.load(Relaxed), REPEATS.load(Relaxed));
    println!("{orders} orders; a lease has ended before the answer of {repeats} sends");
    assert!(repeats > 0, "no lease has ended while a message was sent");
}

fn in_orders_of(scheduler: impl Scheduler + 'static) {
    let mut config = shuttle::Config::new();
    config.stack_size = STACK;
    shuttle::Runner::new(scheduler, config).run(deliver_together);
}

/// A store that lets others go on before and after each transaction.
#[derive(Debug)]
struct Scheduled(MemoryStore);

impl Store for Scheduled {
    fn read(&self, body: &mut ReadBody<'_>) -> store::Result<()> {
        yield_now();
        self.0.read(body)
    }

    fn write(&self, body: &mut WriteBody<'_>) -> store::Result<()> {
        yield_now();
        let written = self.0.write(body);
        yield_now();
        written
    }
}

/// A store with messages to send, and the time in it.
static WAITING: LazyLock<(MemoryStore, Timestamp)> = LazyLock::new(|| {
    let world = World::with(Interposed::default(), restarted(0));
    world.active_integration("email", "sendgrid");
    let soon = json!({ "type": "regular", "amount": 1, "unit": "minutes" });
    let [delay, digest] = ["delay", "digest"].map(|kind| json!({ "type": kind, "metadata": soon }));
    world.workflow_of("now", &[email()]);
    world.workflow_of("later", &[delay, email()]);
    world.workflow_of("together", &[digest, email(), in_app()]);
    for who in ["ada", "busy", "refused"] {
        let address = format!("{who}@example.org");
        world.subscriber(json!({ "subscriberId": who, "email": address }));
        world.notify("now", who);
    }
    world.notify("later", "ada");
    world.notify("together", "ada");
    world.notify("together", "ada");
    let store = MemoryStore::default();
    load(&store, &dump(&world.store));
    (store, world.now())
});

/// A send: when it began, when its lease ends, and whether the one before has asked for a retry.
#[derive(Clone, Debug)]
struct Send {
    at: Timestamp,
    lease_until: Timestamp,
    is_retry: bool,
}

/// The sends of all processes, by idempotency key.
#[derive(Clone, Debug)]
struct Sends {
    clock: ManualClock,
    /// What is stored, without the scheduler.
    stored: Scope,
    begun: Arc<Mutex<BTreeMap<SendId, Vec<Send>>>>,
    /// The jobs whose first send has been answered.
    answered: Arc<Mutex<BTreeSet<SendId>>>,
}

impl Provider for Sends {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        let who = delivery.subscriber.subscriber_id.to_string();
        let notification = self.stored.notifications().get(delivery.notification.id).unwrap();
        let job =
            notification.jobs.iter().find(|job| SendId::from(job.id) == delivery.idempotency_key());
        let JobStatus::Running { lease_until, .. } = job.unwrap().status else {
            panic!("it is sent without a lease: {job:#?}");
        };
        let id = delivery.idempotency_key();
        let is_first = {
            let mut begun = self.begun.lock().unwrap();
            let of_job = begun.entry(id).or_default();
            let is_answered = self.answered.lock().unwrap().contains(&id);
            let is_retry = who == "busy" && of_job.len() == 1 && is_answered;
            of_job.push(Send { at: self.clock.now(), lease_until, is_retry });
            of_job.len() == 1
        };
        // The other threads run, so that leases end meanwhile.
        (0..30).for_each(|_| yield_now());
        self.answered.lock().unwrap().insert(id);
        match who.as_str() {
            "refused" => Err(SendError::permanent("no such address")),
            "busy" if is_first => Err(SendError::retryable("busy")),
            _ => Ok(ProviderReceipt::default()),
        }
    }
}

fn deliver_together() {
    let (store, now) = &*WAITING;
    let store = store.fork();
    let world = World::with(Interposed::new(Scheduled(store.clone())), restarted(1));
    world.clock.set(*now);
    let stored = testkit::sealed::builder().build(store);
    let stored = stored.environment(world.env.environment_id()).unwrap();
    let sends = Sends {
        clock: world.clock.clone(),
        stored,
        begun: Arc::default(),
        answered: Arc::default(),
    };
    let process = |number: u64| {
        world.engine_with(|builder| restarted(number + 2)(builder).default_provider(sends.clone()))
    };
    let mut threads: Vec<_> = (0..PROCESSES)
        .map(process)
        .map(|engine| {
            shuttle::thread::spawn(move || {
                for _ in 0..8 {
                    engine.delivery().run_due(2).unwrap();
                }
            })
        })
        .collect();
    let clock = world.clock.clone();
    threads.push(shuttle::thread::spawn(move || {
        for _ in 0..HALVES {
            (0..20).for_each(|_| yield_now());
            clock.advance(LEASE / 2);
        }
    }));
    for thread in threads {
        thread.join().unwrap();
    }
    // What is left, and what has a lease that nobody settles.
    let last = process(PROCESSES);
    for _ in 0..8 {
        while last.delivery().run_due(100).unwrap() != DeliveryReport::default() {}
        world.clock.advance(LEASE);
    }
    check_sends(&sends);
    check_world(&world);
    ORDERS.fetch_add(1, Relaxed);
}

fn check_sends(sends: &Sends) {
    let begun = sends.begun.lock().unwrap();
    assert_eq!(begun.len(), 5, "{begun:#?}");
    for of_job in begun.values() {
        for pair in of_job.windows(2).filter(|pair| !pair[1].is_retry) {
            assert!(pair[0].lease_until <= pair[1].at, "sent twice within a lease: {of_job:#?}");
            REPEATS.fetch_add(1, Relaxed);
        }
    }
}

fn check_world(world: &World) {
    check_indexes(&world.store);
    let notifications = world.notifications(json!({ "limit": 50 }));
    assert_eq!(notifications.len(), 6);
    let jobs = || notifications.iter().flat_map(|notification| &notification.jobs);
    assert!(jobs().all(|job| job.status.has_ended()), "{notifications:#?}");
    for job in jobs() {
        let settled = |entry: &&ExecutionDetail| entry.detail == Detail::MessageSent;
        let times = job.execution_details.iter().filter(settled).count();
        assert!(times <= 1, "settled {times} times: {job:#?}");
    }
    let sent = |who| {
        let messages = world.messages(who);
        let is_sent = |message: &&Message| message.status == MessageStatus::Sent;
        (messages.iter().filter(is_sent).count(), messages.len())
    };
    // At once, behind the delay, and for the digest by e-mail and in the inbox.
    assert_eq!(["ada", "busy", "refused"].map(sent), [(4, 4), (1, 1), (0, 1)]);
    let letters = world.env.dead_letters().count(&DeadLetterQuery::default()).unwrap();
    assert_eq!(letters, 1);
}
