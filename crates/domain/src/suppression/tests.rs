use super::*;
use crate::sample::{at, home, id};

/// One row per spelling of an address.
#[test]
fn two_spellings_are_one_address() {
    // The small form of this letter has more bytes than the capital.
    let longest = format!("{}@x.de", "\u{23a}".repeat(120));
    for (channel, spelling, normal) in [
        (Channel::Email, "Ada@Example.ORG", Some("ada@example.org")),
        (Channel::Email, " ada@example.org ", Some("ada@example.org")),
        (Channel::Email, "ada", None),
        (Channel::Email, &longest, Some(&longest)),
        (Channel::Email, "\u{23a}da@x.de", Some("\u{2c65}da@x.de")),
        (Channel::Email, "ΟΔΥΣΣΕΥΣ@x.gr", Some("οδυσσευς@x.gr")),
        (Channel::Sms, "+44 (20) 7946-0000", Some("+442079460000")),
        (Channel::Sms, "0044 20 7946 0000", Some("+442079460000")),
        (Channel::Sms, "12/34.5", Some("12345")),
        (Channel::Sms, "call me", None),
        (Channel::Sms, "+", None),
        (Channel::Sms, &"1".repeat(33), None),
        (Channel::Push, "token", None),
        (Channel::InApp, "ada@example.org", None),
    ] {
        let made = SuppressedAddress::new(channel, spelling).ok();
        assert_eq!(made.as_ref().map(SuppressedAddress::address), normal, "{spelling}");
        if let Some(made) = made {
            assert_eq!(SuppressedAddress::new(channel, made.address()), Ok(made));
        }
    }
}

/// Of an erased address, a hash is left that differs between channels and environments.
#[test]
fn an_erased_suppression_has_a_hash() {
    let sms = || SuppressedAddress::new(Channel::Sms, "+1").unwrap();
    let mail = || SuppressedAddress::new(Channel::Email, "a@b.c").unwrap();
    let hashes = [mail().erased(id(1)), mail().erased(id(2)), sms().erased(id(1))];
    for (number, hash) in hashes.iter().enumerate() {
        assert!(!hashes[..number].contains(hash));
        assert_eq!(SuppressedAddress::new(hash.channel(), hash.address()), Ok(hash.clone()));
        assert_eq!(hash.erased(id(3)), *hash);
    }
    assert!(SuppressedAddress::new(Channel::Email, "erased:12").is_err());
    let create = create(SuppressionReason::Complained, Some(7)).text("by Ada");
    let before = Suppression::new(id(1), &home(), create, at(0));
    let after = before.erased();
    assert_eq!(after.address, before.address.erased(before.environment_id));
    assert_eq!((after.id, after.reason, after.expires_at), (id(1), before.reason, Some(at(7))));
    assert_eq!((after.text.clone(), after.erased()), (None, after));
}

fn create(reason: SuppressionReason, until: Option<i64>) -> SuppressionCreate {
    let create = SuppressionCreate::new(Channel::Email, "a@b.c").unwrap().reason(reason);
    SuppressionCreate { expires_at: until.map(at), ..create }
}

#[test]
fn an_address_of_many_subscribers_is_kept_as_a_hash() {
    let mut of_all =
        Suppression::new(id(1), &home(), create(SuppressionReason::Bounced, None), at(0));
    let subscriber = |number: usize| SubscriberId::new(format!("s{number}")).unwrap();
    for number in (0..Suppression::MAX_SUBSCRIBERS).chain([0]) {
        of_all = of_all.of(&subscriber(number));
    }
    assert_eq!(of_all.subscriber_ids.len(), Suppression::MAX_SUBSCRIBERS);
    let erased = of_all.clone().of(&subscriber(Suppression::MAX_SUBSCRIBERS));
    assert_eq!(erased, of_all.erased());
    assert_eq!(erased.clone().of(&subscriber(0)), erased);
    assert!(erased.subscriber_ids.is_empty());
}

/// One row per pair of reports: the reason that is left, and until when.
#[test]
fn the_longer_suppression_holds() {
    use SuppressionReason::{Bounced, Complained};
    for (first, second, left, until) in [
        (Some(10), Some(20), Complained, Some(20)),
        (Some(20), Some(10), Bounced, Some(20)),
        (Some(10), None, Complained, None),
        (None, Some(10), Bounced, None),
        (Some(10), Some(10), Bounced, Some(10)),
    ] {
        let before = Suppression::new(id(1), &home(), create(Bounced, first), at(0));
        let after = before.renewed(create(Complained, second));
        assert_eq!((after.reason, after.expires_at), (left, until.map(at)));
        assert_eq!((after.id, after.created_at), (id(1), at(0)));
    }
}

/// A text may tell of the person.
#[test]
fn a_longer_suppression_of_a_hash_gets_no_text() {
    use SuppressionReason::{Bounced, Complained};
    let before = Suppression::new(id(1), &home(), create(Bounced, Some(10)), at(0)).erased();
    let longer = create(Complained, None).text("by Ada");
    let other = Suppression::new(id(2), &home(), longer.clone(), at(0));
    for after in [before.clone().renewed(longer), before.clone().merged(other)] {
        assert_eq!((after.reason, after.expires_at, after.text), (Complained, None, None));
        assert_eq!(after.address, before.address);
    }
}

#[test]
fn a_suppression_ends_at_its_expiry() {
    let made =
        |until| Suppression::new(id(1), &home(), create(SuppressionReason::Bounced, until), at(0));
    assert!(!made(Some(10)).has_expired(at(9)));
    assert!(made(Some(10)).has_expired(at(10)));
    assert!(!made(None).has_expired(Timestamp::MAX));
    let day = 24 * 60 * 60 * 1_000;
    assert_eq!(SuppressionReason::Bounced.expiry(at(0)), Some(at(90 * day)));
    assert_eq!(SuppressionReason::Complained.expiry(at(0)), None);
}
