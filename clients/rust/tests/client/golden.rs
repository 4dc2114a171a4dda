//! Every golden packet, of every version, and each error.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use echelle::{decode_coded_packet, decode_packet, PacketCoding, PacketTrailer, Spectrum};
use echelle::{SpectrumPacket, WORKER_UNKNOWN};

use crate::json::{parse, Json};

fn folder(name: &str) -> PathBuf {
    let golden = std::env::var("ECHELLE_GOLDEN_DIR").map_or_else(
        |_| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden"),
        PathBuf::from,
    );
    golden.join(name)
}

pub fn read(name: &str) -> Vec<u8> {
    fs::read(folder(name)).expect(name)
}

fn index(name: &str) -> Vec<Json> {
    let text = fs::read_to_string(folder(name).join("index.json")).expect("the golden index");
    parse(&text).get("packets").unwrap().list().to_vec()
}

fn check_trailer(trailer: &PacketTrailer, expected: &Json, file: &str) {
    let at = |name: &str| expected.get(name).unwrap();
    let found = [
        ("flags", u64::from(trailer.flags)),
        ("sequence", trailer.sequence),
        ("first_sample", trailer.first_sample),
        ("nperseg", trailer.nperseg.into()),
        ("noverlap", trailer.noverlap.into()),
        ("segments_averaged", trailer.segments_averaged.into()),
        ("segments_expected", trailer.segments_expected.into()),
        ("window", trailer.window.into()),
        ("scaling", trailer.scaling.into()),
        ("detrend", trailer.detrend.into()),
        ("average", trailer.average.into()),
        ("over_range_count", trailer.over_range_count.into()),
        ("worker", trailer.worker.into()),
        ("data_crc32", trailer.data_crc32.into()),
    ];
    for (name, value) in found {
        assert_eq!(value, at(name).number::<u64>(), "{file}: {name}");
    }
    assert_eq!(trailer.timestamp_ns, at("timestamp_ns").number::<i64>());
    let rate = (trailer.rate.numerator, trailer.rate.denominator);
    let expected_rate = at("rate").list();
    assert_eq!(rate, (expected_rate[0].number(), expected_rate[1].number()));
    assert_eq!(trailer.first_bin_hz, at("first_bin_hz").number::<f64>());
    assert_eq!(trailer.bin_spacing_hz, at("bin_spacing_hz").number::<f64>());
    assert_eq!(trailer.mean, at("mean").number::<f32>());
    assert_eq!(trailer.rms, at("rms").number::<f32>());
}

/// Values bit for bit; the power of ten of a decibel8 may differ in its last ones.
fn check_values(packet: &SpectrumPacket, expected: &[Json], file: &str) {
    let values = packet.values();
    assert_eq!(values.len(), expected.len(), "{file}");
    assert_eq!(packet.iter().len(), expected.len(), "{file}");
    for (value, text) in values.iter().zip(expected) {
        if text.text() == "nan" {
            assert!(value.is_nan(), "{file}");
            continue;
        }
        let bits = u32::from_str_radix(text.text(), 16).unwrap();
        let allowed = if packet.coding == PacketCoding::Decibel8 {
            4
        } else {
            0
        };
        assert!(value.to_bits().abs_diff(bits) <= allowed, "{file}: {value}");
    }
}

fn check_packet(packet: &SpectrumPacket, expected: &Json, file: &str) {
    let header = expected.get("header").unwrap();
    let number = |name: &str| header.get(name).unwrap().number::<u32>();
    assert_eq!(packet.version, number("version"), "{file}");
    assert_eq!(packet.timestamp_us, number("timestamp_us"), "{file}");
    assert_eq!(packet.channel_id, number("channel_id"), "{file}");
    assert_eq!(packet.fft_size, number("fft_size"), "{file}");
    check_values(packet, expected.get("values_bits").unwrap().list(), file);
    match expected.get("trailer") {
        Some(trailer) => check_trailer(packet.trailer.as_ref().unwrap(), trailer, file),
        None => assert!(
            packet.trailer.is_none() && packet.unit().is_none(),
            "{file}"
        ),
    }
    match expected.get("coding") {
        Some(coding) => {
            let number = match packet.coding {
                PacketCoding::Float32 => 0,
                PacketCoding::Float16 => 1,
                PacketCoding::Decibel8 => 2,
            };
            assert_eq!(number, coding.get("coding").unwrap().number::<i32>());
            assert_eq!(packet.offset, coding.get("offset").unwrap().number::<f32>());
            assert_eq!(packet.step, coding.get("step").unwrap().number::<f32>());
        }
        None => assert_eq!(packet.coding, PacketCoding::Float32, "{file}"),
    }
}

