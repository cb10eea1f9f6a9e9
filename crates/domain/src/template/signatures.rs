//! Parameters of filters, tests and functions, and the check of literal arguments.

use super::filters::{FILTERS, TESTS, filter, test};
use super::lexer::{Kind as TokenKind, Token};
use super::moments;
use super::problem::{Problem, did_you_mean, meant};

/// Parameter of a filter, test or function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter {
    name: &'static str,
    kind: Kind,
    required: bool,
    place: Place,
}

// Form of an argument: by position, by name, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Position,
    Name,
    Both,
}

/// Values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any value.
    Any,
    /// Any number of values, with any names.
    Rest,
    /// Any number of values with names.
    Named,
    Text,
    Flag,
    /// Whole number.
    Whole,
    /// Whole number from the first to the second.
    From(i32, i32),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Format of a date or a time.
    Moment,
    /// Name of a time zone.
    Zone,
    /// Name of a filter. The other arguments are those of that filter.
    Filter,
    /// Name of a test. The other arguments are those of that test.
    Test,
}

/// Argument of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Argument<'s> {
    pub(super) name: Option<&'s str>,
    pub(super) literal: Option<Literal<'s>>,
    pub(super) at: usize,
}

/// Argument that is the same in each rendering.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Literal<'s> {
    Text(&'s str),
    Number(f64),
    Flag,
    None,
}

/// Returns a parameter that a call has by position.
pub(super) const fn needs(name: &'static str, kind: Kind) -> Parameter {
    Parameter { name, kind, required: true, place: Place::Position }
}

/// Returns a parameter that a call may have by position.
pub(super) const fn may(name: &'static str, kind: Kind) -> Parameter {
    Parameter { name, kind, required: false, place: Place::Position }
}

/// Returns a parameter that a call has by position or by name.
pub(super) const fn needs_either(name: &'static str, kind: Kind) -> Parameter {
    Parameter { name, kind, required: true, place: Place::Both }
}

/// Returns a parameter that a call may have by position or by name.
pub(super) const fn either(name: &'static str, kind: Kind) -> Parameter {
    Parameter { name, kind, required: false, place: Place::Both }
}

/// Returns a parameter that a call may have by name.
pub(super) const fn named(name: &'static str, kind: Kind) -> Parameter {
    Parameter { name, kind, required: false, place: Place::Name }
}

/// Call of a filter, test or function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Called<'c> {
    /// "filter", "test" or "function".
    pub(super) what: &'static str,
    pub(super) name: &'c str,
    /// Start, in bytes.
    pub(super) at: usize,
}

