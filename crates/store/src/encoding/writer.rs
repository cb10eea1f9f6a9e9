//! Packing: a serializer that writes tokens.

use domain::packed;
use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use thiserror::Error;

use super::texts::{self, Seen};
use super::token::{
    AGAIN, COMMON_WORD, COMMON_WORDS, END, FALSE, FLOAT, ID, INTEGER, LIKE_ID, LIST, NEGATIVE,
    NULL, OBJECT, SHORT_TEXT, SHORT_TEXTS, SMALL_INTEGER, SMALL_INTEGERS, TEXT, TIME, TRUE, WORD,
};
use super::words;

/// The reason why a record cannot be written.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Unwritable(String);

impl serde::ser::Error for Unwritable {
    fn custom<T: std::fmt::Display>(reason: T) -> Self {
        Self(reason.to_string())
    }
}

/// Writes tokens behind the bytes that are there. Its values are those that JSON would have.
#[derive(Debug)]
pub(super) struct Writer {
    bytes: Vec<u8>,
    seen: Seen,
    awaited: Option<Awaited>,
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug)]
enum Awaited {
    Id,
    Time,
}

/// A list or an object that is not complete, and the number of its ends.
pub(super) struct Open<'w> {
    writer: &'w mut Writer,
    ends: usize,
}

impl Writer {
    pub(super) fn behind(bytes: Vec<u8>) -> Self {
        Self { bytes, seen: Seen::default(), awaited: None }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn open(&mut self, token: u8) -> Open<'_> {
        self.bytes.push(token);
        Open { writer: self, ends: 1 }
    }

