//! The IEEE CRC-32 of docs/packet.md, by libdeflate.

use libc::{c_void, size_t};

#[link(name = "deflate")]
extern "C" {
    fn libdeflate_crc32(crc: u32, buffer: *const c_void, len: size_t) -> u32;
}

pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    // SAFETY: it reads len bytes at buffer, which are there.
    unsafe { libdeflate_crc32(0, bytes.as_ptr().cast(), bytes.len()) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn is_that_of_ethernet() {
        assert_eq!(super::crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(super::crc32(b""), 0);
    }
}
