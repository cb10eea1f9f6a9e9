//! What is compared.

/// The inbox of a subscriber.
pub(crate) trait System {
    /// Name in tables.
    fn name(&self) -> &'static str;

    /// Returns the newest ten messages, and the number of all.
    fn page(&self) -> Page;

    /// Returns the newest ten unread messages, and the number of all unread ones.
    fn unread(&self) -> Page;

    /// Returns the numbers of unseen and unread messages.
    fn counts(&self) -> [usize; 2];

    /// Marks the unread message of that number as read, or as unread again.
    fn mark(&self, number: usize, is_read: bool);
}

/// A page of messages.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) texts: Vec<String>,
    pub(crate) total: usize,
}

/// Largest total that both systems tell.
pub(crate) const MOST: usize = 50_000;
