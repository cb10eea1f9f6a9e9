//! Handle of an open database, and its closing.

use redb::Database;

use super::failure::caught;

/// An open database. redb writes to the file once more on closing. A panic on closing is dropped,
/// because a caller that drops a store cannot do anything about the damage.
pub(super) struct Handle(Option<Database>);

impl Handle {
    pub(super) fn new(database: Database) -> Self {
        Self(Some(database))
    }

    pub(super) fn get(&self) -> Result<&Database, redb::Error> {
        self.0.as_ref().ok_or(redb::Error::DatabaseClosed)
    }

    pub(super) fn get_mut(&mut self) -> Result<&mut Database, redb::Error> {
        self.0.as_mut().ok_or(redb::Error::DatabaseClosed)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let database = self.0.take();
        drop(caught(|| drop(database)));
    }
}
