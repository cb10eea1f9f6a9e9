//! Lookup of `var`.

use serde_json::{Map, Value};

use super::datum::Datum;
use super::fuel::{Exhausted, Fuel};
use crate::json;

/// Data of a node.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scope<'v> {
    /// Data of the rule, or the current item of `map` and its relatives.
    Data(&'v Value),
    /// Current item of `reduce`, and the result for the items before it.
    Step { current: &'v Value, accumulator: &'v Value },
}

impl<'v> Scope<'v> {
    /// Returns the value at a path such as `order.items.0`. Returns `None` if there is none.
    pub(super) fn find(self, path: &str, fuel: &mut Fuel) -> Result<Option<Datum<'v>>, Exhausted> {
        if path.is_empty() {
            return self.whole(fuel).map(Some);
        }
        fuel.read(path)?;
        let mut names = path.split('.');
        let Some(mut found) = self.root(&mut names) else { return Ok(None) };
        for name in names {
            fuel.spend(1)?;
            let Some(member) = json::member(found, name) else { return Ok(None) };
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
