//! What reading a packet costs, every check included: cargo run --release --example parse_bench
//!
//! Prints JSON: nanoseconds per packet, the least of several rounds; `parse` is decode_packet,
//! `parse_and_sum` also goes through the values in place.

use std::time::Instant;
use std::{mem, ptr};

use echelle::decode_packet;

const ROUNDS: usize = 25;
const TIMES: u32 = 4000;

/// Keeps the compiler from seeing through (std::hint::black_box came with Rust 1.66).
fn black_box<T>(value: T) -> T {
    // SAFETY: the value is moved: read once, and forgotten at its old place.
    unsafe {
        let moved = ptr::read_volatile(&value);
        mem::forget(value);
        moved
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
        }
    }
    !crc
}

/// A 1.1 packet of docs/packet.md.
fn packet_bytes(values: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in [0x0001_0001, 7, 5, values] {
        bytes.extend_from_slice(&u32::to_be_bytes(field));
    }
    bytes.extend_from_slice(&crc32(&bytes).to_be_bytes());
    let data: Vec<u8> = (0..values)
        .flat_map(|k| (1.5 * k as f32).to_le_bytes())
        .collect();
    let mut trailer = vec![0; 104];
    trailer[..6].copy_from_slice(b"ECH1\0\x70");
    trailer.extend_from_slice(&crc32(&data).to_be_bytes());
    trailer.extend_from_slice(&crc32(&trailer).to_be_bytes());
    [bytes, data, trailer].concat()
}

fn ns_per_call(mut call: impl FnMut()) -> f64 {
    let round = |call: &mut dyn FnMut()| {
        let began = Instant::now();
        (0..TIMES).for_each(|_| call());
        began.elapsed().as_nanos() as f64 / f64::from(TIMES)
    };
    (0..ROUNDS)
        .map(|_| round(&mut call))
        .fold(f64::INFINITY, f64::min)
}

fn main() {
    let mut parts = Vec::new();
    for values in [513, 1025] {
        let bytes = packet_bytes(values);
        let parse = ns_per_call(|| {
            black_box(decode_packet(black_box(&bytes)).expect("a packet"));
        });
        let parse_and_sum = ns_per_call(|| {
            let packet = decode_packet(black_box(&bytes)).expect("a packet");
            black_box(packet.as_slice().expect("aligned").iter().sum::<f32>());
        });
        parts.push(format!(
            "\"{values}\": {{\"parse_ns\": {parse:.0}, \"parse_and_sum_ns\": {parse_and_sum:.0}}}"
        ));
    }
    println!("{{{}}}", parts.join(", "));
}
