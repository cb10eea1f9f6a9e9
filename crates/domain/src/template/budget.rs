//! What a rendering may make on its way.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

/// What all values that a rendering makes may weigh together: about 4 MiB of text.
pub(super) const LIMIT: usize = 4 * 1024 * 1024;
/// The deepest nesting of a value.
const MAX_DEPTH: usize = 96;
/// What a value weighs besides its text, in bytes.
const NODE: usize = 64;

// What is left of the limit.
struct Left(usize);

/// What the values that a rendering makes may still weigh.
pub(super) fn left(state: &mut State<'_, '_>) -> usize {
    state.get_or_insert_extension(Left(LIMIT)).0
}

/// Refuses `weight`, if less than that is left.
pub(super) fn allow(state: &mut State<'_, '_>, weight: usize) -> Result<(), Error> {
    if weight > left(state) { Err(too_large()) } else { Ok(()) }
}

/// Takes `weight` from what is left.
pub(super) fn spend(state: &mut State<'_, '_>, weight: usize) -> Result<(), Error> {
    allow(state, weight)?;
    let left = state.get_or_insert_extension(Left(LIMIT));
    left.0 = left.0.saturating_sub(weight);
    Ok(())
}

/// Takes the weight of `value` from what is left, and makes a list of what would be made item by
/// item later.
pub(super) fn keep(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    let weight = weigh([&value], left(state))?;
    spend(state, weight)?;
    if value.kind() == ValueKind::Iterable {
        return Ok(Value::from(value.try_iter()?.collect::<Vec<_>>()));
    }
    Ok(value)
}

/// What `values` weigh, with all that is in them, as often as it is in them.
///
/// Values may share what is in them, so that they weigh more than they take. Whatever writes or
/// compares them takes as long as they weigh.
pub(super) fn weigh<'v>(
    values: impl IntoIterator<Item = &'v Value>,
    limit: usize,
) -> Result<usize, Error> {
    let mut weight = 0_usize;
    let mut open: Vec<(Value, usize)> = values.into_iter().map(|one| (one.clone(), 0)).collect();
    while let Some((value, depth)) = open.pop() {
        let text = value.as_bytes().map_or(0, <[u8]>::len);
        weight = weight.saturating_add(NODE).saturating_add(text);
        if weight > limit {
            return Err(too_large());
        }
        let map = value.kind() == ValueKind::Map;
        if !map && !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
            continue;
        }
        if depth == MAX_DEPTH {
            return Err(refusal(format!("a value is nested more than {MAX_DEPTH} levels deep")));
        }
        let most = (limit - weight) / NODE + 1;
        for item in value.try_iter()?.take(most) {
            if map {
                open.push((value.get_item(&item)?, depth + 1));
            }
            open.push((item, depth + 1));
        }
    }
    Ok(weight)
}

/// The values are too large.
pub(super) fn too_large() -> Error {
    refusal("the values that it makes are too large")
}

/// What the template asks for is refused.
pub(super) fn refusal(detail: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail)
}
