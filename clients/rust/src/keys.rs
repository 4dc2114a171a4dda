//! Files of CURVE keys, as `echellectl keys` makes them: docs/feed.md.

use std::fs;
use std::io;
use std::path::Path;

const KEY_CHARACTERS: usize = 40; // Z85, rfc.zeromq.org/spec/32

/// A pair of keys in Z85; `secret` is empty when it came from a .pub file.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Keys {
    /// What others know its owner by.
    pub public: String,
    /// Whoever has it is its owner.
    pub secret: String,
}

/// A secret must not end up in a log.
impl std::fmt::Debug for Keys {
    fn fmt(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
        to.debug_struct("Keys")
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

/// Reads a .key or .pub file.
pub fn read_keys(path: impl AsRef<Path>) -> io::Result<Keys> {
    let path = path.as_ref();
    let mut keys = Keys::default();
    for line in fs::read_to_string(path)?.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            ["public", key] if key.len() == KEY_CHARACTERS => keys.public = key.to_string(),
            ["secret", key] if key.len() == KEY_CHARACTERS => keys.secret = key.to_string(),
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("{} is not a file of keys", path.display()),
                ))
            }
        }
    }
    Ok(keys)
}
