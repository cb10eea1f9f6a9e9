//! The activity index finds the notifications of an environment that match a filter, newest first.
//!
//! A notification has an [`Ordinal`], its place in the list, and
//! [`Facets`], the terms by which it is found. The facets of the newest notifications are in rows
//! of the store and in memory. Every 61,440 of them are sealed into a segment. A segment has for
//! each term the set of its places: a list, or a bit for each place.
//!
//! Several sealed segments are merged into a span, which has the places of rare terms in one list.
//!
//! A search goes through the segments, newest first, and stops when its page is full. Sets of
//! terms of which one is enough are united. Sets of which all are needed are intersected. Of a
//! span, a search looks at the places of rare terms only.
//!
//! | file        | subject |
//! |-------------|------------------|
//! | `facets`    | terms, and the terms of a notification |
//! | `row`       | the terms of several notifications in one value of the store |
//! | `filter`    | the filter of a search |
//! | `scoped_filter` | subscribers that are too many to be held |
//! | `head`      | the extent of the list, and of the index |
//! | `set`       | sets of places |
//! | `block`     | the sets of several terms in one value of the store |
//! | `blocks`    | blocks that are read again and again, in memory |
//! | `lockstep`  | several look-ups in a sorted list, together |
//! | `presence`  | the terms that a segment may have |
//! | `span`      | the rare terms of several segments together |
//! | `times`     | times of creation of the notifications of a segment |
//! | `window`    | the part of a segment that was created within some times |
//! | `open`      | a segment that is not sealed, in memory |
//! | `outcomes` | the part of a segment that has an outcome |
//! | `cache`     | the part of an index that is in memory |
//! | `walk`      | walking through the places that are in several sets |
//! | `search`    | finding and counting |
//! | `append`    | taking in the notifications of a trigger |
//! | `delete`    | deleting single notifications, and old ones |
//! | `deleted`   | deleted places |
//! | `seal`      | writing down a segment that is full |
//! | `merge`     | merging the rare terms of segments that are sealed |
//! | `upkeep`    | sealing, merging and clearing away, a little after each trigger |
//! | `rebuild`   | making the index anew from the notifications |
//! | `check`     | comparing it with them |
//!
//! The index is derived from the notifications, and changes in the transactions that change them.
//! The cache in memory follows the committed state, and is never ahead of it. A reader with an
//! older snapshot does not use the cache. What is in memory of an earlier era of the store is
//! forgotten, and what upkeep or a rebuild has begun in it does not go on.

mod append;
mod block;
mod blocks;
mod cache;
mod check;
mod delete;
mod deleted;
mod facets;
mod filter;
mod head;
mod lockstep;
mod merge;
mod open;
mod outcomes;
mod presence;
mod rebuild;
mod row;
mod scoped_filter;
mod seal;
mod search;
mod set;
mod span;
mod times;
mod upkeep;
mod walk;
mod window;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use domain::ids::EnvironmentId;
use domain::notification::Ordinal;
use domain::time::Timestamp;
use foldhash::HashMap;
use parking_lot::{ReentrantMutex, RwLock};
use store::{Error, Result, Snapshot, Table};

pub use append::Appender;
pub use check::{Disagreement, IndexCheck};
pub use delete::{Old, clear_runs, forget_if_gone};
pub use facets::{Facets, Term};
pub use filter::Filter;
pub use scoped_filter::{EachSubscriber, ScopedFilter};
pub use upkeep::Tended;

use blocks::Blocks;
use cache::Cache;
use head::Head;
use row::LastRow;
use search::Search;
use upkeep::Upkeep;

/// The activity index of every environment in a store.
#[derive(Debug)]
pub struct ActivityIndex {
    segment_size: u32,
    environments: RwLock<HashMap<EnvironmentId, Arc<Environment>>>,
    blocks: Blocks,
    last_row: Arc<LastRow>,
}

/// State of an environment in memory.
#[derive(Debug, Default)]
struct Environment {
    cache: RwLock<Cache>,
    upkeep: ReentrantMutex<RefCell<Upkeep>>,
    /// Number of triggers until the next look at what upkeep there is.
    rest: AtomicU32,
}

impl Default for ActivityIndex {
    fn default() -> Self {
        Self::with_segments_of(set::CAPACITY)
    }
}

impl ActivityIndex {
    /// An index that seals so many notifications into a segment, in environments that have none
    /// yet: 16 to 61,440, in steps of 16.
    pub fn with_segments_of(notifications: u32) -> Self {
        let rows = notifications.clamp(1, set::CAPACITY).div_ceil(facets::FACETS_IN_ROW);
        let segment_size = rows * facets::FACETS_IN_ROW;
        let (environments, blocks) = (RwLock::default(), Blocks::default());
        Self { segment_size, environments, blocks, last_row: Arc::default() }
    }

    /// The ordinals of the notifications that match `filter`, newest first: at most `limit`, but
    /// for the first `skip`. The snapshot has to be one of the committed state, and no transaction.
    pub fn find<'a>(
        &self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        filter: impl Into<ScopedFilter<'a>>,
        skip: u64,
        limit: usize,
    ) -> Result<Vec<Ordinal>> {
        let filter = filter.into();
        let found = self.search(snapshot, environment, |all| all.find(filter, skip, limit))?;
        Ok(found.unwrap_or_default())
    }

    /// Returns the number of notifications that match `filter`.
    pub fn count<'a>(
        &self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        filter: impl Into<ScopedFilter<'a>>,
    ) -> Result<u64> {
        let filter = filter.into();
        Ok(self.search(snapshot, environment, |all| all.count(filter))?.unwrap_or_default())
    }

    /// The notifications that were created before `time`, as of the snapshot, which has to be one of
    /// the committed state, and no transaction.
    pub fn created_before(
        &self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        time: Timestamp,
    ) -> Result<Old> {
        let found = self.search(snapshot, environment, |all| all.created_before(time))?;
        Ok(Old::new(found.unwrap_or_default()))
    }

    // Returns `None` if there are no notifications.
    fn search<T>(
        &self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        search: impl FnOnce(Search<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(head) = Head::find(snapshot, environment)? else { return Ok(None) };
        let known = self.environment(environment);
        known.catch_up(snapshot, environment, &head)?;
        let cache = known.cache.read();
        if cache.shows(&head) {
            let blocks = &self.blocks;
            return search(Search::new(snapshot, environment, head, cache, blocks)).map(Some);
        }
        // The cache is ahead of the snapshot, by a later transaction.
        drop(cache);
        let own = RwLock::new(Cache::load(snapshot, environment, &head)?);
        let search = search(Search::new(snapshot, environment, head, own.read(), &self.blocks));
        search.map(Some)
    }

    /// Drops what is in memory of an environment that was deleted.
    pub fn forget(&self, environment: EnvironmentId) {
        self.environments.write().remove(&environment);
    }

    fn environment(&self, id: EnvironmentId) -> Arc<Environment> {
        if let Some(known) = self.environments.read().get(&id) {
            return Arc::clone(known);
        }
        Arc::clone(self.environments.write().entry(id).or_default())
    }
}

impl Environment {
    // Reads the changes that were committed up to `head`.
    fn catch_up(
        &self,
        snapshot: &dyn Snapshot,
        environment: EnvironmentId,
        head: &Head,
    ) -> Result<()> {
        let is_there = || self.cache.read().shows(head);
        while !is_there() && !self.cache.write().follow(snapshot, environment, head)? {}
        Ok(())
    }
}

fn corrupt(table: Table, what: &'static str) -> Error {
    Error::Corrupt { table: table.name(), source: what.into() }
}
