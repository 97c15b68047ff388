//! Creates the PostgreSQL tables of the store (values, logs, leases, jobs), and migrates those of older versions.

use super::{StoreError, failed, unavailable};
use tokio_postgres::Client;

/// Each entry takes the schema to the next version; entries are never edited.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE ptc_values (
        key text COLLATE \"C\" PRIMARY KEY,
        version bigint NOT NULL,
        value bytea
    );
    CREATE TABLE ptc_logs (
        log text COLLATE \"C\" NOT NULL,
        number bigint NOT NULL,
        record bytea NOT NULL,
        PRIMARY KEY (log, number)
    );
    ALTER TABLE ptc_logs ALTER COLUMN record SET STORAGE EXTERNAL;
    CREATE TABLE ptc_leases (
        log text COLLATE \"C\" PRIMARY KEY,
        holder text NOT NULL,
        epoch bigint NOT NULL,
        until timestamptz NOT NULL
    );
    CREATE SEQUENCE ptc_epochs;
",
    "
    CREATE TABLE ptc_farm (
        job text COLLATE \"C\" NOT NULL,
        number bigint NOT NULL,
        line bytea NOT NULL,
        answer bytea,
        worker text,
        until timestamptz,
        PRIMARY KEY (job, number)
    );
    CREATE INDEX ptc_farm_open ON ptc_farm (job, number) WHERE answer IS NULL;
    CREATE TABLE ptc_farm_jobs (job text COLLATE \"C\" PRIMARY KEY, lines bigint NOT NULL);
",
    "
    ALTER TABLE ptc_values ADD COLUMN removed timestamptz;
    CREATE INDEX ptc_values_removed ON ptc_values (removed) WHERE removed IS NOT NULL;
    UPDATE ptc_values SET removed = now() WHERE value IS NULL;
",
    // Removed logs leave their rows for a day: neither the sweep nor the list of runs may read them all.
    "
    CREATE INDEX ptc_leases_removed ON ptc_leases (until) WHERE holder = '';
    CREATE INDEX ptc_leases_held ON ptc_leases (log) WHERE holder <> '';
",
];

/// One node at a time migrates: the key of the advisory lock that it takes, \"ptc\" in ASCII.
const MIGRATION_LOCK: i64 = 0x0070_7463;

/// The version that this program reads and writes.
pub(super) fn newest() -> i32 {
    i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX)
}

/// The version of the schema; 0: there are no tables.
pub(super) async fn version(client: &Client) -> Result<i32, StoreError> {
    // It locks the catalog: `to_regclass` alone would not see a table that another node has made while this one has waited
    // for its turn to migrate.
    let is_there = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class
        WHERE relname = 'ptc_schema' AND pg_catalog.pg_table_is_visible(oid))";
    if !client.query_one(is_there, &[]).await.map_err(failed)?.get::<_, bool>(0) {
        return Ok(0);
    }
    let version = client.query_one("SELECT coalesce(max(version), 0) FROM ptc_schema", &[]).await;
    Ok(version.map_err(failed)?.get(0))
}

/// Makes the tables, or takes them to the newest version, in one transaction.
pub(super) async fn migrate(client: &Client) -> Result<(), StoreError> {
    match version(client).await? {
        now if now == newest() => return Ok(()),
        now if now > newest() => {
            return Err(unavailable(format_args!(
                "its schema has version {now}, and this program knows {}: update it",
                newest()
            )));
        }
        _ => {}
    }
    let begin = format!("BEGIN; SELECT pg_advisory_xact_lock({MIGRATION_LOCK})");
    client.batch_execute(&begin).await.map_err(failed)?;
    // Another node may have done it meanwhile.
    let done = match version(client).await {
        Ok(now) => migrate_from(client, now).await,
        Err(error) => Err(error),
    };
    let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = client.batch_execute(end).await.map_err(failed);
    done.and(ended)
}

async fn migrate_from(client: &Client, now: i32) -> Result<(), StoreError> {
    let table = "CREATE TABLE IF NOT EXISTS ptc_schema (version integer PRIMARY KEY)";
    client.batch_execute(table).await.map_err(failed)?;
    for (version, migration) in (1..).zip(MIGRATIONS) {
        if version > now {
            client.batch_execute(migration).await.map_err(failed)?;
            let noted = client.execute("INSERT INTO ptc_schema VALUES ($1)", &[&version]).await;
            noted.map_err(failed)?;
        }
    }
    Ok(())
}
