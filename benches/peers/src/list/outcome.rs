//! All measurements of one size, in the order in which they do not disturb each other.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redb::Database;
use store::redb::RedbStore;

use crate::allocated;
use crate::list::beside::{self, Kind, Reading};
use crate::list::compare;
use crate::list::load::{self, Loaded};
use crate::list::oracle::Expected;
use crate::list::pages::{self, Pages};
use crate::list::sql::{self, Way};
use crate::list::system::{Peer, System};
use crate::list::tidings::Counts;

/// What was found out about a size.
pub(crate) struct Outcome {
    pub(crate) size: u64,
    /// Tidings on redb and in memory, and its peers.
    pub(crate) systems: Vec<&'static str>,
    pub(crate) rows: Vec<Row>,
    /// Whole pages of SQLite and Tidings, if there are not too many notifications.
    pub(crate) pages: Vec<Pages>,
    pub(crate) costs: Vec<Cost>,
}

/// What was found out about a shape.
pub(crate) struct Row {
    pub(crate) shape: &'static str,
    pub(crate) matches: u64,
    /// By system.
    pub(crate) medians: Vec<Duration>,
    /// By peer.
    pub(crate) ways: Vec<String>,
    /// Counts of what matches: SQLite and Tidings on redb.
    pub(crate) counts: [Duration; 2],
    /// With an SQLite index for this very combination of terms.
    pub(crate) combination: Option<Duration>,
}

/// What a system costs besides the time for an answer.
pub(crate) struct Cost {
    /// Of everything, on disk or, where there is none, in memory, if that is counted.
    pub(crate) bytes: Option<u64>,
    /// For each notification, with all indexes in place.
    pub(crate) insert: Duration,
    /// Until it is open: until the first answer, for all but Tidings.
    pub(crate) open: Option<Duration>,
    /// Until the first answer from then on.
    pub(crate) first: Option<Duration>,
    /// In memory when every question has been answered, without pages of files, if that is counted.
    pub(crate) index_memory: Option<usize>,
}

/// What readers and writers notice of each other.
pub(crate) struct Concurrency {
    pub(crate) shapes: Vec<&'static str>,
    /// On redb and in memory: by shape, alone and beside a writer, and the writer's pace.
    pub(crate) readers: [(Vec<[Reading; 2]>, u64); 2],
    /// On redb and in memory.
    pub(crate) writers: [Vec<Kind>; 2],
}

/// Measures one size, with files in `folder`.
pub(crate) fn measure(size: u64, folder: &Path, peers: Vec<Box<dyn Peer>>) -> Outcome {
    let path = folder.join("tidings.redb");
    let mut loaded = load::load(size, &path, peers);
    let mut systems = vec!["redb", "memory"];
    systems.extend(loaded.peers.iter().map(|peer| peer.it.name()));
    let bytes: Vec<_> = loaded.peers.iter_mut().map(|peer| peer.it.settle()).collect();
    let ways = ways(&mut loaded);
    let mut rows = rows(&mut loaded, &systems, &ways);
    counts(&mut loaded, &mut rows);
    let pages = if size > pages::MOST {
        Vec::new()
    } else {
        pages::measure(&mut loaded, size, folder, &ways[0])
    };
    let peers = loaded.peers.iter().zip(bytes).zip(&ways);
    let peers = peers.map(|((peer, bytes), ways)| Cost {
        bytes: Some(bytes),
        insert: peer.each(),
        open: Some(peer.it.reopen(&ways[0])),
        first: None,
        index_memory: None,
    });
    let peers: Vec<_> = peers.collect();
    combinations(&mut loaded, &mut rows);
    let mut costs = vec![reopen(&mut loaded, &path), in_memory(&loaded)];
    costs.extend(peers);
    Outcome { size, systems, rows, pages, costs }
}

// The fastest way of each peer for each shape.
fn ways(loaded: &mut Loaded) -> Vec<Vec<Way>> {
    let (questions, expected) = (&loaded.questions, &loaded.expected);
    let of_peer = |peer: &mut Box<dyn Peer>| {
        let dialect = peer.dialect();
        let ways = questions.iter().map(|question| sql::ways(question, dialect)).collect();
        compare::fastest(&mut **peer, expected, ways, compare::check)
    };
    loaded.peers.iter_mut().map(|peer| of_peer(&mut peer.it)).collect()
}

