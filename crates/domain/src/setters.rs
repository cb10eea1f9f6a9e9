//! Chained setters of requests.

/// Declares the setters of a request, under the name of their field or another one:
///
/// * `name: into(T)` takes a value that converts into a `T`,
/// * `name: exact(T)` takes a `T`,
/// * `name: checked(T, "wireName")` takes a value and checks it as a `T`; refusals name the field,
/// * `name: within(T)` does the same, but keeps the field name of the refusal,
/// * `name: serialized("wireName")` takes a value that serializes as an object,
/// * `name: flag(value)` takes no argument,
/// * `name: each(T)` takes a list of values that convert into a `T`, and replaces the list,
/// * `name: some_of(T, "wireName")` does the same for a query, which is refused with this field if the list is
///   empty,
/// * `name: each_checked(T, "wireName")` takes a list of values and checks each as a `T`,
/// * `name: some_checked(T, "wireName")` does the same for a query, which is refused with this field if the list
///   is empty,
/// * `name: push(T)` adds a value that converts into a `T` to a list,
/// * `name: all_of(Filter)` takes a filter that must hold besides the earlier ones,
/// * `name: any_of(Filter)` takes a list of filters, of which one must hold besides the earlier ones,
/// * `name: clear()` clears a field of a partial update.
///
/// A field is a `T`, an `Option<T>` or a `Patch<T>`. `name @ path.to.field` sets a field of another
/// name.
macro_rules! setters {
    ($type:ident: $(
        $(#[$doc:meta])*
        $name:ident $(@ $($path:ident).+)?: $kind:ident $arguments:tt;
    )+) => {
        impl $type {
            $($crate::setters::setter! {
                $(#[$doc])* $name [$($($path).+)?] $kind $arguments
            })+
        }
    };
}

macro_rules! setter {
    ($(#[$doc:meta])* $name:ident [] $kind:ident $arguments:tt) => {
        $crate::setters::setter! { $(#[$doc])* $name [$name] $kind $arguments }
    };
    ($(#[$doc:meta])* $name:ident [$($path:ident).+] into($type:ty)) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: impl Into<$type>) -> Self {
            let value: $type = $name.into();
            self.$($path).+ = value.into();
            self
        }
    };
    ($(#[$doc:meta])* $name:ident [$($path:ident).+] exact($type:ty)) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.$($path).+ = $name.into();
            self
        }
    };
    ($(#[$doc:meta])* $name:ident [$($path:ident).+] checked($type:ty, $wire:literal)) => {
        $(#[$doc])*
        pub fn $name(
            mut self,
            $name: impl $crate::convert::IntoChecked<$type>,
        ) -> Result<Self, $crate::error::Invalid> {
            let value: $type = $name.into_checked().map_err(|invalid| invalid.named($wire))?;
            self.$($path).+ = value.into();
            Ok(self)
        }
    };
    ($(#[$doc:meta])* $name:ident [$($path:ident).+] within($type:ty)) => {
        $(#[$doc])*
        pub fn $name(
            mut self,
            $name: impl $crate::convert::IntoChecked<$type>,
        ) -> Result<Self, $crate::error::Invalid> {
            let value: $type = $name.into_checked()?;
            self.$($path).+ = value.into();
            Ok(self)
        }
    };
    ($(#[$doc:meta])* $name:ident [$($path:ident).+] serialized($wire:literal)) => {
        $(#[$doc])*
        pub fn $name(
            mut self,
            value: impl ::serde::Serialize,
        ) -> Result<Self, $crate::error::Invalid> {
            let value = $crate::json::Object::serialized(value);
            self.$($path).+ = value.map_err(|invalid| invalid.named($wire))?;
            Ok(self)
        }
    };
    ($(#[$doc:meta])* $name:ident [$($path:ident).+] flag($value:expr)) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self) -> Self {
            self.$($path).+ = $value.into();
            self
        }
    };
    ($(#[$doc:meta])* $name:ident [$($path:ident).+] each($type:ty)) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: impl IntoIterator<Item: Into<$type>>) -> Self {
            let values: Vec<$type> = $name.into_iter().map(Into::into).collect();
            self.$($path).+ = values.into();
            self
        }
    };
    ($(#[$doc:meta])* $name:ident [$($path:ident).+] some_of($type:ty, $wire:literal)) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: impl IntoIterator<Item: Into<$type>>) -> Self {
            let values: Vec<$type> = $name.into_iter().map(Into::into).collect();
            self.emptied.note($wire, values.is_empty());
            self.$($path).+ = values;
            self
        }
    };
    ($(#[$doc:meta])* $name:ident [$($path:ident).+] each_checked($type:ty, $wire:literal)) => {
        $(#[$doc])*
        pub fn $name(
            mut self,
            $name: impl IntoIterator<Item: $crate::convert::IntoChecked<$type>>,
        ) -> Result<Self, $crate::error::Invalid> {
            let values: Vec<$type> = $crate::convert::each_checked($wire, $name)?;
            self.$($path).+ = values.into();
            Ok(self)
        }
    };
    ($(#[$doc:meta])* $name:ident [$($path:ident).+] some_checked($type:ty, $wire:literal)) => {
        $(#[$doc])*
        pub fn $name(
            mut self,
            $name: impl IntoIterator<Item: $crate::convert::IntoChecked<$type>>,
        ) -> Result<Self, $crate::error::Invalid> {
            let values: Vec<$type> = $crate::convert::each_checked($wire, $name)?;
            self.emptied.note($wire, values.is_empty());
            self.$($path).+ = values;
            Ok(self)
        }
    };
    ($(#[$doc:meta])* $name:ident [$($path:ident).+] push($type:ty)) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: impl Into<$type>) -> Self {
            self.$($path).+.push($name.into());
            self
        }
    };
    ($(#[$doc:meta])* $name:ident [$($path:ident).+] all_of($type:ty)) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, filter: $type) -> Self {
            <$type>::restrict(&mut self.$($path).+, [filter]);
            self
        }
    };
    ($(#[$doc:meta])* $name:ident [$($path:ident).+] any_of($type:ty)) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, filters: impl IntoIterator<Item = $type>) -> Self {
            <$type>::restrict(&mut self.$($path).+, filters);
            self
        }
    };
    ($(#[$doc:meta])* $name:ident [$($path:ident).+] clear()) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self) -> Self {
            self.$($path).+ = $crate::patch::Patch::Clear;
            self
        }
    };
}
pub(crate) use {setter, setters};

/// Declares the setters of the page of a query.
macro_rules! page_setters {
    ($type:ident) => {
        $crate::setters::setters! { $type:
            /// Sets the page.
            page: exact($crate::page::PageQuery);
            /// Sets the maximum number of items on the page: 1 to 100.
            limit @ page.limit: exact(u32);
            /// Starts the page behind `after`.
            after @ page.after: into($crate::page::Cursor);
            /// Ends the page in front of `before`.
            before @ page.before: into($crate::page::Cursor);
            /// Sets the field to sort by.
            order_by @ page.order_by: exact($crate::page::OrderBy);
            /// Sets the direction of the list.
            order_direction @ page.order_direction: exact($crate::page::Direction);
            /// Includes the item at the cursor.
            include_cursor @ page.include_cursor: flag(true);
        }
    };
}
pub(crate) use page_setters;

/// Declares the setter of the contexts of a request.
macro_rules! context_setter {
    ($type:ident) => {
        impl $type {
            /// Adds a context: a type, with an id or a
            /// [`RichContext`](crate::context::RichContext). At most 5, each of another type.
            pub fn context(
                mut self,
                kind: impl Into<String>,
                value: impl Into<$crate::context::ContextValue>,
            ) -> Result<Self, $crate::error::Invalid> {
                self.context = Some(self.context.unwrap_or_default().with(kind, value)?);
                Ok(self)
            }
        }
    };
}
pub(crate) use context_setter;

#[cfg(test)]
mod tests;
