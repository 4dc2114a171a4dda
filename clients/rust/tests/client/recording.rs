//! Recordings: whole, cut off anywhere, and with bad packets between good ones.

use echelle::{PacketTooLong, RecordingError, RecordingReader, RecordingTruncated};

use crate::golden::read;

fn record(packet: &[u8]) -> Vec<u8> {
    [&(packet.len() as u32).to_be_bytes(), packet].concat()
}

#[test]
fn whole_and_cut_off() {
    let (first, second) = (read("packets/v1_1_real.bin"), read("packets/v1_0_real.bin"));
    let whole = [record(&first), record(&second)].concat();
    let read_all = RecordingReader::new(whole.as_slice()).map(|s| s.unwrap().bytes().to_vec());
    assert_eq!(read_all.collect::<Vec<_>>(), [first.clone(), second]);
    assert_eq!(RecordingReader::new(&b""[..]).count(), 0);
    let border = 4 + first.len();
    for end in border + 1..whole.len() {
        let mut reader = RecordingReader::new(&whole[..end]);
        assert!(reader.next().unwrap().is_ok());
        assert_eq!(reader.offset(), border as u64);
        match reader.next() {
            Some(Err(RecordingTruncated { offset, .. })) => assert_eq!(offset, border as u64),
            other => panic!("cut at {end}: {other:?}"),
        }
        assert!(reader.next().is_none());
    }
}

#[test]
fn a_bad_packet_does_not_hide_the_next() {
    let bad = read("packets/too_long_1_1.bin");
    let good = read("packets/v1_1_real.bin");
    let bytes = [record(&good), record(&bad), record(&good)].concat();
    let mut reader = RecordingReader::new(bytes.as_slice());
    assert!(reader.next().unwrap().is_ok());
    match reader.next() {
        Some(Err(RecordingError::Packet {
            offset,
            error: PacketTooLong(_),
        })) => assert_eq!(offset, 4 + good.len() as u64),
        other => panic!("{other:?}"),
    }
    assert!(reader.next().unwrap().is_ok());
    assert!(reader.next().is_none());
}

/// A length of 4 GiB in a file of some bytes: nothing near it is reserved or waited for.
#[test]
fn a_false_length() {
    let bytes = [&0xFFFF_FFFFu32.to_be_bytes()[..], b"rubbish"].concat();
    let error = RecordingReader::new(bytes.as_slice())
        .next()
        .unwrap()
        .unwrap_err();
    assert!(
        error.to_string().contains("7 of 4294967295 bytes"),
        "{error}"
    );
}

#[test]
fn no_such_file() {
    assert!(echelle::read_recording("/nowhere/at/all").is_err());
}
