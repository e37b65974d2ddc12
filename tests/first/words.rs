// SPDX-License-Identifier: MIT
// An index of words, with generic code of the standard library above each of its own functions.
use std::collections::{BTreeMap, HashMap};

#[inline(never)]
fn make_document(number: usize) -> Vec<String> {
    (0..40).map(|word| format!("word-{}-of-the-text", (number * 7 + word * word) % 5000)).collect()
}

#[inline(never)]
fn index_words(documents: &[Vec<String>]) -> HashMap<String, BTreeMap<usize, Vec<usize>>> {
    let mut index: HashMap<String, BTreeMap<usize, Vec<usize>>> = HashMap::new();
    for (number, document) in documents.iter().enumerate() {
        for (place, word) in document.iter().enumerate() {
            index.entry(word.clone()).or_default().entry(number).or_default().push(place);
        }
    }
    index
}

fn main() {
    let documents: Vec<_> = (0..5000).map(make_document).collect();
    let index = index_words(&documents);
    println!("{}", index.values().map(|places| places.len()).sum::<usize>());
}
