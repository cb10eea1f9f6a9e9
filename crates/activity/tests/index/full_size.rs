//! Segments of the size that they have outside of tests.

use std::cell::Cell;
use std::collections::BTreeSet;

use domain::notification::Ordinal;
use domain::time::Timestamp;
use domain::trigger::AcceptedTrigger;
use domain::vocabulary::Severity;
use store::Store;
use store::memory::MemoryStore;
use tidings_activity::{ActivityIndex, Facets, Filter, Term};

use crate::sample::{
    CHANNELS, contexts, environment, subscriber, subscription, time, topic, transaction, workflow,
};
use testkit::dice::Dice;

/// Four segments, which are merged, and a half.
const NOTIFICATIONS: u64 = 276_000;

/// How long a set is a list, and from when on it is a bit for each place.
const THRESHOLD: u64 = 3_840;

#[test]
fn full_segments_find_what_a_scan_finds() {
    let store = MemoryStore::default();
    let index = ActivityIndex::default();
    let everything: Vec<Facets> = (0..NOTIFICATIONS).map(facets).collect();
    for (round, some) in (0_u16..).zip(everything.chunks(1_000)) {
        store::write(&store, |txn| {
            let mut log = index.append(&*txn, environment())?;
            for facets in some {
                log.add(facets.clone());
            }
            let id = transaction(u8::try_from(round % 9).unwrap());
            log.finish(txn, AcceptedTrigger::bare(environment(), time(0), id))
        })
        .unwrap();
        index.tend(&store, environment()).unwrap();
    }
    agrees(&store, &index, &everything);
    index.tend_all(&store, environment()).unwrap();
    agrees(&store, &ActivityIndex::default(), &everything);
    each_segment_asks_once_for_many_subscribers(&store, &index, &everything);
}

fn each_segment_asks_once_for_many_subscribers(
    store: &dyn Store,
    index: &ActivityIndex,
    everything: &[Facets],
) {
    let ids = || (0..1_000).map(|number| subscriber(number * 3));
    let terms: BTreeSet<Term> = ids().map(Term::subscriber).collect();
    let calls = Cell::new(0);
    let each = |visit: &mut dyn FnMut(_)| {
        calls.set(calls.get() + 1);
        ids().for_each(visit);
        Ok(())
    };
    let segments = NOTIFICATIONS.div_ceil(61_440);
    // The clock was wrong in two segments, so that each of them has several parts.
    let span = (Some(time_of(22_000)), Some(time_of(140_000)));
    for (after, before) in [(None, None), span, (span.0, None), (None, span.1)] {
        let matches = |facets: &&Facets| {
            after.is_none_or(|after| facets.created_at >= after)
                && before.is_none_or(|before| facets.created_at <= before)
                && facets.terms.iter().any(|term| terms.contains(term))
        };
        let expected = everything.iter().filter(matches).count() as u64;
        let filter = Filter::new(after, before, None);
        store::read(store, |snapshot| {
            let all = filter.among(&each);
            assert_eq!(index.count(snapshot, environment(), all)?, expected);
            assert!(calls.take() <= segments, "a segment has asked twice");
            index.find(snapshot, environment(), all, 0, 10)?;
            assert_eq!(calls.take(), 1);
            Ok::<_, store::Error>(())
        })
        .unwrap();
    }
}

// Among them are terms that one segment has just as often as fit a list, and once more.
fn facets(ordinal: u64) -> Facets {
    let mut dice = Dice::new(ordinal);
    let small = |number: u64| u16::try_from(number).unwrap();
    let mut terms = vec![
        Term::subscriber(subscriber(small(dice.roll(3_000)))),
        Term::severity(Severity::ALL[usize::try_from(dice.roll(2)).unwrap()]),
        Term::channel(CHANNELS[usize::try_from(dice.roll(3)).unwrap()]),
        Term::workflow(workflow(small(dice.roll(17)))),
        Term::contexts(&contexts(u16::from(ordinal >= 100_000))),
    ];
    // A list for a term of four segments is short for the one, and long for the other.
    terms.push(Term::subscription(&subscription(small(dice.roll(150)))));
    terms.push(Term::subscription(&subscription(1_000 + small(dice.roll(400)))));
    let within = ordinal % 61_440;
    for (number, count) in (0..).zip([THRESHOLD - 1, THRESHOLD, THRESHOLD + 1]) {
        if within % 16 == 5 && within / 16 < count {
            terms.push(Term::topic(&topic(number)));
        }
    }
    terms.sort_unstable();
    Facets { created_at: time_of(ordinal), terms }
}

