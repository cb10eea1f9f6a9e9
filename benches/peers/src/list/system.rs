//! What is compared.

use std::hint::black_box;
use std::time::Duration;

use crate::list::facts::Transaction;
use crate::list::sql::{Dialect, Way};

/// Something that has the notifications and answers questions about them.
pub(crate) trait System {
    /// The ordinals on the page of the shape of that number, and one more.
    fn find(&mut self, shape: usize) -> Vec<i64>;

    /// The same, and nobody looks at it.
    fn run(&mut self, shape: usize) {
        black_box(self.find(shape));
    }
}

impl<S: System> System for &mut S {
    fn find(&mut self, shape: usize) -> Vec<i64> {
        S::find(self, shape)
    }

    fn run(&mut self, shape: usize) {
        S::run(self, shape);
    }
}

/// A database that takes in the same as Tidings, and has several ways to answer a question.
pub(crate) trait Peer {
    /// What it is called.
    fn name(&self) -> &'static str;

    /// What it understands.
    fn dialect(&self) -> Dialect;

    /// Takes in what was triggered, in one transaction.
    fn append(&mut self, triggered: &[Transaction]);

    /// Makes the indexes. Most rows are there before.
    fn index(&mut self);

    /// Makes lists for the very combinations of terms that are asked for, if it is to be tried.
    fn index_combinations(&mut self) -> bool;

    /// Puts everything in its place, and says how many bytes that is.
    fn settle(&mut self) -> u64;

    /// Opens it anew, and says how long that and the answer to a question takes.
    fn reopen(&self, way: &Way) -> Duration;

    /// What answers the questions of these statements, by their number.
    fn prepare<'s>(&'s mut self, ways: &[&Way]) -> Box<dyn System + 's>;
}
