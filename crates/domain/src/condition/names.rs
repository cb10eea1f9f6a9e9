//! Check of the variables of a rule.

use serde_json::Value;

use super::Rule;
use super::compile::{inside, operator};
use crate::error::{Invalid, Reason};
use crate::json::Object;
use crate::payload::fields::check_variable;
use crate::template_data::{ConditionRoots, check_path};

impl Rule {
    /// Refuses a rule with a variable that no data for conditions of preferences and subscriptions
    /// has. Rules that are saved are checked, and stored rules are not.
    #[doc(hidden)]
    pub fn check_names(&self) -> Result<(), Invalid> {
        self.check_paths(|path| check_path(path, ConditionRoots::Preference))
    }

    /// Refuses a rule with a variable that the data of a step does not have.
    pub(crate) fn check_step_names(&self) -> Result<(), Invalid> {
        self.check_paths(|path| check_path(path, ConditionRoots::Step))
    }

    /// Refuses a rule with a variable of the payload that its `schema` does not have.
    pub(crate) fn check_payload(&self, schema: &Object) -> Result<(), Invalid> {
        self.check_paths(|path| check_variable(path, schema))
    }

    /// Returns the literal paths of the variables, in their order, and whether a path is computed
    /// or names the whole data.
    pub(crate) fn paths(&self) -> (Vec<&str>, bool) {
        let (mut paths, mut any) = (Vec::new(), false);
        let _ = visit(self.source(), &mut |path| {
            match path {
                Value::String(path) if !path.is_empty() => paths.push(path.as_str()),
                Value::Number(_) => {}
                _ => any = true,
            }
            Ok(())
        });
        (paths, any)
    }

    fn check_paths(&self, check: impl Fn(&str) -> Result<(), Reason>) -> Result<(), Invalid> {
        let check = &mut |path: &Value| match path {
            Value::String(path) => check(path).map_err(|reason| Invalid::new("", reason)),
            // A path that is computed is not checked.
            _ => Ok(()),
        };
        visit(self.source(), check).map_err(|invalid| inside("condition", invalid))
    }
}

type Check<'c, 's> = &'c mut dyn FnMut(&'s Value) -> Result<(), Invalid>;

// Calls `check` with each path of a variable, until it refuses one. The depth of a rule is bounded.
fn visit<'s>(source: &'s Value, check: Check<'_, 's>) -> Result<(), Invalid> {
    if let Value::Array(items) = source {
        return each(items, &mut |item| visit(item, check));
    }
    let Some((symbol, arguments)) = operator(source) else { return Ok(()) };
    let visited = match (symbol, arguments) {
        ("var", Value::Array(items)) => {
            first(items, check).and_then(|()| each(items, &mut |item| visit(item, check)))
        }
        ("var", path) => check(path).and_then(|()| visit(path, check)),
        ("missing", paths) => names(paths, check).and_then(|()| visit(paths, check)),
        // The first argument is the number of paths that are needed.
        ("missing_some", Value::Array(items)) => {
            let listed = items.get(1).map_or(Ok(()), |paths| at(1, names(paths, check)));
            listed.and_then(|()| each(items, &mut |item| visit(item, check)))
        }
        // Expressions for items see the item instead of the data.
        ("map" | "filter" | "all" | "none" | "some" | "reduce", Value::Array(items)) => {
            let sees_item = |index: &usize| *index == 1;
            let mut items = items.iter().enumerate().filter(|(index, _)| !sees_item(index));
            items.try_for_each(|(index, item)| at(index, visit(item, check)))
        }
        (_, arguments) => visit(arguments, check),
    };
    visited.map_err(|invalid| inside(&format!(".{symbol}"), invalid))
}

fn names<'s>(value: &'s Value, check: Check<'_, 's>) -> Result<(), Invalid> {
    match value {
        Value::Array(items) => each(items, &mut |item| names(item, check)),
        path => check(path),
    }
}

// `var` without arguments is the whole data.
fn first<'s>(items: &'s [Value], check: Check<'_, 's>) -> Result<(), Invalid> {
    match items.first() {
        Some(first) => at(0, check(first)),
        None => check(&Value::Null),
    }
}

fn each<'s>(items: &'s [Value], check: Check<'_, 's>) -> Result<(), Invalid> {
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
                json!({ "!": { "missing_some": [1, "subscriber.emial"] } }),
                "`condition.!.missing_some[1]` has no variable `subscriber.emial`; did you mean `subscriber.email`?",
            ),
            (
                json!({ "missing_some": [{ "var": "xyzzy" }, ["payload.x"]] }),
                "`condition.missing_some[0].var` has no variable `xyzzy`",
            ),
            (
                json!({ "var": "context.tenant.ids" }),
                "`condition.var` has no variable `context.tenant.ids`; did you mean `context.tenant.id`?",
            ),
            (json!({ "var": "steps" }), "`condition.var` has no variable `steps`"),
            (
                json!({ "var": "actor.emial" }),
                "`condition.var` has no variable `actor.emial`; did you mean `actor.email`?",
            ),
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
            json!({ "var": "actor" }),
            json!({ "var": "actor.data.emial" }),
            json!({ "var": "context.tenant.data.plan" }),
            json!({ "var": { "cat": ["subscriber.", "emial"] } }),
            json!({ "some": [{ "var": "payload.items" }, { "==": [{ "var": "emial" }, 1] }] }),
            json!({ "reduce": [{ "var": "payload.n" }, { "var": "current" }, 0] }),
            json!({ "==": [{ "var": "a", "missing": "b" }, "subscriber.emial"] }),
            json!({ "missing_some": [1, { "merge": [["subscriber.emial"]] }] }),
            json!({ "missing_some": ["1", "payload.x"] }),
        ] {
            assert_eq!(Rule::new(source.clone()).unwrap().check_names(), Ok(()), "{source}");
        }
    }
}
