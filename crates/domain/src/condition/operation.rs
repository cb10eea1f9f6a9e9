//! The compiled form of a rule: nodes, and the operators, each with as many arguments as it takes.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use crate::error::Reason;

/// A part of a rule.
#[derive(Debug)]
pub(super) enum Node {
    /// A value that stands for itself.
    Literal(Value),
    /// An array that holds an operator.
    List(Vec<Node>),
    /// An operator with its arguments.
    Operation(Operation),
}

/// An operator with its arguments.
#[derive(Debug)]
pub(super) enum Operation {
    /// What the data has at a path, or else something else.
    Variable(Box<[Node; 2]>),
    /// Which paths the data has nothing at.
    Missing(Vec<Node>),
    /// The same, unless it has something at enough of them.
    MissingSome(Box<[Node; 2]>),
    /// The value after the first condition that is met, or the last value.
    If(Vec<Node>),
    /// The first argument whose truth is this, or the last one.
    First(bool, Vec<Node>),
    /// Whether the truth of the argument is this.
    Truth(bool, Box<[Node; 1]>),
    /// A comparison, or arithmetic, of two.
    Binary(Binary, Box<[Node; 2]>),
    /// Whether the second argument is between the other two.
    Between(Order, Box<[Node; 3]>),
    /// A number, with the sign turned around.
    Negate(Box<[Node; 1]>),
    /// One number from any number of them.
    Fold(Fold, Vec<Node>),
    /// Texts, one after the other.
    Cat(Vec<Node>),
    /// A part of a text.
    Substring(Box<[Node; 3]>),
    /// Arrays, one after the other.
    Merge(Vec<Node>),
    /// Something about each item of an array.
    Scan(Scan, Box<[Node; 2]>),
    /// One value from all items of an array.
    Reduce(Box<[Node; 3]>),
}

/// What is made of two values.
#[derive(Clone, Copy, Debug)]
pub(super) enum Binary {
    /// Whether they are equal once converted, if the flag is set, or are not.
    Equal(bool),
    /// Whether they are the same, if the flag is set, or are not.
    Same(bool),
    /// Whether they are in order.
    Order(Order),
    /// Whether the first is in the second.
    In,
    /// The first minus the second.
    Subtract,
    /// The first divided by the second.
    Divide,
    /// What remains of the first.
    Remainder,
}

/// What order two values have to be in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// How one number is made of many.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fold {
    Add,
    Multiply,
    Max,
    Min,
}

/// What is found out about each item of an array.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scan {
    Map,
    Filter,
    All,
    None,
    Some,
}

impl Operation {
    /// The operation that `symbol` stands for, if these arguments can be its arguments.
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
    /// Whether this order is the one that two values are in, if they can be compared at all.
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
    /// What none at all come to.
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

// What may be left out is filled in, so that nobody has to ask later whether it is there.
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
