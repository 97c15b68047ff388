//! Makes keys with equal hashes, as an attacker would: the hash function is no secret.

use ptc_vm::value::string::hash_text;

/// The factors of the mixing step of `vm/src/hash.rs`.
const FIRST: u64 = 0x9E37_79B9_7F4A_7C15;
const SECOND: u64 = 0xD6E8_FEB8_6659_FD93;

/// The hash of all these keys.
const TARGET: u32 = 0x0BAD_CAFE;

/// The multiplicative inverse of an odd number modulo 2^64.
fn inverse(odd: u64) -> u64 {
    // Newton's iteration: each step doubles the number of correct low bits; the first three are correct from the
    // start.
    (0..5).fold(odd, |found, _| found.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(found))))
}

/// The nth pair of numbers that mix to the hash.
fn unmix(nth: u32) -> (u32, u32) {
    let wide = (u64::from(TARGET) << 32 | u64::from(nth)).wrapping_mul(inverse(SECOND));
    let wide = (wide ^ wide >> 32).wrapping_mul(inverse(FIRST));
    ((wide >> 32) as u32, wide as u32)
}

/// The nth of the colliding integers.
pub fn integer(nth: u32) -> i64 {
    let (low, high) = unmix(nth);
    (u64::from(high ^ 0x51) << 32 | u64::from(low)) as i64
}

/// The nth float that collides with the other floats and with those integers. A few are not finite: `None`.
pub fn float(nth: u32) -> Option<f64> {
    let (low, high) = unmix(nth);
    let float = f64::from_bits(u64::from(high ^ 0x77) << 32 | u64::from(low));
    float.is_finite().then_some(float)
}

/// The nth of the colliding long texts: they differ only where the hash does not read.
pub fn long_text(nth: u32) -> String {
    let (start, end) = ("-".repeat(64), "-".repeat(528));
    format!("{start}--------{nth:08}{end}")
}

/// Short texts that probe the same few slots of any table of up to `1 << bits` slots.
pub fn texts(count: usize, bits: u32) -> Vec<String> {
    let is_near = |text: &String| hash_text(text) & ((1 << bits) - 1) < 4;
    (0u32..).map(|number| format!("k{number}")).filter(is_near).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::{float, integer, long_text};
    use ptc_vm::value::relation::hash::hash_value;
    use ptc_vm::{Budget, Isolate, Value};

    #[test]
    fn they_collide() {
        let mut isolate = Isolate::new(Budget::default());
        isolate.with(|cx| {
            let mut hash = |value: Value| hash_value(cx, &value).unwrap();
            let (known, long) = (hash(Value::Int(integer(0))), hash(Value::string(&long_text(0))));
            for nth in 1..1_000 {
                assert_eq!(hash(Value::Int(integer(nth))), known);
                assert_eq!(float(nth).map_or(known, |float| hash(Value::Float(float))), known);
                assert_eq!(hash(Value::string(&long_text(nth))), long);
            }
        });
        assert_eq!(isolate.close(), 0);
    }
}
