//! Times within which a search looks, and the part of a segment that lies within them.

use std::ops::Range;

use crate::set::Set;
use crate::times::{TIMES_IN_ROW, TimeRange, Times};

/// Range of times, with both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: i64,
    pub(crate) to: i64,
}

/// Share of a row of times that is within a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlap {
    None,
    Some,
    All,
}

/// Range of places in a segment, without those whose times are outside a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlaceRange {
    pub(crate) range: Range<u32>,
    /// Ranges of places that are outside the window, in their order.
    outside: Vec<Range<u32>>,
}

/// The window of all times.
impl Default for Window {
    fn default() -> Self {
        Self { from: i64::MIN, to: i64::MAX }
    }
}

impl Window {
    pub(crate) fn overlap(&self, times: TimeRange) -> Overlap {
        if self.from > self.to || times.latest < self.from || times.earliest > self.to {
            Overlap::None
        } else if self.from <= times.earliest && times.latest <= self.to {
            Overlap::All
        } else {
            Overlap::Some
        }
    }

    /// The rows of `times` with some of `places` that have a time within the window, in groups,
    /// newest first. In a group, rows that have other times as well come behind the others. So a
    /// search that has found enough reads no further rows.
    pub(crate) fn groups(&self, times: &Times, places: &Range<u32>) -> Vec<Range<usize>> {
        let mut groups: Vec<Range<usize>> = Vec::new();
        let mut may_have_some = false;
        for row in rows(places).rev() {
            let overlap = self.overlap(times.row(row));
            let may_join = match overlap {
                Overlap::None => continue,
                Overlap::Some => may_have_some,
                Overlap::All => true,
            };
            may_have_some = overlap == Overlap::Some;
            match groups.last_mut().filter(|last| may_join && last.start == row + 1) {
                Some(last) => last.start = row,
                None => groups.push(row..row + 1),
            }
        }
        groups
    }

    /// The part of `places` that is in `rows` and within the window. `outside` reads a row, and
    /// returns the places in it whose times are outside the window.
    pub(crate) fn part<E>(
        &self,
        times: &Times,
        places: &Range<u32>,
        rows: Range<usize>,
        mut outside: impl FnMut(usize) -> Result<Vec<Range<usize>>, E>,
    ) -> Result<PlaceRange, E> {
        let place = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        let range = place(rows.start * TIMES_IN_ROW)..place(rows.end * TIMES_IN_ROW);
        let mut part = PlaceRange { range: common(&range, places), outside: Vec::new() };
        for row in rows.filter(|row| self.overlap(times.row(*row)) != Overlap::All) {
            let start = row * TIMES_IN_ROW;
            let end = start + TIMES_IN_ROW;
            for range in outside(row)? {
                let range = start + range.start..(start + range.end).min(end);
                part.leave_out(&(place(range.start)..place(range.end)));
            }
        }
        part.trim();
        Ok(part)
    }
}

impl PlaceRange {
    /// All of `places`.
    pub(crate) fn all(places: Range<u32>) -> Self {
        Self { range: places, outside: Vec::new() }
    }

    fn leave_out(&mut self, places: &Range<u32>) {
        let places = common(places, &self.range);
        match self.outside.last_mut() {
            _ if places.is_empty() => {}
            Some(last) if last.end == places.start => last.end = places.end,
            Some(_) | None => self.outside.push(places),
        }
    }

    // Of times that are in order, no places are left out then.
    fn trim(&mut self) {
        if let Some(last) = self.outside.pop_if(|last| last.end == self.range.end) {
            self.range.end = last.start;
        }
        if self.outside.first().is_some_and(|first| first.start == self.range.start) {
            self.range.start = self.outside.remove(0).end;
        }
    }

