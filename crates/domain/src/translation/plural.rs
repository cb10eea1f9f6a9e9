//! Plural forms: the category of a number in a language.

use serde_json::{Map, Value};

use crate::contact::Locale;

/// Category that every language has.
pub(super) const OTHER: &str = "other";

const CATEGORIES: [&str; 6] = ["zero", "one", "two", "few", "many", OTHER];

/// Returns `true` if `members` are the plural forms of a text: one for each category that the
/// language has, and one for `other` numbers.
pub(super) fn are_forms(members: &Map<String, Value>) -> bool {
    members.contains_key(OTHER)
        && members
            .iter()
            .all(|(name, form)| CATEGORIES.contains(&name.as_str()) && form.is_string())
}

#[cfg(feature = "plurals")]
mod rules {
    use fixed_decimal::Decimal;
    use icu_locale_core::Locale as Tag;
    use icu_plurals::{PluralCategory, PluralRules};

    use super::{Locale, OTHER};

    /// Longest number, in bytes.
    const MAX_NUMBER: usize = 32;

    /// Plural rules of a language, of the Unicode CLDR.
    pub(in crate::translation) struct Rules(Option<PluralRules>);

    impl Rules {
        /// Returns the rules of a language. An unknown one has no category but `other`.
        pub(in crate::translation) fn of(locale: &Locale) -> Self {
            let tag = Tag::try_from_str(&locale.as_str().replace('_', "-"));
            Self(tag.ok().and_then(|tag| PluralRules::try_new_cardinal((&tag).into()).ok()))
        }

        /// Returns the category of a number, which has the digits that are shown.
        pub(in crate::translation) fn category(&self, number: &str) -> &'static str {
            let number = Some(number).filter(|number| number.len() <= MAX_NUMBER);
            let number = number.and_then(|number| Decimal::try_from_str(number).ok());
            let (Some(rules), Some(number)) = (&self.0, number) else { return OTHER };
            match rules.category_for(&number) {
                PluralCategory::Zero => "zero",
                PluralCategory::One => "one",
                PluralCategory::Two => "two",
                PluralCategory::Few => "few",
                PluralCategory::Many => "many",
                PluralCategory::Other => OTHER,
            }
        }
    }
}

#[cfg(not(feature = "plurals"))]
mod rules {
    use super::{Locale, OTHER};

    /// Rules of a build without plural rules.
    pub(in crate::translation) struct Rules;

    impl Rules {
        pub(in crate::translation) fn of(_: &Locale) -> Self {
            Self
        }

        #[expect(clippy::unused_self, reason = "the feature has rules here")]
        pub(in crate::translation) fn category(&self, _: &str) -> &'static str {
            OTHER
        }
    }
}

pub(super) use rules::Rules;
