//! What the model has seen before the first token: what is the same in all files need not be learnt from each.
//!
//! A frozen list of tokens for each version of the format, part of it like the model's constants. It was taken from real
//! traces of `tests/programs`, the most usual last: `random3` and `pop_like` on 4 ranks, `stencil1d5` on 7 with call sites,
//! `tree` and `ring` on 12. What today's writer would make of them does not matter.

use crate::get::Bad;
use crate::token::{Field, Token, two};

/// Of version 3 of the format.
const TOKENS: &[u8] = include_bytes!("prime-3.bin");

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
        assert_eq!((TOKENS.len(), tokens.len(), crc32fast::hash(TOKENS)), (23496, 4079, 0x2A11_36A9));
    }

    /// A new prime changes what every packed file means: it needs a new version of the format, and a file of its own.
    /// `REFRAIN_PRIME_FROM=unusual.rfn:typical.rfn cargo test -p refrain-tracefile --lib -- --ignored write_prime`
    #[test]
    #[ignore = "writes the prime of a new version of the format"]
    fn write_prime() {
        let from = std::env::var_os("REFRAIN_PRIME_FROM").expect("REFRAIN_PRIME_FROM names traces");
        let traces = std::env::split_paths(&from).map(|path| crate::open(path).unwrap());
        let tokens_of = |trace| {
            let mut put = crate::Put::default();
            crate::kinds_of(&trace)
                .into_iter()
                .for_each(|kind| crate::tokens(&mut put, &trace, &Default::default(), kind));
            put.tokens
        };
        let tokens: Vec<Token> = traces.flat_map(tokens_of).collect();
        let name = format!("src/prime-{}.bin", crate::FORMAT_VERSION);
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        std::fs::write(path, bytes_of(&tokens)).unwrap();
    }
}
