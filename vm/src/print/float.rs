//! Prints floats: the shortest digits that read back as the same float (with an exponent outside of 1e-4 to 1e16, as in
//! `1.0e20`), or a given number of digits.

/// Writes a finite float.
pub(crate) fn float_text(value: f64) -> String {
    let decimal = Decimal::from_float(value);
    match decimal.point {
        _ if decimal.digits.is_empty() => decimal.fixed(1),
        -3..=16 => {
            let fraction = decimal.digits.len() as i32 - decimal.point;
            decimal.fixed(fraction.max(1) as usize)
        }
        _ => {
            let (first, rest) = decimal.digits.split_at(1);
            let sign = if decimal.negative { "-" } else { "" };
            let rest = if rest.is_empty() { "0" } else { rest };
            format!("{sign}{first}.{rest}e{}", decimal.point - 1)
        }
    }
}

/// The shortest digits of a float.
pub(crate) struct Decimal {
    pub(crate) negative: bool,
    /// Significant digits without zeros at either end; none for zero.
    digits: String,
    /// Position of the decimal point relative to the first digit: 0.0012 is "12" and -2.
    point: i32,
}

impl Decimal {
    /// The digits of a finite float.
    pub(crate) fn from_float(value: f64) -> Decimal {
        let mut buffer = zmij::Buffer::new();
        let text = buffer.format_finite(value);
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
        Decimal { negative, digits, point }
    }

    /// Rounds half up to this many digits after the point.
    pub(crate) fn rounded(self, places: usize) -> Decimal {
        let keep = self.point + places as i32;
        self.keep(keep)
    }

    /// Rounds half up to this many significant digits.
    pub(crate) fn rounded_to_digits(self, digits: usize) -> Decimal {
        self.keep(digits as i32)
    }

    fn keep(mut self, count: i32) -> Decimal {
        let Ok(count) = usize::try_from(count) else {
            self.digits.clear();
            return self;
        };
        if count >= self.digits.len() {
            return self;
        }
        let up = self.digits.as_bytes()[count] >= b'5';
        self.digits.truncate(count);
        if up {
            // Nines become zeros, which are dropped at the end.
            let kept = self.digits.trim_end_matches('9').len();
            self.digits.truncate(kept);
            match self.digits.pop() {
                Some(last) => self.digits.push(char::from(last as u8 + 1)),
                None => {
                    self.digits.push('1');
                    self.point += 1;
                }
            }
        }
        self.digits.truncate(self.digits.trim_end_matches('0').len());
        self
    }

    fn digit(&self, position: i32) -> char {
        usize::try_from(position)
            .ok()
            .and_then(|position| self.digits.as_bytes().get(position))
            .map_or('0', |&digit| char::from(digit))
    }

    /// The text with this many digits after the point (no point for none).
    pub(crate) fn fixed(&self, places: usize) -> String {
        let mut text = String::with_capacity(places + 8);
        if self.negative {
            text.push('-');
        }
        if self.point <= 0 || self.digits.is_empty() {
            text.push('0');
        } else {
            text.extend((0..self.point).map(|position| self.digit(position)));
        }
        if places > 0 {
            text.push('.');
            let first = if self.digits.is_empty() { 0 } else { self.point };
            text.extend((0..places as i32).map(|place| self.digit(first + place)));
        }
        text
    }

    /// The text with one digit before the point, this many after it, and an exponent of two digits.
    pub(crate) fn scientific(&self, places: usize) -> String {
        let exponent = if self.digits.is_empty() { 0 } else { self.point - 1 };
        let unit = Decimal { negative: self.negative, digits: self.digits.clone(), point: 1 };
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", unit.fixed(places), exponent.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::{Decimal, float_text};

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

    #[test]
    fn rounding_is_half_up_on_the_digits_shown() {
        for (value, places, text) in [
            (1.005, 2, "1.01"),
            (0.125, 2, "0.13"),
            (2.5, 0, "3"),
            (0.5, 0, "1"),
            (0.4, 0, "0"),
            (9.999, 2, "10.00"),
            (0.001, 2, "0.00"),
            (0.006, 2, "0.01"),
            (-1.25, 1, "-1.3"),
            (1e20, 1, "100000000000000000000.0"),
            (0.0, 3, "0.000"),
            (66.666, 2, "66.67"),
        ] {
            assert_eq!(Decimal::from_float(value).rounded(places).fixed(places), text);
        }
        assert_eq!(Decimal::from_float(12.3456).rounded_to_digits(3).scientific(2), "1.23e+01");
        assert_eq!(Decimal::from_float(0.00099).rounded_to_digits(2).scientific(1), "9.9e-04");
        assert_eq!(Decimal::from_float(0.0).rounded_to_digits(7).scientific(6), "0.000000e+00");
    }
}
