//! Rows of the tables: shapes of calls, and the number of callers.

use bench_data::Calls;

use crate::write::system::Call;

/// A row of the tables.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Events of a call, and recipients of an event.
    pub(crate) events: usize,
    pub(crate) recipients: usize,
    /// Callers at the same time.
    pub(crate) callers: usize,
    /// Calls of a caller in a turn.
    pub(crate) calls: usize,
    /// `true` if each turn starts with nothing in memory.
    pub(crate) is_cold: bool,
}

impl Row {
    pub(crate) const FIRST: Self =
        Self { name: "1 x 100", events: 1, recipients: 100, callers: 1, calls: 40, is_cold: false };

    /// Number of notifications of a call.
    pub(crate) const fn notifications(&self) -> u64 {
        (self.events * self.recipients) as u64
    }

    /// Returns the next call.
    pub(crate) fn call(&self, calls: &mut Calls) -> Call {
        (0..self.events).map(|_| calls.trigger(self.recipients)).collect()
    }
}

/// All rows.
pub(crate) fn rows() -> Vec<Row> {
    let lone = Row { name: "1 x 1", recipients: 1, calls: 200, ..Row::FIRST };
    vec![
        Row::FIRST,
        Row { name: "10 x 100", events: 10, calls: 5, ..Row::FIRST },
        Row { name: "1 x 100, 2 callers", callers: 2, calls: 20, ..Row::FIRST },
        Row { ..lone },
        Row { name: "1 x 1, 2 callers", callers: 2, calls: 100, ..lone },
        Row { name: "1 x 1, 64 callers", callers: 64, calls: 6, ..lone },
        // Closing takes the log away, so this one is the last.
        Row { name: "1 x 100, cold", calls: 10, is_cold: true, ..Row::FIRST },
    ]
}
