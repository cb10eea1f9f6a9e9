//! What a reader notices of a writer, and a writer of what is sealed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use activity::{Facets, Tended};
use domain::ids::TransactionId;
use domain::trigger::AcceptedTrigger;

use crate::list::SEGMENT;
use crate::list::tidings::Tidings;
use crate::sample::quantile;

/// How long a reader reads before a writer starts or stops, and how often that happens: often, for
/// a search takes longer the more is waiting to be sealed, and what the writer has appended waits.
const READING: Duration = Duration::from_millis(15);
const TURNS: usize = 12;

/// How long a reader takes.
pub(crate) struct Reading {
    pub(crate) median: Duration,
    pub(crate) last_percent: Duration,
}

/// Times of the same kind.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) times: Vec<Duration>,
}

/// Reads each shape alone and beside a writer that appends as fast as it can. Says as well how
/// many notifications the writer appends in a second.
pub(crate) fn readers(tidings: &Tidings, facets: &[Facets]) -> (Vec<[Reading; 2]>, u64) {
    let gate = Gate::default();
    let mut spent = Duration::ZERO;
    let readings = thread::scope(|scope| {
        scope.spawn(|| gate.write(&mut Writer::new(tidings, facets, "reader")));
        let mut read_shape = |shape| {
            let (mut alone, mut beside) = (Vec::new(), Vec::new());
            for _ in 0..TURNS {
                gate.close();
                read(tidings, shape, &mut alone);
                gate.open();
                let start = Instant::now();
                read(tidings, shape, &mut beside);
                spent += start.elapsed();
            }
            [alone, beside].map(Reading::of)
        };
        let readings = (0..tidings.questions.len()).map(&mut read_shape).collect();
        gate.is_over.store(true, Ordering::Relaxed);
        readings
    });
    (readings, per_second(gate.appended.into_inner(), spent))
}

/// Lets a writer write, or not.
#[derive(Default)]
struct Gate {
    is_closed: AtomicBool,
    is_over: AtomicBool,
    writing: Mutex<()>,
    appended: AtomicU64,
}

impl Gate {
    fn write(&self, writer: &mut Writer<'_>) {
        while !self.is_over.load(Ordering::Relaxed) {
            if self.is_closed.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_micros(50));
                continue;
            }
            let _writing = self.writing.lock().unwrap();
            self.appended.fetch_add(writer.append() as u64, Ordering::Relaxed);
            writer.tend();
        }
    }

    fn open(&self) {
        self.is_closed.store(false, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(1));
    }

    // Waits for the writer to come to an end.
    fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        drop(self.writing.lock().unwrap());
        thread::sleep(Duration::from_millis(1));
    }
}

fn read(tidings: &Tidings, shape: usize, times: &mut Vec<Duration>) {
    let start = Instant::now();
    while start.elapsed() < READING {
        let before = Instant::now();
        tidings.ordinals(shape);
        times.push(before.elapsed());
    }
}

impl Reading {
    fn of(mut times: Vec<Duration>) -> Self {
        let [median, last_percent] = [0.5, 0.99].map(|share| quantile(&mut times, share));
        Self { median, last_percent }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is for people")]
#[expect(clippy::cast_precision_loss, reason = "it is for people")]
fn per_second(count: u64, time: Duration) -> u64 {
    (count as f64 / time.as_secs_f64()) as u64
}

/// What two writers wait for who fill three segments, each tending the index after each of its
/// transactions.
pub(crate) fn writers(tidings: &Tidings, facets: &[Facets]) -> Vec<Kind> {
    let left = AtomicU64::new(3 * SEGMENT);
    let write = |name| {
        let mut writer = Writer::new(tidings, facets, name);
        let mut events = Vec::new();
        while left.load(Ordering::Relaxed) > 0 {
            let start = Instant::now();
            let appended = writer.append() as u64;
            events.push(Event { what: What::Appends, start, end: Instant::now() });
            let start = Instant::now();
            let what = if writer.tend() { What::Tends } else { What::Looks };
            events.push(Event { what, start, end: Instant::now() });
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                Some(left.saturating_sub(appended))
            })
            .unwrap();
        }
        events
    };
    let [one, other] = thread::scope(|scope| {
        [scope.spawn(|| write("one")), scope.spawn(|| write("other"))]
            .map(|writer| writer.join().unwrap())
    });
    kinds(&one, &other)
}

struct Event {
    what: What,
    start: Instant,
    end: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Appends,
    // There is something to seal or to clear away.
    Tends,
    Looks,
}

fn kinds(one: &[Event], other: &[Event]) -> Vec<Kind> {
    let mut kinds = [
        "append and commit",
        "append and commit, while the other one tends",
        "tend, nothing to do",
        "tend, a step of sealing or clearing",
    ]
    .map(|name| Kind { name, times: Vec::new() });
    for (own, others) in [(one, other), (other, one)] {
        let steps: Vec<_> = others.iter().filter(|other| other.what == What::Tends).collect();
        for event in own {
            let kind = match event.what {
                What::Appends => {
                    let behind = steps.partition_point(|step| step.end < event.start);
                    let meets = steps.get(behind).is_some_and(|step| step.start < event.end);
                    usize::from(meets)
                }
                What::Looks => 2,
                What::Tends => 3,
            };
            kinds[kind].times.push(event.end - event.start);
        }
    }
    kinds.into()
}

/// Appends transactions of one to a hundred notifications.
struct Writer<'t> {
    tidings: &'t Tidings,
    facets: &'t [Facets],
    name: &'static str,
    transactions: usize,
}

impl<'t> Writer<'t> {
    const fn new(tidings: &'t Tidings, facets: &'t [Facets], name: &'static str) -> Self {
        Self { tidings, facets, name, transactions: 0 }
    }

    fn append(&mut self) -> usize {
        let Self { tidings, facets, name, transactions } = self;
        let many = *transactions * 37 % 100 + 1;
        let from = *transactions * 101 % (facets.len() - many);
        let transaction: TransactionId = format!("{name}-{transactions}").parse().unwrap();
        store::write(&*tidings.store, |txn| {
            let mut log = tidings.index.append(&*txn, tidings.environment)?;
            for facets in &facets[from..from + many] {
                log.add(facets.clone());
            }
            let (environment, created_at) = (tidings.environment, facets[from].created_at);
            let id = transaction.clone();
            log.finish(txn, AcceptedTrigger::bare(environment, created_at, id))
        })
        .unwrap();
        *transactions += 1;
        many
    }

    // Whether there was something to do.
    fn tend(&self) -> bool {
        let tended = self.tidings.index.tend(&*self.tidings.store, self.tidings.environment);
        tended.unwrap() == Tended::Part
    }
}