impl Called<'_> {
    /// Refuses unknown names of arguments, a wrong number of arguments, and wrong literals.
    pub(super) fn check(
        self,
        parameters: &[Parameter],
        arguments: &[Argument<'_>],
    ) -> Result<(), Problem> {
        let has = |kind| parameters.iter().any(|parameter| parameter.kind == kind);
        let (open, named) = (has(Kind::Rest), has(Kind::Named));
        let mut places = parameters.iter().filter(|parameter| parameter.place != Place::Name);
        let mut given: Vec<&str> = Vec::new();
        for (place, argument) in arguments.iter().enumerate() {
            let parameter = match argument.name {
                None => places.next(),
                Some(name) => parameters.iter().find(|one| one.is_named(name)),
            };
            let Some(parameter) = parameter else {
                if open || named && argument.name.is_some() {
                    continue;
                }
                return Err(self.superfluous(parameters, argument));
            };
            if given.contains(&parameter.name) {
                let what = format!("{self} is given `{}` twice", parameter.name);
                return Err(Problem::new(what, argument.at));
            }
            if argument.literal != Some(Literal::None) || parameter.required {
                given.push(parameter.name);
            }
            let others = arguments.get(place + 1..).unwrap_or_default();
            if self.check_literal(parameter, argument, others)? {
                return Ok(());
            }
        }
        self.check_absent(parameters, &given)
    }

    // Refuses a call without an argument that it needs.
    fn check_absent(self, parameters: &[Parameter], given: &[&str]) -> Result<(), Problem> {
        let absent =
            |parameter: &&Parameter| parameter.required && !given.contains(&parameter.name);
        match parameters.iter().find(absent) {
            // `map` takes the name of a filter, or that of an attribute.
            Some(parameter) if parameter.kind == Kind::Filter && given.contains(&"attribute") => {
                Ok(())
            }
            Some(parameter) => {
                Err(Problem::new(format!("{self} needs `{}`", parameter.name), self.at))
            }
            None => Ok(()),
        }
    }

    // Returns `true` if the other arguments belong to the filter or test that `argument` names.
    fn check_literal(
        self,
        parameter: &Parameter,
        argument: &Argument<'_>,
        others: &[Argument<'_>],
    ) -> Result<bool, Problem> {
        match (parameter.kind, argument.literal) {
            (Kind::Filter, Some(Literal::Text(name))) => {
                let known = FILTERS.iter().copied().filter(|name| *name != "map");
                let parameters = filter(name)
                    .filter(|_| name != "map")
                    .ok_or_else(|| Problem::unknown("filter", name, known, argument.at))?;
                Called { what: "filter", name, at: argument.at }.check(parameters, others)?;
            }
            (Kind::Test, Some(Literal::Text(name))) => {
                let parameters = test(name).ok_or_else(|| {
                    Problem::unknown("test", name, TESTS.iter().copied(), argument.at)
                })?;
                Called { what: "test", name, at: argument.at }.check(parameters, others)?;
            }
            // The name is a variable.
            (Kind::Filter | Kind::Test, None) => {}
            (kind, literal) => {
                // `none` stands for an absent argument.
                let absent = literal == Some(Literal::None) && !parameter.required;
                if !absent && literal.is_some_and(|literal| !kind.takes(literal)) {
                    let (name, wanted) = (parameter.name, kind.wanted());
                    let meant = kind.meant(literal).unwrap_or_default();
                    let what = format!("`{name}` of {self} must be {wanted}{meant}");
                    return Err(Problem::new(what, argument.at));
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn superfluous(self, parameters: &[Parameter], argument: &Argument<'_>) -> Problem {
        let what = if let Some(name) = argument.name {
            let known = parameters.iter().filter(|one| one.place != Place::Position);
            format!("{self} has no argument{}", meant(name, known.map(|one| one.name)))
        } else {
            let most = parameters.iter().filter(|one| one.place != Place::Name).count();
            let plural = if most == 1 { "" } else { "s" };
            format!("{self} takes at most {most} argument{plural}")
        };
        Problem::new(what, argument.at)
    }
}

impl std::fmt::Display for Called<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the {} `{}`", self.what, self.name)
    }
}

impl Parameter {
    fn is_named(&self, name: &str) -> bool {
        self.name == name && self.place != Place::Position
    }
}

impl Kind {
    fn takes(self, literal: Literal<'_>) -> bool {
        match (self, literal) {
            (Kind::Any | Kind::Rest | Kind::Named, _)
            | (Kind::Text, Literal::Text(_))
            | (Kind::Flag, Literal::Flag) => true,
            (Kind::Word(words), Literal::Text(text)) => words.contains(&text),
            (Kind::Moment, Literal::Text(text)) => moments::is_format(text),
            (Kind::Zone, Literal::Text(text)) => moments::is_zone(text),
            (Kind::Whole, Literal::Number(number)) => number.fract() == 0.0 && number.abs() < 9e18,
            (Kind::From(least, most), Literal::Number(number)) => {
                number.fract() == 0.0 && (f64::from(least)..=f64::from(most)).contains(&number)
            }
            _ => false,
        }
    }

    // Returns the known name that is closest to a literal.
    fn meant(self, literal: Option<Literal<'_>>) -> Option<String> {
        let (Kind::Zone, Some(Literal::Text(zone))) = (self, literal) else { return None };
        moments::nearest_zone(zone).map(did_you_mean)
    }

    fn wanted(self) -> String {
        match self {
            Kind::Any | Kind::Rest | Kind::Named => "a value".into(),
            Kind::Text => "a text".into(),
            Kind::Flag => "true or false".into(),
            Kind::Whole => "a whole number".into(),
            Kind::From(least, most) => format!("a whole number from {least} to {most}"),
            Kind::Word(words) => format!("one of: {}", words.join(", ")),
            Kind::Moment => "a format such as `%Y-%m-%d`".into(),
            Kind::Zone => "an IANA time zone".into(),
            Kind::Filter => "the name of a filter".into(),
            Kind::Test => "the name of a test".into(),
        }
    }
}

impl<'s> Literal<'s> {
    /// Returns the literal that consists of `tokens`, if it is a single text, number or constant.
    pub(super) fn of(tokens: &[Token<'s>]) -> Option<Self> {
        let (sign, token) = match tokens {
            [token] => (1.0, token),
            [minus, token] if minus.text == "-" && token.kind == TokenKind::Number => (-1.0, token),
            _ => return None,
        };
        match (token.kind, token.text) {
            (TokenKind::Text, text) => text.get(1..text.len() - 1).map(Literal::Text),
            (TokenKind::Number, text) => Some(Literal::Number(sign * text.parse::<f64>().ok()?)),
            (TokenKind::Name, "true" | "True" | "false" | "False") => Some(Literal::Flag),
            (TokenKind::Name, "none" | "None") => Some(Literal::None),
            (TokenKind::Name | TokenKind::Symbol, _) => None,
        }
    }
}
