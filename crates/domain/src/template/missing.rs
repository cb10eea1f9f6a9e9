//! Variables without a value, where a template prints them.

use std::sync::Arc;

use minijinja::value::{Object, ObjectRepr, Value};
use minijinja::{Error, State};

use super::MissingVariables;
use super::budget::refusal;
use super::edit::WATCH;
use super::roots::Roots;

/// A variable that is absent or `null`, with its text in the template. The filter `default` gives it a value,
/// and other filters return it as it is.
#[derive(Debug)]
struct Missing(String);

impl Object for Missing {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }
}

/// Returns a value that is printed, perhaps behind filters.
pub(super) fn shown(value: Value, name: &str) -> Value {
    let is_absent = value.is_undefined() || value.is_none();
    if is_absent { Value::from_object(Missing(name.to_owned())) } else { value }
}

/// Returns `true` if `value` is a variable without a value.
pub(super) fn is_missing(value: &Value) -> bool {
    value.downcast_object_ref::<Missing>().is_some()
}

/// Returns the text in place of a variable without a value, or the error that the workflow wants. Returns
/// `None` for any other value.
pub(super) fn in_place_of(state: &State<'_, '_>, value: &Value) -> Option<Result<String, Error>> {
    let Missing(name) = value.downcast_object_ref()?;
    let watch = state.lookup(WATCH);
    let roots = watch.as_ref().and_then(|watch| watch.downcast_object_ref::<Roots>());
    Some(match roots.map_or(MissingVariables::Empty, |roots| roots.variables.missing) {
        MissingVariables::Empty => Ok(String::new()),
        MissingVariables::Marker => Ok(format!("[missing: {name}]")),
        MissingVariables::Error => {
            roots.inspect(|roots| roots.variables.notes.is_without(name));
            Err(refusal("a variable is missing"))
        }
    })
}
