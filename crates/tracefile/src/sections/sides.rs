//! Section `sides`: the side lanes of all cohorts and the streams that only they have.
//!
//! It stands alone, so that a reader may pass over it: plain tokens behind their length, then the bytes of packed numbers.

use refrain_fold::bundle::{Bundle, Depth};
use refrain_fold::ranks::Checks;

use crate::get::{Bad, Get};
use crate::sections::{cohorts, streams};
use crate::token::{self, Field, Put, Token};

/// Nothing where there are none.
pub fn write(bundle: &Bundle) -> Option<Vec<u8>> {
    if bundle.cohorts.iter().all(|cohort| cohort.sides.is_empty()) {
        return None;
    }
    let mut put = Put::default();
    let packed = streams::write_rest(&mut put, bundle);
    cohorts::write_sides(&mut put, bundle);
    let mut tokens = Vec::new();
    put.tokens.iter().for_each(|one| token::plain(one, &mut tokens));
    let mut bytes = Vec::new();
    token::plain(&Token { field: Field::Count, hint: 0, value: tokens.len() as u64 }, &mut bytes);
    bytes.extend(tokens);
    bytes.extend(packed);
    Some(bytes)
}

/// The rest of the bundle has been read.
pub fn read(bytes: &[u8], bundle: &mut Bundle, checks: &mut Checks, depth: Depth) -> Result<(), Bad> {
    let mut get = Get::plain(bytes);
    let length: usize = get.small(Field::Count, 0)?;
    let body = &bytes[bytes.len() - get.left()..];
    let (tokens, packed) =
        body.split_at_checked(length).ok_or_else(|| Bad::new("it is shorter than announced"))?;
    let mut get = Get::plain(tokens);
    bundle.streams.extend(streams::read_rest(&mut get, packed)?);
    cohorts::read_sides(&mut get, bundle, checks)?;
    if get.left() > 0 {
        return Err(Bad::new("it goes on after its end"));
    }
    bundle.validate_within(checks, depth).map_err(|error| Bad(error.to_string()))
}
