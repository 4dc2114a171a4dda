//! One line for each spectrum of a running coordinator, until it ends.
//!
//!     watch [--ring | --float16 | --decibel8] [INSTANCE|ENDPOINT [CHANNEL]...]
//!     watch --keys FEED.pub MINE.key ENDPOINT [CHANNEL]...
//!     watch --recording FILE
//!
//! Each line has the channel, its spectrum's sequence number, the number of values and their sum;
//! the last one, what was missed.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use echelle::{
    open_ring, read_keys, read_recording, subscribe, PacketCoding, Spectrum, SubscribeOptions,
};

const USAGE: &str = "give [--ring | --float16 | --decibel8] [INSTANCE|ENDPOINT [CHANNEL]...], \
                     --keys FEED.pub MINE.key ENDPOINT, or --recording FILE";
const PATIENCE: Duration = Duration::from_secs(30);

fn print(to: &mut impl Write, spectrum: &Spectrum) -> io::Result<()> {
    let packet = spectrum.packet();
    let sum: f64 = packet.iter().map(f64::from).sum();
    let sequence = packet.trailer.map_or(0, |trailer| trailer.sequence);
    let (channel, size) = (packet.channel_id, packet.fft_size);
    writeln!(to, "{channel} {sequence} {size} {sum:.8e}")
}

/// Prints the spectra and answers what was missed.
fn watch_feed(
    to: &mut impl Write,
    mut options: SubscribeOptions,
    arguments: &[String],
) -> Result<u64, Box<dyn Error>> {
    let target = arguments.first().map_or("echelle", String::as_str);
    let channels = arguments.iter().skip(1).map(|number| number.parse());
    let channels = channels.collect::<Result<Vec<u32>, _>>()?;
    options.channels = Some(channels).filter(|channels| !channels.is_empty());
    options.timeout = Some(PATIENCE);
    let mut feed = subscribe(target, options)?;
    for spectrum in &mut feed {
        print(to, &spectrum?)?;
    }
    Ok(feed.missed())
}

fn watch_ring(to: &mut impl Write, arguments: &[String]) -> Result<u64, Box<dyn Error>> {
    let target = arguments.first().map_or("echelle", String::as_str);
    let mut ring = open_ring(target, Some(PATIENCE))?;
    for spectrum in &mut ring {
        print(to, &spectrum?)?;
    }
    Ok(ring.missed())
}

fn print_recording(to: &mut impl Write, path: &str) -> Result<u64, Box<dyn Error>> {
    for spectrum in read_recording(path)? {
        print(to, &spectrum?)?;
    }
    Ok(0)
}

fn watch(arguments: &[&str], words: &[String]) -> Result<(), Box<dyn Error>> {
    let mut to = io::stdout(); // line by line: whoever watches does not wait
    let mut options = SubscribeOptions::default();
    let missed = match arguments {
        ["--recording", path] => print_recording(&mut to, path)?,
        ["--ring", ..] => watch_ring(&mut to, &words[1..])?,
        ["--float16", ..] => {
            options.coding = PacketCoding::Float16;
            watch_feed(&mut to, options, &words[1..])?
        }
        ["--decibel8", ..] => {
            options.coding = PacketCoding::Decibel8;
            watch_feed(&mut to, options, &words[1..])?
        }
        ["--keys", feed, mine, _, ..] => {
            options.server_key = Some(read_keys(feed)?.public);
            options.key_pair = Some(read_keys(mine)?);
            watch_feed(&mut to, options, &words[3..])?
        }
        [option, ..] if option.starts_with("--") => return Err(USAGE.into()),
        _ => watch_feed(&mut to, options, words)?,
    };
    writeln!(to, "missed {missed}")?;
    Ok(to.flush()?)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
    match watch(&arguments, &words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("watch: {error}");
            ExitCode::FAILURE
        }
    }
}
