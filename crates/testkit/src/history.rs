//! Histories of transactions, run on both stores and on a model that is obviously right.

use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::LazyLock;

use arbitrary::Arbitrary;
use store::memory::MemoryStore;
use store::redb::{AppliedBy, RedbStore};
use store::{Decision, Error, KeyRange, Order, Store, Table, Transaction};

use crate::disk::Disk;
use crate::effort::Effort;
use crate::model::Model;
use crate::paged::Paged;
use crate::postgres;
use crate::tables::dump;

/// Events of a store.
#[derive(Clone, Debug, Arbitrary)]
pub enum Step {
    /// A transaction.
    Write(Vec<Op>, End),
    /// It is closed, and opened again.
    Reopen,
    /// Its process is killed, and started again.
    Restart,
}

/// Actions of a transaction.
#[derive(Clone, Debug, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Op {
    Put(Place, Key, Value),
    Delete(Place, Key),
    Get(Place, Key),
    Scan { place: Place, range: (Edge, Edge), descending: bool, limit: u8 },
}

/// End of a transaction.
#[derive(Clone, Copy, Debug, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub enum End {
    Commit,
    Abort,
    Fail,
    // The bytes of the corpus mean the other three.
    #[arbitrary(skip)]
    Panic,
}

/// One of a few tables, so that operations meet.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub struct Place(u8);

/// One of a few keys.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub struct Key {
    length: u8,
    bytes: [u8; 3],
}

/// A value, which may be longer than a page of the file.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub struct Value {
    byte: u8,
    length: u16,
}

/// One end of a range.
#[derive(Clone, Copy, Debug, Arbitrary)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Edge {
    Included(Key),
    Excluded(Key),
    Unbounded,
}

/// The keys and values that a get or a scan has shown.
pub type Seen = Vec<(Vec<u8>, Vec<u8>)>;

/// A redb store of each kind, each on a disk of its own.
const KINDS: [Kind; 3] =
    [Kind::Plain, Kind::Logged(AppliedBy::Callers), Kind::Logged(AppliedBy::Thread)];

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Without a log.
    Plain,
    Logged(AppliedBy),
}

/// The file of an empty store that was closed.
static CREATED: LazyLock<Paged> = LazyLock::new(|| {
    let Opened { disk, store, .. } = Kind::Plain.on(Disk::new());
    drop(store);
    disk.pages().0
});

/// An open store.
struct Opened {
    kind: Kind,
    disk: Disk,
    store: RedbStore,
}

impl Kind {
    /// A store that is created, or in most runs of a fuzzer a copy of one that was.
    fn begin(self, effort: Effort) -> Opened {
        let is_created = effort.is_one_of(8);
        self.on(if is_created { Disk::new() } else { Disk::of_pages(CREATED.clone(), None) })
    }

    fn on(self, disk: Disk) -> Opened {
        let store = self.open(&disk);
        Opened { kind: self, disk, store }
    }

    fn open(self, disk: &Disk) -> RedbStore {
        match self {
            Kind::Plain => disk.open(),
            Kind::Logged(applied_by) => disk.open_logged(applied_by),
        }
    }
}

/// Runs `steps` on every store, and compares what each of them shows, and what the stores hold. A
/// fuzzer takes the memory store and one of the others, most often a copy of an empty one, and compares
/// what they hold at the end.
///
/// # Panics
///
/// If the results of the stores differ.
pub fn run(steps: &[Step], effort: Effort) {
    let (model, memory) = (Model::default(), MemoryStore::default());
    let mut redb: Vec<_> = effort.some_of(&KINDS, 1).map(|kind| kind.begin(effort)).collect();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Write(ops, end) => {
                let expected = write(&model, ops, *end);
                assert_eq!(write(&memory, ops, *end), expected, "memory shows something else");
                for Opened { kind, store, .. } in &redb {
                    let shown = write(store, ops, *end);
                    assert_eq!(shown, expected, "redb shows something else: {kind:?}");
                }
            }
            Step::Reopen => redb = redb.into_iter().map(Opened::reopened).collect(),
            Step::Restart => redb = redb.into_iter().map(Opened::restarted).collect(),
        }
        if effort != Effort::Full && at + 1 < steps.len() {
            continue;
        }
        let expected = dump(&model);
        assert_eq!(dump(&memory), expected, "memory holds something else");
        for Opened { kind, store, .. } in &redb {
            assert_eq!(dump(store), expected, "redb holds something else: {kind:?}");
        }
    }
}

