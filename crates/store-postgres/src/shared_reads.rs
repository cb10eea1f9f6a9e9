//! Reads of values and first entries, with the news behind them, that several readers share.
//!
//! A reader on values in memory asks for the news before its result counts. Readers that come while others
//! ask share the next round trip: its news are those since the counts of the cache, which has been at the
//! counts of each of them before, and it is made after all of them have begun. Each reader compares the
//! news with what it has seen.

use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::HashMap;
use futures_util::future::try_join3;
use parking_lot::Mutex;
use store::Table;
use tokio_postgres::{Error, Row};

use crate::Shared;
use crate::cache::Value;
use crate::coalesce::Coalescer;
use crate::commit_news::CommitNews;
use crate::failure::Failure;
use crate::heads::{Counts, Head};
use crate::prefetched::values_of;
use crate::questions::{Question, answer, prepare};
use crate::rows::{Columns, Spans};
use crate::scan::Span;
use crate::schema;

/// Number of questions under way at most.
const UNDER_WAY: usize = 2;

/// Readers that ask, and those that wait to ask.
pub(crate) struct SharedReads(Coalescer<Gathered, Outcome>);

/// What readers ask for.
#[derive(Default)]
struct Gathered {
    keys: BTreeSet<(Table, Vec<u8>)>,
    /// Spans whose first entries are asked for, each with the number of its table.
    spans: Vec<(i16, Span)>,
}

impl Gathered {
    // Returns the place of the span.
    fn push(&mut self, span: (i16, Span)) -> Option<i32> {
        let place = i32::try_from(self.spans.len()).ok();
        self.spans.push(span);
        place
    }
}

type Outcome = Result<Arc<SharedRead>, Failure>;

/// The answer of the server to all readers that share a question.
pub(crate) struct SharedRead {
    /// Counts since which it was asked for news.
    pub(crate) since: Counts,
    pub(crate) counts: Vec<(Head, u64)>,
    values: HashMap<(Table, Vec<u8>), Value>,
    /// The rows of the spans that have an entry, by their places, until their readers take them.
    firsts: Mutex<HashMap<i32, Row>>,
}

impl SharedRead {
    /// The value under a key that was asked for.
    pub(crate) fn value(&self, table: Table, key: &[u8]) -> Value {
        self.values.get(&(table, key.to_vec())).cloned().flatten()
    }
}

impl Default for SharedReads {
    fn default() -> Self {
        Self(Coalescer::new(UNDER_WAY))
    }
}

impl SharedReads {
    /// Asks for the values under `keys`, for the first entry of a span, and for the news behind them. The
    /// cache follows the news. Returns the row of the entry, if there is one.
    pub(crate) fn ask(
        &self,
        shared: &Shared,
        keys: &[(Table, Vec<u8>)],
        span: Option<(i16, Span)>,
    ) -> Result<(Arc<SharedRead>, Option<Row>), Failure> {
        let mut place = None;
        let join = |all: &mut Gathered| {
            all.keys.extend(keys.iter().cloned());
            place = span.and_then(|span| all.push(span));
        };
        let read = self.share(join, |all| ask(shared, all))?;
        let row = place.and_then(|place| read.firsts.lock().remove(&place));
        Ok((read, row))
    }

    /// Calls `ask` with what all who wait have gathered, or waits for the answer to another caller.
    fn share(
        &self,
        join: impl FnOnce(&mut Gathered),
        ask: impl FnOnce(Gathered) -> Result<SharedRead, Failure>,
    ) -> Outcome {
        let join = |all: &mut Gathered| {
            join(all);
            true
        };
        let closed = || Err(Failure::closed());
        self.0.ask(join, |all| ask(all).map(Arc::new), closed()).unwrap_or_else(closed)
    }
}

fn ask(shared: &Shared, gathered: Gathered) -> Result<SharedRead, Failure> {
    let keys: Vec<_> = gathered.keys.into_iter().collect();
    let since = shared.cache.counts();
    let news = Question::for_news(&since);
    let columns = Columns::without_values(&shared.tables, &keys);
    let values =
        (!columns.is_empty()).then(|| Question::of(schema::GET_WANTED, columns.into_keys()));
    let spans = Spans::of(gathered.spans);
    let firsts = spans.map(|spans| Question::of(schema::FIRST_OF, spans.into_params()));
    let asked = shared.server.begin("read entries", move |client| async move {
        let (values, firsts) = (prepare(&client, values).await?, prepare(&client, firsts).await?);
        let news = prepare(&client, Some(news)).await?;
        // In this order: what is read is the same before and behind the news, unless the news are about it.
        try_join3(answer(&client, values), answer(&client, firsts), answer(&client, news)).await
    });
    let (_, (values, firsts, news)) = asked?;
    let news = CommitNews::read(&shared.tables, &news)?;
    shared.cache.follow(&since, &news)?;
    let values = values_of(&shared.tables, keys, &values)?;
    let values = values.map(|(table, key, value)| ((table, key), value)).collect();
    let firsts = firsts.into_iter().map(|row| Ok((row.try_get(3)?, row)));
    let firsts = firsts.collect::<Result<_, Error>>();
    let firsts = firsts.map_err(|error| Failure::of("read entries", error))?;
    Ok(SharedRead { since, counts: news.counts, values, firsts: Mutex::new(firsts) })
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::SystemTime;

    use super::*;
    use crate::heads::Era;

    fn key(number: usize) -> (Table, Vec<u8>) {
        (Table::Subscribers, number.to_be_bytes().to_vec())
    }

    // The answer that each key has itself as its value.
    fn answered(all: Gathered) -> SharedRead {
        let keys = all.keys.into_iter();
        let values = keys.map(|(table, key)| ((table, key.clone()), Some(key.into())));
        SharedRead {
            since: Counts::of(Era::first(SystemTime::UNIX_EPOCH)),
            counts: Vec::new(),
            values: values.collect(),
            firsts: Mutex::default(),
        }
    }

    fn wanted(key: (Table, Vec<u8>)) -> impl FnOnce(&mut Gathered) {
        |all| all.keys.extend([key])
    }

    #[test]
    fn each_reader_has_the_values_that_it_asked_for() {
        const READERS: usize = 16;
        const TIMES: usize = 400;
        let (reads, questions) = (SharedReads::default(), AtomicUsize::new(0));
        thread::scope(|scope| {
            for reader in 0..READERS {
                let (reads, questions) = (&reads, &questions);
                scope.spawn(move || {
                    for time in 0..TIMES {
                        let (table, key) = key(reader * TIMES + time);
                        let read = reads.share(wanted((table, key.clone())), |all| {
                            questions.fetch_add(1, Ordering::SeqCst);
                            thread::yield_now();
                            Ok(answered(all))
                        });
                        let value = read.ok().and_then(|read| read.value(table, &key));
                        assert_eq!(value.as_deref(), Some(&key[..]));
                    }
                });
            }
        });
        assert!(questions.into_inner() < READERS * TIMES, "no question was shared");
        assert_eq!(reads.0.under_way(), 0);
    }

    #[test]
    fn a_panic_of_who_asks_keeps_nobody_waiting() {
        let reads = SharedReads::default();
        for _ in 0..=UNDER_WAY {
            let asked = || reads.share(wanted(key(1)), |_| panic!("on purpose"));
            assert!(catch_unwind(AssertUnwindSafe(asked)).is_err());
        }
        assert!(reads.share(wanted(key(1)), |all| Ok(answered(all))).is_ok());
    }
}
