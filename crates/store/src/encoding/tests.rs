use std::collections::BTreeMap;

use domain::ids::MessageId;
use domain::time::Timestamp;
use proptest::prelude::*;
use proptest::sample::Index;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;

// One of each token.
fn every_token() -> Value {
    json!([
        null, false, true, { "_id": "_id", "unheard of": "held" }, 15, 16, u64::MAX, -1, i64::MIN, 12.5,
        "", "a".repeat(63), "a".repeat(64), "ü",
        "01a44803-689f-7000-8005-7b0308c3b35e", "01a44803-689f-7000-8005-8be6eb92f98d",
        "01a44803-689f-7000-8005-7b0308c3b35e", "2027-03-15T07:07:27.263Z",
        "2027-03-15T07:07:27.264Z", "2027-03-15T07:07:27.263Z",
    ])
}

fn packed(tree: &Value) -> Vec<u8> {
    encode(tree, 0).unwrap()
}

fn tree(value: &[u8]) -> Option<Value> {
    decode(value).ok()
}

#[track_caller]
fn check_comes_back(tree: &Value) {
    let value = packed(tree);
    let text = serde_json::to_vec(tree).unwrap();
    assert_eq!(decode::<Value>(&value).unwrap(), *tree);
    assert_eq!(json(&value).unwrap(), text);
    assert!(value.len() <= text.len() + 9 * (1 + numbers(tree)), "{} of {text:?}", value.len());
}

// A number with a fraction may be shorter as text.
fn numbers(tree: &Value) -> usize {
    match tree {
        Value::Number(_) => 1,
        Value::Array(values) => values.iter().map(numbers).sum(),
        Value::Object(members) => members.values().map(numbers).sum(),
        Value::Null | Value::Bool(_) | Value::String(_) => 0,
    }
}

#[test]
fn what_is_written_is_as_it_was() {
    let digits = |at| u8::from_str_radix(&GOLDEN[at..at + 2], 16).unwrap();
    let golden: Vec<u8> = (0..GOLDEN.len()).step_by(2).map(digits).collect();
    assert_eq!(packed(&every_token()), golden);
    assert_eq!(decode::<Value>(&packed(&every_token())).unwrap(), every_token());
}

#[test]
fn json_is_read() {
    assert_eq!(tree(b"\x01{}"), Some(json!({})));
    assert_eq!(json(b"\x01{ }").unwrap(), &b"{ }"[..]);
    let value = [&[JSON], serde_json::to_vec(&every_token()).unwrap().as_slice()].concat();
    assert_eq!(tree(&value), Some(every_token()));
}

/// One row per text that is nearly an id or a time.
#[test]
fn what_would_be_written_otherwise_stays_as_it_is() {
    for text in [
        "01a44803-689f-7000-8005-7b0308c3b35e",
        "01A44803-689f-7000-8005-7b0308c3b35e",
        "01a44803-689f-7000-8005-7b0308c3b35",
        "01a44803-689f-7000-8005-7b0308c3b35e0",
        "01a44803+689f-7000-8005-7b0308c3b35e",
        "01a44803-689f-7000-8005-7b0308c3b35g",
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "01a44803689f700080057b0308c3b35e0000",
        "2027-03-15T07:07:27.263Z",
        "2027-03-15t07:07:27.263Z",
        "2027-03-15T07:07:27.263z",
        "2027-03-15T07:07:27,263Z",
        "2027-03-15T07:07:27.26ZZ",
        "2027-03-15T07:07:27.2634Z",
        "2027-03-15T07:07:27.263+",
        "0000-00-00T00:00:00.000Z",
        "7205-75-94T03:79:27.935Z",
        "7205-75-94T03:79:27.936Z",
        "9999-99-99T99:99:99.999Z",
    ] {
        check_comes_back(&json!([text, { text: text }, format!("\"{text}\"")]));
    }
}

/// More ids and times than have numbers.
#[test]
fn many_ids_and_times_come_back() {
    let id = |number: u128| Uuid::from_u128(0x01a4_4803_689f_7000 << 64 | number << 70 | 7 << 40);
    let ids: Vec<_> = (0..40).chain(10..30).map(|n| id(n % 37).to_string()).collect();
    let times: Vec<_> =
        (10..50).chain(10..50).map(|n| format!("2027-03-15T07:07:{n}.263Z")).collect();
    check_comes_back(&json!([ids, times]));
}

