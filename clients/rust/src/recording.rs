//! Recordings of spectra, as `echelle-coordinator --record FILE` writes them: a sequence of u32
//! big-endian length + packet, in time order, within one time by channel.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::errors::RecordingError::{self, RecordingTruncated};
use crate::spectrum::Spectrum;

const MOST_AT_ONCE: u64 = 1 << 20; // a false length must not reserve 4 GiB

/// Iterates over the spectra of a recording, from a file or a pipe.
///
/// A bad packet gives an error with its offset, and the next item is the record behind it. Where
/// the file was cut off, [`RecordingTruncated`] is the last item.
#[derive(Debug)]
pub struct RecordingReader<R> {
    from: R,
    offset: u64,
    ended: bool,
}

impl<R: Read> RecordingReader<R> {
    /// Reads from where `from` stands. Many small reads are made: give it a buffer.
    pub fn new(from: R) -> Self {
        Self {
            from,
            offset: 0,
            ended: false,
        }
    }

    /// The byte, counted from where reading began, at which the next record begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// `count` bytes, or fewer at the file's end.
    fn read(&mut self, count: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(count.min(MOST_AT_ONCE) as usize);
        self.from.by_ref().take(count).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn read_record(&mut self) -> Result<Option<Spectrum>, RecordingError> {
        let start = self.offset;
        let cut_off = |have: usize, of: u64, what: &str| RecordingTruncated {
            offset: start,
            message: format!("the recording ends after {have} of {of} bytes of its {what}"),
        };
        self.ended = true; // unless the whole record can be read
        let prefix = self.read(4).map_err(RecordingError::Io)?;
        if prefix.is_empty() {
            return Ok(None);
        }
        let prefix: [u8; 4] = match prefix.as_slice().try_into() {
            Ok(prefix) => prefix,
            Err(_) => return Err(cut_off(prefix.len(), 4, "length")),
        };
        let length = u64::from(u32::from_be_bytes(prefix));
        let bytes = self.read(length).map_err(RecordingError::Io)?;
        if (bytes.len() as u64) < length {
            return Err(cut_off(bytes.len(), length, "packet"));
        }
        self.ended = false;
        self.offset = start + 4 + length;
        match Spectrum::decode(bytes) {
            Ok(spectrum) => Ok(Some(spectrum)),
            Err(error) => Err(RecordingError::Packet {
                offset: start,
                error,
            }),
        }
    }
}

impl<R: Read> Iterator for RecordingReader<R> {
    type Item = Result<Spectrum, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        self.read_record().transpose()
    }
}

/// Iterates over the spectra of a recording by its path.
pub fn read_recording(path: impl AsRef<Path>) -> io::Result<RecordingReader<BufReader<File>>> {
    Ok(RecordingReader::new(BufReader::new(File::open(path)?)))
}
