use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use super::*;

// Everything that is short in a block.
const TEXT: &str = concat!(
    r#"{"_id":"01a44803-689f-7000-8005-7b0308c3b35e","createdAt":"2027-03-15T07:07:27.263Z","#,
    r#""jobs":[{"status":"completed","_messageId":"01a44803-689f-7000-8005-8be6eb92f98d"},"#,
    r#"{"status":"completed","_messageId":"01a44803-689f-7000-8005-8be6eb92f98e"}],"n":12.5}"#,
);

fn json(value: &[u8]) -> Option<Vec<u8>> {
    decode(value).ok().map(Cow::into_owned)
}

#[track_caller]
fn check_comes_back(json: &[u8]) {
    let value = encode(json);
    assert!(value.len() <= json.len() + 1, "{} of {}", value.len(), json.len());
    assert_eq!(decode(&value).unwrap(), json, "{}", json.escape_ascii());
}

#[test]
fn what_is_written_is_as_it_was() {
    assert_eq!(encode(TEXT.as_bytes()), bytes(GOLDEN));
}

/// Values of earlier versions, also if another version of the library finds other matches.
#[test]
fn what_was_written_is_read() {
    assert_eq!(decode(&bytes(GOLDEN)).unwrap(), TEXT.as_bytes());
    assert_eq!(decode(b"\x01{}").unwrap(), &b"{}"[..]);
    assert_eq!(decode(&[b"\x01", TEXT.as_bytes()].concat()).unwrap(), TEXT.as_bytes());
}

