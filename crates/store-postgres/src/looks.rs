//! Questions for values and for news that several readers ask together.
//!
//! A reader on values in memory asks for the news before its result counts. Readers that come while others
//! ask share the next question: its news are those since the counts of the cache, which has been at the counts
//! of each of them before, and it is asked after all of them have begun. Each reader compares the
//! news with what it has seen.

use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::HashMap;
use futures_util::future::try_join;
use store::Table;

use crate::Shared;
use crate::cache::Value;
use crate::failure::Failure;
use crate::heads::{Counts, Head};
use crate::prefetched::values_of;
use crate::questions::{Question, answer, prepare};
use crate::rows::Columns;
use crate::schema;
use crate::together::Together;
use crate::told::Told;

/// Number of questions under way at most.
const UNDER_WAY: usize = 2;

/// Readers that ask, and those that wait to ask.
pub(crate) struct Looks(Together<Keys, Outcome>);

type Keys = BTreeSet<(Table, Vec<u8>)>;

type Outcome = Result<Arc<Look>, Failure>;

/// What the server has answered.
pub(crate) struct Look {
    /// Counts since which it was asked for news.
    pub(crate) since: Counts,
    pub(crate) counts: Vec<(Head, u64)>,
    values: HashMap<(Table, Vec<u8>), Value>,
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
    /// Asks for the values under `keys`, and for the news behind them. The cache follows the news.
    pub(crate) fn ask(&self, shared: &Shared, keys: &[(Table, Vec<u8>)]) -> Outcome {
        self.together(keys, |keys| ask(shared, keys.into_iter().collect()))
    }

    /// Calls `ask` with the keys of all who wait, or waits for the answer to another caller.
    fn together(
        &self,
        keys: &[(Table, Vec<u8>)],
        ask: impl FnOnce(Keys) -> Result<Look, Failure>,
    ) -> Outcome {
        let join = |all: &mut Keys| {
            all.extend(keys.iter().cloned());
            true
        };
        let closed = || Err(Failure::closed());
        self.0.ask(join, |keys| ask(keys).map(Arc::new), closed()).unwrap_or_else(closed)
    }
}

fn ask(shared: &Shared, keys: Vec<(Table, Vec<u8>)>) -> Result<Look, Failure> {
    let since = shared.cache.counts();
    let news = Question::for_news(&since);
    let columns = Columns::without_values(&shared.tables, &keys);
    let values =
        (!columns.is_empty()).then(|| Question::of(schema::GET_WANTED, columns.into_keys()));
    let asked = shared.server.begin("read entries", move |client| async move {
        let values = prepare(&client, values).await?;
        let news = prepare(&client, Some(news)).await?;
        // In this order: the values are the same before and behind the news, unless the news are about them.
        try_join(answer(&client, values), answer(&client, news)).await
    });
    let (_, (values, news)) = asked?;
    let told = Told::read(&shared.tables, &news)?;
    shared.cache.follow(&since, &told)?;
    let values = values_of(&shared.tables, keys, &values)?;
    let values = values.map(|(table, key, value)| ((table, key), value)).collect();
    Ok(Look { since, counts: told.counts, values })
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
    fn answered(keys: Keys) -> Look {
        let values = keys.into_iter().map(|(table, key)| ((table, key.clone()), Some(key.into())));
        Look {
            since: Counts::of(Era::first(SystemTime::UNIX_EPOCH)),
            counts: Vec::new(),
            values: values.collect(),
        }
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
                        let look = looks.together(&[(table, key.clone())], |keys| {
                            questions.fetch_add(1, Ordering::SeqCst);
                            thread::yield_now();
                            Ok(answered(keys))
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
            let asked = || looks.together(&[key(1)], |_| panic!("on purpose"));
            assert!(catch_unwind(AssertUnwindSafe(asked)).is_err());
        }
        assert!(looks.together(&[key(1)], |keys| Ok(answered(keys))).is_ok());
    }
}
