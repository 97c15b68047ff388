//! Implements a job queue in PostgreSQL, from which any number of processes take lines of input to work on
//! (`ptc batch --farm`).
//!
//! A worker takes lines for some time and renews that; the lines of a worker that has died are taken by others. So a line
//! can be worked on more than once, and its first answer counts.

use super::connection::Connection;
use super::{Value, milliseconds, number, unavailable, unsigned};
use crate::store::StoreError;
use std::time::Duration;
use tokio::sync::{broadcast, watch};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// A job of a farm.
pub struct FarmJob {
    connection: Connection,
    name: String,
}

/// How far a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobProgress {
    /// Lines that were put in.
    pub lines: u64,
    /// Lines that have an answer.
    pub answered: u64,
    /// All lines are in.
    pub is_whole: bool,
}

/// Number and text of a line, or of its answer.
pub type NumberedLine = (u64, Vec<u8>);

impl FarmJob {
    /// The job of this name in the database at this address; tables are made if they are missing. It must be called on a
    /// tokio runtime.
    ///
    /// # Errors
    /// The address cannot be read; the database does not answer or refuses.
    pub async fn open(url: &str, name: &str) -> Result<FarmJob, StoreError> {
        let connection = Connection::new(url, watch::Sender::new(0), broadcast::Sender::new(1))?;
        super::prepare(&connection).await?;
        Ok(FarmJob { connection, name: name.to_owned() })
    }

    async fn query(&self, statement: &str, values: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        self.connection.query(statement, values).await
    }

    /// Puts lines in, from this number on. A line that is there already stays, so this can be repeated.
    ///
    /// # Errors
    /// The job has another line of such a number; the database cannot be used.
    pub async fn put(&self, first: u64, lines: &[Vec<u8>]) -> Result<(), StoreError> {
        const NEW: &str = "(SELECT $2 + new.place - 1 AS number, new.line
            FROM unnest($3) WITH ORDINALITY AS new (line, place)) AS new";
        let first = number(first);
        let values: [Value<'_>; 3] =
            [(&self.name, Type::TEXT), (&first, Type::INT8), (&lines, Type::BYTEA_ARRAY)];
        let insert = format!(
            "INSERT INTO ptc_farm (job, number, line) SELECT $1, number, line FROM {NEW}
            ON CONFLICT (job, number) DO NOTHING"
        );
        self.query(&insert, &values).await?;
        // A statement of its own sees what others have put in meanwhile.
        let compare = format!(
            "SELECT new.number FROM {NEW} JOIN ptc_farm AS old ON old.job = $1 AND old.number = new.number
            WHERE old.line <> new.line ORDER BY new.number LIMIT 1"
        );
        match self.query(&compare, &values).await?.first() {
            None => Ok(()),
            Some(row) => Err(self.differs(&format!("another line {}", unsigned(row, 0) + 1))),
        }
    }

    fn differs(&self, how: &str) -> StoreError {
        unavailable(format_args!("the job {} has {how}: choose another name, or --delete it", self.name))
    }

