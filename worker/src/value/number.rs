//! Owns how a finite number is written: as JavaScript prints it.

/// Digits of 2^53: whole numbers below this many digits are always exact.
const PLAIN_BELOW: f64 = 1e15;
/// From this power of ten on, JavaScript writes an exponent.
const LARGE: i32 = 21;
/// Down to this power of ten, JavaScript writes leading zeros instead of an exponent.
const SMALL: i32 = -6;

/// Appends a whole number.
pub(crate) fn push_int(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    push_unsigned(out, value.unsigned_abs());
}

fn push_unsigned(out: &mut Vec<u8>, mut value: u64) {
    let start = out.len();
    loop {
        out.push(b'0' + u8::try_from(value % 10).unwrap_or(0));
        value /= 10;
        if value == 0 {
            break;
        }
    }
    if let Some(digits) = out.get_mut(start..) {
        digits.reverse();
    }
}

/// Appends a finite number as `String(value)` gives it; `-0` is `0`.
pub(crate) fn push(out: &mut Vec<u8>, value: f64) {
    debug_assert!(value.is_finite());
    if value.fract() == 0.0 && value.abs() < PLAIN_BELOW {
        #[expect(clippy::cast_possible_truncation, reason = "whole and below 10^15, so exact")]
        push_int(out, value as i64);
        return;
    }
    if value < 0.0 {
        out.push(b'-');
    }
    // Rust's exponent form has the same shortest digits that JavaScript prescribes.
    let shortest = format!("{:e}", value.abs());
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_digit).collect();
    lay_out(out, &digits, exponent);
}

/// Places the point: the value is `d.ddd × 10^exponent`.
fn lay_out(out: &mut Vec<u8>, digits: &[u8], exponent: i32) {
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |out: &mut Vec<u8>, n: i32| {
        out.extend(std::iter::repeat_n(b'0', usize::try_from(n).unwrap_or(0)));
    };
    if (0..LARGE).contains(&exponent) {
        let whole = usize::try_from(exponent + 1).unwrap_or(0).min(digits.len());
        let (front, rest) = digits.split_at(whole);
        out.extend_from_slice(front);
        zeros(out, exponent + 1 - count);
        if !rest.is_empty() {
            out.push(b'.');
            out.extend_from_slice(rest);
        }
    } else if (SMALL..0).contains(&exponent) {
        out.extend_from_slice(b"0.");
        zeros(out, -exponent - 1);
        out.extend_from_slice(digits);
    } else {
        let (front, rest) = digits.split_at(digits.len().min(1));
        out.extend_from_slice(front);
        if !rest.is_empty() {
            out.push(b'.');
            out.extend_from_slice(rest);
        }
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        push_unsigned(out, u64::from(exponent.unsigned_abs()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(value: f64) -> String {
        let mut out = Vec::new();
        push(&mut out, value);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn numbers_print_as_javascript_prints_them() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-17.0, "-17"),
            (0.1, "0.1"),
            (1.5, "1.5"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (123456789012345680000.0, "123456789012345680000"),
            (5e-324, "5e-324"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.25e-7, "1.25e-7"),
            (f64::MAX, "1.7976931348623157e+308"),
            (9007199254740991.0, "9007199254740991"),
            (0.30000000000000004, "0.30000000000000004"),
            (-1e-10, "-1e-10"),
            (1234.5678, "1234.5678"),
            (1e15, "1000000000000000"),
        ] {
            assert_eq!(printed(value), text);
        }
    }
}
