//! Files of keys.

use std::fs;

use echelle::read_keys;

#[test]
fn files_of_keys() {
    // The keys of rfc.zeromq.org/spec/26's example in libzmq's own tests.
    let public = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
    let secret = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs";
    let path = std::env::temp_dir().join(format!("echelle-keys-{}", std::process::id()));
    fs::write(
        &path,
        format!("# a comment\npublic {public}\n\nsecret {secret}\n"),
    )
    .unwrap();
    let keys = read_keys(&path).unwrap();
    assert_eq!(
        (keys.public.as_str(), keys.secret.as_str()),
        (public, secret)
    );
    assert!(!format!("{keys:?}").contains(secret));
    for rubbish in ["public short", "secret", "something else", "public a b"] {
        fs::write(&path, rubbish).unwrap();
        assert!(read_keys(&path).is_err(), "{rubbish}");
    }
    fs::remove_file(&path).unwrap();
    assert!(read_keys(&path).is_err());
}
