//! Contact data: e-mail addresses, locales and time zones.

use std::ops::RangeInclusive;

use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use crate::convert::text_conversions;
use crate::error::{Invalid, Reason, Unit};

/// E-mail address: `local@domain`, without white space.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Email(String);

/// Language with an optional script and region: `en`, `en_US`, `zh_Hant_TW`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Locale(String);

/// Time zone by its IANA name: `Europe/Berlin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeZone(Tz);

impl Email {
    /// Longest address, in bytes: SMTP limits a path to it.
    pub const MAX_LEN: usize = 254;

    /// Checks `raw` and returns it as an address.
    pub fn new(raw: impl Into<String>) -> Result<Self, Invalid> {
        let raw = raw.into();
        if raw.is_empty() {
            return Err(Invalid::new("email", Reason::Empty));
        }
        if raw.len() > Self::MAX_LEN {
            let reason = Reason::TooLong { max: Self::MAX_LEN, unit: Unit::Bytes };
            return Err(Invalid::new("email", reason));
        }
        let is_plain = |part: &str| !part.is_empty() && !part.contains(is_separator);
        let is_label = |label: &str| is_plain(label) && !label.starts_with('-');
        match raw.rsplit_once('@') {
            Some((local, domain))
                if is_plain(local) && domain.contains('.') && domain.split('.').all(is_label) =>
            {
                Ok(Self(raw))
            }
            _ => Err(Invalid::new("email", Reason::malformed("an e-mail address"))),
        }
    }

    /// Returns the address as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

// These characters would end the address early in a header.
fn is_separator(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "@,;:<>()[]\\\"".contains(c)
}

impl Locale {
    /// Checks `raw`, in any case and with `-` or `_`, and returns it as a locale.
    pub fn new(raw: impl AsRef<str>) -> Result<Self, Invalid> {
        let raw = raw.as_ref();
        if raw.is_empty() {
            return Err(Invalid::new("locale", Reason::Empty));
        }
        let mut parts = raw.split(['-', '_']);
        let language = parts.next().filter(|part| is_of_letters(part, 2..=3));
        let mut rest: Vec<&str> = parts.collect();
        let region = rest.pop_if(|part| is_region(part)).map(str::to_uppercase);
        let script = rest.pop_if(|part| is_of_letters(part, 4..=4)).map(capitalized);
        match language {
            Some(language) if rest.is_empty() => {
                let parts = [Some(language.to_lowercase()), script, region];
                Ok(Self(parts.into_iter().flatten().collect::<Vec<_>>().join("_")))
            }
            _ => {
                let expected = "a locale such as `en` or `en_US`";
                Err(Invalid::new("locale", Reason::malformed(expected)))
            }
        }
    }

    /// Returns the locale of an engine without another default.
    #[doc(hidden)]
    pub fn en_us() -> Self {
        Self("en_US".into())
    }

    /// Returns the locale in its canonical form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the language, the script and the region.
    pub(crate) fn parts(&self) -> (&str, Option<&str>, Option<&str>) {
        let mut parts = self.0.split('_').peekable();
        let language = parts.next().unwrap_or_default();
        (language, parts.next_if(|part| part.len() == 4), parts.next())
    }

    /// Returns the script, which follows from the region for Chinese.
    pub(crate) fn script(&self) -> Option<&str> {
        match self.parts() {
            (_, Some(script), _) => Some(script),
            ("zh", None, Some("HK" | "MO" | "TW")) => Some("Hant"),
            ("zh", None, _) => Some("Hans"),
            _ => None,
        }
    }
}

fn is_of_letters(part: &str, length: RangeInclusive<usize>) -> bool {
    length.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphabetic())
}

fn is_region(part: &str) -> bool {
    is_of_letters(part, 2..=2) || (part.len() == 3 && part.bytes().all(|b| b.is_ascii_digit()))
}

fn capitalized(part: &str) -> String {
    let (first, rest) = part.split_at(1);
    first.to_uppercase() + &rest.to_lowercase()
}

impl TimeZone {
    /// Coordinated universal time.
    pub const UTC: Self = Self(Tz::UTC);

    /// Returns the zone `name` of the IANA database. Refuses an unknown name.
    pub fn new(name: impl AsRef<str>) -> Result<Self, Invalid> {
        let name = name.as_ref();
        if name.is_empty() {
            return Err(Invalid::new("timezone", Reason::Empty));
        }
        let zone = name
            .parse()
            .map_err(|_| Invalid::new("timezone", Reason::malformed("an IANA time zone")))?;
        Ok(Self(zone))
    }

    /// Returns the IANA name.
    pub fn as_str(&self) -> &'static str {
        self.0.name()
    }
}

text_conversions!(Email);

impl From<Email> for String {
    fn from(email: Email) -> String {
        email.0
    }
}

text_conversions!(Locale);

impl From<Locale> for String {
    fn from(locale: Locale) -> String {
        locale.0
    }
}

text_conversions!(TimeZone);

impl From<TimeZone> for Tz {
    fn from(zone: TimeZone) -> Tz {
        zone.0
    }
}

impl From<TimeZone> for String {
    fn from(zone: TimeZone) -> String {
        zone.as_str().into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_email_address_has_two_plain_sides() {
        for good in ["ada@lovelace.org", "a.b+c@x-y.co.uk", "ü@exämple.de"] {
            assert_eq!(Email::new(good).unwrap().as_str(), good);
        }
        let long = format!("{}@example.com", "x".repeat(250));
        for bad in ["invalid-email", "@b.c", "a@", "a@b", "a b@c.d", "a@b..c", "a@-b.c", "a@b@c.d"]
            .into_iter()
            .chain(["", "a@b.c\r\nBcc: d@e.f", "<a@b.c>", &long])
        {
            assert_eq!(Email::new(bad).unwrap_err().field, "email", "{bad}");
        }
    }

    #[test]
    fn a_locale_has_one_form() {
        for (raw, canonical) in [
            ("en", "en"),
            ("EN-us", "en_US"),
            ("en_US", "en_US"),
            ("zh-hans-cn", "zh_Hans_CN"),
            ("es-419", "es_419"),
            ("fil", "fil"),
            ("sr_Latn", "sr_Latn"),
        ] {
            assert_eq!(Locale::new(raw).unwrap().as_str(), canonical);
        }
        for bad in ["", "!!!invalid!!!", "invalid-locale-123", "123", "e", "en_", "en_US_x", "é"] {
            assert_eq!(Locale::new(bad).unwrap_err().field, "locale", "{bad}");
        }
    }

    #[test]
    fn a_time_zone_is_one_of_the_iana_database() {
        assert_eq!(TimeZone::new("Europe/Berlin").unwrap().as_str(), "Europe/Berlin");
        for bad in ["", "Invalid/Timezone", "europe/berlin "] {
            assert_eq!(TimeZone::new(bad).unwrap_err().field, "timezone", "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text in "\\PC*|[a-zA-Z0-9_@.-]{0,12}|[a-zA-Z]{2,3}[-_][a-zA-Z0-9]{2,4}") {
            if let Ok(email) = Email::new(text.as_str()) {
                prop_assert_eq!(email.as_str(), &text);
            }
            if let Ok(locale) = Locale::new(&text) {
                prop_assert_eq!(Locale::new(locale.as_str()), Ok(locale));
            }
            if let Ok(zone) = TimeZone::new(&text) {
                prop_assert_eq!(zone.as_str(), &text);
            }
        }
    }
}