    /// An object with one member, whose value is open.
    fn variant(&mut self, name: &str, token: u8) -> Open<'_> {
        self.bytes.push(OBJECT);
        self.text(name);
        self.bytes.push(token);
        Open { writer: self, ends: 2 }
    }

    fn number(&mut self, mut number: u64) {
        while number > 0x7f {
            self.bytes.push(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
            number >>= 7;
        }
        self.bytes.push(u8::try_from(number).unwrap_or_default());
    }

    fn integer(&mut self, integer: u64) {
        match u8::try_from(integer) {
            Ok(small) if small < SMALL_INTEGERS => self.bytes.push(SMALL_INTEGER + small),
            _ => {
                self.bytes.push(INTEGER);
                self.number(integer);
            }
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(word) = words::number(text) {
            self.word(word);
        } else {
            self.no_word(text);
        }
    }

    fn no_word(&mut self, text: &str) {
        if let Some(id) = texts::id(text) {
            self.id(id);
        } else if let Some(digits) = texts::time(text) {
            self.time(digits);
        } else {
            match u8::try_from(text.len()) {
                Ok(len) if len < SHORT_TEXTS => self.bytes.push(SHORT_TEXT + len),
                _ => {
                    self.bytes.push(TEXT);
                    self.number(u64::try_from(text.len()).unwrap_or(u64::MAX));
                }
            }
            self.bytes.extend_from_slice(text.as_bytes());
        }
    }

    fn word(&mut self, number: u16) {
        match u8::try_from(number) {
            Ok(number) if number < COMMON_WORDS => self.bytes.push(COMMON_WORD + number),
            _ => {
                let number = u8::try_from(number - u16::from(COMMON_WORDS));
                self.bytes.extend([WORD, number.unwrap_or_default()]);
            }
        }
    }

    fn id(&mut self, id: [u8; 16]) {
        let like = self.seen.likeness(id);
        let rest = id.get(like.map_or(0, |like| usize::from(like.equal))..).unwrap_or_default();
        match like {
            Some(like) => self.bytes.extend([LIKE_ID, like.byte()]),
            None => self.bytes.push(ID),
        }
        self.bytes.extend_from_slice(rest);
        if !rest.is_empty() {
            self.seen.add_id(id);
        }
    }

    fn time(&mut self, digits: texts::Digits) {
        if let Some(number) = self.seen.time_before(digits) {
            self.bytes.extend([AGAIN, number]);
        } else {
            self.bytes.push(TIME);
            self.bytes.extend(digits);
            self.seen.add_time(digits);
        }
    }
}

type Done = Result<(), Unwritable>;

impl<'w> Serializer for &'w mut Writer {
    type Ok = ();
    type Error = Unwritable;
    type SerializeSeq = Open<'w>;
    type SerializeTuple = Open<'w>;
    type SerializeTupleStruct = Open<'w>;
    type SerializeTupleVariant = Open<'w>;
    type SerializeMap = Open<'w>;
    type SerializeStruct = Open<'w>;
    type SerializeStructVariant = Open<'w>;

    fn serialize_bool(self, value: bool) -> Done {
        self.bytes.push(if value { TRUE } else { FALSE });
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Done {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Done {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Done {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Done {
        if let Ok(positive) = u64::try_from(value) {
            self.integer(positive);
        } else {
            self.bytes.push(NEGATIVE);
            self.number((!value).cast_unsigned());
        }
        Ok(())
    }

    fn serialize_u8(self, value: u8) -> Done {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Done {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Done {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Done {
        self.integer(value);
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Done {
        self.serialize_f64(value.into())
    }

    // JSON has no other numbers.
    fn serialize_f64(self, value: f64) -> Done {
        if !value.is_finite() {
            return self.serialize_unit();
        }
        self.bytes.push(FLOAT);
        self.bytes.extend(value.to_le_bytes());
        Ok(())
    }

    fn serialize_char(self, value: char) -> Done {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Done {
        self.awaited = None;
        self.text(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Done {
        match (self.awaited.take(), value.try_into(), value.try_into()) {
            (Some(Awaited::Id), Ok(id), _) => self.id(id),
            (Some(Awaited::Time), _, Ok(digits)) => self.time(digits),
            (Some(_) | None, ..) => return value.serialize(self),
        }
        Ok(())
    }

    fn serialize_none(self) -> Done {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Done {
        self.bytes.push(NULL);
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Done {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Done {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Done {
        self.awaited = match name {
            packed::ID => Some(Awaited::Id),
            packed::TIME => Some(Awaited::Time),
            _ => None,
        };
        value.serialize(self)
    }

    // Ids and times are bytes for formats that people do not read.
    fn is_human_readable(&self) -> bool {
        self.awaited.is_none()
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _number: u32,
        variant: &'static str,
        value: &T,
    ) -> Done {
        let mut open = self.serialize_map(None)?;
        open.serialize_entry(variant, value)?;
        SerializeMap::end(open)
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Open<'w>, Unwritable> {
        Ok(self.open(LIST))
    }

    fn serialize_tuple(self, _len: usize) -> Result<Open<'w>, Unwritable> {
        Ok(self.open(LIST))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Open<'w>, Unwritable> {
        Ok(self.open(LIST))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _number: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Open<'w>, Unwritable> {
        Ok(self.variant(variant, LIST))
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Open<'w>, Unwritable> {
        Ok(self.open(OBJECT))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Open<'w>, Unwritable> {
        Ok(self.open(OBJECT))
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _number: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Open<'w>, Unwritable> {
        Ok(self.variant(variant, OBJECT))
    }
}

impl Open<'_> {
    fn add<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        value.serialize(&mut *self.writer)
    }

    fn close(self) {
        self.writer.bytes.extend(std::iter::repeat_n(END, self.ends));
    }
}

macro_rules! lists {
    ($($list:ident: $add:ident,)+) => {
        $(impl $list for Open<'_> {
            type Ok = ();
            type Error = Unwritable;

            fn $add<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
                self.add(value)
            }

            fn end(self) -> Done {
                self.close();
                Ok(())
            }
        })+
    };
}

lists! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
}

macro_rules! structs {
    ($($object:ident,)+) => {
        $(impl $object for Open<'_> {
            type Ok = ();
            type Error = Unwritable;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Done {
                self.writer.text(name);
                self.add(value)
            }

            fn end(self) -> Done {
                self.close();
                Ok(())
            }
        })+
    };
}

structs! {
    SerializeStruct,
    SerializeStructVariant,
}

impl SerializeMap for Open<'_> {
    type Ok = ();
    type Error = Unwritable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done {
        self.add(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.add(value)
    }

    fn end(self) -> Done {
        self.close();
        Ok(())
    }
}