fn rows(loaded: &mut Loaded, names: &[&'static str], ways: &[Vec<Way>]) -> Vec<Row> {
    let Loaded { redb, memory, peers, expected, .. } = loaded;
    let mut systems: Vec<Box<dyn System + '_>> =
        vec![Box::new(&mut redb.it), Box::new(&mut memory.it)];
    for (peer, ways) in peers.iter_mut().zip(ways) {
        systems.push(peer.it.prepare(&ways.iter().collect::<Vec<_>>()));
    }
    let mut systems: Vec<_> = names.iter().copied().zip(systems).collect();
    let medians = compare::medians(&mut systems, expected, compare::check);
    let of_shape = |(shape, (medians, expected)): (usize, (_, &Expected))| Row {
        shape: expected.shape.name,
        matches: expected.matches,
        medians,
        ways: ways.iter().map(|ways| ways[shape].name.clone()).collect(),
        counts: [Duration::ZERO; 2],
        combination: None,
    };
    medians.into_iter().zip(&*expected).enumerate().map(of_shape).collect()
}

// How long it takes to count everything that matches, in SQLite the fastest of all ways.
fn counts(loaded: &mut Loaded, rows: &mut [Row]) {
    let Loaded { redb, peers, expected, questions, .. } = loaded;
    let sqlite = &mut *peers[0].it;
    let ways = questions.iter().map(|question| sql::counts(question, sqlite.dialect())).collect();
    let ways = compare::fastest(sqlite, expected, ways, compare::check_count);
    let mut systems = [
        ("SQLite", sqlite.prepare(&ways.iter().collect::<Vec<_>>())),
        ("redb", Box::new(Counts(&redb.it)) as Box<dyn System + '_>),
    ];
    let medians = compare::medians(&mut systems, expected, compare::check_count);
    for (row, medians) in rows.iter_mut().zip(medians) {
        row.counts = [medians[0], medians[1]];
    }
}

// What an index for the very combination of terms would bring.
fn combinations(loaded: &mut Loaded, rows: &mut [Row]) {
    let Loaded { peers, expected, questions, .. } = loaded;
    for peer in peers {
        if !peer.it.index_combinations() {
            continue;
        }
        for ((row, expected), question) in rows.iter_mut().zip(&*expected).zip(&*questions) {
            row.combination = sql::made_for(question).map(|way| {
                let mut system = peer.it.prepare(&[&way]);
                compare::check(&mut *system, 0, expected, &way.name);
                compare::trial(&mut *system, Duration::MAX)
            });
        }
    }
}

// Opens the file anew, and leaves it open.
fn reopen(loaded: &mut Loaded, path: &Path) -> Cost {
    let redb = &mut loaded.redb.it;
    redb.leave();
    let transaction = Database::open(path).unwrap().begin_write().unwrap();
    let stats = transaction.stats().unwrap();
    let bytes = stats.allocated_pages() * stats.page_size() as u64;
    transaction.abort().unwrap();
    let start = Instant::now();
    redb.store = Arc::new(RedbStore::open(path).unwrap());
    let open = Some(start.elapsed());
    let start = Instant::now();
    redb.run(0);
    let first = Some(start.elapsed());
    let insert = loaded.redb.each();
    Cost { bytes: Some(bytes), insert, open, first, index_memory: None }
}

fn in_memory(loaded: &Loaded) -> Cost {
    let before = allocated();
    let mut anew = loaded.memory.it.anew();
    (0..loaded.questions.len()).for_each(|shape| anew.run(shape));
    let index_memory = allocated().zip(before).map(|(after, before)| after.saturating_sub(before));
    Cost {
        bytes: loaded.in_memory.map(|bytes| bytes as u64),
        insert: loaded.memory.each(),
        open: None,
        first: None,
        index_memory,
    }
}

/// Measures what readers and writers notice of each other.
pub(crate) fn concurrency(loaded: &Loaded) -> Concurrency {
    let facets = load::some_facets();
    let (redb, memory) = (&loaded.redb.it, &loaded.memory.it);
    let shapes = loaded.expected.iter().map(|expected| expected.shape.name).collect();
    Concurrency {
        shapes,
        readers: [redb, memory].map(|tidings| beside::readers(tidings, &facets)),
        writers: [redb, memory].map(|tidings| beside::writers(tidings, &facets)),
    }
}
