//! What `var` finds.

use serde_json::{Map, Value};

use super::datum::Datum;
use super::fuel::{Exhausted, Fuel};

/// The data that a part of a rule is about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scope<'v> {
    /// The data of the rule, or an item of an array in a `map` and the like.
    Data(&'v Value),
    /// An item of an array in a `reduce`, and what came of those before it.
    Step { current: &'v Value, accumulator: &'v Value },
}

impl<'v> Scope<'v> {
    /// What is at a path such as `order.items.0`, if there is anything.
    pub(super) fn find(self, path: &str, fuel: &mut Fuel) -> Result<Option<Datum<'v>>, Exhausted> {
        if path.is_empty() {
            return self.whole(fuel).map(Some);
        }
        fuel.read(path)?;
        let mut names = path.split('.');
        let Some(mut found) = self.root(&mut names) else { return Ok(None) };
        for name in names {
            fuel.spend(1)?;
            let Some(member) = member(found, name) else { return Ok(None) };
            found = member;
        }
        Ok(Some(Datum::from(found)))
    }

    fn whole(self, fuel: &mut Fuel) -> Result<Datum<'v>, Exhausted> {
        match self {
            Self::Data(data) => Ok(Datum::from(data)),
            Self::Step { current, accumulator } => {
                let mut map = Map::new();
                map.insert("current".into(), fuel.copy(current)?);
                map.insert("accumulator".into(), fuel.copy(accumulator)?);
                Ok(Value::Object(map).into())
            }
        }
    }

    fn root<'n>(self, names: &mut impl Iterator<Item = &'n str>) -> Option<&'v Value> {
        match self {
            Self::Data(data) => Some(data),
            Self::Step { current, accumulator } => match names.next()? {
                "current" => Some(current),
                "accumulator" => Some(accumulator),
                _ => None,
            },
        }
    }
}

fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    match value {
        Value::Object(map) => map.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}
