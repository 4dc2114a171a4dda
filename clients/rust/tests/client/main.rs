//! The reader against the golden packets (tests/golden), recordings, keys, and feeds that are none.

mod json;

mod golden;
mod keys;
mod no_feed;
mod recording;
