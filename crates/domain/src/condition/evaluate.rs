//! Evaluation of compiled rules.

use std::slice;

use serde_json::Value;

use super::datum::Datum;
use super::fuel::{Exhausted, Fuel};
use super::number;
use super::operation::Node;
use super::operation::{Binary, Fold, Operation, Order, Scan};
use super::scope::Scope;

/// Returns `true` if the rule evaluates to `true`.
pub(super) fn holds(root: &Node, data: &Value) -> bool {
    let datum = Evaluation { fuel: Fuel::FULL }.datum(root, Scope::Data(data));
    datum.is_ok_and(|datum| *datum.json() == Value::Bool(true))
}

/// Returns `true` if the rule evaluates to a truthy value.
pub(super) fn is_truthy(root: &Node, data: &Value) -> bool {
    let datum = Evaluation { fuel: Fuel::FULL }.datum(root, Scope::Data(data));
    datum.is_ok_and(|datum| datum.is_truthy())
}

/// Returns the value of the rule. Returns `null` if the evaluation runs out of fuel.
pub(super) fn evaluate(root: &Node, data: &Value) -> Value {
    let value = Evaluation { fuel: Fuel::FULL }.value(root, Scope::Data(data));
    value.unwrap_or(Value::Null)
}

struct Evaluation {
    fuel: Fuel,
}

type Result<T> = std::result::Result<T, Exhausted>;

impl Evaluation {
    fn datum<'v>(&mut self, node: &'v Node, scope: Scope<'v>) -> Result<Datum<'v>> {
        self.fuel.spend(1)?;
        match node {
            Node::Literal(value) => Ok(value.into()),
            Node::List(nodes) => Ok(Value::Array(self.values(nodes, scope)?).into()),
            Node::Operation(operation) => self.operation(operation, scope),
        }
    }

    fn operation<'v>(&mut self, operation: &'v Operation, scope: Scope<'v>) -> Result<Datum<'v>> {
        match operation {
            Operation::Variable(nodes) => self.variable(nodes, scope),
            Operation::Missing(nodes) => self.missing(nodes, scope),
            Operation::MissingSome(nodes) => self.missing_some(nodes, scope),
            Operation::If(nodes) => self.branch(nodes, scope),
            Operation::First(truth, nodes) => self.first(*truth, nodes, scope),
            Operation::Truth(truth, nodes) => {
                let [datum] = self.data(nodes, scope)?;
                Ok((datum.is_truthy() == *truth).into())
            }
            Operation::Binary(binary, nodes) => {
                let [first, second] = self.data(nodes, scope)?;
                self.binary(*binary, &first, &second)
            }
            Operation::Between(order, nodes) => self.between(*order, nodes, scope),
            Operation::Negate(nodes) => {
                let [datum] = self.data(nodes, scope)?;
                Ok((-datum.number(&mut self.fuel)?).into())
            }
            Operation::Fold(fold, nodes) => self.fold(*fold, nodes, scope),
            Operation::Cat(nodes) => self.cat(nodes, scope),
            Operation::Substring(nodes) => self.substring(nodes, scope),
            Operation::Merge(nodes) => self.merge(nodes, scope),
            Operation::Scan(scan, nodes) => self.scan(*scan, nodes, scope),
            Operation::Reduce(nodes) => self.reduce(nodes, scope),
        }
    }

    fn data<'v, const N: usize>(
        &mut self,
        nodes: &'v [Node; N],
        scope: Scope<'v>,
    ) -> Result<[Datum<'v>; N]> {
        let mut data = [const { Datum::NULL }; N];
        for (datum, node) in data.iter_mut().zip(nodes) {
            *datum = self.datum(node, scope)?;
        }
        Ok(data)
    }

    fn value<'v>(&mut self, node: &'v Node, scope: Scope<'v>) -> Result<Value> {
        self.datum(node, scope)?.into_json(&mut self.fuel)
    }

    fn values<'v>(&mut self, nodes: &'v [Node], scope: Scope<'v>) -> Result<Vec<Value>> {
        nodes.iter().map(|node| self.value(node, scope)).collect()
    }

    fn is_truthy<'v>(&mut self, node: &'v Node, scope: Scope<'v>) -> Result<bool> {
        Ok(self.datum(node, scope)?.is_truthy())
    }
}

