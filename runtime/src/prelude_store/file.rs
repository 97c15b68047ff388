//! A store in a file: an embedded database whose transactions are on the disk when they are acknowledged.

use super::{Head, HeadChange, StoreBackend, StoreError};
use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition, TableError};
use std::path::Path;

/// What is known of an id, as JSON.
const HEADS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("heads");

/// Texts, by id and version.
const SOURCES: TableDefinition<'_, (&str, u64), &str> = TableDefinition::new("sources");

pub(super) struct FileBackend {
    database: Database,
}

impl FileBackend {
    pub(super) fn open(path: &Path) -> Result<FileBackend, StoreError> {
        let database = Database::create(path).map_err(|error| match error {
            redb::DatabaseError::DatabaseAlreadyOpen => StoreError::new(
                "prelude_store_error",
                format!("the store {} belongs to another process just now", path.display()),
            ),
            error => StoreError::broken(format_args!("{}: {error}", path.display())),
        })?;
        Ok(FileBackend { database })
    }
}

fn read(bytes: &[u8]) -> Result<Head, StoreError> {
    serde_json::from_slice(bytes).map_err(StoreError::broken)
}

impl StoreBackend for FileBackend {
    fn heads(&self) -> Result<Vec<(String, Head)>, StoreError> {
        let transaction = self.database.begin_read().map_err(StoreError::broken)?;
        let heads = match transaction.open_table(HEADS) {
            Ok(heads) => heads,
            // Nothing was written yet.
            Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::broken(error)),
        };
        let rows = heads.iter().map_err(StoreError::broken)?;
        rows.map(|row| {
            let (id, head) = row.map_err(StoreError::broken)?;
            Ok((id.value().to_owned(), read(head.value())?))
        })
        .collect()
    }

    fn head(&self, id: &str) -> Result<Option<Head>, StoreError> {
        let transaction = self.database.begin_read().map_err(StoreError::broken)?;
        let heads = match transaction.open_table(HEADS) {
            Ok(heads) => heads,
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(StoreError::broken(error)),
        };
        let found = heads.get(id).map_err(StoreError::broken)?;
        found.map(|head| read(head.value())).transpose()
    }

    fn source(&self, id: &str, version: u64) -> Result<Option<String>, StoreError> {
        let transaction = self.database.begin_read().map_err(StoreError::broken)?;
        let sources = match transaction.open_table(SOURCES) {
            Ok(sources) => sources,
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(StoreError::broken(error)),
        };
        let found = sources.get((id, version)).map_err(StoreError::broken)?;
        Ok(found.map(|text| text.value().to_owned()))
    }

    fn update(
        &self,
        id: &str,
        decide: &mut dyn FnMut(Option<Head>, usize) -> Result<HeadChange, StoreError>,
    ) -> Result<(), StoreError> {
        // Writers wait for each other here; a transaction that is not committed leaves no trace.
        let transaction = self.database.begin_write().map_err(StoreError::broken)?;
        {
            let mut heads = transaction.open_table(HEADS).map_err(StoreError::broken)?;
            let mut sources = transaction.open_table(SOURCES).map_err(StoreError::broken)?;
            let known =
                heads.get(id).map_err(StoreError::broken)?.map(|head| read(head.value())).transpose()?;
            let count = usize::try_from(heads.len().map_err(StoreError::broken)?).unwrap_or(usize::MAX);
            let HeadChange { head, added, dropped } = decide(known, count)?;
            let head = serde_json::to_vec(&head).map_err(StoreError::broken)?;
            heads.insert(id, head.as_slice()).map_err(StoreError::broken)?;
            if let Some((version, text)) = added {
                sources.insert((id, version), text.as_str()).map_err(StoreError::broken)?;
            }
            for version in dropped {
                sources.remove((id, version)).map_err(StoreError::broken)?;
            }
        }
        transaction.commit().map_err(StoreError::broken)
    }
}
