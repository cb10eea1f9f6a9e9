//! The subscribers of both systems.

use domain::environment::Home;
use domain::subscriber::{Subscriber, SubscriberCreate};
use domain::time::Timestamp;
use serde_json::json;
use tidings::Scope;
use uuid::Uuid;

/// The telephone number of a hundredth of all.
pub(crate) const SWITCHBOARD: &str = "+49 30 1000";

const FIRST: u64 = 40;
const SYLLABLES: [&str; 20] = [
    "ba", "del", "fir", "gon", "hus", "jak", "kem", "lin", "mor", "nev", "pol", "qui", "ros",
    "sen", "tam", "ur", "vik", "wel", "yor", "zan",
];

/// Subscribers with random names.
#[derive(Clone, Copy)]
pub(crate) struct People {
    pub(crate) size: u64,
}

/// A person.
#[derive(Clone)]
pub(crate) struct Person {
    pub(crate) first: String,
    pub(crate) last: String,
    pub(crate) email: String,
    pub(crate) phone: String,
}

impl People {
    /// Returns the person of a random number.
    pub(crate) fn person(self, call: u64) -> Person {
        let number = random(call) % self.size;
        // Someone with a number of their own.
        Self::numbered(number - u64::from(number.is_multiple_of(100) && number > 0))
    }

    /// Returns the person of that number. Forty given names are of two syllables, and the family names
    /// of four.
    pub(crate) fn numbered(number: u64) -> Person {
        let name = |seed: u64, syllables: u32| {
            let syllable = |at| SYLLABLES[usize::try_from(seed / 20_u64.pow(at) % 20).unwrap()];
            let name: String = (0..syllables).map(syllable).collect();
            name[..1].to_uppercase() + &name[1..]
        };
        let is_at_work = number.is_multiple_of(100) && number > 0;
        let own = format!("+44 {number}");
        Person {
            first: name(random(number) % FIRST * 7, 2),
            last: name(random(number + (1 << 40)) % (20 * 20 * 20 * 20), 4),
            email: format!("person-{number}@example.org"),
            phone: if is_at_work { SWITCHBOARD.into() } else { own },
        }
    }

    /// Returns the name of a subscriber in the host.
    pub(crate) fn name(number: u64) -> String {
        format!("subscriber-{number}")
    }
}

impl Person {
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.first, self.last)
    }

    /// Returns what creates the subscriber of that number.
    pub(crate) fn create(&self, number: u64) -> SubscriberCreate {
        serde_json::from_value(json!({
            "subscriberId": People::name(number), "firstName": self.first, "lastName": self.last,
            "email": self.email, "phone": self.phone, "locale": "en_GB",
            "data": { "plan": "team", "seats": number % 50 },
        }))
        .unwrap()
    }

    /// Returns the subscriber of that number.
    pub(crate) fn subscriber(&self, home: &Home, number: u64) -> Subscriber {
        let created_at = Timestamp::from_millis(1_700_000_000_000 + i64::try_from(number).unwrap());
        // As the engine makes them: times, and random bits behind them.
        let id =
            Uuid::from_u128(u128::from(number) << 80 | 7 << 76 | u128::from(random(number) >> 2));
        Subscriber::new(id.into(), home, self.create(number), created_at)
    }
}

/// Returns the environment of subscribers.
pub(crate) fn home(scope: &Scope) -> Home {
    Home { organization_id: "acme".parse().unwrap(), environment_id: scope.environment_id() }
}

// The finalizer of SplitMix64.
fn random(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