/// Operators on data.
impl Evaluation {
    fn variable<'v>(&mut self, nodes: &'v [Node; 2], scope: Scope<'v>) -> Result<Datum<'v>> {
        let [path, fallback] = nodes;
        let path = self.datum(path, scope)?;
        match self.find(path.json(), scope)? {
            Some(found) => Ok(found),
            None => self.datum(fallback, scope),
        }
    }

    fn find<'v>(&mut self, path: &Value, scope: Scope<'v>) -> Result<Option<Datum<'v>>> {
        match path {
            Value::Null => scope.find("", &mut self.fuel),
            Value::String(path) => scope.find(path, &mut self.fuel),
            path => {
                let path = Datum::from(path);
                scope.find(&path.text(&mut self.fuel)?, &mut self.fuel)
            }
        }
    }

    fn missing<'v>(&mut self, nodes: &'v [Node], scope: Scope<'v>) -> Result<Datum<'v>> {
        let paths = self.values(nodes, scope)?;
        let missing = match paths.as_slice() {
            [Value::Array(paths), ..] => self.missing_of(paths, scope),
            paths => self.missing_of(paths, scope),
        };
        Ok(Value::Array(missing?).into())
    }

    fn missing_some<'v>(&mut self, nodes: &'v [Node; 2], scope: Scope<'v>) -> Result<Datum<'v>> {
        let [needed, paths] = self.data(nodes, scope)?;
        let paths = paths.json();
        let paths = paths.as_array().map_or(slice::from_ref(paths), Vec::as_slice);
        let missing = self.missing_of(paths, scope)?;
        let found = paths.len() - missing.len();
        let needed = needed.number(&mut self.fuel)?;
        let is_enough = number::count(found) >= needed;
        Ok(Value::Array(if is_enough { Vec::new() } else { missing }).into())
    }

    fn missing_of(&mut self, paths: &[Value], scope: Scope<'_>) -> Result<Vec<Value>> {
        let mut missing = Vec::new();
        for path in paths {
            self.fuel.spend(1)?;
            let found = self.find(path, scope)?.unwrap_or(Datum::NULL);
            if matches!(found.json(), Value::Null) || found.json() == "" {
                missing.push(self.fuel.copy(path)?);
            }
        }
        Ok(missing)
    }
}

/// Operators on booleans and numbers.
impl Evaluation {
    fn branch<'v>(&mut self, nodes: &'v [Node], scope: Scope<'v>) -> Result<Datum<'v>> {
        let mut rest = nodes;
        while let [condition, value, others @ ..] = rest {
            if self.is_truthy(condition, scope)? {
                return self.datum(value, scope);
            }
            rest = others;
        }
        rest.first().map_or(Ok(Datum::NULL), |value| self.datum(value, scope))
    }

    fn first<'v>(&mut self, truth: bool, nodes: &'v [Node], scope: Scope<'v>) -> Result<Datum<'v>> {
        let mut last = Datum::NULL;
        for node in nodes {
            last = self.datum(node, scope)?;
            if last.is_truthy() == truth {
                break;
            }
        }
        Ok(last)
    }

