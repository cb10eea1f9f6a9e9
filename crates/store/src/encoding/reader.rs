//! Reading packed content: a deserializer over tokens.

use domain::packed;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::Unreadable;
use super::texts::{self, Likeness, Seen};
use super::token::{
    AGAIN, COMMON_WORD, COMMON_WORDS, END, FALSE, FLOAT, ID, INTEGER, LIKE_ID, LIST, NEGATIVE,
    NULL, OBJECT, SHORT_TEXT, SHORT_TEXTS, SMALL_INTEGER, SMALL_INTEGERS, TEXT, TIME, TRUE, WORD,
};
use super::words;

/// Number of lists and objects that may lie in each other, as in JSON.
const DEEPEST: usize = 127;

/// Reads tokens from the start of bytes.
#[derive(Debug)]
pub(super) struct Reader<'de> {
    rest: &'de [u8],
    seen: Seen,
    depth: usize,
}

/// The elements of a list, or the members of an object, up to the end.
struct Elements<'r, 'de> {
    reader: &'r mut Reader<'de>,
    is_over: bool,
}

impl<'de> Reader<'de> {
    pub(super) fn of(bytes: &'de [u8]) -> Self {
        Self { rest: bytes, seen: Seen::default(), depth: 0 }
    }

    /// Checks that nothing is left.
    pub(super) fn end(&self) -> Result<(), Unreadable> {
        if self.rest.is_empty() { Ok(()) } else { Err(Unreadable::Rest) }
    }

    fn byte(&mut self) -> Result<u8, Unreadable> {
        let (byte, rest) = self.rest.split_first().ok_or(Unreadable::Cut)?;
        self.rest = rest;
        Ok(*byte)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Unreadable::Cut)?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn bytes(&mut self, len: usize) -> Result<&'de [u8], Unreadable> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(Unreadable::Cut)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn text(&mut self, len: usize) -> Result<&'de str, Unreadable> {
        std::str::from_utf8(self.bytes(len)?).map_err(|_| Unreadable::Text)
    }

    fn number(&mut self) -> Result<u64, Unreadable> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte <= 0x7f {
                return Ok(number);
            }
        }
        Err(Unreadable::Number)
    }

    fn len(&mut self) -> Result<usize, Unreadable> {
        usize::try_from(self.number()?).map_err(|_| Unreadable::Number)
    }

    fn word(number: u16) -> Result<&'static str, Unreadable> {
        words::word(number).ok_or(Unreadable::Word(number))
    }

    fn id(&mut self) -> Result<[u8; 16], Unreadable> {
        let id = self.array()?;
        self.seen.add_id(id);
        Ok(id)
    }

    fn like_id(&mut self) -> Result<[u8; 16], Unreadable> {
        let Likeness { of, equal } = Likeness::of_byte(self.byte()?);
        let mut id = self.seen.id(of).ok_or(Unreadable::Earlier(of))?;
        let rest = id.get_mut(usize::from(equal)..).unwrap_or_default();
        rest.copy_from_slice(self.bytes(rest.len())?);
        if !rest.is_empty() {
            self.seen.add_id(id);
        }
        Ok(id)
    }

    fn time(&mut self) -> Result<texts::Digits, Unreadable> {
        let digits = self.array()?;
        self.seen.add_time(digits);
        Ok(digits)
    }

    fn time_again(&mut self) -> Result<texts::Digits, Unreadable> {
        let number = self.byte()?;
        self.seen.time(number).ok_or(Unreadable::Earlier(number))
    }

    /// Reads a value, and makes nothing of it. Later ids and times may name its own.
    fn skip(&mut self) -> Result<(), Unreadable> {
        let mut open = 0_usize;
        loop {
            match self.byte()? {
                END if open > 0 => open -= 1,
                LIST | OBJECT => open += 1,
                len @ SHORT_TEXT..COMMON_WORD => drop(self.bytes((len - SHORT_TEXT).into())?),
                NULL | FALSE | TRUE | SMALL_INTEGER..SHORT_TEXT | COMMON_WORD.. => {}
                INTEGER | NEGATIVE => drop(self.number()?),
                FLOAT => drop(self.bytes(size_of::<f64>())?),
                TEXT => drop(self.len().and_then(|len| self.bytes(len))?),
                ID => drop(self.id()?),
                LIKE_ID => drop(self.like_id()?),
                TIME => drop(self.time()?),
                AGAIN | WORD => drop(self.byte()?),
                other => return Err(Unreadable::Token(other)),
            }
            if open == 0 {
                return Ok(());
            }
        }
    }

    /// The elements behind the token of a list or an object, with `visit`.
    fn elements<T>(
        &mut self,
        visit: impl FnOnce(&mut Elements<'_, 'de>) -> Result<T, Unreadable>,
    ) -> Result<T, Unreadable> {
        self.enter()?;
        let mut elements = Elements { reader: self, is_over: false };
        let visited = visit(&mut elements)?;
        let is_over = elements.is_over;
        self.leave(is_over)?;
        Ok(visited)
    }

    fn enter(&mut self) -> Result<(), Unreadable> {
        if self.depth >= DEEPEST {
            return Err(Unreadable::TooDeep);
        }
        self.depth += 1;
        Ok(())
    }

    // `is_over` is `true` if the token of the end was read.
    fn leave(&mut self, is_over: bool) -> Result<(), Unreadable> {
        if !is_over && self.byte()? != END {
            return Err(Unreadable::custom("a list or an object has more than it may have"));
        }
        self.depth -= 1;
        Ok(())
    }
}

