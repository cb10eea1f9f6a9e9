//! Times of creation of the notifications of a segment, as the clock showed them. A clock may go
//! back, so that the times of a segment have no order.

use std::ops::Range;

use crate::window::{Overlap, Window};

/// Number of times in a row.
pub(crate) const TIMES_IN_ROW: usize = 1_024;

/// The earliest and the latest of some times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeRange {
    pub(crate) earliest: i64,
    pub(crate) latest: i64,
}

/// The range of each row of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    rows: Vec<TimeRange>,
    len: usize,
}

impl TimeRange {
    /// The range of no times.
    pub(crate) const NONE: Self = Self { earliest: i64::MAX, latest: i64::MIN };

    fn with(self, other: Self) -> Self {
        Self { earliest: self.earliest.min(other.earliest), latest: self.latest.max(other.latest) }
    }
}

impl Times {
    /// The times of a segment.
    pub(crate) fn of(times: &[i64]) -> Self {
        let mut all = Self::default();
        for time in times {
            all.push(*time);
        }
        all
    }

    /// Takes in the time of another notification.
    pub(crate) fn push(&mut self, time: i64) {
        let range = TimeRange { earliest: time, latest: time };
        match self.rows.last_mut() {
            Some(row) if !self.len.is_multiple_of(TIMES_IN_ROW) => *row = row.with(range),
            Some(_) | None => self.rows.push(range),
        }
        self.len += 1;
    }

    /// The range of a row, or of no times.
    pub(crate) fn row(&self, row: usize) -> TimeRange {
        self.rows.get(row).copied().unwrap_or(TimeRange::NONE)
    }

    /// The range of the segment.
    pub(crate) fn all(&self) -> TimeRange {
        self.rows.iter().copied().fold(TimeRange::NONE, TimeRange::with)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let times = self.rows.iter().flat_map(|row| [row.earliest, row.latest]);
        times.flat_map(i64::to_be_bytes).collect()
    }

    /// The ranges of a segment of that size. Returns `None` if the bytes are no ranges.
    pub(crate) fn read(bytes: &[u8], segment_size: u32) -> Option<Self> {
        let len = usize::try_from(segment_size).ok()?;
        let (times, []) = bytes.as_chunks() else { return None };
        let (pairs, []) = times.as_chunks() else { return None };
        let row = |[earliest, latest]: &[[u8; 8]; 2]| TimeRange {
            earliest: i64::from_be_bytes(*earliest),
            latest: i64::from_be_bytes(*latest),
        };
        let rows: Vec<TimeRange> = pairs.iter().map(row).collect();
        let is_sound = rows.iter().all(|row| row.earliest <= row.latest);
        (is_sound && rows.len() == len.div_ceil(TIMES_IN_ROW)).then_some(Self { rows, len })
    }
}

// Marks a row whose times do not go back, in the byte of its width.
const IN_ORDER: u8 = 1 << 7;

/// The bytes of a row: its earliest time, and how much later each one is, in as few bytes as the
/// largest of them takes.
pub(crate) fn write_row(row: &[i64]) -> Vec<u8> {
    let TimeRange { earliest, latest } = Times::of(row).all();
    let later = |time: i64| time.abs_diff(earliest.min(time));
    let zeros = usize::try_from(later(latest).leading_zeros() / 8).unwrap_or_default();
    let mut bytes = earliest.to_be_bytes().to_vec();
    let order = if row.is_sorted() { IN_ORDER } else { 0 };
    bytes.push(u8::try_from(8 - zeros).unwrap_or(8) | order);
    for time in row {
        bytes.extend(later(*time).to_be_bytes().iter().skip(zeros));
    }
    bytes
}

/// A row of times in borrowed bytes.
#[derive(Clone, Copy, Debug)]
struct Row<'b> {
    earliest: i64,
    is_in_order: bool,
    width: usize,
    /// How much later than the earliest each time is.
    later: &'b [u8],
}

impl<'b> Row<'b> {
    // Returns `None` if the bytes are no row.
    fn read(bytes: &'b [u8]) -> Option<Self> {
        let (earliest, rest) = bytes.split_first_chunk()?;
        let (width, later) = rest.split_first()?;
        let is_in_order = width & IN_ORDER != 0;
        let width = usize::from(width & !IN_ORDER);
        let is_whole = width <= 8 && (width == 0 || later.len().is_multiple_of(width));
        let earliest = i64::from_be_bytes(*earliest);
        is_whole.then_some(Self { earliest, is_in_order, width, later })
    }

