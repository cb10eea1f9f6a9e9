//! Texts that are UUIDs and times, as fewer bytes, and those that a value had before.

use uuid::Uuid;

/// A UUID as text.
pub(super) type IdText = [u8; 36];

/// A time as text.
pub(super) type TimeText = [u8; 24];

pub(super) use domain::packed::Digits;

/// Number of UUIDs, and of times, that later ones can name.
const NAMED: usize = 16;

/// The different UUIDs and times of a value so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    ids: Few<[u8; 16]>,
    times: Few<Digits>,
}

#[derive(Debug, Default)]
struct Few<T> {
    values: [T; NAMED],
    len: usize,
}

/// The start that a UUID has in common with an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Likeness {
    /// Number of the earlier one.
    pub(super) of: u8,
    /// Number of equal bytes: 1 to 16.
    pub(super) equal: u8,
}

/// The UUID that `text` is. One that is written otherwise than [`id_text`] does is not taken for one.
pub(super) fn id(text: &str) -> Option<[u8; 16]> {
    let text: &IdText = text.as_bytes().try_into().ok()?;
    let id = Uuid::try_parse_ascii(text).ok()?.into_bytes();
    (id_text(id) == *text).then_some(id)
}

pub(super) fn id_text(id: [u8; 16]) -> IdText {
    let mut text = IdText::from([0; 36]);
    Uuid::from_bytes(id).hyphenated().encode_lower(&mut text);
    text
}

/// A time whose digits are all zero.
const MIDNIGHT: TimeText = *b"0000-00-00T00:00:00.000Z";

/// The digits of the time that `text` is.
pub(super) fn time(text: &str) -> Option<Digits> {
    let text: &TimeText = text.as_bytes().try_into().ok()?;
    let mut number = 0_u64;
    for (byte, form) in text.iter().zip(MIDNIGHT) {
        match form {
            b'0' if byte.is_ascii_digit() => number = number * 10 + u64::from(byte - b'0'),
            other if other == *byte && other != b'0' => {}
            _ => return None,
        }
    }
    match number.to_be_bytes() {
        [0, digits @ ..] => Some(digits),
        _ => None,
    }
}

pub(super) fn time_text(digits: Digits) -> TimeText {
    let mut left = digits.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let mut text = MIDNIGHT;
    for byte in text.iter_mut().rev().filter(|byte| **byte == b'0') {
        *byte += u8::try_from(left % 10).unwrap_or_default();
        left /= 10;
    }
    text
}

impl Seen {
    /// The earlier UUID that `id` is most like, if fewer bytes say so.
    pub(super) fn likeness(&self, id: [u8; 16]) -> Option<Likeness> {
        let number = u128::from_be_bytes(id);
        let equal = |other: &[u8; 16]| (u128::from_be_bytes(*other) ^ number).leading_zeros() / 8;
        let all = (0..).zip(self.ids.all().iter().map(equal));
        let (of, equal) = all.max_by_key(|(_, equal)| *equal).filter(|(_, equal)| *equal > 1)?;
        Some(Likeness { of, equal: u8::try_from(equal).ok()? })
    }

    pub(super) fn id(&self, number: u8) -> Option<[u8; 16]> {
        self.ids.all().get(usize::from(number)).copied()
    }

    pub(super) fn add_id(&mut self, id: [u8; 16]) {
        self.ids.add(id);
    }

    /// The number of an earlier time with these digits.
    pub(super) fn time_before(&self, digits: Digits) -> Option<u8> {
        let number = self.times.all().iter().position(|other| *other == digits)?;
        u8::try_from(number).ok()
    }

    pub(super) fn time(&self, number: u8) -> Option<Digits> {
        self.times.all().get(usize::from(number)).copied()
    }

    pub(super) fn add_time(&mut self, digits: Digits) {
        self.times.add(digits);
    }
}

impl<T> Few<T> {
    fn all(&self) -> &[T] {
        self.values.get(..self.len).unwrap_or_default()
    }

    fn add(&mut self, value: T) {
        if let Some(free) = self.values.get_mut(self.len) {
            *free = value;
            self.len += 1;
        }
    }
}

impl Likeness {
    pub(super) fn byte(self) -> u8 {
        self.of << 4 | (self.equal - 1)
    }

    pub(super) fn of_byte(byte: u8) -> Self {
        Self { of: byte >> 4, equal: (byte & 15) + 1 }
    }
}