fn ascii<'t, V: Visitor<'t>>(text: &[u8], visitor: V) -> Result<V::Value, Unreadable> {
    visitor.visit_str(std::str::from_utf8(text).map_err(|_| Unreadable::Text)?)
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Unreadable;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unreadable> {
        const SMALL_INTEGERS_END: u8 = SMALL_INTEGER + (SMALL_INTEGERS - 1);
        const SHORT_TEXTS_END: u8 = SHORT_TEXT + (SHORT_TEXTS - 1);
        match self.byte()? {
            word @ COMMON_WORD.. => {
                visitor.visit_borrowed_str(Reader::word((word - COMMON_WORD).into())?)
            }
            len @ SHORT_TEXT..=SHORT_TEXTS_END => {
                visitor.visit_borrowed_str(self.text((len - SHORT_TEXT).into())?)
            }
            integer @ SMALL_INTEGER..=SMALL_INTEGERS_END => {
                visitor.visit_u64((integer - SMALL_INTEGER).into())
            }
            NULL => visitor.visit_unit(),
            FALSE => visitor.visit_bool(false),
            TRUE => visitor.visit_bool(true),
            LIST => self.elements(|elements| visitor.visit_seq(elements)),
            OBJECT => self.elements(|elements| visitor.visit_map(elements)),
            INTEGER => visitor.visit_u64(self.number()?),
            NEGATIVE => {
                let number = i64::try_from(self.number()?).map_err(|_| Unreadable::Number)?;
                visitor.visit_i64(!number)
            }
            FLOAT => visitor.visit_f64(f64::from_le_bytes(self.array()?)),
            TEXT => {
                let len = self.len()?;
                visitor.visit_borrowed_str(self.text(len)?)
            }
            ID => ascii(&texts::id_text(self.id()?), visitor),
            LIKE_ID => ascii(&texts::id_text(self.like_id()?), visitor),
            TIME => ascii(&texts::time_text(self.time()?), visitor),
            AGAIN => ascii(&texts::time_text(self.time_again()?), visitor),
            WORD => {
                let number = u16::from(self.byte()?) + u16::from(COMMON_WORDS);
                visitor.visit_borrowed_str(Reader::word(number)?)
            }
            other => Err(Unreadable::Token(other)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unreadable> {
        if self.rest.first() == Some(&NULL) {
            self.byte()?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unreadable> {
        let Some((token, rest)) = self.rest.split_first() else { return Err(Unreadable::Cut) };
        match (name, *token) {
            (packed::ID, ID) => {
                self.rest = rest;
                visitor.visit_bytes(&self.id()?)
            }
            (packed::ID, LIKE_ID) => {
                self.rest = rest;
                visitor.visit_bytes(&self.like_id()?)
            }
            (packed::TIME, TIME) => {
                self.rest = rest;
                visitor.visit_bytes(&self.time()?)
            }
            (packed::TIME, AGAIN) => {
                self.rest = rest;
                visitor.visit_bytes(&self.time_again()?)
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unreadable> {
        if self.rest.first() != Some(&OBJECT) {
            return visitor.visit_enum(Unit(self));
        }
        self.byte()?;
        self.elements(|elements| visitor.visit_enum(&mut *elements))
    }

    // Names and values of fields that a record does not have, or no more.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unreadable> {
        self.skip()?;
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier
    }
}

impl Elements<'_, '_> {
    /// Returns `true` if there is another element.
    fn has_more(&mut self) -> Result<bool, Unreadable> {
        if !self.is_over && self.reader.rest.first() == Some(&END) {
            self.reader.byte()?;
            self.is_over = true;
        }
        Ok(!self.is_over)
    }
}

impl<'de> SeqAccess<'de> for &mut Elements<'_, 'de> {
    type Error = Unreadable;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Unreadable> {
        let more = self.has_more()?;
        more.then(|| seed.deserialize(&mut *self.reader)).transpose()
    }
}

impl<'de> MapAccess<'de> for &mut Elements<'_, 'de> {
    type Error = Unreadable;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Unreadable> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Unreadable> {
        seed.deserialize(&mut *self.reader)
    }
}

/// A variant that is a text.
struct Unit<'r, 'de>(&'r mut Reader<'de>);

impl<'de> EnumAccess<'de> for Unit<'_, 'de> {
    type Error = Unreadable;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self), Unreadable> {
        Ok((seed.deserialize(&mut *self.0)?, self))
    }
}

impl<'de> VariantAccess<'de> for Unit<'_, 'de> {
    type Error = Unreadable;

    fn unit_variant(self) -> Result<(), Unreadable> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Unreadable> {
        Err(Unreadable::invalid_type(Unexpected::UnitVariant, &"newtype variant"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Unreadable> {
        Err(Unreadable::invalid_type(Unexpected::UnitVariant, &"tuple variant"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Unreadable> {
        Err(Unreadable::invalid_type(Unexpected::UnitVariant, &"struct variant"))
    }
}

impl<'de> EnumAccess<'de> for &mut Elements<'_, 'de> {
    type Error = Unreadable;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self), Unreadable> {
        Ok((seed.deserialize(&mut *self.reader)?, self))
    }
}

impl<'de> VariantAccess<'de> for &mut Elements<'_, 'de> {
    type Error = Unreadable;

    fn unit_variant(self) -> Result<(), Unreadable> {
        serde::Deserialize::deserialize(&mut *self.reader)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, Unreadable> {
        seed.deserialize(&mut *self.reader)
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, Unreadable> {
        self.reader.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unreadable> {
        self.reader.deserialize_any(visitor)
    }
}
