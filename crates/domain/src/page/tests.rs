use proptest::prelude::*;

use super::*;

const LIST: ListId = ListId([1, 2, 3, 4]);
const BY_ID: &[OrderBy] = &[OrderBy::Id];

#[test]
fn a_page_has_1_to_100_items() {
    let limit =
        |limit| PageQuery { limit, ..PageQuery::default() }.check(LIST, BY_ID).map(|ok| ok.limit);
    assert_eq!([None, Some(1), Some(100)].map(limit), [Ok(10), Ok(1), Ok(100)]);
    for bad in [0, 101, u32::MAX] {
        let error = limit(Some(bad)).unwrap_err();
        assert_eq!(error.to_string(), "`limit` must be between 1 and 100");
    }
}

/// One row per sort key: its neighbours in both directions.
#[test]
fn an_item_is_in_front_of_the_next_place() {
    for (key, ascending, descending) in [
        ([0, 0], [0, 1], [0, 0]),
        ([0, 1], [0, 2], [0, 0]),
        ([0, 255], [1, 0], [0, 254]),
        ([1, 0], [1, 1], [0, 255]),
        ([255, 254], [255, 255], [255, 253]),
        ([255, 255], [255, 255], [255, 254]),
    ] {
        let next =
            |direction| Cursor::at(LIST, OrderBy::Id, &key).next_in(direction).key().to_vec();
        let expected = [ascending, descending].map(Vec::from);
        assert_eq!([Direction::Ascending, Direction::Descending].map(next), expected, "{key:?}");
    }
}

#[test]
fn a_page_lies_on_one_side_of_one_cursor() {
    let cursor = Some(Cursor::at(LIST, OrderBy::Id, &[7; 16]));
    let both = PageQuery { after: cursor.clone(), before: cursor, ..PageQuery::default() };
    let error = both.check(LIST, BY_ID).unwrap_err();
    assert_eq!(error.to_string(), "`before` must not be given together with `after`");
}

/// One row per order: a valid sort key, and an invalid one.
#[test]
fn a_cursor_is_read_as_it_is_written() {
    for (order_by, key, bad) in [
        (OrderBy::Id, &[7; 16][..], &[7; 15][..]),
        (OrderBy::Id, &[0; 16], &[0; 17]),
        (OrderBy::CreatedAt, &[7; 24], &[7; 16]),
        (OrderBy::UpdatedAt, &[7; 24], &[]),
        (OrderBy::Key, b"orders\0", b"orders"),
        (OrderBy::Key, b"\0", b"a\0b\0"),
    ] {
        let cursor = Cursor::at(LIST, order_by, key);
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        let bad = Cursor::at(LIST, order_by, bad).to_string();
        let error = bad.parse::<Cursor>().unwrap_err();
        assert_eq!(error.to_string(), "`cursor` must be a cursor of this list");
    }
    assert_eq!(
        Cursor::at(LIST, OrderBy::Id, &[0x7f; 16]).to_string(),
        format!("0001020304{}", "7f".repeat(16))
    );
    for bad in ["", "0", "0g", "ü0", "é", "00", "0000000000", "ff00"] {
        assert!(bad.parse::<Cursor>().is_err(), "{bad}");
    }
}

