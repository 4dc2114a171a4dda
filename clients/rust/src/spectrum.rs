//! A packet together with the bytes that it refers to.

use crate::errors::PacketError;
use crate::packet::{decode_coded_packet, decode_packet, SpectrumPacket};

/// A spectrum that owns its bytes: what feeds, rings and recordings give.
#[derive(Debug, Clone)]
pub struct Spectrum {
    bytes: Vec<u8>,
    data_at: usize,
    data_bytes: usize,
    fields: SpectrumPacket<'static>, // without its data
}

impl Spectrum {
    /// Checks the bytes of a 1.x packet, once and for all.
    pub fn decode(bytes: Vec<u8>) -> Result<Self, PacketError> {
        Self::with(bytes, decode_packet)
    }

    /// Checks the bytes of a 2.x packet.
    pub fn decode_coded(bytes: Vec<u8>) -> Result<Self, PacketError> {
        Self::with(bytes, decode_coded_packet)
    }

    fn with(
        bytes: Vec<u8>,
        decode: fn(&[u8]) -> Result<SpectrumPacket, PacketError>,
    ) -> Result<Self, PacketError> {
        let packet = decode(&bytes)?;
        let data_at = packet.data.as_ptr() as usize - bytes.as_ptr() as usize;
        let data_bytes = packet.data.len();
        let fields = SpectrumPacket {
            data: &[],
            ..packet
        };
        Ok(Self {
            data_at,
            data_bytes,
            fields,
            bytes,
        })
    }

    /// The packet, without a copy and without checking it again.
    pub fn packet(&self) -> SpectrumPacket {
        SpectrumPacket {
            data: &self.bytes[self.data_at..self.data_at + self.data_bytes],
            ..self.fields
        }
    }

    /// All bytes of the packet.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
