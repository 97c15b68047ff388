//! Converts Rust values of the application to the input (context) of a run, and the answer of the run back to a Rust
//! type.

use super::limits::Limits;
use super::options::RunOptions;
use super::outcome::{Failure, JsonRefusal, Outcome};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;

/// Why an outcome cannot be converted to a type.
#[derive(Debug)]
#[non_exhaustive]
pub enum ValueError {
    /// The program failed.
    Failed(Box<Failure>),
    /// JSON was not requested: the options of the run were not made by [`RunOptions::typed`].
    NotAsked,
    /// The answer has no JSON form: it holds a function, a var, a regex, an infinity, or a map with keys other than strings
    /// and keywords (`(update-keys m str)` helps).
    NoJson(JsonRefusal),
    /// The answer does not match the type.
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
    /// The answer as a type of the application. Keywords become strings, and sets become lists.
    ///
    /// # Errors
    /// The program failed; the answer does not match the type or has no JSON form; the options of the run were not
    /// made by [`RunOptions::typed`].
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
    /// Options for [`Outcome::value`], for a program that may call tools: 60 s and 100 MiB.
    pub fn typed() -> RunOptions {
        RunOptions { want_json: true, limits: Limits::with_upstreams(), ..RunOptions::default() }
    }

    /// The same options with a context: each field of `data` is `data/<field>` in the program.
    ///
    /// # Errors
    /// `data` does not serialize to a JSON object.
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
