//! Checks of filters that are saved, and the steps that they refer to.

use super::{FieldFilterPart, Filter, FilterChild, FilterSource};
use crate::error::{Invalid, Reason};
use crate::json::Object;
use crate::limits;
use crate::payload::fields;
use crate::template_data::{ConditionRoots, check_path};

/// Refuses filters that are nested too deeply, have too many parts, hold a value that no fact can
/// match, or refer to steps.
pub fn check(filters: &[Filter]) -> Result<(), Invalid> {
    check_parts(filters, |part| match part.on {
        FilterSource::Subscriber
        | FilterSource::Payload
        | FilterSource::Actor
        | FilterSource::Context => part.check(),
        FilterSource::Steps => {
            let known = FilterSource::ALL.iter().filter(|source| **source != FilterSource::Steps);
            let words = known.map(|source| source.as_str().to_owned()).collect();
            Err(Invalid::new("on", Reason::NotOneOf { words }))
        }
    })
}

/// Refuses the same filters, except those that refer to steps.
pub(crate) fn check_step(filters: &[Filter]) -> Result<(), Invalid> {
    check_parts(filters, FieldFilterPart::check)
}

/// Refuses filters that compare fields of the payload that its `schema` does not have.
pub(crate) fn check_payload(filters: &[Filter], schema: &Object) -> Result<(), Invalid> {
    check_parts(filters, |part| match part.on {
        FilterSource::Payload => {
            let checked = fields::check_path(&part.field, schema);
            checked.map_err(|reason| Invalid::new("field", reason))
        }
        FilterSource::Subscriber
        | FilterSource::Actor
        | FilterSource::Context
        | FilterSource::Steps => Ok(()),
    })
}

/// Returns the places of the comparisons with results of steps, and the paths that they refer to: the
/// name of a step, and the one behind it. Parts beyond the limits of [`check`] are left out.
pub(crate) fn step_paths(filters: &[Filter]) -> Vec<(String, &str, Option<&str>)> {
    let mut paths = Vec::new();
    let _ = walk(filters, &mut |place, part| {
        if part.on == FilterSource::Steps {
            let mut names = part.field.split('.');
            paths.push((place, names.next().unwrap_or_default(), names.next()));
        }
        Ok(())
    });
    paths
}

fn check_parts(
    filters: &[Filter],
    check: impl Fn(&FieldFilterPart) -> Result<(), Invalid>,
) -> Result<(), Invalid> {
    walk(filters, &mut |place, part| check(part).map_err(|invalid| invalid.within(place)))
}

// Calls `visit` with the place of each comparison, until it refuses one. Refuses filters beyond the
// limits.
fn walk<'f>(
    filters: &'f [Filter],
    visit: &mut dyn FnMut(String, &'f FieldFilterPart) -> Result<(), Invalid>,
) -> Result<(), Invalid> {
    // A list instead of recursion: the filters may be nested deeper than the stack allows.
    let place = |(index, group)| (format!("filters[{index}]"), group, 1);
    let mut open: Vec<_> = filters.iter().enumerate().map(place).collect();
    let mut parts = 0;
    while let Some((place, group, depth)) = open.pop() {
        if depth > Filter::MAX_DEPTH {
            return Err(Invalid::new("filters", Reason::TooDeep { max: Filter::MAX_DEPTH }));
        }
        parts += usize::from(group.children.is_empty());
        for (index, child) in group.children.iter().enumerate() {
            let place = format!("{place}.children[{index}]");
            match child {
                FilterChild::Group(group) => open.push((place, group, depth + 1)),
                FilterChild::Part(part) => {
                    parts += 1;
                    visit(place, part)?;
                }
            }
        }
        if parts > Filter::MAX_PARTS {
            return Err(Invalid::new("filters", Reason::TooMany { max: Filter::MAX_PARTS }));
        }
    }
    Ok(())
}

// A whole context is no fact, and its id has no parts.
fn check_context(field: &str) -> Result<(), Reason> {
    let variable = format!("context.{field}");
    let mut names = field.splitn(3, '.');
    let (kind, member, part) = (names.next().unwrap_or_default(), names.next(), names.next());
    if member.is_none() || (member == Some("id") && part.is_some()) {
        let suggestion = Some(format!("context.{kind}.id"));
        return Err(Reason::UnknownVariable { variable, suggestion });
    }
    check_path(&variable, ConditionRoots::Step)
}

impl FieldFilterPart {
    fn check(&self) -> Result<(), Invalid> {
        let Self { field, value, operator, on } = self;
        if field.is_empty() {
            return Err(Invalid::new("field", Reason::Empty));
        }
        limits::text("field", field, Self::MAX_FIELD)?;
        limits::text("value", value, Self::MAX_VALUE)?;
        let refused = |reason| Invalid::new("field", reason);
        match on {
            FilterSource::Subscriber | FilterSource::Actor => {
                check_path(&format!("{on}.{field}"), ConditionRoots::Step).map_err(refused)?;
            }
            FilterSource::Context => check_context(field).map_err(refused)?,
            FilterSource::Payload | FilterSource::Steps => {}
        }
        operator.check(value)
    }
}
