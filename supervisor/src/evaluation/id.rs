//! Ids that nobody can guess.

use brig_protocol::codes::RequestCode;
use brig_protocol::rpc::ErrorData;

/// Bytes of randomness in an id.
const RANDOM_BYTES: usize = 16;

/// A new id: `prefix` and 128 bits from the kernel, in hexadecimal.
///
/// # Errors
/// When the kernel gives no randomness.
pub(crate) fn fresh(prefix: &str) -> Result<String, ErrorData> {
    let mut bytes = [0u8; RANDOM_BYTES];
    let given = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())
        .map_err(|fault| ErrorData::new(RequestCode::InternalError, format!("the kernel gives no random bytes ({fault}); nothing ran")))?;
    if given < RANDOM_BYTES {
        return Err(ErrorData::new(RequestCode::InternalError, "the kernel gave too few random bytes; nothing ran"));
    }
    Ok(format!("{prefix}{:032x}", u128::from_le_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    #[test]
    fn ids_have_their_form_and_differ() {
        let (one, other) = (super::fresh("ev_").unwrap(), super::fresh("ev_").unwrap());
        assert!(one.len() == 35 && one.starts_with("ev_") && one != other);
    }
}
