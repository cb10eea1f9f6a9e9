//! Constructors and setters of contexts.

use super::{
    ContextCreate, ContextFilter, ContextKey, ContextPart, ContextPayload, ContextQuery,
    ContextSet, ContextUpdate, ContextValue, RichContext,
};
use crate::convert::IntoChecked;
use crate::error::Invalid;
use crate::json::Object;
use crate::setters::{page_setters, setters};

impl ContextCreate {
    /// Returns a context without data, by type and id.
    pub fn new(kind: impl Into<String>, id: impl Into<String>) -> Result<Self, Invalid> {
        Ok(Self { key: ContextKey::new(kind, id)?, data: Object::default() })
    }
}

setters! { ContextCreate:
    /// Sets the data: at most 64 KiB of JSON text.
    data: checked(Object, "data");
}

impl ContextUpdate {
    /// Returns an update to `data`: at most 64 KiB of JSON text.
    pub fn new(data: impl IntoChecked<Object>) -> Result<Self, Invalid> {
        Ok(Self { data: data.into_checked().map_err(|invalid| invalid.named("data"))? })
    }
}

setters! { ContextQuery:
    /// Lists the contexts of this type.
    kind: checked(ContextPart, "type");
    /// Lists the contexts with this id, of any type.
    id: checked(ContextPart, "id");
}

page_setters!(ContextQuery);

impl ContextPayload {
    /// Adds a context to the payload: a type, with an id or a [`RichContext`]. Refuses a type that the
    /// payload has.
    pub fn with(
        mut self,
        kind: impl Into<String>,
        value: impl Into<ContextValue>,
    ) -> Result<Self, Invalid> {
        let (kind, value) = (kind.into(), value.into());
        value.check(&kind)?;
        if self.0.contains_key(&kind) {
            return Err(Self::repeated(&kind));
        }
        self.0.insert(kind, value);
        Ok(self)
    }
}

impl RichContext {
    /// Returns a context with this id, without data.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), data: None }
    }
}

setters! { RichContext:
    /// Sets the data of a new context, or in a trigger that of any: at most 64 KiB of JSON text.
    data: checked(Object, "data");
}

impl From<&str> for ContextValue {
    fn from(id: &str) -> Self {
        ContextValue::Id(id.into())
    }
}

impl From<String> for ContextValue {
    fn from(id: String) -> Self {
        ContextValue::Id(id)
    }
}

impl From<&String> for ContextValue {
    fn from(id: &String) -> Self {
        ContextValue::Id(id.clone())
    }
}

impl From<RichContext> for ContextValue {
    fn from(context: RichContext) -> Self {
        ContextValue::Rich(context)
    }
}

impl From<Vec<ContextKey>> for ContextSet {
    fn from(keys: Vec<ContextKey>) -> Self {
        keys.into_iter().collect()
    }
}

impl From<Vec<ContextKey>> for ContextFilter {
    fn from(keys: Vec<ContextKey>) -> Self {
        ContextFilter::Exact(keys.into())
    }
}
