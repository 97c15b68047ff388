//! Values of the application's own types, into a run and out of it.

use super::limits::Limits;
use super::options::RunOptions;
use super::outcome::{Failure, JsonRefusal, Outcome};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;

/// Why an outcome has no value of a type.
#[derive(Debug)]
pub enum ValueError {
    /// The program gave no answer.
    Failed(Box<Failure>),
    /// Nobody asked for JSON: [`RunOptions::want_json`] was off.
    NotAsked,
    /// The answer has no JSON form.
    NoJson(JsonRefusal),
    /// The answer is something else than the type.
    Mismatch(serde_json::Error),
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueError::Failed(failure) => failure.fmt(f),
            ValueError::NotAsked => {
                f.write_str("the run was not asked for JSON: RunOptions::typed() asks for it")
            }
            ValueError::NoJson(refusal) => refusal.fmt(f),
            ValueError::Mismatch(error) => write!(f, "the answer does not fit: {error}"),
        }
    }
}

impl std::error::Error for ValueError {}

impl Outcome {
    /// The answer as a type of the application. Keywords are strings in it, sets are lists.
    ///
    /// # Errors
    /// The program failed; the answer is no such value, or no JSON; [`RunOptions::want_json`] was off.
    pub fn value<T: DeserializeOwned>(&self) -> Result<T, ValueError> {
        let answer = self.result.as_ref().map_err(|failure| ValueError::Failed(Box::new(failure.clone())))?;
        match &answer.json {
            None => Err(ValueError::NotAsked),
            Some(Err(refusal)) => Err(ValueError::NoJson(refusal.clone())),
            Some(Ok(json)) => serde_json::from_str(json).map_err(ValueError::Mismatch),
        }
    }
}

impl RunOptions {
    /// Options of a run whose answer is taken with [`Outcome::value`], and which may call tools: 10 s and 100 MiB.
    pub fn typed() -> RunOptions {
        RunOptions { want_json: true, limits: Limits::with_upstreams(), ..RunOptions::default() }
    }

    /// The same options with a context: each field of `data` is `data/<field>` in the program.
    ///
    /// # Errors
    /// No JSON, or none that is an object: its keys are the names.
    pub fn with_context(self, data: &impl Serialize) -> Result<RunOptions, serde_json::Error> {
        let context = serde_json::to_value(data)?;
        if !context.is_object() {
            return Err(serde::ser::Error::custom(
                "a context is an object, whose keys are the names of data",
            ));
        }
        Ok(RunOptions { context: Some(context.to_string()), ..self })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.compact())
    }
}

impl std::error::Error for Failure {}
