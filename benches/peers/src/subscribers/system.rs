//! What is compared.

/// Subscribers of an environment.
pub(crate) trait System {
    /// Returns the newest ten subscribers that a query finds, and the number of all that it finds.
    fn page(&self, query: &Query) -> Page;

    /// Gives the subscriber of that number another given name, or its first one.
    fn rename(&self, number: u64, is_other: bool);

    /// Creates a subscriber behind the others.
    fn create(&self, number: u64);

    /// Deletes it.
    fn delete(&self, number: u64);
}

/// What is looked for.
#[derive(Clone, Debug)]
pub(crate) enum Query {
    All,
    Email(String),
    Phone(String),
    Name(String),
}

/// A page of subscribers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) names: Vec<String>,
    pub(crate) total: usize,
}

/// Largest total that both systems tell.
pub(crate) const MOST: usize = 50_000;
