//! Randomness and digests for `crypto`.

use rquickjs::function::Func;
use rquickjs::{ArrayBuffer, Ctx, Exception, Object};
use sha1::Digest;

use super::{Entropy, encoding::from_hex};

/// The most that one `crypto.getRandomValues` may ask for, in bytes.
const RANDOM_MAX: usize = 65_536;

pub(super) fn define<'js>(native: &Object<'js>, entropy: Entropy) -> rquickjs::Result<()> {
    native.set("randomBytes", Func::from(move |ctx: Ctx<'js>, length: usize| random_bytes(ctx, entropy, length)))?;
    native.set("randomUuid", Func::from(move || random_uuid(entropy)))?;
    native.set("digest", Func::from(digest))
}

fn random_bytes<'js>(ctx: Ctx<'js>, entropy: Entropy, length: usize) -> rquickjs::Result<ArrayBuffer<'js>> {
    if length > RANDOM_MAX {
        return Err(Exception::throw_range(&ctx, "too many random bytes"));
    }
    let mut bytes = vec![0_u8; length];
    entropy(&mut bytes);
    ArrayBuffer::new_copy(ctx, bytes)
}

/// A version 4 UUID (RFC 9562).
fn random_uuid(entropy: Entropy) -> String {
    let mut bytes = [0_u8; 16];
    entropy(&mut bytes);
    let value = u128::from_be_bytes(bytes);
    let value = (value & !(0xf << 76)) | (0x4 << 76);
    let value = (value & !(0x3 << 62)) | (0x2 << 62);
    let hex = format!("{value:032x}");
    let (a, rest) = hex.split_at(8);
    let (b, rest) = rest.split_at(4);
    let (c, rest) = rest.split_at(4);
    let (d, e) = rest.split_at(4);
    format!("{a}-{b}-{c}-{d}-{e}")
}

/// The digest of hex-coded bytes, or nothing for an algorithm that is not offered. `name`
/// is in upper case.
fn digest<'js>(ctx: Ctx<'js>, name: String, hex: String) -> rquickjs::Result<Option<ArrayBuffer<'js>>> {
    let data = from_hex(&hex);
    let out = match name.as_str() {
        "SHA-1" => sha1::Sha1::digest(&data).to_vec(),
        "SHA-256" => sha2::Sha256::digest(&data).to_vec(),
        "SHA-384" => sha2::Sha384::digest(&data).to_vec(),
        "SHA-512" => sha2::Sha512::digest(&data).to_vec(),
        _ => return Ok(None),
    };
    ArrayBuffer::new_copy(ctx, out).map(Some)
}