    /// Says that all lines are in.
    ///
    /// # Errors
    /// The job has another number of lines; the database cannot be used.
    pub async fn close(&self, lines: u64) -> Result<(), StoreError> {
        let wanted = number(lines);
        let values: [Value<'_>; 2] = [(&self.name, Type::TEXT), (&wanted, Type::INT8)];
        let insert = "INSERT INTO ptc_farm_jobs (job, lines) VALUES ($1, $2) ON CONFLICT (job) DO NOTHING";
        self.query(insert, &values).await?;
        let values: [Value<'_>; 1] = [(&self.name, Type::TEXT)];
        let rows = self.query("SELECT lines FROM ptc_farm_jobs WHERE job = $1", &values).await?;
        match rows.first().map(|row| unsigned(row, 0)) {
            Some(known) if known != lines => Err(self.differs(&format!("{known} lines"))),
            _ => Ok(()),
        }
    }

    /// Takes lines that have no answer and that no other worker has.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn take(
        &self,
        worker: &str,
        most: usize,
        time: Duration,
    ) -> Result<Vec<NumberedLine>, StoreError> {
        let statement =
            "UPDATE ptc_farm AS line SET worker = $2, until = now() + $4 * interval '1 millisecond'
            FROM (SELECT number FROM ptc_farm
                WHERE job = $1 AND answer IS NULL AND (until IS NULL OR until <= now())
                ORDER BY number LIMIT $3 FOR UPDATE SKIP LOCKED) AS free
            WHERE line.job = $1 AND line.number = free.number
            RETURNING line.number, line.line";
        let (most, time) = (number(most as u64), milliseconds(time));
        let values: [Value<'_>; 4] =
            [(&self.name, Type::TEXT), (&worker, Type::TEXT), (&most, Type::INT8), (&time, Type::INT8)];
        let rows = self.query(statement, &values).await?;
        let mut taken: Vec<NumberedLine> = rows.iter().map(|row| (unsigned(row, 0), row.get(1))).collect();
        taken.sort_unstable_by_key(|(number, _)| *number);
        Ok(taken)
    }

    /// Keeps the lines that a worker has for this time from now on.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn renew(&self, worker: &str, time: Duration) -> Result<(), StoreError> {
        let statement = "UPDATE ptc_farm SET until = now() + $3 * interval '1 millisecond'
            WHERE job = $1 AND worker = $2 AND answer IS NULL";
        let time = milliseconds(time);
        let values: [Value<'_>; 3] = [(&self.name, Type::TEXT), (&worker, Type::TEXT), (&time, Type::INT8)];
        self.query(statement, &values).await.map(drop)
    }

    /// Writes answers of a worker. Those of lines that it does not have any more are left out.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn answer(&self, worker: &str, answers: &[NumberedLine]) -> Result<(), StoreError> {
        let statement = "UPDATE ptc_farm AS line SET answer = new.answer
            FROM unnest($2, $3) AS new (number, answer)
            WHERE line.job = $1 AND line.number = new.number AND line.worker = $4 AND line.answer IS NULL";
        let numbers: Vec<i64> = answers.iter().map(|(line, _)| number(*line)).collect();
        let texts: Vec<&[u8]> = answers.iter().map(|(_, text)| text.as_slice()).collect();
        let values: [Value<'_>; 4] = [
            (&self.name, Type::TEXT),
            (&numbers, Type::INT8_ARRAY),
            (&texts, Type::BYTEA_ARRAY),
            (&worker, Type::TEXT),
        ];
        self.query(statement, &values).await.map(drop)
    }

    /// How far the job is.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn progress(&self) -> Result<JobProgress, StoreError> {
        let statement = "SELECT count(*), count(answer), EXISTS (SELECT FROM ptc_farm_jobs WHERE job = $1)
            FROM ptc_farm WHERE job = $1";
        let rows = self.query(statement, &[(&self.name, Type::TEXT)]).await?;
        let counts = |row: &Row| {
            let (lines, answered) = (unsigned(row, 0), unsigned(row, 1));
            JobProgress { lines, answered, is_whole: row.get(2) }
        };
        Ok(rows.first().map(counts).unwrap_or_default())
    }

    /// Answers from this line on, in order, up to the first line without one.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn answers(&self, first: u64, most: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        let statement = "SELECT number, answer FROM ptc_farm
            WHERE job = $1 AND number >= $2 ORDER BY number LIMIT $3";
        let (from, most) = (number(first), number(most as u64));
        let values: [Value<'_>; 3] = [(&self.name, Type::TEXT), (&from, Type::INT8), (&most, Type::INT8)];
        let rows = self.query(statement, &values).await?;
        let in_order = (first..).zip(&rows).take_while(|(line, row)| unsigned(row, 0) == *line);
        Ok(in_order.map_while(|(_, row)| row.get::<_, Option<Vec<u8>>>(1)).collect())
    }

    /// Removes the job, its lines and its answers.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn delete(&self) -> Result<(), StoreError> {
        let statement = "WITH job AS (DELETE FROM ptc_farm_jobs WHERE job = $1)
            DELETE FROM ptc_farm WHERE job = $1";
        self.query(statement, &[(&self.name, Type::TEXT)]).await.map(drop)
    }
}
