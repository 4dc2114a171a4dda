//! The trailer of SpectrumPackets 1.1 and later: where, when and how a spectrum was made.

use crate::errors::PacketError::{self, PacketBadCrc, PacketBadTrailer};
use crate::errors::PacketError::{PacketTooLong, PacketTooShort};

use crate::crc32::crc32;

/// [`PacketTrailer::worker`] when several workers computed the spectrum, or nobody knows.
pub const WORKER_UNKNOWN: u32 = 0xFFFF_FFFF;

const TRAILER_BYTES: usize = 112;
const TRAILER_MAGIC: u32 = 0x4543_4831; // "ECH1"

/// Bits of [`PacketTrailer::flags`]. Those of later versions are kept.
pub mod flag {
    /// Samples are missing inside this spectrum, or between it and the last one.
    pub const GAP_BEFORE: u16 = 1;
    /// Fewer segments averaged than expected.
    pub const INCOMPLETE: u16 = 2;
    /// `over_range_count` is not 0.
    pub const OVER_RANGE: u16 = 4;
    /// A complex channel: DC in the middle, at index nperseg / 2.
    pub const TWO_SIDED: u16 = 8;
    /// V²/Hz or V², else counts²/Hz or counts².
    pub const VOLTS: u16 = 16;
    /// A part of an integration, or one that the stream's end cut short.
    pub const PARTIAL: u16 = 32;
}

/// An exact ratio, such as a sample rate of 200/3 Hz.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rational {
    /// Above the line.
    pub numerator: u64,
    /// Below the line; from a packet it may be 0.
    pub denominator: u64,
}

impl Rational {
    /// The ratio as a float; NaN when the denominator is 0.
    pub fn value(&self) -> f64 {
        if self.denominator == 0 {
            return f64::NAN;
        }
        self.numerator as f64 / self.denominator as f64
    }
}

/// What 1.1 added. Numbers that a later version may define are kept as they are; its later fields
/// are skipped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacketTrailer {
    /// What is special about the spectrum: [`flag`].
    pub flags: u16,
    /// Counts the spectra of this channel from 0.
    pub sequence: u64,
    /// Unix time of the first sample, nanoseconds.
    pub timestamp_ns: i64,
    /// Index of the first sample in the stream.
    pub first_sample: u64,
    /// Samples per second.
    pub rate: Rational,
    /// Frequency of value 0.
    pub first_bin_hz: f64,
    /// From value to value.
    pub bin_spacing_hz: f64,
    /// Samples per segment.
    pub nperseg: u32,
    /// Samples that neighbouring segments share.
    pub noverlap: u32,
    /// Segments in this spectrum.
    pub segments_averaged: u32,
    /// Segments that it would have without loss.
    pub segments_expected: u32,
    /// 0 boxcar, 1 hann, 2 hamming, 3 blackman, 4 blackmanharris, 5 flattop, 6 kaiser, 7 tukey.
    pub window: u16,
    /// 0 density (per Hz), 1 spectrum (per bin).
    pub scaling: u8,
    /// 0 none, 1 constant.
    pub detrend: u8,
    /// 0 mean, 1 median, 2 max.
    pub average: u8,
    /// Of the samples, counts or volts; of a complex channel, the magnitude of the complex mean.
    pub mean: f32,
    /// Of the samples, counts or volts.
    pub rms: f32,
    /// Samples at the converter's limits.
    pub over_range_count: u32,
    /// The worker that computed it, or [`WORKER_UNKNOWN`].
    pub worker: u32,
    /// CRC-32 of the data bytes.
    pub data_crc32: u32,
}

/// Takes big-endian fields one after the other; the caller has checked that they are there.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    fn take<const BYTES: usize>(&mut self) -> [u8; BYTES] {
        let (field, rest) = self.0.split_at(BYTES);
        self.0 = rest;
        field.try_into().expect("split at its length")
    }
    pub(crate) fn u8(&mut self) -> u8 {
        self.take::<1>()[0]
    }
    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take())
    }
    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }
    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take())
    }
    pub(crate) fn i64(&mut self) -> i64 {
        i64::from_be_bytes(self.take())
    }
    pub(crate) fn f32(&mut self) -> f32 {
        f32::from_be_bytes(self.take())
    }
    pub(crate) fn f64(&mut self) -> f64 {
        f64::from_be_bytes(self.take())
    }
}

/// Checks that `bytes`, those after the data, are exactly one trailer, and reads it.
pub(crate) fn read_trailer(bytes: &[u8]) -> Result<PacketTrailer, PacketError> {
    let size = bytes.len();
    if size < 6 {
        return Err(PacketTooShort(format!(
            "packet too short: {size} bytes after the data, a trailer has {TRAILER_BYTES}"
        )));
    }
    let mut fields = Fields(bytes);
    let magic = fields.u32();
    let length = usize::from(fields.u16());
    if magic != TRAILER_MAGIC {
        return Err(PacketBadTrailer(format!(
            "bad trailer: magic {magic:#010x}, not {TRAILER_MAGIC:#010x} (ECH1)"
        )));
    }
    if length < TRAILER_BYTES {
        return Err(PacketBadTrailer(format!(
            "bad trailer: it says it has {length} bytes, not {TRAILER_BYTES} or more"
        )));
    }
    if size < length {
        return Err(PacketTooShort(format!(
            "packet too short: {size} of {length} trailer bytes"
        )));
    }
    if size > length {
        return Err(PacketTooLong(format!(
            "packet too long: {} bytes after the trailer",
            size - length
        )));
    }
    let (covered, crc) = bytes.split_at(length - 4);
    if Fields(crc).u32() != crc32(covered) {
        return Err(PacketBadCrc(
            "bad CRC: the packet's trailer is damaged".into(),
        ));
    }
    Ok(unpack(fields))
}

fn unpack(mut fields: Fields) -> PacketTrailer {
    PacketTrailer {
        flags: fields.u16(),
        sequence: fields.u64(),
        timestamp_ns: fields.i64(),
        first_sample: fields.u64(),
        rate: Rational {
            numerator: fields.u64(),
            denominator: fields.u64(),
        },
        first_bin_hz: fields.f64(),
        bin_spacing_hz: fields.f64(),
        nperseg: fields.u32(),
        noverlap: fields.u32(),
        segments_averaged: fields.u32(),
        segments_expected: fields.u32(),
        window: fields.u16(),
        scaling: fields.u8(),
        detrend: fields.u8(),
        average: {
            let average = fields.u8();
            fields.take::<3>(); // zero
            average
        },
        mean: fields.f32(),
        rms: fields.f32(),
        over_range_count: fields.u32(),
        worker: fields.u32(),
        data_crc32: fields.u32(),
    }
}
