//! Compiler from the source of a rule to a tree that can be evaluated.

use serde_json::Value;

use super::Rule;
use super::operation::{Node, Operation};
use crate::error::{Invalid, Reason};

/// Compiles a rule. The caller has checked the depth, since the compiler recurses.
pub(super) fn compile(source: &Value) -> Result<Node, Invalid> {
    if count(source) > Rule::MAX_NODES {
        return Err(Invalid::new("condition", Reason::TooMany { max: Rule::MAX_NODES }));
    }
    let (symbol, arguments) = operator(source).ok_or_else(|| {
        Invalid::new("condition", Reason::malformed("a JSON object with one operator"))
    })?;
    operation(symbol, arguments).map_err(|invalid| inside("condition", invalid))
}

fn count(source: &Value) -> usize {
    1 + match source {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

pub(super) fn operator(source: &Value) -> Option<(&str, &Value)> {
    let mut members = source.as_object()?.iter();
    let (symbol, arguments) = members.next()?;
    members.next().is_none().then_some((symbol, arguments))
}

fn node(source: &Value) -> Result<Node, Invalid> {
    if let Some((symbol, arguments)) = operator(source) {
        return operation(symbol, arguments);
    }
    let Value::Array(items) = source else { return Ok(Node::Literal(source.clone())) };
    let nodes = nodes(items)?;
    if nodes.iter().all(|node| matches!(node, Node::Literal(_))) {
        return Ok(Node::Literal(source.clone()));
    }
    Ok(Node::List(nodes))
}

fn nodes(items: &[Value]) -> Result<Vec<Node>, Invalid> {
    let place = |index| move |invalid| inside(&format!("[{index}]"), invalid);
    items.iter().enumerate().map(|(index, item)| node(item).map_err(place(index))).collect()
}

fn operation(symbol: &str, arguments: &Value) -> Result<Node, Invalid> {
    let place = format!(".{symbol}");
    let nodes = match arguments {
        Value::Array(items) => nodes(items),
        only => node(only).map(|node| vec![node]),
    };
    let nodes = nodes.map_err(|invalid| inside(&place, invalid))?;
    match Operation::new(symbol, nodes) {
        Ok(operation) => Ok(Node::Operation(operation)),
        // The error names the object that holds the unknown operator.
        Err(reason @ Reason::UnknownOperator { .. }) => Err(Invalid::new("", reason)),
        Err(reason) => Err(Invalid::new(place, reason)),
    }
}

// `Invalid::within` joins with a dot, but an index follows here without one.
pub(super) fn inside(place: &str, invalid: Invalid) -> Invalid {
    let field = format!("{place}{}", invalid.field);
    invalid.named(field)
}
