//! Questions for values, first entries and news that several readers ask together.
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
use crate::failure::Failure;
use crate::heads::{Counts, Head};
use crate::prefetched::values_of;
use crate::questions::{Question, answer, prepare};
use crate::rows::{Columns, Spans};
use crate::scan::Span;
use crate::schema;
use crate::together::Together;
use crate::told::Told;

/// Number of questions under way at most.
const UNDER_WAY: usize = 2;

/// Readers that ask, and those that wait to ask.
pub(crate) struct Looks(Together<Gathered, Outcome>);

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

type Outcome = Result<Arc<Look>, Failure>;

/// What the server has answered.
pub(crate) struct Look {
    /// Counts since which it was asked for news.
    pub(crate) since: Counts,
    pub(crate) counts: Vec<(Head, u64)>,
    values: HashMap<(Table, Vec<u8>), Value>,
    /// The rows of the spans that have an entry, by their places, until their readers take them.
    firsts: Mutex<HashMap<i32, Row>>,
}

impl Look {
    /// The value under a key that was asked for.
    pub(crate) fn value(&self, table: Table, key: &[u8]) -> Value {
        self.values.get(&(table, key.to_vec())).cloned().flatten()
    }
}

impl Default for Looks {
    fn default() -> Self {
        Self(Together::new(UNDER_WAY))
    }
}

impl Looks {
    /// Asks for the values under `keys`, for the first entry of a span, and for the news behind them. The
    /// cache follows the news. Returns the row of the entry, if there is one.
    pub(crate) fn ask(
        &self,
        shared: &Shared,
        keys: &[(Table, Vec<u8>)],
        span: Option<(i16, Span)>,
    ) -> Result<(Arc<Look>, Option<Row>), Failure> {
        let mut place = None;
        let join = |all: &mut Gathered| {
            all.keys.extend(keys.iter().cloned());
            place = span.and_then(|span| all.push(span));
        };
        let look = self.together(join, |all| ask(shared, all))?;
        let row = place.and_then(|place| look.firsts.lock().remove(&place));
        Ok((look, row))
    }

    /// Calls `ask` with what all who wait have gathered, or waits for the answer to another caller.
    fn together(
        &self,
        join: impl FnOnce(&mut Gathered),
        ask: impl FnOnce(Gathered) -> Result<Look, Failure>,
    ) -> Outcome {
        let join = |all: &mut Gathered| {
            join(all);
            true
        };
        let closed = || Err(Failure::closed());
        self.0.ask(join, |all| ask(all).map(Arc::new), closed()).unwrap_or_else(closed)
    }
}

fn ask(shared: &Shared, gathered: Gathered) -> Result<Look, Failure> {
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
    let told = Told::read(&shared.tables, &news)?;
    shared.cache.follow(&since, &told)?;
    let values = values_of(&shared.tables, keys, &values)?;
    let values = values.map(|(table, key, value)| ((table, key), value)).collect();
    let firsts = firsts.into_iter().map(|row| Ok((row.try_get(3)?, row)));
    let firsts = firsts.collect::<Result<_, Error>>();
    let firsts = firsts.map_err(|error| Failure::of("read entries", error))?;
    Ok(Look { since, counts: told.counts, values, firsts: Mutex::new(firsts) })
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
    fn answered(all: Gathered) -> Look {
        let keys = all.keys.into_iter();
        let values = keys.map(|(table, key)| ((table, key.clone()), Some(key.into())));
        Look {
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
        let (looks, questions) = (Looks::default(), AtomicUsize::new(0));
        thread::scope(|scope| {
            for reader in 0..READERS {
                let (looks, questions) = (&looks, &questions);
                scope.spawn(move || {
                    for time in 0..TIMES {
                        let (table, key) = key(reader * TIMES + time);
                        let look = looks.together(wanted((table, key.clone())), |all| {
                            questions.fetch_add(1, Ordering::SeqCst);
                            thread::yield_now();
                            Ok(answered(all))
                        });
                        let value = look.ok().and_then(|look| look.value(table, &key));
                        assert_eq!(value.as_deref(), Some(&key[..]));
                    }
                });
            }
        });
        assert!(questions.into_inner() < READERS * TIMES, "no question was shared");
        assert_eq!(looks.0.under_way(), 0);
    }

    #[test]
    fn a_panic_of_who_asks_keeps_nobody_waiting() {
        let looks = Looks::default();
        for _ in 0..=UNDER_WAY {
            let asked = || looks.together(wanted(key(1)), |_| panic!("on purpose"));
            assert!(catch_unwind(AssertUnwindSafe(asked)).is_err());
        }
        assert!(looks.together(wanted(key(1)), |all| Ok(answered(all))).is_ok());
    }
}
