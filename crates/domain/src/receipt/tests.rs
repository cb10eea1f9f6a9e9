use super::*;
use crate::sample::id;

fn receipt(kind: ReceiptKind, event: Option<&str>) -> Receipt {
    Receipt { event_id: event.map(Into::into), ..Receipt::new("m", kind).unwrap() }
}

// A report about the address of the message.
fn own(receipt: &Receipt) -> Reported<'_> {
    Reported { receipt, other_address: None }
}

/// One row per address of a report about a message whose own address and a first other one have bounced.
#[test]
fn each_address_has_its_own_events() {
    let bounced = receipt(ReceiptKind::Bounced, Some("1"));
    let mut message = ProviderMessage::new(id(1), "m").unwrap();
    for other_address in [None, Some("first")] {
        message.record(Reported { receipt: &bounced, other_address });
    }
    for (other_address, again, late) in [
        (None, Novelty::Repeated, Novelty::Outdated),
        (Some("first"), Novelty::Repeated, Novelty::Outdated),
        (Some("second"), Novelty::New, Novelty::New),
    ] {
        let of = |receipt| novelty(&message.receipts, Reported { receipt, other_address });
        assert_eq!(of(&bounced), again, "{other_address:?}");
        assert_eq!(of(&receipt(ReceiptKind::Delivered, None)), late, "{other_address:?}");
    }
}

#[test]
fn a_message_has_a_limited_number_of_reports() {
    let mut message = ProviderMessage::new(id(1), "m").unwrap();
    let opened = receipt(ReceiptKind::Opened, None);
    let addresses: Vec<_> = (0..=Receipt::MAX_RECORDED).map(|number| number.to_string()).collect();
    for (number, address) in addresses.iter().enumerate() {
        let reported = Reported { receipt: &opened, other_address: Some(address) };
        let is_new = novelty(&message.receipts, reported) == Novelty::New;
        assert_eq!(is_new, number < Receipt::MAX_RECORDED);
        if is_new {
            message.record(reported);
        }
    }
    // What is said about the address of the message itself still counts.
    assert_eq!(novelty(&message.receipts, own(&opened)), Novelty::New);
}

/// One row per history: what is known, what is reported, and whether it is new.
#[test]
fn a_message_does_not_go_back() {
    use Novelty::{New, Outdated, Repeated};
    use ReceiptKind::{Bounced, Clicked, Complained, Deferred, Delivered, Opened, Unsubscribed};
    for (known, reported, expected) in [
        (&[][..], Deferred, New),
        (&[], Bounced, New),
        (&[Delivered], Delivered, Repeated),
        (&[Delivered], Opened, New),
        (&[Deferred], Delivered, New),
        (&[Delivered], Deferred, Outdated),
        (&[Opened], Delivered, Outdated),
        (&[Clicked], Opened, Outdated),
        (&[Delivered, Opened], Clicked, New),
        (&[Bounced], Delivered, Outdated),
        (&[Bounced], Clicked, Outdated),
        (&[Clicked], Bounced, New),
        (&[Bounced], Bounced, Repeated),
        (&[Bounced], Complained, New),
        (&[Complained], Delivered, New),
        (&[Complained], Complained, Repeated),
        (&[Unsubscribed], Complained, New),
    ] {
        let mut message = ProviderMessage::new(id(1), "m").unwrap();
        for kind in known {
            message.record(own(&receipt(*kind, None)));
        }
        let found = novelty(&message.receipts, own(&receipt(reported, None)));
        assert_eq!(found, expected, "{known:?} {reported}");
    }
}

#[test]
fn an_event_is_known_by_its_id() {
    let mut message = ProviderMessage::new(id(1), "m").unwrap();
    message.record(own(&receipt(ReceiptKind::Delivered, Some("1"))));
    let of = |event| novelty(&message.receipts, own(&receipt(ReceiptKind::Opened, event)));
    assert_eq!(of(Some("1")), Novelty::Repeated);
    assert_eq!(of(Some("2")), Novelty::New);
    assert_eq!(of(None), Novelty::New);
}

#[test]
fn an_id_can_be_looked_up() {
    for bad in ["", "a\0", "a\r\nb", &"x".repeat(256)] {
        assert!(Receipt::new(bad, ReceiptKind::Opened).is_err());
        assert_eq!(ProviderMessage::new(id(1), bad), None);
        let event = Receipt::new("m", ReceiptKind::Opened).unwrap().event_id(bad);
        assert_eq!(event.check().unwrap_err().field, "eventId");
    }
    let long = Receipt::new("m", ReceiptKind::Opened).unwrap().text("ä".repeat(5_000));
    assert_eq!(long.shown().unwrap().chars().count(), 1_000);
}