// Seven at a time, and once in a while nothing for long. The clock is wrong once for long, and then
// for every third.
fn time_of(ordinal: u64) -> Timestamp {
    let is_wrong = (20_000..23_000).contains(&ordinal)
        || (90_000..99_000).contains(&ordinal) && ordinal.is_multiple_of(3);
    let wrong = if is_wrong { 1_100_000 } else { 0 };
    time(i64::try_from(ordinal / 7 * 10 + ordinal / 50_000 * 1_000_000 + wrong).unwrap())
}

/// What is asked for: times, and groups of terms.
struct Question(Option<Timestamp>, Option<Timestamp>, Vec<Vec<Term>>);

fn agrees(store: &dyn Store, index: &ActivityIndex, everything: &[Facets]) {
    for Question(after, before, groups) in questions() {
        let matches = |facets: &Facets| {
            after.is_none_or(|after| facets.created_at >= after)
                && before.is_none_or(|before| facets.created_at <= before)
                && groups.iter().all(|group| group.iter().any(|term| facets.terms.contains(term)))
        };
        let matching = (0_u64..).zip(everything).filter(|(_, facets)| matches(facets));
        let mut all: Vec<u64> = matching.map(|(ordinal, _)| ordinal).collect();
        all.reverse();
        let filter = groups.iter().fold(Filter::new(after, before, None), |filter, group| {
            filter.any_of(group.iter().copied())
        });
        store::read(store, |snapshot| {
            assert_eq!(index.count(snapshot, environment(), &filter)?, all.len() as u64);
            let pages = [0, 1, 50, all.len() / 2, all.len().saturating_sub(7), all.len()];
            for skip in BTreeSet::from(pages) {
                let found = index.find(snapshot, environment(), &filter, skip as u64, 11)?;
                let found: Vec<u64> = found.into_iter().map(Ordinal::get).collect();
                let page: Vec<u64> = all.iter().skip(skip).take(11).copied().collect();
                assert_eq!(found, page, "{groups:?} from {skip}");
            }
            Ok::<_, store::Error>(())
        })
        .unwrap();
    }
}

fn questions() -> Vec<Question> {
    let dense = vec![Term::severity(Severity::ALL[0])];
    let half = vec![Term::channel(CHANNELS[0]), Term::channel(CHANNELS[2])];
    let sparse = |number| vec![Term::subscriber(subscriber(number))];
    let many: Vec<Term> = (0..100).map(|number| Term::subscriber(subscriber(number * 7))).collect();
    let third = |number| vec![Term::topic(&topic(number))];
    let long = |number| vec![Term::subscription(&subscription(number))];
    let flows = || vec![Term::workflow(workflow(3)), Term::workflow(workflow(5))];
    let late = vec![Term::contexts(&contexts(1))];
    let (some, edge) = (Some(time_of(70_000)), Some(time_of(61_440)));
    vec![
        Question(None, None, vec![]),
        Question(None, None, vec![dense.clone()]),
        Question(some, None, vec![dense.clone(), half.clone()]),
        Question(None, some, vec![half.clone(), flows()]),
        Question(edge, some, vec![]),
        Question(edge, edge, vec![]),
        Question(None, None, vec![sparse(17)]),
        Question(None, edge, vec![sparse(1_700), dense.clone()]),
        Question(None, None, vec![many.clone(), dense.clone(), half.clone()]),
        Question(edge, None, vec![many, third(0)]),
        Question(None, None, vec![third(0)]),
        Question(None, None, vec![third(1), dense]),
        Question(None, some, vec![third(2), half]),
        Question(None, None, vec![third(1).into_iter().chain(third(2)).collect()]),
        Question(None, None, vec![late, flows()]),
        Question(None, None, vec![sparse(2_999), sparse(2_998)]),
        Question(None, None, vec![long(3), sparse(17)]),
        Question(None, some, vec![long(4), sparse(18), flows()]),
        Question(edge, None, vec![long(5), long(1_005)]),
        Question(None, some, vec![long(6)]),
        Question(None, None, vec![(0..60).flat_map(|number| long(1_000 + number)).collect()]),
        Question(some, None, vec![long(7), long(8)]),
    ]
}