    /// The places that are within the window, as ranges in their order.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u32>> {
        let starts = [self.range.start].into_iter().chain(self.outside.iter().map(|one| one.end));
        let ends = self.outside.iter().map(|one| one.start).chain([self.range.end]);
        starts.zip(ends).map(|(start, end)| start..end)
    }

    /// The places in the range that are outside the window. Returns `None` if there are none.
    pub(crate) fn without(&self) -> Option<Set> {
        if self.outside.is_empty() {
            return None;
        }
        let mut set = Set::roomy();
        let places = self.outside.iter().cloned().flatten();
        places.filter_map(|place| u16::try_from(place).ok()).for_each(|place| set.insert(place));
        Some(set)
    }
}

// The rows that have some of `places`.
fn rows(places: &Range<u32>) -> Range<usize> {
    let place = |place: u32| usize::try_from(place).unwrap_or_default();
    place(places.start) / TIMES_IN_ROW..place(places.end).div_ceil(TIMES_IN_ROW)
}

fn common(one: &Range<u32>, other: &Range<u32>) -> Range<u32> {
    one.start.max(other.start)..one.end.min(other.end)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;
    use crate::times::tests::some_times;
    use crate::times::{outside, outside_in_row, write_row};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_parts_of_a_window_are_the_places_with_such_times(
            times in some_times(5_000),
            // Bounds that are times themselves, or nearly.
            bounds in any::<[(Index, i8); 2]>(),
            is_open in any::<[bool; 2]>(),
            first: Index,
            len in prop_oneof![1_usize..50, Just(5_000)],
        ) {
            let [from, to] = bounds.map(|(at, beside)| at.get(&times) + i64::from(beside) / 60);
            let from = if is_open[0] { i64::MIN } else { from };
            let window = Window { from, to: if is_open[1] { i64::MAX } else { to } };
            let first = first.index(times.len());
            let places = first..(first + len).min(times.len());
            let within = |place: &usize| (window.from..=window.to).contains(&times[*place]);
            let expected: Vec<usize> = places.clone().filter(within).rev().collect();
            let number = |place: usize| u32::try_from(place).unwrap();
            let places = number(places.start)..number(places.end);
            let ranges = Times::of(&times);
            let row = |row: usize| times.chunks(TIMES_IN_ROW).nth(row).unwrap();
            for is_sealed in [false, true] {
                let mut found = Vec::new();
                for rows in window.groups(&ranges, &places) {
                    let part = window.part(&ranges, &places, rows, |at| {
                        Ok::<_, Infallible>(if is_sealed {
                            outside_in_row(&write_row(row(at)), &window).unwrap()
                        } else {
                            outside(row(at), &window)
                        })
                    });
                    let part = part.unwrap();
                    let within: Vec<u32> = part.ranges().flatten().collect();
                    found.extend(within.iter().rev().map(|place| *place as usize));
                    let without: Vec<u32> =
                        part.without().iter().flat_map(|set| set.view().places()).map(u32::from).collect();
                    let all = [within, without].concat();
                    prop_assert_eq!(all.len(), part.range.len());
                    prop_assert!(all.iter().all(|place| part.range.contains(place)));
                }
                prop_assert_eq!(&found, &expected);
            }
        }

        /// A search of times in order needs no set of places, and at most two rows of times.
        #[test]
        fn times_in_order_have_one_part_that_is_wide(
            mut times in some_times(5_000),
            bounds in any::<[Index; 2]>(),
        ) {
            times.sort_unstable();
            let [one, other] = bounds.map(|at| *at.get(&times));
            let window = Window { from: one.min(other), to: one.max(other) };
            let ranges = Times::of(&times);
            let places = 0..u32::try_from(times.len()).unwrap();
            let groups = window.groups(&ranges, &places);
            prop_assert!(groups.len() <= 2, "{groups:?}");
            let mut reads = 0;
            for rows in groups {
                let part = window.part(&ranges, &places, rows, |row| {
                    reads += 1;
                    let row = times.chunks(TIMES_IN_ROW).nth(row).unwrap();
                    Ok::<_, Infallible>(outside_in_row(&write_row(row), &window).unwrap())
                });
                prop_assert_eq!(part.unwrap().without(), None);
            }
            prop_assert!(reads <= 2, "{reads} rows are read");
        }
    }
}
