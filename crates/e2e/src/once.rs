//! What many tests ask for and one of them makes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// Something for each key, made by who asks first; who asks meanwhile waits for it. What fails is made again by the next one.
#[derive(Debug)]
pub struct Once<T>(Mutex<BTreeMap<String, Arc<OnceLock<T>>>>);

impl<T: Clone> Once<T> {
    #[expect(clippy::new_without_default, reason = "made as a static alone")]
    pub const fn new() -> Once<T> {
        Once(Mutex::new(BTreeMap::new()))
    }

    pub fn get(&self, key: &str, make: impl FnOnce() -> T) -> T {
        let own = self.0.lock().unwrap_or_else(|e| e.into_inner()).entry(key.to_owned()).or_default().clone();
        own.get_or_init(make).clone()
    }
}