    fn binary(
        &mut self,
        binary: Binary,
        first: &Datum<'_>,
        second: &Datum<'_>,
    ) -> Result<Datum<'static>> {
        let fuel = &mut self.fuel;
        Ok(match binary {
            Binary::Equal(truth) => (first.equals(second, fuel)? == truth).into(),
            Binary::Same(truth) => (first.is(second, fuel)? == truth).into(),
            Binary::Order(order) => order.is(first.order(second, fuel)?).into(),
            Binary::In => first.is_in(second, fuel)?.into(),
            Binary::Subtract => (first.number(fuel)? - second.number(fuel)?).into(),
            Binary::Divide => (first.number(fuel)? / second.number(fuel)?).into(),
            Binary::Remainder => (first.number(fuel)? % second.number(fuel)?).into(),
        })
    }

    fn between<'v>(
        &mut self,
        order: Order,
        nodes: &'v [Node; 3],
        scope: Scope<'v>,
    ) -> Result<Datum<'v>> {
        let [low, middle, high] = self.data(nodes, scope)?;
        let is_above = order.is(low.order(&middle, &mut self.fuel)?);
        Ok((is_above && order.is(middle.order(&high, &mut self.fuel)?)).into())
    }

    fn fold<'v>(&mut self, fold: Fold, nodes: &'v [Node], scope: Scope<'v>) -> Result<Datum<'v>> {
        let mut result = fold.start();
        for node in nodes {
            let datum = self.datum(node, scope)?;
            result = match fold {
                Fold::Add => result + datum.leading_number(&mut self.fuel)?,
                Fold::Multiply => result * datum.leading_number(&mut self.fuel)?,
                Fold::Max => number::max(result, datum.number(&mut self.fuel)?),
                Fold::Min => -number::max(-result, -datum.number(&mut self.fuel)?),
            };
        }
        Ok(result.into())
    }
}

/// Operators on texts and arrays.
impl Evaluation {
    fn cat<'v>(&mut self, nodes: &'v [Node], scope: Scope<'v>) -> Result<Datum<'v>> {
        let mut text = String::new();
        for node in nodes {
            let part = self.datum(node, scope)?;
            if !part.is_null() {
                text.push_str(&part.text(&mut self.fuel)?);
            }
        }
        Ok(Value::String(text).into())
    }

    fn substring<'v>(&mut self, nodes: &'v [Node; 3], scope: Scope<'v>) -> Result<Datum<'v>> {
        let [text, start, count] = self.data(nodes, scope)?;
        let text = text.text(&mut self.fuel)?;
        let length = text.chars().count();
        let start = number::portion(start.number(&mut self.fuel)?, length);
        let count = number::portion(count.number(&mut self.fuel)?, length - start);
        Ok(Value::String(text.chars().skip(start).take(count).collect()).into())
    }

    fn merge<'v>(&mut self, nodes: &'v [Node], scope: Scope<'v>) -> Result<Datum<'v>> {
        let mut merged = Vec::new();
        for node in nodes {
            match self.value(node, scope)? {
                Value::Array(items) => {
                    self.fuel.spend(items.len())?;
                    merged.extend(items);
                }
                other => merged.push(other),
            }
        }
        Ok(Value::Array(merged).into())
    }

    fn scan<'v>(
        &mut self,
        scan: Scan,
        [list, logic]: &'v [Node; 2],
        scope: Scope<'v>,
    ) -> Result<Datum<'v>> {
        let list = self.datum(list, scope)?;
        let items = list.items();
        Ok(match scan {
            Scan::Map => Value::Array(self.map(items, logic)?).into(),
            Scan::Filter => Value::Array(self.filter(items, logic)?).into(),
            Scan::All => (!items.is_empty() && !self.any(false, items, logic)?).into(),
            Scan::None => (!self.any(true, items, logic)?).into(),
            Scan::Some => self.any(true, items, logic)?.into(),
        })
    }

    fn map(&mut self, items: &[Value], logic: &Node) -> Result<Vec<Value>> {
        items.iter().map(|item| self.value(logic, Scope::Data(item))).collect()
    }

    fn filter(&mut self, items: &[Value], logic: &Node) -> Result<Vec<Value>> {
        let mut kept = Vec::new();
        for item in items {
            if self.is_truthy(logic, Scope::Data(item))? {
                kept.push(self.fuel.copy(item)?);
            }
        }
        Ok(kept)
    }

    fn any(&mut self, truth: bool, items: &[Value], logic: &Node) -> Result<bool> {
        for item in items {
            if self.is_truthy(logic, Scope::Data(item))? == truth {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn reduce<'v>(
        &mut self,
        [list, logic, initial]: &'v [Node; 3],
        scope: Scope<'v>,
    ) -> Result<Datum<'v>> {
        let list = self.datum(list, scope)?;
        let mut accumulator = self.value(initial, scope)?;
        for current in list.items() {
            accumulator = self.value(logic, Scope::Step { current, accumulator: &accumulator })?;
        }
        Ok(accumulator.into())
    }
}
