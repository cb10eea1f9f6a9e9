//! What the answers have to be, found by looking at every notification.

use std::collections::VecDeque;

use bench_data::Shape;
use domain::notification::Notification;

/// What a shape finds.
pub(crate) struct Expected {
    pub(crate) shape: Shape,
    /// How many match.
    pub(crate) matches: u64,
    // The newest of them, newest first, down to the end of the page and one more.
    newest: VecDeque<u64>,
}

impl Expected {
    pub(crate) fn nothing(shape: Shape) -> Self {
        Self { shape, matches: 0, newest: VecDeque::new() }
    }

    /// Looks at the next notification.
    pub(crate) fn look_at(&mut self, notification: &Notification) {
        if self.shape.matches(notification) {
            self.matches += 1;
            self.newest.push_front(notification.id.ordinal().get());
            self.newest.truncate(self.skip() + self.shape.limit as usize + 1);
        }
    }

    /// The ordinals on the page, and one more.
    pub(crate) fn page(&self) -> Vec<u64> {
        self.newest.iter().skip(self.skip()).copied().collect()
    }

    fn skip(&self) -> usize {
        usize::try_from(self.shape.skip()).unwrap()
    }
}
