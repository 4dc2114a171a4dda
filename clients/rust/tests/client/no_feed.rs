//! Feeds that are none, or say nothing.

use std::time::Duration;

use echelle::{
    feed_endpoint, latest, latest_with, open_ring, subscribe, FeedTimeout, FeedUnusable, Keys,
    SubscribeOptions,
};

#[test]
fn endpoints() {
    assert_eq!(
        feed_endpoint("tcp://127.0.0.1:5570"),
        "tcp://127.0.0.1:5570"
    );
    let named = feed_endpoint("lab");
    assert!(
        named.starts_with("ipc:///") && named.ends_with("/lab/feed"),
        "{named}"
    );
}

#[test]
fn nothing_comes() {
    let nowhere = "ipc:///nowhere/at/all/feed";
    match latest(nowhere, 3, Duration::from_millis(30)) {
        Err(FeedTimeout(words)) => assert!(words.contains(nowhere), "{words}"),
        other => panic!("{other:?}"),
    }
    let mut options = SubscribeOptions::channels([]);
    options.timeout = Some(Duration::from_millis(1));
    let mut feed = subscribe(nowhere, options).unwrap();
    for _ in 0..2 {
        assert!(matches!(feed.next(), Some(Err(FeedTimeout(_)))));
    }
    assert!(feed.wait_for_hello(Duration::from_millis(1)).is_err());
    assert_eq!(
        (feed.hello(), feed.missed(), feed.ended()),
        (None, 0, false)
    );
}

#[test]
fn what_cannot_be_used() {
    for endpoint in ["rubbish://x", "tcp://", "ipc://\0"] {
        match subscribe(endpoint, SubscribeOptions::default()) {
            Err(FeedUnusable(words)) => assert!(words.contains("cannot be used"), "{words}"),
            other => panic!("{other:?}"),
        }
    }
    let options = SubscribeOptions {
        server_key: Some("too short".into()),
        key_pair: Some(Keys::default()),
        ..SubscribeOptions::default()
    };
    let refused = subscribe("tcp://127.0.0.1:1", options.clone()).unwrap_err();
    assert!(refused.to_string().contains("40 characters"), "{refused}");
    let soon = Duration::from_millis(1);
    let refused = latest_with("tcp://127.0.0.1:1", 0, soon, options).unwrap_err();
    assert!(refused.to_string().contains("40 characters"), "{refused}");
    for target in ["ipc:///nowhere/at/all/feed", "tcp://127.0.0.1:1"] {
        assert!(matches!(open_ring(target, None), Err(FeedUnusable(_))));
    }
}
