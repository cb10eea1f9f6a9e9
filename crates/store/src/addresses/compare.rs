//! Comparing the index of addresses with the subscribers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use domain::ids::EnvironmentId;

use super::row::{Row, View};
use super::trigrams::{ROWS, Trigrams};
use super::{Address, Head, damaged_row, page_key, row_key};
use crate::check::Problem;
use crate::layout::{self, AddressPart};
use crate::{Order, ReadRecords, Result, Snapshot};

/// Compares the index of an environment with `expected`, the addresses of its subscribers, and calls
/// `visit` with each contradiction. Returns the addresses that are missing.
pub(crate) fn compare(
    snapshot: &dyn Snapshot,
    environment: EnvironmentId,
    expected: BTreeSet<Address>,
    visit: &mut dyn FnMut(&[u8], Problem),
) -> Result<BTreeSet<Address>> {
    let mut missing = expected.clone();
    let mut groups: BTreeMap<(EnvironmentId, u32), BTreeMap<u32, Row>> = BTreeMap::new();
    let all = layout::addresses(environment).range();
    snapshot.scan_bytes(&all, Order::Ascending, None, &mut |key, value| {
        let part = layout::read_address_part(key);
        if let Some((environment, AddressPart::Row { group, row: number })) = part
            && let Some(row) = View::read(value)
        {
            let known = row.entries().map(|(address, subscriber)| {
                let folded = String::from_utf8_lossy(address).into_owned();
                let address = Address { environment, folded, subscriber };
                // A rebuild that was interrupted leaves addresses in two rows.
                missing.remove(&address) || expected.contains(&address)
            });
            if known.filter(|is_known| !is_known).count() > 0 {
                visit(key, Problem::Extra);
            }
            groups.entry((environment, group)).or_default().insert(number, Row::from(row));
        } else if let Some((_, AddressPart::Row { .. })) = part {
            visit(key, unreadable(damaged_row()));
        }
        ControlFlow::Continue(())
    })?;
    for ((environment, group), rows) in groups {
        compare_group(snapshot, environment, (group, &rows), visit)?;
    }
    Ok(missing)
}

fn unreadable(error: crate::Error) -> Problem {
    Problem::Unreadable { reason: error.to_string() }
}

// Compares a group of rows with the head of the index, and with the trigrams of the group.
fn compare_group(
    snapshot: &dyn Snapshot,
    environment: EnvironmentId,
    (group, rows): (u32, &BTreeMap<u32, Row>),
    visit: &mut dyn FnMut(&[u8], Problem),
) -> Result<()> {
    match Head::find(snapshot, environment) {
        Ok(Some(head)) if group < head.group => {
            compare_trigrams(snapshot, environment, group, rows, visit)?;
        }
        Ok(Some(head)) if group == head.group && rows.len() == usize::from(head.rows) => {}
        Ok(_) => {
            let key = row_key(environment, (group, 0));
            visit(key.as_bytes(), Problem::Extra);
        }
        Err(error) => {
            let key = layout::address_part(environment, AddressPart::Head);
            visit(key.as_bytes(), unreadable(error));
        }
    }
    Ok(())
}

// Calls `visit` with the pages of a group that miss a trigram of its rows.
fn compare_trigrams(
    snapshot: &dyn Snapshot,
    environment: EnvironmentId,
    group: u32,
    rows: &BTreeMap<u32, Row>,
    visit: &mut dyn FnMut(&[u8], Problem),
) -> Result<()> {
    let texts =
        (0..u32::from(ROWS)).map(|row| rows.get(&row).map_or(&[][..], |it| it.view().text()));
    for (page, words) in Trigrams::of(texts).pages() {
        let key = page_key(environment, page, group);
        let mut has_all = false;
        snapshot.get_bytes(&key, &mut |bytes| {
            let is_in = |(word, all): (&u8, &u8)| word & all == *word;
            has_all = bytes.len() == words.len() && words.iter().zip(bytes).all(is_in);
        })?;
        if !has_all {
            visit(key.as_bytes(), Problem::Missing);
        }
    }
    Ok(())
}
