//! Pages of entries whose places in a list were found in another way.

use std::ops::Range;

use domain::page::{Bound, Cursor, Direction, Page, PageRequest, Place, Total};

use crate::batch::Row;
use crate::record::{Record, follow_intact};
use crate::{Prefix, Result, Snapshot};

/// The page that `request` asks for, of those entries with `prefix` whose keys end in one of `places`.
/// These are sorted, each is there once, and their number is the total. A record that `shows` does not let
/// through is left out: it was found by a damaged index.
pub(crate) fn page<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    prefix: &Prefix<R>,
    places: &[impl AsRef<[u8]>],
    shows: &dyn Fn(&R) -> bool,
    request: &PageRequest,
) -> Result<Page<R>> {
    let places: Vec<&[u8]> = places.iter().map(AsRef::as_ref).collect();
    let Window { range, lower, upper } = Window::of(&places, request);
    let mut on_page = places.get(range).unwrap_or_default().to_vec();
    let (has_previous, has_next) = match request.direction {
        Direction::Ascending => (lower, upper),
        Direction::Descending => {
            on_page.reverse();
            (upper, lower)
        }
    };
    let cursor = |place: &&[u8]| Cursor::at(request.list, request.order_by, place);
    let ends = (
        on_page.first().filter(|_| has_previous).map(cursor),
        on_page.last().filter(|_| has_next).map(cursor),
    );
    let mut data = records(snapshot, prefix, &on_page)?;
    let unreadable = on_page.len() - data.len();
    data.retain(shows);
    Ok(Page::new(data, ends, Total::of(places.len())).without(unreadable))
}

// The places that a page shows, and whether there are others below and above them.
struct Window {
    range: Range<usize>,
    lower: bool,
    upper: bool,
}

impl Window {
    fn of(places: &[&[u8]], request: &PageRequest) -> Self {
        let is_ascending = request.direction == Direction::Ascending;
        let (bound, is_above) = match &request.place {
            Place::Start => (None, is_ascending),
            Place::After(bound) => (Some(bound), is_ascending),
            Place::Before(bound) => (Some(bound), !is_ascending),
        };
        let range = if is_above {
            let start = bound.map_or(0, |bound| match bound {
                Bound::Included(cursor) => places.partition_point(|place| *place < cursor.key()),
                Bound::Excluded(cursor) => places.partition_point(|place| *place <= cursor.key()),
            });
            start..places.len().min(start + request.limit)
        } else {
            let end = bound.map_or(places.len(), |bound| match bound {
                Bound::Included(cursor) => places.partition_point(|place| *place <= cursor.key()),
                Bound::Excluded(cursor) => places.partition_point(|place| *place < cursor.key()),
            });
            end.saturating_sub(request.limit)..end
        };
        Self { lower: range.start > 0, upper: range.end < places.len(), range }
    }
}

// The records of these entries that can be read.
fn records<R: Record>(
    snapshot: &(impl Snapshot + ?Sized),
    prefix: &Prefix<R>,
    places: &[&[u8]],
) -> Result<Vec<R>> {
    let keys: Vec<Vec<u8>> =
        places.iter().map(|place| [prefix.as_bytes(), place].concat()).collect();
    let bytes: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let (mut rows, mut rest) = (Vec::with_capacity(keys.len()), keys.iter());
    snapshot.get_many(prefix.table(), &bytes, &mut |value| {
        rows.extend(rest.next().zip(value).map(|(key, value)| Row::new(key, value)));
    })?;
    follow_intact(snapshot, prefix.table(), &rows)
}

#[cfg(test)]
mod tests {
    use domain::environment::Home;
    use domain::page::{ListId, OrderBy};
    use domain::subscriber::{Subscriber, SubscriberCreate};
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::memory::MemoryStore;
    use crate::sample::{at, own};
    use crate::{List, ReadRecords, WriteRecords, layout, read, write};

    fn subscriber(number: u8) -> Subscriber {
        let home = Home { organization_id: "acme".parse().unwrap(), environment_id: own().0 };
        let create = SubscriberCreate::new(format!("subscriber-{number}")).unwrap();
        Subscriber::new(Uuid::from_u128(number.into()).into(), &home, create, at(0))
    }

    fn requests() -> impl Strategy<Value = PageRequest> {
        let bound = (0..40_u128, any::<bool>()).prop_map(|(id, is_included)| {
            let cursor = Cursor::at(ListId::default(), OrderBy::Id, &id.to_be_bytes());
            if is_included { Bound::Included(cursor) } else { Bound::Excluded(cursor) }
        });
        let place = prop_oneof![
            Just(Place::Start),
            bound.clone().prop_map(Place::After),
            bound.prop_map(Place::Before),
        ];
        let direction = prop_oneof![Just(Direction::Ascending), Just(Direction::Descending)];
        (place, direction, 1..8_usize).prop_map(|(place, direction, limit)| PageRequest {
            list: ListId::default(),
            order_by: OrderBy::Id,
            direction,
            place,
            limit,
        })
    }

    proptest! {
        #[test]
        fn a_page_is_that_of_a_list_with_a_condition(
            wanted in prop::collection::btree_set(0..40_u8, 0..40),
            requests in prop::collection::vec(requests(), 8),
        ) {
            let store = MemoryStore::default();
            write(&store, |txn| (0..40).try_for_each(|number| txn.insert(&subscriber(number)))).unwrap();
            let places: Vec<_> =
                wanted.iter().map(|number| u128::from(*number).to_be_bytes()).collect();
            let ids: Vec<_> = wanted.iter().map(|number| subscriber(*number).id).collect();
            let shows = |subscriber: &Subscriber| ids.contains(&subscriber.id);
            let all = layout::subscriber_ids(own().0);
            let list = List::new([all.clone()]).of_records(true, &shows);
            for request in requests {
                let [found, expected] = read(&store, |snapshot| {
                    let found = snapshot.page_among(&all, &places, &|_| true, &request)?;
                    Ok::<_, crate::Error>([found, snapshot.page(&list, &request)?])
                })
                .unwrap();
                prop_assert_eq!(&found.data, &expected.data, "{:?}", request);
                prop_assert_eq!(&found.next, &expected.next, "{:?}", request);
                prop_assert_eq!(&found.previous, &expected.previous, "{:?}", request);
                prop_assert_eq!(found.total, expected.total, "{:?}", request);
            }
        }
    }
}
