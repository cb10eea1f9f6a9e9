//! The numbers of the tables.

use foldhash::HashMap;
use store::Table;

/// The numbers of the tables, as the schema has them.
#[derive(Debug)]
pub(crate) struct Tables {
    numbers: HashMap<Table, i16>,
    tables: HashMap<i16, Table>,
}

impl Tables {
    /// The tables of this version among `rows`: numbers and names.
    pub(crate) fn of(rows: &[(i16, String)]) -> Self {
        let named: HashMap<&str, Table> = Table::ALL.iter().map(|it| (it.name(), *it)).collect();
        let known =
            || rows.iter().filter_map(|(number, name)| Some((*number, *named.get(name.as_str())?)));
        Self {
            numbers: known().map(|(number, table)| (table, number)).collect(),
            tables: known().collect(),
        }
    }

    /// Zero is the number of no table.
    pub(crate) fn number(&self, table: Table) -> i16 {
        self.numbers.get(&table).copied().unwrap_or_default()
    }

    /// Returns `None` for a table of a newer version.
    pub(crate) fn table(&self, number: i16) -> Option<Table> {
        self.tables.get(&number).copied()
    }
}