/// Blocks reach back into any part of the dictionary.
#[test]
fn the_dictionary_is_as_it_was() {
    let sum = DICTIONARY.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    assert_eq!((DICTIONARY.len(), sum), (DICTIONARY_LEN, DICTIONARY_SUM));
    assert!(DICTIONARY.iter().all(|byte| matches!(byte, b'\n' | b' '..=b'~')));
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
        let plain = format!(r#"["{text}"]"#);
        let escaped = format!(r#"["\"{text}\""]"#);
        let open = format!(r#"{{"{text}"#);
        for json in [plain, escaped, open] {
            let short = shortened(json.as_bytes());
            assert_eq!(written_out(&short).unwrap(), json.as_bytes(), "{json}");
            check_comes_back(format!("{json}{}", json.repeat(9)).as_bytes());
        }
    }
}

#[test]
fn what_is_small_or_does_not_get_smaller_is_plain() {
    let small = format!("{:?}", "a".repeat(LEAST - 3));
    assert_eq!(encode(small.as_bytes()).first(), Some(&JSON));
    assert_eq!(encode(format!("{small} ").as_bytes()).first(), Some(&BLOCK));
    // The digits of a number that is as good as random.
    let digits = (1..=20_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string());
    let random = digits.collect::<String>();
    assert!(random.len() > LEAST);
    assert_eq!(encode(random.as_bytes()).first(), Some(&JSON));
}

#[test]
fn a_length_that_cannot_be_is_refused() {
    let value = encode(TEXT.as_bytes());
    for len in [0, 1, 200, 1 << 16, 1 << 20, u32::MAX] {
        let lying = [&[BLOCK], &u32::to_le_bytes(len)[..], &value[5..]].concat();
        assert!(decode(&lying).is_err(), "{len}");
    }
    let most = (value.len() - 5) * MOST_OF_ONE;
    for (len, expected) in [(most, false), (most + 1, true)] {
        let len = u32::try_from(len).unwrap();
        let lying = [&[BLOCK], &len.to_le_bytes()[..], &value[5..]].concat();
        let before_room_is_made = matches!(inflated(&lying[1..]), Err(Unreadable::TooLong));
        assert_eq!(before_room_is_made, expected);
    }
}

/// As much as can be comes of such a block.
#[test]
fn what_is_very_regular_comes_back() {
    for len in [LEAST, 5_000, 70_000, 300_000] {
        check_comes_back(format!("{:?}", "a".repeat(len)).as_bytes());
    }
}

#[test]
fn what_is_cut_off_or_goes_on_is_refused() {
    let value = encode(TEXT.as_bytes());
    for len in 0..value.len() {
        let cut = json(&value[..len]);
        assert_eq!(cut, None, "{len} of {}", value.len());
    }
    for byte in 0..=u8::MAX {
        assert_eq!(json(&[&value[..], &[byte]].concat()), None, "{byte}");
    }
}

#[test]
fn an_id_or_a_time_that_is_cut_off_is_refused() {
    for short in [&b"\x01"[..], &[1; 16], b"\x02", b"\x02123456"] {
        assert!(matches!(written_out(short), Err(Unreadable::Cut)));
    }
    assert_eq!(written_out(&[2; 8]).unwrap().len(), 26);
    assert_eq!(written_out(&[255, 2, 255, 255, 255, 255, 255, 255, 255]).unwrap().len(), 27);
}

#[test]
fn padding_is_counted_and_stands_at_the_end() {
    let block = bytes(GOLDEN);
    let padded = encode_padded(TEXT.as_bytes(), block.len() + 300);
    let expected = [&[3, 42, 1], &block[1..], &[0; 298]].concat();
    assert_eq!(padded, expected);
    assert_eq!(decode(&padded[..4]).unwrap_err().to_string(), "its block is not readable");
}

#[test]
fn other_encodings_are_refused() {
    assert!(matches!(decode(b""), Err(Unreadable::Empty)));
    for encoding in (0..=u8::MAX).filter(|encoding| ![JSON, BLOCK, PADDED].contains(encoding)) {
        let refused = decode(&[encoding, b'{', b'}']).unwrap_err();
        assert!(matches!(refused, Unreadable::Encoding(other) if other == encoding));
    }
    // JSON that says that it is a block.
    assert!(decode(&[b"\x02", TEXT.as_bytes()].concat()).is_err());
}

fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        4 => "\\PC{0,12}",
        2 => "[0-9a-f]{8}-7000-8000-[0-9a-f]{12}",
        2 => any::<[u8; 16]>().prop_map(|id| Uuid::from_bytes(id).to_string()),
        2 => "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z",
        1 => "[\\x00-\\x1f\"\\\\]{0,6}",
        1 => "[a-z]{0,900}",
    ];
    let leaf = prop_oneof![
        4 => text.clone().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
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
    #[test]
    fn every_json_comes_back(json in any_json()) {
        check_comes_back(&serde_json::to_vec(&json).unwrap());
    }

    #[test]
    fn what_has_room_comes_back(json in any_json(), room in 0_usize..70_000) {
        let json = serde_json::to_vec(&json).unwrap();
        let (value, tight) = (encode_padded(&json, room), encode(&json));
        prop_assert_eq!(decode(&value).unwrap(), json.as_slice());
        let is_padded = value.first() == Some(&PADDED);
        prop_assert_eq!(value.len(), if is_padded { room } else { tight.len() });
        let fits = tight.len() + 2 <= room && room - tight.len() - 2 <= 0xffff;
        prop_assert_eq!(is_padded, fits && tight.first() == Some(&BLOCK));
    }

    /// A disk may change every bit. That some changes leave something that makes sense is for
    /// redb's checksums to notice.
    #[test]
    fn nothing_panics(
        json in any_json(),
        flips in proptest::collection::vec((any::<Index>(), 0_u8..8), 1..4),
        room in 0_usize..2_000,
    ) {
        let mut value = encode_padded(&serde_json::to_vec(&json).unwrap(), room);
        for (place, bit) in flips {
            let place = place.index(value.len());
            value[place] ^= 1 << bit;
        }
        let most = value.len() * MOST_OF_ONE * 4;
        prop_assert!(decode(&value).is_ok_and(|json| json.len() <= most) || decode(&value).is_err());
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), len in 0_u32..3_000) {
        let _ = decode(&bytes);
        let _ = decode(&[&[BLOCK], &len.to_le_bytes()[..], &bytes].concat());
        let _ = written_out(&bytes);
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digits).collect()
}

const DICTIONARY_LEN: usize = 3_404;
const DICTIONARY_SUM: u64 = 0x682d_64b4_7b73_7072;
const GOLDEN: &str = concat!(
    "02ac00000003c800f9020101a44803689f700080057b0308c3b35e580187024803be8146a45fa9010569",
    "010f7805050752008f8be6eb92f98d7d2c360020108eb205806e223a31322e357d",
);
