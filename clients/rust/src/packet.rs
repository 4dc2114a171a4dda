//! SpectrumPacket: one channel's spectrum. docs/packet.md defines every byte.

use std::borrow::Cow;

use crate::crc32::crc32;
use crate::errors::PacketError::{self, PacketBadCrc, PacketTooLong, PacketTooShort};
use crate::errors::PacketError::{PacketUnknownCoding, PacketUnknownMajor};
use crate::trailer::{flag, read_trailer, Fields, PacketTrailer};
use crate::values::Values;

const HEADER_BYTES: usize = 20;
const CODING_BYTES: usize = 16;

/// How the values of a packet are coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketCoding {
    /// As they are: versions 1.x.
    Float32,
    /// IEEE 754 binary16 × `step`.
    Float16,
    /// One byte: `offset` + `step` × it, in dB.
    Decibel8,
}

impl PacketCoding {
    fn value_bytes(self) -> usize {
        match self {
            Self::Float32 => 4,
            Self::Float16 => 2,
            Self::Decibel8 => 1,
        }
    }
}

/// One spectrum of one channel: a view of the bytes that it was decoded from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpectrumPacket<'a> {
    /// Major version in the high 16 bits, minor in the low: 0x00010001 is 1.1.
    pub version: u32,
    /// The low 32 bits of the microseconds since the Unix epoch.
    pub timestamp_us: u32,
    /// The channel's number.
    pub channel_id: u32,
    /// The number of values.
    pub fft_size: u32,
    /// The values, little-endian, as `coding` says.
    pub data: &'a [u8],
    /// Nothing in 1.0.
    pub trailer: Option<PacketTrailer>,
    /// `Float32` in 1.x.
    pub coding: PacketCoding,
    /// Of 2.x: docs/packet.md.
    pub offset: f32,
    /// Of 2.x: docs/packet.md.
    pub step: f32,
}

impl<'a> SpectrumPacket<'a> {
    /// The values in place, without a copy; nothing where that cannot be: coded ones, bytes that
    /// don't begin at a multiple of 4, a big-endian machine.
    pub fn as_slice(&self) -> Option<&'a [f32]> {
        if self.coding != PacketCoding::Float32 || cfg!(target_endian = "big") {
            return None;
        }
        // SAFETY: all bit patterns are valid float32.
        let (before, values, after) = unsafe { self.data.align_to::<f32>() };
        (before.is_empty() && after.is_empty()).then(|| values)
    }

    /// The values one after the other, decoded where they are coded.
    pub fn iter(&self) -> Values<'a> {
        Values::new(self.coding, self.offset, self.step, self.data)
    }

    /// The values in [`unit`](Self::unit): in place where that is possible, else a copy.
    pub fn values(&self) -> Cow<'a, [f32]> {
        match self.as_slice() {
            Some(values) => Cow::Borrowed(values),
            None => Cow::Owned(self.iter().collect()),
        }
    }

    /// The frequency of a value in Hz; nothing for version 1.0, which does not carry it.
    pub fn frequency(&self, index: usize) -> Option<f64> {
        let trailer = self.trailer.as_ref()?;
        Some(trailer.first_bin_hz + index as f64 * trailer.bin_spacing_hz)
    }

    /// The frequency of each value in Hz; nothing for version 1.0.
    pub fn frequencies(&self) -> Option<impl Iterator<Item = f64>> {
        let PacketTrailer {
            first_bin_hz,
            bin_spacing_hz,
            ..
        } = self.trailer?;
        Some((0..self.fft_size).map(move |index| first_bin_hz + f64::from(index) * bin_spacing_hz))
    }

    /// What the values are in: `counts^2/Hz`, `V^2` …; nothing for version 1.0.
    pub fn unit(&self) -> Option<&'static str> {
        let trailer = self.trailer.as_ref()?;
        Some(match (trailer.flags & flag::VOLTS != 0, trailer.scaling) {
            (true, 1) => "V^2",
            (true, _) => "V^2/Hz",
            (false, 1) => "counts^2",
            (false, _) => "counts^2/Hz",
        })
    }
}

