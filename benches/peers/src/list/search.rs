//! Searches for a part of an address.

use bench_data::{Population, Shape, Wanted};

/// Texts that are searched for, and what they are called in tables.
pub(crate) const SEARCHES: [(&str, &str); 2] =
    [("4711", "a part of 20 addresses"), ("user-12", "a part of 1,111 addresses")];

/// Returns what the searches have to find, as shapes.
pub(crate) fn shapes(population: &Population) -> impl Iterator<Item = Shape> {
    SEARCHES.into_iter().map(|(part, name)| {
        let subscribers = (0..population.profile().subscribers.count)
            .filter(|rank| address(population, *rank).contains(part))
            .map(|rank| Wanted::Subscriber(population.internal_subscriber_id(rank)));
        Shape::new(name).any_of(subscribers)
    })
}

/// Returns the e-mail address of the subscriber of that rank.
pub(crate) fn address(population: &Population, rank: usize) -> String {
    format!("{}@example.com", population.subscriber_id(rank))
}
