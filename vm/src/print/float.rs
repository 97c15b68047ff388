//! The text of floats: the shortest digits that read back as the same float, plain between 1e-4 and 1e16,
//! with an exponent beyond (`1.0e20`).

/// Writes a finite float.
pub(crate) fn float_text(value: f64) -> String {
    let mut buffer = zmij::Buffer::new();
    let (negative, digits, point) = split(buffer.format_finite(value));
    let mut text = String::with_capacity(24);
    if negative {
        text.push('-');
    }
    // `point` is the position of the decimal point relative to the first digit.
    match point {
        _ if digits.is_empty() => text.push_str("0.0"),
        1..=16 if digits.len() as i32 <= point => {
            text.push_str(&digits);
            text.extend(std::iter::repeat_n('0', point as usize - digits.len()));
            text.push_str(".0");
        }
        1..=16 => {
            let (whole, fraction) = digits.split_at(point as usize);
            text.push_str(whole);
            text.push('.');
            text.push_str(fraction);
        }
        -3..=0 => {
            text.push_str("0.");
            text.extend(std::iter::repeat_n('0', point.unsigned_abs() as usize));
            text.push_str(&digits);
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            text.push_str(first);
            text.push('.');
            text.push_str(if rest.is_empty() { "0" } else { rest });
            text.push('e');
            text.push_str(&(point - 1).to_string());
        }
    }
    text
}

/// Sign, significant digits without zeros at either end, and the position of the point before which they
/// stand: `-0.00120` is (true, "12", -2).
fn split(text: &str) -> (bool, String, i32) {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.trim_start_matches('+').parse().unwrap_or(0)),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = format!("{whole}{fraction}");
    let mut point = whole.len() as i32 + exponent;
    let leading = digits.len() - digits.trim_start_matches('0').len();
    digits.drain(..leading);
    point -= leading as i32;
    digits.truncate(digits.trim_end_matches('0').len());
    (negative, digits, point)
}

#[cfg(test)]
mod tests {
    use super::float_text;

    #[test]
    fn layout() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-5.5, "-5.5"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e15, "1000000000000000.0"),
            (9_007_199_254_740_993.0, "9007199254740992.0"),
            (1e16, "1.0e16"),
            (1e20, "1.0e20"),
            (1.25e20, "1.25e20"),
            (0.0001, "0.0001"),
            (0.000123, "0.000123"),
            (1e-5, "1.0e-5"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (5e-324, "5.0e-324"),
            (f64::MAX, "1.7976931348623157e308"),
            (100.0, "100.0"),
            (123_456.789, "123456.789"),
        ] {
            assert_eq!(float_text(value), text);
            assert_eq!(text.parse::<f64>(), Ok(value));
        }
    }
}
