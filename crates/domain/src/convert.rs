//! Conversion of arguments into checked values.

use std::convert::Infallible;

use crate::error::Invalid;

/// Value that converts into a `T`, or that a rule of `T` refuses.
///
/// An argument that is an id has the type `impl IntoChecked<SubscriberId>`. It takes a `&str`, a
/// `String`, the id, or a reference to the id.
///
/// ```
/// # extern crate tidings_domain as tidings;
/// use tidings::convert::IntoChecked;
/// use tidings::ids::SubscriberId;
///
/// fn length(id: impl IntoChecked<SubscriberId>) -> usize {
///     id.into_checked().map_or(0, |id: SubscriberId| id.as_str().len())
/// }
///
/// let ada: SubscriberId = "ada".parse()?;
/// assert_eq!([length("ada"), length(&ada), length(ada)], [3, 3, 3]);
/// # Ok::<(), tidings::error::Invalid>(())
/// ```
pub trait IntoChecked<T> {
    /// Converts the value.
    ///
    /// # Errors
    ///
    /// Rule of `T` that the value breaks.
    fn into_checked(self) -> Result<T, Invalid>;
}

impl<T, V: TryInto<T, Error: Into<Invalid>>> IntoChecked<T> for V {
    fn into_checked(self) -> Result<T, Invalid> {
        self.try_into().map_err(Into::into)
    }
}

/// Checks every value of the list `field`.
#[doc(hidden)]
pub fn each_checked<T>(
    field: &str,
    values: impl IntoIterator<Item: IntoChecked<T>>,
) -> Result<Vec<T>, Invalid> {
    let place = |index| move |invalid: Invalid| invalid.named(format!("{field}[{index}]"));
    let values = values.into_iter().enumerate();
    values.map(|(index, value)| value.into_checked().map_err(place(index))).collect()
}

impl From<Infallible> for Invalid {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Gives a text newtype with a checking `new` the conversions that every text newtype has.
macro_rules! text_conversions {
    ($name:ident) => {
        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        $crate::convert::secret_conversions!($name);
    };
}
pub(crate) use text_conversions;

/// Gives a secret newtype with a checking `new` the conversions from texts. It has none that reveal
/// the text.
macro_rules! secret_conversions {
    ($name:ident) => {
        impl ::std::str::FromStr for $name {
            type Err = $crate::error::Invalid;

            fn from_str(raw: &str) -> Result<Self, $crate::error::Invalid> {
                Self::new(raw)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = $crate::error::Invalid;

            fn try_from(raw: &str) -> Result<Self, $crate::error::Invalid> {
                Self::new(raw)
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::error::Invalid;

            fn try_from(raw: String) -> Result<Self, $crate::error::Invalid> {
                Self::new(raw)
            }
        }

        impl TryFrom<&String> for $name {
            type Error = $crate::error::Invalid;

            fn try_from(raw: &String) -> Result<Self, $crate::error::Invalid> {
                Self::new(raw.as_str())
            }
        }

        impl From<&$name> for $name {
            fn from(value: &$name) -> Self {
                value.clone()
            }
        }
    };
}
pub(crate) use secret_conversions;

#[cfg(test)]
mod tests;
