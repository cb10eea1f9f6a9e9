use std::ops::RangeBounds;

use domain::context::{ContextKey, ContextSet};
use domain::ids::{InternalSubscriberId, SubscriberId, WorkflowId};
use domain::notification::Ordinal;
use domain::time::Timestamp;
use domain::translation::Resource;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;

type Texts = TableOf<(), parts![Text, Text]>;
type Times = TableOf<(), parts![Timestamp]>;

const TABLE: Table = Table::ALL[0];

// The bytes of a part, after which `P::read` finds the part again and leaves what follows.
fn read_again<P: KeyPart>(part: P::Form<'_>, check: impl FnOnce(P::Read<'_>)) {
    let mut bytes = Vec::new();
    P::write(part, &mut bytes);
    for len in 0..bytes.len() {
        // Less than a part is no part, and ends in no panic.
        let _ = P::read(&mut bytes.get(..len).unwrap());
    }
    bytes.push(7);
    let mut rest = bytes.as_slice();
    check(P::read(&mut rest).unwrap());
    assert_eq!(rest, [7]);
}

#[test]
fn parts_do_not_run_together() {
    let ab_then_nothing = Texts::new(TABLE).all().then("ab").then("").end();
    let a_then_b = Texts::new(TABLE).all().then("a").then("b").end();
    assert_ne!(ab_then_nothing, a_then_b);
}

#[test]
fn times_sort_as_times() {
    let key = |millis| Times::new(TABLE).all().then(Timestamp::from_millis(millis)).end().bytes;
    assert!([i64::MIN, -1, 0, 1, i64::MAX].map(key).is_sorted());
}

#[test]
fn a_key_is_read_as_a_whole() {
    let texts = Texts::new(TABLE);
    let key = texts.all().then("ab").then("").end();
    assert_eq!(texts.read(key.as_bytes()), Some(("ab", ("", ()))));
    assert_eq!(texts.read(b"ab\0"), None);
    assert_eq!(texts.read(b"ab\0\0\0"), None);
    assert_eq!(texts.read(b"\xff\0\0"), None);
}

#[test]
fn a_prefix_ends_where_the_next_one_starts() {
    let end = |bytes: &[u8]| range(bytes).1;
    assert_eq!(end(b"a"), Bound::Excluded(b"b".to_vec()));
    assert_eq!(end(&[1, 0xff]), Bound::Excluded(vec![2]));
    assert_eq!(end(&[0xff, 0xff]), Bound::Unbounded);
    assert_eq!(end(b""), Bound::Unbounded);
}

#[test]
fn a_list_has_the_prefix_of_its_order() {
    type List = TableOf<(), parts![Sorted<InternalSubscriberId>]>;
    let (time, id) = (Timestamp::from_millis(1), Uuid::max().into());
    let places =
        [SortedPlace::Id(id), SortedPlace::CreatedAt(time, id), SortedPlace::UpdatedAt(time, id)];
    for place in places.into_iter().chain([SortedPlace::Key("news")]) {
        let key = List::new(TABLE).all().then(place).end();
        for order_by in OrderBy::ALL.iter().copied() {
            let list = List::new(TABLE).all().by(order_by);
            let is_in = key.bytes.starts_with(&list.bytes);
            assert_eq!(is_in, order_by == place_order(&place), "{place:?} {order_by:?}");
            if is_in {
                assert_eq!(
                    order_by.sort_len(list.rest(&key.bytes).unwrap()),
                    Some(key.bytes.len() - 1)
                );
            }
        }
    }
}

fn place_order<Id>(place: &SortedPlace<'_, Id>) -> OrderBy {
    match place {
        SortedPlace::Id(_) => OrderBy::Id,
        SortedPlace::CreatedAt(..) => OrderBy::CreatedAt,
        SortedPlace::UpdatedAt(..) => OrderBy::UpdatedAt,
        SortedPlace::Key(_) => OrderBy::Key,
    }
}

