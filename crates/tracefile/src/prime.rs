//! What the model has seen before the first token: what is the same in all files need not be learnt from each.
//!
//! A frozen list of tokens for each version of the format, part of it like the model's constants. It was taken from a real
//! trace of `tests/programs/ring.c`; what today's writer would make of that trace does not matter.

use crate::get::Bad;
use crate::token::{Field, Token, two};

/// Of version 2 of the format.
const TOKENS: &[u8] = include_bytes!("prime-2.bin");

/// The tokens, in the order in which they are learnt.
pub fn tokens() -> Vec<Token> {
    // A unit test holds that it can be read.
    parse(TOKENS).unwrap_or_default()
}

/// For each token: its field as a byte, both halves of its hint and its value as varints.
fn parse(mut bytes: &[u8]) -> Result<Vec<Token>, Bad> {
    let mut tokens = Vec::new();
    while let Some((&field, rest)) = bytes.split_first() {
        bytes = rest;
        let field = Field::from_number(field).ok_or_else(|| Bad::new("an unknown field"))?;
        let mut number = || crate::get::varint(&mut bytes);
        let half = |number: u64| u32::try_from(number).map_err(|_| Bad::new("a hint of more than 32 bits"));
        let hint = two(half(number()?)?, half(number()?)?);
        tokens.push(Token { field, hint, value: number()? });
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token;

    fn bytes_of(tokens: &[Token]) -> Vec<u8> {
        let mut out = Vec::new();
        for told in tokens {
            out.push(told.field as u8);
            for value in [told.hint & 0xffff_ffff, told.hint >> 32, told.value] {
                token::plain(&Token { field: Field::Count, hint: 0, value }, &mut out);
            }
        }
        out
    }

    /// FORMAT.md names both numbers.
    #[test]
    fn the_prime_is_what_it_was() {
        let tokens = parse(TOKENS).unwrap();
        assert_eq!(bytes_of(&tokens), TOKENS);
        assert_eq!((TOKENS.len(), tokens.len(), crate::crc::crc32(TOKENS)), (2242, 366, 0xEBF9_4CBC));
    }

    /// A new prime changes what every packed file means: it needs a new version of the format, and a file of its own.
    /// `REFRAIN_PRIME_FROM=typical.rfn cargo test -p refrain-tracefile --lib -- --ignored write_prime`
    #[test]
    #[ignore = "writes the prime of a new version of the format"]
    fn write_prime() {
        let from = std::env::var_os("REFRAIN_PRIME_FROM").expect("REFRAIN_PRIME_FROM names a trace");
        let trace = crate::open(from).unwrap();
        let kinds = crate::container::KINDS.into_iter();
        let tokens: Vec<Token> = kinds.flat_map(|kind| crate::tokens(&trace, kind)).collect();
        let name = format!("src/prime-{}.bin", crate::FORMAT_VERSION);
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        std::fs::write(path, bytes_of(&tokens)).unwrap();
    }
}
