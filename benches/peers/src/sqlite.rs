//! Databases of SQLite that read, and write a little.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

const SETTINGS: &str = "
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA temp_store = MEMORY;
PRAGMA mmap_size = 2147418112;
PRAGMA cache_size = -262144;
";

/// Creates a database in a file, with these tables.
pub(crate) fn create(path: &Path, tables: &str) -> Connection {
    let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).unwrap();
    connection.execute_batch(SETTINGS).unwrap();
    connection.set_prepared_statement_cache_capacity(64);
    connection.execute_batch(tables).unwrap();
    connection
}
