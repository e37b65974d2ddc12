// SPDX-License-Identifier: MIT
// Collections, closures, traits and formatting.
use std::collections::HashMap;
use std::fmt;

struct Item {
    name: String,
    values: Vec<u64>,
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} {}", self.name, format!("{:?}", self.values))
    }
}

trait Shape {
    fn area(&self) -> Vec<f64>;
}

impl Shape for Item {
    fn area(&self) -> Vec<f64> {
        self.values.iter().map(|v| *v as f64).collect()
    }
}

#[inline(never)]
fn make(n: usize) -> Vec<Item> {
    (0..n).map(|i| Item { name: format!("item number {}", i), values: vec![i as u64; 10] }).collect()
}

#[inline(never)]
fn index(items: &[Item]) -> HashMap<String, Vec<usize>> {
    let mut found: HashMap<String, Vec<usize>> = HashMap::new();
    for (i, item) in items.iter().enumerate() {
        found.entry(item.name.clone()).or_default().push(i);
    }
    found
}

fn main() {
    let items = make(100);
    let found = index(&items);
    let text: String = items.iter().map(|i| i.to_string()).collect::<Vec<_>>().join(",");
    let shapes: Vec<Box<dyn Shape>> = items.into_iter().map(|i| Box::new(i) as Box<dyn Shape>).collect();
    let sum: f64 = shapes.iter().flat_map(|x| x.area()).sum();
    println!("{} {} {}", found.len(), text.len(), sum);
    std::mem::forget(found);
}
