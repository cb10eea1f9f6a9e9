//! Names that are shown to people.

/// Declares the type of a displayed name: 1 to 128 characters, without control characters and without
/// white space around it.
macro_rules! display_name {
    ($(#[doc = $doc:literal])* $name:ident) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Longest name without the white space around it, in characters.
            pub const MAX_LEN: usize = 128;

            /// Checks `raw`, trims white space, and returns it as a name.
            pub fn new(raw: impl AsRef<str>) -> Result<Self, $crate::error::Invalid> {
                let name = raw.as_ref().trim();
                $crate::ids::line("name", name, Self::MAX_LEN)?;
                Ok(Self(name.into()))
            }

            /// Returns the name as displayed.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        $crate::convert::text_conversions!($name);

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }
    };
}
pub(crate) use display_name;
