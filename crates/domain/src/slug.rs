//! Names in URLs: a display name and an id.

use uuid::Uuid;

/// Returns the name as a part of a URL: lower-case letters and digits, joined by single `-`.
pub(crate) fn slugify(name: &str) -> String {
    let lower = name.to_lowercase();
    let runs = lower.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty());
    runs.collect::<Vec<_>>().join("-")
}

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Returns the id as 22 letters and digits.
pub(crate) fn base62(id: Uuid) -> String {
    let digit = |rest: &mut u128| {
        let digit = BASE62.get((*rest % 62) as usize)?;
        *rest /= 62;
        Some(char::from(*digit))
    };
    let digits = (0..22).scan(id.as_u128(), |rest, _| digit(rest));
    digits.collect::<Vec<_>>().into_iter().rev().collect()
}

/// Parses the result of [`base62`].
pub(crate) fn from_base62(text: &str) -> Option<Uuid> {
    let value = |digit| BASE62.iter().position(|other| *other == digit);
    let append = |id: u128, digit| {
        let value = u128::try_from(value(digit)?).ok()?;
        id.checked_mul(62)?.checked_add(value)
    };
    if text.len() != 22 {
        return None;
    }
    text.bytes().try_fold(0, append).map(Uuid::from_u128)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn base62_is_read_as_it_is_written() {
        for id in [Uuid::nil(), Uuid::max(), Uuid::from_u128(61), Uuid::from_u128(1 << 100)] {
            let text = base62(id);
            assert_eq!((text.len(), from_base62(&text)), (22, Some(id)));
        }
        assert_eq!(from_base62("zzzzzzzzzzzzzzzzzzzzzz"), None);
        assert_eq!(from_base62("-000000000000000000000"), None);
        assert_eq!(from_base62("0"), None);
    }

    proptest! {
        #[test]
        fn any_id_is_22_digits(number in any::<u128>()) {
            let text = base62(Uuid::from_u128(number));
            prop_assert_eq!((text.len(), from_base62(&text)), (22, Some(Uuid::from_u128(number))));
        }

        #[test]
        fn any_22_digits_are_at_most_one_id(text in "[0-9A-Za-z]{22}|\\PC{0,22}") {
            if let Some(id) = from_base62(&text) {
                prop_assert_eq!(base62(id), text);
            }
        }

        #[test]
        fn a_slug_is_its_own(name in "\\PC*") {
            let slug = slugify(&name);
            prop_assert_eq!(slugify(&slug), slug);
        }
    }
}
