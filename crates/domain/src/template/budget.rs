//! Budget of a rendering.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use super::{Cost, Template};

/// Weight of a value without its text, in bytes.
pub(super) const NODE: usize = 64;

/// Weight of read values that costs as much as a weight of 1 that is made.
pub(super) const READS: usize = 4;

// Remaining weight.
struct Left(usize);

/// Returns the remaining weight.
pub(super) fn left(state: &mut State<'_, '_>) -> usize {
    state.get_or_insert_extension(Left(Template::MAX_WEIGHT)).0
}

/// Returns what the rendering has cost.
pub(super) fn cost(state: &mut State<'_, '_>) -> Cost {
    let fuel = state.fuel_levels().map_or(0, |(consumed, _)| consumed);
    Cost::new(fuel, Template::MAX_WEIGHT - left(state))
}

/// Refuses `weight` if it exceeds the remaining weight.
pub(super) fn allow(state: &mut State<'_, '_>, weight: usize) -> Result<(), Error> {
    if weight > left(state) { Err(too_large()) } else { Ok(()) }
}

/// Subtracts `weight` from the remaining weight.
pub(super) fn spend(state: &mut State<'_, '_>, weight: usize) -> Result<(), Error> {
    allow(state, weight)?;
    let left = state.get_or_insert_extension(Left(Template::MAX_WEIGHT));
    left.0 = left.0.saturating_sub(weight);
    Ok(())
}

/// Subtracts the price of reading `values` with all nested values. Single numbers cost nothing.
pub(super) fn read(state: &mut State<'_, '_>, values: &[Value]) -> Result<(), Error> {
    let most = left(state)
        .saturating_mul(READS)
        .min(Template::MAX_WEIGHT)
        .saturating_add(values.len() * NODE);
    let weight = weigh(values, most)?;
    spend(state, weight.saturating_sub(values.len() * NODE) / READS)
}

/// Subtracts the price of reading the texts among `values`, without nested values.
pub(super) fn read_texts(state: &mut State<'_, '_>, values: &[Value]) -> Result<(), Error> {
    let texts = values.iter().filter_map(Value::as_bytes);
    spend(state, texts.map(<[u8]>::len).sum::<usize>() / READS)
}

/// Subtracts the weight of `value`, and turns a lazy sequence into a list.
pub(super) fn keep(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    let weight = weigh([&value], left(state))?;
    spend(state, weight)?;
    if value.kind() == ValueKind::Iterable {
        return Ok(Value::from(value.try_iter()?.collect::<Vec<_>>()));
    }
    Ok(value)
}

/// Returns the weight of `values` with all nested values. A shared value counts each time.
///
/// Shared values weigh more than their memory. The time to print or compare values depends on the
/// weight.
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
        if depth == Template::MAX_VALUE_DEPTH {
            return Err(refusal(format!(
                "a value is nested more than {} levels deep",
                Template::MAX_VALUE_DEPTH
            )));
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

/// Returns the error for values that are too large.
pub(super) fn too_large() -> Error {
    refusal("the values that it makes or reads are too large")
}

/// Returns the error for a refused operation.
pub(super) fn refusal(detail: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail)
}
