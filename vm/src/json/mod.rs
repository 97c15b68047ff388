//! Converts JSON text to values and back, without an intermediate tree and without recursion.
//!
//! Both directions pay a unit of fuel for every byte and check memory before they allocate, so text and values of any
//! size, depth or sharing end in a result or in a typed fault.

mod decode;
mod encode;
mod known_keys;
mod number;
mod text;

pub(crate) use decode::decode_text;
pub use decode::{DecodeError, DecodeFailure, decode};
pub(crate) use encode::encode_text;
pub use encode::{EncodeFailure, Keys, encode};
