//! Implements `round` as CPython does: to the nearest decimal of the float's exact value, ties to even.
//!
//! The interpreter's own `round` multiplies by a power of ten, so 2.675 becomes 2.68.

use super::values::value_of;
use monty_types::{ExcType, MontyException, MontyObject};

/// Name of the function.
pub(super) const NAME: &str = "round";

/// Digits that a float can have.
const MOST_DIGITS: i64 = 400;

/// `round(number, ndigits=None)`.
pub(super) fn round(
    positional: &[MontyObject],
    named: &[(MontyObject, MontyObject)],
) -> Result<MontyObject, MontyException> {
    let wrong = |kind, text: String| Err(MontyException::new(kind, Some(text)));
    let given = |at: usize, name: &str| {
        let named = named.iter().find(|(key, _)| matches!(key, MontyObject::String(key) if key == name));
        positional.get(at).or(named.map(|(_, value)| value))
    };
    if positional.len() + named.len() > 2 {
        return wrong(ExcType::TypeError, "round() takes at most 2 arguments".to_owned());
    }
    let digits = match given(1, "ndigits") {
        None | Some(MontyObject::None) => None,
        Some(MontyObject::Int(digits)) => Some(*digits),
        Some(MontyObject::Bool(digits)) => Some((*digits).into()),
        Some(other) => {
            return wrong(ExcType::TypeError, format!("{other} cannot be interpreted as an integer"));
        }
    };
    match given(0, "number") {
        Some(MontyObject::Float(number)) => of_float(*number, digits),
        Some(MontyObject::Int(number)) => Ok(of_integer(*number, digits)),
        Some(MontyObject::Bool(number)) => Ok(of_integer((*number).into(), digits)),
        Some(MontyObject::BigInt(number)) if digits.is_none_or(|digits| digits >= 0) => {
            Ok(MontyObject::BigInt(number.clone()))
        }
        Some(other) => wrong(ExcType::TypeError, format!("{other} doesn't define __round__ method")),
        None => wrong(ExcType::TypeError, "round() missing required argument 'number' (pos 1)".to_owned()),
    }
}

fn of_float(number: f64, digits: Option<i64>) -> Result<MontyObject, MontyException> {
    let wrong =
        |kind, what| Err(MontyException::new(kind, Some(format!("cannot convert float {what} to integer"))));
    let Some(digits) = digits else {
        if number.is_nan() {
            return wrong(ExcType::ValueError, "NaN");
        }
        if number.is_infinite() {
            return wrong(ExcType::OverflowError, "infinity");
        }
        let whole = format!("{:.0}", number.round_ties_even());
        let whole = if whole == "-0" { "0" } else { &whole };
        return value_of(whole).map_err(MontyException::runtime_error);
    };
    if !number.is_finite() || digits > MOST_DIGITS {
        return Ok(MontyObject::Float(number));
    }
    if digits < -MOST_DIGITS {
        return Ok(MontyObject::Float(0.0_f64.copysign(number)));
    }
    let rounded = match usize::try_from(digits) {
        Ok(digits) => format!("{number:.digits$}").parse().unwrap_or(number),
        Err(_) => {
            let unit = 10_f64.powi(i32::try_from(-digits).unwrap_or(i32::MAX));
            (number / unit).round_ties_even() * unit
        }
    };
    Ok(MontyObject::Float(rounded))
}

fn of_integer(number: i64, digits: Option<i64>) -> MontyObject {
    let places = digits.unwrap_or(0).min(0).unsigned_abs();
    if places == 0 {
        return MontyObject::Int(number);
    }
    let Some(unit) = u32::try_from(places).ok().and_then(|places| 10_i128.checked_pow(places)) else {
        return MontyObject::Int(0);
    };
    let (number, half) = (i128::from(number), unit / 2);
    let (below, rest) = (number.div_euclid(unit), number.rem_euclid(unit));
    let up = rest > half || (rest == half && below % 2 != 0);
    let rounded = (below + i128::from(up)) * unit;
    value_of(&rounded.to_string()).unwrap_or(MontyObject::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_cpython_rounds() {
        let rounded = |number: MontyObject, digits: Option<i64>| {
            let digits = digits.map_or(MontyObject::None, MontyObject::Int);
            round(&[number, digits], &[]).map_or_else(|error| error.summary(), |value| value.to_string())
        };
        for (number, digits, want) in [
            (2.675, Some(2), "2.67"),
            (2.5, None, "2"),
            (3.5, None, "4"),
            (-0.5, None, "0"),
            (0.25, Some(1), "0.2"),
            (0.35, Some(1), "0.3"),
            (1234.5, Some(-2), "1200.0"),
            (1e300, Some(2), "1e+300"),
            (f64::INFINITY, Some(1), "inf"),
            (f64::NAN, None, "ValueError: cannot convert float NaN to integer"),
            (1e20, None, "100000000000000000000"),
        ] {
            assert_eq!(rounded(MontyObject::Float(number), digits), want, "{number}");
        }
        for (number, digits, want) in
            [(1250, -2, "1200"), (1350, -2, "1400"), (-25, -1, "-20"), (7, 3, "7"), (7, -40, "0")]
        {
            assert_eq!(rounded(MontyObject::Int(number), Some(digits)), want);
        }
        assert!(round(&[], &[]).is_err());
    }
}
