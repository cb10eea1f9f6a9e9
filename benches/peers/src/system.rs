//! What is compared.

use std::hint::black_box;
use std::time::Duration;

use crate::sql::Way;

/// Something that has the notifications and answers questions about them.
pub(crate) trait System {
    /// The ordinals on the page of the shape of that number, and one more.
    fn find(&mut self, shape: usize) -> Vec<i64>;

    /// The same, and nobody looks at it.
    fn run(&mut self, shape: usize) {
        black_box(self.find(shape));
    }
}

/// What a system costs, besides the time for a question.
#[derive(Clone, Default)]
pub(crate) struct Cost {
    pub(crate) system: &'static str,
    /// On disk or, where there is none, in memory: of everything, for each notification.
    pub(crate) bytes: f64,
    /// For each of the last notifications, in transactions of a thousand.
    pub(crate) insert: Duration,
    /// Until the first answer.
    pub(crate) open: Option<Duration>,
    /// In memory once every question has been answered, in bytes: the index, and pages of a file.
    pub(crate) memory: Option<(usize, usize)>,
}

/// A database that has several ways to answer a question.
pub(crate) trait Database {
    /// What answers the questions of these statements, by their number.
    fn prepare<'s>(&'s mut self, ways: &[&Way]) -> Box<dyn System + 's>;
}
