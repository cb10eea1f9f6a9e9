//! Places in lists and texts: slices and ranges. Every bound has a result or an error.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, State};

use super::Template;
use super::budget::{self, keep, refusal};

/// Arithmetic sequence of `len` numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    first: i128,
    step: i128,
    len: usize,
}

/// Bounds of a slice, as in Python.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
    pub(super) step: i64,
}

impl Steps {
    /// Returns the numbers from `first` up to `end`, or down to it, without `end`.
    fn new(first: i128, end: i128, step: i128) -> Self {
        let distance = if step > 0 { end - first } else { first - end };
        let len = match step.unsigned_abs() {
            0 => 0,
            step => u128::try_from(distance).unwrap_or(0).div_ceil(step),
        };
        Self { first, step, len: usize::try_from(len).unwrap_or(usize::MAX) }
    }

    fn at(self, place: usize) -> i128 {
        i128::try_from(place)
            .ok()
            .and_then(|place| self.step.checked_mul(place)?.checked_add(self.first))
            .unwrap_or(self.first)
    }
}

impl Bounds {
    /// Returns the places of the slice in a list of `len` items.
    pub(super) fn places(self, len: usize) -> impl Iterator<Item = usize> {
        let len = i128::try_from(len).unwrap_or(i128::MAX);
        let (lowest, highest) = if self.step > 0 { (0, len) } else { (-1, len - 1) };
        let place = |bound: i64| {
            let bound = i128::from(bound);
            (if bound < 0 { bound + len } else { bound }).clamp(lowest, highest)
        };
        let (first, last) = if self.step > 0 { (lowest, highest) } else { (highest, lowest) };
        let first = self.start.map_or(first, place);
        let steps = Steps::new(first, self.end.map_or(last, place), self.step.into());
        (0..steps.len).filter_map(move |place| usize::try_from(steps.at(place)).ok())
    }
}

/// `a[b:c]` and `a[b:c:d]`: the slice of a text or list. That of an undefined value is empty.
pub(super) fn slice(
    state: &mut State<'_, '_>,
    value: &Value,
    bounds: &[Value],
) -> Result<Value, Error> {
    let bound = |place: usize| bounds.get(place).map_or(Ok(None), whole);
    let bounds = Bounds { start: bound(0)?, end: bound(1)?, step: bound(2)?.unwrap_or(1) };
    if bounds.step == 0 {
        return Err(refusal("a slice has a step of 0"));
    }
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(Value::from(Vec::<Value>::new())),
        ValueKind::String => slice_text(state, value, bounds),
        ValueKind::Seq | ValueKind::Iterable => slice_list(state, value, bounds),
        kind => Err(refusal(format!("a value of type {kind} has no slices"))),
    }
}

fn slice_text(state: &mut State<'_, '_>, value: &Value, bounds: Bounds) -> Result<Value, Error> {
    budget::read_texts(state, std::slice::from_ref(value))?;
    let characters: Vec<char> = value.as_str().unwrap_or_default().chars().collect();
    let places = bounds.places(characters.len());
    let text: String = places.filter_map(|place| characters.get(place)).collect();
    keep(state, Value::from(text))
}

// A list gives single items. An iterator is read as a whole.
fn slice_list(state: &mut State<'_, '_>, value: &Value, bounds: Bounds) -> Result<Value, Error> {
    let items: Result<Vec<Value>, Error> = if value.kind() == ValueKind::Seq {
        let places = bounds.places(value.len().unwrap_or(0));
        places.map(|place| value.get_item_by_index(place)).collect()
    } else {
        budget::read(state, std::slice::from_ref(value))?;
        let items: Vec<Value> = value.try_iter()?.collect();
        Ok(bounds.places(items.len()).filter_map(|place| items.get(place).cloned()).collect())
    };
    keep(state, Value::from(items?))
}

/// `range(a)`, `range(a, b)` and `range(a, b, step)`: at most 100,000 numbers.
pub(super) fn range(first: i64, second: Option<i64>, step: Option<i64>) -> Result<Value, Error> {
    let (first, end) = second.map_or((0, first), |end| (first, end));
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(refusal("a range has a step of 0"));
    }
    let steps = Steps::new(first.into(), end.into(), step.into());
    if steps.len > Template::MAX_RANGE {
        return Err(refusal(format!("a range has more than {} numbers", Template::MAX_RANGE)));
    }
    Ok(Value::make_iterable(move || {
        (0..steps.len).map(move |place| i64::try_from(steps.at(place)).unwrap_or(i64::MAX))
    }))
}

fn whole(value: &Value) -> Result<Option<i64>, Error> {
    if value.is_none() {
        return Ok(None);
    }
    let number = i64::try_from(value.clone());
    number.map(Some).map_err(|_| refusal("the bounds of a slice are whole numbers"))
}