proptest! {
    #[test]
    fn parts_are_read_as_they_were_written(
        text in "[^\0]{0,20}",
        name in "[a-z]{1,20}",
        id: u128,
        number: u32,
        millis: i64,
        ordinal in 0_u64..1 << 40,
    ) {
        let (uuid, time) = (Uuid::from_u128(id), Timestamp::from_millis(millis));
        let subscriber = SubscriberId::new(name.as_str()).unwrap();
        let context = ContextKey::new(name.as_str(), "x").unwrap();
        let contexts = ContextSet::try_from(vec![context.to_string(), "a:b".into()]).unwrap();
        let resource = Resource::layout(&name);
        read_again::<Text>(&text, |read| assert_eq!(read, text));
        read_again::<u32>(number, |read| assert_eq!(read, number));
        read_again::<u128>(id, |read| assert_eq!(read, id));
        read_again::<InternalSubscriberId>(uuid.into(), |read| assert_eq!(read, uuid.into()));
        read_again::<SubscriberId>(&subscriber, |read| assert_eq!(read, subscriber));
        read_again::<Timestamp>(time, |read| assert_eq!(read, time));
        read_again::<Ordinal>(Ordinal::new(ordinal), |read| assert_eq!(read.get(), ordinal));
        read_again::<ContextKey>(&context, |read| assert_eq!(read, context));
        read_again::<ContextSet>(&contexts, |read| assert_eq!(read, contexts));
        read_again::<ContextSet>(&ContextSet::default(), |read| assert!(read.is_empty()));
        read_again::<Resource>(&resource, |read| assert_eq!(read, resource));
        for workflow in [None, Some(WorkflowId::from(uuid)).filter(|_| id != 0)] {
            read_again::<Option<WorkflowId>>(workflow, |read| assert_eq!(read, workflow));
        }
        for text in [None, Some(text.as_str())] {
            read_again::<Any<Text>>(text, |read| assert_eq!(read, text));
        }
        let id = InternalSubscriberId::from(uuid);
        let places = [SortedPlace::Id(id), SortedPlace::CreatedAt(time, id), SortedPlace::UpdatedAt(time, id)];
        for place in places.into_iter().chain([SortedPlace::Key(name.as_str())]) {
            read_again::<Sorted<InternalSubscriberId>>(place, |read| assert_eq!(read, place));
        }
    }
}

// Few values, so that parts are the same often, and the last one, which has no next one.
fn few() -> impl Strategy<Value = u8> {
    prop_oneof![Just(0), Just(1), Just(254), Just(255)]
}

proptest! {
    /// The ranges of a prefix have the keys with the parts that they name.
    #[test]
    fn a_range_has_the_keys_of_its_parts(
        group in few(), part in few(), next in few(), other in few(), key: [u8; 3],
    ) {
        let key = key.map(|byte| [0, 1, 254, 255][usize::from(byte % 4)]);
        let all = TableOf::<(), parts![u8, u8, u8]>::new(TABLE).all().then(group);
        let has = |range: Range<()>| range.bytes().contains(&key.to_vec());
        let [of_group, is_before, is_until] = [key[0] == group, key[1] < part, key[1] <= part];
        prop_assert_eq!(has(all.before(part)), of_group && is_before);
        prop_assert_eq!(has(all.until(part)), of_group && is_until);
        prop_assert_eq!(has(all.from(part)), of_group && !is_before);
        prop_assert_eq!(has(all.behind(part)), of_group && !is_until);
        prop_assert_eq!(has(all.behind_or_all(Some(part))), of_group && !is_until);
        prop_assert_eq!(has(all.behind_or_all(None)), of_group);
        prop_assert_eq!(has(all.between(part..other)), of_group && !is_before && key[1] < other);
        prop_assert_eq!(all.around(part).map(has), [is_before, !is_until].map(|side| of_group && side));
        let behind_both = of_group && (key[1], key[2]) > (part, next);
        prop_assert_eq!(has(all.behind_both(part, next)), behind_both);
    }
}
