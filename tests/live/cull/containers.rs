// SPDX-License-Identifier: MIT
// As containers.cpp, for the libraries of Rust.
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::fmt::Write as _;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::{mpsc, Arc, Mutex};

const LONG: &str = "a text of some length, which goes to the heap";

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Foo {
    name: String,
}

// Impls of traits of the library for a type of the user's are the user's code.
impl std::fmt::Debug for Foo {
    #[inline(never)]
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = black_box(vec![1u8; 33]);
        out.write_str(if text[0] == 1 { "foo" } else { "bar" })
    }
}
impl From<Foo> for Vec<u8> {
    #[inline(never)]
    fn from(foo: Foo) -> Vec<u8> {
        let mut bytes = black_box(Vec::with_capacity(90));
        bytes.extend_from_slice(foo.name.as_bytes());
        bytes
    }
}
trait Walk {
    fn walk(&self) -> Vec<u8>;
}
impl Walk for Vec<u8> {
    #[inline(never)]
    fn walk(&self) -> Vec<u8> {
        black_box(vec![self.len() as u8; 55])
    }
}

#[inline(never)] fn user_vec() { let mut v = Vec::new(); for i in 0..50 { v.push(black_box(i)); } v.reserve(500); v.shrink_to_fit(); black_box(v); }
#[inline(never)] fn user_vec_of() { black_box(vec![0u8; 100]); black_box(vec![1u64; 100]); black_box(vec![String::from(LONG); 3]); }
#[inline(never)] fn user_collect() { black_box((0..100).map(|i| i.to_string()).collect::<Vec<String>>()); black_box(LONG.split(' ').collect::<Vec<_>>()); black_box(LONG.chars().filter(|c| *c != 'a').collect::<String>()); }
#[inline(never)] fn user_string() { let mut s = String::new(); s.push_str(LONG); s += LONG; s.insert(0, 'x'); black_box(s.to_uppercase()); black_box(s.replace("a", "bb")); black_box(s.repeat(3)); }
#[inline(never)] fn user_format() { black_box(format!("{} {:?} {:>200}", 1, LONG, 3.5)); let mut s = String::new(); write!(s, "{}", LONG).unwrap(); black_box(s); }
#[inline(never)] fn user_to_string() { black_box(17.to_string()); black_box(LONG.to_string()); black_box(LONG.to_owned()); black_box(String::from_utf8_lossy(b"ab\xffcd")); }
#[inline(never)] fn user_debug() { black_box(format!("{:?}", Foo { name: String::from(LONG) })); }
#[inline(never)] fn user_box() { black_box(Box::new([0u8; 64])); let b: Box<dyn Fn() -> usize> = { let s = String::from(LONG); Box::new(move || s.len()) }; black_box(b()); black_box(String::from(LONG).into_boxed_str()); }
#[inline(never)] fn user_rc() { let a = Rc::new(String::from(LONG)); black_box(a.clone()); let b: Arc<str> = Arc::from(LONG); black_box(b); black_box(Arc::new(Mutex::new(vec![1, 2]))); }
#[inline(never)] fn user_hash_map() { let mut m = HashMap::new(); for i in 0..100 { m.insert(i.to_string(), vec![i]); } *m.entry(String::from("x")).or_default() = vec![7]; black_box(m.clone()); }
#[inline(never)] fn user_hash_set() { let s: HashSet<Foo> = (0..20).map(|i| Foo { name: format!("{i}") }).collect(); black_box(s.clone()); }
#[inline(never)] fn user_btree() { let mut m = BTreeMap::new(); for i in 0..100 { m.insert(i, i.to_string()); } black_box(m.clone()); black_box((0..50).collect::<BTreeSet<i32>>()); }
#[inline(never)] fn user_deque() { let mut d = VecDeque::new(); for i in 0..50 { d.push_back(i); d.push_front(i); } let h: BinaryHeap<i32> = d.iter().copied().collect(); let l: LinkedList<i32> = d.iter().copied().collect(); black_box((h, l)); }
#[inline(never)] fn user_clone() { let v = vec![Foo { name: String::from(LONG) }]; black_box(v.clone()); black_box([String::from(LONG), String::from(LONG)].to_vec()); black_box(v.iter().map(|f| f.name.as_str()).collect::<Vec<_>>().join(", ")); black_box([vec![1], vec![2]].concat()); }
#[inline(never)] fn user_cow() { let c: Cow<str> = Cow::Borrowed(LONG); black_box(c.into_owned()); black_box(Vec::<u8>::from(LONG)); }
#[inline(never)] fn user_sort() { let mut v: Vec<(u64, u64, u64)> = (0..200).map(|i| (i * 7919 % 211, i, i)).collect(); v.sort(); black_box(v); }
#[inline(never)] fn user_from() { black_box(Vec::<u8>::from(Foo { name: String::from(LONG) })); }
#[inline(never)] fn user_walk() { black_box(vec![1u8, 2].walk()); }
#[inline(never)] fn user_channel() { let (send, receive) = mpsc::channel(); send.send(String::from(LONG)).unwrap(); black_box(receive.recv().unwrap()); }
#[inline(never)] fn user_in_thread() { black_box(vec![3u8; 77]); }
#[inline(never)] fn user_thread() { std::thread::spawn(user_in_thread).join().unwrap(); }
#[inline(never)] fn user_io() { use std::io::{BufRead, BufReader, Read}; let mut s = String::new(); std::fs::File::open("/proc/self/status").unwrap().read_to_string(&mut s).unwrap(); let lines: Vec<String> = BufReader::new(s.as_bytes()).lines().map(|l| l.unwrap()).collect(); black_box(lines); }
#[inline(never)] fn user_env() { black_box(std::env::args().collect::<Vec<_>>()); black_box(std::env::var("PATH").ok()); black_box(std::path::PathBuf::from("/tmp").join("x")); }
#[inline(never)] fn user_error() { let e: Box<dyn std::error::Error> = From::from(LONG); black_box(e.to_string()); black_box("x".parse::<i32>().map_err(|e| e.to_string())).ok(); }
#[inline(never)] fn user_generic<T: Clone>(value: T) -> Vec<T> { let mut v = Vec::new(); v.push(value.clone()); v.extend(std::iter::repeat(value).take(9)); v }

fn main() {
    for one in [user_vec, user_vec_of, user_collect, user_string, user_format, user_to_string, user_debug, user_box, user_rc, user_hash_map,
                user_hash_set, user_btree, user_deque, user_clone, user_cow, user_sort, user_from, user_walk, user_channel, user_thread, user_io,
                user_env, user_error] {
        one();
    }
    black_box(user_generic(String::from(LONG)));
    black_box(user_generic(Foo { name: String::from(LONG) }));
}
