//! JSON values without repeated members.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::path::Path;
use crate::error::{Invalid, Reason};

/// Reads a value, and records the first repeated name.
pub(super) struct Unique<'s> {
    pub(super) path: Path<'s>,
    pub(super) repeated: &'s mut Option<Invalid>,
}

impl Unique<'_> {
    fn inside<'s>(&'s mut self, path: Path<'s>) -> Unique<'s> {
        Unique { path, repeated: self.repeated }
    }
}

impl<'de> DeserializeSeed<'de> for Unique<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(Number::from_f64(number).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut from: A) -> Result<Value, A::Error> {
        let (path, mut items) = (self.path, Vec::new());
        loop {
            let item = self.inside(Path::Item(&path, items.len()));
            match from.next_element_seed(item)? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut from: A) -> Result<Value, A::Error> {
        let (path, mut members) = (self.path, Map::new());
        while let Some(name) = from.next_key::<String>()? {
            if members.contains_key(&name) {
                let field = Path::Member(&path, &name).named();
                *self.repeated = Some(Invalid::new(field, Reason::Repeated));
                return Err(A::Error::custom("a name is given twice"));
            }
            let value = from.next_value_seed(self.inside(Path::Member(&path, &name)))?;
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}
