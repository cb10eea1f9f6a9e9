//! Whether a report says something new.

use super::{KnownReceipt, Receipt, ReceiptKind, Reported};

/// Decision about a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Novelty {
    /// It says something new.
    New,
    /// It was recorded before, or is about one address too many.
    Repeated,
    /// A later event is known.
    Outdated,
}

/// Decides about a report from those that are known. Each event is recorded once, so that a message
/// that is opened a thousand times has one entry. A message does not go back: what is behind a known
/// event counts, and what is before it does not. Nothing but a complaint or a wish to unsubscribe
/// follows a bounce. Each address of a message with several has its own events.
pub fn novelty(known: &[KnownReceipt], reported: Reported<'_>) -> Novelty {
    let Reported { receipt, other_address } = reported;
    let of_address = || known.iter().filter(|one| one.other_address.as_deref() == other_address);
    let is_same = |one: &KnownReceipt| {
        one.kind == receipt.kind || (one.event_id.is_some() && one.event_id == receipt.event_id)
    };
    let is_too_many = other_address.is_some() && known.len() >= Receipt::MAX_RECORDED;
    if is_too_many || of_address().any(is_same) {
        return Novelty::Repeated;
    }
    let furthest = of_address().filter_map(|one| rank(one.kind)).max();
    match rank(receipt.kind) {
        Some(rank) if furthest.is_some_and(|furthest| rank < furthest) => Novelty::Outdated,
        Some(_) | None => Novelty::New,
    }
}

// Place of an event on the way of a message. An event beside the way has none.
const fn rank(kind: ReceiptKind) -> Option<u8> {
    match kind {
        ReceiptKind::Deferred => Some(0),
        ReceiptKind::Delivered => Some(1),
        ReceiptKind::Opened => Some(2),
        ReceiptKind::Clicked => Some(3),
        ReceiptKind::Bounced => Some(4),
        ReceiptKind::Complained | ReceiptKind::Unsubscribed => None,
    }
}
