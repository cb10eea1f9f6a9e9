//! Finding the records of a log that the file does not have.
//!
//! A record is written when the one before it is durable. So a power cut leaves at most one broken
//! record, and no later ones. A record that is missing although a later one is there was durable
//! once: the log is damaged.

use std::sync::Arc;

use thiserror::Error;

use super::format::{LogId, Record, SECTOR};

/// The records with consecutive sequences above the applied one.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::redb) struct Scan {
    pub(in crate::redb) payloads: Vec<Arc<Vec<u8>>>,
    /// The sequence of the last one, or the applied one if there are none.
    pub(in crate::redb) last: u64,
    pub(in crate::redb) damage: Option<Damage>,
}

/// A record was durable once, and is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("record {missing} of the log is missing, although record {found} is there")]
pub(in crate::redb) struct Damage {
    missing: u64,
    found: u64,
}

/// Reads both halves of the log.
pub(super) fn scan(id: LogId, halves: [&[u8]; 2], applied: u64) -> Scan {
    let mut chains = halves.map(|half| chain(id, half));
    chains.sort_by_key(|records| records.first().map(|record| record.sequence));
    let mut scan = Scan { payloads: Vec::new(), last: applied, damage: None };
    for record in chains.iter().flatten() {
        if scan.last.checked_add(1) == Some(record.sequence) {
            scan.last = record.sequence;
            scan.payloads.push(Arc::new(record.payload.to_vec()));
        }
    }
    let later = halves.into_iter().filter_map(|half| latest(id, half, scan.last)).max();
    let missing = scan.last.saturating_add(1);
    scan.damage = later.map(|found| Damage { missing, found });
    scan
}

/// The records at the start of a half, up to the first place without one that follows the others.
fn chain(id: LogId, half: &[u8]) -> Vec<Record<'_>> {
    let mut records: Vec<Record<'_>> = Vec::new();
    let mut rest = half;
    while let Some(record) = Record::decode(id, rest) {
        let follows = |last: &Record<'_>| last.sequence.checked_add(1) == Some(record.sequence);
        if !records.last().is_none_or(follows) {
            break;
        }
        records.push(record);
        rest = rest.get(Record::len(record.payload.len())..).unwrap_or_default();
    }
    records
}

/// The highest sequence above `last` that a whole record in any sector has.
fn latest(id: LogId, half: &[u8], last: u64) -> Option<u64> {
    let sectors = (0..half.len()).step_by(SECTOR).filter_map(|at| half.get(at..));
    let above = sectors.filter(|rest| Record::sequence(id, rest).is_some_and(|it| it > last));
    above.filter_map(|rest| Record::decode(id, rest)).map(|record| record.sequence).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: LogId = LogId(*b"the id of a log.");
    const OTHER: LogId = LogId(*b"the id of b log.");

    #[test]
    fn consecutive_records_above_the_applied_one() {
        let first = half(&[(3, 10), (4, 900), (5, 1)]);
        check([&first, &[]], 2, &[3, 4, 5], None);
        check([&[], &first], 2, &[3, 4, 5], None);
        check([&first, &[]], 3, &[4, 5], None);
        check([&first, &[]], 5, &[], None);
        check([&first, &[]], 9, &[], None);
        check([&[], &[]], 9, &[], None);
        check([&first, &half(&[(6, 1), (7, 2_000)])], 2, &[3, 4, 5, 6, 7], None);
        check([&half(&[(6, 1), (7, 2_000)]), &first], 2, &[3, 4, 5, 6, 7], None);
        check([&half(&[(6, 1), (7, 2_000)]), &first], 5, &[6, 7], None);
    }

    #[test]
    fn what_is_left_of_an_earlier_lap_is_not_read() {
        let mut half_ = half(&[(1, 700), (2, 700), (3, 700), (4, 10)]);
        let newer = half(&[(9, 1_200)]);
        half_[..newer.len()].copy_from_slice(&newer);
        check([&half_, &half(&[(5, 1), (6, 1), (7, 1), (8, 1)])], 4, &[5, 6, 7, 8, 9], None);
        check([&half_, &[]], 8, &[9], None);
        // The first record of the new lap is torn.
        half_[100] ^= 1;
        check([&half_, &[]], 8, &[], None);
    }

    #[test]
    fn a_missing_record_is_damage() {
        check([&half(&[(4, 1)]), &[]], 2, &[], Some((3, 4)));
        check([&half(&[(3, 1), (5, 1)]), &[]], 2, &[3], Some((4, 5)));
        check([&half(&[(3, 1)]), &half(&[(5, 1)])], 2, &[3], Some((4, 5)));
        check([&half(&[(3, 1)]), &half(&[(9, 1), (10, 1)])], 2, &[3], Some((4, 10)));
    }

    #[test]
    fn a_log_that_ends_early_loses_its_last_records() {
        let whole = half(&[(3, 10), (4, 900), (5, 20)]);
        for len in 0..whole.len() {
            // The padding is not needed.
            let expected = match len {
                0..34 => &[][..],
                34..1436 => &[3],
                1436..1580 => &[3, 4],
                _ => &[3, 4, 5],
            };
            check([&whole[..len], &[]], 2, expected, None);
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed() {
        let whole = half(&[(3, 10), (4, 900), (5, 20)]);
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            match bit / 8 {
                0..34 => check([&flipped, &[]], 2, &[], Some((3, 5))),
                512..1436 => check([&flipped, &[]], 2, &[3], Some((4, 5))),
                1536..1580 => check([&flipped, &[]], 2, &[3, 4], None),
                _ => check([&flipped, &[]], 2, &[3, 4, 5], None),
            }
        }
    }

    #[test]
    fn records_of_another_log_are_not_read() {
        let other = scan(OTHER, [&half(&[(3, 10)]), &[]], 2);
        assert_eq!(other, Scan { payloads: Vec::new(), last: 2, damage: None });
    }

    fn check(halves: [&[u8]; 2], applied: u64, expected: &[u64], damage: Option<(u64, u64)>) {
        let found = scan(ID, halves, applied);
        let last = expected.last().copied().unwrap_or(applied);
        let sequences = found.payloads.iter().map(|payload| u64::from(payload[0]));
        assert_eq!((sequences.collect::<Vec<_>>(), found.last), (expected.to_vec(), last));
        assert_eq!(found.damage, damage.map(|(missing, found)| Damage { missing, found }));
    }

    /// Records of these sequences, with payloads of these lengths that repeat the sequence.
    fn half(records: &[(u8, usize)]) -> Vec<u8> {
        let records = records.iter().map(|(sequence, len)| {
            let payload = vec![*sequence; *len];
            Record { sequence: u64::from(*sequence), payload: &payload }.encode(ID)
        });
        records.collect::<Vec<_>>().concat()
    }
}
