//! Check of the variables of a rule.

use serde_json::Value;

use super::Rule;
use super::compile::{inside, operator};
use crate::error::Invalid;
use crate::known::check_path;

impl Rule {
    /// Refuses a rule with a variable that no data for conditions has. Rules that are saved are
    /// checked, and stored rules are not.
    #[doc(hidden)]
    pub fn check_names(&self) -> Result<(), Invalid> {
        check(self.source()).map_err(|invalid| inside("condition", invalid))
    }
}

// The depth of a rule is bounded.
fn check(source: &Value) -> Result<(), Invalid> {
    if let Value::Array(items) = source {
        return each(items, check);
    }
    let Some((symbol, arguments)) = operator(source) else { return Ok(()) };
    let checked = match (symbol, arguments) {
        ("var", Value::Array(items)) => first(items, name).and_then(|()| each(items, check)),
        ("var", path) => name(path).and_then(|()| check(path)),
        ("missing", paths) => names(paths).and_then(|()| check(paths)),
        ("missing_some", Value::Array(items)) => {
            each(items, |item| if item.is_array() { names(item) } else { Ok(()) })
                .and_then(|()| each(items, check))
        }
        // Expressions for items see the item instead of the data.
        ("map" | "filter" | "all" | "none" | "some" | "reduce", Value::Array(items)) => {
            let sees_item = |index: &usize| *index == 1;
            let mut items = items.iter().enumerate().filter(|(index, _)| !sees_item(index));
            items.try_for_each(|(index, item)| at(index, check(item)))
        }
        (_, arguments) => check(arguments),
    };
    checked.map_err(|invalid| inside(&format!(".{symbol}"), invalid))
}

// Refuses the path in `value`. A path that is computed is not checked.
fn name(value: &Value) -> Result<(), Invalid> {
    let Value::String(path) = value else { return Ok(()) };
    check_path(path).map_err(|reason| Invalid::new("", reason))
}

fn names(value: &Value) -> Result<(), Invalid> {
    match value {
        Value::Array(items) => each(items, names),
        path => name(path),
    }
}

fn first(items: &[Value], check: impl Fn(&Value) -> Result<(), Invalid>) -> Result<(), Invalid> {
    items.first().map_or(Ok(()), |first| at(0, check(first)))
}

fn each(items: &[Value], check: impl Fn(&Value) -> Result<(), Invalid>) -> Result<(), Invalid> {
    items.iter().enumerate().try_for_each(|(index, item)| at(index, check(item)))
}

fn at(index: usize, checked: Result<(), Invalid>) -> Result<(), Invalid> {
    checked.map_err(|invalid| inside(&format!("[{index}]"), invalid))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// One row per rule: its problem, if it has one.
    #[test]
    fn variables_of_no_data_are_refused() {
        for (source, problem) in [
            (
                json!({ "var": "subscriber.emial" }),
                "`condition.var` has no variable `subscriber.emial`; did you mean `subscriber.email`?",
            ),
            (
                json!({ "and": [true, { "==": [{ "var": ["paylod.x", 1] }, 2] }] }),
                "`condition.and[1].==[0].var[0]` has no variable `paylod.x`; did you mean `payload`?",
            ),
            (
                json!({ "missing": ["payload.x", "subscriber.emial"] }),
                "`condition.missing[1]` has no variable `subscriber.emial`; did you mean `subscriber.email`?",
            ),
            (
                json!({ "missing_some": [1, ["payload.x", "workflow.nam"]] }),
                "`condition.missing_some[1][1]` has no variable `workflow.nam`; did you mean `workflow.name`?",
            ),
            (
                json!({ "var": "context.tenant.ids" }),
                "`condition.var` has no variable `context.tenant.ids`; did you mean `context.tenant.id`?",
            ),
            (json!({ "var": "steps" }), "`condition.var` has no variable `steps`"),
            (
                json!({ "all": [{ "var": "xyzzy" }, true] }),
                "`condition.all[0].var` has no variable `xyzzy`",
            ),
            (
                json!({ "reduce": [[], { "var": "current" }, { "var": "current" }] }),
                "`condition.reduce[2].var` has no variable `current`",
            ),
        ] {
            let refused = Rule::new(source).unwrap().check_names().unwrap_err();
            assert_eq!(refused.to_string(), problem);
        }
    }

    #[test]
    fn variables_that_may_have_data_are_accepted() {
        for source in [
            json!({ "var": "" }),
            json!({ "var": [] }),
            json!({ "var": 1 }),
            json!({ "var": "1.x" }),
            json!({ "var": "payload.emial" }),
            json!({ "var": "subscriber.data.emial" }),
            json!({ "var": "context.tenant.data.plan" }),
            json!({ "var": { "cat": ["subscriber.", "emial"] } }),
            json!({ "some": [{ "var": "payload.items" }, { "==": [{ "var": "emial" }, 1] }] }),
            json!({ "reduce": [{ "var": "payload.n" }, { "var": "current" }, 0] }),
            json!({ "==": [{ "var": "a", "missing": "b" }, "subscriber.emial"] }),
        ] {
            assert_eq!(Rule::new(source.clone()).unwrap().check_names(), Ok(()), "{source}");
        }
    }
}
