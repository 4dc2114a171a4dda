//! The README's beginning: the strongest frequency of channel 3, while it is measured.

fn main() -> Result<(), echelle::FeedError> {
    for spectrum in echelle::subscribe("echelle", echelle::SubscribeOptions::channels([3]))? {
        let spectrum = spectrum?;
        println!(
            "{:?} {:?}",
            spectrum.packet().unit(),
            spectrum.packet().values().first()
        );
    }
    Ok(())
}
