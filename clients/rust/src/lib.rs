//! Reads Echelle's spectra: single SpectrumPackets, recordings, and the feed of a running instance.
//!
//! ```no_run
//! let feed = echelle::subscribe("echelle", echelle::SubscribeOptions::channels([3]))?;
//! for spectrum in feed {
//!     let spectrum = spectrum?;
//!     println!("{:?}", spectrum.packet().values());
//! }
//! # Ok::<(), echelle::FeedError>(())
//! ```
//!
//! Names and errors are those of the clients in Python and C++. Echelle's docs/packet.md and
//! docs/feed.md define every byte. Needs libzmq and libdeflate.
#![deny(missing_docs)]

mod crc32;
mod errors;
mod feed;
mod keys;
mod packet;
mod recording;
mod ring;
mod ring_door;
mod spectrum;
mod trailer;
mod values;
mod zmq;

pub use errors::FeedError::{self, FeedEnded, FeedTimeout, FeedUnusable};
pub use errors::PacketError::{
    self, PacketBadCrc, PacketBadTrailer, PacketTooLong, PacketTooShort, PacketUnknownCoding,
    PacketUnknownMajor,
};
pub use errors::RecordingError::{self, RecordingTruncated};
pub use feed::{
    feed_endpoint, latest, latest_with, subscribe, FeedMessage, SubscribeOptions, Subscriber,
};
pub use keys::{read_keys, Keys};
pub use packet::{decode_coded_packet, decode_packet, PacketCoding, SpectrumPacket};
pub use recording::{read_recording, RecordingReader};
pub use ring::{open_ring, RingEntry, SpectrumRingReader};
pub use spectrum::Spectrum;
pub use trailer::{flag, PacketTrailer, Rational, WORKER_UNKNOWN};
pub use values::Values;
