//! The ways in which bytes are not a packet, a file not a recording, a feed not to be had.

use std::error::Error;
use std::{fmt, io};

/// The bytes are not a SpectrumPacket. Each variant holds a sentence that says what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::enum_variant_names)] // the names are those of the clients in other languages
pub enum PacketError {
    /// Fewer bytes than header, data or trailer say: the packet was cut off.
    PacketTooShort(String),
    /// More bytes than header, data and trailer say.
    PacketTooLong(String),
    /// The CRC of header, coding, data or trailer differs: bytes were damaged.
    PacketBadCrc(String),
    /// A major version that the reader does not know: 1, or 2 for coded packets.
    PacketUnknownMajor(String),
    /// Version 1.1 or later, whose trailer has another magic or says it has less than 112 bytes.
    PacketBadTrailer(String),
    /// A packet of version 2.x whose values are coded in a way that this reader does not know.
    PacketUnknownCoding(String),
}

impl PacketError {
    /// The error's name in docs/packet.md: `too_short`, `bad_crc` …
    pub fn name(&self) -> &'static str {
        match self {
            Self::PacketTooShort(_) => "too_short",
            Self::PacketTooLong(_) => "too_long",
            Self::PacketBadCrc(_) => "bad_crc",
            Self::PacketUnknownMajor(_) => "unknown_major",
            Self::PacketBadTrailer(_) => "bad_trailer",
            Self::PacketUnknownCoding(_) => "unknown_coding",
        }
    }
}

impl fmt::Display for PacketError {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::PacketTooShort(text)
            | Self::PacketTooLong(text)
            | Self::PacketBadCrc(text)
            | Self::PacketUnknownMajor(text)
            | Self::PacketBadTrailer(text)
            | Self::PacketUnknownCoding(text) => to.write_str(text),
        }
    }
}

impl Error for PacketError {}

/// The feed gives nothing. Going on is possible after `FeedTimeout` and `Packet`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedError {
    /// The feed cannot be used: no such instance, no ring.
    FeedUnusable(String),
    /// Nothing came in time.
    FeedTimeout(String),
    /// The coordinator has gone; nothing more will come.
    FeedEnded(String),
    /// What came as a spectrum is none.
    Packet(PacketError),
}

impl fmt::Display for FeedError {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::FeedUnusable(text) | Self::FeedTimeout(text) | Self::FeedEnded(text) => {
                to.write_str(text)
            }
            Self::Packet(error) => error.fmt(to),
        }
    }
}

impl Error for FeedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Packet(error) => Some(error),
            _ => None,
        }
    }
}

impl From<PacketError> for FeedError {
    fn from(error: PacketError) -> Self {
        Self::Packet(error)
    }
}

/// A record cannot be read. `offset` is the byte, counted from where reading began, at which the
/// record (its length field) begins. Going on is possible after `Packet`.
#[derive(Debug)]
pub enum RecordingError {
    /// The recording ends inside a record. All records before `offset` are good.
    RecordingTruncated {
        /// Where the record that was cut off begins.
        offset: u64,
        /// What is missing.
        message: String,
    },
    /// The record holds no packet.
    Packet {
        /// Where the record begins.
        offset: u64,
        /// Why it is none.
        error: PacketError,
    },
    /// The file cannot be read.
    Io(io::Error),
}

impl fmt::Display for RecordingError {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::RecordingTruncated { offset, message } => {
                write!(to, "record at byte {offset}: {message}")
            }
            Self::Packet { offset, error } => write!(to, "record at byte {offset}: {error}"),
            Self::Io(error) => write!(to, "the recording cannot be read: {error}"),
        }
    }
}

impl Error for RecordingError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::RecordingTruncated { .. } => None,
            Self::Packet { error, .. } => Some(error),
            Self::Io(error) => Some(error),
        }
    }
}