/// Runs `steps` in a schema of a server, and compares it with the model after each step.
///
/// # Panics
///
/// If the results differ.
pub fn run_on_a_server(steps: &[Step], place: &postgres::Place) {
    let (model, mut store) = (Model::default(), place.open());
    for step in steps {
        match step {
            Step::Write(ops, end) => {
                assert_eq!(write(&store, ops, *end), write(&model, ops, *end), "in {step:?}");
            }
            Step::Reopen | Step::Restart => store = place.open(),
        }
        assert_eq!(dump(&store), dump(&model), "after {step:?}");
    }
}

impl Opened {
    fn reopened(self) -> Self {
        let Opened { kind, disk, store } = self;
        drop(store);
        assert_eq!(disk.log_bytes(), None, "a log is left: {kind:?}");
        kind.on(disk)
    }

    fn restarted(self) -> Self {
        self.kind.on(self.disk.after_kill())
    }
}

fn write(store: &dyn Store, ops: &[Op], end: End) -> Vec<Seen> {
    let mut seen = Vec::new();
    let body = |transaction: &mut dyn Transaction| {
        let run = ops.iter().map(|op| op.run(transaction));
        seen = run.collect::<store::Result<_>>()?;
        match end {
            End::Commit => Ok(Decision::Commit),
            End::Abort => Ok(Decision::Abort),
            End::Fail => Err(Error::Corrupt { table: "none", source: "on purpose".into() }),
            End::Panic => resume_unwind(Box::new("on purpose")),
        }
    };
    let result = catch_unwind(AssertUnwindSafe(|| store.write(&mut { body })));
    match (end, result) {
        (End::Commit | End::Abort, Ok(Ok(())))
        | (End::Fail, Ok(Err(Error::Corrupt { table: "none", .. })))
        | (End::Panic, Err(_)) => seen,
        (_, result) => panic!("a transaction that ends with {end:?} comes to {result:?}"),
    }
}

impl Op {
    /// Runs in `transaction`, and returns what it has seen.
    pub fn run(&self, transaction: &mut dyn Transaction) -> store::Result<Seen> {
        let mut seen = Seen::new();
        match *self {
            Op::Put(place, key, value) => {
                transaction.put(place.table(), &key.bytes(), &value.bytes())?;
            }
            Op::Delete(place, key) => transaction.delete(place.table(), &key.bytes())?,
            Op::Get(place, key) => {
                let key = key.bytes();
                let mut visit = |value: &[u8]| seen.push((key.clone(), value.to_vec()));
                let found = transaction.get(place.table(), &key, &mut visit)?;
                assert_eq!(found, seen.len() == 1, "a get says something else than it shows");
                let mut many = Vec::new();
                let mut visit = |value: Option<&[u8]>| many.push(value.map(<[u8]>::to_vec));
                transaction.get_many(place.table(), &[&key, &key], &mut visit)?;
                let one = seen.first().map(|(_, value)| value.clone());
                assert_eq!(many, [one.clone(), one], "a get of many shows something else");
            }
            Op::Scan { place, range, descending, limit } => {
                let order = if descending { Order::Descending } else { Order::Ascending };
                let mut visit = |key: &[u8], value: &[u8]| {
                    seen.push((key.to_vec(), value.to_vec()));
                    let is_over = seen.len() > usize::from(limit);
                    if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                transaction.scan(place.table(), &keys(range), order, None, &mut visit)?;
                let mut first = Seen::new();
                let mut visit = |key: &[u8], value: &[u8]| {
                    first.push((key.to_vec(), value.to_vec()));
                    ControlFlow::Continue(())
                };
                let limit = Some(usize::from(limit) + 1);
                transaction.scan(place.table(), &keys(range), order, limit, &mut visit)?;
                assert_eq!(first, seen, "a limited scan shows something else");
            }
        }
        Ok(seen)
    }
}

fn keys((start, end): (Edge, Edge)) -> KeyRange {
    (start.bound(), end.bound())
}

impl Place {
    fn table(self) -> Table {
        Table::ALL[usize::from(self.0) % 3]
    }
}

impl Key {
    fn bytes(self) -> Vec<u8> {
        let length = usize::from(self.length) % (self.bytes.len() + 1);
        let few = |byte: &u8| [0, 1, b'a', u8::MAX][usize::from(*byte) % 4];
        self.bytes[..length].iter().map(few).collect()
    }
}

impl Value {
    fn bytes(self) -> Vec<u8> {
        vec![self.byte; usize::from(self.length) % 5_000]
    }
}

impl Edge {
    fn bound(self) -> Bound<Vec<u8>> {
        match self {
            Edge::Included(key) => Bound::Included(key.bytes()),
            Edge::Excluded(key) => Bound::Excluded(key.bytes()),
            Edge::Unbounded => Bound::Unbounded,
        }
    }
}
