//! Contexts that a call names, and the effect of a trigger on them.

use std::borrow::Borrow;

use super::{Context, ContextKey};
use crate::environment::Home;
use crate::ids::ContextId;
use crate::json::Object;
use crate::time::Timestamp;

/// Checked context of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedContext {
    /// Key: type and id.
    pub key: ContextKey,
    /// Data of a context that the call creates.
    pub data: Option<Object>,
}

/// Effect of a trigger on a context that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContextChange<C> {
    /// The context is there, and the trigger has no data for it.
    Kept(C),
    /// The context is there, and has the data of the trigger.
    Replaced {
        /// Context as it is there.
        before: C,
        /// Context with the data of the trigger.
        after: Context,
    },
    /// The context is not there, and is made.
    Created(Context),
}

impl NamedContext {
    /// Returns the effect of a trigger at `now`. `stored` is the context, if it is there. `id` is called only if
    /// it is not.
    pub fn change<C: Borrow<Context>>(
        &self,
        stored: Option<C>,
        home: &Home,
        id: impl FnOnce() -> ContextId,
        now: Timestamp,
    ) -> ContextChange<C> {
        match (stored, self.data.clone()) {
            (Some(stored), None) => ContextChange::Kept(stored),
            (Some(before), Some(data)) => {
                let after = before.borrow().with_data(data, now);
                ContextChange::Replaced { before, after }
            }
            (None, data) => {
                let (key, data) = (self.key.clone(), data.unwrap_or_default());
                ContextChange::Created(Context::new(id(), home, key, data, now))
            }
        }
    }
}

impl<C: From<Context>> ContextChange<C> {
    /// Returns the context as the trigger leaves it.
    pub fn into_after(self) -> C {
        match self {
            ContextChange::Kept(stored) => stored,
            ContextChange::Replaced { after, .. } | ContextChange::Created(after) => after.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sample;

    fn context(data: Object, created_at: i64) -> Context {
        let key = "tenant:acme".parse().unwrap();
        Context::new(sample::id(7), &sample::home(), key, data, sample::at(created_at))
    }

    /// One row per stored context and data of the trigger: the effect, and the context behind it.
    #[test]
    fn a_trigger_replaces_data_only_by_its_own() {
        let [free, paid] = ["free", "paid"].map(|plan| sample::object(json!({ "plan": plan })));
        let stored = || context(free.clone(), 1);
        let paying = Context { data: paid.clone(), updated_at: sample::at(9), ..stored() };
        let replaced =
            |after: &Context| ContextChange::Replaced { before: stored(), after: after.clone() };
        let created = |data: &Object| ContextChange::Created(context(data.clone(), 9));
        let none = Object::default();
        for (is_there, data, change, after) in [
            (true, None, ContextChange::Kept(stored()), stored()),
            (true, Some(&paid), replaced(&paying), paying.clone()),
            (true, Some(&free), replaced(&stored()), stored()),
            (false, None, created(&none), context(none.clone(), 9)),
            (false, Some(&paid), created(&paid), context(paid.clone(), 9)),
        ] {
            let named = NamedContext { key: stored().key, data: data.cloned() };
            let id = || {
                assert!(!is_there, "an id is made for a new context only");
                sample::id(7)
            };
            let found = named.change(is_there.then(stored), &sample::home(), id, sample::at(9));
            assert_eq!(found, change);
            assert_eq!(found.into_after(), after);
        }
    }
}
