//! How long tests with random input go on. The tests of `refrain-addresses` use this too.

/// A quarter of all rounds, unless `make test-all` asks for all.
pub fn rounds(all: u64) -> u64 {
    if std::env::var_os("REFRAIN_LONG").is_some() { all } else { all / 4 }
}