fn read_header(bytes: &[u8], major: u32) -> Result<SpectrumPacket, PacketError> {
    if bytes.len() < HEADER_BYTES {
        return Err(PacketTooShort(format!(
            "packet too short: {} bytes, a header has {HEADER_BYTES}",
            bytes.len()
        )));
    }
    let mut fields = Fields(bytes);
    let packet = SpectrumPacket {
        version: fields.u32(),
        timestamp_us: fields.u32(),
        channel_id: fields.u32(),
        fft_size: fields.u32(),
        data: &[],
        trailer: None,
        coding: PacketCoding::Float32,
        offset: 0.0,
        step: 1.0,
    };
    if fields.u32() != crc32(&bytes[..16]) {
        return Err(PacketBadCrc(
            "bad CRC: the packet's header is damaged".into(),
        ));
    }
    if packet.version >> 16 != major {
        return Err(PacketUnknownMajor(format!(
            "unknown version {}.{}: this reader knows {major}.x",
            packet.version >> 16,
            packet.version & 0xFFFF
        )));
    }
    Ok(packet)
}

/// (data, what stands behind them) of a packet whose data begin at byte `at`.
fn split_data<'a>(
    bytes: &'a [u8],
    at: usize,
    packet: &SpectrumPacket,
) -> Result<(&'a [u8], &'a [u8]), PacketError> {
    let body = &bytes[at..];
    // In 64 bits: it does not fit in 32.
    let wanted = packet.coding.value_bytes() as u64 * u64::from(packet.fft_size);
    if (body.len() as u64) < wanted {
        return Err(PacketTooShort(format!(
            "packet too short: {} bytes, its {} values end at {}",
            bytes.len(),
            packet.fft_size,
            at as u64 + wanted
        )));
    }
    Ok(body.split_at(wanted as usize))
}

fn read_checked_trailer(data: &[u8], rest: &[u8]) -> Result<PacketTrailer, PacketError> {
    let trailer = read_trailer(rest)?;
    if crc32(data) != trailer.data_crc32 {
        return Err(PacketBadCrc(
            "bad CRC: the packet's data are damaged".into(),
        ));
    }
    Ok(trailer)
}

/// Reads exactly one packet of version 1.x, at any alignment.
///
/// Checks lengths, version and every CRC in the order that docs/packet.md gives.
pub fn decode_packet(bytes: &[u8]) -> Result<SpectrumPacket, PacketError> {
    let mut packet = read_header(bytes, 1)?;
    let (data, rest) = split_data(bytes, HEADER_BYTES, &packet)?;
    packet.data = data;
    if packet.version & 0xFFFF != 0 {
        packet.trailer = Some(read_checked_trailer(data, rest)?);
    } else if !rest.is_empty() {
        return Err(PacketTooLong(format!(
            "packet too long: {} bytes, its {} values end at {}",
            bytes.len(),
            packet.fft_size,
            bytes.len() - rest.len()
        )));
    }
    Ok(packet)
}

/// Reads exactly one packet of version 2.x.
pub fn decode_coded_packet(bytes: &[u8]) -> Result<SpectrumPacket, PacketError> {
    let mut packet = read_header(bytes, 2)?;
    const DATA_AT: usize = HEADER_BYTES + CODING_BYTES;
    if bytes.len() < DATA_AT {
        return Err(PacketTooShort(format!(
            "packet too short: {} bytes, its values begin at {DATA_AT}",
            bytes.len()
        )));
    }
    let mut fields = Fields(&bytes[HEADER_BYTES..]);
    let (coding, value_bytes) = (fields.u16(), fields.u16());
    packet.offset = fields.f32();
    packet.step = fields.f32();
    if fields.u32() != crc32(&bytes[HEADER_BYTES..DATA_AT - 4]) {
        return Err(PacketBadCrc(
            "bad CRC: the packet's coding block is damaged".into(),
        ));
    }
    packet.coding = match (coding, value_bytes) {
        (1, 2) => PacketCoding::Float16,
        (2, 1) => PacketCoding::Decibel8,
        _ => {
            return Err(PacketUnknownCoding(format!(
                "unknown coding {coding} of {value_bytes} bytes per value"
            )))
        }
    };
    let (data, rest) = split_data(bytes, DATA_AT, &packet)?;
    packet.data = data;
    packet.trailer = Some(read_checked_trailer(data, rest)?);
    Ok(packet)
}
