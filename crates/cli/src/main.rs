mod failure;
mod run;
#[cfg(test)]
mod testing;
mod reading { pub fn closing_line(_: &std::path::Path, _: &std::path::Path) -> String { String::new() } }
fn main() {}