#[test]
fn totals_are_counted_up_to_a_cap() {
    let json = |counted| serde_json::to_string(&Total::of(counted)).unwrap();
    assert_eq!(json(50_000), r#"{"totalCount":50000,"totalCountCapped":false}"#);
    assert_eq!(json(50_001), r#"{"totalCount":50000,"totalCountCapped":true}"#);
}

/// One row per query: the place of the page, and whether the item at the cursor belongs to it.
#[test]
fn a_page_lies_behind_or_before_a_cursor() {
    let cursor = || Cursor::at(LIST, OrderBy::Id, &[7; 16]);
    let query = |after: bool, before: bool, include_cursor| PageQuery {
        after: after.then(cursor),
        before: before.then(cursor),
        include_cursor,
        ..PageQuery::default()
    };
    for (query, place) in [
        (query(false, false, false), Place::Start),
        (query(false, false, true), Place::Start),
        (query(true, false, false), Place::After(Bound::Excluded(cursor()))),
        (query(true, false, true), Place::After(Bound::Included(cursor()))),
        (query(false, true, false), Place::Before(Bound::Excluded(cursor()))),
        (query(false, true, true), Place::Before(Bound::Included(cursor()))),
    ] {
        let direction = Direction::Descending;
        assert_eq!(
            query.check(LIST, BY_ID),
            Ok(PageRequest { list: LIST, place, limit: 10, order_by: OrderBy::Id, direction })
        );
    }
    let order_direction = Some(Direction::Ascending);
    let ascending = PageQuery { order_direction, ..PageQuery::default() };
    assert_eq!(ascending.check(LIST, BY_ID).unwrap().direction, Direction::Ascending);
}

#[test]
fn a_list_is_sorted_by_what_it_can_be_sorted_by() {
    let orders = &[OrderBy::CreatedAt, OrderBy::Id];
    let asked = |order_by| PageQuery { order_by, ..PageQuery::default() }.check(LIST, orders);
    assert_eq!(asked(None).unwrap().order_by, OrderBy::CreatedAt);
    assert_eq!(asked(Some(OrderBy::Id)).unwrap().order_by, OrderBy::Id);
    let error = asked(Some(OrderBy::Key)).unwrap_err();
    assert_eq!(error.to_string(), "`orderBy` must be one of createdAt, _id");
}

#[test]
fn a_cursor_of_another_list_or_order_is_refused() {
    let elsewhere = || Some(Cursor::at(ListId::default(), OrderBy::Id, &[7; 16]));
    let foreign = || Some(Cursor::at(LIST, OrderBy::CreatedAt, &[7; 24]));
    for (query, field) in [
        (PageQuery { after: elsewhere(), ..PageQuery::default() }, "after"),
        (PageQuery { after: foreign(), ..PageQuery::default() }, "after"),
        (PageQuery { before: foreign(), ..PageQuery::default() }, "before"),
    ] {
        let error = Invalid::new(field, Reason::malformed("a cursor of this list"));
        assert_eq!(query.check(LIST, BY_ID), Err(error));
    }
}

#[test]
fn every_direction_has_another() {
    for direction in Direction::ALL {
        assert_ne!(direction.reversed(), *direction);
        assert_eq!(direction.reversed().reversed(), *direction);
    }
}

proptest! {
    #[test]
    fn cursors_sort_as_their_keys_do(
        keys in prop::array::uniform2(prop::array::uniform16(any::<u8>())),
    ) {
        let [one, other] = keys.map(|key| Cursor::at(LIST, OrderBy::Id, &key));
        prop_assert_eq!(one.to_string().cmp(&other.to_string()), keys[0].cmp(&keys[1]));
        prop_assert_eq!(one.to_string().parse(), Ok(one));
    }

    #[test]
    fn any_text_is_taken_for_a_cursor_without_harm(text in "\\PC*|[0-9a-fA-F]*") {
        if let Ok(cursor) = text.parse::<Cursor>() {
            prop_assert_eq!(cursor.to_string(), text.to_lowercase());
        }
    }

    #[test]
    fn a_total_is_read_as_it_is_written(counted in 0_usize..60_000) {
        let total = Total::of(counted);
        let json = serde_json::to_string(&total).unwrap();
        prop_assert_eq!(serde_json::from_str::<Total>(&json).unwrap(), total);
    }
}

/// One row per list: the number in cursors, which clients keep.
#[test]
fn every_list_keeps_its_number() {
    let environment = crate::sample::id(1);
    for (kind, number) in [
        (ListKind::Subscribers, 3),
        (ListKind::Workflows, 6),
        (ListKind::Contexts, 10),
        (ListKind::ChannelEndpoints, 14),
        (ListKind::ChannelConnections, 16),
        (ListKind::Topics, 19),
        (ListKind::Subscriptions, 21),
        (ListKind::Layouts, 25),
        (ListKind::Translations, 27),
        (ListKind::Messages, 38),
    ] {
        let ListId([.., there]) = ListId::new(environment, kind);
        assert_eq!(there, number, "{kind:?}");
    }
}