/// How many vectors of each error there were.
fn check_folder(
    name: &str,
    decode: fn(&[u8]) -> Result<SpectrumPacket, echelle::PacketError>,
) -> BTreeMap<String, usize> {
    let mut seen = BTreeMap::new();
    for expected in index(name) {
        let file = expected.get("file").unwrap().text();
        let bytes = read(&format!("{name}/{file}"));
        // At any address: what was decoded is the same.
        for shift in 0..4 {
            let shifted = [vec![0xA5; shift], bytes.clone()].concat();
            let decoded = decode(&shifted[shift..]);
            let error = decoded
                .as_ref()
                .map_or_else(|error| error.name(), |_| "none");
            assert_eq!(error, expected.get("error").unwrap().text(), "{file}");
            if let Ok(packet) = decoded {
                check_packet(&packet, &expected, file);
            }
        }
        *seen
            .entry(expected.get("error").unwrap().text().to_string())
            .or_insert(0) += 1;
    }
    seen
}

#[test]
fn packets_1() {
    let seen = check_folder("packets", decode_packet);
    let names: Vec<&str> = seen.keys().map(String::as_str).collect();
    let all = [
        "bad_crc",
        "bad_trailer",
        "none",
        "too_long",
        "too_short",
        "unknown_major",
    ];
    assert_eq!(names, all);
    assert!(seen["none"] >= 13);
}

#[test]
fn packets_2() {
    let seen = check_folder("packets_2", decode_coded_packet);
    assert!(seen["none"] >= 15 && seen["unknown_coding"] >= 2);
}

#[test]
fn any_cut_and_any_damaged_byte_is_an_error() {
    let bytes = read("packets/v1_1_real.bin");
    for end in 0..bytes.len() {
        assert_eq!(
            decode_packet(&bytes[..end]).unwrap_err().name(),
            "too_short"
        );
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(decode_packet(&damaged).is_err(), "byte {at}");
    }
}

/// The worked example of docs/packet.md, in place.
#[test]
fn a_view_without_a_copy() {
    let spectrum = Spectrum::decode(read("packets/v1_1_real.bin")).unwrap();
    let packet = spectrum.packet();
    let mut aligned = vec![0u32; spectrum.bytes().len() / 4];
    for (word, bytes) in aligned.iter_mut().zip(spectrum.bytes().chunks_exact(4)) {
        *word = u32::from_ne_bytes(bytes.try_into().unwrap());
    }
    // SAFETY: any u32 is four bytes.
    let (_, aligned_bytes, _) = unsafe { aligned.align_to::<u8>() };
    let view = decode_packet(aligned_bytes).unwrap();
    let values = view.as_slice().expect("aligned bytes");
    assert_eq!(values, [0.5, 1.0, 1_048_576.0, 0.1, 3e-5]);
    assert_eq!(values.as_ptr().cast(), aligned_bytes[20..].as_ptr());
    assert_eq!(packet.values(), values);
    assert_eq!(packet.unit(), Some("counts^2/Hz"));
    assert_eq!(packet.frequency(2), Some(2.5e6));
    assert_eq!(packet.frequencies().unwrap().last(), Some(5e6));
    assert_eq!(packet.trailer.unwrap().rate.value(), 1e7);
    assert_ne!(packet.trailer.unwrap().worker, WORKER_UNKNOWN);
    // At an odd address there is no view, and the same values.
    let odd = [vec![0], spectrum.bytes().to_vec()].concat();
    let (one, two) = (
        decode_packet(&odd[1..]).unwrap(),
        decode_packet(&odd[1..]).unwrap(),
    );
    assert_eq!(one.values(), values);
    assert_eq!(one, two);
}
