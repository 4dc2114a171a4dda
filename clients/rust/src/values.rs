//! The values of a packet one after the other, decoded where they are coded.

use crate::packet::PacketCoding;

/// An iterator over a packet's values, of known length; made by
/// [`SpectrumPacket::iter`](crate::SpectrumPacket::iter).
#[derive(Debug, Clone)]
pub struct Values<'a> {
    coding: PacketCoding,
    offset: f32,
    step: f32,
    data: &'a [u8],
}

impl<'a> Values<'a> {
    pub(crate) fn new(coding: PacketCoding, offset: f32, step: f32, data: &'a [u8]) -> Self {
        Self {
            coding,
            offset,
            step,
            data,
        }
    }

    fn take<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        let value = self.data.get(..BYTES)?.try_into().ok()?;
        self.data = &self.data[BYTES..];
        Some(value)
    }
}

impl Iterator for Values<'_> {
    type Item = f32;

    fn next(&mut self) -> Option<f32> {
        Some(match self.coding {
            PacketCoding::Float32 => f32::from_le_bytes(self.take()?),
            PacketCoding::Float16 => self.step * float_of_half(u16::from_le_bytes(self.take()?)),
            PacketCoding::Decibel8 => {
                let [code] = self.take()?;
                float_of_decibels(code, self.offset, self.step)
            }
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match self.coding {
            PacketCoding::Float32 => self.data.len() / 4,
            PacketCoding::Float16 => self.data.len() / 2,
            PacketCoding::Decibel8 => self.data.len(),
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for Values<'_> {}

/// IEEE 754 binary16.
fn float_of_half(half: u16) -> f32 {
    let sign = if half & 0x8000 != 0 { -1.0 } else { 1.0 };
    let exponent = i32::from(half >> 10 & 0x1F);
    let fraction = half & 0x3FF;
    match exponent {
        31 if fraction == 0 => sign * f32::INFINITY,
        31 => f32::NAN,
        0 => sign * f32::from(fraction) * 2f32.powi(-24),
        _ => sign * f32::from(fraction + 1024) * 2f32.powi(exponent - 25),
    }
}

fn float_of_decibels(code: u8, offset: f32, step: f32) -> f32 {
    match code {
        0 => 0.0,
        255 => f32::NAN,
        _ => {
            let decibels = f64::from(offset) + f64::from(step) * f64::from(code);
            // A NaN of the packet's own stays one: min() would take the number.
            let value = 10f64.powf(decibels / 10.0);
            if value > f64::from(f32::MAX) {
                f32::MAX
            } else {
                value as f32
            }
        }
    }
}
