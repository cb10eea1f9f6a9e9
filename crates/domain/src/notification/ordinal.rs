//! Place of a notification in the activity list of its environment.

use uuid::Uuid;

use crate::ids::{NotificationId, v7};
use crate::time::Timestamp;

/// Number of notifications created before, in the same environment: the place in the activity list,
/// oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ordinal(u64);

impl Ordinal {
    /// Number of bits.
    #[doc(hidden)]
    pub const BITS: u32 = 40;

    /// Largest ordinal.
    #[doc(hidden)]
    pub const MAX: Self = Self::new(u64::MAX);

    /// Returns the ordinal behind `before` others.
    #[doc(hidden)]
    pub const fn new(before: u64) -> Self {
        Self(before & ((1 << Self::BITS) - 1))
    }

    /// Returns the number of notifications before it.
    pub const fn get(self) -> u64 {
        self.0
    }
}

// Random bits behind the ordinal.
const RANDOM_BITS: u32 = 74 - Ordinal::BITS;

impl NotificationId {
    /// Returns the id of the notification created at `at` with this ordinal. The upper 34 bits of
    /// `random` make ids hard to guess. Ids of one environment sort by time and ordinal.
    #[doc(hidden)]
    pub fn new(at: Timestamp, ordinal: Ordinal, random: u64) -> Self {
        let random = random >> (u64::BITS - RANDOM_BITS);
        let tail = u128::from(ordinal.get()) << RANDOM_BITS | u128::from(random);
        v7(u64::try_from(at.as_millis()).unwrap_or_default(), tail).into()
    }

    /// Returns the time of creation in the id.
    #[doc(hidden)]
    pub fn created_at(self) -> Timestamp {
        let millis = Uuid::from(self).as_u128() >> 80;
        Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }

    /// Returns the ordinal in the id.
    #[doc(hidden)]
    pub fn ordinal(self) -> Ordinal {
        let bits = Uuid::from(self).as_u128();
        let tail = (bits >> 64 & 0xfff) << 62 | bits & ((1 << 62) - 1);
        Ordinal::new(u64::try_from(tail >> RANDOM_BITS).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_is_a_uuid_of_version_7() {
        let id = Uuid::from(NotificationId::new(Timestamp::MAX, Ordinal::new(u64::MAX), u64::MAX));
        assert_eq!(id.get_version_num(), 7);
        assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
    }

    proptest! {
        #[test]
        fn an_id_keeps_its_ordinal(at in any::<i64>(), ordinal in 0_u64..1 << 40, random: u64) {
            let at = Timestamp::from_millis(at);
            let id = NotificationId::new(at, Ordinal::new(ordinal), random);
            prop_assert_eq!(id.ordinal().get(), ordinal);
        }

        #[test]
        fn ids_sort_by_time_and_ordinal(
            one in (0_i64..3, 0_u64..1 << 40, any::<u64>()),
            other in (0_i64..3, 0_u64..1 << 40, any::<u64>()),
        ) {
            let id = |(at, ordinal, random)| {
                NotificationId::new(Timestamp::from_millis(at), Ordinal::new(ordinal), random)
            };
            let place = |(at, ordinal, _)| (at, ordinal);
            prop_assume!(place(one) != place(other));
            prop_assert_eq!(id(one).cmp(&id(other)), place(one).cmp(&place(other)));
        }
    }
}
