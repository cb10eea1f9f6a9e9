//! Tidings' index, on one of its stores.

use std::sync::Arc;

use activity::{ActivityIndex, Facets, Filter};
use bench_data::{Shape, Triggered};
use domain::ids::EnvironmentId;
use domain::notification::Ordinal;
use domain::trigger::AcceptedTrigger;
use store::Store;
use store::memory::MemoryStore;

use crate::list::system::System;

/// An index, its store, and what is asked.
pub(crate) struct Tidings {
    pub(crate) index: ActivityIndex,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) environment: EnvironmentId,
    pub(crate) questions: Vec<Question>,
}

/// A shape in its terms.
#[derive(Clone)]
pub(crate) struct Question {
    filter: Filter,
    skip: u64,
    limit: usize,
}

impl Tidings {
    pub(crate) fn new(store: Arc<dyn Store>, environment: EnvironmentId, shapes: &[Shape]) -> Self {
        let questions = shapes.iter().map(question).collect();
        Self { index: ActivityIndex::default(), store, environment, questions }
    }

    /// Takes in what was triggered, in one transaction.
    pub(crate) fn append(&self, triggered: &[Triggered]) {
        store::write(&*self.store, |txn| {
            for one in triggered {
                let mut log = self.index.append(&*txn, self.environment)?;
                one.notifications.iter().for_each(|one| log.add(Facets::from(one)));
                let id = one.transaction_id.clone();
                log.finish(txn, AcceptedTrigger::bare(self.environment, one.created_at, id))?;
            }
            Ok::<_, store::Error>(())
        })
        .unwrap();
        self.index.tend(&*self.store, self.environment).unwrap();
    }

    /// Does what is left to do.
    pub(crate) fn settle(&self) {
        self.index.tend_all(&*self.store, self.environment).unwrap();
    }

    /// Leaves the store to whoever else has it.
    pub(crate) fn leave(&mut self) {
        self.store = Arc::new(MemoryStore::default());
        self.index = ActivityIndex::default();
    }

    /// The same with nothing in memory.
    pub(crate) fn anew(&self) -> Self {
        let index = ActivityIndex::default();
        let (store, questions) = (Arc::clone(&self.store), self.questions.clone());
        Self { index, store, environment: self.environment, questions }
    }

    /// What is searched for, as the index says it.
    pub(crate) fn ordinals(&self, shape: usize) -> Vec<Ordinal> {
        let Question { filter, skip, limit } = &self.questions[shape];
        let find = |snapshot: &dyn store::Snapshot| {
            self.index.find(snapshot, self.environment, filter, *skip, *limit)
        };
        store::read(&*self.store, find).unwrap()
    }
}

impl System for Tidings {
    fn find(&mut self, shape: usize) -> Vec<i64> {
        let ordinals = self.ordinals(shape);
        ordinals.into_iter().map(|one| i64::try_from(one.get()).unwrap()).collect()
    }

    fn run(&mut self, shape: usize) {
        std::hint::black_box(self.ordinals(shape));
    }
}

/// The same index, which counts what matches.
pub(crate) struct Counts<'t>(pub(crate) &'t Tidings);

impl System for Counts<'_> {
    fn find(&mut self, shape: usize) -> Vec<i64> {
        let Tidings { index, store, environment, questions } = self.0;
        let filter = &questions[shape].filter;
        let count = |snapshot: &dyn store::Snapshot| index.count(snapshot, *environment, filter);
        vec![i64::try_from(store::read(&**store, count).unwrap()).unwrap()]
    }
}

fn question(shape: &Shape) -> Question {
    Question { filter: shape.filter(), skip: shape.skip(), limit: shape.limit as usize + 1 }
}
