//! Deleted places of each segment, in the store.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use domain::ids::EnvironmentId;
use store::{Order, ReadRecords, Result, Snapshot, Transaction, WriteRecords, layout};

use crate::head::Head;
use crate::set::{CAPACITY, Set, View};

/// The places of a segment that are deleted, if any are.
pub(crate) fn find(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    head: &Head,
    segment: u32,
) -> Result<Option<Set>> {
    let key = layout::activity_deleted(environment, head.generation, segment);
    let mut places = None;
    snapshot.get_bytes(&key, &mut |bytes| {
        places = Some(View::read(bytes).to_set());
    })?;
    Ok(places)
}

/// The places that are deleted in each segment from `first` on, for at most `most` segments.
pub(crate) fn from(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    generation: u32,
    first: u32,
    most: usize,
) -> Result<BTreeMap<u32, Set>> {
    let mut found = BTreeMap::new();
    let range = layout::activity_deletions_from(environment, generation, first);
    snapshot.scan_bytes(&range, Order::Ascending, None, &mut |key, bytes| {
        if let Some(segment) = layout::deleted_segment(key) {
            found.insert(segment, View::read(bytes).to_set());
        }
        if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(found)
}

/// The number of ordinals within `range` that are deleted.
pub(crate) fn count(
    snapshot: &(impl Snapshot + ?Sized),
    environment: EnvironmentId,
    head: &Head,
    range: Range<u64>,
) -> Result<u64> {
    let mut count: u64 = 0;
    let (first, _) = head.place(range.start);
    let (last, _) = head.place(range.end);
    let within = layout::activity_deletions_within(environment, head.generation, (first, last));
    snapshot.scan_bytes(&within, Order::Ascending, None, &mut |key, bytes| {
        let start = layout::deleted_segment(key).map_or(u64::MAX, |segment| head.start(segment));
        let (places, end) = (View::read(bytes), start.saturating_add(u64::from(CAPACITY)));
        count += if range.start <= start && end <= range.end {
            places.len()
        } else {
            let ordinals = places.places().map(|place| start.saturating_add(u64::from(place)));
            ordinals.filter(|ordinal| range.contains(ordinal)).count() as u64
        };
        ControlFlow::Continue(())
    })?;
    Ok(count)
}

/// Adds `places` to those of a segment that are deleted.
pub(crate) fn add(
    txn: &mut dyn Transaction,
    environment: EnvironmentId,
    head: &Head,
    segment: u32,
    places: &Set,
) -> Result<()> {
    edit(txn, environment, (head, segment), |all| all.unite(places.view()))
}

/// Takes `places` out of those of a segment that are deleted.
pub(crate) fn take_out(
    txn: &mut dyn Transaction,
    environment: EnvironmentId,
    head: &Head,
    segment: u32,
    places: &Set,
) -> Result<()> {
    edit(txn, environment, (head, segment), |all| all.leave_out(places.view()))
}

fn edit(
    txn: &mut dyn Transaction,
    environment: EnvironmentId,
    (head, segment): (&Head, u32),
    edit: impl FnOnce(&mut Set),
) -> Result<()> {
    let mut all = find(&*txn, environment, head, segment)?.unwrap_or_default();
    edit(&mut all);
    let mut bytes = Vec::new();
    all.write(&mut bytes);
    let key = layout::activity_deleted(environment, head.generation, segment);
    txn.put_bytes(&key, &bytes)
}