/// Everything that serde has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Everything {
    unit: (),
    none: Option<u8>,
    some: Option<i8>,
    letter: char,
    bytes: Vec<u8>,
    pair: (i64, f32),
    newtype: Newtype,
    kinds: Vec<Kind>,
    tagged: Vec<Tagged>,
    untagged: Vec<Untagged>,
    by_kind: BTreeMap<Kind, u16>,
    #[serde(flatten)]
    rest: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Newtype(String);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Kind {
    Unit,
    Newtype(u8),
    Tuple(u8, String),
    Struct { number: i32 },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status")]
enum Tagged {
    Pending,
    Running { at: Uuid },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Number(f64),
    Text(String),
    Both { number: u64, text: String },
}

fn everything() -> Everything {
    Everything {
        unit: (),
        none: None,
        some: Some(-7),
        letter: 'ü',
        bytes: vec![0, 255],
        pair: (i64::MIN, 0.25),
        newtype: Newtype("status".into()),
        kinds: vec![
            Kind::Unit,
            Kind::Newtype(1),
            Kind::Tuple(2, "two".into()),
            Kind::Struct { number: -3 },
        ],
        tagged: vec![Tagged::Pending, Tagged::Running { at: Uuid::from_u128(9) }],
        untagged: vec![
            Untagged::Number(0.5),
            Untagged::Text("text".into()),
            Untagged::Both { number: 300, text: String::new() },
        ],
        by_kind: [(Kind::Unit, 4)].into(),
        rest: [("_id".to_owned(), 1), ("more".to_owned(), u64::MAX)].into(),
    }
}

#[test]
fn a_record_serializes_as_to_json() {
    let (everything, of_json) = (everything(), serde_json::to_value(everything()).unwrap());
    let of_text = [&[JSON], serde_json::to_vec(&everything).unwrap().as_slice()].concat();
    for value in [encode(&everything, 0).unwrap(), of_text] {
        assert_eq!(decode::<Everything>(&value).unwrap(), everything);
        assert_eq!(decode::<Value>(&value).unwrap(), of_json);
    }
    assert_eq!(packed(&of_json).len(), encode(&everything, 0).unwrap().len());
    assert_eq!(tree(&encode(&f64::NAN, 0).unwrap()), Some(Value::Null));
}

#[derive(Debug, PartialEq, Deserialize)]
struct Last {
    last: [String; 3],
}

/// What was skipped has the ids and times that a later text names.
#[test]
fn fields_that_are_not_asked_for_are_skipped() {
    let last = serde_json::json!([
        "01a44803-689f-7000-8005-7b0308c3b35e",
        "01a44803-689f-7000-8005-8be6eb92f98d",
        "2027-03-15T07:07:27.264Z",
    ]);
    let tree = json!({ "first": every_token(), "last": last });
    for value in [packed(&tree), encode(&tree, 2_000).unwrap()] {
        let read: Last = decode(&value).unwrap();
        assert_eq!(json!(read.last), last);
        for len in 0..value.len() {
            assert!(decode::<Last>(&value[..len]).is_err(), "{len} of {}", value.len());
        }
    }
    let refused = |content: &[u8]| decode::<Last>(&[&[PACKED, 5], content].concat()).unwrap_err();
    assert!(matches!(refused(&[33, b'a', 0, 0]), Unreadable::Token(0)));
    assert!(matches!(refused(&[33, b'a', 15, 0]), Unreadable::Token(15)));
}

/// One row per record that is another one.
#[test]
fn other_records_are_refused() {
    #[track_caller]
    fn check<T: DeserializeOwned>(tree: &Value) {
        let value = packed(tree);
        assert!(decode::<T>(&value).is_err(), "{tree}");
        assert!(serde_json::from_value::<T>(tree.clone()).is_err(), "{tree}");
    }
    check::<Kind>(&json!("Other"));
    check::<Kind>(&json!("Newtype"));
    check::<Kind>(&json!("Tuple"));
    check::<Kind>(&json!("Struct"));
    check::<Kind>(&json!({}));
    check::<Kind>(&json!({ "Unit": 1 }));
    check::<Kind>(&json!({ "Newtype": "1" }));
    check::<Kind>(&json!({ "Newtype": 1, "Unit": null }));
    check::<Kind>(&json!({ "Tuple": [1] }));
    check::<Kind>(&json!([]));
    check::<(u8, u8)>(&json!([1, 2, 3]));
    check::<(u8, u8)>(&json!([1]));
    check::<u8>(&json!(256));
    check::<String>(&json!(null));
    check::<Tagged>(&json!({ "status": "Running" }));
}

#[test]
fn what_lies_too_deep_is_refused() {
    let nested = |depth: usize| [&[PACKED][..], &vec![4; depth], &vec![0; depth]].concat();
    assert!(decode::<Value>(&nested(127)).is_ok());
    assert!(matches!(decode::<Value>(&nested(128)), Err(Unreadable::TooDeep)));
    assert!(decode::<Value>(&[&[PACKED][..], &vec![4; 1 << 20]].concat()).is_err());
    let wide: Vec<Value> = (0..1_000).map(|_| json!([])).collect();
    check_comes_back(&json!(wide));
}

#[test]
fn what_is_large_and_regular_is_a_block() {
    for (len, encoding) in [(LARGE - 4, PACKED), (LARGE, BLOCK), (300_000, BLOCK)] {
        let value = packed(&json!("a".repeat(len)));
        assert_eq!(value.first(), Some(&encoding), "{len}");
        check_comes_back(&json!("a".repeat(len)));
    }
    // Letters that are as good as random.
    let numbers = (1..=1_000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50);
    let letters = numbers.map(|n| char::from_u32(0x4e00 + u32::try_from(n).unwrap()).unwrap());
    assert_eq!(packed(&json!(letters.collect::<String>())).first(), Some(&PACKED));
}

#[test]
fn a_length_that_cannot_be_is_refused() {
    let value = packed(&json!("a".repeat(5_000)));
    for len in [0, 1, 200, 1 << 16, 1 << 20, u32::MAX] {
        let lying = [&[BLOCK], &u32::to_le_bytes(len)[..], &value[5..]].concat();
        assert_eq!(tree(&lying), None, "{len}");
    }
    let most = (value.len() - 5) * MOST_OF_ONE;
    for (len, expected) in [(most, false), (most + 1, true)] {
        let len = u32::try_from(len).unwrap();
        let lying = [&[BLOCK], &len.to_le_bytes()[..], &value[5..]].concat();
        let before_room_is_made = matches!(inflated(&lying[1..]), Err(Unreadable::TooLong));
        assert_eq!(before_room_is_made, expected);
    }
    // A text that is longer than the value.
    assert_eq!(tree(&[PACKED, 9, 255, 255, 255, 255, 15, b'a']), None);
}

#[test]
fn what_is_cut_off_or_goes_on_is_refused() {
    for value in [packed(&every_token()), encode(&every_token(), 2_000).unwrap()] {
        for len in 0..value.len() {
            assert_eq!(tree(&value[..len]), None, "{len} of {}", value.len());
        }
        for byte in 0..=u8::MAX {
            assert_eq!(tree(&[&value[..], &[byte]].concat()), None, "{byte}");
        }
    }
}

/// One row per content that no writer writes.
#[test]
fn malformed_content_is_refused() {
    let refused =
        |content: &[u8]| decode::<Value>(&[&[PACKED], content].concat()).unwrap_err().to_string();
    assert_eq!(refused(&[0]), "its token 0 is not known");
    assert_eq!(refused(&[15]), "its token 15 is not known");
    assert_eq!(refused(&[5, 96, 0]), "its token 0 is not known");
    assert_eq!(refused(&[14, 255]), "its word 415 is not known");
    assert_eq!(refused(&[13, 0]), "it has no earlier id or time 0");
    assert_eq!(refused(&[11, 0]), "it has no earlier id or time 0");
    assert_eq!(refused(&[33, 255]), "a text in it is not UTF-8");
    assert_eq!(refused(&[[6].as_slice(), &[255; 9], &[2]].concat()), "a number in it is too large");
    assert_eq!(refused(&[[6].as_slice(), &[255; 12]].concat()), "a number in it is too large");
    assert_eq!(refused(&[[7].as_slice(), &[255; 9], &[1]].concat()), "a number in it is too large");
    assert_eq!(refused(&[1, 1]), "something follows its content");
}

#[test]
fn padding_is_counted_and_stands_at_the_end() {
    let tight = packed(&every_token());
    let padded = encode(&every_token(), tight.len() + 300).unwrap();
    assert_eq!(padded, [&[PADDED, 42, 1], &tight[1..], &[0; 298]].concat());
    assert_eq!(decode::<Value>(&padded).unwrap(), every_token());
    // One that has outgrown its room.
    let outgrown = encode(&every_token(), 10).unwrap();
    assert_eq!(outgrown, [&[PADDED, 0, 0], &tight[1..]].concat());
    assert_eq!(decode::<Value>(&padded[..4]).unwrap_err().to_string(), "its block is not readable");
}

#[test]
fn other_encodings_are_refused() {
    assert!(matches!(decode::<Value>(b""), Err(Unreadable::Empty)));
    assert!(matches!(decode::<Value>(&[SEALED, 1]), Err(Unreadable::Sealed)));
    let known = [JSON, PACKED, PADDED, BLOCK, SEALED];
    for encoding in (0..=u8::MAX).filter(|encoding| !known.contains(encoding)) {
        let refused = decode::<Value>(&[encoding, b'{', b'}']).unwrap_err();
        assert!(matches!(refused, Unreadable::Encoding(other) if other == encoding));
    }
}

fn any_tree() -> impl Strategy<Value = Value> {
    let word = (0_u16..400).prop_map(|number| words::word(number).unwrap_or("none").to_owned());
    let text = prop_oneof![
        4 => "\\PC{0,12}",
        4 => word,
        2 => "[0-9a-f]{8}-7000-8000-[0-9a-f]{12}",
        2 => any::<[u8; 16]>().prop_map(|id| Uuid::from_bytes(id).to_string()),
        2 => (0_u128..4).prop_map(|id| Uuid::from_u128(id << 40).to_string()),
        2 => "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z",
        1 => "[\\x00-\\x1f\"\\\\]{0,6}",
        1 => "[a-z]{0,900}",
    ];
    let leaf = prop_oneof![
        4 => text.clone().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => (-200_i64..200).prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 200, 12, move |inner| {
        let fields = proptest::collection::btree_map(text.clone(), inner.clone(), 0..12);
        prop_oneof![
            proptest::collection::vec(inner, 0..12).prop_map(Value::from),
            fields.prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Ids and times that are bytes for the codec, and the texts that they are in JSON.
    #[test]
    fn ids_and_times_are_packed_as_their_texts(
        ids in proptest::collection::vec(any::<[u8; 16]>(), 0..20),
        millis in proptest::collection::vec(any::<i64>(), 0..20),
    ) {
        let ids: Vec<MessageId> = ids.into_iter().map(|id| Uuid::from_bytes(id).into()).collect();
        let times: Vec<_> = millis.into_iter().map(Timestamp::from_millis).collect();
        let record = (&ids, "a", &times, &ids, &times);
        let texts = serde_json::to_value(record).unwrap();
        prop_assert_eq!(encode(&record, 0).unwrap(), packed(&texts));
        let mut json = vec![JSON];
        serde_json::to_writer(&mut json, &record).unwrap();
        for value in [packed(&texts), json] {
            let read: (Vec<_>, String, Vec<_>, Vec<_>, Vec<_>) = decode(&value).unwrap();
            prop_assert_eq!((&read.0, &read.2, &read.3, &read.4), (&ids, &times, &ids, &times));
        }
    }

    #[test]
    fn every_tree_comes_back(tree in any_tree()) {
        check_comes_back(&tree);
    }

    #[test]
    fn what_has_room_comes_back(any in any_tree(), room in 0_usize..70_000) {
        let (value, tight) = (encode(&any, room).unwrap(), packed(&any));
        prop_assert_eq!(tree(&value), Some(any));
        let fits = tight.len() + 2 <= room && room - tight.len() - 2 <= 0xffff;
        if value.first() == Some(&PADDED) {
            prop_assert_eq!(value.len(), if fits { room } else { tight.len() + 2 });
        } else {
            prop_assert!(room == 0 || value.first() == Some(&BLOCK));
        }
    }

    /// A disk may change every bit. That some changes leave something that makes sense is for
    /// redb's checksums to notice.
    #[test]
    fn nothing_panics(
        any in any_tree(),
        flips in proptest::collection::vec((any::<Index>(), 0_u8..8), 1..4),
        room in 0_usize..2_000,
    ) {
        let mut value = encode(&any, room).unwrap();
        for (place, bit) in flips {
            let place = place.index(value.len());
            value[place] ^= 1 << bit;
        }
        let most = value.len() * MOST_OF_ONE * 43;
        prop_assert!(json(&value).is_ok_and(|json| json.len() <= most) || json(&value).is_err());
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), len in 0_u32..3_000) {
        let _ = tree(&bytes);
        let _ = tree(&[&[PACKED], &bytes[..]].concat());
        let _ = decode::<serde::de::IgnoredAny>(&[&[PACKED], &bytes[..]].concat());
        let _ = tree(&[&[BLOCK], &len.to_le_bytes()[..], &bytes].concat());
    }
}

const GOLDEN: &str = concat!(
    "02040102030560602a756e6865617264206f660e8d001f061006ffffffffffffffffff01070007ffffffffff",
    "ffffff7f080000000000002940205f6161616161616161616161616161616161616161616161616161616161",
    "6161616161616161616161616161616161616161616161616161616161616161616109406161616161616161",
    "6161616161616161616161616161616161616161616161616161616161616161616161616161616161616161",
    "61616161616161616161616122c3bc0a01a44803689f700080057b0308c3b35e0b098be6eb92f98d0b0f0c48",
    "03be8146a45f0c4803be8146a4600d0000",
);
