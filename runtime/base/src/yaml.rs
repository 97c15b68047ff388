//! Reads YAML, of configuration files and of OpenAPI documents, as version 1.2 has it.

use serde::de::DeserializeOwned;

/// Reads a text. `no` and `1_000` are texts; so is a number with a leading zero, which is a code.
///
/// # Errors
/// It is no YAML, or not what is read.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        underscored_numbers_as_strings: true,
        leading_zero_numbers_as_strings: true,
    };
    serde_saphyr::from_str_with_options(text, options)
}
