//! Changes as the parameters of statements.

use store::Table;
use store::overlay::Changes;
use tokio_postgres::types::ToSql;

use crate::Params;
use crate::failure::Failure;
use crate::heads::{Counts, Head, by_head};
use crate::keys;
use crate::scan::Span;
use crate::schema::StoredKey;
use crate::tables::Tables;

/// What a commit notes for other processes: heads, their numbers of commits, and their keys.
pub(crate) struct Note {
    pub(crate) heads: Vec<i16>,
    pub(crate) numbers: Vec<i64>,
    pub(crate) keys: Vec<Option<Vec<u8>>>,
}

impl Note {
    pub(crate) fn of(tables: &Tables, counts: &Counts, changes: &Changes) -> Result<Self, Failure> {
        let mut note = Self { heads: Vec::new(), numbers: Vec::new(), keys: Vec::new() };
        for (head, changes) in by_head(changes) {
            note.heads.push(head.number());
            note.numbers.push(counts.next(head)?.cast_signed());
            note.keys.push(keys::encode(tables, &changes));
        }
        Ok(note)
    }

    /// The note of a commit of one head without changes.
    pub(crate) fn of_nothing(head: Head, number: u64) -> Self {
        let (heads, numbers) = (vec![head.number()], vec![number.cast_signed()]);
        Self { heads, numbers, keys: vec![Some(Vec::new())] }
    }

    /// Returns `true` if old commits are removed behind this one, of which `kept` of each head stay.
    pub(crate) fn is_followed_by_pruning(&self, kept: i64) -> bool {
        self.numbers.iter().any(|number| number % (kept / 4) == 0)
    }
}

/// Changes as the parameters of statements.
#[derive(Default)]
pub(crate) struct Rows {
    /// Entries whose keys are likely to be new.
    pub(crate) added: Columns,
    pub(crate) puts: Columns,
    pub(crate) deletes: Columns,
}

#[derive(Default)]
pub(crate) struct Columns<B = Vec<u8>> {
    tables: Vec<i16>,
    heads: Vec<B>,
    hashes: Vec<B>,
    rests: Vec<B>,
    values: Vec<B>,
}

/// Spans as the parameters of a statement. Each has its place.
#[derive(Default)]
pub(crate) struct Spans {
    places: Vec<i32>,
    tables: Vec<i16>,
    starts: [Vec<Vec<u8>>; 2],
    ends: [Vec<Vec<u8>>; 2],
}

impl Rows {
    /// The rows of `changes`. `is_new` says which keys are taken for new.
    pub(crate) fn of(
        tables: &Tables,
        changes: &Changes,
        is_new: impl Fn(Table, &[u8]) -> bool,
    ) -> Self {
        let mut rows = Self::default();
        for (table, key, value) in changes.iter() {
            let columns = match value {
                Some(_) if is_new(table, key) => &mut rows.added,
                Some(_) => &mut rows.puts,
                None => &mut rows.deletes,
            };
            columns.push(tables.number(table), key);
            columns.values.extend(value.map(<[u8]>::to_vec));
        }
        rows
    }

    /// Number of bytes of all keys and values.
    pub(crate) fn size(&self) -> usize {
        [&self.added, &self.puts, &self.deletes].into_iter().map(Columns::size).sum()
    }
}

impl Columns {
    /// Keys without values.
    pub(crate) fn without_values(tables: &Tables, keys: &[(Table, Vec<u8>)]) -> Self {
        let mut columns = Self::default();
        for (table, key) in keys {
            columns.push(tables.number(*table), key);
        }
        columns
    }

    fn push(&mut self, table: i16, key: &[u8]) {
        let key = StoredKey::of(key);
        self.tables.push(table);
        self.heads.push(key.head);
        self.hashes.push(key.hash);
        self.rests.push(key.rest);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    fn size(&self) -> usize {
        [&self.heads, &self.rests, &self.values].into_iter().flatten().map(Vec::len).sum()
    }

    pub(crate) fn into_put(self) -> Params {
        let Self { tables, heads, hashes, rests, values } = self;
        vec![Box::new(tables), Box::new(heads), Box::new(hashes), Box::new(rests), Box::new(values)]
    }

    pub(crate) fn into_keys(self) -> Params {
        let Self { tables, heads, hashes, .. } = self;
        vec![Box::new(tables), Box::new(heads), Box::new(hashes)]
    }
}

impl<'c> Columns<&'c [u8]> {
    /// The rows of all `columns`, and for each row the number that came with its columns.
    pub(crate) fn all(columns: impl Iterator<Item = (i16, &'c Columns)>) -> (Self, Vec<i16>) {
        let (mut all, mut numbers) = (Self::default(), Vec::new());
        for (number, Columns { tables, heads, hashes, rests, values }) in columns {
            numbers.extend(tables.iter().map(|_| number));
            all.tables.extend(tables);
            all.heads.extend(heads.iter().map(Vec::as_slice));
            all.hashes.extend(hashes.iter().map(Vec::as_slice));
            all.rests.extend(rests.iter().map(Vec::as_slice));
            all.values.extend(values.iter().map(Vec::as_slice));
        }
        (all, numbers)
    }
}

impl<B: ToSql + Sync> Columns<B> {
    pub(crate) fn of_put(&self) -> [&(dyn ToSql + Sync); 5] {
        [&self.tables, &self.heads, &self.hashes, &self.rests, &self.values]
    }

    pub(crate) fn of_keys(&self) -> [&(dyn ToSql + Sync); 3] {
        [&self.tables, &self.heads, &self.hashes]
    }
}

impl Spans {
    /// Spans that have an end, each with the number of its table. Returns `None` if there is none.
    pub(crate) fn of(all: Vec<(i16, Span)>) -> Option<Self> {
        let mut spans = Self::default();
        for (place, (table, span)) in (0..).zip(all) {
            let Some(end) = span.end else { continue };
            let (start, end) = (StoredKey::of(&span.start), StoredKey::of(&end));
            spans.places.push(place);
            spans.tables.push(table);
            let [heads, rests] = &mut spans.starts;
            heads.push(start.head);
            rests.push(start.rest);
            let [heads, rests] = &mut spans.ends;
            heads.push(end.head);
            rests.push(end.rest);
        }
        (!spans.places.is_empty()).then_some(spans)
    }

    pub(crate) fn into_params(self) -> Params {
        let ([start, start_rest], [end, end_rest]) = (self.starts, self.ends);
        vec![
            Box::new(self.places),
            Box::new(self.tables),
            Box::new(start),
            Box::new(start_rest),
            Box::new(end),
            Box::new(end_rest),
        ]
    }
}
