//! Place of a message among all messages of its environment.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{MessageId, v7};
use crate::notification::{Notification, Ordinal};
use crate::time::Timestamp;
use crate::workflow::Workflow;

/// Place of a message: the ordinal of its notification, and the number of its job there. Messages
/// of a trigger lie behind those of earlier triggers.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(from = "u64", into = "u64")]
pub struct MessagePlace {
    ordinal: Ordinal,
    job: u8,
}

// Random bits behind the place in an id.
const RANDOM_BITS: u32 = 74 - Ordinal::BITS - u8::BITS;

// Bits of the number of a job in the bytes of a place. An id has fewer.
const JOB_BITS: u32 = u64::BITS - Ordinal::BITS;

impl MessagePlace {
    /// Returns the place of the message of the job with the number `job`.
    pub const fn new(ordinal: Ordinal, job: u8) -> Self {
        Self { ordinal, job }
    }

    /// Returns the ordinal of the notification.
    pub const fn ordinal(self) -> Ordinal {
        self.ordinal
    }

    /// Returns the bytes of a key, which sort as places do.
    pub const fn to_bytes(self) -> [u8; 8] {
        (self.ordinal.get() << JOB_BITS | self.job as u64).to_be_bytes()
    }

    /// Returns the place with these bytes.
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        u64::from_be_bytes(bytes).into()
    }
}

impl From<MessagePlace> for u64 {
    fn from(place: MessagePlace) -> u64 {
        u64::from_be_bytes(place.to_bytes())
    }
}

impl From<u64> for MessagePlace {
    fn from(number: u64) -> Self {
        let [.., job] = number.to_be_bytes();
        Self::new(Ordinal::new(number >> JOB_BITS), job)
    }
}

impl MessageId {
    /// Returns the id of the message created at `at` in this place. The upper 26 bits of `random`
    /// make ids hard to guess. Ids of one environment sort by time and place.
    #[doc(hidden)]
    pub fn new(at: Timestamp, place: MessagePlace, random: u64) -> Self {
        let random = u128::from(random >> (u64::BITS - RANDOM_BITS));
        let job = u128::from(place.job) << RANDOM_BITS;
        let ordinal = u128::from(place.ordinal.get()) << (RANDOM_BITS + u8::BITS);
        v7(u64::try_from(at.as_millis()).unwrap_or_default(), ordinal | job | random).into()
    }

    /// Returns the id in the place of the next integration of its job. Returns `None` behind the last one.
    #[doc(hidden)]
    pub fn of_next_integration(self) -> Option<Self> {
        const JOB: u128 = (u8::MAX as u128) << RANDOM_BITS;
        let job = self.place().job.checked_add(u8::try_from(Workflow::MAX_STEPS).ok()?)?;
        let others = Uuid::from(self).as_u128() & !JOB;
        Some(Uuid::from_u128(others | u128::from(job) << RANDOM_BITS).into())
    }

    /// Returns the place in the id.
    #[doc(hidden)]
    pub fn place(self) -> MessagePlace {
        let bits = Uuid::from(self).as_u128();
        let tail = (bits >> 64 & 0xfff) << 62 | bits & ((1 << 62) - 1);
        let [.., job] = (tail >> RANDOM_BITS).to_be_bytes();
        let ordinal = u64::try_from(tail >> (RANDOM_BITS + u8::BITS)).unwrap_or_default();
        MessagePlace::new(Ordinal::new(ordinal), job)
    }
}

impl Notification {
    /// Returns the place of the message of the job with the number `job`.
    #[doc(hidden)]
    pub fn place_of_message(&self, job: usize) -> MessagePlace {
        MessagePlace::new(self.id.ordinal(), u8::try_from(job).unwrap_or(u8::MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place((ordinal, job): (u64, u8)) -> MessagePlace {
        MessagePlace::new(Ordinal::new(ordinal), job)
    }

    #[test]
    fn an_id_is_a_uuid_of_version_7() {
        let id = MessageId::new(Timestamp::MAX, place((u64::MAX, u8::MAX)), u64::MAX);
        assert_eq!(Uuid::from(id).get_version_num(), 7);
        assert_eq!(Uuid::from(id).get_variant(), uuid::Variant::RFC4122);
    }

    proptest! {
        #[test]
        fn an_id_keeps_its_place(at: i64, parts in (0_u64..1 << 40, any::<u8>()), random: u64) {
            let id = MessageId::new(Timestamp::from_millis(at), place(parts), random);
            prop_assert_eq!(id.place(), place(parts));
            prop_assert_eq!(MessagePlace::from(u64::from(place(parts))), place(parts));
            let next = parts.1.checked_add(20);
            let expected = next.map(|job| MessageId::new(Timestamp::from_millis(at), place((parts.0, job)), random));
            prop_assert_eq!(id.of_next_integration(), expected);
        }

        #[test]
        fn ids_and_bytes_sort_by_place(
            one in (0_u64..1 << 40, any::<u8>()),
            other in (0_u64..1 << 40, any::<u8>()),
            randoms: [u64; 2],
        ) {
            let [first, second] = [place(one), place(other)];
            prop_assert_eq!(first.to_bytes().cmp(&second.to_bytes()), one.cmp(&other));
            prop_assume!(one != other);
            let id = |place, random| MessageId::new(Timestamp::from_millis(1), place, random);
            let order = id(first, randoms[0]).cmp(&id(second, randoms[1]));
            prop_assert_eq!(order, one.cmp(&other));
        }
    }
}
