//! Times of creation of the notifications of a segment. They give the first place from which on
//! notifications were created at a given time or later.

/// Number of times in a row.
pub(crate) const TIMES_IN_ROW: usize = 1_024;

/// The first time of each row of a segment, and its last time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    firsts: Box<[i64]>,
    last: i64,
}

impl Times {
    /// The times of a segment, which do not go back.
    pub(crate) fn of(times: &[i64]) -> Self {
        let firsts = times.chunks(TIMES_IN_ROW).filter_map(|row| row.first()).copied().collect();
        Self { firsts, last: times.last().copied().unwrap_or(i64::MIN) }
    }

    pub(crate) fn last(&self) -> i64 {
        self.last
    }

    /// The last row that has a time before `time`. Rows in front of that have only such times.
    pub(crate) fn row_before(&self, time: i64) -> Option<usize> {
        self.firsts.partition_point(|first| *first < time).checked_sub(1)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let all = self.firsts.iter().chain([&self.last]);
        all.flat_map(|time| time.to_be_bytes()).collect()
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (times, []) = bytes.as_chunks() else { return None };
        let (last, firsts) = times.split_last()?;
        let firsts: Box<[i64]> = firsts.iter().map(|time| i64::from_be_bytes(*time)).collect();
        let times = Self { firsts, last: i64::from_be_bytes(*last) };
        times.firsts.iter().chain([&times.last]).is_sorted().then_some(times)
    }
}

/// The bytes of a row: its first time, and how much later each one is, in as few bytes as the
/// last of them takes.
pub(crate) fn write_row(row: &[i64]) -> Vec<u8> {
    let first = row.first().copied().unwrap_or_default();
    let later = |time: i64| u64::try_from(time.saturating_sub(first)).unwrap_or_default();
    let longest = row.last().copied().map(later).unwrap_or_default();
    let zeros = usize::try_from(longest.leading_zeros() / 8).unwrap_or_default();
    let mut bytes = first.to_be_bytes().to_vec();
    bytes.push(u8::try_from(8 - zeros).unwrap_or(8));
    for time in row {
        bytes.extend(later(*time).to_be_bytes().iter().skip(zeros));
    }
    bytes
}

/// Number of times before `time` in the row of `bytes`. Returns `None` if the bytes are no row.
pub(crate) fn count_before(bytes: &[u8], time: i64) -> Option<usize> {
    let (first, rest) = bytes.split_first_chunk()?;
    let (width, later) = rest.split_first()?;
    let bound = time.saturating_sub(i64::from_be_bytes(*first));
    let width = usize::from(*width);
    if width == 0 {
        // All times of the row are the same.
        return Some(if bound > 0 { TIMES_IN_ROW } else { 0 });
    }
    let bound = u64::try_from(bound).unwrap_or_default();
    let (mut low, mut high) = (0, later.len() / width);
    while low < high {
        let middle = low.midpoint(high);
        let later = number(later.get(middle * width..(middle + 1) * width)?);
        if later < bound {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Some(low)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Adds the times of the row of `bytes` to `times`. Returns `None` if the bytes are no row.
pub(crate) fn read_row(bytes: &[u8], times: &mut Vec<i64>) -> Option<()> {
    let (first, rest) = bytes.split_first_chunk()?;
    let (width, later) = rest.split_first()?;
    let first = i64::from_be_bytes(*first);
    if *width == 0 {
        times.extend([first; TIMES_IN_ROW]);
        return Some(());
    }
    for later in later.chunks(usize::from(*width)) {
        times.push(first.checked_add_unsigned(number(later))?);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_time_is_counted(
            steps in proptest::collection::vec(prop_oneof![0_i64..3, 0_i64..100_000, 0_i64..1 << 40], 1..3_000),
            time in 0_i64..1 << 45,
            exact: prop::sample::Index,
        ) {
            let times: Vec<i64> = steps.iter().scan(0, |sum, step| { *sum += step; Some(*sum) }).collect();
            let heads = Times::of(&times);
            prop_assert_eq!(Times::read(&heads.bytes()), Some(heads.clone()));
            for time in [time, *exact.get(&times), 0, i64::MAX] {
                let count = heads.row_before(time).map_or(0, |row| {
                    let of_row: Vec<i64> = times.iter().copied().skip(row * TIMES_IN_ROW).take(TIMES_IN_ROW).collect();
                    let before = count_before(&write_row(&of_row), time).unwrap();
                    row * TIMES_IN_ROW + before.min(of_row.len())
                });
                prop_assert_eq!(count, times.partition_point(|other| *other < time));
            }
        }

        #[test]
        fn any_bytes_are_times_or_none(bytes: Vec<u8>, time: i64) {
            let _ = (count_before(&bytes, time), Times::read(&bytes));
        }
    }
}
