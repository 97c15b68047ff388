//! Hashes strings and names for look-ups in maps and sets, in constant time (only parts of a long text are read), with
//! the same result in every process and on every platform.

use crate::value::string::SHORT_TEXT;

/// Hash of a key's text; never 0, which means "not computed yet". The same in every process and on every platform. It
/// takes constant time: only parts of a text longer than [`SHORT_TEXT`] are hashed.
pub fn hash_text(text: &str) -> u32 {
    let bytes = text.as_bytes();
    let state = (bytes.len() as u64 ^ FACTORS[0]).wrapping_mul(FACTORS[1]);
    let state = if bytes.len() > SHORT_TEXT { hash_parts(state, bytes) } else { hash_bytes(state, bytes) };
    ((fold(state, FACTORS[3]) >> 16) as u32).max(1)
}

/// Odd random-looking constants: the fractional parts of the roots of the first primes.
const FACTORS: [u64; 4] =
    [0x6A09_E667_F3BC_C909, 0xBB67_AE85_84CA_A73B, 0x3C6E_F372_FE94_F82B, 0xA54F_F53A_5F1D_36F1];

fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    wide as u64 ^ (wide >> 64) as u64
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn half_word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes).into()
}

fn hash_bytes(mut state: u64, bytes: &[u8]) -> u64 {
    let len = bytes.len();
    let mut at = 0;
    while at + 16 < len {
        state = fold(state ^ word(bytes, at), FACTORS[2] ^ word(bytes, at + 8));
        at += 16;
    }
    // The rest is read from both its ends, which overlap.
    let (a, b) = match len {
        16.. => (word(bytes, len - 16), word(bytes, len - 8)),
        8..16 => (word(bytes, 0), word(bytes, len - 8)),
        4..8 => (half_word(bytes, 0), half_word(bytes, len - 4)),
        1..4 => (u64::from(bytes[0]) << 8 | u64::from(bytes[len / 2]), u64::from(bytes[len - 1])),
        0 => (0, 0),
    };
    fold(state ^ a, FACTORS[3] ^ b)
}

/// The ends of a long text, and words from between them.
#[cold]
fn hash_parts(state: u64, bytes: &[u8]) -> u64 {
    const END: usize = SHORT_TEXT / 4;
    const WORDS: usize = 16;
    let (start, rest) = bytes.split_at(END);
    let (middle, end) = rest.split_at(rest.len() - END);
    let stride = middle.len() / WORDS;
    let between = (0..WORDS).fold(state, |state, at| fold(state ^ word(middle, at * stride), FACTORS[2]));
    hash_bytes(hash_bytes(between, start), end)
}
