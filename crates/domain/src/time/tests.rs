use chrono::SecondsFormat;
use proptest::prelude::*;

use super::*;

#[test]
fn is_written_with_milliseconds_in_utc() {
    assert_eq!(Timestamp::from_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
    assert_eq!(Timestamp::MIN.to_string(), "0000-01-01T00:00:00.000Z");
    assert_eq!(Timestamp::MAX.to_string(), "9999-12-31T23:59:59.999Z");
}

#[test]
fn is_made_from_a_time_of_the_operating_system() {
    let day = Duration::from_secs(24 * 60 * 60);
    for (time, expected) in [
        (UNIX_EPOCH + day, "1970-01-02T00:00:00.000Z"),
        (UNIX_EPOCH - day, "1969-12-31T00:00:00.000Z"),
    ] {
        assert_eq!(Timestamp::from(time).to_string(), expected);
        assert_eq!(SystemTime::from(Timestamp::from(time)), time);
    }
}

/// One row per form of ISO 8601.
#[test]
fn is_read_in_any_offset_and_precision() {
    let noon = Timestamp::from_millis(1_795_176_000_000);
    for text in [
        "2026-11-20T12:00:00Z",
        "2026-11-20T12:00Z",
        "2026-11-20t12:00:00z",
        "2026-11-20 12:00:00Z",
        "2026-11-20T13:00:00.0004+01:00",
        "2026-11-20T13:00+01:00",
        "2026-11-20T13:00:00+0100",
        "2026-11-20T13:00+01",
        "2026-11-20T06:30-05:30",
        "20261120T120000Z",
        "20261120T1200Z",
        "20261120T130000.000+0100",
        &noon.to_string(),
    ] {
        assert_eq!(text.parse(), Ok(noon), "{text}");
    }
    let midnight = Timestamp::from_millis(1_795_132_800_000);
    for text in ["2026-11-20", "20261120"] {
        assert_eq!(text.parse(), Ok(midnight), "{text}");
    }
    for text in [
        "",
        "yesterday",
        "2026-11",
        "2026-13-01",
        "2026-13-01T00:00:00Z",
        "2026-11-20T12:00",
        "2026-11-20T12:00:00",
        "2026-11-20T25:00Z",
        "2026-11-20T12Z",
        "2026-11-20T1:00Z",
        "2026-11-20T12:00:0Z",
        "2026-11-20T12:00:00 Z",
        "2026-1-2",
        "2026-11-2",
        " 2026-11-20",
        "2026- 1- 2",
        "-0001-01-01",
        "+2026-11-20",
        "+10000-01-01",
        "+10000-01-01T00:00Z",
        "0000-01-01T00:00:00+12:00",
        "9999-12-31T23:59:59-12:00",
        "1795176000000",
    ] {
        assert!(text.parse::<Timestamp>().is_err(), "{text}");
    }
}

#[test]
fn stays_within_the_years_that_can_be_written() {
    assert_eq!(Timestamp::from_millis(i64::MAX), Timestamp::MAX);
    assert_eq!(Timestamp::from_millis(i64::MIN), Timestamp::MIN);
    assert_eq!(Timestamp::MAX.after(Duration::MAX), Timestamp::MAX);
    assert_eq!(Timestamp::MIN.since(Timestamp::MAX), Duration::ZERO);
}

#[test]
fn is_shown_as_a_date_for_debugging() {
    let shown = |millis| format!("{:?}", Timestamp::from_millis(millis));
    assert_eq!(shown(0), "Timestamp(1970-01-01T00:00:00.000Z)");
    assert_eq!(shown(i64::MIN), "Timestamp(0000-01-01T00:00:00.000Z)");
}

proptest! {
    #[test]
    fn is_read_as_it_is_written(millis in any::<i64>()) {
        let time = Timestamp::from_millis(millis);
        prop_assert_eq!(time.to_string().parse(), Ok(time));
        let written = DateTime::<Utc>::from(time).to_rfc3339_opts(SecondsFormat::Millis, true);
        prop_assert_eq!(time.to_string(), written);
        prop_assert_eq!(Timestamp::from(DateTime::<Utc>::from(time)), time);
    }

    #[test]
    fn its_digits_are_those_of_its_text(millis in any::<i64>()) {
        let time = Timestamp::from_millis(millis);
        let digits = time.to_string().replace(|it: char| !it.is_ascii_digit(), "");
        let expected = match digits.parse::<u64>().unwrap().to_be_bytes() {
            [0, digits @ ..] => Some(digits),
            _ => None,
        };
        prop_assert_eq!(time.digits(), expected);
        prop_assert_eq!(expected.and_then(Timestamp::of_digits), expected.map(|_| time));
    }

    #[test]
    fn other_digits_are_no_time(number in 0..1_u64 << 56) {
        let [_, digits @ ..] = number.to_be_bytes();
        if let Some(time) = Timestamp::of_digits(digits) {
            prop_assert_eq!(time.digits(), Some(digits));
        }
    }

    #[test]
    fn sorts_as_its_text_does(millis in prop::array::uniform2(any::<i64>())) {
        let [one, other] = millis.map(Timestamp::from_millis);
        prop_assert_eq!(one.cmp(&other), one.to_string().cmp(&other.to_string()));
    }

    #[test]
    fn what_comes_after_comes_since(millis in any::<i64>(), span in any::<u64>()) {
        let (start, span) = (Timestamp::from_millis(millis), Duration::from_millis(span));
        let end = start.after(span);
        prop_assert!(end >= start);
        prop_assert!(end == Timestamp::MAX || end.since(start) == span);
    }

    /// The quick way and the general parser agree.
    #[test]
    fn the_wire_form_is_read_as_iso_8601(
        text in "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9]\\.[0-9]{3}Z",
    ) {
        let quick = Timestamp::of_wire_form(text.as_bytes());
        let general = DateTime::parse_from_rfc3339(&text).ok();
        // A leap second has no wire form.
        let general = general.filter(|_| !text.contains(":60."));
        prop_assert_eq!(quick, general.map(|time| time.to_utc().into()));
    }

    #[test]
    fn any_text_is_taken_or_refused(text in "\\PC*|[0-9TZ:+.-]{0,30}") {
        let _ = text.parse::<Timestamp>();
    }
}
