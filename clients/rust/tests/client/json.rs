//! Reads the golden packets' index.json: strict enough for a file that the repository holds.

use std::collections::HashMap;

#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    Null,
    /// As it stands there: whole numbers may have 64 bits.
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(HashMap<String, Json>),
}

impl Json {
    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.get(key),
            other => panic!("{key} asked of {other:?}"),
        }
    }
    pub fn text(&self) -> &str {
        match self {
            Json::Text(text) => text,
            other => panic!("not a text: {other:?}"),
        }
    }
    pub fn list(&self) -> &[Json] {
        match self {
            Json::List(items) => items,
            other => panic!("not a list: {other:?}"),
        }
    }
    pub fn number<T: std::str::FromStr>(&self) -> T {
        match self {
            Json::Number(digits) => digits.parse().ok().expect(digits),
            other => panic!("not a number: {other:?}"),
        }
    }
}

pub fn parse(text: &str) -> Json {
    let mut from = text.trim();
    let value = value(&mut from);
    assert!(from.trim().is_empty(), "more than one value");
    value
}

fn take(from: &mut &str, mark: char) -> bool {
    *from = from.trim_start();
    let rest = from.strip_prefix(mark);
    *from = rest.unwrap_or(from);
    rest.is_some()
}

fn value(from: &mut &str) -> Json {
    if take(from, '{') {
        let mut members = HashMap::new();
        while !take(from, '}') {
            assert!(take(from, '"'));
            let key = string(from);
            assert!(take(from, ':'));
            members.insert(key, value(from));
            take(from, ',');
        }
        return Json::Object(members);
    }
    if take(from, '[') {
        let mut items = Vec::new();
        while !take(from, ']') {
            items.push(value(from));
            take(from, ',');
        }
        return Json::List(items);
    }
    if take(from, '"') {
        return Json::Text(string(from));
    }
    let end = from
        .find(|c: char| ",]} \n".contains(c))
        .unwrap_or(from.len());
    let (word, rest) = from.split_at(end);
    *from = rest;
    if word == "null" {
        Json::Null
    } else {
        assert!(word.parse::<f64>().is_ok(), "not a number: {word}");
        Json::Number(word.into())
    }
}

/// What stands before the closing quote. The index has no escapes.
fn string(from: &mut &str) -> String {
    let (text, rest) = from.split_once('"').expect("a string that ends");
    assert!(!text.contains('\\'), "an escape in {text}");
    *from = rest;
    text.into()
}
