//! Compiled form of a rule: nodes, and operators with a fixed number of arguments each.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::Rule;
use crate::error::Reason;

/// Node of a rule.
#[derive(Debug)]
pub(super) enum Node {
    /// Literal value.
    Literal(Value),
    /// Array with an operator somewhere inside.
    List(Vec<Node>),
    /// Operator with its arguments.
    Operation(Operation),
}

/// Operator with its arguments.
#[derive(Debug)]
pub(super) enum Operation {
    /// `var`: the value at a path, or a default.
    Variable(Box<[Node; 2]>),
    /// `missing`: the paths that the data does not have.
    Missing(Vec<Node>),
    /// `missing_some`: the same, or an empty array if the data has enough of the paths.
    MissingSome(Box<[Node; 2]>),
    /// `if`: the value after the first condition that holds, or the last value.
    If(Vec<Node>),
    /// `or` and `and`: the first argument with this truth value, or the last argument.
    First(bool, Vec<Node>),
    /// `!!` and `!`: `true` if the argument has this truth value.
    Truth(bool, Box<[Node; 1]>),
    /// Comparison or arithmetic of two values.
    Binary(Binary, Box<[Node; 2]>),
    /// `<` and `<=` of three values: `true` if the second lies between the others.
    Between(Order, Box<[Node; 3]>),
    /// `-` of one number.
    Negate(Box<[Node; 1]>),
    /// One number from any count of numbers.
    Fold(Fold, Vec<Node>),
    /// `cat`: the concatenated texts.
    Cat(Vec<Node>),
    /// `substr`: a part of a text.
    Substring(Box<[Node; 3]>),
    /// `merge`: the concatenated arrays.
    Merge(Vec<Node>),
    /// Operator that evaluates an expression for each item of an array.
    Scan(Scan, Box<[Node; 2]>),
    /// `reduce`: one value from all items of an array.
    Reduce(Box<[Node; 3]>),
}

/// Operators on two values.
#[derive(Clone, Copy, Debug)]
pub(super) enum Binary {
    /// `==` if the flag is `true`, `!=` otherwise.
    Equal(bool),
    /// `===` if the flag is `true`, `!==` otherwise.
    Same(bool),
    /// `<`, `<=`, `>` or `>=`.
    Order(Order),
    /// `in`: `true` if the first is a part of the second.
    In,
    /// `-` of two numbers.
    Subtract,
    /// `/` of two numbers.
    Divide,
    /// `%` of two numbers.
    Remainder,
}

/// Required order of two values.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// Operators that fold numbers into one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fold {
    Add,
    Multiply,
    Max,
    Min,
}

/// Operators that evaluate an expression for each item of an array.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scan {
    Map,
    Filter,
    All,
    None,
    Some,
}

impl Rule {
    /// Operators of conditions.
    #[doc(hidden)]
    pub const OPERATORS: &[&str] = &[
        "var",
        "missing",
        "missing_some",
        "if",
        "?:",
        "==",
        "===",
        "!=",
        "!==",
        "!",
        "!!",
        "or",
        "and",
        ">",
        ">=",
        "<",
        "<=",
        "max",
        "min",
        "+",
        "-",
        "*",
        "/",
        "%",
        "map",
        "reduce",
        "filter",
        "all",
        "none",
        "some",
        "merge",
        "in",
        "cat",
        "substr",
    ];
}