    // The times, as many as fit if all of them are the same.
    fn times(self) -> impl Iterator<Item = i64> {
        let same = if self.width == 0 { TIMES_IN_ROW } else { 0 };
        let later = self.later.chunks(self.width.max(1)).map(number);
        let later = later.chain(std::iter::repeat_n(0, same));
        later.map(move |later| self.earliest.saturating_add_unsigned(later))
    }

    // Number of times before `time`, if they are in order.
    fn before(self, time: i64) -> usize {
        if self.width == 0 {
            return if self.earliest < time { TIMES_IN_ROW } else { 0 };
        }
        let bound = u64::try_from(time.saturating_sub(self.earliest)).unwrap_or_default();
        let at = |place: usize| {
            let later = self.later.get(place * self.width..(place + 1) * self.width);
            later.map_or(u64::MAX, number)
        };
        let (mut low, mut high) = (0, self.later.len() / self.width);
        while low < high {
            let middle = low.midpoint(high);
            if at(middle) < bound {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The places of the row of `bytes` that are outside of `window`, as ranges in their order. Returns
/// `None` if the bytes are no row. The places of the last range may go on behind the row.
pub(crate) fn outside_in_row(bytes: &[u8], window: &Window) -> Option<Vec<Range<usize>>> {
    let row = Row::read(bytes)?;
    if !row.is_in_order {
        return Some(outside_of(row.times(), window));
    }
    let behind = window.to.checked_add(1).map_or(TIMES_IN_ROW, |behind| row.before(behind));
    Some(vec![0..row.before(window.from), behind..TIMES_IN_ROW])
}

/// The places of `times` that are outside of `window`, as ranges in their order.
pub(crate) fn outside(times: &[i64], window: &Window) -> Vec<Range<usize>> {
    if !times.is_sorted() {
        return outside_of(times.iter().copied(), window);
    }
    let before = times.partition_point(|time| *time < window.from);
    vec![0..before, times.partition_point(|time| *time <= window.to)..times.len()]
}

fn outside_of(times: impl Iterator<Item = i64>, window: &Window) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (place, time) in times.enumerate() {
        let range = TimeRange { earliest: time, latest: time };
        if window.overlap(range) == Overlap::All {
            continue;
        }
        match ranges.last_mut() {
            Some(last) if last.end == place => last.end += 1,
            Some(_) | None => ranges.push(place..place + 1),
        }
    }
    ranges
}

/// Adds the times of the row of `bytes` to `times`. Returns `None` if the bytes are no row.
pub(crate) fn read_row(bytes: &[u8], times: &mut Vec<i64>) -> Option<()> {
    times.extend(Row::read(bytes)?.times());
    Some(())
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Times of a clock that goes forward, stands still, or goes back.
    pub(crate) fn some_times(most: usize) -> impl Strategy<Value = Vec<i64>> {
        let step = prop_oneof![8 => 0_i64..3, 2 => 0_i64..100_000, 1 => -100_000_i64..100_000, 1 => 0_i64..1 << 40];
        proptest::collection::vec(step, 1..most).prop_map(|steps| {
            let times = steps.iter().scan(0, |sum: &mut i64, step| {
                *sum = sum.wrapping_add(*step);
                Some(*sum)
            });
            times.collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn times_come_back(times in some_times(3_000)) {
            let ranges = Times::of(&times);
            let size = u32::try_from(times.len()).unwrap();
            prop_assert_eq!(Times::read(&ranges.bytes(), size), Some(ranges.clone()));
            prop_assert_eq!(ranges.all().earliest, *times.iter().min().unwrap());
            prop_assert_eq!(ranges.all().latest, *times.iter().max().unwrap());
            let mut back = Vec::new();
            for row in times.chunks(TIMES_IN_ROW) {
                let room = back.len() + row.len();
                prop_assert_eq!(read_row(&write_row(row), &mut back), Some(()));
                back.truncate(room);
            }
            prop_assert_eq!(back, times);
        }

        #[test]
        fn any_bytes_are_times_or_none(bytes: Vec<u8>, from: i64, to: i64, size: u32) {
            let _ = outside_in_row(&bytes, &Window { from, to });
            let _ = (read_row(&bytes, &mut Vec::new()), Times::read(&bytes, size));
        }
    }
}