impl Operation {
    /// Returns the operator of `symbol`. Refuses an unknown symbol and a wrong number of arguments.
    pub(super) fn new(symbol: &str, arguments: Vec<Node>) -> Result<Self, Reason> {
        Ok(match symbol {
            "var" => Self::Variable(filled(0, arguments, Value::Null)?),
            "missing" => Self::Missing(arguments),
            "missing_some" => Self::MissingSome(exactly(arguments)?),
            "if" | "?:" => Self::If(arguments),
            "and" => Self::First(false, some(arguments)?),
            "or" => Self::First(true, some(arguments)?),
            "!" => Self::Truth(false, exactly(arguments)?),
            "!!" => Self::Truth(true, exactly(arguments)?),
            "==" => Self::Binary(Binary::Equal(true), exactly(arguments)?),
            "!=" => Self::Binary(Binary::Equal(false), exactly(arguments)?),
            "===" => Self::Binary(Binary::Same(true), exactly(arguments)?),
            "!==" => Self::Binary(Binary::Same(false), exactly(arguments)?),
            ">" => Self::Binary(Binary::Order(Order::Greater), exactly(arguments)?),
            ">=" => Self::Binary(Binary::Order(Order::GreaterEqual), exactly(arguments)?),
            "<" => Self::ordered(Order::Less, arguments)?,
            "<=" => Self::ordered(Order::LessEqual, arguments)?,
            "in" => Self::Binary(Binary::In, exactly(arguments)?),
            "+" => Self::Fold(Fold::Add, arguments),
            "*" => Self::Fold(Fold::Multiply, some(arguments)?),
            "max" => Self::Fold(Fold::Max, some(arguments)?),
            "min" => Self::Fold(Fold::Min, some(arguments)?),
            "-" => Self::subtracted(arguments)?,
            "/" => Self::Binary(Binary::Divide, exactly(arguments)?),
            "%" => Self::Binary(Binary::Remainder, exactly(arguments)?),
            "cat" => Self::Cat(arguments),
            "substr" => Self::Substring(filled(2, arguments, i64::MAX)?),
            "merge" => Self::Merge(arguments),
            "map" => Self::Scan(Scan::Map, exactly(arguments)?),
            "filter" => Self::Scan(Scan::Filter, exactly(arguments)?),
            "all" => Self::Scan(Scan::All, exactly(arguments)?),
            "none" => Self::Scan(Scan::None, exactly(arguments)?),
            "some" => Self::Scan(Scan::Some, exactly(arguments)?),
            "reduce" => Self::Reduce(filled(2, arguments, Value::Null)?),
            unknown => return Err(Reason::UnknownOperator { operator: unknown.into() }),
        })
    }

    fn subtracted(arguments: Vec<Node>) -> Result<Self, Reason> {
        Ok(match arguments.len() {
            1 => Self::Negate(exactly(arguments)?),
            2 => Self::Binary(Binary::Subtract, exactly(arguments)?),
            _ => return Err(expected("1 or 2 arguments")),
        })
    }

    fn ordered(order: Order, arguments: Vec<Node>) -> Result<Self, Reason> {
        Ok(match arguments.len() {
            2 => Self::Binary(Binary::Order(order), exactly(arguments)?),
            3 => Self::Between(order, exactly(arguments)?),
            _ => return Err(expected("2 or 3 arguments")),
        })
    }
}

impl Order {
    /// Returns `true` if `ordering` satisfies this order. `None` satisfies no order.
    pub(super) fn is(self, ordering: Option<Ordering>) -> bool {
        ordering.is_some_and(match self {
            Self::Less => Ordering::is_lt,
            Self::LessEqual => Ordering::is_le,
            Self::Greater => Ordering::is_gt,
            Self::GreaterEqual => Ordering::is_ge,
        })
    }
}

impl Fold {
    /// Returns the result for an empty list of numbers.
    pub(super) fn start(self) -> f64 {
        match self {
            Self::Add => 0.0,
            Self::Multiply => 1.0,
            Self::Max => f64::NEG_INFINITY,
            Self::Min => f64::INFINITY,
        }
    }
}

fn exactly<const N: usize>(arguments: Vec<Node>) -> Result<Box<[Node; N]>, Reason> {
    arguments.try_into().map_err(|_| match N {
        1 => expected("1 argument"),
        _ => expected(format!("{N} arguments")),
    })
}

// Missing arguments become defaults here, so that an evaluation finds all arguments.
fn filled<const N: usize>(
    least: usize,
    mut arguments: Vec<Node>,
    filler: impl Into<Value>,
) -> Result<Box<[Node; N]>, Reason> {
    if !(least..=N).contains(&arguments.len()) {
        return Err(match least {
            0 => expected(format!("at most {N} arguments")),
            least => expected(format!("{least} or {N} arguments")),
        });
    }
    let filler = filler.into();
    arguments.resize_with(N, || Node::Literal(filler.clone()));
    exactly(arguments)
}

fn some(arguments: Vec<Node>) -> Result<Vec<Node>, Reason> {
    if arguments.is_empty() { Err(expected("at least 1 argument")) } else { Ok(arguments) }
}

fn expected(expected: impl Into<Cow<'static, str>>) -> Reason {
    Reason::Arguments { expected: expected.into() }
}
